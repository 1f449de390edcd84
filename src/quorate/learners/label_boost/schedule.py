r"""How many rows each step of LabelBoost takes and keeps (BNS15, Algorithm 3): public figures, fixed beforehand.

One iteration takes v unlabelled rows T, keeps a random part of the labelled rows S and of T, relabels what was kept,
and calls all of it S. After the last one the base learner is run on rows drawn from S with replacement.

Relabelling by a concept that is chosen on the rows themselves, before an :math:`(\varepsilon_A, \delta_A)`-DP learner
sees them, costs :math:`(\varepsilon_A + \log c, \delta_A)`: :math:`c = (1 + e^{\varepsilon_0/2})^2` for a labelled row
that is replaced, and 4 for an unlabelled one (:func:`relabelling`). Proof: ``docs/theory/learner-proofs.md``, the third
section.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log, log1p
from typing import Final, Literal, TypeAlias

from quorate.arguments import one_of, real
from quorate.errors import InvalidParameter
from quorate.learners.agnostic.bound import disagreement
from quorate.learners.amplification import (
    Price,
    rounded_up_price,
    smallest_count,
    with_replacement,
    without_replacement,
    worst_of,
)
from quorate.learners.concepts import DICHOTOMY_LIMIT
from quorate.stored_names import stored_as
from quorate.theory.bns15 import bns15_theorem_b_5, sauer

#: Whether the row that differs has a label before the relabelling.
Changed: TypeAlias = Literal["labelled", "unlabelled"]

_LARGEST_EPSILON_0 = 100.0


def relabelling(price: Price, *, epsilon_0: float, changed: Changed = "labelled") -> Price:
    r"""Return the price of a learner whose rows are relabelled first: :math:`(\varepsilon_A + \log c, \delta_A)`.

    `epsilon_0`: of the exponential mechanism, from 0 to 100. `changed`: which row differs: one whose label is counted,
    or one that only brings its point. BNS15, Lemma 4.1 and its proof; the constant c is this module's.
    """
    epsilon_0 = _checked(epsilon_0)
    one_of("changed", changed, ("labelled", "unlabelled"))
    factor = 2 * (epsilon_0 / 2 + log1p(exp(-epsilon_0 / 2))) if changed == "labelled" else log(4)
    return rounded_up_price(price.epsilon + factor, price.delta)


def bns15_lemma_4_1(price: Price, *, epsilon_0: float = 1.0) -> Price:
    r"""Return the same price as BNS15's proof has it: :math:`(\varepsilon_A + \varepsilon_0 + \log 4, 4e^{\varepsilon_0}\delta_A)`.

    BNS15, Lemma 4.1: at its :math:`\varepsilon_0 = 1` it rounds 2.386 up to 3. It holds for permute-and-flip too.
    """  # noqa: E501  a doctest's message is one line
    epsilon_0 = _checked(epsilon_0)
    return rounded_up_price(price.epsilon + epsilon_0 + log(4), 4 * exp(epsilon_0) * price.delta)


def _checked(epsilon_0: float) -> float:
    return real("epsilon_0", epsilon_0, at_least=0, at_most=_LARGEST_EPSILON_0)


@stored_as("quorate.learners.label_boost_schedule.Round")
@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One iteration: rows of S (`labelled`) and of T (`taken`), and how many of each are kept."""

    labelled: int
    kept_labelled: int
    taken: int
    kept_taken: int
    epsilon_0: float

    @property
    def relabelled(self) -> int:
        """The labelled rows after the iteration."""
        return self.kept_labelled + self.kept_taken


@stored_as("quorate.learners.label_boost_schedule.Schedule")
@dataclass(frozen=True, kw_only=True, slots=True)
class BoostSchedule:
    """Every size of one run of LabelBoost, from the rows of its input to those of the base learner.

    `first_…`: kept at random before anything else. `kept`: labelled rows in the end, of which `drawn` are drawn with
    replacement. `proven`: whether the theorem's error bound holds.
    """

    labelled: int
    unlabelled: int
    first_labelled: int
    first_unlabelled: int
    rounds: tuple[Round, ...]
    kept: int
    drawn: int
    proven: bool = False

    @property
    def left(self) -> int:
        """The labelled rows after the last iteration."""
        return self.rounds[-1].relabelled if self.rounds else self.first_labelled

    @property
    def taken(self) -> int:
        """How many unlabelled rows all iterations take together."""
        return sum(step.taken for step in self.rounds)


