r"""Teachers of a handful of rows in coordinates of length one, each solved by itself in one step.

Of two classes a teacher is a ridge regression of targets :math:`\pm1` without an intercept, :math:`w = Z^\top (ZZ^\top
+ \lambda I)^{-1} s`. Of more, its score for a class is the sum of the class's rows: with a few rows of many classes a
regression would tell nothing apart. A class without a row has a constant, drawn once by the teacher: half the typical
size of its scores times a Gumbel variable, so that such votes are spread and tell of no class. A shard of one class
votes for it where its rows point, and for another where they do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.deferred import linalg
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Voter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray

PENALTY = 0.3  # of the regression, in rows of a shard for each dimension
DITHER = 0.5  # of the constants, in typical sizes of a score


@stored_as("quorate.ensemble.linear.tiny.TinyTeacher")
@dataclass(frozen=True, slots=True)
class TinyTeacher:
    """Train a linear classifier of C ≥ 2 declared classes on a few rows ``(n_rows, n_directions)`` of length one.
    `penalty`: λ > 0, for two classes. The vote depends on the shard, the seed and these alone. An empty shard abstains.
    """

    penalty: float
    n_classes: int

    called_in_prose: ClassVar[str] = "linear"  # nobody chose it by the name of its class
    keeps_no_global_state: ClassVar[bool] = True  # it is NumPy's and SciPy's arithmetic

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        if not len(y):
            return AbstainingVoter()
        if self.n_classes == 2:
            weights, constants = ridge(X, np.where(y == 1, 1.0, -1.0), self.penalty)[None], np.zeros(1)
        else:
            weights, constants = self._sums(X, y, seed)
        return ClassifierVoter(_logistic(weights, constants, self.n_classes), np.arange(self.n_classes))

    def _sums(self, X: FloatArray, y: IntArray, seed: int) -> tuple[FloatArray, FloatArray]:
        weights = np.zeros((self.n_classes, X.shape[1]))
        np.add.at(weights, y, X)
        typical = sqrt(float(np.sum(weights**2)) / weights.size)  # of a score, where all directions are alike
        return weights, DITHER * typical * np.random.default_rng(seed).gumbel(size=self.n_classes)


@stored_as("quorate.ensemble.linear.tiny.TinyRegressor")
@dataclass(frozen=True, slots=True)
class TinyRegressor:
    r"""Train a ridge regression through the middle of a range on a few rows ``(n_rows, n_directions)``.

    `penalty`: λ > 0, :math:`w = Z^\top (ZZ^\top + \lambda I)^{-1} t` with targets t from -1 to 1. `gain`: public;
    multiplies all weights but the first, since few rows use little of the range. `grid`: steps from the middle to an
    end: labels and votes are places 0 … 2 `grid`. What comes back depends on the shard and these alone. An empty shard
    abstains.
    """

    penalty: float
    grid: int
    gain: float = 1.0

    called_in_prose: ClassVar[str] = "linear"
    keeps_no_global_state: ClassVar[bool] = True

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        del seed
        if not len(y):
            return AbstainingVoter()
        weights = ridge(X, y / self.grid - 1, self.penalty)
        weights[1:] *= self.gain
        return TinyPredictor(weights, self.grid)


@stored_as("quorate.ensemble.linear.tiny.TinyPredictor")
@dataclass(frozen=True, slots=True, eq=False)
class TinyPredictor:
    """What :class:`TinyRegressor` trains."""

    weights: FloatArray
    grid: int

    def vote(self, X: Any, /) -> IntArray:
        """Return the place of each row's number, or an abstention where there is none."""
        return places_of(X @ self.weights, self.grid)


def places_of(numbers: FloatArray, grid: int) -> IntArray:
    """Return numbers, of which -1 and 1 are the ends of a range, as places 0 … 2 `grid`; abstains for none."""
    finite = np.isfinite(numbers)
    inside = np.clip(np.where(finite, numbers, 0.0), -1.0, 1.0)
    return np.where(finite, np.rint((inside + 1) * grid).astype(np.int64), ABSTAINED)


def ridge(X: FloatArray, targets: FloatArray, penalty: float) -> FloatArray:
    """Return the weights, ``(n_directions,)``, of a ridge regression without an intercept."""
    few = len(targets) <= X.shape[1]  # the smaller system: one weight a row, or a coordinate
    matrix = X @ X.T if few else X.T @ X
    matrix.reshape(-1)[:: len(matrix) + 1] += penalty
    _, solved, failed = linalg.lapack.dposv(matrix, targets if few else X.T @ targets)
    if failed:
        raise ValueError  # as other failures; nobody is told of it
    weights = np.reshape(solved, (1, -1))
    return np.asarray((weights @ X if few else weights)[0])


def _logistic(weights: FloatArray, constants: FloatArray, n_classes: int) -> Any:
    """Return the logistic regression with these scores, as if it had been fitted: linear voters are counted as one."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.coef_, model.intercept_ = np.ascontiguousarray(weights), constants
    model.classes_, model.n_features_in_ = np.arange(n_classes), weights.shape[1]
    model.n_iter_ = np.ones(1, dtype=np.int32)
    return model
