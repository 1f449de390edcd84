"""Faults of a size: a shipped mechanism with less noise than was charged for, or with some answers that have none.

Each is made of a correct mechanism and a size, and answers as the mechanism would if it had that fault and no other:
thresholds, ties and the order of the answers stay as they are. They show how small a fault an audit finds
(:mod:`quorate.audit.measured_sizes`). The faults of :mod:`quorate.audit.cheats` have no size; they are there or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from math import floor
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from quorate.mechanisms import (
    DECLINED,
    DistanceToInstability,
    Mechanism,
    SoftLabel,
    StableSparseVector,
    distance_to_instability,
    noise_fields,
)
from quorate.mechanisms.fields import falls_with
from quorate.noise import NoiseSource, discrete_laplace, geometric
from quorate.types import IntArray

_VANISHING = 1e-9  # times a noise of some votes, it is below any integer


@dataclass(frozen=True, slots=True)
class FaultyTest:
    """A distance-to-instability test whose noise is scaled; its threshold is the one that was charged for.

    Parameters
    ----------
    mechanism : DistanceToInstability
        The correct one.
    factor : float
        By which its noise is multiplied; 1 for none of the fault.
    """

    mechanism: DistanceToInstability
    factor: float

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)``."""
        distances = distance_to_instability(counts)
        scale = float(np.nextafter(1 / self.mechanism.epsilon, np.inf))
        passed = distances + discrete_laplace(self.factor * scale, distances.shape, noise) > self.mechanism.threshold
        return np.where(passed, counts.argmax(axis=1), DECLINED)


@dataclass(frozen=True, slots=True)
class FaultyStages:
    """A sparse vector on many streams at once, whose noise is scaled, or left out for some of the queries.

    Parameters
    ----------
    mechanism : StableSparseVector
        The correct one.
    factor : float, default 1
        By which the noise of thresholds and queries is multiplied.
    every : int, default 0
        Of so many queries in a row one is compared as it is with the threshold as it is; 0 for none. Where in a stream
        the first one stands is drawn, as if the mechanism had answered other streams before.
    """

    mechanism: StableSparseVector
    factor: float = 1.0
    every: int = 0
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one stream ``(n_queries, n_classes)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``."""
        stage = self.mechanism.stage_noise
        stage = replace(
            stage, threshold_scale=self.factor * stage.threshold_scale, query_scale=self.factor * stage.query_scale
        )
        n_streams, n_queries, n_classes = counts.shape
        distances = distance_to_instability(counts.reshape(-1, n_classes)).reshape(n_streams, n_queries)
        noisy = stage.draw_noisy(distances, noise)
        draw, direction = (geometric, -1) if stage.one_sided else (discrete_laplace, 1)

        def bars() -> IntArray:
            return floor(stage.threshold) + direction * draw(stage.threshold_scale, n_streams, noise)

        bar, first = bars(), noise.words(n_streams) % np.uint64(max(1, self.every))
        answers = np.full((n_streams, n_queries), DECLINED, dtype=np.int64)
        declined = np.zeros(n_streams, dtype=np.int64)
        for query in range(n_queries):
            passed = noisy[:, query] > bar
            if self.every:
                bare = (query + first.astype(np.int64)) % self.every == 0
                passed = np.where(bare, distances[:, query] > floor(stage.threshold), passed)
            is_open = declined < self.mechanism.cutoff
            answers[is_open & passed, query] = counts[is_open & passed, query].argmax(axis=1)
            ended = is_open & ~passed
            declined += ended
            bar = np.where(ended, bars(), bar)
        return answers


@dataclass(frozen=True, slots=True)
class BareAnswers:
    """A mechanism that answers every so manyth query without its noise.

    Parameters
    ----------
    mechanism : mechanism
        The correct one, which answers each query by itself.
    every : int
        1 for all answers, 2 for every second one, and so on.
    """

    mechanism: Any
    every: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)``."""
        answers = np.array(self.mechanism.release_many(counts, noise))
        bare = slice(self.every - 1, None, self.every)
        answers[bare] = noise_times(self.mechanism, _VANISHING).release_many(counts[bare], noise)
        return answers


@singledispatch
def noise_times(mechanism: Any, factor: float) -> Any:
    """Return a mechanism whose noise is multiplied by `factor` > 0, and nothing else changed.

    Examples
    --------
    >>> from quorate.mechanisms import ConfidentNoisyMax, Exponential
    >>> noise_times(ConfidentNoisyMax(threshold=200, sigma_threshold=150, sigma_answer=40), 0.5)
    ConfidentNoisyMax(threshold=200.0, sigma_threshold=75.0, sigma_answer=20.0, form='histogram')
    >>> noise_times(Exponential(epsilon=1.0), 0.5)  # its noise is that of Gumbel, of scale 2Δ/ε
    Exponential(epsilon=2.0, sensitivity=1.0)
    """
    kind = type(mechanism)
    scaled = {
        name: getattr(mechanism, name) * (factor if falls_with(kind, name) else 1 / factor)
        for name in noise_fields(kind)
    }
    return replace(mechanism, **scaled)


@noise_times.register
def _(mechanism: DistanceToInstability, factor: float) -> FaultyTest:
    return FaultyTest(mechanism, factor)


@noise_times.register
def _(mechanism: StableSparseVector, factor: float) -> FaultyStages:
    return FaultyStages(mechanism, factor)


@noise_times.register
def _(mechanism: SoftLabel, factor: float) -> FaultyStages:
    return FaultyStages(mechanism.sparse_vector, factor)


def less_noise(mechanism: Mechanism, percent: int) -> Any:
    """Return a mechanism whose noise is smaller by `percent`; a sparse vector, of the streams that it would get.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> less_noise(NoisyCounts(sigma=40.0), 25)
    NoisyCounts(sigma=30.0, form='histogram')
    """
    return noise_times(mechanism, (100 - percent) / 100)


def bare_answers(mechanism: Mechanism, every: int) -> Any:
    """Return a mechanism that answers one query in `every` without noise; a sparse vector, as in :func:`less_noise`.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> from quorate.noise import SeededNoise
    >>> faulty = bare_answers(NoisyCounts(sigma=40.0), 2)
    >>> faulty.release_many(np.full((4, 2), 125), SeededNoise(0)).tolist()
    [[165, 136], [125, 125], [182, 110], [125, 125]]
    """
    sparse = getattr(mechanism, "sparse_vector", None)
    return BareAnswers(mechanism, every) if sparse is None else FaultyStages(sparse, every=every)


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes
    ----------
    sizes : tuple of int
        What can be asked for, from the grossest fault to the smallest.
    of : callable
        ``of(mechanism, size)`` is the mechanism with the fault.
    """

    sizes: tuple[int, ...]
    of: Callable[[Any, int], Any]


_PERCENT = (*range(1, 20), *range(20, 40, 2), *range(40, 61, 4), *range(65, 96, 5), 99)
_EVERY = (
    *range(1, 20), *range(20, 50, 5), *range(50, 100, 10), *range(100, 200, 20), *range(200, 500, 50),
    *range(500, 1_001, 100),
)  # fmt: skip

#: Per cent by which all noise is smaller; and of how many answers one has none.
FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {"less noise": Fault(_PERCENT[::-1], less_noise), "bare answers": Fault(_EVERY, bare_answers)}
)
