"""Votes for a number, whole: what an estimator does with them, what a check says of them, and what a report does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from quorate.accounting import epsilon
from quorate.accounting.attacker import budget_cautions
from quorate.accounting.figures import at_most, several
from quorate.accounting.neighbouring import ONE_RECORD
from quorate.ensemble import check_unfitted
from quorate.ensemble.linear.tiny import TinyRegressor
from quorate.findings import Finding, Outcome
from quorate.ledger import Ledger
from quorate.mechanisms import Schedule
from quorate.mechanisms.noisy_mean import NoisyMeans
from quorate.release.charge import LABEL, TARGET_COUNT
from quorate.report import AnswerCounts, Choice, Facts
from quorate.report.facts import name_of as function_name
from quorate.report.spending import part_of
from quorate.run.checks import checks_of_cells, facts_of_cells
from quorate.run.facts import SHOWN_EPSILONS, RunMetadata
from quorate.run.located import COUNTING
from quorate.run.method import Method, unit_line
from quorate.run.pool_cautions import few_rows_caution, pool_cautions, unit_caution
from quorate.voting.claims import shards_are_right
from quorate.voting.number_flow import NumberResult, model_of, promised_by, released_words, run_votes
from quorate.voting.numbers import OF_COUNTS, PARTITION, NumberRelease, NumberTask, prepare_numbers


def _check(task: NumberTask) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Say what a task would do and cost."""
    price = epsilon(task.event, task.delta)
    facts: dict[str, Any] = {
        "method": "votes",
        "n_teachers": task.n_teachers,
        "n_queries": task.n_queries,
        "n_public": task.n_public,
        "n_units": task.n_declared,
        "n_coordinates": task.coordinates.n_directions,
        "mechanism": type(task.mechanism).__name__,
        "sigma": task.mechanism.sigma,
        "cells": None if task.counts is None else task.counts.cells,
        "noise": task.noise_sd * task.target_range.width / 2,
        "released_by": released_words(task),
        "epsilon": task.epsilon,
        "delta": task.delta,
        "price": price,
        "unit": task.unit,
        "neighbours": task.neighbouring.stated,
        "target_range": list(task.target_range.ends),
        "seeded": task.noise.seeded,
        "n_is_treated_as_public": task.n_was_read,
        "why": [*_held(task), *task.why],
        **({} if task.held is None else {"held_out": task.held.plan.facts}),
    }
    counting = []
    if task.counts is not None:
        words = f"the part of the range that teachers predict in, by {COUNTING} noisy counts of targets"
        counting = [("choose", f"{words} in {task.counts.cells} cells")]
    teachers = several(task.n_teachers, "teacher") + ("" if task.tiny else f" ({task.teacher_name})")
    return facts, [
        *unit_line(task.neighbouring),
        ("train", f"{teachers}; {task.neighbouring.changing} changes exactly one teacher"),
        *counting,
        ("release", f"{several(task.n_queries, 'noisy mean')}, one a public row; every prediction is free"),
        ("by", released_words(task)),
        *([] if task.held is None else [task.held.plan.step(task.unit)]),
        ("spend", f"ε = {at_most(price, 6)}, δ = {at_most(task.delta, 6)} for {task.neighbouring.any_one}"),
    ]


def _nothing(task: NumberTask, **charged: Any) -> NumberResult:
    """Return the published model before the first answer, with weights of 0."""
    model = model_of(task, np.zeros(1 + task.coordinates.n_directions))
    return NumberResult(task=task, model=model, answered=0, part=task.target_range, **charged)


