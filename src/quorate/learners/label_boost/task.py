"""What LabelBoost's constants are worked out from, and what a set of constants is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import Price
from quorate.learners.concepts import DICHOTOMY_LIMIT
from quorate.learners.label_boost.schedule import BoostSchedule, rows_of_theorem_b_5, rows_to_generalise
from quorate.stored_names import stored_as
from quorate.theory.bns15_bounds import sauer

#: No choice among more candidates than this: their scores would fill the memory.
MOST_CANDIDATES: Final = DICHOTOMY_LIMIT

#: |S| grows as a tower of exponentials (BNS15, Remark 4.10), so this is never met.
MOST_ROUNDS: Final = 64


@stored_as("quorate.learners.label_boost.task.BoostTask")
@dataclass(frozen=True, kw_only=True, slots=True)
class BoostTask:
    r"""What both sets of constants are worked out from; all of it public.

    `base`: of the base learner.
    `n_base`: how many labelled rows the base learner asks for: n.
    `vc`: VC dimension of the concept class, at least 1.
    `alpha`, `beta`: α and β of the base learner; those of LabelBoost are 11α and 2β.
    `target`: what LabelBoost may cost.
    `domain_size`: points of the domain, where it is finite.
    `printed`: whether Theorem B.5 alone says how many rows generalise, as in plans of 0.2.0.dev0.
    """

    base: Price
    n_base: int
    vc: int
    alpha: float
    beta: float
    target: Price
    domain_size: int | None = None
    printed: bool = False

    def rows_to_generalise(self, alpha: float, beta: float) -> int:
        """Return on how many rows an error of α means one of at most 10α."""
        return (rows_of_theorem_b_5 if self.printed else rows_to_generalise)(self.vc, alpha, beta)

    def can_score(self, n_rows: int) -> bool:
        """Return whether so many rows have no more dichotomies than fit into the memory."""
        n_points = n_rows if self.domain_size is None else min(n_rows, self.domain_size)
        return sauer(n_points, self.vc) <= MOST_CANDIDATES


class Constants(Protocol):
    """A way to choose the sizes of every step."""

    def rows_needed(self) -> tuple[int, int]:
        """Return the labelled and unlabelled rows from which on the error bound is proven."""

    def schedule(self, n_labelled: int, n_unlabelled: int) -> BoostSchedule:
        """Return the sizes for so many rows."""

    def price(self, schedule: BoostSchedule) -> Price:
        """Return what that schedule costs, as this way proves it."""


def too_few_labels(what: str, at_least: int) -> InvalidParameter:
    """Return the refusal of a table whose labels do not reach to a single draw.

    Examples
    --------
    >>> print(too_few_labels("LabelBoost", 3))
    y must have more labels: LabelBoost needs 3 labelled rows to hand on one at this target
    """
    return InvalidParameter(
        f"y must have more labels: {what} needs {at_least:,} labelled rows to hand on one at this target"
    )
