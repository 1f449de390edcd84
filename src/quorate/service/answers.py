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
class LabelRequest:
    """One request that waits for its answers.

    `quota`: answers that may be charged for the client in its whole life. `body`: a digest that `key` is bound to.
    """

    client: str
    rows: tuple[Row, ...]
    quota: int | None = None
    key: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """What one point gets: a class, or None where the mechanism declined; and who answers.

    `by`: "ensemble", from what was kept back; "student" or "model", for free.
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
    """What is left, as of the newest block; it depends on votes through released answers alone.

    `answers_left`, `answers_reserved`: None where every prediction is free. `epsilon`, `delta`: spent, and the cap.
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

    @property
    def in_place(self) -> bool:
        """Whether the ledger stands where it was opened; where not, the next new point is refused."""

    def answer(self, block: Sequence[LabelRequest]) -> list[Reply]:
        """Answer the requests of a block, one reply each, in their order.

        Raises LedgerIntegrityError if the ledger failed; nothing of the block may leave.
        """
