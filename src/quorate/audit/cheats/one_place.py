"""Noisy max that is right nearly everywhere: each twin is wrong in one place, and there alone.

On votes that tie, answered one by one, these answer as the correct code does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from quorate.audit.cheats.noisy_max import Case, NoisyMax
from quorate.audit.claims import GaussianClaim
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.types import IntArray


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


_SIGMA, _WIDE = 10.0, 20.0
_QUERIES = 8
_HALF_CHANGES = (
    np.tile([50, 50], (_QUERIES, 1)),
    np.tile([50, 50], (_QUERIES, 1)) - np.where(np.arange(_QUERIES)[:, None] < _QUERIES // 2, [0, 0], [1, -1]),
)
_NEARLY_ALL = (np.array([54, 6]), np.array([53, 7]))
_ONE_VOTE_LESS = (np.array([60, 0]), np.array([59, 0]))
_AHEAD = (np.array([52, 48]), np.array([51, 49]))

_OWN_DRAWS = Case(
    name="independent draws, the second half changes",
    source="PATE18 GNMax: each query of a batch has noise of its own.",
    mechanism=RunAsBatch(NoisyMax(_SIGMA)),
    neighbours=_HALF_CHANGES,
    claimed=GaussianClaim(sqrt(2 * _QUERIES / 2) / _SIGMA),
    runs=6_000,
)
_NEAR_UNANIMITY = Case(
    name="noise however many agree",
    source="PATE18 GNMax: the noise is the same whatever the votes are.",
    mechanism=NoisyMax(_WIDE),
    neighbours=_NEARLY_ALL,
    claimed=GaussianClaim(sqrt(2) / _WIDE),
    runs=20_000,
)
_ABSTAINS = Case(
    name="one vote less",
    source="PATE18 GNMax: a teacher that abstains changes one count by one.",
    mechanism=NoisyMax(_SIGMA),
    neighbours=_ONE_VOTE_LESS,
    claimed=GaussianClaim(sqrt(2) / _SIGMA),
    runs=20_000,
)
_EVERY_LEAD = Case(
    name="noise at every lead",
    source="PATE18 GNMax: the noise is the same whatever the lead is.",
    mechanism=NoisyMax(_SIGMA),
    neighbours=_AHEAD,
    claimed=GaussianClaim(sqrt(2) / _SIGMA),
    runs=20_000,
)
CHEATS = (
    _OWN_DRAWS.broken(
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
    _NEAR_UNANIMITY,
    _ABSTAINS,
    _EVERY_LEAD,
)
