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
    from quorate.types import FloatArray, IntArray

_UNIT_ROUNDOFF = 2.0**-53
_SCORES_AT_ONCE = 4_000_000  # 32 MB
# Below this many voters a product saves nothing worth its care.
_FEWEST = 2
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
    weights : FloatArray, (n_features, M × n_scores)
        Their coefficients; two classes have one score.
    offsets, weight_norms : FloatArray, (M × n_scores,)
        Their intercepts, and the Euclidean length of each column of `weights`.
    """

    numbers: tuple[int, ...]
    codes: tuple[int, ...]
    weights: FloatArray
    offsets: FloatArray
    weight_norms: FloatArray

    @classmethod
    def of(cls, numbers: Sequence[int], models: Sequence[Any], codes: tuple[int, ...]) -> _Alike:
        n_scores = 1 if len(codes) == 2 else len(codes)
        weights = np.concatenate([np.reshape(model.coef_, (n_scores, -1)) for model in models]).T
        offsets = np.concatenate([np.broadcast_to(np.ravel(model.intercept_), (n_scores,)) for model in models])
        return cls(tuple(numbers), codes, weights, offsets, np.sqrt(np.sum(weights**2, axis=0)))


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
            for codes, numbers in by_codes.items()
            if len(numbers) >= _FEWEST
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
            For which :func:`is_plain_float_matrix` holds.
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
    n_models = len(alike.numbers)
    n_scores = len(alike.offsets) // n_models
    # Twice γ, and twice again for the rounding of this bound itself.
    slack = 4 * (X.shape[1] + 2) * _UNIT_ROUNDOFF
    step = max(1, _SCORES_AT_ONCE // (n_models * n_scores))
    left: dict[int, list[IntArray]] = {}
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        # Overflow gives inf or NaN, which the comparisons below leave open.
        with _blas().limit(limits=n_jobs), np.errstate(all="ignore"):
            scores = np.asarray(rows @ alike.weights) + alike.offsets
            bounds = slack * (np.multiply.outer(_row_norms(rows), alike.weight_norms) + np.abs(alike.offsets))
            votes, certain = _votes(scores.reshape(-1, n_models, n_scores), bounds.reshape(-1, n_models, n_scores))
        for label, code in enumerate(alike.codes):
            counts[start : start + step, code] += np.count_nonzero((votes == label) & certain, axis=1)
        for model in np.flatnonzero(~certain.all(axis=0)):
            rows_left = (start + np.flatnonzero(~certain[:, model])).astype(np.int64)
            left.setdefault(alike.numbers[model], []).append(rows_left)
    return {number: np.concatenate(parts) for number, parts in left.items()}


@cache
def _blas() -> ThreadpoolController:
    """Return what sets the threads of numpy's matrix products; to look for the libraries takes longer than a vote."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _votes(scores: FloatArray, bounds: FloatArray) -> tuple[IntArray, Any]:
    """Return each model's label on each row, and whether no rounding could change it."""
    if scores.shape[2] == 1:
        return (scores[..., 0] > 0).astype(np.int64), np.abs(scores[..., 0]) > bounds[..., 0]
    ranked = np.sort(scores, axis=2)
    return np.argmax(scores, axis=2), ranked[..., -1] - ranked[..., -2] > 2 * bounds.max(axis=2)


def _row_norms(rows: Any) -> FloatArray:
    squares = rows.multiply(rows).sum(axis=1) if kind(rows) == "sparse" else np.sum(rows**2, axis=1)
    return np.sqrt(np.asarray(squares, dtype=np.float64).reshape(-1))


def is_plain_float_matrix(X: Any) -> bool:
    """Whether these are finite float64 rows, dense or CSR; the voters themselves read other containers and types."""
    if kind(X) == "sparse":
        return bool(X.format == "csr" and X.dtype == np.float64 and np.isfinite(X.data).all())
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype == np.float64 and bool(np.isfinite(X).all())


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
