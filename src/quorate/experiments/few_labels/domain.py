"""Labels needed against the size of the domain: BNS15's generic learner beside learners that pay for the domain."""

from __future__ import annotations

from itertools import product

import numpy as np

from quorate.experiments.few_labels.draws import Population, Size, chooser, labels_needed, learning_curves, rows_asked
from quorate.experiments.measurement import Measured, standard_error, watched
from quorate.learners import ExponentialLearner, GenericLearner, NoisyThreshold, PrivateLearner
from quorate.learners.concepts import Threshold, Thresholds
from quorate.learners.sanitizers import Tree
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


def learners(bits: int) -> dict[str, PrivateLearner]:
    """Return the learners of this part for one domain, by name."""
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
    by_bits = {bits: learners(bits) for bits in size.bits}
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
        _row(by_bits[bits].get(name, by_bits[bits][GENERIC]), name, bits, np.array(curves), np.array(fewer[bits]), size)
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


def _row(learner: PrivateLearner, name: str, bits: int, errors: FloatArray, fewer: FloatArray, size: Size) -> Measured:
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


def curve_row(data: str, method: str, errors: FloatArray, size: Size, **more: float | None) -> Measured:
    """Bring the errors of a line together: ``(n_repeats, n_samples, n_sizes)``, or of :attr:`Size.at_labels` alone."""
    whole = errors.shape[2] == len(size.labels)
    column = errors[:, :, size.labels.index(size.at_labels) if whole else 0]
    needed = labels_needed(size.labels, errors, ALPHA) if whole else None
    return Measured(
        data=data,
        method=method,
        epsilon=1.0,
        delta=0.0,
        n_queries=float(size.at_labels),
        repeats=len(errors),
        accuracy_mean=1 - float(column.mean()),
        accuracy_se=standard_error(column.mean(axis=1)),
        more={
            **more,
            "alpha": ALPHA,
            "labels_needed": None if needed is None else float(needed),
            "error_mean": float(column.mean()),
            "error_max": float(column.max()),
        },
    )
