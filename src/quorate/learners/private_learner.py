"""The shell that every private learner shares: check → calibrate → charge → draw → store → release a concept."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.accounting.attacker import budget_cautions
from quorate.ambient import own_switches
from quorate.arguments import count, one_of
from quorate.data.labels import encode_labels
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, QuorateError, act
from quorate.findings import Finding, Severity, caution, warn_of
from quorate.learners.concepts.protocol import Concept, ConceptClass, Points
from quorate.learners.fit_charge import (
    PURPOSE,
    REPLACE_ONE_RECORD,
    Plan,
    RowsNeeded,
    charge_of,
    check_of_fit,
    delta_of,
    from_stored,
    in_own_words,
    to_stored,
)
from quorate.learners.sample import (
    UNLABELLED,
    CodedLabels,
    Sample,
    coded_labels,
    column_names,
    read_sample,
    refuse_groups,
    refuse_other_columns,
    two_classes,
)
from quorate.ledger import Budget, Ledger
from quorate.noise import NoiseSource
from quorate.release import draw, guarantee_of, ledger_location, session, uninterrupted
from quorate.release.charge import floor_budget, floor_epsilon, noise_and_key, refuse_unaffordable
from quorate.release.keys import fingerprint_key
from quorate.release.session import NoFolds
from quorate.students.scores import share_of_right
from quorate.types import Secret

__all__ = ["UNLABELLED", "CodedLabels", "Plan", "PrivateLearner", "RowsNeeded", "Sample", "coded_labels"]

#: What programs decide by: the error bound does not hold with these rows.
BOUND_DOES_NOT_HOLD = "error-bound-does-not-hold"
BOUND_OF_LISTED_POINTS = "error-bound-of-listed-points"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLearner(NoFolds, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the learners of this room: a scikit-learn classifier whose concept may be published.

    A subclass is a dataclass of this kind, whose fields are its arguments, or has a constructor of its own that stores
    them (`delta` among them where :attr:`pure` is False). It has three methods, functions of their arguments and of
    constructor arguments alone, that may be called by another learner at a price of its own:

    - ``_plan(n_labelled, n_unlabelled, epsilon, delta) -> Plan``: calibrate to the target; it sees no row.
    - ``_learn(points, labels, noise, plan) -> Concept``: the algorithm; `labels` are int8, 0, 1 or ``UNLABELLED``.
    - ``_rows_needed(epsilon, delta) -> RowsNeeded``: what its theorem asks for.

    `concepts`: what may be learned. A learner that is made from another one takes the `concepts` of its `base` by
    default.
    `epsilon`: ε > 0 of the whole.
    `classes`: the labels of `y`, the one that a concept calls 0 first; a missing label is an unlabelled row. Without it
    `y` holds 0, 1 and ``UNLABELLED``.
    `rows`: "theorem" refuses fewer rows than :meth:`rows_needed`; "any" takes them and says so. Privacy needs none.
    `ledger`: where the charge goes. None keeps it in memory, and the guarantee says that nothing durable was recorded.
    `unsafe_noise_seed`: for tests and demos: reproducible, therefore not private.
    `alpha`, `beta`: 0.1 by default; the theorem's, of learners that have one: error above α with probability at most β,
    where some concept of the class is the truth; of learners for any labels, above that of the best concept.
    `delta`: δ of the whole, of the learners that are made from another one; 0 for a pure base learner.
    `selection`: "permute-and-flip" (default) or "exponential": what chooses, where that can be chosen; the latter, of
    the paper, is never better at the same price.

    `concept_`: what was learned; may be published.
    `guarantee_`: for one replaced record; how many rows there are, and which of them have a label, is public.
    `plan_`: the calibrated parameters; public.
    `n_labels_used_`: how many labels the learner looked at, or would have if they were not secret: all that were given,
    where it says nothing else. Rows without a label are left out by learners that make no use of them.
    `transcript_covered_`: whether the guarantee still holds towards an observer who sees for which rows a label was
    asked (BNS15 Definition 5.4); a fact of the class, as :attr:`pure` is: whether δ = 0, so that there is no
    `delta` to give.

    Formal guarantees, by order of :meth:`fit`:

    - Arguments are refused before a row is looked at, and a table before anything is charged.
    - The event of the whole fit is in the ledger, durably, before the first word of noise is drawn.
    - The concept is in the ledger, durably, before it is an attribute. The same fit on the same data in the same
      ledger gives the same concept again, and costs nothing.
    - Nothing private is kept: the estimator holds its arguments, public figures, and the released concept.
    """

    #: Arguments that at None are no part of what a ledger knows a fit by.
    left_out_where_none: ClassVar[tuple[str, ...]] = ("classes", "delta", "domain")

    pure: ClassVar[bool] = True
    transcript_covered: ClassVar[bool] = True

    concepts: Any  # a ConceptClass; None where it is that of a base learner
    epsilon: float
    classes: Sequence[Any] | None = None
    rows: str = "any"
    ledger: Any = None
    unsafe_noise_seed: int | None = None

    # --- what a learner is -------------------------------------------------------------------------------------

    @abstractmethod
    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> Plan:
        """Calibrate to (ε, δ); raise InvalidParameter or DataRefused where that cannot be."""

    @abstractmethod
    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Plan) -> Concept:
        """Run the algorithm; the one place that sees private rows."""

    @abstractmethod
    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        """Return what the theorem asks for, with explicit constants."""

    def _check_arguments(self) -> None:
        """Refuse wrong constructor arguments of the learner's own; called before anything else."""

    def _check_points(self, points: Points) -> None:
        """Refuse rows of the class's domain that the learner cannot take; the last look before the charge."""

    def _occasion(self) -> str:
        """Return what tells this fit from one with the same arguments on the same rows; nothing, for most."""
        return ""

    def _enough(self, needed: RowsNeeded, n_labelled: int, n_unlabelled: int) -> bool:
        """Whether these are as many rows as the theorem asks for."""
        return n_labelled >= needed.labelled and n_unlabelled >= needed.unlabelled

    def _short_of_the_theorem(self, plan: Plan, n_rows: tuple[int, int], epsilon: float, delta: float) -> list[str]:
        """Return why the error bound does not hold with so many labelled and unlabelled rows; nothing if it does."""
        try:
            needed = self._rows_needed(epsilon, delta)
        except InvalidParameter as refusal:
            return [f"no number of rows is known to give the bound on the error: {refusal}"]
        if self._enough(needed, *n_rows):
            return []
        return [_fewer_than(needed)]

    def _cautions(self, plan: Plan, n_rows: tuple[int, int], epsilon: float, delta: float) -> tuple[Finding, ...]:
        """Return what the owner should hear of such a fit, from public facts alone, beside the error bound."""
        return ()

    def _listed_points(self) -> int | None:
        """Return how many points a `domain` lists to which the error bound is limited; None where none does."""
        return None

    # --- for everybody -----------------------------------------------------------------------------------------

    @own_switches()
    def rows_needed(self) -> RowsNeeded:
        """Return how many labelled and unlabelled rows the learner's theorem asks for, at its α, β, ε and δ.

        Raises InvalidParameter if a constructor argument is out of range.
        """
        return self._rows_needed(*self._target())

    def fit(self, X: Any, y: Any, *, groups: Any | None = None) -> Self:
        """Learn a concept that may be published.

        Parameters
        ----------
        X : (n_rows, n_features)
            Private rows, points of the class's domain.
        y : (n_rows,)
            0, 1, or ``UNLABELLED`` (−1). With `classes`: one of them, or missing (None, NaN) or ``UNLABELLED``.
        groups : None
            Refused: the guarantee is for one record.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument or a table is wrong; nothing was charged.
        LedgerMismatch
            If the ledger belongs to other data.
        BudgetExhausted
            If the ledger has too little left; nothing was charged.

        Warns
        -----
        QuorateWarning
            For each caution of :meth:`check` that is more than a note, with its code, before anything is charged.
        """
        with own_switches(), act():
            return self._fit(X, y, groups=groups)

    def _fit(
        self, X: Any, y: Any, *, groups: Any | None = None, hear: Callable[[Iterable[Finding]], None] = warn_of
    ) -> Self:
        """Do what :meth:`fit` does; `hear` is given the cautions before the charge."""
        target, rows = Budget(*self._target()), one_of("rows", self.rows, ("any", "theorem"))
        refuse_groups(type(self).__name__, groups)
        noise, _ = noise_and_key(self.unsafe_noise_seed)
        names = column_names(X)
        sample, plan, cautions = self._ready(X, y, rows)
        hear(cautions)
        short = _bound_cautions(cautions)

        key = fingerprint_key(ledger_location(self.ledger))
        with session(self.ledger, budget=target, seeded=noise.seeded) as ledger:
            concept = self._released(ledger, sample, plan, noise, key)
            guarantee = guarantee_of(
                ledger,
                plan.event,
                delta=delta_of(plan),
                mechanism=plan.told,
                seeded=noise.seeded,
                before="the concept was drawn",
                caveats=(*short, *self._bound_caveats()),
            )
        self.concept_ = concept
        self.guarantee_: Guarantee = guarantee
        self.plan_ = plan
        self.cautions_: tuple[Finding, ...] = cautions
        self.n_labels_used_ = plan.n_labels
        self.transcript_covered_ = self.transcript_covered
        self.classes_ = np.array([0, 1] if self.classes is None else list(two_classes(self.classes)))
        self.n_features_in_ = self._concept_class.n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        return self

    @own_switches()
    def check(self, n_labelled: int, n_unlabelled: int = 0) -> tuple[Finding, ...]:
        """Return what the owner should hear before a fit on so many rows; it sees no row and charges nothing.

        `n_labelled, n_unlabelled`: rows with and without a label; public. Raises InvalidParameter, DataRefused if an
        argument is wrong, or no fit of so many rows meets the target.
        """
        n_rows = count("n_labelled", n_labelled), count("n_unlabelled", n_unlabelled)
        return self._planned(*n_rows, *self._target())[1]

    @own_switches()
    def check_fit(
        self, X: Any, y: Any, *, budget: Budget | None = None, bound_to: str | None = None
    ) -> tuple[Finding, ...]:
        """Raise what :meth:`fit` would raise before it charges, and return what the owner should hear.

        Nothing is charged, written, drawn or learned. As of a fit, a refusal is told to the owner alone.

        `X`, `y`: as for :meth:`fit`. `budget`: what a ledger that is not there yet would be opened with; the learner's
        target by default. `bound_to`: the fingerprint that the ledger knows the rows by, where they were bound before
        they were cut into levels. Raises InvalidParameter, DataRefused, LedgerMismatch, BudgetExhausted: As :meth:`fit`
        does.
        """
        target, rows = Budget(*self._target()), one_of("rows", self.rows, ("any", "theorem"))
        noise, _ = noise_and_key(self.unsafe_noise_seed)
        sample, plan, cautions = self._ready(X, y, rows)
        key = fingerprint_key(ledger_location(self.ledger), begin=False)
        fingerprint = sample.fingerprint(key)
        charge = charge_of(self, plan, fingerprint, seeded=noise.seeded)
        with in_own_words(type(self).__name__):
            refuse_unaffordable(
                self.ledger, charge.next_on, budget=budget or target, fingerprint=bound_to or fingerprint
            )
        return cautions

    @own_switches()
    def predict(self, X: Any) -> NDArray[Any]:
        """Classify by the released concept, free for ever: ``(n_points,)`` of :attr:`classes_`, 0 and 1 by default."""
        if not hasattr(self, "concept_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X, y) first")
        refuse_other_columns(X, getattr(self, "feature_names_in_", None))
        codes = self.concept_.labels(self._concept_class.check(X)).astype(np.int64)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @own_switches()
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on rows with labels, all in :attr:`classes_`, or DataRefused: free, and for you alone."""
        predicted = self.predict(X)
        codes = encode_labels(y, self.classes_.tolist(), name="y", n_rows=len(predicted))
        return share_of_right(predicted == self.classes_[codes], sample_weight)

    _can_look: ClassVar[bool] = False  # it counts no cells: rows that it cannot use are refused

    def _check(self, X: Any, y: Any, *, public: Any | None, groups: Any | None) -> Any:
        """Return what :func:`quorate.check` says."""
        name = type(self).__name__
        if public is not None:
            raise InvalidParameter(f"{name} takes no public rows; leave out public=")
        if callable(y):
            raise InvalidParameter(f"check takes labels, and {name} is given a function that asks for them")
        refuse_groups(name, groups)
        epsilon, delta = self._target()
        sample = self._checked(X, y)
        plan, cautions = self._planned(sample.n_labelled, sample.n_unlabelled, epsilon, delta)
        return check_of_fit(name, sample, plan, cautions, epsilon, seeded=self.unsafe_noise_seed is not None)

    # --- the steps of a fit ------------------------------------------------------------------------------------

    def _target(self) -> tuple[float, float]:
        """Check the constructor's arguments; return (ε, δ), rounded down to what a ledger counts in."""
        self._check_arguments()
        if not self.pure:
            return floor_budget(self.epsilon, getattr(self, "delta", None))
        return floor_epsilon(self.epsilon), 0.0

    @property
    def _concept_class(self) -> ConceptClass:
        """What is learned."""
        if self.concepts is None:
            raise InvalidParameter("concepts must be given: the class that is learned; for example Thresholds(bits=16)")
        return cast("ConceptClass", self.concepts)

    def _ready(self, X: Any, y: Any, rows: str) -> tuple[Sample, Plan, tuple[Finding, ...]]:
        """Do everything of a fit that comes before its charge."""
        epsilon, delta = self._target()
        needed = self._rows_needed(epsilon, delta) if rows == "theorem" else None
        sample = self._checked(X, y)
        plan, cautions = self._planned(sample.n_labelled, sample.n_unlabelled, epsilon, delta)
        if needed is not None:
            short = _bound_cautions(cautions)
            if not self._enough(needed, sample.n_labelled, sample.n_unlabelled):
                short = [_fewer_than(needed)]
            if short:
                raise DataRefused(f'rows="theorem": {short[0]}. Change it, or take rows="any"')
        return sample, plan, cautions

    def _planned(
        self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float
    ) -> tuple[Plan, tuple[Finding, ...]]:
        """Calibrate to the target, and gather what the owner should hear: from public facts alone."""
        plan = self._plan(n_labelled, n_unlabelled, epsilon, delta)
        n_rows = n_labelled, n_unlabelled
        short = [*plan.cautions, *self._short_of_the_theorem(plan, n_rows, epsilon, delta)]
        missed = tuple(caution(BOUND_DOES_NOT_HOLD, Severity.NOTE, words) for words in short)
        listed = tuple(caution(BOUND_OF_LISTED_POINTS, Severity.NOTE, words) for words in self._bound_caveats())
        of_budget = budget_cautions(sum(n_rows), epsilon, delta, REPLACE_ONE_RECORD.unit)
        plan = replace(plan, caveats=(*plan.caveats, *self._bound_caveats()))
        return plan, (*missed, *listed, *self._cautions(plan, n_rows, epsilon, delta), *of_budget)

    def _bound_caveats(self) -> tuple[str, ...]:
        """Return what the error bound rests on and the guarantee does not: no part of what a fit is known by."""
        n_points = self._listed_points()
        if n_points is None:
            return ()
        listed = f"the {n_points:,} listed points of domain"
        return (f"the bound on the error is about rows that are among {listed}; a row elsewhere is not counted by it",)

    def _checked(self, X: Any, y: Any) -> Sample:
        sample = read_sample(self._concept_class, X, y, self.classes)
        if not sample.n_labelled + sample.n_unlabelled:
            raise DataRefused("X has no rows; a learner needs one at least")
        self._check_points(sample.points.reveal())
        return sample

    def _released(self, ledger: Ledger, sample: Sample, plan: Plan, noise: NoiseSource, key: Secret[bytes]) -> Concept:
        """Charge, then draw, then store; or give back what the same fit released before."""
        data_fingerprint = sample.fingerprint(key)
        ledger.bind(data_fingerprint)
        for reservation in charge_of(self, plan, data_fingerprint, seeded=noise.seeded).reservations(ledger):
            with uninterrupted():
                try:
                    drawn = draw(reservation, PURPOSE)
                except BudgetExhausted:
                    stored = [block.answers[0] for block in reservation.blocks(PURPOSE) if block.answers is not None]
                    concept = from_stored(stored[0], self._concept_class) if stored else None
                    if concept is not None:
                        return concept
                    continue  # an interrupted fit counts as given: another one is charged again
                return drawn.answer(
                    lambda drawn: self._learned(sample, drawn.noise(noise), plan),
                    record=lambda concept: [to_stored(concept)],
                )
        raise AssertionError("the attempts have no end")  # pragma: no cover

    def _learned(self, sample: Sample, noise: NoiseSource, plan: Plan) -> Concept:
        try:
            return self._learn(sample.points.reveal(), sample.labels.reveal(), noise, plan)
        except QuorateError as failure:
            failure.charged = "the fit was charged"
            raise


def _bound_cautions(cautions: Iterable[Finding]) -> list[str]:
    """What is said of an error bound that does not hold."""
    return [caution.words for caution in cautions if caution.code == BOUND_DOES_NOT_HOLD]


def _fewer_than(needed: RowsNeeded) -> str:
    return (
        f"{needed.theorem} asks for {needed.labelled:,} labelled and {needed.unlabelled:,} unlabelled rows at these "
        "parameters, and there were fewer: privacy holds, the bound on the error does not"
    )
