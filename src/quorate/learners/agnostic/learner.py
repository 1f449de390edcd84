"""From a private learner that needs a true concept to one that needs none (LWY25, Algorithm 2), and its yardstick."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from quorate.arguments import count, one_of
from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.learners.agnostic.bound import (
    EVENTS,
    NOT_EMPIRICAL,
    Growth,
    LearnerError,
    agnostic_error,
    agnostic_rows,
    errs_little_on_any_rows,
    learner_error,
)
from quorate.learners.agnostic.price import (
    LARGEST_TARGET,
    MOST_CANDIDATES,
    AgnosticPrice,
    AgnosticSplit,
    best_split,
    check_limit,
    choice_at,
    least_rows,
    refuse_plan,
    relabelled_sample,
    relabels,
    rows_for,
    short_of,
)
from quorate.learners.amplification import Price, largest_count, random_arrangement, without_replacement
from quorate.learners.base.exponential import MECHANISMS, Selection, check_labelled, check_theorem, growth_of
from quorate.learners.concepts.protocol import Concept, Points
from quorate.learners.fit_charge import Plan, RowsNeeded, inner_at
from quorate.learners.label_boost.learner import relabelled
from quorate.learners.label_boost.schedule import relabelling
from quorate.learners.private_learner import PrivateLearner
from quorate.learners.sample import UNLABELLED, CodedLabels
from quorate.learners.transformed_learner import BaseFit, TransformedLearner
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

Split = TypeVar("Split", bound="AgnosticSplit | SubsampledSplit")


@dataclass(kw_only=True, eq=False, repr=False)
class AnyLabels(TransformedLearner, Generic[Split], metaclass=ABCMeta):
    """A learner made from one for true concepts, whose theorem takes any labels.

    The base learner alone is asked for what it needs with any labels, where it can do with those; whether the whole
    needs more is told by the error that is proven at so many labels, without a search.
    """

    #: Its formulas have e^ε times the square of the number of rows, in floats.
    largest_epsilon: ClassVar[float] = LARGEST_TARGET
    theorem: ClassVar[str]  # whose it is, for messages
    least_labels: ClassVar[int] = 2

    alpha: float = 0.1
    beta: float = 0.1

    @abstractmethod
    def _split(self, n_rows: int, epsilon: float, delta: float) -> Split:
        """Return the best split for so many rows; raise DataRefused where there is none."""

    def split_for(self, n_labelled: int) -> Split:
        """Return what a fit on so many labelled rows would do, and the error that is proven of it; it sees no row."""
        return self._split(count("n_labelled", n_labelled, at_least=self.least_labels), *self._target())

    def _check_arguments(self) -> None:
        check_theorem(self)
        super()._check_arguments()

    def _excess(self, n_rows: int, epsilon: float, delta: float) -> float:
        """The error that is proven on so many rows; infinite where there is no split."""
        try:
            return self._split(n_rows, epsilon, delta).excess
        except DataRefused:
            return inf

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        start = self._least_rows(epsilon)
        labelled = rows_for(self.alpha, lambda n_rows: self._excess(n_rows, epsilon, delta), start=start)
        return RowsNeeded(labelled=labelled, unlabelled=0, theorem=self.theorem)

    def _short_of_the_theorem(self, plan: Any, n_rows: tuple[int, int], epsilon: float, delta: float) -> list[str]:
        # The number of rows would be a long search: see rows_needed().
        return short_of(self.alpha, plan.excess, self.theorem)

    def _least_rows(self, epsilon: float) -> int:
        """From how many rows on a search for enough of them begins."""
        return 2

    def _base_delta(self, delta: float) -> float:
        """The δ that the base learner has a use for."""
        return delta if "delta" in self.base.get_params(deep=False) else 0.0

    def _said_of(self, fit: BaseFit) -> dict[str, tuple[str, ...]]:
        """What the base learner's guarantee rests on, and why its error bound does not hold, if it does not."""
        unproven = () if errs_little_on_any_rows(self.base) else (NOT_EMPIRICAL,)
        return {"caveats": fit.plan.caveats, "cautions": (*fit.plan.cautions, *unproven)}

    def _rows_alone(self, alone: PrivateLearner) -> RowsNeeded:
        return agnostic_rows(alone)

    def _asks_for_more_than(self, n_labels: int, epsilon: float, delta: float) -> bool:
        try:
            return self._excess(max(n_labels, 2), epsilon, delta) > self.alpha
        except QuorateError:  # so few rows cannot be relabelled
            return True


@stored_as("quorate.learners.agnostic.AgnosticPlan")
@dataclass(frozen=True, kw_only=True)
class AgnosticPlan(Plan):
    """The calibrated parameters of one AgnosticLearner: its price, and its base learner at a share of the budget.

    `excess`: the error beyond the best concept's is at most this, but for a probability β; no bound above 1.
    """

    price: AgnosticPrice
    excess: float
    base: PrivateLearner = field(repr=False)
    base_fit: BaseFit = field(repr=False)