def _facts(task: NumberTask, result: NumberResult, ledger: Ledger, metadata: RunMetadata) -> Facts:
    """Gather everything that a report says."""
    share = 0.0 if task.counts is None else OF_COUNTS
    how = {"mechanism": type(task.mechanism).__name__, "sigma": task.mechanism.sigma, "share": 1.0 - share}
    labels = part_of(result.reservation, LABEL, **how, reserved=task.n_queries)
    parts, recipe = [labels], [*_held(task), *task.why]
    if task.counts is not None:
        if result.answered:
            low, high = result.part.ends
            recipe.append(f"by these counts, predictions of teachers were cut off at {low:,.6g} and {high:,.6g}")
        how = {"mechanism": type(task.counts).__name__, "sigma": task.counts.sigma, "share": share}
        parts = [part_of(result.reservation, TARGET_COUNT, **how, reserved=COUNTING), labels]
    return facts_of_cells(
        task,
        result,
        ledger,
        metadata,
        promised=promised_by(task, ledger),
        n_units=task.n_declared,
        setup={
            "n_teachers": task.n_teachers,
            "partition": PARTITION,
            "n_public": task.n_public,
            "n_queries": task.n_queries,
            "teacher": task.teacher_name,
            "mechanism": type(task.mechanism).__name__,
            "recipe": tuple(recipe),
        },
        parts=parts,
        answers=AnswerCounts(
            asked=labels.asked, per_class=(), interrupted=labels.interrupted, released=labels.answered
        ),
        choices=_choices(task),
        checks=_checks(task, ledger, metadata),
    )


def _cautions(
    task: NumberTask, *, pool_name: str = "the public rows", left_out: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return what the owner should hear before the budget is spent, from public facts alone."""
    learns = "they alone say how columns are scaled, and on them alone the teachers predict"
    cautions = (
        *budget_cautions(task.n_declared, task.epsilon, task.delta, task.unit),
        *((unit_caution(task.schema.pool, left_out=left_out),) if task.unit == ONE_RECORD else ()),
        *pool_cautions(task.schema.pool, pool_name, kinds=task.schema.kinds),
        few_rows_caution(task.n_public, 0, learns=learns),
    )
    return tuple(caution for caution in cautions if caution.applies)


def _held(task: NumberTask) -> tuple[str, ...]:
    return () if task.held is None else (task.held.plan.why(task.unit),)


def _choices(task: NumberTask) -> tuple[Choice, ...]:
    """The same teachers and queries at other budgets: the noise that each would take."""
    rows, at_once = [], isinstance(task.mechanism, NoisyMeans)
    for value in sorted({*SHOWN_EPSILONS, task.epsilon}):
        chosen, budget = value == task.epsilon, Schedule(answers=task.n_queries, epsilon=value, delta=task.delta)
        means = task.mechanism if chosen else NumberRelease.calibrated(budget, task.n_units, at_once=at_once).means
        rows.append(Choice(epsilon=value, sigma=means.sigma, n_answers=task.n_queries, chosen=chosen))
    return tuple(rows)


def _checks(task: NumberTask, ledger: Ledger, metadata: RunMetadata) -> tuple[Finding, ...]:
    if isinstance(task.teacher, TinyRegressor):
        words = "Teachers and student are quorate's own. Each teacher is solved from its own shard"
    else:
        check_unfitted(task.teacher.estimator)  # refuses, so that who gets further has passed
        words = "No step of the teacher was fitted when it came. Each teacher fits its own on its own shard"
    preprocessing = Finding(
        code="preprocessing",
        words="Did quorate fit nothing on the pooled private rows?",
        outcome=Outcome.PASSED,
        evidence=f"{words}; encoder and coordinates are functions of public rows.",
        ran=function_name(check_unfitted),
    )
    return checks_of_cells(
        task, ledger, metadata, learning=shards_are_right(task.neighbouring, PARTITION), preprocessing=preprocessing
    )


#: Teachers predict a number, their noisy mean is released, a student is published.
NUMBER_VOTES: Final = Method(
    prepare=prepare_numbers,
    check=_check,
    cautions=_cautions,
    charge=NumberTask.charge_on,
    nothing=_nothing,
    go=run_votes,
    promised=promised_by,
    facts=_facts,
)
