"""Leading directions of a large pool of texts, from a few products with a random matrix, in single precision.

All eigenpairs of 5,000 texts take half a minute, and most of them tell little: a private model has room for a few
hundred directions. Everything here is about public rows, so that nothing has to be exact; but it is the same on one
machine each time.

References
----------
Halko, Martinsson and Tropp (2011), SIAM Review 53(2), Algorithms 4.4 and 5.1.
Martinsson and Tropp (2020), Acta Numerica 29, section 9.2: sparse sign matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data.feature_maps.coordinates import Spectrum
from quorate.data.feature_maps.factored import by_strips
from quorate.deferred import linalg, sparse

DIRECTIONS = 1_000
MORE = 60  # columns of the random matrix beyond that
PASSES = 1
SIGNS = 8  # of each row of the random matrix; the others of its entries are 0
OFTEN = 256  # words that most rows hold are multiplied as a dense matrix


def leading_spectrum(features: Any) -> Spectrum:
    """Return the leading eigenpairs of the second moment of public features, CSR ``(n_public, n_features)``.

    The rest of its trace is told as eigenvalues of equal size: of all that have the same sum, those count most in an
    effective dimension.

    Examples
    --------
    >>> features = sparse.random(1_200, 2_000, density=0.05, format="csr", random_state=0)
    >>> spectrum = leading_spectrum(features)
    >>> spectrum.vectors.shape, len(spectrum.rest), bool(spectrum.values[0] > spectrum.values[-1] > 0)
    ((2000, 1000), 200, True)
    >>> whole = float((features.data**2).sum()) / 1_200
    >>> bool(np.isclose(spectrum.values.sum() + spectrum.rest.sum(), whole))
    True
    """
    m, width = features.shape
    both = _Both(features)
    columns = min(DIRECTIONS + MORE, m, width)
    seen, room = _random_signs(m, columns), np.empty((width, columns), dtype=np.float32)
    for _ in range(PASSES):  # the directions that count most are within a few hundredths after one
        seen = _orthonormal(both.times(both.transposed_times(seen, room)))
    across = both.transposed_times(seen, room)
    squares, turned = np.linalg.eigh((across.T @ across).astype(np.float64))
    kept = squares > 1e-6 * squares[-1]
    squares, turned = squares[kept][::-1][:DIRECTIONS], turned[:, kept][:, ::-1][:, :DIRECTIONS]
    # The same as across @ turned; texts are fewer than words, and hold few words each.
    vectors = both.transposed_times(seen @ (turned / np.sqrt(squares)).astype(np.float32), room[:, : len(squares)])
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
    """Return a random matrix CSR ``(m, columns)``: of each row one entry in each of eight parts is 1 or -1.

    It serves as one of normal entries does, and a product with it takes a hundredth of the multiplications.
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
