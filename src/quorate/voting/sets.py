"""Units of a run by votes that are held out for prediction sets: no teacher is trained on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.ensemble import Partition, unit_places
from quorate.errors import InvalidParameter, named
from quorate.labelling import PrivateLimit
from quorate.labelling.private_sets import PLACES
from quorate.ledger import Reservation
from quorate.run.held_out import SetsPlan, plan_sets, refuse_without_probabilities
from quorate.run.public_facts import PublicFacts
from quorate.students import Student
from quorate.types import IntArray, Secret
from quorate.voting.config import RunConfig
from quorate.voting.shard_rows import rows_of_student
from quorate.voting.task import Task


def facts_with_sets(config: RunConfig, facts: PublicFacts, student: Student) -> tuple[PublicFacts, SetsPlan | None]:
    """Return the facts of the units that learn, and what is held out; None where nothing is. Raises InvalidParameter as
    :func:`~quorate.run.held_out.plan_sets`; or if a pool is drawn, or the student has no probabilities.
    """
    plan = plan_sets(
        config.calibration_share,
        config.coverage,
        n_records=None if config.n_records is None else facts.n_records,
        budget=(facts.epsilon, facts.delta),
        composition=config.composition,
        unit=facts.unit,
    )
    if plan is None:
        return facts, None
    if config.schema is not None:
        raise InvalidParameter(
            f"{named('calibration_share')} of a run by votes needs public rows, and here a pool is drawn; leave it "
            "out, or take the direct method"
        )
    refuse_without_probabilities(student.learner)
    rows = None if facts.n_rows is None else max(1, round(facts.n_rows * (1 - plan.share)))
    return replace(facts, n_records=plan.n_learning, n_rows=rows), replace(plan, n_rows=facts.n_rows)


def refuse_counted_shards(plan: SetsPlan | None, partition: Partition) -> None:
    """Refuse a partition that counts units where some are held out; raises InvalidParameter."""
    if plan is not None and partition != "hash":
        raise InvalidParameter(
            f"{named('calibration_share')} needs shards by a keyed hash of the unit, and those of this run are "
            f"{named('partition', partition)}; give {named('partition', 'hash')} and a number of teachers"
        )


def limit_of(task: Task, student: Any, reservation: Reservation) -> PrivateLimit | None:
    """Return the limit of prediction sets; None where no units were held out, or it was lost."""
    if task.sets is None:
        return None
    plan = task.sets
    with unwarned():  # as an error, a warning would end what is charged by now
        return plan.limit_of(reservation, task.noise, lambda: held_out_places(task, student))


def held_out_places(task: Task, student: Any) -> Secret[IntArray]:
    """Count how badly the published student does on the units that are held out: ``(PLACES,)`` units by their place."""
    assert task.held is not None  # noqa: S101 - the caller's condition
    codes = task.held.codes.reveal()
    rows = np.flatnonzero(codes >= 0)
    return unit_places(
        task.views.student.unwrapped(student),
        rows_of_student(task, rows),
        codes[rows],
        [row.to_bytes(8, "big") for row in rows.tolist()],
        classes=task.inputs.classes,
        n_places=PLACES,
        key=task.key,  # each row is a unit of its own here
        n_jobs=task.n_jobs,
    )


def learning(task: Task, shards: Secret[IntArray]) -> Secret[IntArray]:
    """Return the shard of each row, with one behind the last teacher for rows of units that are held out."""
    if task.held is None:
        return shards
    return Secret(np.where(task.held.held.reveal(), task.recipe.n_teachers, shards.reveal()))
