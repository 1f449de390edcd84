"""What a check asks of every run, and how it is answered; and what it says beside: that may not be what was meant.

Some of what it says beside depends on the private table, as a refusal may. That goes to the owner's terminal and to the
internal edition of the report, and nowhere else: into no JSON, no log, no warning and nothing that is public. None of
it holds a count or a value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from quorate.accounting.figures import plural, several
from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, ONE_RECORD, Neighbouring
from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.data.rows import Rows, n_rows
from quorate.data.unit_ids import as_unit_keys, count_units
from quorate.ensemble import (
    ChatTeacher,
    ClassifierTeacher,
    Partition,
    PriorMatchingTeacher,
    check_partition,
    check_unfitted,
    not_looked_into,
)
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import DataRefused, InvalidParameter, PrivacyWarning, keyword, named
from quorate.findings import Finding, Outcome, frames_of_ours, not_covered, note, warn_of
from quorate.labelling.active import Strategy
from quorate.ledger import Ledger
from quorate.mechanisms import own_statement
from quorate.report.facts import name_of
from quorate.run.cautions import shown_rows_caution
from quorate.run.checks import AUDIT_NOT_RUN, chain, classes, noise, seed
from quorate.run.look import CountedCells, Look, compared_with_pool, compared_with_schema, without_rows
from quorate.run.pool_cautions import few_rows_caution
from quorate.run.public_facts import PublicFacts
from quorate.run.remarks import NAMES, TOLERATED, Names, notes_on_cells, notes_on_scales, remarks
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable
from quorate.types import Secret
from quorate.voting.inputs import Views
from quorate.voting.kept_votes import requests
from quorate.voting.recipe import Recipe
from quorate.voting.task import Task

SHARDS = "shards"


def shards_are_right(neighbouring: Neighbouring, partition: Partition) -> Finding:
    """Say that the shards were looked at, and are those of a partition."""
    unit, rule = neighbouring.unit, "the keyed hash of its identity, modulo the number of teachers"
    owner = unit.removesuffix(LABELS_OF.format(""))
    together = "" if unit in (ONE_RECORD, ONE_LABEL) else f", the rows of each {owner} are in the same one"
    if partition == "balanced":
        rule = "its place in the order of the keyed hashes of all identities, modulo the number of teachers"
    where = f"each is in one shard{together}, and its number is {rule}"
    if partition == "unit":
        where = f"those of each {owner} are in one shard, which is nobody else's"
    return Finding(
        code=SHARDS,
        words=_question(unit),
        outcome=Outcome.PASSED,
        evidence=f"All rows were looked at before any teacher was fitted: {where}. So {neighbouring.changing} "
        "changes exactly one teacher.",
        ran=name_of(check_partition),
    )


def _question(unit: str) -> str:
    does = "Do" if unit.endswith(LABELS_OF.format("")) else "Does"
    return f"{does} each {unit} belong to exactly one teacher?"


def shards_not_looked_at(task: Task) -> Finding:
    """Say that nobody has looked at the partition of this run."""
    return Finding(
        code=SHARDS,
        words=_question(task.unit),
        outcome=Outcome.NOT_RUN,
        evidence="The partition of this run was not looked at.",
    )


def preprocessing(task: Task) -> Finding:
    """Look whether a part of the models came fitted."""
    question = "Did quorate fit nothing on the pooled private rows?"
    unseen = partial(not_covered, "preprocessing", question)
    passed = partial(Finding, code="preprocessing", words=question, outcome=Outcome.PASSED, ran=name_of(check_unfitted))
    if task.config.preprocessing == "public":
        return unseen(
            "Steps were allowed to come fitted. That they were fitted on public rows is the owner's statement.",
            "Give every step unfitted, inside teacher=.",
        )
    if isinstance(task.trainer, ChatTeacher):
        return unseen(
            "Teachers are prompts, and nothing is fitted: rows of one shard stand in each. What the model "
            "behind the endpoint learned from, and what it keeps between prompts, quorate cannot see.",
            "See that it learned from no private row, and that a reply depends on its prompt alone.",
        )
    if isinstance(task.teacher, TinyTeacher):
        check_unfitted(task.student.learner)
        return passed(
            evidence="Teachers and student are quorate's own, and no step of them comes fitted. Each teacher is solved "
            "from its own shard; the coordinates that rows are seen in are fitted on public rows.",
        )
    if not isinstance(task.trainer, ClassifierTeacher | PriorMatchingTeacher):
        return unseen(
            "The teacher is code of the owner's own, which trains and votes by itself. What it holds from "
            "elsewhere quorate cannot see.",
            "See that it reads nothing but its shard, its seed and public facts.",
        )
    check_unfitted(task.teacher)  # refuses, so that who gets further has passed
    check_unfitted(task.student.learner)
    if (held := not_looked_into(task.teacher, task.student.learner)) is not None:
        return unseen(
            "No step of teacher or student was fitted when it came, so far as can be seen. They hold an "
            f"object of the class {held}, which is copied as it is. What it learned elsewhere quorate cannot see.",
            "See that it learned from no private row, or have the model make it, from texts and numbers.",
        )
    return passed(
        evidence="No step of teacher or student was fitted when it came. Each teacher fits its own on its own shard; "
        "an encoder, where there is one, is fitted on public rows.",
    )


def outside(task: Task) -> Finding:
    """Say what happened to the rows before quorate got them: it cannot see that."""
    touched = "that used the labels and" if task.config.labels_only else "in a Pipeline around the classifier that"
    return not_covered(
        "outside",
        "Was nothing fitted on the private rows before quorate got them?",
        f"Quorate sees the rows as they arrive. A step {touched} was fitted on them (a scaler, an "
        "encoder, a selection of columns) would carry each row into every shard, and the guarantee would not cover it.",
        "Put such steps into teacher= (a Pipeline), or fit them on public rows.",
    )


def about(task: Task, ledger: Ledger, *, while_running: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Answer every question about a run; `while_running`: what the run itself looked at."""
    looked = {check.code: check for check in while_running}
    return (
        looked.get(SHARDS) or shards_not_looked_at(task),
        classes(were_read=task.config.classes_were_read),
        preprocessing(task),
        outside(task),
        noise(task.recipe.mechanism),
        seed(task.noise),
        chain(ledger),
        AUDIT_NOT_RUN,
    )


