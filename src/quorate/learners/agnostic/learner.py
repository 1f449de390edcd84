"""From a private learner that needs a true concept to one that needs none (LWY25, Algorithm 2)."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from quorate.arguments import count, one_of, real
from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.learners.agnostic.bound import (
    EVENTS,
    NOT_EMPIRICAL,
    agnostic_error,
    agnostic_rows,
    errs_little_on_any_rows,
    learner_error,
    priced,
)
from quorate.learners.agnostic.price import (
    LARGEST_TARGET,
    MOST_CANDIDATES,
    AgnosticPrice,
    AgnosticSplit,
    best_split,
    choice_at,
    least_rows,
    refuse_plan,
    relabelled_sample,
    relabels,
    rows_for,
    short_of,
)
from quorate.learners.base.exponential import MECHANISMS, Selection, check_labelled, growth_of
from quorate.learners.concepts.protocol import Concept, Points
from quorate.learners.fit_charge import Plan, RowsNeeded
from quorate.learners.private_learner import PrivateLearner
from quorate.learners.sample import UNLABELLED, CodedLabels
from quorate.learners.transformed_learner import BaseFit, TransformedLearner
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as


class ProvenSplit(Protocol):
    """How a budget is split, and the error that is proven of it."""

    @property
    def excess(self) -> float:
        """The error beyond the best concept's, but for a probability β; no bound above 1."""


Split = TypeVar("Split", bound=ProvenSplit)


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
        real("alpha", self.alpha, above=0, below=1)
        real("beta", self.beta, above=0, below=1)
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

    Parameters
    ----------
    base : PrivateLearner
        A private learner for `concepts`, such as ``NoisyThreshold(concepts=concepts, epsilon=1.0)``. It is run at the ε
        and δ that the search finds; its own do not matter.
    limit : int, default 2**20
        Labellings to choose from at most: so many rows are relabelled that there can be no more.

    Attributes
    ----------
    plan_ : AgnosticPlan
        How the budget was split, and the error that is proven; public.
    n_labels_used_ : int
        All labels that were given, though those of T are not looked at: which rows are in T is secret. Rows without a
        label are left out.

    Notes
    -----
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
        if count("limit", self.limit, at_least=2) > MOST_CANDIDATES:
            raise InvalidParameter(f"limit must be at most {MOST_CANDIDATES:,}, got {self.limit}")
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
        base = priced(self.base, price.learner_epsilon, price.learner_delta)
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

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Plan) -> Concept:
        assert isinstance(plan, AgnosticPlan)  # noqa: S101  what `_plan` returns
        known = labels != UNLABELLED
        T, new = relabelled_sample(
            points[known], labels[known].astype(np.uint8), self._concept_class, plan.price, self.selection, noise
        )
        return self._run_base(plan.base, T, new, plan.base_fit, noise)
