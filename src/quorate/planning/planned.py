"""``quorate.plan``: what a budget would buy, from declared facts and public rows; no private row is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from quorate.ambient import one_thread, own_switches
from quorate.arguments import count, nearest, one_of, real
from quorate.data import PublicPool, check_classes
from quorate.data.feature_maps.composed import FeatureMapName
from quorate.direct.task import DirectTask
from quorate.errors import DataRefused, InvalidParameter, keyword, named
from quorate.mechanisms import Mechanism
from quorate.planning.plan import Expectation, Plan, plan_votes
from quorate.planning.plan_row import KINDS, Grid, PlanRow, direct_row, direct_row_unknown
from quorate.planning.public_side import (
    REHEARSE,
    Models,
    PublicSide,
    in_coordinates_of,
    notes_of,
    public_side,
    rehearsals_as_hard,
    rehearsals_of,
    synthetic_side,
)
from quorate.planning.rehearsal.made_up import MANY, AsHard, LearningCurve, MeanOf
from quorate.planning.rehearsal.rehearsal import Rehearsal
from quorate.planning.text import PrintedPlan
from quorate.release.charge import floor_budget
from quorate.run.expectation import BASES, Expected
from quorate.run.facts import name_of
from quorate.run.pool_cautions import few_rows_caution
from quorate.run.public_facts import PublicFacts, word_for_unit
from quorate.students.scores import SCORE_WORDS, Judged, check_class_shares, check_scoring, share_of_rarer
from quorate.voting.models import DEFAULT_TEACHER, TEACHER_MODELS, teacher_named

NOTHING_BY_RULES = (
    "no accuracy is expected: rules on so few public rows would be asked and scored on the same rows, and say nothing "
    "of others"
)
_ROUNDED = 0.005  # a share that is typed in has two digits, perhaps


@own_switches()
@one_thread()
def plan(
    public: Any = None,
    *,
    epsilon: float,
    delta: float,
    n_records: int,
    classes: Sequence[Any] | None = None,
    n_classes: int | None = None,
    n_public: int | None = None,
    width: int | None = None,
    n_rows: int | None = None,
    unit: str = "record",
    neighbours: Literal["auto", "add-or-remove", "replace"] = "auto",
    online_answers: int = 0,
    n_labelled: int | None = None,
    teacher: Any = None,
    student: Any = None,
    feature_map: FeatureMapName = "auto",
    n_teachers: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    mechanisms: Sequence[Any] | None = None,
    models: Sequence[str] | None = None,
    y_public: Any = None,
    evaluation: tuple[Any, ...] | None = None,
    rehearse: Literal["auto", "labels", "rules", "synthetic", "no"] = "auto",
    learning_curve: Sequence[tuple[float, float]] | LearningCurve | None = None,
    commonest: float | None = None,
    scoring: str | None = None,
    class_shares: Mapping[Any, float] | None = None,
) -> Plan:
    """Compare what a budget can buy, before anything is spent.

    Nothing is charged, and no private row is seen: there is no argument for one.

    Parameters
    ----------
    public : PublicPool, table or array, optional
        Unlabelled public rows, ``(n_public, n_features)``. Without them give `n_public` and `width`; the direct method
        cannot be compared then.
    epsilon, delta : float
        The budget; ε > 0, 0 < δ < 1.
    n_records : int
        Number of private units, declared: records, or persons where a person may have several rows.
    classes : sequence, optional
        Every label there may be; or their number, as `n_classes`.
    n_rows : int, optional
        Number of private rows, where a unit may have several.
    unit : str
        The word for one unit.
    neighbours : {"auto", "add-or-remove", "replace"}
        For which change of one unit ε is, as for :class:`quorate.PrivateLogisticRegression`; "auto" is add or remove,
        since `n_records` is declared. Votes have one price for both. Other libraries mostly state ε for add or remove.
    online_answers : int
        Answers to be kept back for later questions.
    n_labelled : int, optional
        How many private rows are labelled, for private learners with few labels; by default all.
    teacher, student : estimator, optional
        As for :class:`quorate.PrivateClassifier`; a teacher also by a name of ``[teachers] model``.
    feature_map : str
        Of the direct method, as for :class:`quorate.PrivateLogisticRegression`.
    n_teachers, queries : sequence of int, optional
        Numbers of teachers and of queries to compare, in place of the default grid.
    mechanisms : sequence of type, mechanism or name, optional
        Likewise.
    models : sequence of str, optional
        Names of ``[teachers] model`` to compare with `teacher` where labelled public rows are rehearsed on. By default
        ``"tree"`` where `teacher` is None or ``"logistic"`` and the public table has columns of numbers and of
        categories: whether such a table is curved, labels alone can tell; an empty list compares none.
    y_public : (n_public,) labels, optional
        Labels of the public rows, where they are known: they play the private rows in a rehearsal.
    evaluation : (X, y) or (X, y, groups), optional
        Other public rows with labels, likewise; and whose rows they are, where a person may have several. A rehearsal
        then gives a teacher whole persons.
    rehearse : {"auto", "labels", "rules", "synthetic", "no"}
        What the expected accuracy is rehearsed with: labelled public rows ("auto" where there are some), labels from
        rules drawn at random on the pool, or made-up rows as well. The last two are guesses about another task, and
        the plan says so.
    learning_curve : sequence of (rows, accuracy), optional
        Accuracy of one teacher by the rows it learns from, as you know it from elsewhere, on rows that it has not
        seen; it is used in place of labelled rows. What the plan expects is rehearsed with rules as hard as that, on
        the public rows, or on made-up ones where there are none. Give a point near the rows of a shard, and one of a
        thousand rows or more for the direct method.
    commonest : float, optional
        Share of the commonest class, as you know it from elsewhere; it makes what a curve tells more exact.
    scoring : str, optional
        What labelled public rows judge the rows by, as for :meth:`quorate.PrivateClassifier.facts`; by default what
        suits how rare their classes are.
    class_shares : mapping, optional
        As for :class:`quorate.PrivateClassifier`; it needs `classes`.

    Returns
    -------
    Plan
        Rows, best first; ``tree()`` has them as plain values.

    Raises
    ------
    InvalidParameter, DataRefused
        If an argument or the public table is wrong.

    Examples
    --------
    >>> import quorate
    >>> made = quorate.plan(n_records=6_000, n_public=1_000, width=111, n_classes=2, epsilon=1.0, delta=1e-5)
    >>> made.first.name, made.first.n_teachers, made.first.noise
    ('NoisyCounts', 545, 'σ = 117.9 votes')
    >>> [row.name for row in made.rows if row.cannot][-1]
    'GenericLearner'
    """
    n_records, unit = count("n_records", n_records, at_least=1), word_for_unit(unit)
    n_public = needed("n_public", n_public) if public is None else 0  # said first
    names, judged = _classes(classes, n_classes, scoring, class_shares)
    used = Models(teacher, student, feature_map, models_of(models))
    side = None if public is None else public_side(public, names, used)
    facts = PublicFacts(
        n_records=n_records,
        n_public=n_public if side is None else side.n_distinct,
        n_classes=len(names),
        width=needed("width", width) if side is None else side.views.width,
        online_answers=online_answers,
        n_rows=number_of_rows(n_rows, n_records, unit),
        unit=unit,
        neighbours=neighbours,
        rare=share_of_rarer(judged.shares),
        **dict[str, Any](zip(("epsilon", "delta"), floor_budget(epsilon, delta), strict=True)),
    )
    side, facts = _as_models_see(side, facts, used)
    commonest, curve = _share_of_commonest(commonest, facts.n_classes), _curve(learning_curve, facts.n_classes)
    how = {"how": rehearse, "y_public": y_public, "evaluation": evaluation, "judged": judged}
    rehearsals = _rehearsals(facts, side, names, used, curve, commonest, how)
    plan_ = plan_votes(
        facts,
        grid=grid_of(facts, mechanisms, n_teachers, queries, _compared(rehearsals, used.compared)),
        direct=row_of_direct(facts, side),
        expectation=_expectation(rehearsals, curve),
        commonest=rehearsals[0].material.commonest if commonest is None and len(rehearsals) == 1 else commonest,
        n_labelled=n_labelled,
    )
    return _with_notes(plan_, _basis(curve, rehearsals, plan_.first, side, rehearse), judged, rehearse, teacher, curve)


def _classes(
    classes: Sequence[Any] | None, n_classes: int | None, scoring: str | None, shares: Mapping[Any, float] | None
) -> tuple[Sequence[Any], Judged]:
    """Return the classes, numbers where they have no names, and what judges a row of a plan."""
    named_ = None if classes is None else check_classes(classes)
    judged = Judged(scoring=check_scoring(scoring), shares=check_class_shares(shares, named_ or ()))
    number = number_of_classes(named_, n_classes)
    return named_ or range(number), judged


def _as_models_see(
    side: PublicSide | None, facts: PublicFacts, models: Models
) -> tuple[PublicSide | None, PublicFacts]:
    """Return the public side as models see it; without one, whether teachers are the tiny ones of the defaults."""
    if side is not None:
        return in_coordinates_of(side, facts)
    return None, replace(facts, tiny=teacher_named(models.teacher) is None and models.student is None)


def _rehearsals(
    facts: PublicFacts,
    side: PublicSide | None,
    names: Sequence[Any],
    used: Models,
    curve: LearningCurve | None,
    commonest: float | None,
    given: Mapping[str, Any],
) -> tuple[Rehearsal, ...]:
    """Rehearse on what is given, or on made-up rows; with a learning curve with rules that are as hard as it says."""
    how = one_of("rehearse", given["how"], REHEARSE)
    played = synthetic_side(facts, names, used) if how == "synthetic" or (side is None and curve is not None) else side
    if curve is not None and played is not None:
        return rehearsals_as_hard(facts, played, how=how, commonest=commonest, basis=curve.basis)
    return rehearsals_of(facts, played, **given)


def _with_notes(
    plan_: Plan, basis: Sequence[str], judged: Judged, how: str, teacher: Any, curve: LearningCurve | None
) -> PrintedPlan:
    """Return the plan with what is to be said of it: of its score, of no gain, of too few rows, and who votes."""
    notes = [*plan_.notes, *basis, *(f"{row.name}: {row.mind}" for row in plan_.rows if row.mind)]
    if plan_.gains_nothing:
        score = SCORE_WORDS[plan_.scoring]
        notes.append(
            f"by {score}, no row is expected to be better than always saying the commonest class; nothing is bought"
        )
    learns = "students learn from their noisy answers alone, and may do worse than a guess"
    few = few_rows_caution(plan_.facts.n_public, plan_.facts.n_classes, learns=learns)
    if few.applies:
        notes += [few.words, *([NOTHING_BY_RULES] if curve is not None or how in ("rules", "synthetic") else [])]
    if teacher not in (None, DEFAULT_TEACHER):
        notes.append(f"where no model stands beside a way, teachers are {name_of(teacher_named(teacher))}")
    said = {"notes": tuple(notes), "score_was_asked_for": judged.scoring is not None}
    return PrintedPlan(**{**{part.name: getattr(plan_, part.name) for part in fields(plan_)}, **said})


def _curve(given: Sequence[tuple[float, float]] | LearningCurve | None, n_classes: int) -> LearningCurve | None:
    if given is None:
        return None
    if not isinstance(given, LearningCurve):
        return LearningCurve.of(given, n_classes=n_classes)
    return LearningCurve.of(given.points, n_classes=n_classes, basis=given.basis, uncertain=given.uncertain)


def _share_of_commonest(given: float | None, n_classes: int) -> float | None:
    if given is None:
        return None
    share = real("commonest", given, above=0, below=1)
    if share < 1 / n_classes - _ROUNDED:
        raise InvalidParameter(
            f"{named('commonest')} is the share of the commonest of {n_classes} classes, which is at least "
            f"1/{n_classes}, got {given!r}",
            parameter="commonest",
            got=given,
        )
    return share


def _basis(
    curve: LearningCurve | None, rehearsals: Sequence[Rehearsal], first: PlanRow, side: PublicSide | None, how: str
) -> tuple[str, ...]:
    """Say what is expected rests on."""
    if curve is None:
        return notes_of(rehearsals)
    if not rehearsals:
        return ()
    said = [BASES[curve.basis]]
    if side is None:
        said.append("no public rows were given, so that made-up ones were labelled and asked")
    elif how == "synthetic":
        said.append("made-up rows were labelled and asked in place of the public ones, as was said")
    rows_known = [rows for rows, _ in curve.points]
    n_rows = MANY if first.rows_each is None else first.rows_each
    if first.expected is not None and not min(rows_known) / 2 <= n_rows <= 2 * max(rows_known):
        said.append(
            f"the first row is told by a teacher of about {n_rows:,.0f} rows, far from all that the curve was told of, "
            "so that what is expected is coarse, and the order of rows too; give a point of about so many rows"
        )
    return (*said, *filter(None, [rehearsals[0].not_rehearsed]))


def _compared(rehearsals: Sequence[Rehearsal], models: Sequence[str] | None) -> Collection[str]:
    """Return the models of teachers that are rehearsed beside the one that was given."""
    others = rehearsals[0].material.others if rehearsals else {}
    if models and not others:
        raise InvalidParameter(
            f"{named('models')} names models to compare on labelled public rows, and none are rehearsed on here; give "
            f"{keyword('evaluation')}, and take {named('rehearse', 'labels')}"
        )
    return others


def _expectation(rehearsals: Sequence[Rehearsal], curve: LearningCurve | None) -> Expectation | None:
    if curve and rehearsals:
        return AsHard(rehearsals, curve)
    return MeanOf(rehearsals) if len(rehearsals) > 1 else next(iter(rehearsals), None)


def expected_of_rounds(
    task: DirectTask,
    public: PublicPool,
    evaluation: tuple[Any, ...],
    *,
    judged: Judged,
    feature_map: FeatureMapName,
    n_rows: int | None = None,
) -> tuple[Expected | None, float]:
    """Return what to expect of a direct run, rehearsed on labelled public rows, and of the commonest class."""
    side = public_side(public, task.classes, Models(feature_map=feature_map))
    facts = PublicFacts(
        n_records=task.plan.n_units,
        n_rows=n_rows,
        n_public=side.n_distinct,
        n_classes=task.n_classes,
        width=side.views.width,
        epsilon=task.epsilon,
        delta=task.delta,
        unit=task.unit,
        neighbours=task.relation.noise or "replace",
        rare=share_of_rarer(judged.shares),
    )
    (rehearsal,) = rehearsals_of(facts, side, how="labels", judged=judged, y_public=None, evaluation=evaluation)
    (rehearsed,) = rehearsal(facts, [row_of_direct(facts, side)])
    return rehearsed.expected, rehearsal.material.commonest


def row_of_direct(facts: PublicFacts, side: PublicSide | None) -> PlanRow:
    """Return the direct method's row, with the coordinates that the pool defines; or why there is none."""
    if side is None:
        return direct_row_unknown("its coordinates follow from public rows, and none were given")
    if facts.online_answers:
        return direct_row_unknown("it has no teachers, so nobody to ask for the answers that are kept back")
    try:
        outline = side.direct(side.models.feature_map).outline_of(facts)
    except (InvalidParameter, DataRefused) as refusal:
        return direct_row_unknown(str(refusal))
    return direct_row(facts, outline)