def refuse_rows_as_units(task: Task) -> None:
    """Refuse, to the owner and before the charge, the number of rows declared as that of units that have several."""
    keys = task.inputs.private.reveal().unit_keys
    if not task.n_was_read and task.n_records == len(keys) != count_units(keys):
        raise DataRefused(
            f"{named('n_records', task.n_records)} is the number of rows, and with {keyword('groups')} it "
            f"declares that of {plural(task.unit)}, which is smaller; give that one, and "
            f"{named('n_rows', task.n_records)} if it may be published. Nothing was charged"
        )


def note_on_mechanism(task: Task) -> Iterator[Finding]:
    """Yield that a mechanism is the owner's own, where it is."""
    statement = own_statement(task.recipe.mechanism)
    if statement is not None:
        yield note("mechanism-of-the-owners-own", statement)


def private_notes(
    task: Task, names: Names = NAMES, *, ids: Callable[[], Iterable[Finding]] = tuple
) -> Secret[tuple[Finding, ...]]:
    """Return what there is to say about the private table where teachers vote; `ids`: of ids that public tables hold
    too. Privacy: outside the guarantee; for the owner's terminal and the internal edition of the report alone.
    """
    inputs = task.inputs
    if task.draws_pool:  # rows that are drawn are compared with nothing
        return Secret(remarks(lambda: _declared_numbers(task, names)))
    kinds = inputs.kinds if task.views.teacher.encoder is not None else replace(inputs.kinds, words={})
    return Secret(
        (
            *remarks(lambda: _declared_numbers(task, names)),
            *remarks(lambda: notes_on_cells(inputs.private.reveal().X, inputs.public, kinds, names)),
            *promise_notes(task, names, ids=ids).reveal(),
        )
    )


def promise_notes(
    task: Task, names: Names = NAMES, *, ids: Callable[[], Iterable[Finding]] = tuple
) -> Secret[tuple[Finding, ...]]:
    """Return those of :func:`private_notes` that say that the guarantee will not hold: a fit warns of them."""
    inputs = task.inputs
    if task.draws_pool:
        return Secret(remarks(ids))
    rows = inputs.private.reveal().X
    return Secret(remarks(lambda: notes_on_scales(rows, inputs.public, names), ids))


def warn_before_charge(task: Task) -> None:
    """Warn, at the line that called quorate, of a task's cautions, and of what makes the guarantee void."""
    void = promise_notes(task).reveal()
    warn_of(task.recipe.cautions)
    for finding in void:
        warnings.warn(f"{finding.code}: {finding.words}", PrivacyWarning, stacklevel=frames_of_ours())


def _declared_numbers(task: Task, names: Names) -> Iterator[Finding]:
    keys = task.inputs.private.reveal().unit_keys
    n_records, n_rows = names.n_records.rstrip("="), names.n_rows.rstrip("=")
    declared = None if task.rows_were_read else task.n_rows
    if declared is not None and abs(declared - len(keys)) > TOLERATED * len(keys):
        yield note(
            "declared-rows-are-off",
            f"{n_rows} = {declared:,} is more than 10 % off the number of rows in the private table; the "
            "teachers and the noise were chosen for the declared one",
        )
    declared, units = None if task.n_was_read else task.n_records, count_units(keys)
    if declared is not None and abs(declared - units) > TOLERATED * units:
        yield note(
            "declared-number-is-off",
            f"{n_records} = {declared:,} is more than 10 % off the number of {plural(task.unit)} in the "
            "private table; the teachers and the noise were chosen for the declared one",
        )


