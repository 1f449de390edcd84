"""What a plan sees: public rows as a run would show them to its models, and labels to rehearse with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from quorate.accounting.figures import several
from quorate.data import PublicPool, encode_labels, match_columns, n_rows, row_digests, slot_bytes
from quorate.data.column_kinds import column_kinds
from quorate.data.feature_maps import SharedPatches
from quorate.data.feature_maps.composed import FeatureMapName
from quorate.data.rows import Rows, take
from quorate.direct.budgets import PlannedBudgets
from quorate.direct.config import feature_map_of
from quorate.ensemble import as_teacher, with_classes
from quorate.errors import DataRefused, InvalidParameter, keyword, named
from quorate.planning.rehearsal.made_up import (
    AS_HARD,
    MOST_RULED,
    MOST_SYNTHETIC,
    RULES,
    Rule,
    rule_of,
    ruled_labels,
    synthetic_rows,
)
from quorate.planning.rehearsal.material import Material
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal
from quorate.run.expectation import BASES, Basis
from quorate.run.pool_cautions import few_rows_caution
from quorate.run.public_facts import PublicFacts
from quorate.run.schema import Schema
from quorate.students import AutoStudent, as_student
from quorate.students.scores import Judged
from quorate.types import IntArray, Secret
from quorate.voting.coordinates import in_coordinates, pool_for_votes
from quorate.voting.inputs import Inputs, PrivateRows, Views, directions_of_images, look
from quorate.voting.models import DEFAULT_TEACHER, EARLIER_TEACHER, default_teacher, is_linear, teacher_named
from quorate.voting.recipe import recipe

REHEARSE = ("auto", "labels", "rules", "synthetic", "no")


class Models(NamedTuple):
    """Who votes, who learns, the features of the direct method, and who else might vote; None for the defaults."""

    teacher: Any = None
    student: Any = None
    feature_map: FeatureMapName = "auto"
    compared: tuple[str, ...] | None = None


DEFAULTS = Models()


class Seen(NamedTuple):
    """The pool as teachers and as the student see it, and as numbers."""

    teacher: Any
    student: Any
    numbers: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicSide:
    """The public rows of a plan, as `models` see them: by `views`, by `schema` in the direct method, and by `plain`
    where classes are released. `n_distinct`: points that can be asked.
    """

    pool: Rows
    classes: tuple[Any, ...]
    models: Models
    views: Views
    schema: Schema
    n_distinct: int
    default_teacher: Any
    own_map: FeatureMapName = "auto"
    plain: PublicSide | None = field(default=None, repr=False)
    patches: SharedPatches = field(default_factory=SharedPatches, repr=False)
    _direct: dict[FeatureMapName, PlannedBudgets] = field(default_factory=dict, repr=False)
    _cache: list[Seen] = field(default_factory=list, repr=False)

    @property
    def pool_views(self) -> Seen:
        """The pool as each model sees it, looked at once for all rehearsals."""
        if not self._cache:
            teacher, student = self.shown(self.pool)
            numbers = student if self.views.numbers == self.views.student else self.views.numbers(self.pool)
            self._cache.append(Seen(teacher, student, numbers))
        return self._cache[0]

    def shown(self, rows: Rows) -> tuple[Any, Any]:
        """Return public rows as teachers and as the student see them; images, which both see alike, are seen once."""
        see = self.views
        alike = see.student == replace(see.teacher, fixed=False, marks={})
        for_teachers = see.teacher(rows)
        if alike and see.student.encoder is None and see.student.directions is not None:
            return for_teachers, for_teachers
        return for_teachers, see.student(rows)

    def direct(self, feature_map: FeatureMapName) -> PlannedBudgets:
        """Return what the direct method would do at a budget; shared by all that ask for one feature map."""
        if feature_map == "auto":
            feature_map = self.own_map
        if feature_map not in self._direct:
            self._direct[feature_map] = PlannedBudgets(
                self.schema.numbers(self.pool), feature_map, self.patches, self.schema.indicator_blocks
            )
        return self._direct[feature_map]


def public_side(public: Any, classes: Sequence[Any], models: Models = DEFAULTS) -> PublicSide:
    """Check the public rows, and decide how models see them, as a run would; a teacher may be the name of a model."""
    table = public if isinstance(public, PublicPool) else PublicPool(public)
    pool = table.rows()
    patches = SharedPatches()
    digests, images = row_digests(pool), directions_of_images(table, patches=patches)
    own = models.teacher is None or isinstance(models.teacher, str)
    default, teacher = default_teacher(images=images is not None), teacher_named(models.teacher)
    teacher = default if teacher is None else teacher
    nobody = PrivateRows(pool, np.empty(0, dtype=np.int64), [], [])  # the views are told by the pool alone
    views = look(
        Inputs(
            private=Secret(nobody),
            public=pool,
            digests=digests,
            classes=tuple(classes),
            kinds=column_kinds(pool, table.given),
        ),
        teacher=teacher,
        student=as_student(models.student),
        built_in=own,
        directed=own and is_linear(teacher),
        images=images,
    )
    return PublicSide(
        pool=pool,
        classes=tuple(classes),
        models=models,
        views=views,
        schema=Schema.of(pool, given=table.given),
        n_distinct=len(set(digests)),
        default_teacher=default,
        own_map=feature_map_of(table),
        patches=patches,
    )


def in_coordinates_of(side: PublicSide, facts: PublicFacts) -> tuple[PublicSide, PublicFacts]:
    """Let default teachers and students see coordinates of the pool, as in a run; the facts say whether they do."""
    open_ = as_student(side.models.student) == AutoStudent()
    pool = pool_for_votes(side.pool, side.views, None) if open_ and facts.rows is not None else None
    if pool is None:
        return side, facts
    facts = replace(facts, tiny=teacher_named(side.models.teacher) is None)
    advised = recipe(facts)
    views, teacher = in_coordinates(
        pool, side.views, side.pool, facts, n_teachers=advised.n_teachers, n_queries=advised.n_queries
    )
    return replace(side, views=views, default_teacher=teacher or side.default_teacher, plain=side, _cache=[]), facts


def rehearsals_of(
    facts: PublicFacts,
    side: PublicSide | None,
    *,
    how: str,
    judged: Judged,
    y_public: Any,
    evaluation: tuple[Any, ...] | None,
) -> tuple[Rehearsal, ...]:
    """Return what plays the plan's rows: one rehearsal on true labels, or one a rule; none on too few public rows."""
    labelled = y_public is not None or evaluation is not None
    if how == "no" or (how == "auto" and not labelled):
        return ()
    if side is None or (how in ("auto", "labels") and not labelled):
        raise InvalidParameter(
            f"{named('rehearse', how)} plays on public rows{' with labels' * (how == 'labels')}, and none were given; "
            f"give {keyword('evaluation' if how == 'labels' else 'public')}, or take {named('rehearse', 'synthetic')}"
        )
    if how in ("auto", "labels"):
        material = labelled_material(side, judged=judged, y_public=y_public, evaluation=evaluation)
        return (Rehearsal(material=material, facts=facts, effort=_effort(facts, side)),)
    basis: Basis = "synthetic rows" if how == "synthetic" else "rules on the pool"
    return _by_rules(facts, side, [rule_of(number) for number in range(RULES)], basis)


