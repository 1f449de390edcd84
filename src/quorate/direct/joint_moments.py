r"""How columns of private rows go together: noisy sums of products of linear features, and what coordinates make of it.

A pool whose columns are drawn each by itself has the right marginals and no correlations, and a whitening by it leaves
the private rows long in the few directions in which their columns agree. What is released are sums of products of pairs
of standardised linear features; the linear features of the pool are recoloured to have the second moment that these
tell of. With S the noisy estimate of the moment of standardised features and a constant, but zero on the diagonal:

    S = U diag(l) Uᵀ,  noise of τ on each entry;
    l_i → l_i − 2 p τ² h_i with h_i = (1/p) Σ_j (l_i − l_j)/((l_i − l_j)² + w²) and w = 1.5 τ;
    the moment is I + U diag(l) Uᵀ, no eigenvalue below .3, and then the diagonal is set to ones

What l_i becomes is what the direction u_i of the noisy matrix has in the one without noise, on average: Bun, Allez,
Bouchaud and Potters (2016), Rotational invariant estimator for general noisy matrices, for additive noise. Where no l
is beyond the edge 2 τ √p, the largest eigenvalue of noise alone, nothing is told; a negative one is believed where the
edge is below .8 alone, since below −1 there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import sqrt
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from quorate.accounting.neighbouring import Relation
from quorate.data.declared_schema import NumberColumn, Schema
from quorate.data.feature_maps import LinearMap
from quorate.data.feature_maps.coordinates import Spectrum
from quorate.data.feature_maps.exact import squared_lengths
from quorate.data.pool_moments import MOST_EIGENPAIRS, PoolMoments
from quorate.data.schema_encoder import encoded_width
from quorate.ledger import Reservation
from quorate.mechanisms.pair_sums import LENGTH, NoisyPairSums, bounded, moved_by, pair_sums
from quorate.noise import NoiseSource
from quorate.noise.source import MAX_SCALE
from quorate.release import DrawnBlock, release
from quorate.release.charge import PAIR_SUMS
from quorate.run.usable_rows import UsableRows
from quorate.students.scores import RARE_OF_TWO
from quorate.types import BoolArray, FloatArray, IntArray, Secret

LEAST_SHARE, MOST_SHARE = 0.05, 0.1  #: of μ², for sums of products
FEW_UNITS: Final = 2_000  #: below which columns that are mostly lists get the least share of marginals
MOST_COLUMNS: Final = 150  # of linear features that are compared, those that vary most
_LEAST_VARIANCE = 1e-8
_LEAST_EIGENVALUE = 0.3
_BELIEVED_BELOW = 0.8  # edge of the noise
_CLEAR, _USEFUL_BELOW = 0.03, 0.5  # edges, as parts of the largest eigenvalue that there can be
_WIDTH = 1.5  # w, in τ
#: How eigenvalues are shrunk, today's first; a run that was begun goes on with the rule that it began with. "spikes": l
#: beyond the edge to the value whose noisy one is l (Benaych-Georges and Nadakuditi (2011), Theorem 2.1), all others to
#: one value that keeps the trace.
Shrinkage: TypeAlias = Literal["expected", "spikes"]
SHRINKAGES: Final[tuple[Shrinkage, ...]] = ("expected", "spikes")
_STEP_BITS, _LARGEST = 10, 128.0  # standardised entries are multiples of 2^-10, cut at 128


def mostly_numbers(declared: Schema) -> bool:
    """Whether columns are mostly numbers: at least half of the linear features are of these."""
    n_numbers = sum(isinstance(held, NumberColumn) for held in declared.columns.values())
    return 4 * n_numbers >= encoded_width(declared)  # a number is two linear features


def lists_of_few(declared: Schema, n_units: int) -> bool:
    """Whether columns are mostly lists, and units few: marginals are worth their least share alone then."""
    return n_units < FEW_UNITS and not mostly_numbers(declared)


def compares_pairs(declared: Schema, n_classes: int, rare: float | None) -> bool:
    """Whether sums over pairs are worth their price: of columns that are mostly numbers, and classes of which none is
    declared to be rare. `rare`: the declared share of the rarer of two classes.
    """
    return mostly_numbers(declared) and n_classes >= 2 and (rare is None or rare >= RARE_OF_TWO)


def pairs_of(
    declared: Schema, mu: float, *, n_classes: int, n_units: int, neighbours: Relation, rare: float | None = None
) -> tuple[NoisyPairSums | None, float]:
    """Return what is released of pairs of columns, by public facts alone, and its share of `mu`²: the least of .05 to
    .1 whose noise is well below the largest eigenvalue that there can be; (None, 0) where they are not worth it, or
    noise would hide it all.
    """
    if not compares_pairs(declared, n_classes, rare):
        return None, 0.0
    n_columns = min(encoded_width(declared), MOST_COLUMNS) + 1
    edge = 2 * moved_by(neighbours) / LENGTH**2 / mu / n_units * sqrt(n_columns)  # of rows whose squared length is 1
    percents = range(round(100 * LEAST_SHARE), round(100 * MOST_SHARE))
    share = next((percent / 100 for percent in percents if edge <= _CLEAR * sqrt(percent / 100)), MOST_SHARE)
    if edge >= _USEFUL_BELOW * sqrt(share) or moved_by(neighbours) / (mu * sqrt(share)) > MAX_SCALE:
        return None, 0.0
    return NoisyPairSums(n_columns, mu * sqrt(share), neighbours), share


@dataclass(frozen=True, slots=True, eq=False)
class PairColumns:
    """Linear features that are compared, in units of the drawn pool; a function of public facts alone. `places`: of
    the features; a constant stands behind them. `longest`: length of a row of the pool, in steps of 2^-10.
    """

    linear: LinearMap
    places: IntArray = field(repr=False)
    means: FloatArray = field(repr=False)
    spreads: FloatArray = field(repr=False)
    longest: float

    @classmethod
    def of(cls, linear: LinearMap, pool: Any, most: int) -> PairColumns:
        """Take at most so many features of an encoded pool, those that vary most."""
        features = linear.images(pool)[:, :-1] * 2.0**-linear.bits
        variances = features.var(axis=0)
        largest = np.sort(np.argsort(-variances, kind="stable")[:most])
        places = largest[variances[largest] > _LEAST_VARIANCE]
        columns = cls(linear, places, features[:, places].mean(axis=0), np.sqrt(variances[places]), 1.0)
        _, lengths = columns._in_steps(pool)
        return cls(linear, places, columns.means, columns.spreads, float(np.median(lengths)))

    def __len__(self) -> int:
        """How many numbers of a row are compared, the constant among them."""
        return len(self.places) + 1

    @property
    def n_pairs(self) -> int:
        """How many pairs of them there are."""
        return len(self) * len(self.places) // 2

    @property
    def digest(self) -> str:
        """Hash of what sums are over, but for the last bits of units, which another machine may compute otherwise."""
        units = np.concatenate([self.means, self.spreads, [self.longest]]).astype(np.float32)
        return blake2b(self.places.astype(np.int64).tobytes() + units.tobytes(), digest_size=16).hexdigest()

    def standardised(self, features: FloatArray) -> FloatArray:
        """Return features ``(n_rows, n_features)`` in units of the pool, and the constant 1 behind them."""
        own = (features[:, self.places] - self.means) / self.spreads
        return np.hstack([own, np.ones((len(own), 1))])

    def _in_steps(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return encoded rows as whole numbers, and their lengths: sums of squares of these are exact."""
        own = self.standardised(self.linear.images(rows) * 2.0**-self.linear.bits)
        steps = np.rint(np.ldexp(np.clip(np.nan_to_num(own, nan=0.0), -_LARGEST, _LARGEST), _STEP_BITS))
        return steps, np.sqrt(squared_lengths(steps))

    def integers(self, rows: Any) -> FloatArray:
        """Return encoded rows as integers of length 2^13 at most, each a function of that row and public facts."""
        return bounded(*self._in_steps(rows), self.longest)

    def recoloured(
        self,
        features: FloatArray,
        sums: IntArray,
        mechanism: NoisyPairSums,
        n_units: int,
        shrinkage: Shrinkage = SHRINKAGES[0],
    ) -> FloatArray:
        """Return linear features of the pool with the second moment that noisy sums tell of; the same where they tell
        of nothing.
        """
        squared = (self.longest / LENGTH) ** 2 * 4.0**-_STEP_BITS / n_units  # of one step of a sum, in the features'
        noisy = np.zeros((len(self), len(self)))
        noisy[np.triu_indices(len(self), 1)] = sums * squared
        wanted = moment_of(noisy + noisy.T, mechanism.sigma * squared, shrinkage)
        if wanted is None:
            return features
        own = self.standardised(features)
        own = own @ _root(own.T @ own / len(own), -0.5) @ _root(wanted, 0.5)
        result = np.array(features)
        result[:, self.places] = own[:, :-1] * self.spreads + self.means * own[:, -1:]
        result[:, -1] = own[:, -1]
        return result


