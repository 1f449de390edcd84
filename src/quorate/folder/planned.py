"""A plan for a run's folder: ``quorate.toml`` and the public files are read, and the private file never."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from quorate.ambient import one_thread
from quorate.arguments import for_shell
from quorate.data import column_names
from quorate.data.feature_maps.composed import FEATURE_MAPS, FeatureMapName
from quorate.data.formats import nearly
from quorate.data.labels import Label
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter, naming
from quorate.folder.choice import Choice, method_by_rule
from quorate.folder.data_settings import DataSettings
from quorate.folder.folder import RunFolder
from quorate.folder.settings import (
    Settings,
    arguments_of,
    keys_of,
    read_settings,
    refuse_more_than_the_cap,
)
from quorate.folder.table_source import require_file
from quorate.folder.tables import (
    PublicRows,
    dropped_from_no_public_table,
    public_rows,
    refuse_unknown_columns,
    refuse_unknown_drop,
)
from quorate.mechanisms.schedule import open_fields
from quorate.planning.plan import Plan
from quorate.planning.planned import expected_of_rounds, plan
from quorate.planning.rehearsal.made_up import LearningCurve
from quorate.run.expectation import Expected
from quorate.run.held_out import plan_sets
from quorate.run.method_config import MethodConfig
from quorate.run.public_facts import ChosenMethod, ChosenRelation, choose_relation
from quorate.students.scores import SCORE_WORDS
from quorate.voting.models import student_of, teacher_of

_WAYS = {"direct": "the direct method", "votes": "votes of teachers"}
_A_WHILE = "this takes up to half a minute, and with thousands of images longer."
TAKES_A_WHILE = f"Rehearsing on public rows: {_A_WHILE}"
CHOOSES = f'Choosing the method by a rehearsal on public rows, since [method] by = "auto": {_A_WHILE}'


def plan_folder(root: Path, **how: Any) -> Plan:
    """Plan a run from the settings and the public rows of its folder, as :func:`plan_of` does."""
    return plan_of(read_settings(root / "quorate.toml"), **how)


@one_thread()
def plan_of(
    settings: Settings,
    *,
    n_records: int | None = None,
    n_rows: int | None = None,
    learning_curve: Sequence[tuple[float, float]] | LearningCurve | None = None,
    rehearse: Literal["auto", "labels", "rules", "synthetic", "no"] = "auto",
    before: Callable[[str], None] | None = None,
    read: PublicRows | None = None,
    **how: Any,
) -> Plan:
    """Plan a run from its settings and its public rows; `rehearse`, `learning_curve` and more as :func:`quorate.plan`.
    `n_records`, `n_rows`: of private units and rows, where ``quorate.toml`` does not declare them: they are not read
    here. `before`: is told what takes a while, before it begins. `read`: the public rows, where they were read.
    """
    _refuse_to_plan(settings)
    data, by_option = settings.data, n_records is not None
    n_records = data.n_records if n_records is None else n_records
    if n_records is None:
        raise InvalidParameter(
            "a plan never opens the private file, so the number of private units has to be declared: [data] n_records, "
            "or quorate plan --records N"
        )
    by_labels = rehearse in ("auto", "labels") and data.evaluation is not None
    if before is not None and (by_labels or learning_curve is not None or rehearse in ("rules", "synthetic")):
        before(TAKES_A_WHILE)
    unit = data.whose or "record"
    relation = _relation(settings, unit)
    if read is None:
        for key in ("public", "evaluation")[: 1 + by_labels]:
            require_file(key, data.tables[key])
        read = public_rows(data, labelled=by_labels)
    public, evaluation = read
    typed = {"n_records": by_option, "n_rows": n_rows}  # what was has the name that whoever gave it knows
    with naming({name: key for name, key in keys_of(settings).items() if not typed.get(name)}):
        config = MethodConfig(**arguments_of(settings, MethodConfig))
        sets = plan_sets(config, n_records=n_records, budget=settings.share, unit=unit)
        rows = data.n_rows if n_rows is None else n_rows
        if sets is not None and rows is not None:  # so many of them learn, where some units are held out
            rows = max(1, round(rows * (1 - sets.share)))
        plan_of_run = plan(
            public,
            classes=data.classes,
            n_records=n_records if sets is None else sets.n_learning,
            n_rows=rows,
            unit=unit,
            neighbours=relation.noise or "replace",
            epsilon=settings.share[0],
            delta=settings.share[1],
            learning_curve=learning_curve,
            evaluation=evaluation,
            rehearse=rehearse,
            feature_map=_feature_map(settings),
            scoring=data.score,
            class_shares=_declared_shares(data),
            **models_of(settings),
            **how,
        )
    facts, notes = replace(plan_of_run.facts, why_neighbours=relation.why), _notes_on_drop(data)
    if sets is not None:
        notes.append(f"A run would hold out {sets.step(unit)[1]}; the figures are of those that learn")
    return replace(plan_of_run, facts=facts, notes=(*plan_of_run.notes, *notes))


def _relation(settings: Settings, unit: str) -> ChosenRelation:
    """Return for which change of one unit a run would be, as it would find its ledger and its settings."""
    return choose_relation(
        settings.method.neighbours,
        n_was_read=settings.data.n_records is None,
        held=RunFolder(settings.folder).terms(settings.budget.composition).relation,
        unit=unit,
    )


def expected_of_direct(settings: Settings, task: DirectTask) -> tuple[Expected | None, float]:
    """Return what to expect of a direct run, rehearsed on its labelled public rows, and of the commonest class."""
    data = settings.data
    if data.evaluation is None or data.public is None or not isinstance(settings.method.feature_map, str):
        raise InvalidParameter(
            "--rehearse plays on public rows with labels, in coordinates that [data] public tells by a named feature "
            "map; name a table of them: [data] evaluation"
        )
    how: dict[str, Any] = {"judged": data.judged, "feature_map": _feature_map(settings), "n_rows": data.n_rows}
    public, evaluation = public_rows(data, labelled=True)
    assert evaluation is not None  # noqa: S101 - they were asked for
    with naming(keys_of(settings)):
        return expected_of_rounds(task, public, evaluation, **how)


def settings_to_run(settings: Settings, *, before: Callable[[str], None] | None = None) -> Settings:
    """Return the settings of a run that is to be made or checked, with the method that it has. Where that is left open
    and public rows with labels are enough, the planner chooses by a rehearsal on them; `before`: as for `plan_of`.
    """
    if settings.chosen is not None:
        return settings
    data = settings.data
    refuse_unknown_columns(data)  # before what takes long
    refuse_unknown_drop(data)
    read = public_rows(data, labelled=data.evaluation is not None)
    method = method_by_rule(settings.document, n_labelled=0 if read.labelled is None else len(read.labelled[1]))
    if method is not None:
        return settings.with_choice(Choice(method))
    say = None if before is None else lambda _: before(CHOOSES)
    return settings.with_choice(choice_of(plan_of(settings, before=say, read=read)))


def choice_of(plan_: Plan) -> Choice:
    """Return a plan's first row as what a run is to do; InvalidParameter where nothing in the plan can answer."""
    row = plan_.first
    if row.cannot or row.way == "few labels":
        raise InvalidParameter(
            '[method] by = "auto" found nothing that can answer with this budget and so few private rows: quorate plan '
            "shows why. Raise [budget] epsilon, or bring more private rows"
        )
    why = row.why.removeprefix("of the rows that were rehearsed in full ") or "it comes first"
    why = f"on the labelled public rows {why}"
    if row.way == "direct":
        return Choice(ChosenMethod("direct", why))
    fields = {} if row.mechanism is None else open_fields(row.mechanism)
    settings = {
        "teachers": {"count": row.n_teachers, **({"model": row.model} if row.model else {})},
        "mechanism": {"name": row.name, "queries": row.n_queries, **fields},
    }
    return Choice(ChosenMethod("votes", why), settings)


