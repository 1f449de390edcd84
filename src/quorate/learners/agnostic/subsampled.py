"""The transformation that LWY25 improves on: relabel a subsample by itself, and throw the other rows away."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, expm1, log, log1p, sqrt
from typing import ClassVar

import numpy as np

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.agnostic.bound import Growth, LearnerError, learner_error, priced
from quorate.learners.agnostic.learner import AnyLabels
from quorate.learners.amplification import Price, largest_count, random_arrangement, without_replacement
from quorate.learners.base.exponential import check_labelled, growth_of
from quorate.learners.concepts.protocol import Concept, Points
from quorate.learners.fit_charge import Plan
from quorate.learners.label_boost.learner import relabelled
from quorate.learners.label_boost.schedule import relabelling
from quorate.learners.private_learner import PrivateLearner
from quorate.learners.sample import UNLABELLED, CodedLabels
from quorate.learners.transformed_learner import BaseFit
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

_EVENTS = 4
_MOST_CANDIDATES = 1 << 20
_LEAST_LEARNER = 1e-6
_SIZES = 24
_CHOICES = tuple(np.geomspace(0.02, 8.0, 24).tolist())


@stored_as("quorate.learners.subsampled_agnostic.SubsampledSplit")
@dataclass(frozen=True, kw_only=True, slots=True)
class SubsampledSplit:
    """One way to spend the budget: s rows are kept, ε₀ relabels them, and the rest is for the base learner on them.

    `excess`: the error beyond the best concept's that is proven, but for a probability β.
    """

    n_kept: int
    epsilon_0: float
    learner_epsilon: float
    learner_delta: float
    excess: float

    def price(self, n_rows: int) -> Price:
        """Return what it costs as a whole on `n_rows` rows."""
        inside = relabelling(Price(self.learner_epsilon, self.learner_delta), epsilon_0=self.epsilon_0)
        return without_replacement(inside, n_rows=n_rows, n_kept=self.n_kept)


def subsampled_error(n_kept: int, epsilon_0: float, observed: float, growth: Growth, beta: float) -> float:
    """Bound the error beyond the best concept's, :math:`a_0 + a_1 + a_2 + a_A`, all on the s rows of the sample.

    As in :mod:`~quorate.learners.agnostic.bound`, but the sample itself has to tell the errors of all concepts.
    `observed`: :math:`a_A`, the share on which the base learner differs from the chosen labels. `beta`: β′ of each
    event.
    """
    surprise = log(1 / beta)
    best = sqrt(surprise / (2 * n_kept))
    every = 1 / n_kept + sqrt((n_kept + 1) * (log(2) + log(growth(2 * n_kept)) + surprise)) / n_kept
    chosen = 2 * (log(growth(n_kept)) + surprise) / (epsilon_0 * n_kept)
    return best + every + chosen + observed


@stored_as("quorate.learners.subsampled_agnostic.SubsampledPlan")
@dataclass(frozen=True, kw_only=True)
class SubsampledPlan(Plan):
    """The calibrated parameters of one SubsampledAgnostic.

    `n_rows`: n. `split`: how the budget is spent. `base`: the base learner, at its share. `base_fit`: how it is run.
    """

    n_rows: int
    split: SubsampledSplit
    base: PrivateLearner = field(repr=False)
    base_fit: BaseFit = field(repr=False)

    @property
    def excess(self) -> float:
        """The error beyond the best concept's that is proven."""
        return self.split.excess


