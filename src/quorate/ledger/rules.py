"""Every rule that an entry must keep, and which entry a request asks for. Pure.

:func:`apply` is the one place where rules are checked: a live ledger admits an entry by it, and verification
replays the whole chain through it. A quota is the most answers that one client is ever given, and no budget: what all
clients are given together is bounded by the cap alone, so clients who collude learn no more than the cap allows.

A request asks for a new entry, or for the one that answers it already: the functions ``admit_…`` tell a retry from a
new request.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerIntegrityError,
    LedgerMismatch,
    MechanismClosed,
    PreconditionFailed,
    QuotaExhausted,
)
from quorate.ledger.budget import Budget, BudgetUnits, check_fits, comes_to
from quorate.ledger.entries import (
    FORMAT,
    Bound,
    BudgetRaised,
    Closed,
    Drawn,
    Entry,
    Opened,
    QuotaSet,
    Reserved,
    SameRelease,
    Started,
    Stored,
)
from quorate.ledger.fields import Json
from quorate.ledger.scope import combined_scope
from quorate.ledger.state import KeyUse, LedgerState, ReservationState


@dataclass(frozen=True, slots=True)
class Quota:
    """What a client may be given, and what it was given.

    `answers`: the most it is ever given; None where the cap alone bounds it. `drawn`: what was drawn for it, answers
    lost in a crash included. `removed`: whether it had a quota that was taken away.
    """

    answers: int | None
    drawn: int
    removed: bool = field(default=False, repr=False)

    @property
    def left(self) -> int | None:
        """Answers left; None where the cap alone bounds it. A quota that was lowered below what was drawn has 0."""
        return None if self.answers is None else max(0, self.answers - self.drawn)


def quota_of(state: LedgerState, client: str) -> Quota:
    """Return the quota of a client."""
    return Quota(state.quotas.get(client), state.drawn_by.get(client, 0), client in state.unbound)


def check_quota(state: LedgerState, client: str, count: int, at_most: int | None = None) -> None:
    """Refuse, with QuotaExhausted, more answers than a client's quota has left, or than are left of `at_most`."""
    quota = quota_of(state, client)
    if at_most is not None and (quota.answers is None or at_most < quota.answers):
        quota = replace(quota, answers=at_most)
    if quota.answers is None or quota.left is None or count <= quota.left:
        return
    raise QuotaExhausted(
        f"{count:,} new rows for the client {client!r}, {quota.left:,} of its quota of {quota.answers:,} answers left; "
        "ask for fewer, have the owner raise the quota, or ask the student, which answers for free",
        client=client,
        spent=quota.drawn,
        requested=count,
        limit=quota.answers,
    )


KEY_USED = "the idempotency key was used for another request of this client; take a new key"
KEY_ANSWERED = "the request under this key was answered; its stored answer must be returned"
STAGE_IS_OVER = "this stage of the sparse vector is over: its noisy threshold was used elsewhere, or an answer was lost"
OTHER_DATA = (
    "the ledger is bound to another data set; if the data were changed but are the same release, or are the same and "
    "were read in another way when it was begun (docs/reference/cells.md), say so with a reason "
    "(Ledger.same_release, or quorate ledger open FOLDER --same-release REASON)"
)


def apply(state: LedgerState, entry: Entry) -> None:
    """Add the next entry to ``state``, or raise and leave it as it was.

    Raises LedgerIntegrityError if the entry does not follow the newest one; BudgetExhausted, QuotaExhausted,
    InvalidParameter, LedgerMismatch, MechanismClosed or PreconditionFailed if what the entry says breaks a rule.
    """
    head = state.head
    if (entry.sequence, entry.previous) != (head.sequence + 1, head.hash):
        raise LedgerIntegrityError(f"entry {entry.sequence} does not follow entry {head.sequence}")
    _check_session(state, entry)
    match entry.content:
        case Opened() as opened:
            _check_opened(opened)
        case Started():
            pass  # whoever may write may start
        case Bound():
            if state.fingerprints:
                raise LedgerMismatch(OTHER_DATA, other_data=True)
        case SameRelease() as same:
            _check_same_release(state, same)
        case BudgetRaised() as raised:
            _check_raised(state, raised)
        case QuotaSet() as quota:
            _check_quota_set(state, quota)
        case Reserved() as reserved:
            check_reserved(state, reserved)
        case Drawn() as drawn:
            _check_drawn(state, drawn)
        case Stored() as stored:
            _check_stored(state, stored, entry.session)
        case Closed():
            _check_open(state)
        case other:
            raise NotImplementedError(other.kind)
    state.take(entry)


