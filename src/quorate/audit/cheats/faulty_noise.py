"""Noise that is drawn or used wrongly, beside the correct code on the same votes.

Each has the right scale. What is wrong is what shares a draw, what it is added to, on which lattice it lies, how far it
reaches, or what else looks at the true counts. Some are wrong in one place alone: on votes that tie, answered one by
one, these answer as the correct code does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from quorate.audit.cheats.noisy_max import Case, NoisyHistogram, NoisyMax, gaussian_case
from quorate.audit.claims import GaussianClaim
from quorate.audit.sampled import ByStream
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.types import IntArray

#: Stands after the end of a stream.
_STOPPED = -2


@dataclass(frozen=True, slots=True)
class Streams(ByStream):
    """The correct noisy max on streams ``(n_queries, n_classes)``, with independent noise everywhere."""

    sigma: float

    def _noise(self, shape: tuple[int, ...], noise: NoiseSource) -> IntArray:
        return np.asarray(discrete_gaussian(self.sigma, shape, noise))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``."""
        return np.asarray((counts + self._noise(counts.shape, noise)).argmax(axis=2))


class SharedDraw(Streams):
    """Queries 0 and 1, 2 and 3, … share their noise."""

    def _noise(self, shape: tuple[int, ...], noise: NoiseSource) -> IntArray:
        half = discrete_gaussian(self.sigma, (shape[0], (shape[1] + 1) // 2, shape[2]), noise)
        return np.repeat(half, 2, axis=1)[:, : shape[1]]


class StopsAtATie(Streams):
    """The stream ends at the first query on which the true counts tie."""

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``."""
        answers = np.asarray((counts + self._noise(counts.shape, noise)).argmax(axis=2))
        top = np.sort(counts, axis=2)
        ended = np.logical_or.accumulate(top[:, :, -1] == top[:, :, -2], axis=1)
        return np.where(ended, _STOPPED, answers)


class EvenNoise(NoisyHistogram):
    """Twice a draw of half the scale: σ is right, and every noise is even."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + 2 * discrete_gaussian(self.sigma / 2, counts.shape, noise))


class ClippedNoise(NoisyHistogram):
    """Noise that is cut at ±3σ: the counts at either end can have come from one data set alone."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        most = int(3 * self.sigma)
        return np.asarray(counts + np.clip(discrete_gaussian(self.sigma, counts.shape, noise), -most, most))


class NoiseOnOneClass(NoisyMax):
    """Noise on the first count; the others are compared as they are."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        noisy = counts.copy()
        noisy[:, 0] += discrete_gaussian(self.sigma, len(counts), noise)
        return noisy


class TiesByTrueCounts(NoisyMax):
    """Among noisy counts that tie, the class with the most true votes is answered."""

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        noisy = self._noisy(counts, noise)
        first = noisy == noisy.max(axis=1, keepdims=True)
        return np.asarray(np.where(first, counts, -1).argmax(axis=1))


@dataclass(frozen=True, slots=True)
class HalvesShareNoise(NoisyMax):
    """The noise of the first half of a batch is that of the second half too."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        half = discrete_gaussian(self.sigma, (-(-len(counts) // 2), counts.shape[1]), noise)
        return np.asarray(counts + np.tile(half, (2, 1))[: len(counts)])


@dataclass(frozen=True, slots=True)
class BareNearUnanimity(NoisyMax):
    """Where nine tenths of the votes agree they are answered as they are."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        agree = 10 * counts.max(axis=1, keepdims=True) >= 9 * counts.sum(axis=1, keepdims=True)
        return np.asarray(counts + np.where(agree, 0, discrete_gaussian(self.sigma, counts.shape, noise)))


@dataclass(frozen=True, slots=True)
class TurnedByParity(NoisyMax):
    """Where the number of votes cast is odd the next class is answered."""

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        return np.asarray((self._noisy(counts, noise).argmax(axis=1) + counts.sum(axis=1) % 2) % counts.shape[1])


@dataclass(frozen=True, slots=True)
class ExactAtOneLead(NoisyMax):
    """Where class 0 is ahead by `lead` votes there is no noise."""

    lead: int = 4

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        bare = counts[:, :1] - counts[:, 1:2] == self.lead
        return np.asarray(counts + np.where(bare, 0, discrete_gaussian(self.sigma, counts.shape, noise)))


@dataclass(frozen=True, slots=True)
class RunAsBatch:
    """Answers all queries of a run in one call, as a run does."""

    mechanism: Any
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one run, ``(n_queries, n_classes)``."""
        return np.asarray(self.mechanism.release_many(np.asarray(counts), noise))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``."""
        return np.array(
            [self.release(run, noise.at("run", place) if place else noise) for place, run in enumerate(counts)]
        )


_SIGMA = 10.0
_WIDE = 20.0
_SMALL = 2.0  # where noisy counts tie often, and
_LATTICE = 1.01  # by how much the trade-off on integers may then lie above that of continuous noise (it does by .5 %)
_NEAR_TIE = (np.array([50, 50, 20]), np.array([49, 51, 20]))
_LAST_TIE = (np.array([20, 50, 50]), np.array([20, 49, 51]))
_LEAD_TURNS = (np.array([51, 50]), np.array([50, 51]))

_QUERIES = 10
_TIED = np.tile([50, 50], (_QUERIES, 1))
_EVERY_SECOND = (_TIED, np.where(np.arange(_QUERIES)[:, None] % 2, [49, 51], _TIED))
_LAST_QUERY = (
    np.where(np.arange(_QUERIES)[:, None] == _QUERIES - 1, [50, 50], [52, 48]),
    np.where(np.arange(_QUERIES)[:, None] == _QUERIES - 1, [51, 49], [52, 48]),
)

_OWN_DRAWS = gaussian_case(
    "independent draws, every second query changes",
    "PATE18 GNMax: each query has noise of its own.",
    Streams(_SIGMA),
    _EVERY_SECOND,
    changed=_QUERIES // 2,
)
_ALL_ANSWERED = gaussian_case(
    "answers that end with the queries",
    "PATE18 GNMax: the number of answers is fixed beforehand.",
    Streams(_SIGMA),
    _LAST_QUERY,
)
_EVERY_CLASS = gaussian_case(
    "noise on every class", "PATE18 GNMax: √2/σ-GDP whichever two classes tie.", NoisyMax(_SIGMA), _LAST_TIE
)
_BY_INDEX = Case(
    name="ties by class index",
    source="PATE18 GNMax on integers: a tie between noisy counts goes to the lowest class index.",
    mechanism=NoisyMax(_SMALL),
    neighbours=_LEAD_TURNS,
    claimed=GaussianClaim(_LATTICE * sqrt(2) / _SMALL),
    runs=200_000,
)
_EVERY_INTEGER = gaussian_case(
    "noise on every integer, as far as it reaches",
    "The discrete Gaussian mechanism on a histogram: √2/σ-GDP, with no end and no parity.",
    NoisyHistogram(_SIGMA),
    _NEAR_TIE,
    runs=400_000,
)

_BATCH = 8
_HALF_CHANGES = (
    np.tile([50, 50], (_BATCH, 1)),
    np.tile([50, 50], (_BATCH, 1)) - np.where(np.arange(_BATCH)[:, None] < _BATCH // 2, [0, 0], [1, -1]),
)
_NEARLY_ALL = (np.array([54, 6]), np.array([53, 7]))
_ONE_VOTE_LESS = (np.array([60, 0]), np.array([59, 0]))
_AHEAD = (np.array([52, 48]), np.array([51, 49]))

_BATCH_DRAWS = Case(
    name="independent draws, the second half changes",
    source="PATE18 GNMax: each query of a batch has noise of its own.",
    mechanism=RunAsBatch(NoisyMax(_SIGMA)),
    neighbours=_HALF_CHANGES,
    claimed=GaussianClaim(sqrt(2 * _BATCH / 2) / _SIGMA),
    runs=6_000,
)
_NEAR_UNANIMITY = gaussian_case(
    "noise however many agree",
    "PATE18 GNMax: the noise is the same whatever the votes are.",
    NoisyMax(_WIDE),
    _NEARLY_ALL,
)
_ABSTAINS = gaussian_case(
    "one vote less", "PATE18 GNMax: a teacher that abstains changes one count by one.", NoisyMax(_SIGMA), _ONE_VOTE_LESS
)
_EVERY_LEAD = gaussian_case(
    "noise at every lead", "PATE18 GNMax: the noise is the same whatever the lead is.", NoisyMax(_SIGMA), _AHEAD
)
CHEATS = (
    _OWN_DRAWS.broken(
        "one draw for two queries",
        "Noise is drawn in blocks of half the length and repeated; consecutive answers share it.",
        SharedDraw(_SIGMA),
    ),
    _EVERY_INTEGER.broken(
        "even noise",
        "Noise is drawn on a coarser lattice than the counts; their parity is released as it is.",
        EvenNoise(_SIGMA),
        runs=20_000,
    ),
    _EVERY_CLASS.broken(
        "noise on one class",
        "The noise of a binary form, one number, is added to a histogram; the other counts stay exact.",
        NoiseOnOneClass(_SIGMA),
    ),
    _BY_INDEX.broken(
        "ties by true counts",
        "A tie between noisy integers is broken by the true votes, as if that were post-processing.",
        TiesByTrueCounts(_SMALL),
    ),
    _ALL_ANSWERED.broken(
        "data-dependent stop",
        "Labelling ends where the true votes no longer agree; the number of answers is not noisy.",
        StopsAtATie(_SIGMA),
    ),
    _EVERY_INTEGER.broken(
        "clipped noise",
        "Noise is cut at three standard deviations so that no count looks absurd; the ends give the count away.",
        ClippedNoise(_SIGMA),
    ),
    _BATCH_DRAWS.broken(
        "halves of a batch share noise",
        "Noise is drawn for half of a batch and used twice; answers half a batch apart share it.",
        RunAsBatch(HalvesShareNoise(_SIGMA)),
    ),
    _NEAR_UNANIMITY.broken(
        "no noise near unanimity",
        "A clear vote is answered as it is, as if noise could not have changed it anyway.",
        BareNearUnanimity(_WIDE),
    ),
    _ABSTAINS.broken(
        "turned by the parity of votes cast",
        "What is answered depends on how many teachers voted, which one teacher changes by abstaining.",
        TurnedByParity(_SIGMA),
    ),
    _EVERY_LEAD.broken(
        "exact at one lead",
        "A special case for one lead skips the noise; a tie, on which such code is tested, has it.",
        ExactAtOneLead(_SIGMA),
    ),
)

HONEST = (
    _OWN_DRAWS,
    _ALL_ANSWERED,
    _EVERY_CLASS,
    _BY_INDEX,
    _EVERY_INTEGER,
    _BATCH_DRAWS,
    _NEAR_UNANIMITY,
    _ABSTAINS,
    _EVERY_LEAD,
)
