"""Noisy max, right and wrong: each twin differs from the correct code by one slip."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from quorate.audit.claims import Claim, GaussianClaim, PureClaim
from quorate.audit.sampled import AuditResult, ByRow, Releases, audit_mechanism
from quorate.noise import NoiseSource, SeededNoise, discrete_gaussian, discrete_laplace
from quorate.types import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A mechanism to be audited, broken or correct.

    `name`: what is wrong with it, or what it is. `source`: one sentence: where it comes from. `mechanism`: the code.
    `neighbours`: counts on two neighbouring data sets; of a kind for which the flaw shows. `claimed`: what its authors
    say about one run on such a pair. `runs`: how many runs suffice to see the flaw at confidence 1 − 10⁻⁶.
    """

    name: str
    source: str
    mechanism: Releases
    neighbours: tuple[IntArray, IntArray] = field(repr=False)
    claimed: Claim
    runs: int = 100_000

    def audit(self, confidence: float = 1 - 1e-6, *, seed: int | None = None, **options: Any) -> AuditResult:
        """Run :func:`~quorate.audit.audit_mechanism` on the case."""
        return audit_mechanism(
            self.mechanism, self.neighbours, self.claimed, confidence, self.runs, seed=seed, **options
        )

    def broken(self, name: str, source: str, mechanism: Releases, runs: int | None = None) -> Case:
        """Return a broken twin of this correct case: on the same votes, with the same claim."""
        return replace(self, name=name, source=source, mechanism=mechanism, runs=runs or self.runs)


@dataclass(frozen=True, slots=True)
class NoisyMax(ByRow):
    """The correct one: independent discrete Gaussian noise of standard deviation `sigma` on every count."""

    sigma: float

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + discrete_gaussian(self.sigma, counts.shape, noise))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        return np.asarray(self._noisy(counts, noise).argmax(axis=1))


def gaussian_case(
    name: str,
    source: str,
    mechanism: Any,
    neighbours: tuple[IntArray, IntArray],
    *,
    changed: int = 1,
    runs: int = 20_000,
) -> Case:
    """Return a correct case of noise of a mechanism's `sigma` on every count, of which `changed` queries change."""
    claimed = GaussianClaim(sqrt(2 * changed) / mechanism.sigma)
    return Case(name=name, source=source, mechanism=mechanism, neighbours=neighbours, claimed=claimed, runs=runs)


class SharedNoise(NoisyMax):
    """One draw for all classes of a query: the plurality class comes out exactly."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + discrete_gaussian(self.sigma, (len(counts), 1), noise))


class SigmaAsVariance(NoisyMax):
    """σ handed to a sampler that takes a variance."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + discrete_gaussian(sqrt(self.sigma), counts.shape, noise))


class HalfTheNoise(NoisyMax):
    """σ/2 where σ was charged."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + discrete_gaussian(self.sigma / 2, counts.shape, noise))


class ReusedSeed(NoisyMax):
    """The generator is made anew, from the same seed, for every query: all queries get the same noise."""

    def _noisy(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(counts + discrete_gaussian(self.sigma, counts.shape[1], SeededNoise(0)))


class NoisyHistogram(NoisyMax):
    """The correct noisy counts: the whole vector is released."""

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        return self._noisy(counts, noise)


@dataclass(frozen=True, slots=True)
class BinaryNoisyMax(ByRow):
    """The correct binary form: noise on half the lead of class 1, an integer of sensitivity 1."""

    sigma: float

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        half_lead = -((counts[:, 0] - counts[:, 1]) // 2)
        return (half_lead + discrete_gaussian(self.sigma, half_lead.shape, noise) > 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LaplaceMax(ByRow):
    """The correct Laplace noisy max of scale b: 2/b-DP."""

    laplace_scale: float

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        return np.asarray((counts + discrete_laplace(self.laplace_scale, counts.shape, noise)).argmax(axis=1))


_SIGMA = 10.0
_NEAR_TIE = (np.array([50, 50, 20]), np.array([49, 51, 20]))
#: One vote moves in each of 41 queries; wherever a fixed noise puts the border, it is crossed one query earlier.
_LEADS = np.arange(-20, 21)
_STAIRCASE = (np.stack([60 - _LEADS, 60 + _LEADS], axis=1), np.stack([59 - _LEADS, 61 + _LEADS], axis=1))

_GAUSSIAN = gaussian_case("Gaussian noisy max", "PATE18 GNMax: √2/σ-GDP.", NoisyMax(_SIGMA), _NEAR_TIE, runs=200_000)
_MANY_QUERIES = gaussian_case(
    "Gaussian noisy max, many queries",
    "PATE18 GNMax on 41 queries that one teacher changes all at once.",
    NoisyMax(_SIGMA),
    _STAIRCASE,
    changed=len(_LEADS),
    runs=10_000,
)
CHEATS = (
    _GAUSSIAN.broken(
        "noise shared by all classes",
        "A broadcasting slip: the noise has shape (n_queries, 1) instead of (n_queries, n_classes).",
        SharedNoise(_SIGMA),
        runs=20_000,
    ),
    _GAUSSIAN.broken(
        "sigma used as variance",
        "Samplers disagree on their parameter: N(0, σ²) in papers, a standard deviation in numpy.",
        SigmaAsVariance(_SIGMA),
        runs=100_000,
    ),
    _GAUSSIAN.broken(
        "half the noise",
        "A budget split between two answers, where the second forgets to double its noise.",
        HalfTheNoise(_SIGMA),
    ),
    Case(
        name="sensitivity 1 instead of √2",
        source="LZCW21's binary calibration used for a histogram, where one changed vote moves two counts.",
        mechanism=NoisyMax(3.0),
        neighbours=_NEAR_TIE,
        claimed=GaussianClaim(1 / 3.0),
        runs=200_000,
    ),
    _MANY_QUERIES.broken(
        "a seed reused per query",
        "random_state=0 passed down to where the noise is drawn, as scikit-learn users are taught to do.",
        ReusedSeed(_SIGMA),
    ),
)

HONEST = (
    _GAUSSIAN,
    _MANY_QUERIES,
    Case(
        name="Gaussian noisy max, binary form",
        source="LZCW21 Alg. 1: one integer of sensitivity 1, 1/σ-GDP.",
        mechanism=BinaryNoisyMax(_SIGMA),
        neighbours=(np.array([50, 50]), np.array([49, 51])),
        claimed=GaussianClaim(1 / _SIGMA),
        runs=200_000,
    ),
    gaussian_case(
        "noisy counts",
        "The Gaussian mechanism on the whole histogram: √2/σ-GDP.",
        NoisyHistogram(_SIGMA),
        _NEAR_TIE,
        runs=200_000,
    ),
    Case(
        name="Laplace noisy max",
        source="PATE17 LNMax: 2/b-DP.",
        mechanism=LaplaceMax(4.0),
        neighbours=_NEAR_TIE,
        claimed=PureClaim(0.5),
    ),
)