def with_requests_told(teacher: Any, recipe: Recipe, facts: PublicFacts) -> Recipe:
    """Say how often an endpoint will be asked, and how much of a shard it is shown, where teachers are prompts."""
    if not isinstance(teacher, ChatTeacher):
        return recipe
    answers = recipe.n_queries + recipe.online_answers
    n_rows = None if facts.rows is None else round(facts.rows / recipe.n_teachers)
    n_shots = teacher.shots if teacher.choose == "random" else None  # the nearest of all rows are chosen for a question
    caution = shown_rows_caution(n_shots, n_rows_each=n_rows, n_teachers=recipe.n_teachers, answers=answers)
    sentence = requests(teacher, recipe.n_teachers, answers)
    return recipe.saying(sentence, considered=[caution])


def with_directions_told(recipe: Recipe, views: Views) -> Recipe:
    """Say so where teachers see a wide table in the leading directions of the pool."""
    directions = views.teacher.directions
    if directions is None:
        return recipe
    who = "teachers and student see" if views.student.directions is directions else "teachers see"
    what = "patches of the public images" if directions.of_patches else "the public pool"
    coordinates = f"the {directions.n_directions} leading directions of {what}"
    if isinstance(directions, UnitCoordinates) and recipe.pool is not None:  # before they are drawn, and afterwards
        coordinates = "coordinates that the drawn rows define, linear ones and those of two kernels,"
    elif isinstance(directions, UnitCoordinates):
        coordinates = (
            f"{directions.n_directions} coordinates that {what} defines, linear ones and those of two kernels,"
        )
    return recipe.saying(f"{who} {coordinates} in place of {views.width:,} columns")


def with_strategy_told(strategy: Strategy, recipe: Recipe, *, width: int) -> Recipe:
    """Add to a recipe what is to be said of a strategy; refuse a mechanism that needs its queries beforehand."""
    if recipe.mechanism.takes == "votes and predictions":
        raise InvalidParameter(
            f"{type(recipe.mechanism).__name__} asks a student about queries that are fixed beforehand; "
            f"give a number of {named('queries')}, or take ConfidentNoisyMax"
        )
    name = type(strategy).__name__
    why = f"{name} chooses the queries from released answers, and may stop early: noise and price are those of its cap"
    if not strategy.learns:
        why = f"{name} chooses at most {strategy.n:,} queries from public rows alone"
    return recipe.saying(why, considered=strategy.cautions(width=width))


def with_public_rows_counted(recipe: Recipe, public: Rows, facts: PublicFacts) -> Recipe:
    """Say how many public rows repeat others, and whether there are too few of them."""
    few = few_rows_caution(facts.n_public, facts.n_classes, learns="the student learns from their noisy answers alone")
    repeats = n_rows(public) - facts.n_public
    if not repeats:
        return recipe.saying(considered=[few])
    sentence = (
        f"{repeats:,} of {several(n_rows(public), 'public row')} {'repeat' if repeats > 1 else 'repeats'} "
        f"others and {'are' if repeats > 1 else 'is'} left out: {several(facts.n_public, 'different row')}"
    )
    return recipe.saying(sentence, considered=[few])


def look_at_votes(task: Task, names: Names = NAMES) -> Secret[Look | None]:
    """Look at the private rows of a task, as :func:`look_by_cells`; all labels and ids can be used by then."""
    inputs, private = task.inputs, task.inputs.private.reveal()
    table = private.cells or PrivateTable(Schema(inputs.public, None, kinds=inputs.kinds), private.X)
    # Else features are public, and labels alone are private; or rows are drawn, and compared with nothing.
    compared = inputs.public is not private.X and not task.draws_pool
    counted = CountedCells.of(table, compared=compared)
    pool = table.schema.parsed(inputs.public)[0] if compared else None
    n = len(private.codes)
    notes: tuple[Finding, ...] = ()
    if pool is not None:
        notes = compared_with_pool(counted, inputs.records(), pool, names)
    elif task.draws_pool:
        notes = compared_with_schema(counted, n, names)
    return Secret(
        Look(
            names=names,
            n=n,
            labels=(n, 0),
            ids=n if as_unit_keys(private.unit_keys).named else None,
            rows=None,
            cells=tuple(counted.cells),
            notes=notes,
            without_rows=without_rows(private.codes, inputs.classes),
        )
    )
