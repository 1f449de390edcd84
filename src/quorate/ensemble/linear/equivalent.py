"""Which teachers are solved here to the optimum that scikit-learn's own solvers approach, and how.

Plain logistic regression and ridge classification, bare or at the end of a Pipeline, have one optimum each, found by
Newton's method (:mod:`quorate.ensemble.linear.newton`) or one linear system. Whatever weighs rows or classes, chooses
features, starts where it stood or stops early is fitted by the estimator itself, and so are rows that are not finite
64-bit floats, large factors, and a shard on which Newton's method finds no way on. Which, is a function of the
estimator and of that shard alone.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.data.rows import is_plain_float_matrix, kind
from quorate.deferred import linalg
from quorate.ensemble.linear.newton import InColumns, InRows, Optimum, SoftmaxInColumns, SoftmaxInRows, minimise

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray

# Solvers of LogisticRegression that leave the intercept unpenalised and stop near the optimum.
_TO_THE_OPTIMUM = ("lbfgs", "newton-cg", "newton-cholesky")
# Whoever asks for fewer iterations than these, or a larger tolerance, asks for something else than the optimum.
_FEWEST_ITERATIONS, _LARGEST_TOLERANCE = 100, 1e-4
# Multiplications of one Newton step up to which eight or so of them cost no more than an iterative solver.
_MOST_WORK = 2**25
# Cells of a sparse shard up to which a dense copy is quicker than products of sparse matrices.
_DENSE_CELLS = 2**20


def is_equivalent(estimator: Any) -> bool:
    """Tell whether an unfitted estimator is one that is solved here, bare or as the last step of a Pipeline."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import Pipeline

    # Exact types: a subclass may do otherwise.
    if type(estimator) is Pipeline:
        steps = estimator.steps
        return (
            isinstance(steps, list)
            and len(steps) > 1
            and getattr(estimator, "transform_input", None) is None
            and type(steps[-1][1]) is not Pipeline
            and is_equivalent(steps[-1][1])
        )
    if type(estimator) not in {LogisticRegression, RidgeClassifier}:
        return False
    parameters = estimator.get_params(deep=False)
    if not vars(estimator).keys() <= parameters.keys():  # it was told more than its constructor takes
        return False
    return (_is_plain_logistic if type(estimator) is LogisticRegression else _is_plain_ridge)(parameters)


def _is_plain_logistic(parameters: dict[str, Any]) -> bool:
    return (
        _positive(parameters["C"])
        and parameters["penalty"] in ("l2", "deprecated")
        and parameters["l1_ratio"] in (None, 0)
        and parameters.get("multi_class", "deprecated") in ("auto", "deprecated")  # of scikit-learn before 1.8
        and parameters["dual"] is False
        and parameters["class_weight"] is None
        and parameters["warm_start"] is False
        and isinstance(parameters["fit_intercept"], bool)
        and parameters["solver"] in _TO_THE_OPTIMUM
        and isinstance(parameters["max_iter"], int)
        and parameters["max_iter"] >= _FEWEST_ITERATIONS
        and _positive(parameters["tol"])
        and parameters["tol"] <= _LARGEST_TOLERANCE
    )


def _is_plain_ridge(parameters: dict[str, Any]) -> bool:
    return (
        _positive(parameters["alpha"])
        and parameters["class_weight"] is None
        and parameters["positive"] is False
        and isinstance(parameters["fit_intercept"], bool)
        and parameters["solver"] == "auto"
        and parameters["max_iter"] is None
    )


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def settings_of(estimator: Any) -> tuple[bool, float, bool]:
    """Return whether a bare estimator is logistic, its `C` or `alpha`, and whether it has an intercept."""
    logistic = hasattr(estimator, "C")
    return logistic, float(estimator.C if logistic else estimator.alpha), estimator.fit_intercept


def fit_to_optimum(estimator: Any, X: Any, y: IntArray) -> None:
    """Fit an estimator for which :func:`is_equivalent` holds on one shard, as its own ``fit`` but at the optimum. `y`:
    classes 0..k-1, k ≥ 2, all of which occur. Raises whatever the estimator's own ``fit`` raises.
    """
    if hasattr(estimator, "steps"):
        before = estimator[:-1]
        X = before.fit_transform(X, y)
        estimator.steps[:-1] = before.steps
        estimator = estimator.steps[-1][1]
    logistic, strength, intercept = settings_of(estimator)
    solution = optimum(X, y, strength, intercept, logistic=logistic)
    if solution is None:
        estimator.fit(X, y)
    else:
        fill(estimator, solution)


def optimum(X: Any, y: IntArray, strength: float, intercept: bool, *, logistic: bool) -> Optimum | None:
    """Return a bare estimator's optimum on one shard, by its :func:`settings_of`; None: left to its own ``fit``."""
    solution = None
    if is_plain_float_matrix(X) and X.shape[1]:
        solution = (_logistic if logistic else _ridge)(X, y, int(y.max()) + 1, strength, intercept)
    if solution is None or not (np.isfinite(solution.coef).all() and np.isfinite(solution.intercept).all()):
        return None
    return solution


