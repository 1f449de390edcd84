"""Leading directions of a wide pool: what linear teachers see in place of thousands of columns, or of pixels.

Of a large pool of texts they come from a few products with a random matrix, in single precision: all eigenpairs of
5,000 texts take half a minute, and a private model has room for a few hundred directions. Everything here is about
public rows, so that nothing has to be exact; but it is the same on one machine each time.

References
----------
Halko, Martinsson and Tropp (2011), SIAM Review 53(2), Algorithms 4.4 and 5.1.
Martinsson and Tropp (2020), Acta Numerica 29, section 9.2: sparse sign matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.feature_maps.composed import ChainedMap, LinearMap
from quorate.data.feature_maps.coordinates import PublicCoordinates, Spectrum, by_strips, public_features
from quorate.data.feature_maps.first_maps import PatchFeatures, SharedPatches
from quorate.data.feature_maps.scale import has_spread, in_one_unit
from quorate.data.rows import Rows
from quorate.deferred import linalg, sparse
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as
from quorate.types import FloatArray

WIDE = 256  # columns beyond which leading directions of the pool stand in for them
DIRECTIONS = 64
OF_IMAGES = 128  # directions of patches
LEAST = 1e-6  # share of the leading variance below which a direction says nothing of other images
LEADING = 1_000
MORE = 60  # columns of the random matrix beyond that
PASSES = 1
SIGNS = 8  # of each row of the random matrix; the others of its entries are 0
OFTEN = 256  # words that most rows hold are multiplied as a dense matrix


@stored_as("quorate.data.feature_maps.directions.PoolDirections")
@dataclass(frozen=True, slots=True, eq=False)
class PoolDirections:
    """The leading 64 singular directions of a wide pool, in one common unit: a typical public row has length one.

    Rows are scaled to length one first, dense ones in the units of the pool
    (:class:`~quorate.data.feature_maps.composed.LinearMap`). A teacher of a few dozen rows cannot tell thousands of
    weights apart; which combinations of columns rows differ in, the unlabelled pool shows for free. `coordinates` lie
    on a grid on which every product is exact: what a row becomes is a function of that row and of the pool, bit for
    bit.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(100, 300))
    >>> directions = PoolDirections.of(pool)
    >>> seen = directions.transform(pool)
    >>> seen.shape, round(float(np.sqrt(np.mean(np.sum(seen**2, axis=1)))), 2)
    ((100, 64), 1.0)
    """

    coordinates: PublicCoordinates

    @classmethod
    def of(cls, pool: Rows) -> PoolDirections:
        """Read the directions off the public pool ``(n_public, n_columns)``, an array or a CSR matrix of numbers."""
        from sklearn.decomposition import TruncatedSVD

        linear = LinearMap.fit(pool)
        features = public_features(linear, pool)[:, :-1]  # without the constant: an intercept says the same
        with np.errstate(divide="ignore", invalid="ignore"):  # the share of variance explained, of a pool without any
            vectors = TruncatedSVD(DIRECTIONS, random_state=0).fit(features).components_.T
        length = float(np.sqrt(np.mean(np.sum(np.asarray(features @ vectors) ** 2, axis=1))))
        constant = np.zeros((1, DIRECTIONS))
        return cls(PublicCoordinates.of(linear, np.vstack([vectors / (length or 1.0), constant])))

    @classmethod
    def of_images(cls, pool: FloatArray, *, patches: SharedPatches | None = None) -> PoolDirections:
        """Read the leading 128 principal directions of the patches of public images ``(n_public, side * side)``.

        The coordinate along a direction, of mean zero, is divided by the root of its standard deviation in the pool:
        between leaving directions as long as they are, of which a model of few rows learns the first alone, and making
        all equally long. What others ask of `patches` is computed once. Refuses as :meth:`PatchFeatures.fit` does.
        """
        from sklearn.decomposition import PCA

        first = PatchFeatures.fit(pool) if patches is None else patches.of(pool)
        numbers = first.numbers(pool)
        chained = ChainedMap(first, LinearMap(numbers.shape[1], in_one_unit(numbers)))
        features = public_features(chained.second, numbers)[:, :-1]
        if not has_spread(features).any():
            raise InvalidParameter("the public images are all equal, and show no directions; give images that differ")
        components = PCA(min(OF_IMAGES, *features.shape), svd_solver="randomized", random_state=0).fit(features)
        kept = components.explained_variance_ > LEAST * components.explained_variance_[0]
        deviations = np.sqrt(components.explained_variance_[kept])
        length = float(np.sqrt(deviations.sum()))  # of a typical image: so much each coordinate varies
        vectors = components.components_[kept].T / (np.sqrt(deviations) * length)
        return cls(PublicCoordinates.of(chained, np.vstack([vectors, -(components.mean_ @ vectors)[None]])))

    @property
    def n_directions(self) -> int:
        """How many numbers a row has."""
        return self.coordinates.n_coordinates

    @property
    def of_patches(self) -> bool:
        """Whether rows are images, told by their patches."""
        return isinstance(self.coordinates.feature_map, ChainedMap)

    @property
    def described(self) -> int | str:
        """What tells these directions from others of the same pool, for the key of a stage."""
        return f"{self.n_directions} of patches" if self.of_patches else self.n_directions

    def transform(self, rows: Rows) -> FloatArray:
        """Return ``(n_rows, n_directions)`` numbers, each row by itself."""
        steps: FloatArray = self.coordinates(rows)
        return steps * 2.0**-self.coordinates.bits

    def transformer(self, rows: Rows) -> Any:
        """Return the same numbers, but for the grid, as a fitted scikit-learn Pipeline; `rows`: two of the pool are
        enough.
        """
        from sklearn.decomposition import PCA
        from sklearn.pipeline import Pipeline

        weights, constant = self.coordinates.feature_map.weights(self.coordinates.features(np.eye(self.n_directions)))
        first = self.coordinates.feature_map.transformer(rows)
        last = PCA(self.n_directions)  # (x - mean) @ components.T, with the mean that gives this constant
        last.components_ = np.ascontiguousarray(weights.T)
        last.mean_ = -np.linalg.lstsq(last.components_, constant, rcond=None)[0]
        last.n_components_, last.n_features_in_ = self.n_directions, len(weights)
        return Pipeline([("features", first), ("directions", last)])


def is_wide(n_columns: int, n_public: int) -> bool:
    """Whether a pool has more columns than models of its columns can tell apart, and rows to find directions in."""
    return n_columns > WIDE and n_public > DIRECTIONS


def leading_spectrum(features: Any) -> Spectrum:
    """Return the leading eigenpairs of the second moment of public features, CSR ``(n_public, n_features)``. The rest
    of its trace is equal eigenvalues, which of all with one sum count most in an effective dimension.
    """
    m, width = features.shape
    both = _Both(features)
    columns = min(LEADING + MORE, m, width)
    basis, room = _random_signs(m, columns), np.empty((width, columns), dtype=np.float32)
    for _ in range(PASSES):  # the directions that count most are within a few hundredths after one
        basis = _orthonormal(both.times(both.transposed_times(basis, room)))
    across = both.transposed_times(basis, room)
    squares, turned = np.linalg.eigh((across.T @ across).astype(np.float64))
    kept = squares > 1e-6 * squares[-1]
    squares, turned = squares[kept][::-1][:LEADING], turned[:, kept][:, ::-1][:, :LEADING]
    # The same as across @ turned; texts are fewer than words, and hold few words each.
    vectors = both.transposed_times(basis @ (turned / np.sqrt(squares)).astype(np.float32), room[:, : len(squares)])
    left = max(float((features.data**2).sum()) - float(squares.sum()), 0.0) / m
    others = min(m, width) - len(squares)
    return Spectrum(squares / m, vectors, np.full(others, left / max(others, 1)))


class _Both:
    """Products with sparse rows and with their transpose: frequent words as a dense matrix, the others by scipy."""

    def __init__(self, features: Any) -> None:
        rows = features.tocsr().astype(np.float32)
        counts = np.bincount(rows.indices, minlength=rows.shape[1])
        self._often = np.sort(np.argsort(counts, kind="stable")[-OFTEN:])
        seldom = np.ones(rows.shape[1], dtype=bool)
        seldom[self._often] = False
        mask = seldom[rows.indices]
        starts = np.concatenate([[0], np.cumsum(mask)])[rows.indptr]
        self._dense = rows[:, self._often].toarray()
        self._seldom = sparse.csr_matrix((rows.data[mask], rows.indices[mask], starts), shape=rows.shape)
        self._transposed = self._seldom.T.tocsr()
        self._rows = rows

    def times(self, columns: Any) -> Any:
        product = by_strips(
            self._seldom, columns, np.empty((self._seldom.shape[0], columns.shape[1]), dtype=np.float32)
        )
        product += self._dense @ columns[self._often]
        return product

    def transposed_times(self, columns: Any, out: Any) -> Any:
        """Write the product over `out`: memory that is taken anew each time costs as much as some products."""
        if sparse.issparse(columns):
            out[...] = 0
            return (self._rows.T @ columns).tocsr().toarray(out=out)
        product = by_strips(self._transposed, columns, out)
        product[self._often] = self._dense.T @ columns
        return product


def _random_signs(m: int, columns: int) -> Any:
    """Return a random matrix CSR ``(m, columns)`` of eight 1 or -1 a row; it serves as normal entries do, in a
    hundredth of the multiplications.
    """
    rng = np.random.default_rng(0)
    edges = np.linspace(0, columns, SIGNS + 1).astype(np.int32)
    places = rng.integers(edges[:-1], edges[1:], size=(m, SIGNS), dtype=np.int32)
    signs = rng.integers(2, size=(m, SIGNS)).astype(np.float32) * 2 - 1
    return sparse.csr_matrix((signs.ravel(), places.ravel(), np.arange(m + 1) * SIGNS), shape=(m, columns))


def _orthonormal(columns: Any) -> Any:
    """Return an orthonormal basis of nearly the span, by Cholesky's factors: a third of the time of Householder's."""
    fine = columns.astype(np.float64)
    gram = fine.T @ fine
    gram[np.diag_indices_from(gram)] += 1e-12 * float(np.trace(gram))
    factor = linalg.cholesky(gram, lower=True)
    inverse = linalg.solve_triangular(factor, np.eye(len(gram)), lower=True).astype(np.float32)
    return linalg.blas.strmm(1.0, inverse, columns.T, lower=True).T  # half the products are with a 0
