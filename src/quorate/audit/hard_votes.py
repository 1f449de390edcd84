"""Neighbouring votes on which a mechanism shows most: known beforehand, or found by a scan of its answers.

A mechanism may be right where two classes tie and wrong elsewhere: where all teachers agree, at one lead, where the
number of votes cast is odd. So a few answers are drawn at each lead and number, more on the neighbours that differ
most, and the pair that still does is attacked with fresh noise: what chooses pairs enters no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import Composed, DiscreteGaussian, Event, Gaussian, GridGaussian, Repeated
from quorate.accounting.own_events import stands_for
from quorate.arguments import count
from quorate.audit.attacks import as_matrix
from quorate.audit.claims import Claim, GaussianClaim, claim_of
from quorate.mechanisms import AgreementTest, StableSparseVector
from quorate.noise import NoiseSource
from quorate.types import FloatArray, IntArray

_SMOOTH_FROM = 10.0  # σ in votes from which discrete Gaussian noise meets its Gaussian claim within 2e−5
_LONGEST_STREAM = 64
_LONGEST_SOFT_STREAM = 4  # one Python step a query


@dataclass(frozen=True, slots=True, eq=False)
class HardVotes:
    """Counts (or scores) of one query, or of a stream, on two data sets between which one teacher changes.

    `name`: what is hard about them. `neighbours`: as :func:`~quorate.audit.audit_mechanism` takes them.
    """

    name: str
    neighbours: tuple[NDArray[Any], NDArray[Any]] = field(repr=False)


def hard_votes(mechanism: Any, n_teachers: int, n_classes: int) -> tuple[HardVotes, ...]:
    """Return the neighbouring votes on which one teacher's change is told best.

    `mechanism`: any of :mod:`quorate.mechanisms`: a tie shows most of a noisy max; votes that stand at a threshold show
    most of a test. A stream mechanism gets a short stream. One that takes sums gets sums of K contributions.
    `n_teachers`, `n_classes`: K ≥ 1 and C ≥ 2; both public.

    Privacy: made of public numbers alone, no real vote is looked at.

    A test that compares a noisy number with a threshold gets two kinds of votes: those where a noisy comparison is
    undecided, and those on either side of the threshold itself, where a comparison without noise always decides.

    Examples
    --------
    >>> from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax
    >>> [pair.name for pair in hard_votes(GaussianNoisyMax(sigma=40.0), 250, 3)]
    ['two classes tie', 'the last two classes tie']
    >>> at_threshold = hard_votes(ConfidentNoisyMax(200.5, 150.0, 40.0), 250, 2)[1]
    >>> [each.tolist() for each in at_threshold.neighbours]
    [[201, 49], [200, 50]]
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    n_classes = count("n_classes", n_classes, at_least=2)
    sparse: StableSparseVector | None = getattr(mechanism, "sparse_vector", None)
    if sparse is not None:
        if mechanism.takes == "scores":
            return _distinct(_agreeing_scores(mechanism, sparse, n_teachers))
        return _distinct(_streams_at_threshold(sparse, n_teachers, n_classes))
    test: AgreementTest | None = getattr(mechanism, "test", None)
    if test is not None and test.statistic == "distance to instability":
        pair = _ahead(n_teachers, n_classes, 2 * int(test.threshold) + 1)
        return (HardVotes("the lead stands at the threshold", pair),)
    if getattr(mechanism, "takes", "votes") == "sums":
        return (HardVotes("one contribution moves", _sums(mechanism, n_teachers)),)
    tied = _pair(n_classes, n_teachers // 2, n_teachers // 2, -1)
    pairs = [HardVotes("two classes tie", tied)]
    if n_classes > 2:  # the two that the first pair leaves without a chance
        pairs.append(HardVotes("the last two classes tie", (np.roll(tied[0], -2), np.roll(tied[1], -2))))
    if test is not None:
        top = min(n_teachers, max(1, ceil(test.threshold)))  # the least count that passes without noise
        pairs.append(
            HardVotes("votes stand at the threshold", _pair(n_classes, top, min(top, n_teachers - top), -1)),
        )
    return tuple(pairs)


def every_second(votes: HardVotes, n_queries: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two streams ``(n_queries, n_classes)`` in which the neighbour changes queries 1, 3, 5, … alone."""
    zero = np.tile(votes.neighbours[0], (n_queries, 1))
    one = zero.copy()
    one[1::2] = votes.neighbours[1]
    return zero, one


def _distinct(candidates: Iterable[HardVotes]) -> tuple[HardVotes, ...]:
    """Leave out votes that stood there before, and pairs that are no pair (where K is too small to tell them apart)."""
    kept: list[HardVotes] = []
    for votes in candidates:
        told_before = any(
            all(np.array_equal(a, b, equal_nan=True) for a, b in zip(votes.neighbours, other.neighbours, strict=True))
            for other in kept
        )
        if not told_before and not np.array_equal(*votes.neighbours, equal_nan=True):
            kept.append(votes)
    return tuple(kept)


def _streams_at_threshold(mechanism: StableSparseVector, n_teachers: int, n_classes: int) -> Iterator[HardVotes]:
    queries = min(mechanism.n_queries, max(8, 4 * mechanism.cutoff), _LONGEST_STREAM)

    def leading(distance: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return _ahead(n_teachers, n_classes, 2 * distance + 1)

    for name, distance in (
        ("every lead stands at the threshold", mechanism.passing_dist(0.5)),
        ("every lead stands across the threshold without noise", floor(mechanism.threshold)),
    ):
        zero, one = (np.tile(row, (queries, 1)) for row in leading(distance))
        yield HardVotes(name, (zero, one))
    # The worst pair of a sparse vector: leads that pass fall by one, leads that fail rise by one.
    falling, rising = leading(mechanism.passing_dist(0.8))[::-1], leading(mechanism.passing_dist(0.2))
    zero, one = (
        np.stack([here, beside] * ((queries + 1) // 2))[:queries] for here, beside in zip(falling, rising, strict=True)
    )
    yield HardVotes("leads on both sides of the threshold approach it", (zero, one))


def _agreeing_scores(mechanism: Any, sparse: StableSparseVector, n_teachers: int) -> Iterator[HardVotes]:
    queries = min(mechanism.n_queries, _LONGEST_SOFT_STREAM)
    for name, distance in (
        ("scores agree just enough", sparse.passing_dist(0.5)),
        ("scores agree just enough without noise", floor(sparse.threshold)),
    ):
        yield HardVotes(name, _scores(n_teachers, 2 * distance + 1, mechanism.bins, queries))


def claim_on(event: Event, delta: float) -> Claim:
    """Return the sharpest thing that can be tested about an event: a trade-off curve, or (ε, δ) at `delta`.

    Examples
    --------
    >>> claim_on(Repeated(DiscreteGaussian(40.0, 1.0), 100), 1e-5)
    GaussianClaim(mu=0.25)
    >>> type(claim_on(Repeated(DiscreteGaussian(2.0, 1.0), 100), 1e-5)).__name__  # the lattice shows
    'ApproxClaim'
    """
    event = stands_for(event)
    squared = _squared_mu(event)
    return claim_of(event, delta) if squared is None else GaussianClaim(sqrt(squared))


def _squared_mu(event: Event) -> float | None:
    """μ² where the event is made of Gaussian noise that is wide beside the lattice; they add up."""
    event = stands_for(event)
    is_smooth = not isinstance(event, DiscreteGaussian) or event.sigma >= _SMOOTH_FROM
    if isinstance(event, Gaussian | GridGaussian | DiscreteGaussian) and is_smooth:
        return (event.l2_sensitivity / event.sigma) ** 2
    if isinstance(event, Repeated):
        mu = _squared_mu(event.event)
        return None if mu is None or not event.times else event.times * mu
    if isinstance(event, Composed) and event.events:
        parts = [_squared_mu(part) for part in event.events]
        return None if None in parts else sum(part for part in parts if part is not None)
    return None


def _pair(n_classes: int, first: int, second: int, change: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return votes, and those after one teacher gave its vote for class 0 to class 1 (−1) or the reverse (+1)."""
    zero = np.zeros(n_classes, dtype=np.int64)
    zero[:2] = first, second
    if first == 0 and change < 0:  # a single teacher
        zero[0] = 1
    one = zero.copy()
    one[0] += change
    one[1] -= change
    return zero, one


def _ahead(n_teachers: int, n_classes: int, gap: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return votes in which class 0 leads by `gap`, or as far as K allows, and the same with one vote more for it."""
    if n_teachers < 3:
        return _pair(n_classes, n_teachers // 2, n_teachers // 2, -1)
    second = max(1, (n_teachers - gap) // 2)
    return _pair(n_classes, min(second + gap, n_teachers - second), second, +1)


def _sums(mechanism: Any, n_teachers: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return sums of shares, in grid steps, and those after one contributor moved all of it to another cell."""
    zero = np.array([n_teachers // 2 + 1, n_teachers // 2], dtype=np.int64) * mechanism.grid
    one = zero + np.array([-mechanism.grid, mechanism.grid])
    return (zero[:1], one[:1]) if mechanism.form == "single" else (zero, one)


def _scores(n_teachers: int, gap: int, bins: int, n_queries: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return scores in two bins, the higher ahead by `gap` or one more, and the same with one teacher moved there."""
    low = int(_ahead(n_teachers, 2, gap)[0][1]) if n_teachers >= 3 else 1
    row = np.full(n_teachers, (bins - 0.5) / bins)  # the middle of the highest bin, and below that of the lowest
    row[n_teachers - low :] = 0.5 / bins
    moved = row.copy()
    moved[-1] = (bins - 0.5) / bins
    zero, one = (np.tile(votes_of_one, (n_queries, 1)) for votes_of_one in (row, moved))
    return zero, one


Neighbours: TypeAlias = tuple[IntArray, IntArray]

PLACES = 400  # pairs of one scan at most: around the tie, at both ends, and evenly in between
_FIRST = 100  # answers at each of the votes
_KEPT = 16  # pairs that are looked at again, with
_AGAIN = 1_500  # answers on either side
_FEW = 16  # different answers that are taken for classes


def leads(mechanism: Any, n_teachers: int, n_classes: int) -> tuple[Neighbours, ...]:
    """Return votes of all teachers for two classes, at every lead, and those with one vote moved."""

    def votes(second: int) -> IntArray:
        counts = np.zeros(n_classes, dtype=np.int64)
        counts[:2] = n_teachers - second, second
        if getattr(mechanism, "takes", "votes") == "sums":
            counts = counts[:1] if mechanism.form == "single" else counts[:2]
            counts *= mechanism.grid
        return counts

    return tuple((votes(place), votes(place + 1)) for place in _places(n_teachers))


def votes_cast(n_teachers: int, n_classes: int) -> tuple[Neighbours, ...]:
    """Return votes of every number of teachers, all for one class or three quarters, and those with one vote less."""

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
    differences = _differences(mechanism, kept, _AGAIN, noise.at("the pairs that differ most", 0))
    chosen: Neighbours = kept[int(np.argmax(differences))]
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
    queries = np.tile(rows, (times, 1))
    if hasattr(mechanism, "release_many"):
        answers = mechanism.release_many(queries, noise)
    else:
        answers = [mechanism.release(row, noise) for row in queries]
    answers = as_matrix([answers], len(queries)).reshape(times, len(rows), -1)
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
