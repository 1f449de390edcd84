"""A client of the service that asks again where an answer was lost, and is never charged twice for it."""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import uuid4

from quorate.errors import NOTHING_CHARGED, InvalidParameter, PreconditionFailed
from quorate.service.sent_rows import as_json

if TYPE_CHECKING:
    import httpx

AGAIN: Final = frozenset({"body-too-slow", "rate-limited", "overloaded", "stopping"})
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds
_ADDRESSES: Final = {
    "url": "where the service is, such as http://127.0.0.1:8470, without a name or a password",
    "proxy": "an HTTP proxy, such as http://proxy:3128",
}
_KEYS: Final = {
    "key": (r"[!-~]+", "the one word that quorate keys create printed: ASCII without blanks"),
    "idempotency_key": (r"[!-~]{1,200}", "1 to 200 characters of ASCII without blanks"),
}


@dataclass(frozen=True, slots=True)
class Label:
    """What one point got; two are equal where these three are: `label`, `status` and `by`.

    `label`: a class; None where the mechanism declined. `status`: whether there is a class. `by`: who answered. What
    the student or a model says is free. `charged`: how many points of the request were charged for; those of
    :meth:`Client.label_many` are asked in one. `receipt`: of that charge, ``{"sequence": …, "head_hash": …}``, the same
    for all points of a request; None where nothing was charged, as for a retry whose first answer was lost after its
    charge. Keep it, as JSON: ``quorate ledger verify --receipt`` shows by it whether the ledger was put back to an
    older state.
    """

    label: Any
    status: str
    by: str
    charged: int = field(default=0, compare=False)
    receipt: Mapping[str, Any] | None = field(default=None, compare=False)


