"""What a run promises beside ε and δ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from quorate.accounting import Neighbouring
from quorate.accounting.figures import several
from quorate.accounting.neighbouring import N_IS_PUBLIC, ONE_RECORD, ROWS_ARE_PUBLIC, weakest
from quorate.ensemble import (
    ClassifierTeacher,
    Partition,
    PriorMatchingTeacher,
    change_of_one_teacher,
    not_looked_into,
    shared_shards,
)
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import InvalidParameter
from quorate.ledger import GuaranteeScope
from quorate.mechanisms import Mechanism, own_statement
from quorate.release.guarantee import ALL_OR_NONE, BY_POSITION
from quorate.voting.task import Task

LABELS_ONLY = (
    "the guarantee is for labels only: every feature, and the number of rows, is treated as public and is not protected"
)
TEACHER_IS_STATED = (
    "the teachers are code of the owner's own: that each reads nothing but its rows and public facts, and keeps "
    "nothing for another, is the owner's statement and was not checked"
)
HELD_IS_STATED = (
    "the models hold an object of the class {held}, which quorate cannot look into: that nothing in it was learned "
    "from private rows is the owner's statement and was not checked"
)
PARTITION_IS_STATED = (
    "the votes were made elsewhere: that each unit went to one teacher, and that teachers shared nothing, is the "
    "owner's statement and was not checked"
)

SITES_STATE = (
    "the votes were made at {sites}: that each {unit} of a site went to one teacher there, and that its teachers "
    "shared nothing, is that site's signed statement and was not checked"
)
OVERLAP_IS_STATED = (
    "the price is for one {unit} at {most} of the {n_sites} sites at most, also where another {unit}, at other sites, "
    "takes their place: {moved} votes on every query. That no {unit} is at more was promised by {who}, and was not "
    "checked"
)


def scope_of(task: Task) -> GuaranteeScope:
    """What a run of `task` promises."""
    said = (LABELS_ONLY,) if task.config.labels_only else ()
    read = {
        N_IS_PUBLIC: task.n_was_read and not task.config.labels_only,
        ROWS_ARE_PUBLIC: task.rows_were_read and not task.config.labels_only,
    }
    about = scope_about(task.neighbouring, caveats=tuple(caveat for caveat, was_read in read.items() if was_read))
    if task.neighbouring.change == "add-or-remove" and task.unit != ONE_RECORD:
        said = (*said, ALL_OR_NONE.format(unit=task.unit))
    own = _of_own(task.recipe.mechanism)
    rests_on = (*task.config.caveats, *_of_teacher(task))
    return GuaranteeScope.about(task.neighbouring, caveats=(*said, *about.caveats, *rests_on, *own))


def _of_teacher(task: Task) -> tuple[str, ...]:
    """What the isolation of teachers rests on, where quorate does not fit them itself or cannot look inside."""
    trainer = task.trainer
    if isinstance(trainer, ClassifierTeacher | PriorMatchingTeacher | TinyTeacher):
        held = not_looked_into(task.teacher, task.student.learner)
        return () if held is None else (HELD_IS_STATED.format(held=held),)
    stated = getattr(trainer, "caveats", ())
    return ((stated,) if isinstance(stated, str) else tuple(stated)) or (TEACHER_IS_STATED,)


def scope_of_rows(unit: str, partition: Partition) -> GuaranteeScope:
    """What follows where rows of one `unit` go to one teacher, by a `partition`."""
    shared_shards(partition)
    return scope_about(Neighbouring.of(change_of_one_teacher(partition), unit))


def scope_about(neighbouring: Neighbouring, *, caveats: tuple[str, ...] = ()) -> GuaranteeScope:
    """What follows for one relation, with the caveats of its unit before others."""
    of_unit = (BY_POSITION,) if neighbouring.unit == ONE_RECORD else ()
    return GuaranteeScope.about(neighbouring, caveats=(*of_unit, *caveats))


def scope_of_votes(unit: str, mechanism: Mechanism) -> GuaranteeScope:
    """What follows for votes made elsewhere that `mechanism` answers, if what their owner states is true."""
    relation = Neighbouring.of("add-remove-replace", unit, owner_states=True)
    return GuaranteeScope.about(relation, caveats=(PARTITION_IS_STATED, *_of_own(mechanism)))


REPLACED_IN_PLACE = (
    "{sites} of these states its part for replacing one {unit} alone: there, nobody comes or goes, and another "
    "{unit}'s data take the place of theirs"
)


def votes_moved(n_sites: int, most: int) -> int:
    """Return how many teachers one changed unit can change, where it may be at `most` of `n_sites` sites: that many who
    come or go, and twice as many who are replaced, since the other may be elsewhere; one teacher at each site.
    """
    return min(2 * most, n_sites)


def scope_of_sites(
    unit: str,
    mechanism: Mechanism,
    *,
    stated: Sequence[Literal["add-remove-replace", "replace"]],
    most: int,
    promised_by: str | None,
) -> GuaranteeScope:
    """What follows for votes of several sites, if what each states of its own is true: the whole holds for the weakest
    of the changes of one unit that are `stated`. `most`: at how many sites one unit may be, promised by whom, if not at
    all.
    """
    n_sites = len(stated)
    relation = weakest(Neighbouring.of(change, unit, owner_states=True) for change in stated)
    if relation is None:
        raise InvalidParameter("stated must be what each site states; there is no site")
    in_place = stated.count("replace")
    replaced = REPLACED_IN_PLACE.format(sites=in_place, unit=unit)
    of_sites = SITES_STATE.format(sites=several(n_sites, "site"), unit=unit)
    moved = votes_moved(n_sites, most)
    overlap = OVERLAP_IS_STATED.format(unit=unit, most=most, n_sites=n_sites, moved=moved, who=promised_by)
    caveats = (of_sites, *(replaced,) * (in_place > 0), *(overlap,) * (most < n_sites), *_of_own(mechanism))
    return GuaranteeScope.about(relation, caveats=caveats)


def _of_own(mechanism: Mechanism) -> tuple[str, ...]:
    """What is to be said where the mechanism is a user's own; it stays with the charge, for every later guarantee."""
    statement = own_statement(mechanism)
    return () if statement is None else (statement,)
