r"""How many rows each step of LabelBoost takes and keeps (BNS15, Algorithm 3): public figures, fixed beforehand.

One iteration takes v unlabelled rows T, keeps a random part of the labelled rows S and of T, relabels what was kept,
and calls all of it S. After the last one the base learner is run on rows drawn from S with replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from quorate.learners.agnostic.bound import disagreement
from quorate.learners.amplification.counts import smallest_count
from quorate.learners.amplification.price import Price, worst_of
from quorate.learners.amplification.with_replacement import with_replacement
from quorate.learners.amplification.without_replacement import without_replacement
from quorate.learners.label_boost.price import relabelling
from quorate.stored_names import stored_as
from quorate.theory.bns15_bounds import bns15_theorem_b_5, sauer
from quorate.theory.bns15_learners import bns15_algorithm_3_accuracy, bns15_claim_4_2_points


@stored_as("quorate.learners.label_boost_schedule.Round")
@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One iteration: how many labelled rows there are, are kept, how many are taken from D, and are kept.

    `labelled`, `kept_labelled`: rows of S before and after the deletion. `taken`, `kept_taken`: rows of T before and
    after the deletion. `epsilon_0`: parameter of the exponential mechanism that chooses the concept.
    """

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
    """Every size of one run of LabelBoost.

    `labelled`, `unlabelled`: rows of the input: S and D.
    `first_labelled`, `first_unlabelled`: of these so many are kept at random before anything else.
    `rounds`: the iterations; none where the labelled rows are enough as they are.
    `kept`: labelled rows that are kept after the last iteration.
    `drawn`: rows that are drawn from those with replacement, for the base learner.
    `proven`: whether the sizes are such that the theorem's error bound holds.
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
        return sum(each.taken for each in self.rounds)


def price_of(schedule: BoostSchedule, base: Price) -> Price:
    r"""Return the price that is proven of LabelBoost with these sizes, for an (ε, δ)-DP base learner.

    By induction from the last step to the first, as in BNS15's Lemma 4.6, with the rules
    :func:`~quorate.learners.amplification.with_replacement.with_replacement`,
    :func:`~quorate.learners.amplification.without_replacement.without_replacement` and
    :func:`~quorate.learners.label_boost.price.relabelling` in place of Claims 4.5 and 4.3 and Lemma 4.1. A row that is
    labelled, one that is taken in some iteration, and one that never is, have a price each; the largest is returned.

    `schedule`: the sizes. `base`: of the base learner. Raises InvalidParameter if a price on the way is beyond ε = 500.
    """
    labelled = with_replacement(base, n_rows=schedule.kept, n_draws=schedule.drawn)
    labelled = without_replacement(labelled, n_rows=schedule.left, n_kept=schedule.kept)
    taken = Price(0.0)  # of the worst row of D
    for each in reversed(schedule.rounds):
        brings_point = relabelling(labelled, epsilon_0=each.epsilon_0, changed="unlabelled")
        if each.taken:
            taken = worst_of(taken, without_replacement(brings_point, n_rows=each.taken, n_kept=each.kept_taken))
        brings_label = relabelling(labelled, epsilon_0=each.epsilon_0)
        labelled = without_replacement(brings_label, n_rows=each.labelled, n_kept=each.kept_labelled)
    labelled = without_replacement(labelled, n_rows=schedule.labelled, n_kept=schedule.first_labelled)
    if schedule.unlabelled:
        taken = without_replacement(taken, n_rows=schedule.unlabelled, n_kept=schedule.first_unlabelled)
    return worst_of(labelled, taken)


def iteration_accuracy(alpha: float, beta: float, i: int) -> tuple[float, float]:
    r"""Return :math:`\alpha_i = \alpha/(10 \cdot 2^i)` and :math:`\beta_i = \beta/(4 \cdot 2^i)` (BNS15, Alg. 3)."""
    return bns15_algorithm_3_accuracy(alpha, beta, i)


@lru_cache(maxsize=256)
def rows_to_generalise(vc: int, alpha: float, beta: float) -> int:
    r"""Return how many labelled rows are enough for an empirical error of α to mean one of 10α, of all pairs at once.

    The smaller of two bounds on one event: BNS15's Theorem B.5,
    :math:`\frac{48}{10\alpha}\left(10\, VC \log\frac{48e}{10\alpha} + \log\frac{5}{\beta}\right)`, and Vapnik's
    relative deviations (:func:`~quorate.learners.agnostic.bound.disagreement`) with Sauer's lemma.
    """

    def enough(n_rows: int) -> bool:
        return disagreement(alpha, n_rows, lambda n_points: sauer(n_points, vc), beta) <= 10 * alpha

    printed = rows_of_theorem_b_5(vc, alpha, beta)
    return smallest_count(enough, 1) if enough(printed) else printed


def rows_of_theorem_b_5(vc: int, alpha: float, beta: float) -> int:
    """Return how many rows BNS15's Theorem B.5 alone asks for; plans of 0.2.0.dev0 knew no other bound."""
    return ceil(bns15_theorem_b_5(vc, 10 * alpha, beta))


def largest_relabelled(vc: int, alpha: float, beta: float, kept: int, epsilon_0: float) -> float:
    r"""Return how many points `kept` labelled rows can relabel with an error of at most α on them, but for β.

    :math:`\frac{\beta}{e} VC\, e^{\varepsilon_0 \alpha |S|/(2VC)}`: BNS15's Claim 4.2 with a general
    :math:`\varepsilon_0`. Infinite where it is beyond a float.
    """
    return bns15_claim_4_2_points(vc, alpha, beta, kept, epsilon=epsilon_0)