class Refused(Exception):
    """The service refused a request.

    Attributes
    ----------
    code : str
        Stable code of the service, "budget-spent" for example.
    status : int
        HTTP status.
    field : str or None
        JSON pointer to what is wrong in the request.
    charged : bool
        Whether answers may have been charged all the same.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.field = problem.get("field")
        self.charged = bool(problem.get("charged", status >= 500))  # what is no problem of the service says nothing
        parts = [problem.get("title") or f"HTTP status {status}.", problem.get("detail"), self.field]
        super().__init__(" ".join([f"{self.code}:", *(str(part) for part in parts if part)]))


class NoAnswer(Exception):
    """No answer of the service came back, however often it was tried.

    Attributes
    ----------
    charged : bool
        Whether something may have been charged: the request may have arrived.
    idempotency_key : str or None
        To ask again with: ``client.label(row, idempotency_key=error.idempotency_key)``. None where nothing was asked
        that could cost anything.
    """

    def __init__(self, what: str, *, charged: bool, idempotency_key: str | None) -> None:
        self.charged, self.idempotency_key = charged, idempotency_key
        if idempotency_key is None:
            then = "nothing is charged by reading; try again"
        elif charged:
            then = (
                "answers may have been charged. To ask again is safe with the same row and "
                f"idempotency_key={idempotency_key!r}: what was charged and stored is told, and not charged again"
            )
        else:
            then = "nothing was charged"
        super().__init__(f"{what}: {then}")


class Client:
    """Asks a service of ``quorate serve``.

    Parameters
    ----------
    url : str
        Where it is: ``"http://127.0.0.1:8470"``.
    key : str
        Of ``quorate keys create``; blanks and line ends around it are no part of it. No error shows it.
    timeout : float, default 30
        Seconds to wait for one answer.
    retries : int, default 5
        How often a request is sent again after a lost connection, a timeout or a refusal that passes.
    ca : path, optional
        Certificates to trust instead of the public ones, PEM: that of the service itself, or of who signed it.
    proxy : str, optional
        The HTTP proxy to ask through: ``"http://proxy:3128"``, with ``name:password@`` before the host where it wants
        them. It reads key and rows, unless `url` begins with ``https``.
    transport : httpx.BaseTransport, optional
        What carries requests that go through no proxy.
    sleep : callable, optional
        Waits for some seconds.

    Raises
    ------
    InvalidParameter
        `url` or `proxy` is no address, `key` no key, or `ca` no file of certificates.

    Notes
    -----
    A retry cannot be charged twice. A request has one idempotency key over all its retries, so that the service knows
    it again; and a point that was answered has its stored answer, whoever asks for it. Where the service died between a
    charge and its answer, those answers are lost and the retry is charged anew, as it must be: the noise of a lost
    answer is never drawn again.

    Of the environment, ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` say whom to trust where `ca` does not. Its proxies
    (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``) and ``.netrc`` are not used. A client cannot be copied or pickled,
    since it holds the key.

    Examples
    --------
    >>> import httpx
    >>> point = {"label": "no", "status": "answered", "by": "ensemble"}
    >>> told = {"answers_left": 4, "epsilon_spent": 1.0, "answer": point, "charged": 0, "receipt": None}
    >>> service = httpx.MockTransport(lambda request: httpx.Response(200, json=told))
    >>> with Client("http://service", "quorate_key", transport=service) as client:
    ...     client.label({"age": 39}), client.answers_left
    (Label(label='no', status='answered', by='ensemble', charged=0, receipt=None), 4)
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: int = 5,
        ca: str | os.PathLike[str] | None = None,
        proxy: str | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        place, at = _address("url", url), None if proxy is None else _address("proxy", proxy)
        of_tls = [address for address in (place, at) if address is not None and address.scheme == "https"]
        trusted = _trusting(ca, needed=bool(of_tls))
        through = None if at is None else httpx.Proxy(at, ssl_context=trusted if at in of_tls else None)
        self._http = httpx.Client(
            base_url=place,
            headers={"authorization": f"Bearer {_header('key', key)}"},
            timeout=timeout,
            transport=transport,
            verify=trusted,
            proxy=through,
            trust_env=False,
        )
        self._url, self._retries, self._sleep = str(place), retries, sleep
        self._through = "" if through is None else f" through the proxy {through.url}"
        self.answers_left: int | None = None

    def __reduce__(self) -> NoReturn:
        raise PreconditionFailed("a client holds a key, so that it cannot be copied or pickled; make another one there")

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def label(self, row: Mapping[str, Any] | Sequence[float], *, idempotency_key: str | None = None) -> Label:
        """Ask for one point.

        Parameters
        ----------
        row : mapping or sequence
            The point: cells by column, or numbers alone. A cell is a text, a finite number (also of NumPy, or a
            ``Decimal``) or a truth value; a date or a time, which is sent in ISO 8601; a duration, which is sent in
            seconds; or None, NaN, NaT or NA for a missing value.
        idempotency_key : str, optional
            Of an earlier request for the same point that had no answer; a new one by default. Up to 200 characters of
            ASCII, without blanks between them.

        Raises
        ------
        InvalidParameter
            A cell is something else, which is told by its column and its type, or the idempotency key cannot be sent.
        Refused
            The service refused, for good.
        NoAnswer
            No answer came back, however often it was tried. It says whether anything may have been charged.
        """
        return self._ask({"row": as_json(row, "row")}, idempotency_key)[0]

    def label_many(
        self, rows: Sequence[Mapping[str, Any] | Sequence[float]], *, idempotency_key: str | None = None
    ) -> list[Label]:
        """Ask for several points at once, which takes less time for each; otherwise as :meth:`label`."""
        return self._ask({"rows": [as_json(row, f"rows[{at}]") for at, row in enumerate(rows)]}, idempotency_key)

    def budget(self) -> dict[str, Any]:
        """Return what is left."""
        return self._sent("GET", "/v1/budget", holds="answers_left")

    def guarantee(self) -> dict[str, Any]:
        """Return what was promised."""
        return self._sent("GET", "/v1/guarantee", holds="epsilon")

    def _ask(self, body: Mapping[str, Any], key: str | None) -> list[Label]:
        key = uuid4().hex if key is None else _header("idempotency_key", key)
        holds = "answer" if "row" in body else "answers"
        reply = self._sent("POST", "/v1/label", holds=holds, key=key, json=body, headers={"idempotency-key": key})
        self.answers_left = reply["answers_left"]
        points = [reply["answer"]] if "row" in body else reply["answers"]
        return [Label(**point, charged=reply.get("charged", 0), receipt=reply.get("receipt")) for point in points]

    def _sent(self, method: str, path: str, *, holds: str, key: str | None = None, **how: Any) -> dict[str, Any]:
        """Send a request, with the same key and body as often as it takes; return an answer that holds a member."""
        import httpx

        hopeless = (httpx.InvalidURL, httpx.LocalProtocolError, httpx.UnsupportedProtocol, UnicodeError)
        kept_back = (*hopeless, httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
        request, arrived = self._http.build_request(method, path, **how), False
        for tried in range(self._retries + 1):
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**tried)
            try:
                response = self._http.send(request)
            except (httpx.RequestError, httpx.InvalidURL, UnicodeError) as error:
                distrusted = self._distrusted(error)
                arrived |= not isinstance(error, kept_back)
                if distrusted or isinstance(error, hopeless) or tried == self._retries:
                    why = distrusted or f"no answer from {self._url}{self._through} ({self._named(error)})"
                    raise NoAnswer(why, charged=arrived, idempotency_key=key) from None
            else:
                if response.status_code == 200:
                    reply = _object(response.text)
                    if holds not in reply:
                        what = f"what answers at {self._url}{self._through} is no service of quorate"
                        raise NoAnswer(what, charged=True, idempotency_key=key)
                    return reply
                arrived = True
                title = f"HTTP status {response.status_code}{self._through}."
                refused = Refused(response.status_code, {"title": title, **_object(self._without_key(response.text))})
                passes = refused.code in AGAIN or response.status_code in (502, 504)
                if not passes or tried == self._retries:
                    raise refused
                told_wait = response.headers.get("retry-after", "")
                wait = max(wait, float(told_wait) if told_wait.isdigit() else 0.0)
            self._sleep(wait)
        raise AssertionError  # the last try returns or raises

    def _distrusted(self, error: BaseException | None) -> str | None:
        """Say why the service's certificate is not taken, if that is what an error is about."""
        while error is not None:
            if isinstance(error, ssl.SSLCertVerificationError):
                return (
                    f"the certificate of the service{self._through} is not trusted ({error.verify_message}), so "
                    "nothing was sent; give ca=FILE, the certificate of who signed it"
                )
            error = error.__cause__ or error.__context__
        return None

    def _named(self, error: Exception) -> str:
        text = self._without_key(" ".join(str(error).split()))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__

    def _without_key(self, text: str) -> str:
        """Return words from elsewhere, such as a proxy's that tells what it was sent, without the key."""
        return text.replace(self._http.headers["authorization"].removeprefix("Bearer "), "…")


def _object(text: str) -> dict[str, Any]:
    """Return the object of a response; nothing where it holds none, as from a proxy."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _address(parameter: str, url: str) -> httpx.URL:
    """Return an address of HTTP. What is none is not shown, since it may be a key that was given in its place."""
    import httpx

    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        address = httpx.URL()
    is_place = address.scheme in ("http", "https") and address.host and (address.port or 0) < 1 << 16
    if not is_place or (parameter == "url" and address.userinfo):
        raise InvalidParameter(parameter=parameter, expected=_ADDRESSES[parameter])
    return address


def _header(parameter: str, key: str) -> str:
    """Return a key without blanks around it; refuse, without showing it, what can be no header."""
    pattern, expected = _KEYS[parameter]
    text = key.strip() if isinstance(key, str) else ""
    if not re.fullmatch(pattern, text):
        raise InvalidParameter(parameter=parameter, expected=expected, charged=NOTHING_CHARGED)
    return text


def _trusting(ca: str | os.PathLike[str] | None, *, needed: bool) -> ssl.SSLContext:
    """Return who is trusted: nobody where no TLS is spoken, since it takes long to read the public certificates."""
    import httpx

    if ca is None and not needed:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.create_ssl_context() if ca is None else ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError):
        if ca is None:
            words = "SSL_CERT_FILE or SSL_CERT_DIR names no certificates, PEM; mend it, or give ca=FILE"
        else:
            words = f"ca must be a file of certificates, PEM, got {os.fspath(ca)}"
        raise InvalidParameter(words) from None
