r"""The votes of many linear classifiers by one matrix product, identical to their own ``predict``.

Two evaluations of a score :math:`x \cdot w + b` in different orders, as a stacked product and a classifier's own
are, differ by at most :math:`2\gamma_{d+2}(|x|\cdot|w| + |b|)`, where :math:`\gamma_n = nu/(1-nu)` and
:math:`u = 2^{-53}` (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., Sect. 3.1). By
Cauchy-Schwarz :math:`|x|\cdot|w| \le \|x\|\,\|w\|`. Where a score is farther than that from every other score it is
compared with, both evaluations vote alike; the remaining rows, ties among them, are left to the classifier itself.
So the counts do not depend on how the product was blocked, nor on which teachers stand side by side in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.data.rows import kind
from quorate.ensemble.classifier import ClassifierVoter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from threadpoolctl import ThreadpoolController

    from quorate.ensemble.teachers import Voter
    from quorate.types import BoolArray, FloatArray, IntArray

_UNIT_ROUNDOFF = 2.0**-53
# Scores and what is made of them stay in a core's cache; fewer rows than this waste the matrix product.
_SCORES_AT_ONCE = 2**17
_FEWEST_ROWS = 32
# A length below this may come of squares that underflowed, and products with it underflow. Taken for it, the bound is
# at least 4(d + 2)·2⁻¹⁰⁵³, more than the d products and sums can lose to underflow, which is 2⁻¹⁰⁷⁵ each.
_SHORTEST = 2.0**-500
_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class _Alike:
    """Linear classifiers that know the same classes, side by side.

    Attributes
    ----------
    numbers : tuple of int, (M,)
        Which voters they are.
    codes : tuple of int
        The classes that they know.
    weights : FloatArray, (n_features, n_scores × M)
        Their coefficients, all models' of one score side by side; two classes have one score.
    offsets : FloatArray, (n_scores × M,)
        Their intercepts.
    lengths, largest : FloatArray, (M,)
        For each model the Euclidean length of the longest weight vector, and the largest intercept without its sign.
    """

    numbers: tuple[int, ...]
    codes: tuple[int, ...]
    weights: FloatArray
    offsets: FloatArray
    lengths: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, numbers: Sequence[int], models: Sequence[Any], codes: tuple[int, ...]) -> _Alike:
        n_scores = 1 if len(codes) == 2 else len(codes)
        weights = np.stack([np.reshape(model.coef_, (n_scores, -1)) for model in models], axis=1)
        offsets = np.stack([np.broadcast_to(np.ravel(model.intercept_), (n_scores,)) for model in models], axis=1)
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.sum(weights**2, axis=2)).max(axis=0)
        return cls(
            tuple(numbers),
            codes,
            np.ascontiguousarray(weights.reshape(n_scores * len(models), -1).T),
            offsets.reshape(-1),
            lengths,
            np.abs(offsets).max(axis=0),
        )


@dataclass(frozen=True, eq=False, slots=True)
class LinearVoters:
    """Those of an ensemble's voters that are linear classifiers, stacked once for every count.

    Parameters
    ----------
    groups : tuple
        Classifiers that know the same classes, side by side.
    """

    groups: tuple[_Alike, ...]

    @classmethod
    def of(cls, voters: Sequence[Voter], width: int, n_classes: int) -> LinearVoters:
        """Stack the linear classifiers of `width` features among `voters`, of any kind."""
        by_codes: dict[tuple[int, ...], list[int]] = {}
        for number, voter in enumerate(voters):
            codes = _codes_if_linear(voter, width, n_classes)
            if codes is not None:
                by_codes.setdefault(codes, []).append(number)
        groups = (
            _Alike.of(numbers, [voters[number].estimator for number in numbers], codes)  # type: ignore[attr-defined]
            for codes, numbers in by_codes.items()  # one alone too: what it takes would tell of a rare class
        )
        return cls(tuple(groups))

    @property
    def n_bytes(self) -> int:
        """Memory that the stacked coefficients take."""
        return sum(each.weights.nbytes for each in self.groups)

    def count(self, X: Any, counts: IntArray, n_jobs: int = 1) -> dict[int, IntArray]:
        """Add their votes to `counts`, in place.

        Parameters
        ----------
        X : array or CSR matrix, (n_queries, n_features)
            For which :func:`~quorate.data.rows.is_plain_float_matrix` holds.
        counts : IntArray, (n_queries, n_classes)
            Added to.
        n_jobs : int
            Threads of the product.

        Returns
        -------
        dict from voter number to IntArray
            For each voter that was counted, the rows on which it was not, in ascending order.

        Examples
        --------
        >>> from sklearn.linear_model import RidgeClassifier
        >>> voter = ClassifierVoter(RidgeClassifier().fit([[-1.0], [1.0]], [0, 1]), np.array([0, 1]))
        >>> counts = np.zeros((3, 2), dtype=np.int64)
        >>> LinearVoters.of([voter] * 5, width=1, n_classes=2).count(np.array([[-2.0], [0.0], [9.0]]), counts)[0]
        array([1])
        >>> counts.tolist()
        [[5, 0], [0, 0], [0, 5]]
        """
        open_rows: dict[int, IntArray] = {}
        for alike in self.groups:
            open_rows |= dict.fromkeys(alike.numbers, _NO_ROWS)
            open_rows |= _count_alike(alike, X, counts, n_jobs)
        return open_rows


def _count_alike(alike: _Alike, X: Any, counts: IntArray, n_jobs: int) -> dict[int, IntArray]:
    """Count models that know the same classes; return the rows that each leaves open, where it leaves any."""
    n_models, n_scores = len(alike.numbers), len(alike.offsets) // len(alike.numbers)
    votes = _votes_by_sign if n_scores == 1 else _votes_by_largest
    step = max(_FEWEST_ROWS, n_jobs * _SCORES_AT_ONCE // (n_models * n_scores))
    left: dict[int, list[IntArray]] = {}
    # Overflow gives inf or NaN, which the comparisons leave open.
    with blas().limit(limits=n_jobs), np.errstate(all="ignore"):
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            scores = np.asarray(rows @ alike.weights)
            scores += alike.offsets
            found, certain = votes(scores.reshape(-1, n_scores, n_models), _bounds(alike, rows))
            counts[start : start + step, list(alike.codes)] += found
            if certain is not None:
                for model in np.flatnonzero(~certain.all(axis=0)):
                    open_here = (start + np.flatnonzero(~certain[:, model])).astype(np.int64)
                    left.setdefault(alike.numbers[model], []).append(open_here)
    return {number: np.concatenate(parts) for number, parts in left.items()}


def _bounds(alike: _Alike, rows: Any) -> FloatArray:
    """How far two evaluations of one score may lie apart, at most: ``(n_rows, M)``, for every score of a model."""
    # Twice γ, and twice again for the rounding of this bound itself and of what it is taken from.
    slack = 4 * (rows.shape[1] + 2) * _UNIT_ROUNDOFF
    bounds = np.multiply.outer(np.maximum(_row_norms(rows), _SHORTEST), np.maximum(alike.lengths, _SHORTEST))
    bounds += alike.largest
    bounds *= slack
    bounds[np.isnan(bounds)] = np.inf  # of a length that overflowed
    return bounds


@cache
def blas() -> ThreadpoolController:
    """Return what sets the threads of numpy's matrix products; to look for the libraries takes longer than a vote."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _votes_by_sign(scores: FloatArray, bounds: FloatArray) -> tuple[IntArray, BoolArray | None]:
    """Count the votes of one score ``(n_rows, 1, M)``, where no rounding could change its sign.

    Returns ``(n_rows, 2)`` votes, and which of them are certain, ``(n_rows, M)``; None where all are.
    """
    second = scores[:, 0] > bounds
    np.negative(bounds, out=bounds)
    first = scores[:, 0] < bounds
    found = np.stack([np.count_nonzero(first, axis=1), np.count_nonzero(second, axis=1)], axis=1)
    return found, None if found.sum() == first.size else first | second