def _check_session(state: LedgerState, entry: Entry) -> None:
    opens = isinstance(entry.content, Opened)
    if opens != (state.budget is None):
        raise PreconditionFailed("a ledger must begin with its only entry of kind 'opened'")
    if opens or isinstance(entry.content, Started):
        if entry.session != entry.sequence:
            raise PreconditionFailed("an entry that begins a session must carry its own number")
    elif entry.session not in state.sessions:
        raise PreconditionFailed("an entry must belong to a session that was started")


def _check_open(state: LedgerState) -> None:
    if state.closed:
        raise PreconditionFailed("the release was closed: nothing more is reserved from this ledger")


def _check_opened(opened: Opened) -> None:
    if opened.format != FORMAT:
        raise PreconditionFailed(f"the ledger has format {opened.format}, this version reads {FORMAT}")
    if not comes_to(opened.budget, opened.limit):
        raise PreconditionFailed("the limit must be what the budget comes to")


def _check_same_release(state: LedgerState, same: SameRelease) -> None:
    _check_open(state)
    if not state.fingerprints:
        raise PreconditionFailed("the ledger is bound to no data set yet; bind it first")
    if same.fingerprint in state.fingerprints:
        raise PreconditionFailed("data of this fingerprint are the same release already; nothing needs to be said")


def _check_raised(state: LedgerState, raised: BudgetRaised) -> None:
    _check_open(state)
    new, old = raised.budget, state.budget
    if old is None or new.composition != old.composition:
        raise LedgerMismatch("composition is fixed when a ledger is opened; raise epsilon or delta only")
    if new.epsilon < old.epsilon or new.delta < old.delta or new.same_as(old):
        raise InvalidParameter("a raised budget must have epsilon and delta not below the one before, and one above")
    if not comes_to(new, raised.limit) or not state.limit.within(raised.limit):
        raise PreconditionFailed("the limit must be what the budget comes to, and not below the one before")


def check_reserved(state: LedgerState, reserved: Reserved) -> None:
    """Refuse a reservation that the release, the key or the budget does not allow."""
    _check_open(state)
    if (reserved.client, reserved.key) in state.keys:
        raise PreconditionFailed(KEY_USED)
    _check_kind_of_amounts(state.budget, reserved.amounts)
    if reserved.paid_by is not None and reserved.paid_by.keys() != reserved.purposes.keys():
        raise InvalidParameter("charged_to must name exactly the purposes; say for each which part pays for it")
    if reserved.also is not None:
        reserved.also.check_beside(reserved.claim)
        _check_kind_of_amounts(state.budget, reserved.also.amounts)
    if state.scope is not None and reserved.claim is not None:
        combined_scope([state.scope, reserved.claim])  # refuses what cannot be told in one sentence with the rest
    check_fits(reserved.amounts, spent=state.spent, limit=state.limit)


def _check_kind_of_amounts(budget: Budget | None, amounts: BudgetUnits) -> None:
    foreign = (
        amounts.rho_e9 if budget is None or budget.composition == "sum" else amounts.epsilon_e9 + amounts.delta_e18
    )
    if foreign:
        raise InvalidParameter("amounts must be of the ledger's own composition")


def _check_drawn(state: LedgerState, drawn: Drawn) -> None:
    reservation = state.reservations.get(drawn.reservation)
    if reservation is None:
        raise PreconditionFailed("a block must be drawn from a reservation of this ledger")
    check_answers_left(reservation, drawn.purpose, drawn.count)
    if drawn.first != reservation.drawn[drawn.purpose]:
        raise PreconditionFailed("a block must begin where the one before it ended")
    newest = None if drawn.stage is None else reservation.stages.get(drawn.stage)
    if newest is not None and state.blocks[newest].stored is None:
        raise MechanismClosed(STAGE_IS_OVER)  # a threshold meets one block at a time, and none after a lost one
    _check_parts(drawn)
    for client, key, body_hash in drawn.uses():
        if (use := state.keys.get((client, key))) is not None:
            check_same_request(use, drawn.kind, body_hash)
            if state.stored_under(use) is not None:
                raise PreconditionFailed(KEY_ANSWERED)
    for client, answers in drawn.answers_by_client().items():
        check_quota(state, client, answers)


