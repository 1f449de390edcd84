"""What a release promises beside ε and δ, and what everything on its ledger promises together."""

from __future__ import annotations

from dataclasses import replace

from quorate.ensemble import Partition, neighbours
from quorate.errors import PreconditionFailed
from quorate.ledger import Claim, Ledger
from quorate.ledger.claim import ANY_CHANGE, STATED
from quorate.run.task import SEEDED_CLIENT, Task

BY_POSITION = (
    "a record is known by its position: removed means blanked in place, added means appended; deleting a row and "
    "renumbering the rest is not covered"
)
N_IS_PUBLIC = "the number of private units was read off the data and is treated as public"
LABELS_ONLY = (
    "the guarantee is for labels only: every feature, and the number of rows, is treated as public and is not protected"
)
NOT_DURABLE = (
    "the ledger was kept in memory: nothing durable was recorded, and what other fits on the same data cost is not "
    "counted"
)
SEEDED = "the noise was seeded: this run is reproducible, therefore not private, and no guarantee holds"
SEEDED_EARLIER = (
    "an earlier run on the same ledger had seeded noise: what that run wrote is reproducible and has no guarantee"
)
EARLIER = "includes what earlier runs on the same data spent from the same ledger"
NOT_CLAIMED = (
    "part of what was charged to the ledger does not say whose data it protects and against which change; that it "
    "protects the same is the owner's statement"
)
PARTITION_IS_STATED = (
    "the votes were made elsewhere: that each unit went to one teacher, and that teachers shared nothing, is the "
    "owner's statement and was not checked"
)


def claim_of(task: Task) -> Claim:
    """What a run of `task` promises."""
    made = claim_of_rows(task.unit, task.partition, n_was_read=task.n_was_read and not task.labels_only)
    said = (LABELS_ONLY,) if task.labels_only else ()
    return replace(made, caveats=(*said, *made.caveats, *task.caveats))


def claim_of_rows(unit: str, partition: Partition, *, n_was_read: bool = False) -> Claim:
    """What follows where rows of one `unit` go to one teacher, by a `partition`.

    Examples
    --------
    >>> claim_of_rows("person", "balanced")
    Claim(unit='person', neighbours='replace one person', caveats=())
    """
    caveats = [BY_POSITION] if unit == "record" else []
    return Claim(
        unit=unit,
        neighbours=f"{neighbours(partition).removesuffix(' only')} one {unit}",
        caveats=(*caveats, N_IS_PUBLIC) if n_was_read else tuple(caveats),
    )


def claim_of_votes(unit: str) -> Claim:
    """What follows for votes made elsewhere, if what their owner states is true.

    Examples
    --------
    >>> claim_of_votes("patient").neighbours
    'add, remove or replace one patient, as the owner states'
    """
    return Claim(unit=unit, neighbours=f"{ANY_CHANGE} {unit}{STATED}", caveats=(PARTITION_IS_STATED,))


def claimed(ledger: Ledger, *, seeded: bool) -> Claim:
    """What everything that was charged to a ledger promises together, with every caveat.

    Parameters
    ----------
    ledger : Ledger
        With one reservation at least that states its claim.
    seeded : bool
        Whether the run that asks had seeded noise.

    Raises
    ------
    PreconditionFailed
        If no reservation says whose data it protects.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget
    >>> ledger = Ledger(budget=Budget(2.0, 1e-5))
    >>> for key, partition in (("first", "balanced"), ("second", "hash")):
    ...     charge = {"purposes": {"label": 1}, "key": key, "claim": claim_of_rows("person", partition)}
    ...     _ = ledger.reserve(PureDP(1.0), delta=0, **charge)
    >>> claimed(ledger, seeded=False).neighbours
    'replace one person'
    """
    together, reservations = ledger.claim, ledger.reservations()
    if together is None:
        raise PreconditionFailed("nothing on this ledger says whose data it protects; no guarantee can be told")
    caveats = list(together.caveats)
    if seeded:
        caveats.insert(0, SEEDED)
    elif any(each.client == SEEDED_CLIENT for each in reservations):
        caveats.insert(0, SEEDED_EARLIER)
    if any(each.claim is None for each in reservations):
        caveats.append(NOT_CLAIMED)
    if not ledger.durable:
        caveats.append(NOT_DURABLE)
    if len(reservations) > 1:
        caveats.append(EARLIER)
    return Claim(unit=together.unit, neighbours=together.neighbours, caveats=tuple(caveats))
