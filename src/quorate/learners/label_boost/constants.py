r"""LabelBoost with the constants that are printed in BNS15, and with the largest keep-rates that give the target back.

These follow BNS15's accounting of errors: iteration i has :math:`\alpha_i = \alpha/(10 \cdot 2^i)` and :math:`\beta_i =
\beta/(4 \cdot 2^i)`; its concept errs on at most :math:`\alpha_i` of the kept labelled rows (Claim 4.2), so on at most
:math:`10\alpha_i` of the distribution (``schedule.rows_to_generalise``), and the last one on at most 11α, but for 2β
(Lemma 4.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, floor

from quorate.errors import InvalidParameter
from quorate.learners.amplification import (
    Price,
    bns15_claim_4_3,
    largest_count,
    rounded_up_count,
    smallest_count,
    with_replacement,
    without_replacement,
)
from quorate.learners.label_boost.schedule import (
    MOST_ROUNDS,
    BoostSchedule,
    BoostTask,
    Round,
    price_of,
    relabelling,
    too_few_labels,
)
from quorate.stored_names import stored_as
from quorate.theory.bns15 import (
    bns15_algorithm_3_accuracy,
    bns15_algorithm_3_taken,
    bns15_claim_4_2_points,
    bns15_claim_4_9_labelled,
)


@stored_as("quorate.learners.label_boost.paper.PaperConstants")
@dataclass(frozen=True, slots=True)
class PaperConstants:
    """The constants of BNS15's Algorithm 3 as printed: 90000n, 30000n, 300n, 1/100, 1/300, and (1, 41δ).

    Below ε = 1 the rows are sampled once before (Theorem 4.14, by Claim 4.3). Raises InvalidParameter if the base
    learner has ε above 1 or δ above 1/41 of the target's.
    """

    task: BoostTask

    def __post_init__(self) -> None:
        if not self.task.base.epsilon <= 1:
            raise InvalidParameter(
                f"base must have epsilon <= 1 for the printed constants, got {self.task.base.epsilon:g}; "
                'use constants="tight"'
            )
        if not self._printed.within(self.task.target):
            raise InvalidParameter(
                f"delta of the base learner must be at most {self.task.target.delta / self._delta_factor:.3g}: the "
                f'printed constants multiply it by {self._delta_factor:.3g}; use constants="tight"'
            )

    @property
    def _outer(self) -> float:
        """The share of the rows that is kept before anything else."""
        epsilon = self.task.target.epsilon
        return 1.0 if epsilon >= 1 else epsilon / (3 + exp(1.0))

    @property
    def _delta_factor(self) -> float:
        return 41 * (1.0 if self._outer == 1 else 4 * self._outer)

    @property
    def _printed(self) -> Price:
        boosted = Price(1.0, min(1.0, 41 * self.task.base.delta))  # Lemma 4.6
        epsilon = self.task.target.epsilon
        return boosted if epsilon >= 1 else bns15_claim_4_3(boosted, epsilon=epsilon, n_rows=1)[1]

    def price(self, schedule: BoostSchedule) -> Price:
        """Return Lemma 4.6's (1, 41δ), or (ε, 41δ·4ε/(3 + e)) for a target below 1."""
        return self._printed

    def rows_needed(self) -> tuple[int, int]:
        """Return Claim 4.9's labelled rows, and 90000n unlabelled ones."""
        task = self.task
        labelled = ceil(bns15_claim_4_9_labelled(task.vc, task.alpha, task.beta))
        return self._before_sampling(labelled), self._before_sampling(90_000 * task.n_base)

    def schedule(self, n_labelled: int, n_unlabelled: int) -> BoostSchedule:
        """Return the printed sizes; where they run out of rows, those of one iteration on what there is."""
        first_labelled, first_unlabelled = floor(n_labelled * self._outer), floor(n_unlabelled * self._outer)
        rounds = self._printed_rounds(first_labelled, first_unlabelled)
        needed = self.rows_needed()
        proven = rounds is not None and n_labelled >= needed[0] and n_unlabelled >= needed[1]
        if rounds is None:
            only = self._round_on_what_there_is(first_labelled, first_unlabelled)
            rounds = (only,) if only.relabelled > first_labelled and only.kept_labelled else ()
        left = rounds[-1].relabelled if rounds else first_labelled
        kept = left // 300
        if not kept:
            raise too_few_labels('constants="paper"', self._before_sampling(300))
        return BoostSchedule(
            labelled=n_labelled,
            unlabelled=n_unlabelled,
            first_labelled=first_labelled,
            first_unlabelled=first_unlabelled,
            rounds=rounds,
            kept=kept,
            drawn=kept,
            proven=proven,
        )

    def _before_sampling(self, n_rows: int) -> int:
        return n_rows if self._outer == 1 else rounded_up_count(n_rows / self._outer)

    def _printed_rounds(self, labelled: int, unlabelled: int) -> tuple[Round, ...] | None:
        """Return step 2 of Algorithm 3; None where the labelled rows do not grow or D is used up."""
        task, rounds = self.task, list[Round]()
        while labelled < 300 * task.n_base:
            alpha, beta = bns15_algorithm_3_accuracy(task.alpha, task.beta, len(rounds) + 1)
            n_taken = floor(bns15_algorithm_3_taken(task.vc, alpha, beta, labelled, task.n_base))
            if not 1 <= n_taken <= unlabelled:
                return None
            step = _a_hundredth(labelled, labelled // 100, n_taken)
            if step.relabelled <= labelled or len(rounds) == MOST_ROUNDS or not self.task.can_score(step.relabelled):
                return None
            rounds.append(step)
            labelled, unlabelled = step.relabelled, unlabelled - n_taken
        return tuple(rounds)

    def _round_on_what_there_is(self, labelled: int, unlabelled: int) -> Round:
        kept = largest_count(self.task.can_score, labelled // 100)
        room = largest_count(lambda rows: self.task.can_score(kept + rows), 300 * self.task.n_base)
        return _a_hundredth(labelled, kept, min(100 * room, unlabelled))


def _a_hundredth(labelled: int, kept: int, taken: int) -> Round:
    return Round(labelled=labelled, kept_labelled=kept, taken=taken, kept_taken=taken // 100, epsilon_0=1.0)


_GRID = tuple(0.25 * step for step in range(1, 17))  # of ε₀: the optimum is flat


@stored_as("quorate.learners.label_boost.tight.TightConstants")
@dataclass(frozen=True, slots=True)
class TightConstants:
    r"""The largest keep-rates that give the target back in every iteration, by the tighter rules; any base learner.

    An iteration keeps the parts :math:`r = (e^\varepsilon - 1)/(ce^\varepsilon - 1)` of S and of T, another c for each,
    for which :func:`~quorate.learners.label_boost.schedule.relabelling`, then
    :func:`~quorate.learners.amplification.without_replacement`, is the target again; it takes as many rows as Claim 4.2
    lets it relabel and the last step needs, which draws n rows from all of S. :math:`\varepsilon_0` needs the fewest
    labels.
    """

    task: BoostTask

    def price(self, schedule: BoostSchedule) -> Price:
        """Return the price that is proven of the schedule."""
        return price_of(schedule, self.task.base)

    def rows_needed(self) -> tuple[int, int]:
        """Return the fewest labelled rows with which the growth rule gets to the end, and what it takes then."""
        fewest = _fewest_labelled(self.task)
        return fewest[0], fewest[1]

    def schedule(self, n_labelled: int, n_unlabelled: int) -> BoostSchedule:
        """Return the sizes of the theorem; where there are too few rows, those of one iteration on what there is."""
        task = self.task
        rounds = _theorem_rounds(task, n_labelled, _fewest_labelled(task)[2])
        proven = (
            rounds is not None
            and sum(step.taken for step in rounds) <= n_unlabelled
            and all(task.can_score(step.relabelled) for step in rounds)
        )
        if rounds is None or not proven:
            step = self._round_on_what_there_is(n_labelled, n_unlabelled)
            rounds = () if step is None else (step,)
        kept, drawn = rounds[-1].relabelled if rounds else n_labelled, task.n_base
        if not proven:
            drawn = largest_count(lambda draws: _resampled_within(task, kept, draws), task.n_base) if kept else 0
        if not drawn:
            raise too_few_labels("LabelBoost", smallest_count(lambda rows: _resampled_within(task, rows, 1), 1))
        return BoostSchedule(
            labelled=n_labelled,
            unlabelled=n_unlabelled,
            first_labelled=n_labelled,
            first_unlabelled=n_unlabelled,
            rounds=rounds,
            kept=kept,
            drawn=drawn,
            proven=proven,
        )

    def _round_on_what_there_is(self, n_labelled: int, n_unlabelled: int) -> Round | None:
        """Return one iteration that ends with more labelled rows than there were, up to what the base learner needs."""
        task = self.task
        wanted = _rows_at_the_end(task)
        if n_labelled >= wanted or not n_unlabelled:
            return None
        # The exponent of the exponential mechanism is the kept rows times ε₀: the more, the fewer mistakes.
        epsilon_0 = max(_GRID, key=lambda candidate: candidate * _keep_rate(task, candidate, labelled=True))
        kept = _kept(task, n_labelled, epsilon_0, labelled=True)
        kept = largest_count(task.can_score, kept)
        if not kept:  # at so small an ε not one of these rows may be kept
            return None
        room = largest_count(lambda rows: task.can_score(kept + rows), max(0, wanted - kept))
        n_taken = min(n_unlabelled, _rows_for(task, room, epsilon_0))
        kept_taken = min(room, _kept(task, n_taken, epsilon_0, labelled=False))
        if kept + kept_taken <= n_labelled:
            return None
        return Round(labelled=n_labelled, kept_labelled=kept, taken=n_taken, kept_taken=kept_taken, epsilon_0=epsilon_0)


@lru_cache(maxsize=64)
def _fewest_labelled(task: BoostTask) -> tuple[int, int, float]:
    """Return the fewest labelled rows, the unlabelled rows that go with them, and the ε₀."""
    best = (_rows_for_the_theorem(task), 0, 1.0)  # so many are enough without an iteration
    for epsilon_0 in _GRID:
        if _theorem_rounds(task, best[0] - 1, epsilon_0) is None:
            continue  # no better than what is known

        def grows(rows: int, epsilon_0: float = epsilon_0) -> bool:
            return _theorem_rounds(task, rows, epsilon_0) is not None

        rows = smallest_count(grows, 1)
        rounds = _theorem_rounds(task, rows, epsilon_0) or ()
        best = (rows, sum(step.taken for step in rounds), epsilon_0)
    return best


def _theorem_rounds(task: BoostTask, labelled: int, epsilon_0: float) -> tuple[Round, ...] | None:
    """Return the iterations that lead from so many labelled rows to enough; None where they do not."""
    enough, rounds = _rows_for_the_theorem(task), list[Round]()
    while labelled < enough:
        alpha, beta = bns15_algorithm_3_accuracy(task.alpha, task.beta, len(rounds) + 1)
        kept = _kept(task, labelled, epsilon_0, labelled=True)
        if kept < task.rows_to_generalise(alpha, beta):
            return None
        room = bns15_claim_4_2_points(task.vc, alpha, beta, kept, epsilon=epsilon_0) - kept
        kept_taken = floor(min(room, enough - kept))
        if kept_taken < 1 or kept + kept_taken <= labelled or len(rounds) == MOST_ROUNDS:
            return None
        n_taken = _rows_for(task, kept_taken, epsilon_0)
        rounds.append(
            Round(labelled=labelled, kept_labelled=kept, taken=n_taken, kept_taken=kept_taken, epsilon_0=epsilon_0)
        )
        labelled = kept + kept_taken
    return tuple(rounds)


@lru_cache(maxsize=64)
def _rows_at_the_end(task: BoostTask) -> int:
    """Return how many labelled rows the base learner's n draws must come from to cost no more than the target."""
    return smallest_count(lambda rows: _resampled_within(task, rows, task.n_base), 1)


def _rows_for_the_theorem(task: BoostTask) -> int:
    """Return how many of them the error bound asks for, too: Lemma 4.12's last use of that bound."""
    return max(_rows_at_the_end(task), task.rows_to_generalise(task.alpha, task.beta / 2))


def _resampled_within(task: BoostTask, n_rows: int, n_draws: int) -> bool:
    try:
        return with_replacement(task.base, n_rows=n_rows, n_draws=n_draws).within(task.target)
    except InvalidParameter:  # an ε beyond any promise
        return False


@lru_cache(maxsize=256)
def _relabelled(task: BoostTask, epsilon_0: float, labelled: bool) -> Price:
    return relabelling(task.target, epsilon_0=epsilon_0, changed="labelled" if labelled else "unlabelled")


def _keep_rate(task: BoostTask, epsilon_0: float, *, labelled: bool) -> float:
    return expm1(task.target.epsilon) / expm1(_relabelled(task, epsilon_0, labelled).epsilon)


def _kept(task: BoostTask, n_rows: int, epsilon_0: float, *, labelled: bool) -> int:
    """Return how many of so many rows may be kept for the target to come back."""
    price = _relabelled(task, epsilon_0, labelled)
    most = min(n_rows, int(_keep_rate(task, epsilon_0, labelled=labelled) * n_rows) + 1)
    return largest_count(lambda kept: without_replacement(price, n_rows=n_rows, n_kept=kept).within(task.target), most)


def _rows_for(task: BoostTask, kept: int, epsilon_0: float) -> int:
    """Return from how many rows of D so many may be kept."""
    price = _relabelled(task, epsilon_0, labelled=False)
    least = max(kept, int(kept / _keep_rate(task, epsilon_0, labelled=False)) - 1)
    if not kept:
        return least
    return smallest_count(
        lambda n_rows: without_replacement(price, n_rows=n_rows, n_kept=kept).within(task.target), least
    )
