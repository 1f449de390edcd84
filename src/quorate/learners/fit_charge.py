"""What a fit is to its ledger: its plan, its charge, its concept as it is stored, and what a check says of it.

A charge has one key for each attempt, so that a finished fit is never charged twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import count as numbers
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from quorate.accounting import ApproxDP, Neighbouring, PureDP
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.errors import BudgetExhausted, named
from quorate.learners.concepts.finite import FiniteClass, Member
from quorate.learners.concepts.protocol import Concept, ConceptClass
from quorate.learners.sample import Sample
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.release import Charge
from quorate.release.model_digest import described
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.findings import Finding
    from quorate.run.method import CheckResult

Learner = TypeVar("Learner", bound=BaseEstimator)


@stored_as("quorate.learners.plan.Plan")
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The calibrated parameters of one fit: public, and fixed before any private row is used.

    Learners add fields of their own.

    `event`: price of the whole fit, as proven; what the ledger is charged.
    `told`: what is released and how, in a phrase, for ``guarantee_.mechanism``.
    `n_labels`: how many labels the learner will look at.
    `caveats`: what else the guarantee rests on; empty for most.
    `cautions`: why the error bound does not hold here, if it does not; privacy holds all the same.
    """

    event: PureDP | ApproxDP
    told: str
    n_labels: int
    caveats: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def delta_of(plan: Plan) -> float:
    """Return δ of a plan's event."""
    return plan.event.delta if isinstance(plan.event, ApproxDP) else 0.0


@stored_as("quorate.learners.plan.RowsNeeded")
@dataclass(frozen=True, kw_only=True, slots=True)
class RowsNeeded:
    """How many rows a learner's theorem asks for.

    `labelled`, `unlabelled`: rows with and without a label. `theorem`: whose statement it is, for messages: "BNS15
    Theorem 3.3".
    """

    labelled: int
    unlabelled: int
    theorem: str


#: What a fit reserves one answer for: its concept.
PURPOSE: Final = "learner"

REPLACE_ONE_RECORD: Final = Neighbouring.of("replace", "record")
LABELLED_IS_PUBLIC: Final = (
    "which records are labelled is public: a labelled record is replaced by a labelled one, an unlabelled record by an "
    "unlabelled one"
)


@stored_as("quorate.learners.fit_charge.FitCharge")
@dataclass(frozen=True, kw_only=True, slots=True)
class FitCharge:
    """What a fit asks of a ledger; `key` is what all attempts have in common, `scope` whose data it protects."""

    learner: str
    plan: Plan
    key: str
    scope: GuaranteeScope
    seeded: bool

    def reservations(self, ledger: Ledger) -> Iterator[Reservation]:
        """Charge one attempt after the other; one that was charged before is given again."""
        for attempt in numbers():
            with in_own_words(self.learner):
                reservation = self._attempt(attempt).reserve(ledger)
            yield reservation

    def next_on(self, ledger: Ledger) -> Charge:
        """Return the charge that a fit would end with now: the first that is not drawn from yet, or has its answer."""
        return next(charge for charge in map(self._attempt, numbers()) if _open_or_answered(charge.find(ledger)))

    def _attempt(self, number: int) -> Charge:
        return Charge(
            event=self.plan.event,
            delta=delta_of(self.plan),
            purposes={PURPOSE: 1},
            key=f"{self.key} {number}",
            scope=self.scope,
            seeded=self.seeded,
        )


def charge_of(learner: Any, plan: Plan, data_fingerprint: str, *, seeded: bool) -> FitCharge:
    """Return the charge of a learner's fit by a plan, under a key of all that tells it from other fits.

    What the error bound alone rests on is not a part of it, nor of what the ledger is told.
    """
    params = {
        name: without_ledger(value) if is_learner(value) else value
        for name, value in learner.get_params(deep=False).items()
        if name not in {"ledger", "classes"} and not (name in learner.left_out_where_none and value is None)
    }
    of_the_bound = learner._bound_caveats()
    paid = replace(plan, caveats=tuple(caveat for caveat in plan.caveats if caveat not in of_the_bound))
    parts = type(learner).__qualname__, described(params), described(paid), data_fingerprint, learner._occasion()
    return FitCharge(
        learner=type(learner).__name__,
        plan=paid,
        key=f"learner {blake2b(repr(parts).encode(), digest_size=16).hexdigest()}",
        scope=GuaranteeScope.about(REPLACE_ONE_RECORD, caveats=(N_IS_PUBLIC, LABELLED_IS_PUBLIC, *paid.caveats)),
        seeded=seeded,
    )


def _open_or_answered(reservation: Reservation | None) -> bool:
    if reservation is None:
        return True
    blocks = reservation.blocks(PURPOSE)
    return not blocks or any(block.answers is not None for block in blocks)


@contextmanager
def in_own_words(learner: str) -> Iterator[None]:
    """Have a budget's refusal say which fit it was and what can be changed."""
    try:
        yield
    except BudgetExhausted as refusal:
        costs = ", and ".join(
            f"{amount.unit}={amount.requested:g}, and the ledger has {max(0.0, amount.limit - amount.spent):g} left of "
            f"{amount.limit:g}"
            for amount in refusal.all
        )
        lower = " and ".join(named("delta" if amount.unit == "δ" else "epsilon") for amount in refusal.all)
        raise refusal.reworded(
            f"{learner}.fit costs {costs}",
            advice=f"lower the learner's {lower}, or raise the ledger's budget with a reason",
        ) from None


