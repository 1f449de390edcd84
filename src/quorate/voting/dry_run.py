"""A rehearsal on public rows: a model that cannot read the rows at all is found out before anything is charged.

On private rows a teacher's failure is an abstention, told to nobody. So the one kind of failure that has nothing to do
with private values, a model and a table that do not fit each other, is looked for where it may be told: one copy is
fitted on public rows with made-up labels, where teachers are fitted (:func:`quorate.ensemble.tried`): nobody hears what
it prints, warns of or logs, and nothing of the user's own process is swapped for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.pipeline import Pipeline

from quorate.accounting.figures import plural
from quorate.data import kind, n_rows, take
from quorate.data.unit_ids import count_units
from quorate.ensemble import (
    ABSTAINED,
    ChatTeacher,
    ClassifierTeacher,
    CommandTeacher,
    Teacher,
    TrialFailed,
    sent,
    tried,
)
from quorate.ensemble.teachers.class_names import fit_named
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.prompted.teacher import REHEARSED
from quorate.ensemble.teachers.unfitted import is_plain, parts
from quorate.ensemble.training import rows_alone
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.labelling import Released
from quorate.labelling.active import History, Strategy
from quorate.mechanisms import Mechanism
from quorate.mechanisms.answers import NoisyVotes
from quorate.mechanisms.own import answers_to_made_up_votes
from quorate.students import Declined, Student, StudentData, VotingClass, class_probabilities
from quorate.types import IntArray
from quorate.voting.inputs import Inputs, Views

ROWS = 200  # enough for the folds and neighbours that a model may ask for
FEW_ROUNDS = 10  # of boosting: more of the same classifier tell nothing more
SAMPLES = 3  # of the size of a shard
STREAM = 40  # points that a strategy is tried on, or two for each class
NO_LABEL = "what it predicts is not one of its labels for each row"

Result = TypeVar("Result")


def try_teacher(
    teacher: Teacher, inputs: Inputs, views: Views, *, scores: Callable[[Any, Any], Any] | None = None
) -> None:
    """Fit one copy of the teacher on public rows as teachers see them, and have it predict them; `scores`: how it is
    asked for them. Privacy: a function of public rows alone, so the exception's own message may be shown.
    """
    if isinstance(teacher, ChatTeacher):
        _try_prompts(teacher, inputs, views)
        return
    if (stage := _stage(inputs, views)) is None:
        return
    rows, codes = stage
    sample = rows_alone(views.teacher(take(inputs.public, rows)), np.arange(len(rows)))
    model = teacher.estimator if isinstance(teacher, ClassifierTeacher) else teacher
    if isinstance(teacher, CommandTeacher):
        try:
            votes = _votes(teacher.on_public_rows(), sample, codes, sample)  # a command is a process of its own
        except Exception as error:  # noqa: BLE001 - the user's own program, on public rows
            raise teacher.refusal(error) from None
    elif isinstance(teacher, ClassifierTeacher):
        votes = _tried("teacher", model, partial(_classified, teacher, len(inputs.classes), scores), sample, codes)
    else:
        trial: Teacher = teacher.on_public_rows() if hasattr(teacher, "on_public_rows") else teacher
        votes = _tried("teacher", model, partial(_votes, trial), sample, codes, sample)
    least = 0 if isinstance(teacher, ClassifierTeacher) else ABSTAINED
    if votes.shape != codes.shape or not np.all((votes >= least) & (votes < len(inputs.classes))):
        raise (
            model.refusal(NO_LABEL)
            if isinstance(model, CommandTeacher)
            else _refusal("teacher", model, sample, NO_LABEL)
        )


def _votes(teacher: Teacher, sample: Any, codes: IntArray, queries: Any, seed: int = 0) -> Any:
    return np.asarray(teacher.train(sample, codes, seed).vote(queries))


def _classified(
    teacher: ClassifierTeacher, n_classes: int, scores: Callable[[Any, Any], Any] | None, sample: Any, codes: IntArray
) -> Any:
    """Do by hand what a teacher does, which would abstain where its model fails."""
    learner, order = teacher.fresh(0), np.arange(n_classes)
    if teacher.classes is None:
        learner.fit(sample, codes)
    else:
        learner, order = fit_named(learner, sample, codes, teacher.classes)
    learner.predict(sample)
    if scores is not None:
        scores(learner, sample)
    return ClassifierVoter(learner, order).vote(sample)


def _try_prompts(teacher: ChatTeacher, inputs: Inputs, views: Views) -> None:
    """Send a few prompts made of public rows alone: where no class comes back, none would on private rows."""
    rows = np.arange(min(max(teacher.shots, REHEARSED), n_rows(inputs.public)))
    sample = rows_alone(views.teacher(take(inputs.public, rows)), np.arange(len(rows)))
    teacher.try_prompt(sample, _made_up(inputs, views, rows, len(inputs.classes)))


def says_one_class(teacher: Teacher, inputs: Inputs, views: Views, *, n_rows_each: int) -> bool | None:
    """Tell whether teachers of so few rows say one class whatever they are asked, or fail; None where it is not looked
    at. Samples of the pool, as large as a shard, get made-up labels that a row's numbers tell apart: a model that makes
    a constant of each makes constants of shards too. Privacy: a function of public rows and numbers alone.
    """
    n_public, n_classes = n_rows(inputs.public), len(inputs.classes)
    if isinstance(teacher, ChatTeacher) or not 2 <= n_rows_each <= n_public:  # a prompt learns nothing made up
        return None
    queries = rows_alone(
        views.teacher(take(inputs.public, np.arange(min(ROWS, n_public)))), np.arange(min(ROWS, n_public))
    )
    samples = []
    for number in range(SAMPLES):
        rows = np.sort(np.random.default_rng(number).permutation(n_public)[:n_rows_each])
        codes = _made_up(inputs, views, rows, min(n_classes, n_rows_each))
        samples.append((rows_alone(views.teacher(take(inputs.public, rows)), np.arange(len(rows))), codes))
    if isinstance(teacher, CommandTeacher):
        return _are_constant(teacher, samples, queries)
    return tried(partial(_are_constant, teacher), samples, queries, called=f"the teacher {type(teacher).__name__}")


def _are_constant(teacher: Teacher, samples: Sequence[tuple[Any, IntArray]], queries: Any) -> bool:
    """Tell whether teachers of all samples say one class; one that fails says none."""
    for number, (sample, codes) in enumerate(samples):
        try:
            votes = _votes(teacher, sample, codes, queries, number)
        except (Exception, SystemExit):  # noqa: BLE001 - the user's own code, on public rows
            votes = np.full(1, ABSTAINED)
        if len(np.unique(votes)) > 1:
            return False
    return True


def refuse_too_many_teachers(n_teachers: int, inputs: Inputs, declared: Any, unit: str) -> None:
    """Refuse more teachers than there are units; `declared`: their number, where it was."""
    if n_teachers > count_units(inputs.private.reveal().unit_keys):
        said, auto = "", named("n_teachers", "auto")
        remedy = f"Take {auto}, which reads the number of {plural(unit)}, or far fewer teachers"
        if declared is not None:  # and larger than the number there is, which is not told
            said = f", for which {named('n_records', declared)} was declared"
            remedy = f"Declare the true number of {plural(unit)}, and take {auto}"
        raise DataRefused(
            f"too many teachers: {named('n_teachers', n_teachers)} is more than there are {plural(unit)} in "
            f"the private table{said}, so some could only abstain. {remedy}"
        )


def refuse_plain_student(student: Any) -> None:
    """Refuse a student of which a part is a plain class: it is published, for people who have scikit-learn alone."""
    for part in parts(student):
        if is_plain(part) and not hasattr(part, "get_params"):
            name, base = type(part).__name__, "ClassifierMixin, " if hasattr(part, "predict") else "TransformerMixin, "
            where = "the student" if part is student else f"a part of the student {type(student).__name__},"
            raise InvalidParameter(
                f"{where} {name} is a plain class, which serves as a teacher and not as a student: that is copied, "
                "stored and opened elsewhere as a scikit-learn model. Write "
                f"class {name}({base}BaseEstimator), from sklearn.base, with its arguments kept under their own names"
            )


def try_student(
    student: Student,
    mechanism: Mechanism,
    inputs: Inputs,
    views: Views,
    *,
    n_teachers: int,
    declined: Declined = "drop",
    chooses_limit: bool = False,
) -> None:
    """Teach the student made-up answers to public rows, in the form in which it is to learn, and have it predict them;
    `chooses_limit`: in a process of its own, too. Privacy: as of :func:`try_teacher`.
    """
    if (stage := _stage(inputs, views)) is None:
        return
    rows, codes = stage
    queries = np.flatnonzero(np.arange(len(rows)) % 5)  # the rest of the pool is taught without answers
    data = StudentData(
        pool=take(views.student(inputs.public), rows),
        points=views.numbers(take(inputs.public, rows)),
        queries=queries,
        released=_released(mechanism, codes[queries], n_teachers=n_teachers, n_classes=len(inputs.classes)),
        classes=inputs.classes,
        n_teachers=n_teachers,
        seed=0,
        declined=declined,
        one_unit=views.numbers.directions is not None,
        prior=views.prior,
    )
    asks_how_sure = chooses_limit or mechanism.takes == "votes and predictions"
    trial = partial(_taught, _brief(student), asks_how_sure, chooses_limit)
    predicted = _tried("student", student.learner, trial, data.pool, data)
    if predicted.shape != codes.shape or not np.isin(predicted, list(inputs.classes)).all():
        raise _refusal("student", student.learner, data.pool, NO_LABEL)


def _taught(student: Student, asks_how_sure: bool, travels: bool, pool: Any, data: StudentData) -> Any:
    """Teach, and return what is predicted of the pool. `travels`: whether the fitted model has to."""
    fitted = student.fit(data)
    if travels:
        fitted = sent(fitted)
    if asks_how_sure:
        class_probabilities(fitted, pool, data.classes)
    return np.asarray(fitted.predict(pool))


def _brief(student: Student) -> Student:
    """A vote of as many classifiers as there are teachers is tried with a few."""
    if isinstance(student, VotingClass):
        return replace(student, n_estimators=min(FEW_ROUNDS, student.n_estimators or FEW_ROUNDS))
    return student


def _released(mechanism: Mechanism, codes: IntArray, *, n_teachers: int, n_classes: int) -> Released:
    """What three quarters of the teachers say is each made-up label; every fifth is declined where that may be."""
    shares = np.full((len(codes), n_classes), 0.25 / (n_classes - 1))
    shares[np.arange(len(codes)), codes] = 0.75
    try:
        answers = mechanism.answers.of_shares(shares, n_teachers)
    except NotImplementedError:
        answers = answers_to_made_up_votes(mechanism, NoisyVotes(0.0).of_shares(shares, n_teachers))
    none = np.zeros(len(codes), dtype=bool)
    declined = np.arange(len(codes)) % 5 == 4 if mechanism.may_decline else none
    return Released(answers, declined, none, mechanism)


def try_strategy(strategy: Strategy, inputs: Inputs, views: Views) -> None:
    """Have a strategy choose from a few public rows with made-up answers, as :func:`try_teacher` does."""
    if (stage := _stage(inputs, views)) is None:
        return
    n_classes = len(inputs.classes)
    every = max(1, len(stage[0]) // max(STREAM, 2 * n_classes))
    rows, codes = (column[::every] for column in stage)
    points = views.numbers(take(inputs.public, rows))
    queries = np.arange(0, len(rows), 2)[: strategy.n]
    history = History(queries, codes[queries], n_classes)
    _tried("strategy", strategy, strategy.next_batch, points, history, np.random.default_rng(0))


def _stage(inputs: Inputs, views: Views) -> tuple[IntArray, IntArray] | None:
    """Choose which public rows play, ``(ROWS,)``, a short pool repeated, and their made-up labels; None where there are
    too few. Labels follow the rows: a step that selects features would be left with none otherwise.
    """
    n_public, n_classes = n_rows(inputs.public), len(inputs.classes)
    if n_public < 2 * n_classes:
        return None
    n = max(ROWS, 2 * n_classes)
    rows = np.resize(np.arange(min(n, n_public)), n)
    return rows, _made_up(inputs, views, rows, n_classes)


def _made_up(inputs: Inputs, views: Views, rows: IntArray, n_classes: int) -> IntArray:
    """Return labels ``(n_rows,)`` that follow the sum of a row's numbers, as many of each class."""
    sums = np.asarray(views.numbers(take(inputs.public, rows)).sum(axis=1), dtype=np.float64).ravel()
    codes = np.empty(len(rows), dtype=np.int64)
    codes[np.argsort(sums, kind="stable")] = np.arange(len(rows)) * n_classes // len(rows)
    return codes


def _tried(role: str, model: Any, trial: Callable[..., Result], *rows: Any) -> Result:
    """Call a trial of a model where nobody hears it, and turn what it raises into a refusal; `rows` come first."""
    try:
        return tried(trial, *rows, called=f"the {role} {type(model).__name__}")
    except TrialFailed as failed:
        raise _refusal(role, model, rows[0], str(failed)) from None


def _refusal(role: str, model: Any, sample: Any, failure: str) -> InvalidParameter:
    if isinstance(model[-1] if isinstance(model, Pipeline) else model, RegressorMixin):
        return InvalidParameter(
            f"the {role} {type(model).__name__} is a regressor: it predicts numbers, and a {role} predicts classes. "
            "Give a classifier, such as LogisticRegression(); PrivateRegressor takes regressors as teachers of a number"
        )
    silent = " On private rows every teacher would abstain, and no message could say why." if role == "teacher" else ""
    return InvalidParameter(
        f"the {role} {type(model).__name__} fails on the public rows ({kind(sample)}): {failure.rstrip('.')}."
        f"{silent} Make it fit and predict such rows, or give them in the form it takes"
    )
