"""An endpoint that speaks the chat-completions protocol: where it may be, what it is asked, which replies count.

It is not trusted: a request is one POST, bounded in time and in size, and sent nowhere else. The standard library's
client follows no redirect, reads no proxy and writes no log; what it lacks is one moment at which everything has to be
over, so that a server that sends a byte a second runs into a time-out.
"""

from __future__ import annotations

import io
import ipaddress
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from quorate.arguments import count, is_this_machine, real
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.stored_names import stored_as

#: A message of a conversation: ``{"role": ..., "content": ...}``.
Messages = Sequence[Mapping[str, str]]

MOST_BYTES = 2**18  # of a reply: one label and what the protocol puts around it
_PAUSE = 0.5  # seconds before a request is repeated, twice as long before each further time
_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # what a server says that may do better a moment later
_RUNNING = "See that the model is running there"
_ELSEWHERE = "See that its address leads to such an endpoint, up to and without /chat/completions"
_FAILURES = {  # what is told of each, and what to do
    "connection": ("nothing answers there, or the connection broke", _RUNNING),
    "certificate": (
        "its certificate is not trusted here, or is of another name",
        "Name the file of its certificate authority in ca_file, and the machine as the certificate does",
    ),
    "http": (
        "what answers there does not speak https as it was asked to",
        "If the server speaks http, as one on this machine may, write http:// in its address; else turn on its TLS",
    ),
    "tls": (
        "it speaks https, and no connection could be agreed on",
        "It may ask for a certificate of the client, which quorate has none of, or speak an older TLS than 1.2",
    ),
    "late": (
        "no whole reply came within {timeout:g} seconds",
        "Raise timeout, lower connections, or take a quicker model",
    ),
    "long": ("the reply is longer than 256 KiB", _ELSEWHERE),
    "malformed": ("the reply is not of the chat-completions protocol", _ELSEWHERE),
}
_MAY_PASS = ("connection", "certificate", "http", "tls")  # which may be broken once
_OF_STATUS = {
    401: "See that api_key_env names the environment variable that holds the key for this endpoint",
    403: "See that the key that api_key_env names may use this model",
    404: "See that its address is right up to and without /chat/completions, and that model is a name that it knows",
    429: "Lower connections, or wait until the endpoint takes requests again",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Unanswered(Exception):
    """The endpoint gave no reply that counts. The message holds nothing of prompt or reply; `remedy` is what to do.

    `repeat_after`: after how many seconds the request is repeated; None where it is not.
    """

    def __init__(self, words: str, remedy: str = _RUNNING, *, repeat_after: float | None = None) -> None:
        self.remedy, self.repeat_after = remedy, repeat_after
        super().__init__(words)


def _failed(kind: str, seconds: float = 0.0) -> Unanswered:
    words, remedy = _FAILURES[kind]
    return Unanswered(words.format(timeout=seconds), remedy, repeat_after=0.0 if kind in _MAY_PASS else None)


@stored_as("quorate.ensemble.prompted.endpoint.ChatEndpoint")
@dataclass(frozen=True)
class ChatEndpoint:
    """Where prompts go.

    Parameters
    ----------
    url : str
        Up to and without ``/chat/completions``: ``"http://127.0.0.1:8000/v1"``.
    model : str
        The model's name there.
    timeout : float, default 60
        Seconds from connecting to the last byte of a reply.
    retries : int, default 2
        How often a request is repeated that broke off, or met a server that was busy or failed.
    connections : int, default 4
        Requests under way at once.
    hosts : sequence of str
        Names of other machines that may be asked. Without it the endpoint must be on this machine. Another machine is
        asked over https alone.
    api_key_env : str, optional
        The environment variable that holds the key. The key itself is read when it is sent, and kept nowhere.
    ca_file : str, optional
        Certificates, in PEM, that an https server is verified by, in place of those that the system trusts.

    Raises
    ------
    InvalidParameter
        If the URL leads elsewhere than allowed, or an argument is of the wrong kind.

    Notes
    -----
    A redirect is never followed, proxies of the environment are not used, and a server's certificate and name are
    always verified. Whoever runs the endpoint sees every prompt.

    Examples
    --------
    >>> ChatEndpoint("http://127.0.0.1:8000/v1", "some-model").timeout
    60.0
    >>> ChatEndpoint("https://llm.example.org/v1", "some-model")
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: endpoint is on another machine (llm.example.org), whose operator would see every...
    """

    url: str
    model: str
    timeout: float = 60.0
    retries: int = 2
    connections: int = 4
    hosts: tuple[str, ...] = ()
    api_key_env: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidParameter('model must be the model\'s name at the endpoint. Example: model="some-model"')
        keep("timeout", real("timeout", self.timeout, above=0, at_most=86_400))
        keep("retries", count("retries", self.retries))
        keep("connections", count("connections", self.connections, at_least=1))
        hosts: Any = self.hosts
        named = (hosts,) if isinstance(hosts, str) else tuple(hosts)
        if not all(isinstance(host, str) and host for host in named):
            raise InvalidParameter('hosts must be names of machines. Example: hosts=["llm.hospital.example"]')
        keep("hosts", tuple(host.lower() for host in named))
        variable = self.api_key_env
        if variable is not None and not (isinstance(variable, str) and _NAME.fullmatch(variable)):
            # Not shown: what stands there instead may be the key.
            raise InvalidParameter(
                "api_key_env must be the name of an environment variable, not the key itself. "
                'Example: api_key_env="LLM_API_KEY"'
            )
        keep("ca_file", None if self.ca_file is None else str(self.ca_file))
        _checked(self.url, self.hosts)

    def complete(self, messages: Messages, *, seed: int, most_tokens: int) -> str:
        """Return what the model says to `messages`, the whole prompt, in at most `most_tokens`; Unanswered if nothing
        came.

        `seed`: sent along, with temperature 0.
        """
        request = {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            "temperature": 0,
            "seed": seed,
            "max_tokens": most_tokens,
            "stream": False,
        }
        body = json.dumps(request, ensure_ascii=True, allow_nan=False).encode("ascii", "strict")
        for repeated in range(self.retries + 1):
            try:
                return self._once(body)
            except Unanswered as failed:
                if failed.repeat_after is None or repeated == self.retries:
                    raise
                if failed.repeat_after:
                    time.sleep(failed.repeat_after * 2**repeated)
        raise AssertionError  # the loop ends by itself

    def _once(self, body: bytes) -> str:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._key()}
        status, content = post(_place(self), body, headers, seconds=self.timeout, most_bytes=MOST_BYTES)
        if 300 <= status < 400:
            raise Unanswered(
                f"it sends elsewhere (status {status}), and no redirect is followed",
                "Give the address that it sends to as url",
            )
        if status != 200:
            remedy, repeat_after = _OF_STATUS.get(status, _RUNNING), _PAUSE if status in _AGAIN else None
            raise Unanswered(f"it answers with status {status}", remedy, repeat_after=repeat_after)
        return _said(content)

    def _key(self) -> dict[str, str]:
        if self.api_key_env is None:
            return {}
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise Unanswered(
                f"the environment variable {self.api_key_env} holds no key",
                f"Export {self.api_key_env} where quorate runs, or name the variable that holds the key in api_key_env",
            )
        return {"Authorization": f"Bearer {key}"}