def rehearsals_as_hard(
    facts: PublicFacts, side: PublicSide, *, how: str, commonest: float | None, basis: Basis
) -> tuple[Rehearsal, ...]:
    """Return what plays the plan's rows where a learning curve tells how hard labels are: a rehearsal a rule."""
    if how in ("labels", "no"):
        raise InvalidParameter(
            f"{named('rehearse', how)} does not go with a learning curve, which is rehearsed with rules as hard as it "
            "says; leave one of the two out"
        )
    return _by_rules(facts, side, [replace(rule, commonest=commonest) for rule in AS_HARD], basis)


def _by_rules(facts: PublicFacts, side: PublicSide, rules: Sequence[Rule], basis: Basis) -> tuple[Rehearsal, ...]:
    if few_rows_caution(facts.n_public, facts.n_classes, learns="").applies:
        return ()  # the rows that are scored are those that were asked: nothing is told of others
    brief = replace(_effort(facts, side), folds=1, repeats=1)  # rules differ by more than plays of one
    return tuple(
        Rehearsal(material=ruled_material(side, basis, rule, seed), facts=facts, effort=brief, seed=seed)
        for seed, rule in enumerate(rules)
    )


def _effort(facts: PublicFacts, side: PublicSide) -> Effort:
    """Return how much is played: a student that compares models takes many fits; in coordinates there is one model."""
    costly = not facts.tiny and bool(getattr(as_student(side.models.student), "compares_models", False))
    return Effort.of(facts.n_public, facts.width, facts.n_classes, costly=costly)


def synthetic_side(facts: PublicFacts, classes: Sequence[Any], models: Models = DEFAULTS) -> PublicSide:
    """Return made-up rows in place of public ones."""
    rows = synthetic_rows(min(facts.n_public, MOST_SYNTHETIC), facts.width, 0)
    return in_coordinates_of(public_side(rows, classes, models), facts)[0]


