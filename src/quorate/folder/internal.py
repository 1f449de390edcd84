"""Facts for the owner's eyes: how far teachers agree, and what became of single ones. Never published."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from quorate.accounting.attacker import OF_BUDGETS
from quorate.data import n_rows, take
from quorate.ensemble import (
    agreement,
    average_stability,
    high_margin_curve,
    margins,
    soft_label_quality,
    train_teachers,
)
from quorate.folder.loaded import LoadedRun
from quorate.folder.notes import private_notes
from quorate.report import AgreementFacts, InternalFacts, QualityFacts, StabilityFacts, TeacherFacts
from quorate.run.stage_store import FolderStages
from quorate.types import IntArray, Secret, derive
from quorate.voting.flow import shards_of, votes
from quorate.voting.shard_rows import learning
from quorate.voting.task import Task

EXCHANGES = 10  # pairs of teachers trained to estimate stability
SHOWN_POINTS = 200  # of a running sum or a curve; more cannot be seen
EXACT = "Margins, agreement and shard sizes are exact: whoever reads this page reads private data."
BETA = 0.05  # share of teachers that may be off in a strong soft label


def internal_facts(batch: LoadedRun) -> Secret[InternalFacts]:
    """Gather what only the owner may see of a run, from its stored votes where they fit.

    One model is trained on all private rows beside the teachers, to compare, and a few teachers are trained again with
    one record exchanged.

    Returns: for the internal edition of the report alone.
    """
    task = batch.task
    _, counts = votes(task, task.queries, FolderStages(batch.folder.private), lambda stage, done, total: None)
    facts: dict[str, Any] = {"teachers": tuple(_teachers(task)), "stability": _stability(task)}
    if task.recipe.mechanism.takes == "scores":
        facts["quality"] = _quality(counts)
    else:
        facts["margins"] = tuple(sorted(Counter(margins(counts).reveal().tolist()).items()))
        curve = high_margin_curve(counts, task.recipe.n_teachers).reveal()
        facts["high_margin"] = tuple(zip(curve.xi.tolist(), curve.nu.tolist(), strict=True))
        facts["agreement"] = _agreement(task, counts)
    about = private_notes(batch.settings.data, task)
    tips = [caution.words for caution in task.recipe.cautions if caution.code not in OF_BUDGETS]
    words = (*tips, *(note.words for note in about.reveal()))
    return Secret(InternalFacts(**facts, notes=(EXACT, *(f"{line[0].upper()}{line[1:]}." for line in words))))


def _agreement(task: Task, counts: Secret[IntArray]) -> AgreementFacts | None:
    private = task.inputs.private.reveal()
    alone = train_teachers(
        task.classifier,
        task.views.teacher(private.X),
        private.codes,
        Secret(np.zeros(len(private.codes), dtype=np.int64)),
        n_teachers=1,
        n_classes=task.n_classes,
        key=Secret(derive(task.key, "one model of all rows")),
        n_jobs=1,
    )
    reference = alone.voters.reveal()[0].vote(task.views.teacher(take(task.inputs.public, task.queries)))
    if (reference < 0).any():
        return None  # the model failed on all rows; nothing to compare with
    agreed = agreement(counts, reference, task.recipe.n_teachers).reveal()
    points = np.unique(np.linspace(0, len(reference) - 1, min(SHOWN_POINTS, len(reference))).astype(int))
    ours, theirs = agreed.cumulated
    return AgreementFacts(
        plurality=agreed.plurality,
        correlation=None if math.isnan(agreed.correlation) else agreed.correlation,
        cumulated=tuple(zip(ours[points].tolist(), theirs[points].tolist(), strict=True)),
    )


def _stability(task: Task) -> StabilityFacts | None:
    private = task.inputs.private.reveal()
    n_rows_each = n_rows(private.X) // task.recipe.n_teachers
    if n_rows_each < 1 or n_rows_each >= n_rows(private.X):
        return None
    try:
        stability = average_stability(
            task.classifier,
            task.views.teacher(private.X),
            private.codes,
            task.views.teacher(take(task.inputs.public, task.queries[:SHOWN_POINTS])),
            n_rows_each=n_rows_each,
            n_classes=task.n_classes,
            exchanges=EXCHANGES,
            rng=np.random.default_rng(int.from_bytes(derive(task.key, "stability"), "big")),
        ).reveal()
    except Exception:  # noqa: BLE001 - the teacher's own code: without its scores there is no such fact
        return None
    return StabilityFacts(
        mean=stability.mean, standard_error=stability.standard_error, n_records=n_rows_each, exchanges=EXCHANGES
    )


def _quality(scores: Secret[Any]) -> QualityFacts:
    quality = soft_label_quality(scores, beta=BETA).reveal()
    known = ~np.isnan(quality.weak)
    return QualityFacts(
        beta=BETA,
        weak=tuple(np.sort(quality.weak[known]).tolist()),
        strong=tuple(np.sort(quality.strong[known]).tolist()),
    )


def _teachers(task: Task) -> list[TeacherFacts]:
    private, assigned = task.inputs.private.reveal(), learning(task, shards_of(task))
    shards, facts = assigned.reveal(), []
    for teacher in range(task.number_of_shards(assigned)):
        codes = private.codes[shards == teacher]
        kinds = len(np.unique(codes))
        status = "abstains: no rows" if kinds == 0 else "votes its only class" if kinds == 1 else "trained"
        facts.append(TeacherFacts(index=teacher, n_records=len(codes), status=status))
    return facts