def models_of(settings: Settings) -> dict[str, Any]:
    """Return what a run would train, and its online answers, as arguments of a plan."""
    if not settings.method.may_have_teachers:
        return {}
    student, teacher = settings.student, settings.teachers.model
    if "command" in settings.teachers.fields:
        raise InvalidParameter(
            "a plan fits models to public rows to compare them, and a command is not tried out so often; leave out "
            "[teachers] command to plan with a model in its place"
        )
    if settings.teachers.fields:
        raise InvalidParameter(
            "a plan fits models to public rows to compare them, which prompts are not made for; leave out [teachers] "
            "endpoint to plan with a model in its place"
        )
    own = ":" in teacher or ":" in student.model  # where nothing is, models see what a run shows quorate's own
    return {
        "teacher": teacher_of(teacher, {}, folder=settings.folder) if own else teacher,
        "student": student_of(student.model, method=student.method, shares=student.shares, folder=settings.folder),
        "online_answers": settings.mechanism.online_answers,
    }


def _notes_on_drop(data: DataSettings) -> list[str]:
    """Say of a column to leave out that it is nearly called as a public one; the private table may have it or not.

    Only a table that is opened can say that there is no such column, so that a plan does not refuse it.
    """
    names = [] if data.public is None else column_names(data.public, data.dialect)
    hints = {name: nearly(name, names) for name in dropped_from_no_public_table(data)}
    return [
        f"[data] drop names {name!r}, which no public table has{hint} The private file was not opened; quorate check "
        "looks there, too"
        for name, hint in hints.items()
        if hint
    ]