def labelled_material(
    side: PublicSide,
    *,
    judged: Judged | None = None,
    y_public: Any = None,
    evaluation: tuple[Any, ...] | None = None,
) -> Material:
    """Gather labelled public rows for a rehearsal, of `evaluation` where there are both, as each model sees them."""
    groups = None
    if evaluation is not None:
        _, rows = match_columns(side.pool, evaluation[0], called=("public", "evaluation"))
        codes = encode_labels(evaluation[1], side.classes, name="evaluation labels")
        if len(evaluation) > 2:  # whose each row is, as numbers
            keys = slot_bytes(evaluation[2], len(codes), name="evaluation groups")
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            groups = np.array([numbers[key] for key in keys], dtype=np.int64)
    else:
        rows, codes = side.pool, encode_labels(y_public, side.classes, name="y_public")
    if len(codes) != n_rows(rows):
        raise DataRefused("labels of the public rows differ in number from the rows; give one for every row")
    if evaluation is None:
        material = pool_material(side, np.arange(len(codes)), codes, "labelled public rows")
    else:
        views = *side.shown(rows), side.schema.parsed(rows)[0]
        material = _material(side, views, codes, None, "labelled public rows")
    judged = judged or Judged(scoring="accuracy")
    if side.plain is not None:
        how: dict[str, Any] = {"y_public": y_public, "evaluation": evaluation}
        alone = replace(side.plain, models=side.models._replace(compared=()))
        plain = labelled_material(alone, judged=judged, **how)
        material = replace(material, plain=plain)
    material = replace(material, groups=groups, scoring=judged.by(codes, len(side.classes)), shares=judged.shares)
    models = side.models
    names = _compared_by_default(side, models.teacher) if models.compared is None else models.compared
    own = DEFAULT_TEACHER if models.teacher is None else models.teacher  # which is compared with others, not itself
    return replace(material, others={name: _with_teachers(material, side, rows, name) for name in names if name != own})


def _compared_by_default(side: PublicSide, teacher: Any) -> tuple[str, ...]:
    """Return whom the default teachers are compared with: trees, where columns are numbers and categories."""
    kinds = side.views.teacher.kinds
    mixed = bool(kinds.of("number")) and bool(kinds.of("category"))
    return ("tree",) if mixed and teacher in (None, DEFAULT_TEACHER, EARLIER_TEACHER) else ()


def _with_teachers(material: Material, side: PublicSide, rows: Rows, name: str) -> Material:
    """Return the same rows as teachers of a model of quorate's own see them, and these teachers."""
    teacher, see = teacher_named(name), (side.plain or side).views.teacher
    if not is_linear(teacher):
        see = replace(see, directions=None)  # as in a run: those are for linear models
    return replace(
        material, teacher=as_teacher(teacher), pool=(see(side.pool), material.pool[1]),
        rows=(see(rows), *material.rows[1:]),
    )  # fmt: skip


def ruled_material(side: PublicSide, basis: Basis, rule: Rule, seed: int) -> Material:
    """Repeat the rows of the pool with labels by a rule: as many as teachers and rounds need."""
    one_unit = side.views.numbers.directions is not None
    at, codes = ruled_labels(side.pool_views.numbers, len(side.classes), MOST_RULED, rule, seed, one_unit=one_unit)
    plain = None if side.plain is None else pool_material(side.plain, at, codes, basis)
    return replace(pool_material(side, at, codes, basis), plain=plain)


def pool_material(side: PublicSide, at: IntArray, codes: IntArray, basis: Basis) -> Material:
    """Gather rows of the pool, by number, with these labels."""
    return _material(
        side, (take(side.pool_views.teacher, at), take(side.pool_views.student, at), None), codes, at, basis
    )


def _material(
    side: PublicSide, rows: tuple[Any, Any, Any], codes: IntArray, in_pool: IntArray | None, basis: Basis
) -> Material:
    models, classes = side.models, side.classes
    chosen = teacher_named(models.teacher)
    return Material(
        pool=(side.pool_views.teacher, side.pool_views.student),
        points=side.pool_views.numbers,
        rows=rows,
        codes=codes,
        in_pool=in_pool,
        teacher=as_teacher(side.default_teacher if chosen is None else with_classes(chosen, classes), classes=classes),
        student=as_student(models.student),
        classes=classes,
        basis=basis,
        schema=side.schema,
        direct=side.direct(models.feature_map),
        one_unit=side.views.numbers.directions is not None,
        prior=side.views.prior,
    )


def notes_of(rehearsals: Sequence[Rehearsal]) -> tuple[str, ...]:
    """Say what a plan's figures rest on, and what its rehearsals found."""
    if not rehearsals:
        return ()
    first = rehearsals[0]
    said = [BASES[first.material.basis]]
    if constant := first.constant:
        rows = round((first.facts.rows or 1) / max(constant))
        said.append(
            f"with {several(max(constant), 'teacher')}, of {several(rows, 'row')} each, every teacher says one class "
            "whatever it is asked"
        )
    if first.not_rehearsed is not None:
        said.append(first.not_rehearsed)
    if first.mixed and first.material.basis == "labelled public rows":
        said.append(
            "nothing tells whose the labelled public rows are, so that a teacher's rows were drawn from all: one "
            f"{first.facts.unit}'s resemble each other more, and what is expected is too high by what that makes; tell "
            f"whose they are in {named('evaluation')}, by {named('groups')}"
        )
    return tuple(said)
