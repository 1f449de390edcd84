"""A scan over all votes that one answer can be asked on: the neighbours whose answers differ most are attacked.

A mechanism may be right where two classes tie and wrong elsewhere: without noise where all teachers agree, exact at one
lead, or other where the number of votes cast is odd. So a few answers are drawn at each lead and at each number of
votes cast, more on the neighbours that differ most, and the pair that still does is attacked with fresh noise. What is
learned while pairs are chosen enters no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from quorate.audit.outcomes import as_matrix
from quorate.noise import NoiseSource
from quorate.types import FloatArray, IntArray

Neighbours: TypeAlias = tuple[IntArray, IntArray]

PLACES = 400  # pairs of one scan at most: around the tie, at both ends, and evenly in between
_FIRST = 100  # answers at each of the votes
_KEPT = 16  # pairs that are looked at again, with
_AGAIN = 1_500  # answers on either side
_FEW = 16  # different answers that are taken for classes


def leads(mechanism: Any, n_teachers: int, n_classes: int) -> tuple[Neighbours, ...]:
    """Return votes of all teachers for two classes, at every lead, and those with one vote moved.

    Examples
    --------
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> [[side.tolist() for side in pair] for pair in leads(GaussianNoisyMax(5.0), 2, 3)]
    [[[2, 0, 0], [1, 1, 0]], [[1, 1, 0], [0, 2, 0]]]
    """

    def votes(second: int) -> IntArray:
        counts = np.zeros(n_classes, dtype=np.int64)
        counts[:2] = n_teachers - second, second
        if getattr(mechanism, "takes", "votes") == "sums":
            counts = counts[:1] if mechanism.form == "single" else counts[:2]
            counts *= mechanism.grid
        return counts

    return tuple((votes(place), votes(place + 1)) for place in _places(n_teachers))


def votes_cast(n_teachers: int, n_classes: int) -> tuple[Neighbours, ...]:
    """Return votes of every number of teachers, all for one class or three quarters, and those with one vote less.

    Examples
    --------
    >>> [[side.tolist() for side in pair] for pair in votes_cast(4, 2)[-2:]]
    [[[4, 0], [3, 0]], [[3, 1], [2, 1]]]
    """

    def pairs() -> Iterator[Neighbours]:
        for place in _places(n_teachers):
            cast = place + 1
            for against in sorted({0, cast // 4}) if cast > 1 else ():
                zero = np.zeros(n_classes, dtype=np.int64)
                zero[:2] = cast - against, against
                one = zero.copy()
                one[0] -= 1
                yield zero, one

    return tuple(pairs())


def pair_that_differs(mechanism: Any, pairs: Iterable[Neighbours], noise: NoiseSource) -> Neighbours:
    """Return the neighbours whose answers differ most, on draws that are used for nothing else."""
    pairs = tuple(pairs)
    differences = _differences(mechanism, pairs, _FIRST, noise.at("all pairs", 0))
    kept: list[Neighbours] = [pairs[place] for place in np.argsort(-differences)[:_KEPT].tolist()]
    again = _differences(mechanism, kept, _AGAIN, noise.at("the pairs that differ most", 0))
    chosen: Neighbours = kept[int(np.argmax(again))]
    return chosen


def _places(n_teachers: int) -> list[int]:
    """Return which of 0 … K − 1 are looked at; all of them where K is at most :data:`PLACES`."""
    if n_teachers <= PLACES:
        return list(range(n_teachers))
    part = PLACES // 4
    middle = n_teachers // 2
    near = {*range(part // 2), *range(n_teachers - part // 2, n_teachers), *range(middle - part, middle + part)}
    return sorted(near | set(np.linspace(0, n_teachers - 1, part).astype(int).tolist()))


def _differences(mechanism: Any, pairs: Sequence[Neighbours], times: int, noise: NoiseSource) -> FloatArray:
    """Return how many standard errors the answers on either side of each pair differ by."""
    rows, sides = np.unique(np.array(pairs).reshape(2 * len(pairs), -1), axis=0, return_inverse=True)
    first, second = sides.reshape(-1, 2).T
    asked = np.tile(rows, (times, 1))
    if hasattr(mechanism, "release_many"):
        answers = mechanism.release_many(asked, noise)
    else:
        answers = [mechanism.release(row, noise) for row in asked]
    answers = as_matrix([answers], len(asked)).reshape(times, len(rows), -1)
    most = np.zeros(len(pairs))
    for column in np.moveaxis(answers, 2, 0):
        for shares in _shares(column):
            p, q = shares[first], shares[second]
            mean = (p + q) / 2
            error = np.sqrt(2 * mean * (1 - mean) / times + 1 / times**2)
            most = np.maximum(most, np.abs(p - q) / error)
    return most


def _shares(answers: FloatArray) -> Iterator[FloatArray]:
    """Yield the shares of some events among ``(times, n_rows)`` answers, for each row of votes."""
    values = np.unique(answers)
    if len(values) <= _FEW:
        for value in values:
            yield (answers == value).mean(axis=0)
        return
    middle = np.median(answers, axis=0)
    yield (answers == np.rint(middle)).mean(axis=0)  # all of them where there is no noise
    spread = np.median(np.abs(answers - middle))
    yield (np.abs(answers - middle) <= spread).mean(axis=0)
    yield (answers > np.median(answers)).mean(axis=0)
