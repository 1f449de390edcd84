"""The charge of a fit: one key for each attempt, so that a finished fit is never charged twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count as numbers
from typing import Any, Final

from quorate.accounting import Neighbouring
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.errors import BudgetExhausted
from quorate.learners.inner_learner import is_learner, without_ledger
from quorate.learners.plan import Plan, delta_of
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.release import Charge
from quorate.release.model_digest import described
from quorate.stored_names import stored_as

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
        lower = " and ".join("delta" if each.unit == "δ" else "epsilon" for each in refusal.all)
        raise refusal.reworded(
            f"{learner}.fit costs {costs}; lower the learner's {lower}, or raise the ledger's budget with a reason"
        ) from None