def price_of(schedule: BoostSchedule, base: Price) -> Price:
    """Return the price that is proven of LabelBoost with these sizes, for an (ε, δ)-DP base learner.

    From the last step to the first, as BNS15's Lemma 4.6, with the tighter rules of
    :mod:`~quorate.learners.amplification` and :func:`relabelling` in place of Claims 4.5 and 4.3 and Lemma 4.1: the
    largest of the prices of a row that is labelled, one that is taken in some iteration, and one that never is. Refused
    beyond ε = 500.
    """
    labelled = with_replacement(base, n_rows=schedule.kept, n_draws=schedule.drawn)
    labelled = without_replacement(labelled, n_rows=schedule.left, n_kept=schedule.kept)
    of_taken = Price(0.0)  # of the worst row of D
    for step in reversed(schedule.rounds):
        brings_point = relabelling(labelled, epsilon_0=step.epsilon_0, changed="unlabelled")
        if step.taken:
            of_taken = worst_of(of_taken, without_replacement(brings_point, n_rows=step.taken, n_kept=step.kept_taken))
        brings_label = relabelling(labelled, epsilon_0=step.epsilon_0)
        labelled = without_replacement(brings_label, n_rows=step.labelled, n_kept=step.kept_labelled)
    labelled = without_replacement(labelled, n_rows=schedule.labelled, n_kept=schedule.first_labelled)
    if schedule.unlabelled:
        of_taken = without_replacement(of_taken, n_rows=schedule.unlabelled, n_kept=schedule.first_unlabelled)
    return worst_of(labelled, of_taken)


@lru_cache(maxsize=256)
def rows_to_generalise(vc: int, alpha: float, beta: float) -> int:
    r"""Return how many labelled rows are enough for an empirical error of α to mean one of 10α, of all pairs at once.

    The smaller of BNS15's Theorem B.5, :math:`\frac{48}{10\alpha}(10\, VC \log\frac{48e}{10\alpha} +
    \log\frac{5}{\beta})`, and Vapnik's relative deviations (:func:`~quorate.learners.agnostic.bound.disagreement`) with
    Sauer's lemma.
    """

    def enough(n_rows: int) -> bool:
        return disagreement(alpha, n_rows, lambda n_points: sauer(n_points, vc), beta) <= 10 * alpha

    printed = ceil(bns15_theorem_b_5(vc, 10 * alpha, beta))  # plans of 0.2.0.dev0 knew no other bound
    return smallest_count(enough, 1) if enough(printed) else printed


#: No choice among more candidates than this: their scores would fill the memory.
MOST_CANDIDATES: Final = DICHOTOMY_LIMIT

#: |S| grows as a tower of exponentials (BNS15, Remark 4.10), so this is never met.
MOST_ROUNDS: Final = 64


@stored_as("quorate.learners.label_boost.task.BoostTask")
@dataclass(frozen=True, kw_only=True, slots=True)
class BoostTask:
    """What both sets of constants are worked out from; all of it public.

    `n_base`: n, rows of the base learner, whose α and β these are; those of LabelBoost are 11α and 2β.
    """

    base: Price
    n_base: int
    vc: int
    alpha: float
    beta: float
    target: Price
    domain_size: int | None = None

    def rows_to_generalise(self, alpha: float, beta: float) -> int:
        """Return on how many rows an error of α means one of at most 10α."""
        return rows_to_generalise(self.vc, alpha, beta)

    def can_score(self, n_rows: int) -> bool:
        """Return whether so many rows have no more dichotomies than fit into the memory."""
        n_points = n_rows if self.domain_size is None else min(n_rows, self.domain_size)
        return sauer(n_points, self.vc) <= MOST_CANDIDATES


def too_few_labels(what: str, at_least: int) -> InvalidParameter:
    """Return the refusal of a table whose labels do not reach to a single draw."""
    return InvalidParameter(
        f"y must have more labels: {what} needs {at_least:,} labelled rows to hand on one at this target"
    )
