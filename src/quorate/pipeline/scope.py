"""What a run promises beside ε and δ."""

from __future__ import annotations

from quorate.accounting import Neighbouring
from quorate.accounting.neighbouring import ONE_RECORD
from quorate.ensemble import Partition, change_of_one_teacher
from quorate.ledger import Claim
from quorate.pipeline.task import Task
from quorate.release.guarantee import N_IS_PUBLIC

BY_POSITION = (
    "a record is known by its position: removed means blanked in place, added means appended; deleting a row and "
    "renumbering the rest is not covered"
)
LABELS_ONLY = (
    "the guarantee is for labels only: every feature, and the number of rows, is treated as public and is not protected"
)
PARTITION_IS_STATED = (
    "the votes were made elsewhere: that each unit went to one teacher, and that teachers shared nothing, is the "
    "owner's statement and was not checked"
)


def claim_of(task: Task) -> Claim:
    """What a run of `task` promises."""
    said = (LABELS_ONLY,) if task.labels_only else ()
    made = claim_about(task.neighbouring, n_was_read=task.n_was_read and not task.labels_only)
    return Claim.about(task.neighbouring, caveats=(*said, *made.caveats, *task.caveats))


def claim_of_rows(unit: str, partition: Partition) -> Claim:
    """What follows where rows of one `unit` go to one teacher, by a `partition`.

    Examples
    --------
    >>> claim_of_rows("person", "balanced")
    Claim(unit='person', neighbours='replace one person', caveats=())
    """
    return claim_about(Neighbouring.of(change_of_one_teacher(partition), unit))


def claim_about(neighbouring: Neighbouring, *, n_was_read: bool = False) -> Claim:
    """What follows for one relation, with the caveats of its unit."""
    caveats = (BY_POSITION,) if neighbouring.unit == ONE_RECORD else ()
    return Claim.about(neighbouring, caveats=(*caveats, N_IS_PUBLIC) if n_was_read else caveats)


def claim_of_votes(unit: str) -> Claim:
    """What follows for votes made elsewhere, if what their owner states is true.

    Examples
    --------
    >>> claim_of_votes("patient").neighbours
    'add, remove or replace one patient, as the owner states'
    """
    relation = Neighbouring.of("add-remove-replace", unit, owner_states=True)
    return Claim.about(relation, caveats=(PARTITION_IS_STATED,))