@stored_as("quorate.learners.agnostic.AgnosticLearner")
@dataclass(kw_only=True, eq=False, repr=False)
class AgnosticLearner(AnyLabels[AgnosticSplit]):
    r"""Learn a concept that errs about as little as the best one of the class, whatever the labels are.

    A few rows T are sampled in secret. One labelling of them by a concept is chosen, by how well a concept near it fits
    all the *other* rows, and a private learner for true concepts runs on T, so relabelled. The rows that only help to
    choose cost next to nothing: beyond what the base learner needs, the number of rows grows as :math:`VC/\alpha^2`,
    not as :math:`VC/(\alpha^2\varepsilon)`.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `base`: a private learner for `concepts`, such as ``NoisyThreshold(concepts=concepts, epsilon=1.0)``. It is run at
    the ε and δ that the search finds; its own do not matter. `limit`: labellings to choose from at most: so many rows
    are relabelled that there can be no more.
    `plan_`: how the budget was split, and the error that is proven; public. `n_labels_used_`: all labels that were
    given, though those of T are not looked at: which rows are in T is secret. Rows without a label are left out.

    Privacy: :class:`~quorate.learners.agnostic.price.AgnosticPrice`, LWY25's Lemma 3.1 with every constant.

    Error: :mod:`~quorate.learners.agnostic.bound`, LWY25's Theorem 3.6 with every constant, for i.i.d. rows and a base
    learner that answers a concept of the class and errs little on any rows that a concept labels:
    ``ExponentialLearner``, ``NoisyThreshold``, or any other inside an ``EmpiricalLearner``. The split is the one with
    the least bound; it depends on n and on the arguments alone.

    LWY25 (Li, Wang, Ye), Algorithms 1 and 2, Lemma 3.1, Claim 3.2, Theorem 3.6.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.learners.base.grid_choice import NoisyThreshold
    >>> domain, random = Thresholds(bits=16), np.random.default_rng(0)
    >>> X = random.integers(0, 2**16, (40_000, 1))
    >>> y = (X[:, 0] < 30_000) ^ (random.random(40_000) < 0.2)  # one label in five is wrong
    >>> learner = AgnosticLearner(
    ...     concepts=domain, base=NoisyThreshold(concepts=domain, epsilon=1.0), epsilon=0.5, unsafe_noise_seed=0
    ... ).fit(X, y)
    >>> learner.guarantee_.epsilon, learner.score(X, y) > 0.78
    (0.5, True)
    >>> learner.plan_.price.n_sampled, f"{learner.plan_.excess:.3f}"
    (3979, '0.131')
    """

    theorem: ClassVar[str] = "LWY25 Theorem 3.6, every constant stated,"

    selection: Selection = "permute-and-flip"
    limit: int = MOST_CANDIDATES

    def _check_arguments(self) -> None:
        one_of("selection", self.selection, MECHANISMS)
        check_limit(self.limit)
        super()._check_arguments()

    def _split(self, n_rows: int, epsilon: float, delta: float) -> AgnosticSplit:
        growth = growth_of(self._concept_class)
        error = learner_error(self.base, alpha=self.alpha / 4, beta=self.beta / EVENTS)
        return best_split(
            n_rows,
            epsilon=epsilon,
            delta=self._base_delta(delta),
            excess=lambda price: agnostic_error(price, error, growth, self.beta),
            fits=relabels(self._concept_class, self.limit, n_rows),
        )

    def _least_rows(self, epsilon: float) -> int:
        return least_rows(epsilon)

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> AgnosticPlan:
        check_labelled(self, n_labelled)
        split = self._split(n_labelled, epsilon, delta)
        price = split.price
        refuse_plan(self._concept_class, price)
        choice_at(price, self.selection)
        base = inner_at(self.base, epsilon=price.learner_epsilon, delta=price.learner_delta)
        fit = self._base_fit(base, price.n_sampled)
        return AgnosticPlan(
            event=price.event,
            told=f"a concept that {type(base).__name__} learned at ε = {price.learner_epsilon:.4g} from "
            f"{price.n_sampled:,} of {n_labelled:,} labelled rows, sampled in secret and relabelled by a choice at "
            f"ε = {price.choice_epsilon:.4g}",
            n_labels=n_labelled,
            **self._said_of(fit),
            price=price,
            excess=split.excess,
            base=base,
            base_fit=fit,
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        known = labels != UNLABELLED
        T, new = relabelled_sample(
            points[known], labels[known].astype(np.uint8), self._concept_class, plan.price, self.selection, noise
        )
        return self._run_base(plan.base, T, new, plan.base_fit, noise)


# --- the transformation that LWY25 improves on ---------------------------------------------------------------------

_SUBSAMPLE_EVENTS = 4
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

    `base`: a private learner for `concepts`; its own ε and δ do not matter.
    `plan_`: how the budget was spent; public.

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
            error=learner_error(self.base, alpha=self.alpha / 4, beta=self.beta / _SUBSAMPLE_EVENTS),
            growth=growth,
            beta=self.beta / _SUBSAMPLE_EVENTS,
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
        base = inner_at(self.base, epsilon=split.learner_epsilon, delta=split.learner_delta)
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

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
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
