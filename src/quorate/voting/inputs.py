"""What goes into a run, checked as whole tables before anything is fitted or charged.

A refusal here is told to the owner of the data alone. It is no release, and lies outside the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quorate.ambient import of_arrays
from quorate.data import (
    PrivateRecords,
    PublicPool,
    check_classes,
    check_features,
    encode_labels,
    families,
    is_frame,
    is_same_table,
    kind,
    match_columns,
    missing_columns,
    n_rows,
    needs_encoding,
    public_encoder,
    refuse_infinite,
    refuse_missing,
    refuse_unscalable,
    row_digests,
    slot_bytes,
    take,
)
from quorate.data.column_kinds import ColumnKinds, column_kinds
from quorate.data.columns import refuse_larger
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.feature_maps import PoolDirections, PoolScale, SharedPatches
from quorate.data.feature_maps.first_maps import has_patches
from quorate.data.feature_maps.pool_coordinates import OF_IMAGES, UnitCoordinates, is_wide
from quorate.data.fixed_types import absent_marks, fixed_types
from quorate.data.labels import Label
from quorate.data.rows import Rows
from quorate.data.schema_encoder import encoder_of
from quorate.ensemble.ensemble import largest_number
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.run.progress import in_parts
from quorate.run.schema import check_pool
from quorate.run.usable_rows import PrivateTable
from quorate.students.student import EstimatorStudent, LinearPrior, Student
from quorate.types import IntArray, Secret, Watch


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """The labelled rows to protect; as they came, in `cells`, where a pool is drawn from what these say."""

    X: Rows
    codes: IntArray
    unit_keys: Sequence[bytes]
    digests: Sequence[bytes]
    cells: PrivateTable | None = None

    @classmethod
    def none(cls) -> PrivateRows:
        """No rows: what is left once they are no longer needed."""
        return cls(None, np.empty(0, dtype=np.int64), [], [])


@dataclass(frozen=True, slots=True)
class Inputs:
    """Both sides of the boundary; where it is `declared` what columns hold, public rows are drawn for that."""

    private: Secret[PrivateRows]
    public: Rows
    digests: Sequence[bytes]
    classes: tuple[Label, ...]
    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    declared: DeclaredSchema | None = None

    def on(self, pool: Rows) -> Inputs:
        """Return both sides with the pool that was drawn."""
        return replace(self, public=pool, digests=row_digests(pool))

    def records(self) -> PrivateRecords:
        """Return by what the private rows are known again, once they are gone."""
        return PrivateRecords(self.private.reveal().X, self.kinds)


def check_inputs(
    X: Any,
    y: Any,
    *,
    public: Any,
    classes: Sequence[Any],
    groups: Any | None,
    label_name: str = "y",
    group_name: str = "groups",
    public_name: str = "public",
    labels_only: bool = False,
    words_as_written: bool = False,
    watch: Watch | None = None,
) -> Inputs:
    """Check the tables against each other. `labels_only`: features are public, so that the private rows may be the
    pool. `words_as_written`: categories are told apart however an entry is written, as in runs begun before.
    """
    public, declared = check_pool(public), check_classes(classes)
    public.refuse_images(X)
    rows = check_features(X, allow_missing=True, pool=public.rows())
    n = n_rows(rows)
    codes, unit_keys = labels_and_keys(y, groups, declared, n, label_name=label_name, group_name=group_name)
    rows, pool = match_columns(rows, public.rows())
    digests, public_digests = row_digests(rows, watch=in_parts(watch, "private rows")), row_digests(pool)
    if not labels_only and is_same_table(rows, pool, digests=(digests, public_digests)):
        raise DataRefused(
            f"{public_name} holds the private rows again; every row of the pool is published, in effect. Give rows "
            "that may be shown and are about nobody in the private table"
        )
    kinds = column_kinds(pool, public.given)
    return Inputs(
        private=Secret(PrivateRows(rows, codes, unit_keys, digests)),
        public=pool,
        digests=public_digests,
        classes=declared,
        kinds=replace(kinds, words={}) if words_as_written else kinds,
    )


def labels_and_keys(
    y: Any, groups: Any, classes: Sequence[Any], n: int, *, label_name: str, group_name: str
) -> tuple[IntArray, Sequence[bytes]]:
    """Return the class and the unit key of each of n rows; raises DataRefused if there is not one of each."""
    codes = encode_labels(y, classes, name=label_name)
    if len(codes) != n:
        raise DataRefused(f"{named('X')} and {label_name} differ in length; give one label for every row")
    return codes, slot_bytes(groups, n, name=group_name)


@dataclass(frozen=True, slots=True)
class View:
    """How one model sees rows: as they are, or through what was fitted on the public pool, encoder and directions.
    Private rows, and all that teachers see, come in fixed column types: one read off all private rows would tie every
    teacher to every row. What rows do not show of their types is that of the pool, in `marks`.
    """

    encoder: Any | None
    fixed: bool = False
    reads_frames: bool = False
    kinds: ColumnKinds = field(default_factory=ColumnKinds)
    directions: PoolDirections | UnitCoordinates | None = None
    marks: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def makes_numbers(self) -> bool:
        """Whether the model is given an array of numbers, whatever holds the rows."""
        return self.encoder is not None or self.directions is not None

    def __call__(self, rows: Rows) -> Any:
        """Return what the model is given."""
        rows = self.kinds(rows)
        if self.fixed:
            rows = fixed_types(rows, self.marks)
        encoded = rows if self.encoder is None else self.encoder.transform(rows)
        return encoded if self.directions is None else self.directions.transform(encoded)

    def wrapped(self, student: Any, pool: Rows) -> Any:
        """Return a student of what this view shows as a classifier of rows as they come, which may be published."""
        if self.encoder is None and self.directions is None:
            return student
        from sklearn.frozen import FrozenEstimator
        from sklearn.pipeline import Pipeline

        steps = [] if self.encoder is None else [("encoder", FrozenEstimator(self.encoder))]
        if self.directions is not None:
            some = self.kinds(take(pool, np.arange(min(2, n_rows(pool)))))
            transformer = self.directions.transformer(some if self.encoder is None else self.encoder.transform(some))
            steps.append(("directions", FrozenEstimator(transformer)))
        return Pipeline([*of_arrays(steps), ("student", student)])

    def unwrapped(self, published: Any) -> Any:
        """Return the student of a classifier that :meth:`wrapped` made."""
        return published if self.encoder is None and self.directions is None else published.steps[-1][1]

    def check(self, rows: Rows, name: str, *, largest: float = np.inf) -> None:
        """Refuse rows, called `name`, of which a number is infinite, would become so, or is larger than that."""
        if self.encoder is not None:
            refuse_unscalable(self.encoder, rows, name, largest=largest)
        elif is_frame(rows) and not self.reads_frames:
            refuse_infinite(rows, name)


@dataclass(frozen=True, slots=True)
class Views:
    """The teachers' view, the student's, and the pool as numbers, of so many columns; one encoder serves all."""

    teacher: View
    student: View
    numbers: View
    width: int
    prior: LinearPrior | None = None


def directions_of_images(public: Any, *, patches: SharedPatches | None = None) -> PoolDirections | None:
    """Return how default models see images: directions of patches; None of a pool that has no square grey ones."""
    shape = public.image_shape if isinstance(public, PublicPool) else None
    if shape is None or not has_patches(shape) or public.n_rows <= OF_IMAGES:
        return None
    pool = public.rows()
    if missing_columns(pool).any():
        return None
    try:
        return PoolDirections.of_images(pool, patches=patches)
    except InvalidParameter:
        return None


def look(
    inputs: Inputs,
    *,
    teacher: Any,
    student: Student,
    built_in: bool,
    directed: bool = False,
    images: PoolDirections | None = None,
) -> Views:
    """Decide who sees encoded rows, and refuse missing and infinite values where a model cannot take them. A Pipeline
    gets the frame as it is: its own steps read it; and so does a Teacher that says ``reads_frames``. Any other model
    gets encoded rows where the frame has columns that are not numbers. The built-in models get every frame encoded, and
    arrays in units of the pool where columns have units of their own. Teachers that are `directed` see a wide table in
    the leading directions of the pool. `images` are seen in directions of patches by these, by models of the shares,
    and by a student that leaves its classifier open. Privacy: the encoder is fitted on public rows alone.
    """
    frame = is_frame(inputs.public)
    encoder, kinds = None, inputs.kinds
    if inputs.declared is not None:
        encoder = encoder_of(inputs.declared, kinds(inputs.public))
    elif frame or missing_columns(inputs.public).any():
        # Without a rule times are none of the columns that the encoder reads, and dates are refused where a model would
        # meet them; Pipelines that read the frame may read them.
        columns = kinds(inputs.public)
        kept = [name for name, family in families(columns).items() if family != "time"]
        encoder = public_encoder(columns[kept] if kept else columns, kinds.text)
    encoded = View(encoder if frame and (built_in or kinds.changed or needs_encoding(inputs.public)) else None)
    if built_in and not frame and images is None:  # pixels have one unit
        encoded = View(_units_of(inputs.public) if encoder is None else None)
    views = {}
    for role, model in {"teacher": teacher, "student": student.learner}.items():
        reads_frames = frame and _reads_frames(model)
        view = View(None if reads_frames else encoded.encoder, reads_frames=reads_frames)
        if view.encoder is not None or inputs.declared is not None:
            view = replace(view, kinds=kinds)
        if role == "teacher":
            view = replace(view, fixed=True, marks=absent_marks(view.kinds(inputs.public)))
        views[role] = view
        if inputs.declared is not None:  # which says of every column that a cell may be missing
            refuse_untaken(model, view, inputs.public.clear(1), name="a table of this schema", role=role)
            continue
        view.check(inputs.public, "public")
        if role == "teacher":
            view.check(inputs.private.reveal().X, "X")
        refuse_untaken(model, view, inputs.public, name="public", role=role)
        refuse_untaken(model, view, inputs.private.reveal().X, name="X", role=role)
    numbers = View(encoder, kinds=kinds, directions=images)
    if directed:
        views["teacher"] = _in_directions(views["teacher"], inputs.public, images, drawn=inputs.declared is not None)
    if images is not None and isinstance(student, EstimatorStudent) and student.estimator is None:
        views["student"] = replace(views["student"], directions=images)
    as_they_are = replace(numbers, directions=None)
    return Views(views["teacher"], views["student"], numbers, width=int(as_they_are(take(inputs.public, [0])).shape[1]))


def _reads_frames(model: Any) -> bool:
    """Tell whether a model wants a frame as it is: a Pipeline, and a teacher that says so."""
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline) or getattr(model, "reads_frames", False) is True


def refuse_untaken(model: Any, view: View, rows: Rows, *, name: str, role: str = "teacher") -> None:
    """Refuse rows with missing values where a model takes none, naming both: it would abstain from them, or fail."""
    frame = is_frame(rows)
    if (not frame or (view.encoder is None and not view.reads_frames)) and not _takes_missing(model):
        refuse_missing(rows, name=name, taker=f"the {role} {type(model).__name__}")


def refuse_asked(model: Any, view: View, rows: Rows, *, name: str) -> None:
    """Refuse public rows that are asked about and that the declared kind of teacher cannot hold: before any draw."""
    largest, rows = largest_number(model), view.kinds(rows)  # a number that is written as a text is one too
    view.check(rows, name, largest=largest)
    refuse_untaken(model, view, rows, name=name)
    if largest < np.inf:
        refuse_larger(rows, largest, name=name, taker=f"the teacher {type(model).__name__}")


def _in_directions(view: View, pool: Rows, images: PoolDirections | None, *, drawn: bool) -> View:
    """Return a view through the leading directions of what the pool looks like in this one, where that is wide."""
    if images is not None:
        return replace(view, directions=images)
    if view.reads_frames or not is_wide(int(view(take(pool, [0])).shape[1]), n_rows(pool)):
        return view
    try:
        return replace(view, directions=PoolDirections.of(view(pool)))
    except InvalidParameter:
        if not drawn:
            raise
        return view  # rows that are all equal tell no directions; nothing is refused of what was drawn


def _units_of(pool: Rows) -> Any | None:
    """Return what puts number columns without gaps into units of the pool; None of sparse rows, and of one scale."""
    if kind(pool) == "sparse":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        scale = PoolScale.fit(np.asarray(pool, dtype=np.float64))
    known = np.isfinite(scale.mean).all() and np.isfinite(scale.scale).all()
    return scale.transformer() if known and scale.differing else None


def _takes_missing(model: Any) -> bool:
    """Tell whether a model says that it takes missing values, as a Pipeline of steps that do, or that imputes."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags

    if isinstance(model, Pipeline):
        for _, step in model.steps:
            if step is None or step == "passthrough":
                continue
            if not _takes_missing(step):
                return False
            if type(step).__module__.startswith("sklearn.impute"):
                return True
        return True
    if not hasattr(model, "__sklearn_tags__"):
        return bool(getattr(model, "takes_missing", False))
    try:
        return bool(get_tags(model).input_tags.allow_nan)
    except AttributeError:  # a part of it is of a plain class
        return False