def _feature_map(settings: Settings) -> FeatureMapName:
    """Return the direct method's feature map; a transformer of the user's own is not planned with."""
    map_ = settings.method.feature_map
    return map_ if map_ in FEATURE_MAPS else "auto"


def recommended(root: Path, plan_: Plan) -> str:
    """Return what a plan comes to in one sentence: whether to run, by which method, and the line that takes it."""
    first, run = plan_.first, f"quorate run {for_shell(root)}"
    if first.cannot or first.way not in _WAYS:
        return "Recommended: no run by this budget, since no row of votes or of the direct method can answer."
    if plan_.gains_nothing:
        return (
            f"Recommended: no run by this budget; by {SCORE_WORDS[plan_.scoring]} no row is expected to be better than "
            "always saying the commonest class."
        )
    way = _WAYS[first.way]
    chosen = read_settings(root / "quorate.toml").chosen
    if chosen is None or chosen == first.way:
        return f"Recommended: {way}. Nothing has to be changed in quorate.toml. Next: {run}"
    document = tomllib.loads((root / "quorate.toml").read_text(encoding="utf-8-sig"))
    open_ = method_by_rule({name: section for name, section in document.items() if name != "method"})
    by = "auto" if open_ is None or open_ == first.way else first.way
    return f'Recommended: {way}; write by = "{by}" under [method]. Next: {run}'


def _refuse_to_plan(settings: Settings) -> None:
    """Refuse settings from which no plan of labels on public rows follows."""
    root = settings.folder
    if settings.data.range is not None:
        raise InvalidParameter(
            "the options of a plan are for how many rows are labelled right, and [data] target is a number; leave them "
            f"out, and declare [data] n_records. What each method would release says: quorate plan {for_shell(root)}"
        )
    refuse_more_than_the_cap(settings)
    if settings.data.public is None:  # before what else is lacking, which would then be given for nothing
        raise InvalidParameter(
            "a plan compares methods on public rows, and [data] public names none: no accuracy can be estimated of "
            f"rows that are drawn. What the run would release and cost, and how many rows can be used, says: quorate "
            f"check {for_shell(root)} --look"
        )


def _declared_shares(data: DataSettings) -> dict[Label, float] | None:
    """Return the declared shares by the names of the classes."""
    shares = data.class_shares
    if shares is None:
        return None
    return {name: share for name, share in zip(data.classes, shares, strict=True) if share is not None}
