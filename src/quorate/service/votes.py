"""Blocks of requests to a run whose teachers vote: charge → durable → draw → store → answers, once for all of a block.

A point that was answered before gets the same answer and costs nothing. A new one is charged to what was kept back,
while anything is left; then the student answers, marked as such, or the request is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.data import row_digests, take
from quorate.data.rows import Rows
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import OnlineAnswers
from quorate.ledger import Ledger
from quorate.mechanisms import DECLINED
from quorate.release.guarantee import spent_of
from quorate.service.answers import Answered, Asked, Point, Reply, Standing
from quorate.service.features import Features
from quorate.service.problems import Problem
from quorate.types import IntArray, Secret

_ASK_FEWER = "nothing was charged; ask for fewer new points, or only for points that were answered before"


@dataclass(slots=True)
class CurrentRows:
    """The rows of the block that is being answered, for what counts votes on them."""

    count: Callable[[Rows], Secret[Any]]
    rows: Rows = None

    def votes(self, new: IntArray) -> Secret[Any]:
        """Count votes on the rows with these numbers."""
        return self.count(take(self.rows, new))


@dataclass(slots=True)
class _Plan:
    """What is to be done for a block: which points are charged, in order, and for whom."""

    refused: dict[int, Problem] = field(default_factory=dict)  # by the number of the request
    charged: dict[bytes, int] = field(default_factory=dict)  # digest to the number of its point in the block
    by_request: Counter[int] = field(default_factory=Counter)


class EnsembleAnswers:
    """Answers blocks by the ensemble, and by the student where nothing is left.

    Parameters
    ----------
    online : OnlineAnswers
        Charges, draws and remembers; it counts votes by `current`.
    current : CurrentRows
        Told which rows a block has.
    ledger : Ledger
        Open, and nobody else's.
    student : callable
        From rows to classes; free.
    classes : sequence
        The declared classes.
    features : Features
        What rows look like.
    refuse : bool
        Whether a request is refused where fewer answers are left than it has new points.
    """

    def __init__(
        self,
        online: OnlineAnswers,
        current: CurrentRows,
        ledger: Ledger,
        student: Callable[[Rows], list[Any]],
        classes: Sequence[Any],
        features: Features,
        *,
        refuse: bool = False,
    ) -> None:
        self._online, self._current, self._ledger = online, current, ledger
        self._student, self._classes, self._features, self._refuse = student, tuple(classes), features, refuse
        self._standing = self._read_standing()

    @property
    def standing(self) -> Standing:
        """What is left, as of the newest block."""
        return self._standing

    @property
    def healthy(self) -> bool:
        """Whether the ledger admits anything."""
        return self._ledger.healthy

    def answer(self, block: Sequence[Asked]) -> list[Reply]:
        """Answer a block; see :class:`~quorate.service.answers.Answers`."""
        table = self._features.table([row for asked in block for row in asked.rows])
        digests = row_digests(table)
        starts = [0]
        for asked in block:
            starts.append(starts[-1] + len(asked.rows))
        plan = self._planned(block, digests, starts)
        failed = self._charge(plan, table)
        points = self._points(table, digests)
        replies: list[Reply] = []
        for number in range(len(block)):
            found = points[starts[number] : starts[number + 1]]
            charged = plan.by_request[number]
            if number in plan.refused:
                replies.append(plan.refused[number])
            elif failed and charged:
                replies.append(Problem("mechanism-failed", charged=True))
            elif self._refuse and any(point.by == "student" for point in found):  # a mechanism that closed on the way
                replies.append(Problem("budget-spent", _ASK_FEWER, charged=charged > 0))
            else:
                replies.append(Answered(tuple(found), charged))
        return replies

    def _planned(self, block: Sequence[Asked], digests: Sequence[bytes], starts: Sequence[int]) -> _Plan:
        plan, left = _Plan(), self._online.left
        for number in range(len(block)):
            places = range(starts[number], starts[number + 1])
            new: dict[bytes, int] = {}
            for place in places:
                digest = digests[place]
                if digest not in plan.charged and self._online.memo.recall(digest) is None:
                    new.setdefault(digest, place)
            free = left - len(plan.charged)
            if self._refuse and len(new) > free:
                plan.refused[number] = Problem("budget-spent", _ASK_FEWER, answers_left=free)
                continue
            taken = dict(list(new.items())[:free])
            plan.charged |= taken
            plan.by_request[number] = len(taken)
        return plan

    def _charge(self, plan: _Plan, table: Rows) -> bool:
        """Have the new points answered and remembered; return whether the mechanism failed on them."""
        if not plan.charged:
            return False
        self._current.rows = take(table, list(plan.charged.values()))
        try:
            self._online.ask(list(plan.charged))
        except (BudgetExhausted, InvalidParameter):  # of a user's own mechanism, which tells nothing of how
            return True
        finally:
            self._current.rows = None
            if self._ledger.healthy:
                self._standing = self._read_standing()
        return False

    def _points(self, table: Rows, digests: Sequence[bytes]) -> list[Point]:
        codes = [self._online.memo.recall(digest) for digest in digests]
        rest = [place for place, code in enumerate(codes) if code is None]
        of_student = iter(self._student(take(table, rest)) if rest else ())
        return [
            Point(next(of_student), "answered", "student")
            if code is None
            else Point(None, "declined", "ensemble")
            if code == DECLINED
            else Point(self._classes[code], "answered", "ensemble")
            for code in codes
        ]

    def _read_standing(self) -> Standing:
        budget, (epsilon, delta), head = self._ledger.budget, spent_of(self._ledger), self._ledger.head
        purposes = self._online.reservation.purposes
        return Standing(
            answers_left=self._online.left,
            answers_reserved=sum(purposes[each] for each in self._online.purposes),
            epsilon=(epsilon, budget.epsilon),
            delta=(delta, budget.delta),
            entries=head.sequence,
            head=head.hash,
        )


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Answers blocks by a released model: every prediction is free.

    Parameters
    ----------
    model : callable
        From rows to classes.
    features : Features
        What rows look like.
    standing : Standing
        Of the ledger when the service was started; predicting changes nothing of it.
    """

    model: Callable[[Rows], list[Any]]
    features: Features
    standing: Standing

    @property
    def healthy(self) -> bool:
        """True: nothing is charged."""
        return True

    def answer(self, block: Sequence[Asked]) -> list[Reply]:
        """Answer a block; see :class:`~quorate.service.answers.Answers`."""
        labels = iter(self.model(self.features.table([row for asked in block for row in asked.rows])))
        return [Answered(tuple(Point(next(labels), "answered", "model") for _ in asked.rows)) for asked in block]