def moment_of(noisy: FloatArray, tau: float, shrinkage: Shrinkage = SHRINKAGES[0]) -> FloatArray | None:
    """Return the second moment, with ones on its diagonal, of which `noisy` has the other entries and noise of `tau`
    on each; None where nothing rises above the noise.
    """
    p = len(noisy)
    values, vectors = np.linalg.eigh(noisy)
    edge = 2 * tau * sqrt(p)
    clear = (values > edge) | ((values < -edge) & (edge < _BELIEVED_BELOW))
    if not clear.any():
        return None
    if shrinkage == "expected":
        apart = values[:, None] - values
        shrunk = values - 2 * tau**2 * (apart / (apart**2 + (_WIDTH * tau) ** 2)).sum(axis=1)
    else:
        shrunk = np.where(clear, (values + np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))) / 2, 0.0)
        if not clear.all():  # the trace is p
            shrunk[~clear] = max(-float(shrunk.sum()) / int((~clear).sum()), _LEAST_EIGENVALUE - 1)
    moment = (vectors * np.maximum(1 + shrunk, _LEAST_EIGENVALUE)) @ vectors.T
    lengths = np.sqrt(np.diag(moment))
    return np.asarray(moment / lengths / lengths[:, None])


def _root(moment: FloatArray, power: float) -> FloatArray:
    """Return a power of a symmetric matrix; directions in which there is nothing stay small."""
    values, vectors = np.linalg.eigh(moment)
    return np.asarray((vectors * np.maximum(values, 1e-10 * values[-1]) ** power) @ vectors.T)


