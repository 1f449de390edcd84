"""A client of the service that asks again where an answer was lost, and is never charged twice for it."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from quorate.errors import InvalidParameter

if TYPE_CHECKING:
    import httpx

AGAIN: Final = frozenset({"body-too-slow", "rate-limited", "overloaded", "stopping"})
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Label:
    """What one point got.

    `label`: a class; None where the mechanism declined. `status`: whether there is a class. `by`: who answered. What
    the student or a model says is free.
    """

    label: Any
    status: str
    by: str


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
        Of ``quorate keys create``.
    timeout : float, default 30
        Seconds to wait for one answer.
    retries : int, default 5
        How often a request is sent again after a lost connection, a timeout or a refusal that passes.
    ca : path, optional
        Certificates to trust instead of the public ones, PEM: that of the service itself, or of who signed it.
    transport : httpx.BaseTransport, optional
        What carries requests.
    sleep : callable, optional
        Waits for some seconds.

    Notes
    -----
    A retry cannot be charged twice. A request has one idempotency key over all its retries, so that the service knows
    it again; and a point that was answered has its stored answer, whoever asks for it. Where the service died between a
    charge and its answer, those answers are lost and the retry is charged anew, as it must be: the noise of a lost
    answer is never drawn again.

    Examples
    --------
    >>> import httpx
    >>> point = {"label": "no", "status": "answered", "by": "ensemble"}
    >>> told = {"answers_left": 4, "epsilon_spent": 1.0, "answer": point}
    >>> service = httpx.MockTransport(lambda request: httpx.Response(200, json=told))
    >>> with Client("http://service", "quorate_key", transport=service) as client:
    ...     client.label({"age": 39}), client.answers_left
    (Label(label='no', status='answered', by='ensemble'), 4)
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: int = 5,
        ca: str | os.PathLike[str] | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        headers = {"authorization": f"Bearer {key}"}
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout, transport=transport, verify=_trusting(ca)
            )
        except httpx.InvalidURL:
            raise InvalidParameter(
                parameter="url", got=url, expected="where the service is, such as http://127.0.0.1:8470"
            ) from None
        self._url, self._retries, self._sleep = url, retries, sleep
        self.answers_left: int | None = None

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
            The point.
        idempotency_key : str, optional
            Of an earlier request for the same point that had no answer; a new one by default.

        Raises
        ------
        Refused
            The service refused, for good.
        NoAnswer
            No answer came back, however often it was tried. It says whether anything may have been charged.
        """
        return Label(**self._ask({"row": row}, idempotency_key)["answer"])

    def label_many(
        self, rows: Sequence[Mapping[str, Any] | Sequence[float]], *, idempotency_key: str | None = None
    ) -> list[Label]:
        """Ask for several points at once, which takes less time for each; otherwise as :meth:`label`."""
        return [Label(**answer) for answer in self._ask({"rows": list(rows)}, idempotency_key)["answers"]]

    def budget(self) -> dict[str, Any]:
        """Return what is left."""
        return self._sent("GET", "/v1/budget", holds="answers_left")

    def guarantee(self) -> dict[str, Any]:
        """Return what was promised."""
        return self._sent("GET", "/v1/guarantee", holds="epsilon")

    def _ask(self, body: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        key, holds = uuid4().hex if key is None else key, "answer" if "row" in body else "answers"
        reply = self._sent("POST", "/v1/label", holds=holds, key=key, json=body, headers={"idempotency-key": key})
        self.answers_left = reply["answers_left"]
        return reply

    def _sent(self, method: str, path: str, *, holds: str, key: str | None = None, **how: Any) -> dict[str, Any]:
        """Send a request, with the same key and body as often as it takes; return an answer that holds a member."""
        import httpx

        request, arrived = self._http.build_request(method, path, **how), False
        for tried in range(self._retries + 1):
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**tried)
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                for_good = _distrusted(error) or isinstance(error, httpx.UnsupportedProtocol)
                arrived |= not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol))
                if for_good or tried == self._retries:
                    why = _distrusted(error) or f"no answer from {self._url} ({_named(error)})"
                    raise NoAnswer(why, charged=arrived, idempotency_key=key) from None
            else:
                if response.status_code == 200:
                    reply = _object(response)
                    if holds not in reply:
                        what = f"what answers at {self._url} is no service of quorate"
                        raise NoAnswer(what, charged=True, idempotency_key=key)
                    return reply
                arrived = True
                refused = Refused(response.status_code, _object(response))
                passes = refused.code in AGAIN or response.status_code in (502, 504)
                if not passes or tried == self._retries:
                    raise refused
                told_wait = response.headers.get("retry-after", "")
                wait = max(wait, float(told_wait) if told_wait.isdigit() else 0.0)
            self._sleep(wait)
        raise AssertionError  # the last try returns or raises


def _object(response: httpx.Response) -> dict[str, Any]:
    """Return the object of a response; nothing where it holds none, as from a proxy."""
    try:
        content = response.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _trusting(ca: str | os.PathLike[str] | None) -> ssl.SSLContext | bool:
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(f"ca must be a file of certificates, PEM, got {os.fspath(ca)}") from None


def _distrusted(error: BaseException | None) -> str | None:
    """Say why the service's certificate is not taken, if that is what an error is about."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of the service is not trusted ({error.verify_message}), so nothing was sent; give "
                "ca=FILE, the certificate of who signed it"
            )
        error = error.__cause__ or error.__context__
    return None


def _named(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
