"""Facts for the owner's eyes: margins of the votes, and what became of single teachers. Never published."""

from __future__ import annotations

from collections import Counter

import numpy as np

from quorate.ensemble import partition_rows
from quorate.report import InternalFacts, TeacherFacts
from quorate.run.batch import Batch
from quorate.run.journey import votes
from quorate.run.stages import FolderStages
from quorate.types import Secret


def internal_facts(batch: Batch) -> Secret[InternalFacts]:
    """Gather margins and per-teacher facts of a run, from its stored votes where they fit.

    Returns
    -------
    Secret[InternalFacts]
        For the internal edition of the report alone.
    """
    task = batch.task
    _, counts = votes(task, task.queries, FolderStages(batch.folder.private), lambda stage, done, total: None)
    largest = np.sort(counts.reveal(), axis=1)
    gaps = Counter((largest[:, -1] - largest[:, -2]).tolist())
    return Secret(
        InternalFacts(
            margins=tuple(sorted(gaps.items())),
            teachers=tuple(_teachers(batch)),
            notes=("Margins and shard sizes are exact: whoever reads this page reads private data.",),
        )
    )


def _teachers(batch: Batch) -> list[TeacherFacts]:
    private, n_teachers = batch.task.inputs.private.reveal(), batch.task.recipe.n_teachers
    shards = partition_rows(private.slots, n_teachers, batch.task.key, partition=batch.task.partition).reveal()
    told = []
    for teacher in range(n_teachers):
        codes = private.codes[shards == teacher]
        kinds = len(np.unique(codes))
        status = "abstains: no rows" if kinds == 0 else "votes its only class" if kinds == 1 else "trained"
        told.append(TeacherFacts(index=teacher, n_records=len(codes), status=status))
    return told