_NAMED = {kind.__name__: kind for kind in KINDS}


def needed(name: str, value: int | None) -> int:
    """Return a size that public rows would have told, or refuse that it was not given."""
    if value is None:
        raise InvalidParameter(
            f"{name} is needed where there are no public rows to tell it; give {name}=", parameter=name
        )
    return count(name, value, at_least=1)


def number_of_classes(classes: Sequence[Any] | None, n_classes: int | None) -> int:
    """Return how many classes there are, by their list or by their number; one is needed, and both must agree."""
    if classes is None:
        return needed("n_classes", n_classes)
    if n_classes is not None and n_classes != len(classes):
        raise InvalidParameter(f"n_classes={n_classes!r}, and classes has {len(classes)}; leave out n_classes")
    return len(classes)


def number_of_rows(n_rows: int | None, n_records: int, unit: str) -> int | None:
    """Return the number of private rows: no fewer than there are units."""
    if n_rows is None or count("n_rows", n_rows, at_least=1) >= n_records:
        return n_rows
    raise InvalidParameter(
        f"{named('n_rows')} must be at least {named('n_records')}, since each {unit} has a row, got {n_rows:,} for "
        f"{named('n_records', n_records)}",
        parameter="n_rows",
        got=n_rows,
    )


def grid_of(
    facts: PublicFacts, mechanisms: object, n_teachers: object, queries: object, models: Iterable[str] = ()
) -> Grid:
    """Return what is to be compared, or refuse what is no list of what it should be, or above what there is."""
    example = '["NoisyCounts", "GaussianNoisyMax"]'
    return Grid(
        mechanisms=None if mechanisms is None else [*map(_mechanism, _listed("mechanisms", mechanisms, example))],
        n_teachers=_numbers("n_teachers", n_teachers, most=facts.n_records),
        queries=_numbers("queries", queries, most=facts.n_public),
        models=tuple(models),
    )


