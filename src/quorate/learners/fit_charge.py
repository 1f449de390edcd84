"""The charge of a fit: one key for each attempt, so that a finished fit is never charged twice.

**What is public about a fit before it begins: its calibrated parameters, and the rows that its theorem asks for.**
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count as numbers
from typing import Any, Final

from quorate.accounting import ApproxDP, Neighbouring, PureDP
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.errors import BudgetExhausted, named
from quorate.learners.inner_learner import is_learner, without_ledger
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.release import Charge
from quorate.release.model_digest import described
from quorate.stored_names import stored_as


@stored_as("quorate.learners.plan.Plan")
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The calibrated parameters of one fit: public, and fixed before any private row is used.

    Learners add fields of their own.

    Parameters
    ----------
    event : PureDP or ApproxDP
        Price of the whole fit, as proven; what the ledger is charged.
    told : str
        What is released and how, in a phrase, for ``guarantee_.mechanism``.
    n_labels : int
        How many labels the learner will look at.
    caveats : tuple of str
        What else the guarantee rests on; empty for most.
    cautions : tuple of str
        Why the error bound does not hold here, if it does not; privacy holds all the same.

    Examples
    --------
    >>> Plan(event=PureDP(1.0), told="one of 7 concepts", n_labels=100).caveats
    ()
    """

    event: PureDP | ApproxDP
    told: str
    n_labels: int
    caveats: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def delta_of(plan: Plan) -> float:
    """Return δ of a plan's event.

    Examples
    --------
    >>> delta_of(Plan(event=ApproxDP(1.0, 1e-6), told="one of 7 concepts", n_labels=100))
    1e-06
    """
    return plan.event.delta if isinstance(plan.event, ApproxDP) else 0.0


@stored_as("quorate.learners.plan.RowsNeeded")
@dataclass(frozen=True, kw_only=True, slots=True)
class RowsNeeded:
    """How many rows a learner's theorem asks for.

    Parameters
    ----------
    labelled, unlabelled : int
        Rows with and without a label.
    theorem : str
        Whose statement it is, for messages: "BNS15 Theorem 3.3".

    Examples
    --------
    >>> RowsNeeded(labelled=500, unlabelled=20_000, theorem="BNS15 Theorem 3.3").labelled
    500
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
    """What a fit asks of a ledger.

    `learner`: its name, for messages. `plan`: what is paid for. `key`: what all attempts at this fit have in common.
    `scope`: whose data it protects, against which change. `seeded`: whether the noise is seeded.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget
    >>> plan = Plan(event=PureDP(0.5), told="one of 7 concepts", n_labels=9)
    >>> scope = GuaranteeScope(unit="record", neighbours="replace one record")
    >>> charge = FitCharge(learner="NoisyThreshold", plan=plan, key="learner", scope=scope, seeded=False)
    >>> ledger = Ledger(budget=Budget(1.0, 0.0))
    >>> next(charge.reservations(ledger)).key, charge.next_on(ledger).key
    ('learner 0', 'learner 0')
    """

    learner: str
    plan: Plan
    key: str
    scope: GuaranteeScope
    seeded: bool

    def reservations(self, ledger: Ledger) -> Iterator[Reservation]:
        """Charge one attempt after the other; one that was charged before is found again."""
        for attempt in numbers():
            with in_own_words(self.learner):
                reservation = self._attempt(attempt).reserve(ledger)
            yield reservation

    def next_on(self, ledger: Ledger) -> Charge:
        """Return the charge that a fit would end with now: the first that is not drawn from yet, or has its answer."""
        return next(each for each in map(self._attempt, numbers()) if _open_or_answered(each.find(ledger)))

    def begun(self, ledger: Ledger) -> bool:
        """Whether a ledger was charged for this fit before."""
        return self._attempt(0).find(ledger) is not None

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
    left_out = {name for name in learner.left_out_where_none if getattr(learner, name, None) is None}
    params = {
        name: without_ledger(value) if is_learner(value) else value
        for name, value in learner.get_params(deep=False).items()
        if name not in {"ledger", "classes"} | left_out
    }
    of_the_bound = learner._bound_caveats()
    paid = replace(plan, caveats=tuple(each for each in plan.caveats if each not in of_the_bound))
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
            f"{each.unit}={each.requested:g}, and the ledger has {max(0.0, each.limit - each.spent):g} left of "
            f"{each.limit:g}"
            for each in refusal.all
        )
        lower = " and ".join(named("delta" if each.unit == "δ" else "epsilon") for each in refusal.all)
        raise refusal.reworded(
            f"{learner}.fit costs {costs}",
            advice=f"lower the learner's {lower}, or raise the ledger's budget with a reason",
        ) from None