@stored_as("quorate.learners.subsampled_agnostic.SubsampledAgnostic")
@dataclass(kw_only=True, eq=False, repr=False)
class SubsampledAgnostic(AnyLabels[SubsampledSplit]):
    r"""Learn a concept for any labels from a secret subsample that is relabelled by itself; a yardstick.

    BNS15's relabelling with plain amplification by subsampling (KLNRS11), the transformation that
    :class:`~quorate.learners.AgnosticLearner` is to be compared with: the same base learners, proven prices and
    searched parameters in both. Its extra rows grow as :math:`VC/(\alpha^2\varepsilon)`.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    Parameters
    ----------
    base : PrivateLearner
        A private learner for `concepts`; its own ε and δ do not matter.

    Attributes
    ----------
    plan_ : SubsampledPlan
        How the budget was spent; public.

    Notes
    -----
    Privacy: :func:`~quorate.learners.label_boost.schedule.relabelling` of the base learner's price, amplified by
    :func:`~quorate.learners.amplification.without_replacement`.

    BNS15 (Beimel, Nissim, Stemmer), Algorithm 2; LWY25 (Li, Wang, Ye), Section 1.1 and the overview of Section 3.

    Examples
    --------
    >>> from quorate.learners import NoisyThreshold
    >>> from quorate.learners.concepts import Thresholds
    >>> domain = Thresholds(bits=16)
    >>> base = NoisyThreshold(concepts=domain, epsilon=1.0)
    >>> learner = SubsampledAgnostic(concepts=domain, base=base, epsilon=0.1, alpha=0.02)
    >>> learner.rows_needed().labelled
    4325376
    """

    theorem: ClassVar[str] = "BNS15 Algorithm 2 after subsampling, every constant stated,"
    least_labels: ClassVar[int] = 1

    def _split(self, n_rows: int, epsilon: float, delta: float) -> SubsampledSplit:
        growth = growth_of(self._concept_class)
        best = best_subsample(
            n_rows,
            epsilon=epsilon,
            delta=self._base_delta(delta),
            error=learner_error(self.base, alpha=self.alpha / 4, beta=self.beta / _EVENTS),
            growth=growth,
            beta=self.beta / _EVENTS,
        )
        if best is None:
            raise DataRefused(
                f"too few labelled rows for epsilon={epsilon:g}: no sample of them can be relabelled at this price; "
                "give more rows or a larger epsilon"
            )
        return best

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> SubsampledPlan:
        check_labelled(self, n_labelled)
        split = self._split(n_labelled, epsilon, delta)
        base = priced(self.base, split.learner_epsilon, split.learner_delta)
        price = split.price(n_labelled)
        if not price.within(Price(epsilon, delta)):
            raise InvalidParameter("epsilon and delta are passed by this plan; report it")  # pragma: no cover
        fit = self._base_fit(base, split.n_kept)
        return SubsampledPlan(
            event=price.event,
            told=f"a concept that {type(base).__name__} learned at ε = {split.learner_epsilon:.4g} from "
            f"{split.n_kept:,} of {n_labelled:,} labelled rows, sampled in secret and relabelled by themselves",
            n_labels=n_labelled,
            n_rows=n_labelled,
            split=split,
            base=base,
            base_fit=fit,
            **self._said_of(fit),
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Plan) -> Concept:
        assert isinstance(plan, SubsampledPlan)  # noqa: S101  what `_plan` returns
        rows = np.flatnonzero(labels != UNLABELLED)
        kept = rows[random_arrangement(plan.n_rows, plan.split.n_kept, noise.at("kept rows", 0))]
        T, y = points[kept], labels[kept].astype(np.uint8)
        new = relabelled(T, y, T[:0], self._concept_class, plan.split.epsilon_0, noise.at("chosen concept", 0))
        return self._run_base(plan.base, T, new, plan.base_fit, noise)


def best_subsample(
    n_rows: int, *, epsilon: float, delta: float, error: LearnerError, growth: Growth, beta: float
) -> SubsampledSplit | None:
    """Find the split of (ε, δ) on n rows with the least bound on the error; None where there is none."""
    gain = expm1(epsilon)
    most = min(n_rows, int(n_rows * gain / 3))  # c is at least 4
    most = largest_count(lambda n_kept: growth(n_kept) <= _MOST_CANDIDATES, most)
    if most < 1:
        return None
    best: SubsampledSplit | None = None
    for n_kept in sorted({round(size) for size in np.geomspace(1, most, _SIZES)}):
        inside = log1p(gain * n_rows / n_kept) if n_kept < n_rows else epsilon
        for epsilon_0 in _CHOICES:
            learner_epsilon = inside * (1 - 2**-30) - 2 * (epsilon_0 / 2 + log1p(exp(-epsilon_0 / 2)))
            if not learner_epsilon > _LEAST_LEARNER:
                continue
            learner_delta = min(delta * n_rows / n_kept * (1 - 2**-30), 0.5)
            observed = error(n_kept, learner_epsilon, learner_delta)
            excess = subsampled_error(n_kept, epsilon_0, observed, growth, beta)
            if best is None or excess < best.excess:
                best = SubsampledSplit(
                    n_kept=n_kept,
                    epsilon_0=epsilon_0,
                    learner_epsilon=learner_epsilon,
                    learner_delta=learner_delta,
                    excess=excess,
                )
    return best
