"""What a run promises beside ε and δ."""

from __future__ import annotations

from quorate.accounting import Neighbouring
from quorate.accounting.neighbouring import ONE_RECORD
from quorate.ensemble import Partition, change_of_one_teacher
from quorate.ledger import GuaranteeScope
from quorate.mechanisms import Mechanism, own_statement
from quorate.pipeline.task import Task
from quorate.release.guarantee import BY_POSITION, N_IS_PUBLIC, ROWS_ARE_PUBLIC

LABELS_ONLY = (
    "the guarantee is for labels only: every feature, and the number of rows, is treated as public and is not protected"
)
PARTITION_IS_STATED = (
    "the votes were made elsewhere: that each unit went to one teacher, and that teachers shared nothing, is the "
    "owner's statement and was not checked"
)


def scope_of(task: Task) -> GuaranteeScope:
    """What a run of `task` promises."""
    said = (LABELS_ONLY,) if task.labels_only else ()
    read = {
        N_IS_PUBLIC: task.n_was_read and not task.labels_only,
        ROWS_ARE_PUBLIC: task.rows_were_read and not task.labels_only,
    }
    made = scope_about(task.neighbouring, caveats=tuple(caveat for caveat, was_read in read.items() if was_read))
    own = _of_own(task.recipe.mechanism)
    return GuaranteeScope.about(task.neighbouring, caveats=(*said, *made.caveats, *task.caveats, *own))


def scope_of_rows(unit: str, partition: Partition) -> GuaranteeScope:
    """What follows where rows of one `unit` go to one teacher, by a `partition`.

    Examples
    --------
    >>> scope_of_rows("person", "balanced")
    GuaranteeScope(unit='person', neighbours='replace one person', caveats=())
    """
    return scope_about(Neighbouring.of(change_of_one_teacher(partition), unit))


def scope_about(neighbouring: Neighbouring, *, caveats: tuple[str, ...] = ()) -> GuaranteeScope:
    """What follows for one relation, with the caveats of its unit before others."""
    of_unit = (BY_POSITION,) if neighbouring.unit == ONE_RECORD else ()
    return GuaranteeScope.about(neighbouring, caveats=(*of_unit, *caveats))


def scope_of_votes(unit: str, mechanism: Mechanism) -> GuaranteeScope:
    """What follows for votes made elsewhere that `mechanism` answers, if what their owner states is true.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> scope_of_votes("patient", NoisyCounts(sigma=5.0)).neighbours
    'add, remove or replace one patient, as the owner states'
    """
    relation = Neighbouring.of("add-remove-replace", unit, owner_states=True)
    return GuaranteeScope.about(relation, caveats=(PARTITION_IS_STATED, *_of_own(mechanism)))


def _of_own(mechanism: Mechanism) -> tuple[str, ...]:
    """What is to be said where the mechanism is a user's own; it stays with the charge, for every later guarantee."""
    statement = own_statement(mechanism)
    return () if statement is None else (statement,)