def _votes_by_largest(scores: FloatArray, bounds: FloatArray) -> tuple[IntArray, BoolArray | None]:
    """Count the votes of the largest of C scores ``(n_rows, C, M)``, where no rounding could change which it is.

    That is where no other score is within twice the bound of the largest one. Returns ``(n_rows, C)`` votes, and which
    of them are certain, ``(n_rows, M)``; None where all are.
    """
    largest = scores.max(axis=1)
    near = scores >= (largest - 2 * bounds)[:, np.newaxis]
    found = np.count_nonzero(near, axis=2)
    # A finite largest score is near itself, as no bound is NaN; so with as many near ones as models each has one alone.
    if np.isfinite(largest).all() and np.all(found.sum(axis=1) == scores.shape[2]):
        return found, None
    certain = (np.count_nonzero(near, axis=1) == 1) & np.isfinite(largest)
    return np.count_nonzero(near & certain[:, np.newaxis], axis=2), certain


def _row_norms(rows: Any) -> FloatArray:
    squares = rows.multiply(rows).sum(axis=1) if kind(rows) == "sparse" else np.sum(rows**2, axis=1)
    return np.sqrt(np.asarray(squares, dtype=np.float64).reshape(-1))


def _codes_if_linear(voter: Voter, width: int, n_classes: int) -> tuple[int, ...] | None:
    """Return the class codes of a fitted linear classifier of scikit-learn's whose ``predict`` is known; else None."""
    from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
    from sklearn.svm import LinearSVC

    if not isinstance(voter, ClassifierVoter):
        return None
    model = voter.estimator
    # Exact types: a subclass may predict otherwise.
    if type(model) not in {LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier, LinearSVC}:
        return None
    codes = tuple(int(code) for code in voter.codes)
    n_scores = 1 if len(codes) == 2 else len(codes)
    fits = (
        hasattr(model, "coef_")
        and np.size(model.coef_) == n_scores * width
        and np.shape(model.coef_)[-1] == width
        and np.size(model.intercept_) in {1, n_scores}
        and np.asarray(model.coef_).dtype == np.float64
        and np.array_equal(model.classes_, np.arange(len(codes)))
        and all(0 <= code < n_classes for code in codes)
    )
    return codes if fits else None