def with_moment(moments: PoolMoments, features: FloatArray) -> PoolMoments:
    """Return moments of a pool whose linear features, the first block, are others."""
    spectrum = Spectrum.of(features).leading(MOST_EIGENPAIRS)
    return PoolMoments(features, spectrum, None, residual=moments.residual)


def release_pair_sums(
    mechanism: NoisyPairSums,
    private: UsableRows,
    counted: BoolArray,
    reservation: Reservation,
    noise: NoiseSource,
    columns: PairColumns,
) -> IntArray | None:
    """Release sums of products over the rows that count, one of each unit, or read those that were stored; None where a
    process drew them and did not store them, or stored them of other columns: they are never drawn again.
    """
    for block in reservation.blocks(PAIR_SUMS):
        sums, digest = (None, None) if block.answers is None else block.answers[0]
        return np.array(sums, dtype=np.int64) if digest == columns.digest else None
    if not columns.n_pairs:  # of a pool in which no column varies
        return None
    exact = sums_over(columns, private, counted)
    actual = replace(mechanism, n_columns=len(columns))  # fewer where a column does not vary

    def compute(drawn: DrawnBlock) -> IntArray:
        return actual.release(exact.reveal(), drawn.noise(noise))

    _, noisy = release(reservation, PAIR_SUMS, 1, compute, record=lambda sums: [[sums.tolist(), columns.digest]])
    return noisy


def sums_over(columns: PairColumns, private: UsableRows, counted: BoolArray) -> Secret[IntArray]:
    """Sum products over the rows that count and can be used, block by block: here, also where there are workers, since
    a row's linear features cost little beside reading it.
    """
    sums = np.zeros(columns.n_pairs, dtype=np.int64)
    for at, numbers in private.blocks(widest=columns.linear.n_images):
        with np.errstate(all="ignore"):  # a warning about what a private row holds would tell of it
            sums += pair_sums(columns.integers(numbers)[counted[at]])
    return Secret(sums)