def without_ledger(learner: Learner) -> Learner:
    """Return a learner that is run inside another one without its ledger, seed, `rows`, and an earlier fit."""
    params = {
        name: without_ledger(value) if is_learner(value) else value
        for name, value in learner.get_params(deep=False).items()
    }
    unused = {"ledger": None, "unsafe_noise_seed": None, "rows": "any", "classes": None}
    inner: Learner = type(learner)(**{name: unused.get(name, value) for name, value in params.items()})
    return inner


def inner_at(learner: Learner, **wanted: Any) -> Learner:
    """Return a learner as it is run inside another one, with those of the wanted arguments that it has."""
    known = learner.get_params(deep=False)
    inner: Learner = without_ledger(learner).set_params(**{name: wanted[name] for name in wanted if name in known})
    return inner


def is_learner(value: Any) -> bool:
    """Whether a parameter is a private learner itself."""
    return isinstance(value, BaseEstimator) and hasattr(value, "_learn")


def check_of_fit(
    learner: str, sample: Sample, plan: Plan, cautions: Iterable[Finding], epsilon: float, *, seeded: bool
) -> CheckResult:
    """Say what a fit by `plan` would do and cost at `epsilon`; whether its ledger has enough left is not looked at."""
    from quorate.accounting.figures import at_most, several  # here: a fit needs none of it
    from quorate.run.method import CheckResult

    n = sample.n_labelled + sample.n_unlabelled
    cautions = tuple(caution for caution in cautions if caution.applies)
    delta = delta_of(plan)
    spent = f"ε = {at_most(epsilon, 6)}, δ = {at_most(delta, 6)} for {REPLACE_ONE_RECORD.any_one}"
    return CheckResult(
        found={
            "method": "private learner",
            "learner": learner,
            "n_labelled": sample.n_labelled,
            "n_unlabelled": sample.n_unlabelled,
            "n_labels_used": plan.n_labels,
            "released": plan.told,
            "epsilon": epsilon,
            "delta": delta,
            "unit": REPLACE_ONE_RECORD.unit,
            "neighbours": REPLACE_ONE_RECORD.stated,
            "seeded": seeded,
            "notes": [],
            "cautions": [caution.tree() for caution in cautions],
        },
        steps=(
            (
                "learn",
                f"from {several(n, 'row')}, {sample.n_labelled:,} of them labelled; {plan.n_labels:,} labels are used",
            ),
            ("release", plan.told),
            ("spend", spent),
        ),
        cautions=cautions,
    )


_KIND, _FIELDS, _WHOLE = "concept", "fields", "whole"
_LARGEST = 2**53  # whole numbers beyond it are written as text: other readers of JSON take them for floats


def to_stored(concept: Concept) -> Any:
    """Return a JSON value that tells a concept, whole where it is a plain value of this package.

    A classifier of a finite class is told by its place in the list, any other by its type alone: it cannot be read
    back.
    """
    try:
        return _written(concept)
    except TypeError:
        return {_KIND: type(concept).__name__}


def from_stored(value: Any, concepts: ConceptClass) -> Concept | None:
    """Return the concept of a class that :func:`to_stored` wrote; None where it was not written whole."""
    if not isinstance(value, dict) or _KIND not in value:
        return None
    try:
        return _read(value, concepts)  # type: ignore[no-any-return]
    except (TypeError, ValueError, KeyError, IndexError):
        return None


@cache
def _kinds() -> dict[str, type]:
    """The concepts of this package by their names: a ledger names no module, so reading one imports nothing."""
    from quorate.learners import concepts

    values = {name: getattr(concepts, name) for name in concepts.__all__}
    return {name: kind for name, kind in values.items() if isinstance(kind, type) and is_dataclass(kind)}


def _written(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is float:
        return value
    if isinstance(value, np.generic):
        return _written(value.item())
    if type(value) is int:
        return value if abs(value) <= _LARGEST else {_WHOLE: str(value)}
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    if isinstance(value, Member):
        return {_KIND: Member.__name__, _FIELDS: {"index": value.index}}
    if is_dataclass(value) and _kinds().get(type(value).__name__) is type(value):
        return {
            _KIND: type(value).__name__,
            _FIELDS: {part.name: _written(getattr(value, part.name)) for part in fields(value) if part.init},
        }
    raise TypeError(type(value).__name__)


def _read(value: Any, concepts: ConceptClass) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, concepts) for item in value)
    if not isinstance(value, dict):
        return value
    if _WHOLE in value:
        return int(value[_WHOLE])
    kind = _kinds()[value[_KIND]]
    fields_of_it = {name: _read(item, concepts) for name, item in value[_FIELDS].items()}
    if kind is Member:
        if not isinstance(concepts, FiniteClass):
            raise TypeError(_KIND)
        return Member(fields_of_it["index"], concepts.classifiers[fields_of_it["index"]])
    return kind(**fields_of_it)
