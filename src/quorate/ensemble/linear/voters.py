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

from quorate.data.rows import is_plain_float_matrix
from quorate.deferred import sparse
from quorate.ensemble.teachers.classifier import ClassifierVoter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController

    from quorate.ensemble.teachers.teacher import Voter
    from quorate.types import BoolArray, FloatArray, IntArray

    ByteArray = NDArray[np.uint8]

_UNIT_ROUNDOFF = 2.0**-53
# Scores and what is made of them stay in a core's cache: those of so many rows of queries, of so many models together.
# Fewer rows than this waste the matrix product.
_SCORES_AT_ONCE = 2**17
_SCORES_A_ROW = 256
_FEWEST_ROWS = 32
# A length below this may come of squares that underflowed, and products with it underflow. Taken for it, the bound is
# at least 4(d + 2)·2⁻¹⁰⁵³, more than the d products and sums can lose to underflow, which is 2⁻¹⁰⁷⁵ each.
_SHORTEST = 2.0**-500
_NO_ROWS = np.empty(0, dtype=np.int64)
GROUP = 255  # voters that a byte can count


@dataclass(frozen=True, eq=False, slots=True)
class _Alike:
    """Some linear classifiers, at most as many as a byte counts, that know the same classes, side by side.

    `weights`: coefficients, the intercepts in the last row, all models' of one score side by side. `lengths`,
    `largest`: a model's longest weight vector and largest intercept, infinite for no number, which leaves every row
    open.
    """

    numbers: tuple[int, ...]
    weights: FloatArray
    lengths: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, numbers: Sequence[int], models: Sequence[Any], n_scores: int) -> _Alike:
        weights = np.stack([np.reshape(model.coef_, (n_scores, -1)) for model in models], axis=1)
        offsets = np.stack([np.broadcast_to(np.ravel(model.intercept_), (n_scores,)) for model in models], axis=1)
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.sum(weights**2, axis=2)).max(axis=0)
        both = np.concatenate([weights, offsets[:, :, np.newaxis]], axis=2)
        return cls(
            tuple(numbers),
            np.ascontiguousarray(both.reshape(n_scores * len(models), -1).T),
            _known(np.maximum(lengths, _SHORTEST)),
            _known(np.abs(offsets).max(axis=0)),
        )