def check_answers_left(reservation: ReservationState, purpose: str, count: int) -> None:
    """Refuse more answers than a reservation has left for a purpose."""
    if (left := reservation.remaining(purpose)) >= count:
        return
    total = reservation.reserved.purposes[purpose]
    message = f"{count:,} of these rows are new, and {left:,} answers are left for {purpose!r}; " + (
        f"ask about {left:,} new rows at most" if left else "ask no new row, or the student, which answers for free"
    )
    raise BudgetExhausted(message, spent=total - left, requested=count, limit=total, unit="answers")


def _check_parts(drawn: Drawn) -> None:
    if drawn.parts is None:
        return
    if drawn.key is not None or drawn.body is not None:
        raise InvalidParameter("a block of several clients has a key and a body in each part, and none of its own")
    if sum(part.count for part in drawn.parts) != drawn.count:
        raise InvalidParameter("the parts of a block must have as many answers together as the block")


def _check_quota_set(state: LedgerState, entry: QuotaSet) -> None:
    if entry.quota == state.quotas.get(entry.client):
        raise PreconditionFailed("the client has this quota already, or none to take away; nothing needs to be said")


def check_same_request(use: KeyUse, kind: str, body_hash: str) -> None:
    """Refuse a request under a key that was used for another one."""
    if (use.kind, use.body_hash) != (kind, body_hash):
        raise PreconditionFailed(KEY_USED)


def _check_stored(state: LedgerState, stored: Stored, session: int) -> None:
    block = state.blocks.get(stored.block)
    if block is None:
        raise PreconditionFailed("answers must be stored for a block of this ledger")
    if block.stored is not None:
        raise PreconditionFailed("the block has its answers already; draw another one")
    if block.session != session:
        raise PreconditionFailed("the block was drawn by a process that ended; its answers count as declined")
    answers = stored.answers.value
    if isinstance(answers, list) and len(answers) != block.drawn.count:
        raise InvalidParameter(f"answers must be {block.drawn.count}, as many as were drawn, got {len(answers)}")


def admit_opening(state: LedgerState, opened: Opened) -> Opened | int:
    """Open a ledger, or return its first entry where another server opened it just now, with the same budget."""
    if not state.head.sequence:
        return opened
    check_budget(state, opened.budget)
    return 1


def admit_binding(state: LedgerState, fingerprint: str) -> Bound | int:
    """Bind the ledger, or return the newest entry where it is bound to this data set already.

    Raises LedgerMismatch if it is bound to another one (raised by the rule for the entry).
    """
    content = Bound(fingerprint=fingerprint)
    return state.head.sequence if content.fingerprint in state.fingerprints else content


def admit_reservation(state: LedgerState, content: Reserved, *, stated: bool) -> Reserved | int:
    """Charge a priced reservation, or return the one that this key of this client made by the same request.

    `stated`: whether its ε was stated by the caller, and so must be that of the first request. Raises
    PreconditionFailed if the key was used for another request.
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
    the newest block of that stage that the caller knows; None where it knows of none. Raises PreconditionFailed if the
    key was used for another request; MechanismClosed if somebody else went on in the stage.
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

    Raises PreconditionFailed if the block has other answers already (raised by the rule for the entry).
    """
    known = state.blocks.get(block)
    if known is not None and known.stored is not None and known.answers == answers:
        return known.stored
    return Stored(block=block, answers=answers)


def check_budget(state: LedgerState, budget: Budget | None) -> None:
    """Refuse, with LedgerMismatch, to open a ledger with another budget than its own."""
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
    """Whether a ledger with one budget could be raised to another: no amount below, and the same composition."""
    above = wanted.epsilon >= own.epsilon and wanted.delta >= own.delta
    return above and wanted.composition == own.composition