def fill(estimator: Any, found: Optimum) -> None:
    """Put an optimum into a bare estimator, as if it had been fitted."""
    from sklearn.linear_model import LogisticRegression

    n_scores, estimator.n_features_in_ = found.coef.shape
    n_classes = max(2, n_scores)
    estimator.coef_, estimator.intercept_ = found.coef, found.intercept
    if type(estimator) is LogisticRegression:
        estimator.classes_, estimator.n_iter_ = np.arange(n_classes), np.array([found.n_iter], dtype=np.int32)
        return
    for name, value in _learned_by_ridge(n_classes).items():
        setattr(estimator, name, deepcopy(value))
    if n_classes == 2:
        estimator.coef_ = found.coef[0]  # the shape that it has there
    if not estimator.fit_intercept:
        estimator.intercept_ = 0.0


def is_solved(n_rows: int, n_features: int, n_classes: int, *, logistic: bool) -> bool:
    """Tell whether a shard of this shape is one that :func:`optimum` solves."""
    if logistic:
        return _by_rows(n_rows, n_features, n_classes)[1] <= _MOST_WORK
    return min(n_rows * n_features**2, n_rows**3) <= 8 * _MOST_WORK


@cache
def _learned_by_ridge(n_classes: int) -> dict[str, Any]:
    """Return what a fit leaves beside coefficients, which is a function of the classes: from a fit on made-up rows."""
    from sklearn.linear_model import RidgeClassifier

    fitted = RidgeClassifier().fit(np.arange(float(n_classes)).reshape(-1, 1), np.arange(n_classes))
    from_rows = {*fitted.get_params(deep=False), "n_features_in_", "coef_", "intercept_"}
    return {name: value for name, value in vars(fitted).items() if name not in from_rows}


def _logistic(X: Any, y: IntArray, n_classes: int, C: float, intercept: bool) -> Optimum | None:
    n, d = X.shape
    by_rows, work = _by_rows(n, d, n_classes)
    if work > _MOST_WORK:
        return None
    rows = _gram(X) if by_rows else _dense(X)
    objective: Any
    if n_classes == 2:
        objective = (InRows if by_rows else InColumns)(rows, np.where(y == 1, 1.0, -1.0), C, intercept=intercept)
    else:
        kind_of = SoftmaxInRows if by_rows else SoftmaxInColumns
        objective = kind_of(rows, y, n_classes, C, intercept=intercept)
    n_steps = minimise(objective, objective.value)
    if n_steps is None:
        return None
    coef, b = objective.solution()
    return Optimum(_of_rows(coef, X) if by_rows else coef, b, n_steps)


def _by_rows(n: int, d: int, n_classes: int) -> tuple[bool, float]:
    """Return whether a Newton step is taken in the rows, and what it costs in multiplications."""
    if n_classes == 2:
        return n <= d, n**3 / 3 if n <= d else n * d**2 + d**3 / 3
    p = n_classes * (d + 1)
    in_rows, in_columns = 2 * n_classes * n**3, n * p**2 + p**3 / 3  # twice: inverses are slower than products
    return in_rows < in_columns, min(in_rows, in_columns)


def _ridge(X: Any, y: IntArray, n_classes: int, alpha: float, intercept: bool) -> Optimum | None:
    """Solve for targets of ±1: for w where columns are few, else for w = Xᵀa with the intercept as a side condition."""
    n, d = X.shape
    if not is_solved(n, d, n_classes, logistic=False):
        return None
    targets = np.where(y[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)
    if n_classes == 2:
        targets = targets[:, 1:]
    if n <= d:
        matrix = _gram(X)
        matrix.reshape(-1)[:: n + 1] += alpha
        _, solved, failed = linalg.lapack.dposv(matrix, np.column_stack([targets, np.ones(n)]))
        if failed:
            return None
        a, of_one = solved[:, :-1], solved[:, -1]
        b = a.sum(axis=0) / of_one.sum() if intercept else np.zeros(targets.shape[1])
        return Optimum(_of_rows((a - np.outer(of_one, b)).T, X), b, 1)
    rows = _dense(X)
    centre = rows.mean(axis=0) if intercept else np.zeros(d)
    middle = targets.mean(axis=0) if intercept else np.zeros(targets.shape[1])
    rows = rows - centre
    hessian = rows.T @ rows
    hessian.reshape(-1)[:: d + 1] += alpha
    _, w, failed = linalg.lapack.dposv(hessian, rows.T @ (targets - middle))
    return None if failed else Optimum(np.ascontiguousarray(w.T), middle - centre @ w, 1)


def _dense(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if kind(X) == "sparse" else X)


def _gram(X: Any) -> FloatArray:
    """Return the inner products of the rows."""
    if kind(X) == "sparse":
        if X.shape[0] * X.shape[1] > _DENSE_CELLS:
            return np.ascontiguousarray((X @ X.T).toarray())
        X = X.toarray()
    return np.asarray(X @ X.T)


def _of_rows(weights: FloatArray, X: Any) -> FloatArray:
    """Return the combinations of the rows with these weights, ``(n_scores, n_features)``."""
    return np.ascontiguousarray((X.T @ weights.T).T if kind(X) == "sparse" else weights @ X)
