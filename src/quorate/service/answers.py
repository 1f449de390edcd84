"""What is asked of a run and what comes back, whichever method it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from quorate.ledger import Receipt
from quorate.service.features import Row
from quorate.service.problems import Problem

By: TypeAlias = Literal["ensemble", "student", "model"]
Status: TypeAlias = Literal["answered", "declined"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that waits for its answers.

    Parameters
    ----------
    client : str
        Who is charged.
    rows : tuple of Row
        The points, read strictly.
    quota : int or None
        How many answers may be charged for this client in its whole life.
    key, body : str or None
        Idempotency key, and the digest of the request that it is bound to.
    """

    client: str
    rows: tuple[Row, ...]
    quota: int | None = None
    key: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """What one point gets.

    Parameters
    ----------
    label : JSON value
        A class; None where the mechanism declined.
    status : {"answered", "declined"}
        Whether there is a class.
    by : {"ensemble", "student", "model"}
        Who answers: the ensemble, from what was kept back; the student, for free; the model of a direct run, for free.
    """

    label: Any
    status: Status
    by: By

    def tree(self) -> dict[str, Any]:
        """Return the point as JSON has it."""
        return {"label": self.label, "status": self.status, "by": self.by}


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request gets: its points, how many of them were charged for, and the receipt of that charge."""

    points: tuple[Point, ...]
    charged: int = 0
    receipt: Receipt | None = None


Reply: TypeAlias = Answered | Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What is left, as of the newest block. Nothing of it depends on votes but through answers that were released.

    Parameters
    ----------
    answers_left, answers_reserved : int or None
        Of the answers kept back; None where every prediction is free.
    epsilon, delta : (float, float)
        Spent, and the cap.
    entries, head : int, str
        Of the ledger.
    """

    answers_left: int | None
    answers_reserved: int | None
    epsilon: tuple[float, float]
    delta: tuple[float, float]
    entries: int
    head: str


class Answers(Protocol):
    """Answers blocks of requests. Two threads may call :meth:`answer` at a time, each with a block of its own."""

    @property
    def standing(self) -> Standing:
        """What is left."""

    @property
    def healthy(self) -> bool:
        """Whether anything may still be answered."""

    def answer(self, block: Sequence[Asked]) -> list[Reply]:
        """Answer the requests of a block, one reply each, in their order.

        Raises
        ------
        LedgerIntegrityError
            The ledger failed; nothing of the block may leave.
        """