@dataclass(frozen=True, eq=False, slots=True)
class LinearVoters:
    """Those of an ensemble's voters that are linear classifiers, stacked once, by the classes they know."""

    groups: Mapping[tuple[int, ...], tuple[_Alike, ...]]

    @classmethod
    def of(cls, voters: Sequence[Voter], width: int, n_classes: int) -> LinearVoters:
        """Stack the linear classifiers of `width` features among `voters`, of any kind."""
        by_codes: dict[tuple[int, ...], list[int]] = {}
        for number, voter in enumerate(voters):
            codes = _codes_if_linear(voter, width, n_classes)
            if codes is not None:
                by_codes.setdefault(codes, []).append(number)
        groups = {}
        for codes, numbers in by_codes.items():  # one alone too: what it takes would tell of a rare class
            n_scores = 1 if len(codes) == 2 else len(codes)
            at_once = min(GROUP, max(1, _SCORES_A_ROW // n_scores))
            parts = [numbers[start : start + at_once] for start in range(0, len(numbers), at_once)]
            groups[codes] = tuple(
                _Alike.of(part, [voters[number].estimator for number in part], n_scores)  # type: ignore[attr-defined]
                for part in parts
            )
        return cls(groups)

    @property
    def n_bytes(self) -> int:
        """Memory that the stacked coefficients take."""
        return sum(alike.weights.nbytes for group in self.groups.values() for alike in group)

    def count(self, X: Any, counts: IntArray, n_jobs: int = 1) -> dict[int, IntArray]:
        """Add votes on plain float rows to `counts`, in place; return for each counted voter the rows still open."""
        open_rows: dict[int, list[IntArray]] = {}
        # Overflow gives inf or NaN, which the comparisons leave open.
        with blas().limit(limits=n_jobs), np.errstate(all="ignore"):
            for codes, group in self.groups.items():
                open_rows |= {number: [_NO_ROWS] for alike in group for number in alike.numbers}
                step = max(_FEWEST_ROWS, n_jobs * _SCORES_AT_ONCE // group[0].weights.shape[1])
                for start in range(0, X.shape[0], step):
                    rows = slice(start, start + step)
                    counts[rows, list(codes)] += _count_rows(group, X[rows], len(codes), start, open_rows).T
        return {number: np.concatenate(parts) for number, parts in open_rows.items()}


def _count_rows(
    group: tuple[_Alike, ...], rows: Any, n_codes: int, start: int, open_rows: dict[int, list[IntArray]]
) -> IntArray:
    """Count models that know the same classes, ``(n_codes, n_rows)``, and add to the rows that each leaves open."""
    counts = np.zeros((n_codes, rows.shape[0]), dtype=np.int64)
    norms = np.maximum(_row_norms(rows), _SHORTEST)
    with_one = None if _is_sparse(rows) else _with_one(rows)
    for alike in group:
        scores = _scores(alike, rows, with_one)
        votes = _votes_by_sign if scores.shape[0] == 1 else _votes_by_largest
        # The longest weights give each row a bound that is at least every model's own, since rounding is monotone.
        # Where it leaves a vote open, which is hardly ever, each model's own is asked.
        of_some, decided = votes(scores, _bounds(rows, norms, alike.lengths.max(), alike.largest.max()))
        if not decided.all():
            at = np.flatnonzero(~decided.all(axis=0))
            own = _bounds(rows, norms[at], alike.lengths[:, np.newaxis], alike.largest[:, np.newaxis])
            of_some[:, at], decided = votes(scores[:, :, at], own)
            for model in np.flatnonzero(~decided.all(axis=1)):
                open_rows[alike.numbers[model]].append((start + at[~decided[model]]).astype(np.int64))
        counts += of_some
    return counts


def _with_one(rows: FloatArray) -> FloatArray:
    """Return the rows with a last column of ones, which the intercepts are multiplied with."""
    wider = np.empty((rows.shape[0], rows.shape[1] + 1))
    wider[:, :-1], wider[:, -1] = rows, 1
    return wider


def _scores(alike: _Alike, rows: Any, with_one: FloatArray | None) -> FloatArray:
    """Return every model's scores ``(n_scores, M, n_rows)``: rows last, so that sums over models go side by side."""
    if with_one is None:
        scores = np.asarray(rows @ alike.weights[:-1])
        scores += alike.weights[-1]
        scores = np.ascontiguousarray(scores.T)  # which costs less than sums across what lies apart
    else:
        scores = alike.weights.T @ with_one.T
    return scores.reshape(-1, len(alike.numbers), rows.shape[0])


def _bounds(rows: Any, norms: FloatArray, lengths: Any, largest: Any) -> FloatArray:
    """How far two evaluations of one score may lie apart, at most: for each row, and for each length of weights."""
    # Twice γ, and twice again for the rounding of this bound itself and of what it is taken from.
    slack = 4 * (_most_terms(rows) + 2) * _UNIT_ROUNDOFF
    return np.asarray((norms * lengths + largest) * slack)


def _most_terms(rows: Any) -> int:
    """Return how many products a score adds up, at most: more than there are columns, where one has several cells."""
    n_columns = int(rows.shape[1])
    if not _is_sparse(rows) or rows.has_canonical_format:
        return n_columns
    return max(n_columns, int(np.diff(rows.indptr).max(initial=0)))


def _known(numbers: FloatArray) -> FloatArray:
    return np.where(np.isnan(numbers), np.inf, numbers)


@cache
def blas() -> ThreadpoolController:
    """Return what sets the threads of numpy's matrix products; to look for the libraries takes longer than a vote."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _votes_by_sign(scores: FloatArray, bounds: FloatArray) -> tuple[ByteArray, BoolArray]:
    """Count the votes of one score ``(1, M, n_rows)``, where no rounding could change its sign. `bounds`: for each row,
    or model and row. Returns ``(2, n_rows)`` votes and what is decided, in the shape of bounds.
    """
    second = scores[0] > bounds
    first = scores[0] < -bounds
    votes = np.stack([_sum_of(first, axis=0), _sum_of(second, axis=0)])
    if bounds.ndim == 2:
        return votes, first | second
    return votes, (np.add.reduce(votes, axis=0) == scores.shape[1])[np.newaxis]


def _votes_by_largest(scores: FloatArray, bounds: FloatArray) -> tuple[ByteArray, BoolArray]:
    """Count the votes ``(C, n_rows)`` of the largest of C scores ``(C, M, n_rows)``, where no other one is within twice
    the bound; else as :func:`_votes_by_sign`.
    """
    largest = scores.max(axis=0)
    near = scores >= largest - 2 * bounds
    if bounds.ndim == 2:
        decided = (np.count_nonzero(near, axis=0) == 1) & np.isfinite(largest)
        return _sum_of(near & decided, axis=1), decided
    votes = _sum_of(near, axis=1)
    # A finite largest score is near itself, as no bound is NaN; so with as many near ones as models each has one alone.
    each_has_one = np.add.reduce(votes, axis=0) == scores.shape[1]
    return votes, (each_has_one & np.isfinite(largest).all(axis=0))[np.newaxis]


def _sum_of(votes: BoolArray, *, axis: int) -> ByteArray:
    """Count over the models, of which there are no more than a byte counts."""
    return np.asarray(np.add.reduce(votes, axis=axis, dtype=np.uint8))


def _is_sparse(rows: Any) -> bool:
    return bool(sparse.issparse(rows))


def _row_norms(rows: Any) -> FloatArray:
    if _is_sparse(rows):
        if not rows.has_canonical_format:  # cells of one column that cancel are added up by the product all the same
            rows = rows.copy()
            rows.data = np.abs(rows.data)  # abs(rows) adds them up first
            rows.sum_duplicates()
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).reshape(-1)
    else:
        squares = np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(squares)


def votes_of_linear(voter: Voter, X: Any, n_classes: int) -> IntArray | None:
    """Return the votes of one linear classifier on plain float rows; None of another voter, or on other rows. The same
    product and sum as in ``predict``, most of whose time for some hundred rows goes into looking at them.
    """
    if not is_plain_float_matrix(X) or (codes := _codes_if_linear(voter, X.shape[1], n_classes)) is None:
        return None
    model = voter.estimator  # type: ignore[attr-defined]
    scores = X @ model.coef_.T + model.intercept_
    if len(codes) > 2:
        return np.asarray(voter.codes[scores.argmax(axis=1)])  # type: ignore[attr-defined]
    return np.asarray(voter.codes[(scores.reshape(-1) > 0).astype(np.int64)])  # type: ignore[attr-defined]


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
