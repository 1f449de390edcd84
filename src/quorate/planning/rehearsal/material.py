"""What a rehearsal plays with: public rows as each model sees them, and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.rows import n_rows
from quorate.direct.budgets import PlannedBudgets
from quorate.ensemble import Teacher
from quorate.errors import InvalidParameter
from quorate.planning.plan_row import PlanRow
from quorate.run.expectation import Basis
from quorate.run.schema import Schema
from quorate.students import Student
from quorate.students.scores import ScoredRows, rarer
from quorate.students.student import LinearPrior, SharedCoordinates
from quorate.types import FloatArray, IntArray

FEWEST = 40  # labelled public rows below which nothing is rehearsed


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Material:
    """Public rows and labels: `pool` and `points`, unlabelled, which are asked; `rows`, labelled with `codes`, to play
    the private ones or be scored on, which the direct method finds by `in_pool`. `groups`: whose row each is; `plain`:
    rows where classes are released; `shares`: of classes, as declared; `others`: for teachers of another model, by its
    name.
    """

    pool: tuple[Any, Any] = field(repr=False)
    points: Any = field(repr=False)
    rows: tuple[Any, Any, Any] = field(repr=False)
    codes: IntArray = field(repr=False)
    in_pool: IntArray | None = field(repr=False)
    teacher: Teacher
    student: Student
    classes: tuple[Any, ...]
    basis: Basis
    schema: Schema | None = field(repr=False)
    direct: PlannedBudgets | None = field(default=None, repr=False)
    one_unit: bool = False
    prior: LinearPrior | None = None
    plain: Material | None = field(default=None, repr=False)
    groups: IntArray | None = field(default=None, repr=False)
    coordinates: SharedCoordinates = field(default_factory=SharedCoordinates, repr=False)
    scoring: str = "accuracy"
    shares: tuple[float | None, ...] | None = None
    others: Mapping[str, Material] = field(default_factory=dict, repr=False)
    _along: list[FloatArray] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if len(self.codes) < FEWEST:
            raise InvalidParameter(
                f"a rehearsal takes {FEWEST} labelled public rows or more, got {len(self.codes)}; without them give "
                "learning_curve=, or leave the rehearsal out"
            )

    def of_row(self, row: PlanRow) -> Material:
        """Return these rows as the models of a plan's row see them."""
        values = row.mechanism is None or row.mechanism.releases_values
        here = self if values or self.plain is None else self.plain
        return self.others.get(row.model, here) if row.model else here

    @property
    def n_public(self) -> int:
        """Rows that may be asked."""
        return n_rows(self.points)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def commonest(self) -> float:
        """Accuracy of always saying the commonest class of the labelled rows."""
        return float(np.bincount(self.codes, minlength=self.n_classes).max() / len(self.codes))

    @property
    def baseline(self) -> float | None:
        """What the score is for always saying that class; None where these rows do not give it."""
        return self.scored(np.full(len(self.codes), int(np.bincount(self.codes).argmax())), None).baseline(self.scoring)

    def scored(self, predicted: IntArray, probabilities: FloatArray | None, held: IntArray | None = None) -> ScoredRows:
        """Return what was said of held-out rows, or of all, to be scored as the run would be."""
        counts = np.bincount(self.codes, minlength=self.n_classes).tolist()
        return ScoredRows(
            truth=self.codes if held is None else self.codes[held],
            predicted=predicted,
            probabilities=probabilities,
            n_classes=self.n_classes,
            positive=rarer(self.shares or counts) if self.n_classes == 2 else 0,
        )

    @property
    def along(self) -> FloatArray:
        """The labelled rows along the pool's directions, for whatever budget of the direct method."""
        assert self.schema is not None and self.direct is not None  # noqa: S101, PT018 - both, or there is no row
        if not self._along:
            direct, at = self.direct, self.in_pool
            self._along.append(
                direct.along(self.schema.numbers(self.rows[2])) if at is None else direct.along_in_pool(at)
            )
        return self._along[0]

    def divided(self, rows: IntArray, parts: int, rng: np.random.Generator) -> list[IntArray]:
        """Divide rows at random into parts of about one size; where it is known whose they are, nobody is in two."""
        if self.groups is None:
            return np.array_split(rng.permutation(rows), parts)
        owners, sizes = np.unique(self.groups[rows], return_counts=True)
        order = rng.permutation(len(owners))
        before = np.cumsum(sizes[order]) - sizes[order] / 2
        part = np.empty(len(owners), dtype=np.int64)
        part[order] = np.minimum(before * parts // len(rows), parts - 1).astype(np.int64)
        of_rows = part[np.searchsorted(owners, self.groups[rows])]
        return [rows[of_rows == number] for number in range(parts)]

    def drawn(self, rows: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Draw n of these rows: one person's after another's, in proportion to their rows, the last cut off."""
        if self.groups is None:
            return rng.choice(rows, min(n, len(rows)), replace=False)
        order = rng.permutation(self.groups[rows])
        owners, first = np.unique(order, return_index=True)  # who has many rows comes early
        place = np.argsort(np.argsort(first))[np.searchsorted(owners, self.groups[rows])]
        return rows[np.argsort(place, kind="stable")[:n]]
