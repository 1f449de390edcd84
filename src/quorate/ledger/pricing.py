"""The price of a reservation: an accountant's figure, rounded up to whole units."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Required, TypedDict, Unpack

from quorate import accounting
from quorate.accounting.figures import several
from quorate.accounting.neighbouring import Neighbouring
from quorate.arguments import real
from quorate.errors import InvalidParameter, LedgerIntegrityError, UnsupportedEvent
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, BudgetUnits, Composition, float_up, units_up
from quorate.ledger.entries import Reserved
from quorate.ledger.fields import Json
from quorate.ledger.scope import GuaranteeScope, OtherCharge
from quorate.ledger.state import LedgerState


def price(
    event: accounting.Event, *, composition: Composition, delta: float | None, epsilon: float | None = None
) -> BudgetUnits:
    """Price ``event`` under a ledger's rule.

    `event`: all that the reservation may release. `composition`: the ledger's rule. `delta`: δ of this reservation, in
    [0, 1); needed under ``"sum"``, unused under ``"zcdp"``. `epsilon`: ε to charge under ``"sum"``; not below the
    event's price, which is charged where it is left out. Raises InvalidParameter if a value is out of range,
    ``epsilon`` is below the price, or the price is not finite.
    """
    if composition == "zcdp":
        return BudgetUnits(rho_e9=units_up(_finite(accounting.zcdp(event), "give the mechanism noise"), EPSILON_DIGITS))
    if delta is None:
        raise InvalidParameter("delta is needed under sums of (epsilon, delta); give the part of delta to charge")
    delta = real("delta", delta, at_least=0, below=1)
    priced = units_up(_finite(accounting.epsilon(event, delta), "give it a larger delta"), EPSILON_DIGITS)
    if epsilon is not None:
        own = units_up(real("epsilon", epsilon), EPSILON_DIGITS)
        if own < priced:
            raise InvalidParameter(f"epsilon must not be below the price of the event, got {epsilon!r}; leave it out")
        priced = own
    return BudgetUnits(epsilon_e9=priced, delta_e18=units_up(delta, DELTA_DIGITS))


class Request(TypedDict, total=False):
    """What :meth:`quorate.ledger.Ledger.reserve` takes beside the event."""

    delta: float | None
    purposes: Required[Mapping[str, int]]
    key: Required[str]
    epsilon: float | None
    client: str
    scope: GuaranteeScope | None
    charged_to: Mapping[str, int] | None
    also: tuple[Neighbouring, accounting.Event] | None


def priced_request(event: accounting.Event, *, composition: Composition, **request: Unpack[Request]) -> Reserved:
    """Return what a reservation would be recorded as, at the price of its event."""
    delta, also = request.get("delta"), request.get("also")
    amounts = price(event, composition=composition, delta=delta, epsilon=request.get("epsilon"))
    reserved = Reserved(
        event=Json.of(json.loads(event.to_json()), "event"),
        amounts=amounts,
        purposes=request["purposes"],
        client=request.get("client", "local"),
        key=request["key"],
        claim=request.get("scope"),
        paid_by=request.get("charged_to"),
        also=None if also is None else _priced_otherwise(*also, composition=composition, delta=delta),
    )
    check_parts(event, reserved.paid_by)
    return reserved


def _priced_otherwise(
    relation: Neighbouring, event: accounting.Event, *, composition: Composition, delta: float | None
) -> OtherCharge:
    return OtherCharge(
        neighbours=relation.stated,
        event=Json.of(json.loads(event.to_json()), "event"),
        amounts=price(event, composition=composition, delta=delta),
    )


def check_parts(event: accounting.Event, charged_to: Mapping[str, int] | None) -> None:
    """Refuse a purpose that is paid by a part which the event does not have.

    Raises InvalidParameter if the event is neither ``Composed`` nor ``Parallel``, or has fewer parts.
    """
    n_parts = len(event.events) if isinstance(event, accounting.Composed | accounting.Parallel) else 0
    if charged_to is not None and not all(part < n_parts for part in charged_to.values()):
        raise InvalidParameter(
            f"charged_to must name parts of a Composed event, from 0; this event has {n_parts} parts. Compose it"
        )


def check_prices(state: LedgerState) -> None:
    """Price every reservation of a ledger again; it must have been charged what its event costs.

    The hash chain shows that no entry was changed alone, and anybody can compute it anew; this shows that each amount
    belongs to its event, for both relations where an entry has two.

    Raises LedgerIntegrityError if a reservation was charged less than its event costs; or its event cannot be read or
    priced, or lacks the part that is to pay for a purpose: nothing of ours writes such an entry; UnsupportedEvent if an
    event is of a user's own kind, and nothing that was imported registered it. It is never taken for free.
    """
    composition: Composition = "zcdp" if state.budget is not None and state.budget.composition == "zcdp" else "sum"
    for sequence, reservation in state.reservations.items():
        reserved = reservation.reserved
        priced = [(reserved.event, reserved.amounts)]
        priced += [] if reserved.also is None else [(reserved.also.event, reserved.also.amounts)]
        try:
            check_parts(accounting.from_json(reserved.event.text), reserved.paid_by)
            cheaper = any(costs_more(event, recorded, composition=composition) for event, recorded in priced)
        except InvalidParameter as error:
            unknown = [kind for event, _ in priced for kind in accounting.unknown_kinds(event.text)]
            if unknown:
                raise UnsupportedEvent(
                    f"entry {sequence} of the ledger cannot be priced: nothing that was imported registered the event "
                    f"kind {unknown[0]!r}; import the module that calls register_event({unknown[0]!r}, ...), and "
                    "verify again: quorate ledger verify --import MODULE"
                ) from error
            raise LedgerIntegrityError(
                f"entry {sequence} of the ledger cannot be priced ({error}); verify it with the version that wrote it, "
                "or restore the newest ledger and anchor together"
            ) from error
        if cheaper:
            raise LedgerIntegrityError(
                f"entry {sequence} of the ledger was charged less than its event costs: it was written by other hands; "
                "nothing is released from it, restore the newest ledger and anchor together"
            )


def priced_again(n: int) -> str:
    """Say that so many charges were priced again."""
    were = "was priced again: it is not" if n == 1 else "were priced again: none is"
    return f"{several(n, 'charge')} {were} below what its event costs"


def costs_more(event: Json, charged: BudgetUnits, *, composition: Composition) -> bool:
    """Whether an event costs more than what was written beside it, priced again.

    One unit is forgiven, by which mathematics libraries may differ.
    """
    delta = float_up(charged.delta_e18, DELTA_DIGITS)
    priced = price(accounting.from_json(event.text), composition=composition, delta=delta)
    return priced.epsilon_e9 > charged.epsilon_e9 + 1 or priced.rho_e9 > charged.rho_e9 + 1


def _finite(value: float, advice: str) -> float:
    value = float(value)
    if not 0 <= value < math.inf:
        raise InvalidParameter(f"event has no finite price here; {advice}")
    return value
