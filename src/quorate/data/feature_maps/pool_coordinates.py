r"""Public points as teachers and students see them: leading directions, scaled, whitened, or by a kernel among them.

Leading directions of a wide pool are what linear teachers see in place of thousands of columns, or of pixels. Of a
large pool of texts they come from a few products with a random matrix, in single precision: all eigenpairs of 5,000
texts take half a minute, and a private model has room for a few hundred directions. They are about public rows, so that
nothing has to be exact; but they are the same on one machine each time.

For teachers of few rows a row becomes :math:`u = z/\|z\|`, with z its coordinates in one block or two, each whitened by
itself. The length of z says how usual a row is and not of which class, and such a teacher would follow the longest.

References
----------
Halko, Martinsson and Tropp (2011), SIAM Review 53(2), Algorithms 4.4 and 5.1.
Martinsson and Tropp (2020), Acta Numerica 29, section 9.2: sparse sign matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from math import hypot
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.feature_maps.composed import ChainedMap, LinearMap, longest_features
from quorate.data.feature_maps.coordinates import FeatureMap, PublicCoordinates, Spectrum, by_strips, public_features
from quorate.data.feature_maps.exact import squared_lengths
from quorate.data.feature_maps.first_maps import PatchFeatures, SharedPatches
from quorate.data.feature_maps.scale import deviations, has_spread, in_one_unit, means
from quorate.data.rows import Rows, kind, take
from quorate.deferred import decomposition, kernel_approximation, linalg, pipeline, preprocessing, sparse
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
LANDMARKS = 500  # public points that the kernel is told by
BLOCK = 4_096  # points that are estimated at once: beyond, a kernel takes much memory


@stored_as("quorate.data.feature_maps.directions.PoolDirections")
@dataclass(frozen=True, slots=True, eq=False)
class PoolDirections:
    """The leading 64 singular directions of a wide pool, in one common unit: a typical public row has length one.

    Rows are scaled to length one first, dense ones in the units of the pool
    (:class:`~quorate.data.feature_maps.composed.LinearMap`). A teacher of a few dozen rows cannot tell thousands of
    weights apart; which combinations of columns rows differ in, the unlabelled pool shows for free. `coordinates` lie
    on a grid on which every product is exact: what a row becomes is a function of that row and of the pool, bit for
    bit.
    """

    coordinates: PublicCoordinates

    @classmethod
    def of(cls, pool: Rows) -> PoolDirections:
        """Read the directions off the public pool ``(n_public, n_columns)``, an array or a CSR matrix of numbers."""
        linear = LinearMap.fit(pool)
        features = public_features(linear, pool)[:, :-1]  # without the constant: an intercept says the same
        with np.errstate(divide="ignore", invalid="ignore"):  # the share of variance explained, of a pool without any
            vectors = decomposition.TruncatedSVD(DIRECTIONS, random_state=0).fit(features).components_.T
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
        first = PatchFeatures.fit(pool) if patches is None else patches.of(pool)
        numbers = first.numbers(pool)
        chained = ChainedMap(first, LinearMap(numbers.shape[1], in_one_unit(numbers)))
        features = public_features(chained.second, numbers)[:, :-1]
        if not has_spread(features).any():
            raise InvalidParameter("the public images are all equal, and show no directions; give images that differ")
        n = min(OF_IMAGES, *features.shape)
        components = decomposition.PCA(n, svd_solver="randomized", random_state=0).fit(features)
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
        weights, constant = self.coordinates.feature_map.weights(self.coordinates.features(np.eye(self.n_directions)))
        first = self.coordinates.feature_map.transformer(rows)
        last = decomposition.PCA(self.n_directions)  # (x - mean) @ components.T, with the mean that gives this constant
        last.components_ = np.ascontiguousarray(weights.T)
        last.mean_ = -np.linalg.lstsq(last.components_, constant, rcond=None)[0]
        last.n_components_, last.n_features_in_ = self.n_directions, len(weights)
        return pipeline.Pipeline([("features", first), ("directions", last)])


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


@stored_as("quorate.data.feature_maps.standardizer.PoolStandardizer")
@dataclass(frozen=True, slots=True, eq=False)
class PoolStandardizer:
    r"""Affine change of public points :math:`z = (x - \bar x)/r`, column by column; `scale` > 0.

    Columns of 0 and 1 keep their unit, since a rare indicator is rare and not small; other dense columns are put in
    units of their public standard deviation first. Sparse columns are all taken as they are. Then every column is
    divided by the root mean squared length of what came out. A column that is constant in the pool says nothing there,
    and keeps its unit.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, pool: Any, *, one_unit: bool = False) -> PoolStandardizer:
        """Read mean and scale off the public pool ``(n_public, n_features)``, an array or a sparse matrix.

        With `one_unit` no column is put in a unit of its own: where their lengths are what tells them apart.
        """
        points = pool.astype(np.float64)  # before anything is squared: small integers overflow
        spread = deviations(points)
        if kind(pool) == "sparse":
            mean, unit = np.asarray(points.mean(axis=0)).ravel(), np.ones(points.shape[1])
        else:
            mean = means(points, spread > 0)
            indicator = ((points == 0) | (points == 1)).all(axis=0)
            unit = np.where(indicator | (spread == 0) | one_unit, 1.0, spread)
        length = hypot(*(spread / unit).tolist())
        return cls(mean, unit * (length if length > 0 else 1.0))

    def scaler(self, rows: Any) -> Any:
        """Return the same change of points as a fitted scikit-learn transformer; a sparse matrix is not centred."""
        with np.errstate(over="ignore", invalid="ignore"):  # what it makes of the rows is not used
            fitted = preprocessing.StandardScaler(with_mean=kind(rows) != "sparse").fit(rows)
        fitted.mean_, fitted.scale_, fitted.var_ = self.mean, self.scale, self.scale**2
        return fitted

    def scores(self, X: Any, weights: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return :math:`b + Wz` for every row, ``(n_rows, n_outputs)``, without centring a sparse matrix."""
        scaled = weights / self.scale
        return np.asarray(X @ scaled.T) - self.mean @ scaled.T + intercepts

    def pull_back(self, X: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient in the weights, given that in the scores, ``(n_outputs, n_features)``."""
        return (np.asarray((X.T @ slopes).T) - np.outer(slopes.sum(axis=0), self.mean)) / self.scale


@stored_as("quorate.data.feature_maps.pool_coordinates.PoolCoordinates")
@dataclass(frozen=True, slots=True, eq=False)
class PoolCoordinates:
    """Coordinates :math:`z` of points, with mean zero and typical length one in the pool.

    Up to 256 columns they are those of :class:`~quorate.data.feature_maps.PoolStandardizer`. In wider pools (words of a
    text, pixels) they are the leading 64 singular directions of the pool, in one common unit: a share that is noisy at
    every point cannot tell thousands of weights apart. `maps`: transformers fitted on the pool, with fixed seeds,
    before `standard`, which is of what they make of the pool.
    """

    maps: tuple[Any, ...]
    standard: PoolStandardizer

    @classmethod
    def of(cls, pool: Any, *, one_unit: bool = False) -> PoolCoordinates:
        """Read the geometry off the public pool ``(n_public, n_features)``, an array or a sparse matrix.

        With `one_unit` columns are not put in units of their own: where they are directions of a pool already.
        """
        if not is_wide(pool.shape[1], pool.shape[0]):
            return cls((), PoolStandardizer.of(pool, one_unit=one_unit))
        rows, varied = pool.astype(np.float64), has_spread(pool)
        of_varied = rows if varied.all() else _without(rows, ~varied)
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # the share of variance explained, of a pool without variance
            directions = decomposition.TruncatedSVD(DIRECTIONS, random_state=0).fit(of_varied)
        directions.components_[:, ~varied] = 0.0  # a column without spread says nothing of any row
        return cls((directions,), PoolStandardizer.of(directions.transform(rows), one_unit=True))

    def kernel(self, pool: Any) -> PoolCoordinates:
        r"""Return the geometry of a Gaussian kernel :math:`k(x, x') = e^{-\|z - z'\|^2/2}` of this one.

        A typical public point has length one, so the kernel's width is a fact about the pool. Inner products of the
        last map's features are k where the pool has at most 500 points, else its Nyström approximation on 500 of them.
        """
        z = self.measured(pool)
        if kind(z) == "sparse":  # of few rows, or few columns; and landmarks are published, in a form that skops trusts
            z = z.toarray()
        n = min(LANDMARKS, pool.shape[0])
        features = kernel_approximation.Nystroem(gamma=0.5, n_components=n, random_state=0).fit(z)
        lengths = self.standard.scaler(self.project(pool))
        some = np.sort(np.random.default_rng(0).permutation(pool.shape[0])[:BLOCK])
        images = features.transform(take(z, some))
        if not has_spread(z).any():  # equal rows have equal images, but for rounding, which is no unit
            images = np.broadcast_to(images[:1], images.shape)
        return PoolCoordinates((*self.maps, lengths, features), PoolStandardizer.of(images, one_unit=True))

    def project(self, X: Any) -> Any:
        """Return what `standard` measures: the rows, or what the maps make of them."""
        rows = X.astype(np.float64) if self.maps else X
        for step in self.maps:
            rows = step.transform(rows)
        return rows

    def measured(self, X: Any) -> Any:
        """Return z; rows of a narrow sparse matrix stay sparse and are not centred: distances are the same."""
        rows = self.project(X)
        if kind(rows) == "sparse":
            return rows.astype(np.float64).multiply(1 / self.standard.scale).tocsr()
        centred: FloatArray = (np.asarray(rows, dtype=np.float64) - self.standard.mean) / self.standard.scale
        return centred

    def steps(self, rows: Any) -> list[tuple[str, Any]]:
        """Return :meth:`project` as fitted scikit-learn steps; `rows`: the pool, as what they are to take: an array or
        a frame.
        """
        return [("numbers", as_numbers(rows)), *((type(step).__name__.lower(), step) for step in self.maps)]


def _without(rows: Any, columns: NDArray[np.bool_]) -> Any:
    """Return the rows, an array or a sparse matrix, with zeros in these columns."""
    if kind(rows) == "sparse":
        return rows.multiply(~columns).tocsr()
    return np.where(columns, 0.0, rows)


def as_numbers(rows: Any) -> Any:
    """Return a fitted scikit-learn transformer that makes numbers of any container and changes none of them."""
    return preprocessing.StandardScaler(with_mean=False, with_std=False).fit(rows)


def by_blocks(estimate: Callable[[Any], FloatArray], X: Any) -> FloatArray:
    """Estimate something of each row, not too many rows at once."""
    starts = range(0, X.shape[0], BLOCK)
    if len(starts) <= 1:
        return estimate(X)
    return np.vstack([estimate(take(X, np.arange(start, min(start + BLOCK, X.shape[0])))) for start in starts])


@stored_as("quorate.data.feature_maps.unit_coordinates.UnitCoordinates")
@dataclass(frozen=True, slots=True, eq=False)
class UnitCoordinates:
    r"""Rows to vectors of length one, bit for bit a function of the row and the pool; a row the pool says nothing of is
    zeros. `effects`: :math:`\lambda_j/(\lambda_j + \kappa)` in (0, 1], ``(n_directions,)``: coordinates' mean squares
    over the pool.
    """

    coordinates: PublicCoordinates
    effects: FloatArray = field(repr=False)

    @classmethod
    def of(cls, feature_map: FeatureMap, whitening: FloatArray, effects: FloatArray) -> UnitCoordinates:
        """Put a whitening ``(n_features, n_directions)`` on the grid; each direction gets the sign of its largest
        weight, since which one a decomposition gives is a matter of the machine.
        """
        largest = np.take_along_axis(whitening, np.abs(whitening).argmax(axis=0)[None], axis=0)
        signed = whitening * np.where(largest < 0, -1.0, 1.0)
        return cls(PublicCoordinates.of(feature_map, signed, longest_features=longest_features(feature_map)), effects)

    @property
    def n_directions(self) -> int:
        """How many numbers a row has."""
        return self.coordinates.n_coordinates

    @property
    def of_patches(self) -> bool:
        """Whether rows are images, told by their patches: never."""
        return False

    @property
    def described(self) -> str:
        """What tells these coordinates from others of the same pool, for the key of a charge."""
        return f"{self.n_directions} of length one"

    @property
    def digest(self) -> str:
        """What tells them from the same ones on another machine, whose rounding differs, for the key of a stage."""
        return blake2b(self.coordinates.content, digest_size=16).hexdigest()

    def transform(self, rows: Rows) -> FloatArray:
        """Return ``(n_rows, n_directions)`` numbers, each row by itself."""
        steps: FloatArray = self.coordinates(rows)
        lengths = np.sqrt(squared_lengths(steps))
        steps /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return steps

    def transformer(self, rows: Rows) -> Any:
        """Return the same numbers, but for the grid, as a fitted scikit-learn Pipeline; `rows`: two of the pool at
        least.
        """
        feature_map = self.coordinates.feature_map
        weights, constants = feature_map.weights(self.coordinates.features(np.eye(self.n_directions)))
        first = feature_map.transformer(rows)
        with_one = preprocessing.PolynomialFeatures(1).fit(first.transform(rows))  # a 1, and the features as they are
        last = decomposition.TruncatedSVD(self.n_directions)  # a product with a matrix
        last.components_ = np.ascontiguousarray(np.vstack([constants, weights]).T)
        last.n_features_in_ = last.components_.shape[1]
        unit = preprocessing.Normalizer().fit(np.zeros((1, self.n_directions)))
        return pipeline.Pipeline([("features", first), ("constant", with_one), ("directions", last), ("unit", unit)])
