"""``quorate.plan``: what a budget would buy, from declared facts and public rows; no private row is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.arguments import count, real
from quorate.data import PublicPool, check_classes, row_digests
from quorate.data.rows import Rows
from quorate.direct.plan import FeatureMapName, feature_map_for, plan_direct
from quorate.direct.schema import Schema
from quorate.errors import DataRefused, InvalidParameter
from quorate.pipeline.inputs import Inputs, PrivateRows, Views, look
from quorate.pipeline.models import built_in
from quorate.planning import PublicFacts
from quorate.planning.direct_row import direct_row, direct_row_unknown
from quorate.planning.learning_curve import LearningCurve
from quorate.planning.plan import Plan, plan_votes
from quorate.planning.plan_row import PlanRow
from quorate.planning.vote_rows import Grid
from quorate.release.target import floor_budget
from quorate.students import as_student
from quorate.types import Secret


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicSide:
    """The public rows of a plan, as models see them.

    Attributes
    ----------
    pool : Rows
        Unlabelled public rows.
    views : Views
        How teachers and student see rows.
    schema : Schema
        How the direct method sees them.
    n_distinct : int
        Points that can be asked.
    """

    pool: Rows
    views: Views
    schema: Schema
    n_distinct: int


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
    online_answers: int = 0,
    n_labelled: int | None = None,
    teacher: Any = None,
    student: Any = None,
    feature_map: FeatureMapName = "auto",
    n_teachers: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    mechanisms: Sequence[Any] | None = None,
    learning_curve: Sequence[tuple[float, float]] | None = None,
    commonest: float | None = None,
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
    online_answers : int
        Answers to be kept back for later questions.
    n_labelled : int, optional
        How many private rows are labelled, for private learners with few labels; by default all.
    teacher, student : estimator, optional
        As for :class:`quorate.PrivateClassifier`.
    feature_map : str
        Of the direct method, as for :class:`quorate.PrivateLogisticRegression`.
    n_teachers, queries : sequence of int, optional
        Numbers of teachers and of queries to compare, in place of the default grid.
    mechanisms : sequence of type or mechanism, optional
        Likewise.
    learning_curve : sequence of (rows, accuracy), optional
        Accuracy of one teacher by the rows it learns from, as you know it from elsewhere.
    commonest : float, optional
        Share of the commonest class, as you know it from elsewhere.

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
    ('NoisyCounts', 184, 'σ = 117.9 votes')
    >>> [row.name for row in made.rows if row.cannot][-1]
    'GenericLearner'
    """
    epsilon, delta = floor_budget(epsilon, delta)
    told = None if classes is None else check_classes(classes)
    side = None if public is None else public_side(public, told or (0, 1), teacher=teacher, student=student)
    if side is not None:
        n_public, width = side.n_distinct, side.views.width
    facts = PublicFacts(
        n_records=count("n_records", n_records, at_least=1),
        n_public=_given("n_public", n_public),
        n_classes=len(told) if told is not None else _given("n_classes", n_classes),
        width=_given("width", width),
        epsilon=epsilon,
        delta=delta,
        online_answers=online_answers,
        n_rows=n_rows,
        unit=unit,
    )
    return plan_votes(
        facts,
        grid=Grid(
            mechanisms=mechanisms,
            n_teachers=_numbers("n_teachers", n_teachers, most=facts.n_records),
            queries=_numbers("queries", queries, most=facts.n_public),
        ),
        direct=row_of_direct(facts, side, feature_map=feature_map),
        learning_curve=None if learning_curve is None else LearningCurve.of(learning_curve),
        commonest=None if commonest is None else real("commonest", commonest, above=0, below=1),
        n_labelled=n_labelled,
    )


def public_side(
    public: Any, classes: Sequence[Any], *, teacher: Any = None, student: Any = None, built_in_models: bool = False
) -> PublicSide:
    """Check the public rows, and decide how models see them, as a run would.

    Raises
    ------
    DataRefused, InvalidParameter
        As a run would raise them.
    """
    pool = (public if isinstance(public, PublicPool) else PublicPool(public)).rows()
    digests = row_digests(pool)
    nobody = PrivateRows(pool, np.empty(0, dtype=np.int64), [], [])  # the views are told by the pool alone
    views = look(
        Inputs(private=Secret(nobody), public=pool, digests=digests, classes=tuple(classes)),
        teacher=built_in("logistic", "teacher") if teacher is None else teacher,
        student=as_student(built_in("logistic", "student") if student is None else student).learner,
        built_in=built_in_models or teacher is None,
    )
    return PublicSide(pool=pool, views=views, schema=Schema.of(pool), n_distinct=len(set(digests)))


def row_of_direct(facts: PublicFacts, side: PublicSide | None, *, feature_map: FeatureMapName = "auto") -> PlanRow:
    """Return the direct method's row, with the coordinates that the pool defines; or why there is none."""
    if side is None:
        return direct_row_unknown(facts, "its coordinates follow from public rows, and none were given")
    try:
        rows = side.schema.numbers(side.pool)
        made = plan_direct(
            feature_map_for(feature_map, rows),
            rows,
            n_classes=facts.n_classes,
            n_units=facts.n_records or 1,
            epsilon=facts.epsilon,
            delta=facts.delta,
        )
    except (InvalidParameter, DataRefused) as refusal:
        return direct_row_unknown(facts, str(refusal))
    return direct_row(facts, made)


def _given(name: str, value: int | None) -> int:
    if value is None:
        raise InvalidParameter(f"{name} is needed where there are no public rows to tell it; give {name}=")
    return value


def _numbers(name: str, given: Sequence[int] | None, *, most: int | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    numbers = tuple(count(name, each, at_least=1) for each in given)
    if most is not None and max(numbers) > most:
        raise InvalidParameter(f"{name} must be at most {most:,} here, got {max(numbers):,}")
    return numbers


__all__ = ["plan", "PublicSide", "public_side", "row_of_direct"]
