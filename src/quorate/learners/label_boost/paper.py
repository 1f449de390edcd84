"""LabelBoost with the constants that are printed in BNS15."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, floor

from quorate.errors import InvalidParameter
from quorate.learners.amplification.counts import largest_count
from quorate.learners.amplification.price import Price
from quorate.learners.amplification.without_replacement import bns15_claim_4_3
from quorate.learners.label_boost.schedule import BoostSchedule, Round, iteration_accuracy
from quorate.learners.label_boost.task import MOST_ROUNDS, BoostTask, too_few_labels
from quorate.stored_names import stored_as
from quorate.theory.bns15_learners import bns15_algorithm_3_taken, bns15_claim_4_9_labelled


@stored_as("quorate.learners.label_boost.paper.PaperConstants")
@dataclass(frozen=True, slots=True)
class PaperConstants:
    r"""The constants of BNS15's Algorithm 3 as printed: 90000n, 30000n, 300n, 1/100, 1/300, and (1, 41δ).

    For a target ε below 1 the rows are sampled once before, as Theorem 4.14 does by Claim 4.3.

    `task`: with a base learner of ε <= 1 and δ at most 1/41 of the target's. Raises InvalidParameter if the printed
    price is above the target.
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
            each = self._round_on_what_there_is(first_labelled, first_unlabelled)
            rounds = (each,) if each.relabelled > first_labelled and each.kept_labelled else ()
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
        return n_rows if self._outer == 1 else ceil(n_rows / self._outer * (1 + 2.0**-46))

    def _printed_rounds(self, labelled: int, unlabelled: int) -> tuple[Round, ...] | None:
        """Return step 2 of Algorithm 3; None where the labelled rows do not grow or D is used up."""
        task, rounds = self.task, list[Round]()
        while labelled < 300 * task.n_base:
            alpha, beta = iteration_accuracy(task.alpha, task.beta, len(rounds) + 1)
            taken = floor(bns15_algorithm_3_taken(task.vc, alpha, beta, labelled, task.n_base))
            if not 1 <= taken <= unlabelled:
                return None
            each = self._round(labelled, taken)
            if each.relabelled <= labelled or len(rounds) == MOST_ROUNDS or not self.task.can_score(each.relabelled):
                return None
            rounds.append(each)
            labelled, unlabelled = each.relabelled, unlabelled - taken
        return tuple(rounds)

    def _round(self, labelled: int, taken: int) -> Round:
        return Round(
            labelled=labelled, kept_labelled=labelled // 100, taken=taken, kept_taken=taken // 100, epsilon_0=1.0
        )

    def _round_on_what_there_is(self, labelled: int, unlabelled: int) -> Round:
        kept = largest_count(self.task.can_score, labelled // 100)
        room = largest_count(lambda rows: self.task.can_score(kept + rows), 300 * self.task.n_base)
        taken = min(100 * room, unlabelled)
        return Round(labelled=labelled, kept_labelled=kept, taken=taken, kept_taken=taken // 100, epsilon_0=1.0)
