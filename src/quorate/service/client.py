"""A client of the service that asks again where an answer was lost, and is never charged twice for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

if TYPE_CHECKING:
    import httpx

AGAIN: Final = frozenset({"body-too-slow", "rate-limited", "overloaded", "stopping"})
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Label:
    """What one point got.

    Attributes
    ----------
    label : str, int, bool or None
        A class; None where the mechanism declined.
    status : {"answered", "declined"}
        Whether there is a class.
    by : {"ensemble", "student", "model"}
        Who answered. What the student or a model says is free.
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
        self.charged = bool(problem.get("charged", False))
        told = [problem.get("title") or f"HTTP status {status}.", problem.get("detail"), self.field]
        super().__init__(" ".join([f"{self.code}:", *(str(part) for part in told if part)]))


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
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        headers = {"authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._retries, self._sleep = retries, sleep
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

    def label(self, row: Mapping[str, Any] | Sequence[float]) -> Label:
        """Ask for one point.

        Raises
        ------
        Refused
            The service refused, for good.
        httpx.TransportError
            It could not be reached, however often it was tried.
        """
        return Label(**self._ask({"row": row})["answer"])

    def label_many(self, rows: Sequence[Mapping[str, Any] | Sequence[float]]) -> list[Label]:
        """Ask for several points at once, which takes less time for each."""
        return [Label(**each) for each in self._ask({"rows": list(rows)})["answers"]]

    def budget(self) -> dict[str, Any]:
        """Return what is left."""
        return self._sent("GET", "/v1/budget")

    def guarantee(self) -> dict[str, Any]:
        """Return what was promised."""
        return self._sent("GET", "/v1/guarantee")

    def _ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        told = self._sent("POST", "/v1/label", json=body, headers={"idempotency-key": uuid4().hex})
        self.answers_left = told["answers_left"]
        return told

    def _sent(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        """Send a request, with the same key and body as often as it takes."""
        import httpx

        request = self._http.build_request(method, path, **how)
        for tried in range(self._retries + 1):
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**tried)
            try:
                response = self._http.send(request)
            except httpx.TransportError:
                if tried == self._retries:
                    raise
            else:
                if response.status_code == 200:
                    told: dict[str, Any] = response.json()
                    return told
                refused = Refused(response.status_code, _problem(response))
                passes = refused.code in AGAIN or response.status_code in (502, 504)
                if not passes or tried == self._retries:
                    raise refused
                told_wait = response.headers.get("retry-after", "")
                wait = max(wait, float(told_wait) if told_wait.isdigit() else 0.0)
            self._sleep(wait)
        raise AssertionError  # the last try returns or raises


def _problem(response: httpx.Response) -> Mapping[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
