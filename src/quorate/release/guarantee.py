"""The guarantee: what everything on one ledger cost, and what it promises together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quorate.accounting import Guarantee
from quorate.accounting.guarantee import SEEDED, SEEDED_EARLIER, OtherRelation
from quorate.errors import PreconditionFailed
from quorate.ledger import GuaranteeScope, Ledger
from quorate.ledger.scope import relation_that_holds
from quorate.release.charge import SEEDED_CLIENT

if TYPE_CHECKING:
    from quorate.accounting import Event

NOT_DURABLE = (
    "the ledger was kept in memory: nothing durable was recorded, and what other fits on the same data cost is not "
    "counted"
)
EARLIER = "ε and δ include what earlier runs on the same data spent from the same ledger"
ALL_OR_NONE = (
    "adding or removing one {unit} is about all of their rows; a change of some of them counts as replacing the {unit}"
)
BY_POSITION = (
    "a record is known by its position: removed means blanked in place, added means appended; deleting a row and "
    "renumbering the rest is not covered"
)
#: The same where the guarantee is for replacing one alone.
REPLACED_IN_PLACE = (
    "a record is known by its position: another one stands in the same row; a table that is sorted anew, or numbered "
    "anew, is not covered"
)
OWN_EVENTS = (
    "the price of {kinds} follows a rule of the owner's own: that the rule is true of what was released is the owner's "
    "statement and was not proved"
)
OWN_STORE = (
    "the ledger was kept by {store}, a store of the owner's own: that a charge is on stable storage before anything is "
    "drawn, and that none is ever lost, is the owner's statement and was not proved"
)
NOT_CLAIMED = (
    "part of what was charged to the ledger does not say whose data it protects and against which change; that it "
    "protects the same is the owner's statement"
)


def guarantee_of(
    ledger: Ledger,
    event: Event,
    *,
    delta: float,
    mechanism: str,
    seeded: bool,
    before: str = "the first answer",
    caveats: tuple[str, ...] = (),
) -> Guarantee:
    """Say what everything that was charged to a ledger guarantees together.

    `ledger`: with the charge of the release. `event`: what the release was charged for; `delta`: δ at which it was
    priced. `mechanism`: what the release draws, in words. `seeded`: whether its noise was seeded. `before`: what had
    not happened yet when the price was paid. `caveats`: what is to be said of this release beside what the ledger says
    of all. Raises PreconditionFailed if no reservation says whose data it protects.
    """
    from importlib.metadata import version  # here, and so are the rules of price: few commands make a guarantee

    from quorate.accounting import explain

    epsilon, spent_delta = spent_of(ledger)
    scope = ledger_scope(ledger, seeded=seeded)
    _, rule = explain(event, delta)
    several = len(ledger.reservations()) > 1
    return Guarantee(
        epsilon=epsilon,
        delta=spent_delta,
        unit=scope.unit,
        neighbours=scope.neighbours,
        mechanism=f"{mechanism}{'; and what earlier runs released from the same ledger' * several}",
        accounting=f"{rule}, priced before {before} and composed by {ledger.budget.composition}"
        f"{' with what earlier runs were charged' * several}; quorate {version('quorate')}",
        caveats=(*scope.caveats, *caveats),
        also=spent_otherwise(ledger),
    )


def spent_otherwise(ledger: Ledger) -> tuple[OtherRelation, ...]:
    """Return ε and δ charged so far for the other of the two relations, where every charge tells it."""
    known = ledger.spent_otherwise
    if known is None:
        return ()
    relation, spent = known
    if spent.epsilon is None or spent.delta is None:
        return ()
    return (OtherRelation(neighbours=relation.stated, epsilon=spent.epsilon, delta=spent.delta),)


def spent_of(ledger: Ledger) -> tuple[float, float]:
    """ε and δ charged so far, rounded up; a total that is not known counts as infinite."""
    spent = ledger.spent
    return (
        math.inf if spent.epsilon is None else spent.epsilon,
        math.inf if spent.delta is None else spent.delta,
    )


def left_of(ledger: Ledger) -> tuple[float, float]:
    """ε and δ that are left, rounded down; of a ledger that counts ρ, what its budget is above what was charged."""
    left, budget, (epsilon, delta) = ledger.left, ledger.budget, spent_of(ledger)
    return (
        max(0.0, budget.epsilon - epsilon) if left.epsilon is None else left.epsilon,
        max(0.0, budget.delta - delta) if left.delta is None else left.delta,
    )


def weakest_that_holds(scope: GuaranteeScope, *, both: bool) -> GuaranteeScope:
    """Return the scope of what was charged, where its entries say more than holds, or more than need be said. `both`:
    whether a figure for the other relation is told, too.

    Where the number of units or of rows was read, it chose the number of teachers, and so the noise: data sets with one
    unit more or less may get another. What is protected then is replacing one unit. Entries that speak of adding and
    removing there stay as they are, and a guarantee does not repeat them.
    """
    relation = relation_that_holds(scope)
    caveats = scope.caveats
    if relation.change.startswith("replace") and not both:  # nothing is promised of one that is removed or added
        placed = (REPLACED_IN_PLACE,) * (relation.change == "replace" and BY_POSITION in caveats)
        caveats = (*placed, *(caveat for caveat in caveats if caveat != BY_POSITION))
    return GuaranteeScope.about(relation, caveats=caveats)


def ledger_scope(ledger: Ledger, *, seeded: bool) -> GuaranteeScope:
    """Return the scope of the guarantee of everything that was charged to a ledger, with every caveat.

    Raises PreconditionFailed if no reservation says whose data it protects.
    """
    scope, reservations = ledger.scope, ledger.reservations()
    if scope is None:
        raise PreconditionFailed("nothing on this ledger says whose data it protects; no guarantee can be told")
    scope = weakest_that_holds(scope, both=bool(spent_otherwise(ledger)))
    caveats = list(scope.caveats)
    if seeded:
        caveats.insert(0, SEEDED)
    elif any(reservation.client == SEEDED_CLIENT for reservation in reservations):
        caveats.insert(0, SEEDED_EARLIER)
    if any(reservation.scope is None for reservation in reservations):
        caveats.append(NOT_CLAIMED)
    if not ledger.durable:
        caveats.append(NOT_DURABLE)
    if ledger.own_store is not None:
        caveats.append(OWN_STORE.format(store=ledger.own_store))
    if len(reservations) > 1:
        caveats.append(EARLIER)
    own = sorted({kind for reservation in reservations for kind in reservation.own_kinds})
    if own:
        caveats.append(OWN_EVENTS.format(kinds=", ".join(own)))
    return GuaranteeScope(unit=scope.unit, neighbours=scope.neighbours, caveats=tuple(caveats))
