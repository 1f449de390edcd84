r"""The votes of many linear classifiers by one matrix product, identical to their own ``predict``.

Two evaluations of a score :math:`x \cdot w + b` in different orders, as a stacked product and a classifier's own
are, differ by at most :math:`2\gamma_{d+2}(|x|\cdot|w| + |b|)`, where :math:`\gamma_n = nu/(1-nu)` and
:math:`u = 2^{-53}` (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., Sect. 3.1). By
Cauchy-Schwarz :math:`|x|\cdot|w| \le \|x\|\,\|w\|`. Where a score is farther than that from every other score it is
compared with, both evaluations vote alike; the remaining rows, ties among them, are left to the classifier itself.
So the counts do not depend on how the product was blocked, nor on which teachers stand side by side in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.data.rows import kind
from quorate.ensemble.classifier import ClassifierVoter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.ensemble.teachers import Voter
    from quorate.types import FloatArray, IntArray

_UNIT_ROUNDOFF = 2.0**-53
_SCORES_AT_ONCE = 4_000_000  # 32 MB
# Below this many voters a product saves nothing worth its care.
_FEWEST = 2


def linear_counts(voters: Sequence[Voter], X: Any, counts: IntArray, n_jobs: int = 1) -> dict[int, IntArray]:
    """Add the votes of those voters that are linear classifiers to `counts`, in place.

    Parameters
    ----------
    voters : sequence of Voter, (K,)
        Of any kind.
    X : array or CSR matrix, (n_queries, n_features)
        Other containers, and types other than float64, are left to the voters.
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
    >>> model = RidgeClassifier().fit([[-1.0], [1.0]], [0, 1])
    >>> counts = np.zeros((3, 2), dtype=np.int64)
    >>> linear_counts([ClassifierVoter(model, np.array([0, 1]))] * 5, np.array([[-2.0], [0.0], [9.0]]), counts)[0]
    array([1])
    >>> counts.tolist()
    [[5, 0], [0, 0], [0, 5]]
    """
    if not _is_plain_float_matrix(X):
        return {}
    by_codes: dict[tuple[int, ...], list[int]] = {}
    for number, voter in enumerate(voters):
        codes = _codes_if_linear(voter, X.shape[1], counts.shape[1])
        if codes is not None:
            by_codes.setdefault(codes, []).append(number)
    open_rows: dict[int, IntArray] = {}
    for codes, numbers in by_codes.items():
        if len(numbers) >= _FEWEST:
            models = [voters[number].estimator for number in numbers]  # type: ignore[attr-defined]
            left = _count_alike(models, codes, X, counts, n_jobs)
            open_rows |= dict(zip(numbers, left, strict=True))
    return open_rows


def _count_alike(models: list[Any], codes: tuple[int, ...], X: Any, counts: IntArray, n_jobs: int) -> list[IntArray]:
    """Count models that know the same classes; return the rows that each leaves open."""
    from threadpoolctl import threadpool_limits

    n_models, n_scores = len(models), 1 if len(codes) == 2 else len(codes)  # two classes have one score
    weights = np.concatenate([np.reshape(model.coef_, (n_scores, -1)) for model in models]).T
    offsets = np.concatenate([np.broadcast_to(np.ravel(model.intercept_), (n_scores,)) for model in models])
    weight_norms = np.sqrt(np.sum(weights**2, axis=0))
    # Twice γ, and twice again for the rounding of this bound itself.
    slack = 4 * (X.shape[1] + 2) * _UNIT_ROUNDOFF
    step = max(1, _SCORES_AT_ONCE // (n_models * n_scores))
    left: list[list[IntArray]] = [[] for _ in models]
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        # Overflow gives inf or NaN, which the comparisons below leave open.
        with threadpool_limits(limits=n_jobs), np.errstate(all="ignore"):
            scores = np.asarray(rows @ weights) + offsets
            bounds = slack * (np.multiply.outer(_row_norms(rows), weight_norms) + np.abs(offsets))
            votes, certain = _votes(scores.reshape(-1, n_models, n_scores), bounds.reshape(-1, n_models, n_scores))
        for label, code in enumerate(codes):
            counts[start : start + step, code] += np.count_nonzero((votes == label) & certain, axis=1)
        for model in np.flatnonzero(~certain.all(axis=0)):
            left[model].append(start + np.flatnonzero(~certain[:, model]))
    return [np.concatenate([*parts, np.empty(0, dtype=np.int64)]).astype(np.int64) for parts in left]


def _votes(scores: FloatArray, bounds: FloatArray) -> tuple[IntArray, Any]:
    """Return each model's label on each row, and whether no rounding could change it."""
    if scores.shape[2] == 1:
        return (scores[..., 0] > 0).astype(np.int64), np.abs(scores[..., 0]) > bounds[..., 0]
    ranked = np.sort(scores, axis=2)
    return np.argmax(scores, axis=2), ranked[..., -1] - ranked[..., -2] > 2 * bounds.max(axis=2)


def _row_norms(rows: Any) -> FloatArray:
    squares = rows.multiply(rows).sum(axis=1) if kind(rows) == "sparse" else np.sum(rows**2, axis=1)
    return np.sqrt(np.asarray(squares, dtype=np.float64).reshape(-1))


def _is_plain_float_matrix(X: Any) -> bool:
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
