"""Labels needed against the VC dimension, on the points that make it: each has a label of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.errors import InvalidParameter
from quorate.experiments.few_labels.domain import ALPHA, GENERIC, WHOLE_CLASS, curve_row
from quorate.experiments.few_labels.draws import Population, Size, learning_curves, rows_asked
from quorate.experiments.measurement import Measured, watched
from quorate.learners import ExponentialLearner, GenericLearner, PrivateLearner
from quorate.learners.concepts import Intervals, Rectangles, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.sanitizers import MWEM, Tree
from quorate.types import FloatArray, Watch

HEAVY = 0.8  # of the rows lie on one point, whose label is known; the others are shared by VC(C) points
LARGE_GRID_BITS = 16
SANITIZED = "GenericLearner, MWEM"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shattered:
    """A class, and the points that it labels in every way: a heavy `centre`, labelled 1, and VC(C) `light` ones."""

    name: str
    concepts: ConceptClass
    centre: tuple[int, ...]
    light: tuple[tuple[int, ...], ...]

    def population(self, rng: np.random.Generator) -> Population:
        """Label the light points at random."""
        n = len(self.light)
        truth = np.concatenate([[1], rng.integers(0, 2, n)]).astype(np.uint8)
        return Population(np.array([self.centre, *self.light]), truth, np.array([HEAVY] + n * [(1 - HEAVY) / n]))


def boxes(*bits: int) -> Shattered:
    """Return rectangles over columns of 2 (one bit) or 4 values: a point beside the centre for each face."""
    faces = [(column, value) for column, width in enumerate(bits) for value in ((0, 2) if width > 1 else (0,))]
    light = tuple(tuple(value if place == column else 1 for place in range(len(bits))) for column, value in faces)
    name = "rectangles on " + " × ".join(str(2**width) for width in bits)
    return Shattered(name=name, concepts=Rectangles(bits, len(bits)), centre=(1,) * len(bits), light=light)


def line(concepts: Thresholds | Intervals, name: str) -> Shattered:
    """Return thresholds or intervals, in the middle of their grid."""
    middle = 1 << (concepts.bits - 1)
    light = ((middle + 1,), (middle - 1,))[: concepts.vc_dimension]
    return Shattered(name=name, concepts=concepts, centre=(middle,), light=light)


def classes() -> list[Shattered]:
    """Return the classes of this part: on small grids, then on a large one."""
    return [
        line(Thresholds(2), "thresholds on 4"),
        boxes(2),
        boxes(2, 2),
        boxes(2, 2, 1),
        boxes(2, 2, 2),
        line(Thresholds(LARGE_GRID_BITS), f"thresholds on 2^{LARGE_GRID_BITS}"),
        line(Intervals(LARGE_GRID_BITS), f"intervals on 2^{LARGE_GRID_BITS}"),
    ]


def labels_against_vc(size: Size, *, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure the error at every number of labels, for every class and learner."""
    rows = []
    for place, shape in enumerate(watched(watch, "labels against VC(C)", classes())):
        for name, learner in _learners(shape, size).items():
            errors = []
            for repeat in range(repeats):
                rng = np.random.default_rng([seed, place, repeat])
                populations = [shape.population(rng) for _ in range(size.samples)]
                n_unlabelled = _unlabelled(learner, size)
                errors.append(learning_curves(learner, populations, size, n_unlabelled, rng, seed + repeat))
            rows.append(_row(shape, name, learner, np.array(errors), size))
    return rows


def _learners(shape: Shattered, size: Size) -> dict[str, PrivateLearner]:
    if shape.concepts.domain_size is not None and shape.concepts.domain_size > 4096:
        return {GENERIC: GenericLearner(concepts=shape.concepts, sanitizer=Tree(), epsilon=1.0, alpha=ALPHA)}
    whole_class: dict[str, PrivateLearner] = {
        WHOLE_CLASS: ExponentialLearner(concepts=shape.concepts, epsilon=1.0, alpha=ALPHA)
    }
    generic = GenericLearner(concepts=shape.concepts, sanitizer=MWEM(), epsilon=1.0, alpha=ALPHA)
    try:
        generic._plan(1, size.sanitized_rows, *generic._target())
    except InvalidParameter:  # more queries than a table of MWEM holds
        return whole_class
    return {**whole_class, SANITIZED: generic}


def _unlabelled(learner: PrivateLearner, size: Size) -> int:
    if not isinstance(learner, GenericLearner):
        return 0
    return rows_asked(learner).unlabelled if isinstance(learner.sanitizer, Tree) else size.sanitized_rows


def _row(shape: Shattered, name: str, learner: PrivateLearner, errors: FloatArray, size: Size) -> Measured:
    try:
        labels_of_theorem: float | None = float(rows_asked(learner).labelled)
    except InvalidParameter:  # no number of unlabelled rows is proven to be enough for MWEM
        labels_of_theorem = None
    return curve_row(
        shape.name,
        name,
        errors,
        size,
        vc_dimension=float(shape.concepts.vc_dimension),
        labels_of_theorem=labels_of_theorem,
        unlabelled_rows=float(_unlabelled(learner, size)),
    )
