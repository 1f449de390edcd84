"""Labels needed: against the size of the domain, and against the VC dimension on the points that make it.

BNS15's generic learner stands beside learners that pay for the domain. Of the points that make a VC dimension each has
a label of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from quorate.errors import InvalidParameter
from quorate.experiments.few_labels.draws import (
    Population,
    Size,
    chooser,
    labels_needed,
    learning_curves,
    measured,
    rows_asked,
)
from quorate.experiments.measurement import Measured, watched
from quorate.learners import ExponentialLearner, GenericLearner, NoisyThreshold, PrivateLearner
from quorate.learners.concepts import Intervals, Rectangles, Threshold, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.sanitizers import MWEM, Tree
from quorate.types import FloatArray, Watch

ALPHA = 0.05
NEIGHBOURS = 256  # points of a cluster: the whole domain at 8 bits
ONES = 26  # of them below the cut, a tenth
GENERIC, EVERY_CUT, WHOLE_CLASS = "GenericLearner, Tree", "NoisyThreshold", "ExponentialLearner"
CLUSTERED, SPREAD = "a cluster in", "all of"


def cluster(bits: int, rng: np.random.Generator) -> Population:
    """Return 256 neighbouring points at a random place of the domain, a tenth of them below the cut."""
    start = int(rng.integers(0, 2**bits - NEIGHBOURS, endpoint=True))
    points = start + np.arange(NEIGHBOURS)[:, np.newaxis]
    return Population(points, (np.arange(NEIGHBOURS) < ONES).astype(np.uint8), np.full(NEIGHBOURS, 1 / NEIGHBOURS))


def learners_of_domain(bits: int) -> dict[str, PrivateLearner]:
    """Return the learners of the first part for one domain, by name."""
    domain = Thresholds(bits=bits)
    by_name: dict[str, PrivateLearner] = {
        GENERIC: GenericLearner(concepts=domain, sanitizer=Tree(), epsilon=1.0, alpha=ALPHA),
        EVERY_CUT: NoisyThreshold(concepts=domain, epsilon=1.0, alpha=ALPHA),
    }
    if bits <= 12:
        by_name[WHOLE_CLASS] = ExponentialLearner(concepts=domain, epsilon=1.0, alpha=ALPHA)
    return by_name


def labels_against_domain(size: Size, *, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure the error at every number of labels, for every domain and learner."""
    by_bits = {bits: learners_of_domain(bits) for bits in size.bits}
    errors: dict[int, dict[str, list[FloatArray]]] = {
        bits: {name: [] for name in (*by_name, SPREAD)} for bits, by_name in by_bits.items()
    }
    fewer: dict[int, list[FloatArray]] = {bits: [] for bits in size.bits}
    for bits, repeat in watched(watch, "labels against the domain", product(size.bits, range(repeats))):
        rng, by_name = np.random.default_rng([seed, bits, repeat]), by_bits[bits]
        populations = size.samples * [cluster(bits, rng)]
        for name, learner in by_name.items():
            n_unlabelled = rows_asked(learner).unlabelled
            errors[bits][name].append(learning_curves(learner, populations, size, n_unlabelled, rng, seed + repeat))
        fewer[bits].append(_errors_with_fewer(by_name[GENERIC], populations[0], size, rng, seed + repeat))
        errors[bits][SPREAD].append(_spread_errors(by_name[GENERIC], bits, size, rng, seed + repeat))
    return [
        _row_of_domain(
            by_bits[bits].get(name, by_bits[bits][GENERIC]), name, bits, np.array(curves), np.array(fewer[bits]), size
        )
        for bits in size.bits
        for name, curves in errors[bits].items()
    ]


def _spread_errors(learner: PrivateLearner, bits: int, size: Size, rng: np.random.Generator, seed: int) -> FloatArray:
    """Return errors at one number of labels where rows are spread over the whole domain, and cuts are anywhere."""
    assert isinstance(learner, GenericLearner)  # noqa: S101
    pick = chooser(learner, rng.integers(0, 2**bits, (rows_asked(learner).unlabelled, 1)), size.at_labels, seed)
    errors = []
    for number in range(size.samples):
        cut = int(rng.integers(0, 2**bits, endpoint=True))
        points = rng.integers(0, 2**bits, (size.at_labels, 1))
        concept = pick(points, (points[:, 0] < cut).astype(np.int8), number)
        assert isinstance(concept, Threshold)  # noqa: S101
        errors.append([abs(concept.cut - cut) / 2**bits])
    return np.array(errors)


def _errors_with_fewer(
    learner: PrivateLearner, population: Population, size: Size, rng: np.random.Generator, seed: int
) -> FloatArray:
    """Return the error at one number of labels with fewer unlabelled rows than the theorem asks for."""
    assert isinstance(learner, GenericLearner)  # noqa: S101
    points, labels = population.sample(size.at_labels, rng)
    unlabelled, _ = population.sample(max(size.unlabelled), rng)
    return np.array(
        [
            population.error(chooser(learner, unlabelled[:n_rows], size.at_labels, seed)(points, labels, 0))
            for n_rows in size.unlabelled
        ]
    )


def _row_of_domain(
    learner: PrivateLearner, name: str, bits: int, errors: FloatArray, fewer: FloatArray, size: Size
) -> Measured:
    needs, spread = rows_asked(learner), name == SPREAD
    least = labels_needed(size.unlabelled, fewer, ALPHA) if name == GENERIC else None
    return curve_row(
        f"thresholds, {SPREAD if spread else CLUSTERED} 2^{bits} points",
        GENERIC if spread else name,
        errors,
        size,
        log2_domain=float(bits),
        vc_dimension=1.0,
        labels_of_theorem=float(needs.labelled),
        unlabelled_rows=float(needs.unlabelled),
        unlabelled_needed=None if least is None else float(least),
    )


def curve_row(data: str, method: str, errors: FloatArray, size: Size, **more: Any) -> Measured:
    """Bring the errors of a line together: ``(n_repeats, n_samples, n_sizes)``, or of :attr:`Size.at_labels` alone."""
    whole = errors.shape[2] == len(size.labels)
    column = errors[:, :, size.labels.index(size.at_labels) if whole else 0]
    needed = labels_needed(size.labels, errors, ALPHA) if whole else None
    return measured(
        data,
        method,
        column,
        n_queries=float(size.at_labels),
        **more,
        alpha=ALPHA,
        labels_needed=None if needed is None else float(needed),
        error_mean=float(column.mean()),
        error_max=float(column.max()),
    )


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
        for name, learner in _learners_of_class(shape, size).items():
            errors = []
            for repeat in range(repeats):
                rng = np.random.default_rng([seed, place, repeat])
                populations = [shape.population(rng) for _ in range(size.samples)]
                n_unlabelled = _unlabelled(learner, size)
                errors.append(learning_curves(learner, populations, size, n_unlabelled, rng, seed + repeat))
            rows.append(_row_of_class(shape, name, learner, np.array(errors), size))
    return rows


def _learners_of_class(shape: Shattered, size: Size) -> dict[str, PrivateLearner]:
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


def _row_of_class(shape: Shattered, name: str, learner: PrivateLearner, errors: FloatArray, size: Size) -> Measured:
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
