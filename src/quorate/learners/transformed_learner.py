"""What the learners share that are made from another private learner; and the first of them, for the sample itself."""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, cast

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter, QuorateError
from quorate.findings import Finding, Severity, caution
from quorate.learners.amplification import (
    LARGEST_EPSILON,
    Price,
    cheapest_with_replacement,
    largest_count,
    random_draws,
    smallest_count,
)
from quorate.learners.concepts.protocol import Concept, ConceptClass, Points
from quorate.learners.fit_charge import inner_at
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, PrivateLearner, RowsNeeded
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

#: What programs decide by: the base learner by itself asks for no more labels.
BASE_ALONE: Final = "base-alone-needs-no-more-labels"


@stored_as("quorate.learners.transformed_learner.BaseFit")
@dataclass(frozen=True, kw_only=True, slots=True)
class BaseFit:
    """How a base learner will be run: its plan, its price per replaced row, its rows with and without labels."""

    plan: Plan
    price: Price
    n_labelled: int
    n_unlabelled: int

    @property
    def n_rows(self) -> int:
        """All rows that the base learner is handed."""
        return self.n_labelled + self.n_unlabelled


@dataclass(kw_only=True, eq=False, repr=False)
class TransformedLearner(PrivateLearner, metaclass=ABCMeta):
    """A private learner that runs another one, `base`, inside, on the noise and at the price of the outer one.

    Of `base` only its arguments are used, `epsilon` and, if it has one, `delta` as what it may cost; not its ledger,
    seed and `rows`. `delta`: δ of the whole; 0 for a pure base learner.
    """

    #: The largest ε that the rules of price are worked out for: beyond it nothing is promised in any case.
    largest_epsilon: ClassVar[float] = LARGEST_EPSILON

    base: PrivateLearner
    concepts: ConceptClass | None = None
    delta: float = 0.0

    @property
    def pure(self) -> bool:  # type: ignore[override]  # a fact of the class elsewhere, of the arguments here
        """Whether the guarantee has δ = 0."""
        return not self.delta > 0

    def _check_arguments(self) -> None:
        if not isinstance(cast("object", self.base), PrivateLearner):
            raise InvalidParameter(
                f"base must be a private learner of this package, got {type(self.base).__name__}; "
                "for example ExponentialLearner(concepts=concepts, epsilon=1.0)"
            )
        if self.concepts is not None and self.base._concept_class != self.concepts:
            raise InvalidParameter(
                "base must have the same concepts as the learner around it; leave concepts out, and they are the base's"
            )
        for name, epsilon, most in (
            ("epsilon", self.epsilon, self.largest_epsilon),
            ("base.epsilon", self.base.epsilon, LARGEST_EPSILON),
        ):
            real(name, epsilon, at_most=most, hint=f"{type(self).__name__} promises next to nothing at that: lower it")
        real("delta", self.delta, at_least=0, below=1)
        base_delta = self._base_price(self.base).delta
        if self.pure and base_delta > 0:
            raise InvalidParameter(
                f"delta must be > 0, as the base learner has delta={base_delta:g}; or take a pure one"
            )

    @property
    def _concept_class(self) -> ConceptClass:
        """What is learned: the base learner's class."""
        return self.base._concept_class if self.concepts is None else self.concepts

    def _listed_points(self) -> int | None:
        return self.base._listed_points()

    def _check_points(self, points: Points) -> None:
        self.base._check_points(points)

    def _alone(self, epsilon: float, delta: float) -> RowsNeeded | None:
        """Return what the base learner's theorem asks for at the price and the error of the whole; None if nothing."""
        known = self.base.get_params(deep=False)
        at = {name: getattr(self, name, known.get(name)) for name in ("alpha", "beta")}
        try:
            return self._rows_alone(inner_at(self.base, epsilon=epsilon, delta=delta, **at))
        except QuorateError:  # no number of rows is known, or it is not to be had without δ
            return None

    def _rows_alone(self, alone: PrivateLearner) -> RowsNeeded:
        return alone.rows_needed()

    def _asks_for_more_than(self, n_labels: int, epsilon: float, delta: float) -> bool:
        """Whether the whole's own theorem asks for more labels than so many, or for as many."""
        return self._rows_needed(epsilon, delta).labelled >= n_labels

    def _cautions(self, plan: Plan, n_rows: tuple[int, int], epsilon: float, delta: float) -> tuple[Finding, ...]:
        alone = self._alone(epsilon, delta)
        words = None
        try:
            if alone is not None and self._asks_for_more_than(alone.labelled, epsilon, delta):
                words = (
                    f"{type(self.base).__name__} alone asks for {alone.labelled:,} labels at epsilon={epsilon:g}, and "
                    f"{type(self).__name__} around it for no fewer: the base learner by itself is enough "
                    f"({alone.theorem.rstrip(',')})"
                )
        except InvalidParameter:  # no number of rows is known to be enough for the whole; said elsewhere
            pass
        return (caution(BASE_ALONE, Severity.WARNING, words),)

    @staticmethod
    def _base_price(base: PrivateLearner) -> Price:
        """Return what a base learner may cost: its target."""
        return Price(*base._target())

    @staticmethod
    def _base_needs(base: PrivateLearner) -> RowsNeeded:
        """Return what a base learner's own theorem asks for."""
        return base._rows_needed(*base._target())

    def _base_fit(self, base: PrivateLearner, n_rows: int, n_labelled: int | None = None) -> BaseFit:
        """Plan the base learner for so many rows; by default with all labels that it can use."""
        if n_labelled is None:
            n_labelled = self._labels_kept(base, n_rows)
        target = base._target()
        plan = base._plan(n_labelled, n_rows - n_labelled, *target)
        price = Price.of_event(plan.event)
        if not price.within(Price(*target)):  # the transformation was calibrated to no more
            raise InvalidParameter("base plans to spend more than its epsilon and delta; correct its _plan")
        return BaseFit(plan=plan, price=price, n_labelled=n_labelled, n_unlabelled=n_rows - n_labelled)

    def _labels_kept(self, base: PrivateLearner, n_rows: int) -> int:
        """Return how many of so many rows keep their labels: all that the base learner does not need without one."""
        half = -(-n_rows // 2)
        try:
            needs = self._base_needs(base)
        except InvalidParameter:  # no number of rows is known to be enough
            return half
        if not needs.unlabelled:
            return n_rows
        together = needs.labelled + needs.unlabelled
        return n_rows - needs.unlabelled if n_rows >= together else max(half, n_rows * needs.labelled // together)

    @staticmethod
    def _run_base(base: PrivateLearner, points: Points, labels: Any, fit: BaseFit, noise: NoiseSource) -> Concept:
        """Hand the base learner its rows, the first of them with their labels: `labels` may be longer or as long."""
        known: CodedLabels = np.full(len(points), UNLABELLED, dtype=np.int8)
        known[: fit.n_labelled] = labels[: fit.n_labelled]
        return base._learn(points, known, noise.at("base learner", 0), fit.plan)


@stored_as("quorate.learners.empirical.EmpiricalPlan")
@dataclass(frozen=True, kw_only=True)
class EmpiricalPlan(Plan):
    """The calibrated parameters of one EmpiricalLearner: n rows, m draws, and how the base learner is run."""

    n_rows: int
    n_draws: int
    base_fit: BaseFit = field(repr=False)


@stored_as("quorate.learners.empirical.EmpiricalLearner")
@dataclass(kw_only=True, eq=False, repr=False)
class EmpiricalLearner(TransformedLearner):
    r"""Learn a concept that errs little on the labelled rows themselves.

    The base learner is run on rows that are drawn, with replacement, from the labelled ones: their empirical
    distribution is the distribution that it learns. So its error bound holds for the rows as they are, even where they
    are a sample of nothing; and as each row is rarely drawn, its price falls.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `base`: a private learner for `concepts`. Its `epsilon` and `delta` are what one run of it costs; its α and β become
    those of the whole. `n_draws`: m: how many rows to draw. As many as the target allows by default.
    `plan_`: the sizes; public. `n_labels_used_`: n; rows without a label are left out.

    Privacy: by :func:`~quorate.learners.amplification.cheapest_with_replacement`, at most
    :math:`(m \log(1 + (e^{\varepsilon} - 1)/n),\ \delta (e^{\varepsilon'} - 1)/(e^\varepsilon - 1))`, for every ε, m
    and n. LWY25's Lemma 2.13, :math:`(6\varepsilon m/n,\ 4e^{6\varepsilon m/n} (m/n) \delta)`, is never smaller.

    LWY25 (Li, Wang, Ye), Lemmas 2.12 and 2.13.

    Examples
    --------
    >>> from quorate.learners import EmpiricalLearner, ExponentialLearner
    >>> from quorate.learners.concepts import Thresholds
    >>> domain = Thresholds(bits=10)
    >>> X = np.random.default_rng(0).integers(0, 1024, (2_000, 1))
    >>> learner = EmpiricalLearner(
    ...     concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=1.0, unsafe_noise_seed=0
    ... ).fit(X, (X[:, 0] < 500).astype(int))
    >>> learner.plan_.n_draws
    1164
    """

    n_draws: int | None = None

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.n_draws is not None:
            count("n_draws", self.n_draws, at_least=1)

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        needs = self._base_needs(self.base)
        draws = needs.labelled + needs.unlabelled if self.n_draws is None else self.n_draws
        base, target = self._base_price(self.base), Price(epsilon, delta)
        labelled = smallest_count(lambda rows: _within(base, rows, draws, target), 1)
        return RowsNeeded(labelled=labelled, unlabelled=0, theorem="LWY25 Lemma 2.12, at the proven price,")

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> EmpiricalPlan:
        base, target = self._base_price(self.base), Price(epsilon, delta)
        draws = self.n_draws
        if draws is None and n_labelled:
            draws = largest_count(
                lambda n_draws: _within(base, n_labelled, n_draws, target), _most_draws(base, n_labelled, target)
            )
        if not draws or not n_labelled or not _within(base, n_labelled, draws, target):
            needed = smallest_count(lambda rows: _within(base, rows, draws or 1, target), 1)
            raise InvalidParameter(
                f"y must have at least {needed:,} labels for {draws or 1:,} draws at this target; "
                "give more rows, or leave n_draws out"
            )
        fit = self._base_fit(self.base, draws)
        price = cheapest_with_replacement(fit.price, n_rows=n_labelled, n_draws=draws, delta=delta)
        return EmpiricalPlan(
            event=price.event,
            told=f"a concept that {type(self.base).__name__} learned from {draws:,} draws, with replacement, of the "
            "labelled rows",
            n_labels=n_labelled,
            caveats=fit.plan.caveats,
            cautions=fit.plan.cautions,
            n_rows=n_labelled,
            n_draws=draws,
            base_fit=fit,
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        rows = np.flatnonzero(labels != UNLABELLED)
        drawn = rows[random_draws(plan.n_rows, plan.n_draws, noise.at("rows drawn", 0))]
        return self._run_base(self.base, points[drawn], labels[drawn], plan.base_fit, noise)


def _within(base: Price, n_rows: int, n_draws: int, target: Price) -> bool:
    try:
        return cheapest_with_replacement(base, n_rows=n_rows, n_draws=n_draws, delta=target.delta).within(target)
    except InvalidParameter:  # no rule proves this δ, or the ε is beyond any promise
        return False


def _most_draws(base: Price, n_rows: int, target: Price) -> int:
    """Return more draws than any target allows, to search below."""
    return int(n_rows * (target.epsilon / base.epsilon + 1) * 8) + 64