@lru_cache(maxsize=8)  # certificates take longer to load than a request
def _place(endpoint: ChatEndpoint) -> Place:
    parts = urlsplit(endpoint.url)
    host = str(parts.hostname)
    tls = None
    if parts.scheme == "https":
        try:
            tls = ssl.create_default_context(cafile=endpoint.ca_file)
        except OSError:  # and errors of TLS
            raise PreconditionFailed(
                f"ca_file {endpoint.ca_file} is missing, or holds no certificates in PEM"
            ) from None
    return Place(
        host=host,
        port=parts.port or (80 if tls is None else 443),
        path=f"{parts.path.rstrip('/')}/chat/completions",
        tls=tls,
        this_machine=is_this_machine(host),  # also where `hosts` names it: then too it must be what it says
    )


def _said(content: bytes) -> str:
    """Return the text of the first choice, and refuse whatever is not of the protocol."""
    try:
        reply = json.loads(content.decode("utf-8"))
        said = reply["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _failed("malformed") from None
    if not isinstance(said, str):
        raise _failed("malformed")
    return said


def _checked(url: Any, hosts: tuple[str, ...]) -> None:
    """Refuse a URL that leads to another machine than allowed, or over an open line."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = None if parts is None else parts.hostname
        _ = None if parts is None else parts.port
    except ValueError:
        parts = host = None
    if parts is None or not host or parts.scheme not in ("http", "https") or not url.isascii() or not url.isprintable():
        raise InvalidParameter('endpoint must be a URL. Example: endpoint="http://127.0.0.1:8000/v1"')
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidParameter(  # not shown: it may hold a key
            "endpoint must be a URL without a name, a password, a query or a fragment; name the environment variable "
            "that holds the key with api_key_env"
        )
    if is_this_machine(host):  # the address that localhost stands for is looked at again when a connection is made
        return
    if host not in hosts:
        raise InvalidParameter(
            f"endpoint is on another machine ({host}), whose operator would see every row that stands in a prompt. "
            f'If they may see private rows, say so: hosts=["{host}"]'
        )
    if parts.scheme != "https":
        raise InvalidParameter(f"endpoint is on another machine ({host}), so it must be asked over https, not http")


_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")  # what OpenSSL makes of an answer in http


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go. `path`: what is posted to. `tls`: what verifies the server; None for plain HTTP.
    `this_machine`: whether the address that the host stands for must be one of this machine.
    """

    host: str
    port: int
    path: str
    tls: ssl.SSLContext | None
    this_machine: bool


def post(
    place: Place, body: bytes, headers: Mapping[str, str], *, seconds: float, most_bytes: int
) -> tuple[int, bytes]:
    """Send one request on a connection of its own, and return status and body of the reply; Unanswered if none is
    whole. `seconds`: from connecting to the last byte. `most_bytes`: of the reply's body.
    """
    connection = _Timed(place, monotonic() + seconds)
    try:
        connection.request("POST", place.path, body=body, headers={"Accept-Encoding": "identity", **headers})
        reply = connection.getresponse()
        if reply.getheader("Content-Encoding", "identity").strip().lower() != "identity":
            raise _failed("malformed")
        content = reply.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise _failed("long")
        if reply.length:  # announced, and not sent
            raise _failed("malformed")
        return reply.status, content
    except TimeoutError:
        raise _failed("late", seconds) from None
    except ssl.SSLCertVerificationError:
        raise _failed("certificate") from None
    except ssl.SSLEOFError:  # the other end hung up, which may have any cause
        raise _failed("connection") from None
    except ssl.SSLError as error:
        raise _failed("http" if error.reason in _NO_TLS else "tls") from None
    except OSError:
        raise _failed("connection") from None
    except (HTTPException, ValueError):
        raise _failed("malformed") from None
    finally:
        connection.end()


class _Timed(HTTPConnection):
    """A connection of which every operation ends at one moment."""

    def __init__(self, place: Place, until: float) -> None:
        super().__init__(place.host, place.port)
        self._place, self._until = place, until
        self._plain: socket.socket | None = None

    def connect(self) -> None:
        """Connect, and verify who is there before anything is sent."""
        place = self._place
        plain = socket.create_connection((place.host, place.port), timeout=_left(self._until))
        try:
            if place.this_machine and not ipaddress.ip_address(plain.getpeername()[0]).is_loopback:
                raise OSError  # noqa: TRY301 - what connecting raises too
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if place.tls is not None:
                plain.settimeout(_left(self._until))
                plain = place.tls.wrap_socket(plain, server_hostname=place.host)
        except BaseException:
            plain.close()
            raise
        self._plain = plain
        sock: Any = _TimedSocket(plain, self._until)
        self.sock = sock

    def end(self) -> None:
        """Close what was opened."""
        self.close()
        if self._plain is not None:
            self._plain.close()


class _TimedSocket:
    """As much of a socket as the client uses."""

    def __init__(self, plain: socket.socket, until: float) -> None:
        self._plain, self._until = plain, until

    def sendall(self, data: bytes) -> None:
        self._plain.settimeout(_left(self._until))
        self._plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._plain, self._until))

    def close(self) -> None:
        """Do nothing: the client lets go of a connection that the server will close before it has read the reply."""


class _TimedReader(io.RawIOBase):
    def __init__(self, plain: socket.socket, until: float) -> None:
        super().__init__()
        self._plain, self._until = plain, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._plain.settimeout(_left(self._until))
        return self._plain.recv_into(buffer)


def _left(until: float) -> float:
    left = until - monotonic()
    if left <= 0:
        raise TimeoutError
    return left
