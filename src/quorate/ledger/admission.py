"""What a request asks of a ledger in a given state: a new entry, or the one that answers it already. Pure.

This is where a retry is told from a new request. The rules that every entry must keep are the state's own.
"""

from __future__ import annotations

from dataclasses import replace

from quorate.errors import InvalidParameter, LedgerMismatch, MechanismClosed, PreconditionFailed
from quorate.ledger.budget import Budget
from quorate.ledger.entries import Bound, Drawn, Opened, Reserved, Stored
from quorate.ledger.json_values import Json
from quorate.ledger.rules import KEY_USED, STAGE_IS_OVER, check_reserved, check_same_request
from quorate.ledger.scope import combined_scope
from quorate.ledger.state import LedgerState


def admit_opening(state: LedgerState, opened: Opened) -> Opened | int:
    """Open a ledger, or return its first entry where another server opened it just now, with the same budget.

    Raises LedgerMismatch it was opened with another budget.
    """
    if not state.head.sequence:
        return opened
    check_budget(state, opened.budget)
    return 1


def admit_binding(state: LedgerState, fingerprint: str) -> Bound | int:
    """Bind the ledger, or return the newest entry where it is bound to this data set already.

    Raises LedgerMismatch it is bound to another one (raised by the rule for the entry).
    """
    content = Bound(fingerprint=fingerprint)
    return state.head.sequence if content.fingerprint in state.fingerprints else content


def admit_reservation(state: LedgerState, content: Reserved, *, stated: bool) -> Reserved | int:
    """Charge a reservation, or return the one that this key of this client made by the same request.

    `state`: the ledger so far. `content`: the reservation, priced. `stated`: whether its ε was stated by the caller,
    and so must be that of the first request. Raises PreconditionFailed the key was used for another request.
    """
    use = state.keys.get((content.client, content.key))
    if use is None:
        return content
    check_same_request(use, content.kind, content.body_hash)
    [sequence] = use.entries
    first = state.reservations[sequence].reserved
    if first.claim is not None and content.claim is not None:
        combined_scope([first.claim, content.claim])  # says what is wrong where units differ
    same_claim = first.claim == content.claim or (first.claim is not None and first.claim.covers(content.claim))
    if (stated and first.amounts != content.amounts) or not same_claim:
        raise PreconditionFailed(KEY_USED)
    return sequence


def check_reservation(state: LedgerState, content: Reserved, *, stated: bool) -> None:
    """Raise what would be raised if a reservation were made; the arguments are those of :func:`admit_reservation`."""
    if isinstance(admit_reservation(state, content, stated=stated), Reserved):
        check_reserved(state, content)


def admit_draw(state: LedgerState, content: Drawn, *, after: int | None = None) -> Drawn | int:
    """Count a block as given, or return the block that holds the stored answer to the same request.

    ``content.first`` is filled in. A request whose earlier blocks hold no stored answer is counted again.

    `state`: the ledger so far. `content`: the block. `after`: where the block goes on in a stage of a sparse vector:
    the newest block of that stage that the caller knows; None where it knows of none. Raises PreconditionFailed the key
    was used for another request; MechanismClosed somebody else went on in the stage.
    """
    if content.key is not None and (use := state.keys.get((content.client, content.key))) is not None:
        check_same_request(use, content.kind, content.body_hash)
        if (block := state.stored_under(use)) is not None:
            return block.sequence
    reservation = state.reservations.get(content.reservation)
    if reservation is None:
        raise InvalidParameter("a block must be drawn from a reservation of this ledger")
    reservation.remaining(content.purpose)  # refuses a purpose that was not reserved
    if content.stage is not None and reservation.stages.get(content.stage) != after:
        raise MechanismClosed(STAGE_IS_OVER)
    return replace(content, first=reservation.drawn[content.purpose])


def admit_answers(state: LedgerState, block: int, answers: Json) -> Stored | int:
    """Store the answers of a block, or return the entry that stored the very same ones.

    Raises PreconditionFailed the block has other answers already (raised by the rule for the entry).
    """
    known = state.blocks.get(block)
    if known is not None and known.stored is not None and known.answers == answers:
        return known.stored
    return Stored(block=block, answers=answers)


def check_budget(state: LedgerState, budget: Budget | None) -> None:
    """Refuse to open a ledger with another budget than its own.

    Raises LedgerMismatch the budgets differ.
    """
    if budget is not None and state.budget is not None and not budget.same_as(state.budget):
        own = state.budget
        remedy = "put it back: a budget is never lowered, and its composition is fixed"
        if may_be_raised(own, budget):
            remedy = (
                "put it back, or, where more is to be spent on the same data, raise it with a reason "
                "(Ledger.raise_budget, or quorate ledger open FOLDER --raise-budget REASON)"
            )
        raise LedgerMismatch(
            f"the ledger has the budget ε={own.epsilon:g}, δ={own.delta:g} ({own.composition}), got "
            f"ε={budget.epsilon:g}, δ={budget.delta:g} ({budget.composition}); {remedy}",
            budget=(own.epsilon, own.delta),
        )


def may_be_raised(own: Budget, wanted: Budget) -> bool:
    """Whether a ledger with one budget could be raised to another: no amount below, and the same composition.

    Examples
    --------
    >>> may_be_raised(Budget(1.0, 1e-5), Budget(2.0, 1e-5)), may_be_raised(Budget(1.0, 1e-5), Budget(2.0, 1e-6))
    (True, False)
    """
    above = wanted.epsilon >= own.epsilon and wanted.delta >= own.delta
    return above and wanted.composition == own.composition