def models_of(given: object) -> tuple[str, ...] | None:
    """Return the names of teachers' models to compare with the one that was given; None for the default."""
    if given is None:
        return None
    listed = tuple(dict.fromkeys(given)) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None
    names = [name for name in TEACHER_MODELS if name != DEFAULT_TEACHER]
    for name in (given,) if listed is None else listed:
        if listed is None or name not in names:
            hint = nearest(name, names) if isinstance(name, str) else ""
            raise InvalidParameter(
                parameter="models", got=name, expected=f"names of {', '.join(names)}", advice=hint.removeprefix("; ")
            )
    return listed


def _numbers(name: str, given: object, *, most: int | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    listed = _listed(name, given, "[100, 200]")
    numbers = tuple(count(name, number, at_least=1) for number in listed)
    if most is not None and max(numbers) > most:
        raise InvalidParameter(parameter=name, got=max(numbers), expected=f"at most {most:,} here")
    return numbers


def _mechanism(given: Any) -> type[Mechanism] | Mechanism:
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    if isinstance(given, Mechanism) or (isinstance(given, type) and issubclass(given, Mechanism)):
        return given
    raise InvalidParameter(
        f"mechanisms must be mechanisms, their classes, or names of {', '.join(_NAMED)}, got {given!r}"
        f"{nearest(given, _NAMED) if isinstance(given, str) else ''}"
    )


def _listed(name: str, given: object, example: str) -> tuple[Any, ...]:
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else ()
    if not listed:
        raise InvalidParameter(
            parameter=name, got=given, expected="a list of at least one", advice=f"Example: {example}"
        )
    return listed
