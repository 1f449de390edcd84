"""A private learner that needs few labels: one that needs many, and relabelled rows (BNS15, Algorithm 3).

One round of relabelling is BNS15's LabelBoostProcedure (Algorithm 2), without the learner that it ends with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, one_of
from quorate.learners.amplification import Price, random_arrangement, random_draws
from quorate.learners.base.exponential import check_theorem, chosen
from quorate.learners.concepts.protocol import Concept, ConceptClass, Labels, Points
from quorate.learners.fit_charge import inner_at
from quorate.learners.label_boost.constants import PaperConstants, TightConstants
from quorate.learners.label_boost.schedule import MOST_CANDIDATES, BoostSchedule, BoostTask
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, PrivateLearner, RowsNeeded
from quorate.learners.transformed_learner import BaseFit, TransformedLearner
from quorate.mechanisms import Exponential
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

_NO_LIMIT = 2**62


def relabelled(
    S: Points, labels: Labels, T: Points, concepts: ConceptClass, epsilon_0: float, noise: NoiseSource
) -> NDArray[np.uint8]:
    """Relabel the rows of S and T by a concept that errs little on S: BNS15's LabelBoostProcedure (Algorithm 2).

    T only brings dichotomies; a mistake on S has sensitivity 1. Returns: the new labels, those of S first. They are no
    release: what an (ε_A, δ_A)-DP learner makes of them costs what
    :func:`~quorate.learners.label_boost.schedule.relabelling` says.
    """
    both = np.concatenate([S, T])
    candidates = concepts.dichotomies(both, limit=_NO_LIMIT)
    mistakes = candidates.mistakes(S, labels)
    choice = Exponential(epsilon=epsilon_0, sensitivity=1.0)
    return candidates[chosen(choice, -mistakes, noise)].labels(both).astype(np.uint8)


BoostConstants: TypeAlias = Literal["paper", "tight"]

# How many candidates there may be was held against a limit before, from the number of rows alone; a limit here would
# refuse, or not, by the private points.


@stored_as("quorate.learners.label_boost.BoostPlan")
@dataclass(frozen=True, kw_only=True)
class BoostPlan(Plan):
    """The calibrated parameters of one LabelBoost: sizes, the base learner at its α and β, and how it is run."""

    schedule: BoostSchedule
    base: PrivateLearner = field(repr=False)
    base_fit: BaseFit = field(repr=False)


@stored_as("quorate.learners.label_boost.LabelBoost")
@dataclass(kw_only=True, eq=False, repr=False)
class LabelBoost(TransformedLearner):
    """Learn from few labelled and many unlabelled rows: about VC(C) labels, whatever the base learner needs.

    Over and over, a part of the labelled rows and some unlabelled ones are kept at random, a concept that errs little
    on the former relabels both, and all of it is labelled from then on. When there are enough labelled rows, the base
    learner is run on rows drawn from them.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `base`: a private learner for `concepts`. Its `epsilon` and `delta` are what one run of it costs; its `alpha` and
    `beta`, if it has them, are set to α/11 and β/2.
    `constants`: "tight" or "paper": the largest keep-rates that give (ε, δ) back, or the constants as printed (with
    them the base learner has ε <= 1 and at most δ/41).
    `alpha`, `beta`: the error is at most α, but for a probability of β, where there are as many rows as
    :meth:`rows_needed` says.
    `base_rows`: n: on how many rows the base learner is run. As many as its own theorem asks for by default.
    `plan_`: among it the :class:`~quorate.learners.label_boost.schedule.BoostSchedule`; public.

    Privacy: the sizes of all steps are functions of the numbers of labelled and unlabelled rows. With
    ``constants="paper"`` the price is that of Lemma 4.6; with "tight" the one proven in
    :func:`~quorate.learners.label_boost.schedule.price_of`. Too few rows for the theorem make one iteration on what
    there is; the price is the same.

    Error: BNS15's accounting, Theorem 4.13: with an (α', β')-accurate base learner, 11α' but for 2β'.

    BNS15 (Beimel, Nissim, Stemmer), Algorithms 2 and 3, Lemmas 4.1, 4.6 and 4.12, Theorems 4.13 and 4.14.

    Examples
    --------
    >>> from quorate.learners import ExponentialLearner, LabelBoost
    >>> from quorate.learners.concepts import Thresholds
    >>> domain = Thresholds(bits=10)
    >>> learner = LabelBoost(
    ...     concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=1.0, alpha=0.2, beta=0.1,
    ...     base_rows=1_500, unsafe_noise_seed=0,
    ... )
    >>> X = np.random.default_rng(0).integers(0, 1024, (21_000, 1))
    >>> y = (X[:, 0] < 500).astype(int)
    >>> y[1_500:] = -1
    >>> fitted = learner.fit(X, y)
    >>> fitted.guarantee_.epsilon <= 1.0, fitted.plan_.schedule.left, fitted.predict([[300], [700]])
    (True, 2577, array([1, 0]))
    """

    constants: BoostConstants = "tight"
    alpha: float = 0.1
    beta: float = 0.1
    base_rows: int | None = None

    def _check_arguments(self) -> None:
        super()._check_arguments()
        one_of("constants", self.constants, ("tight", "paper"))
        check_theorem(self)
        if self.base_rows is not None:
            count("base_rows", self.base_rows, at_least=1)

    @property
    def _inner(self) -> PrivateLearner:
        """The base learner as Lemma 4.12 needs it."""
        return inner_at(self.base, alpha=self.alpha / 11, beta=self.beta / 2)

    def _constants(self, base: PrivateLearner, target: Price) -> PaperConstants | TightConstants:
        n_base = self.base_rows
        if n_base is None:
            needs = self._base_needs(base)
            n_base = needs.labelled + needs.unlabelled
        task = BoostTask(
            base=self._base_price(base),
            n_base=n_base,
            vc=max(1, self._concept_class.vc_dimension),
            alpha=self.alpha / 11,
            beta=self.beta / 2,
            target=target,
            domain_size=self._concept_class.domain_size,
        )
        return PaperConstants(task) if self.constants == "paper" else TightConstants(task)

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        labelled, unlabelled = self._constants(self._inner, Price(epsilon, delta)).rows_needed()
        theorem = "BNS15 Theorem 4.13" if self.constants == "paper" else "BNS15 Theorem 4.13, at the proven price,"
        return RowsNeeded(labelled=labelled, unlabelled=unlabelled, theorem=theorem)

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> BoostPlan:
        base = self._inner
        constants = self._constants(base, Price(epsilon, delta))
        schedule = constants.schedule(n_labelled, n_unlabelled)
        needed = constants.rows_needed()
        base_fit = self._base_fit(base, schedule.drawn)
        cautions = list(base_fit.plan.cautions)
        if not schedule.proven and n_labelled >= needed[0] and n_unlabelled >= needed[1]:
            cautions.append(
                f"concepts may realise more than {MOST_CANDIDATES:,} dichotomies on the rows that the theorem relabels "
                "at once; fewer are relabelled"
            )
        return BoostPlan(
            event=constants.price(schedule).event,
            told=f"a concept that {type(base).__name__} learned from {schedule.drawn:,} rows, drawn from rows that "
            f"LabelBoost relabelled in {len(schedule.rounds)} iterations",
            n_labels=n_labelled,
            caveats=base_fit.plan.caveats,
            cautions=tuple(cautions),
            schedule=schedule,
            base=base,
            base_fit=base_fit,
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        schedule = plan.schedule
        has_label = labels != UNLABELLED
        S, y, D = points[has_label], labels[has_label].astype(np.uint8), points[~has_label]
        if schedule.first_labelled < schedule.labelled:
            first = random_arrangement(len(S), schedule.first_labelled, noise.at("first labelled rows", 0))
            S, y = S[first], y[first]
        if schedule.first_unlabelled < schedule.unlabelled:
            D = D[random_arrangement(len(D), schedule.first_unlabelled, noise.at("first unlabelled rows", 0))]
        for i, step in enumerate(schedule.rounds):
            T, D = D[: step.taken], D[step.taken :]
            kept = random_arrangement(len(S), step.kept_labelled, noise.at("kept labelled rows", i))
            brought = random_arrangement(len(T), step.kept_taken, noise.at("kept unlabelled rows", i))
            S, T, y = S[kept], T[brought], y[kept]
            y = relabelled(S, y, T, self._concept_class, step.epsilon_0, noise.at("chosen concept", i))
            S = np.concatenate([S, T])
        left = random_arrangement(len(S), schedule.kept, noise.at("rows left", 0))
        drawn = left[random_draws(schedule.kept, schedule.drawn, noise.at("rows drawn", 0))]
        return self._run_base(plan.base, S[drawn], y[drawn], plan.base_fit, noise)
