"""One POST to a server that is not trusted to behave: bounded in time and in size, and sent nowhere else.

The standard library's client follows no redirect, reads no proxy from the environment, asks for no compression and
writes no log. What it lacks is one moment at which everything has to be over: a server that sends a byte a second
would never run into a time-out that is counted anew with every byte.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")  # what OpenSSL makes of an answer in http


class ExchangeFailed(Exception):
    """No reply came; `kind` is "connection", "certificate", "http", "tls", "late", "long" or "malformed"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(kind)


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go.

    `host`, `port`: as in the URL. `path`: what is posted to. `tls`: what verifies the server; None for plain HTTP.
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
    """Send one request on a connection of its own, and return status and body of the reply.

    `place`: where to. `body`: what is sent. `headers`: beside those of the protocol. `seconds`: from connecting to the
    last byte. `most_bytes`: of the reply's body. Raises ExchangeFailed if there is no whole reply.
    """
    connection = _Timed(place, monotonic() + seconds)
    try:
        connection.request("POST", place.path, body=body, headers={"Accept-Encoding": "identity", **headers})
        reply = connection.getresponse()
        if reply.getheader("Content-Encoding", "identity").strip().lower() != "identity":
            raise ExchangeFailed("malformed")
        content = reply.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ExchangeFailed("long")
        if reply.length:  # announced, and not sent
            raise ExchangeFailed("malformed")
        return reply.status, content
    except TimeoutError:
        raise ExchangeFailed("late") from None
    except ssl.SSLCertVerificationError:
        raise ExchangeFailed("certificate") from None
    except ssl.SSLEOFError:  # the other end hung up, which may have any cause
        raise ExchangeFailed("connection") from None
    except ssl.SSLError as error:
        raise ExchangeFailed("http" if error.reason in _NO_TLS else "tls") from None
    except OSError:
        raise ExchangeFailed("connection") from None
    except (HTTPException, ValueError):
        raise ExchangeFailed("malformed") from None
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
