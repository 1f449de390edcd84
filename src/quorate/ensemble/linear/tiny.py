r"""Teachers of a handful of rows in coordinates of length one, each solved by itself in one step.

Of two classes a teacher is a ridge regression of targets :math:`\pm1` without an intercept,
:math:`w = Z^\top (ZZ^\top + \lambda I)^{-1} s`, one system of as many equations as the shard has rows. Of more, its
score for a class is the sum of the class's rows, which needs no system: with a few rows of many classes there is
nothing that a regression would tell apart. A class without a row has no score, so that each has a constant beside it,
drawn once by the teacher: half the typical size of its scores times a Gumbel variable. Votes for classes that a shard
knows nothing of are spread that way, and tell of no class.

A shard of one class is no special case: it votes for that class where its rows point, and for another where they do
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.deferred import linalg
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.teacher import AbstainingVoter, Voter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray

PENALTY = 0.3  # of the regression, in rows of a shard for each dimension
DITHER = 0.5  # of the constants, in typical sizes of a score


@stored_as("quorate.ensemble.linear.tiny.TinyTeacher")
@dataclass(frozen=True, slots=True)
class TinyTeacher:
    """Train a linear classifier of all declared classes on a few rows ``(n_rows, n_directions)`` of length one.

    Parameters
    ----------
    penalty : float
        λ > 0 of the regression, for two classes.
    n_classes : int
        C >= 2.

    Notes
    -----
    Privacy: what comes back depends on the shard, the seed and the parameters alone. An empty shard abstains.

    Examples
    --------
    >>> voter = TinyTeacher(penalty=0.1, n_classes=2).train(np.eye(2), np.array([1, 0]), 0)
    >>> voter.vote(np.array([[0.8, 0.6], [0.6, 0.8]]))
    array([1, 0])
    """

    penalty: float
    n_classes: int

    called_in_prose: ClassVar[str] = "linear"  # nobody chose it by the name of its class

    @property
    def keeps_no_global_state(self) -> bool:
        """Always: it is NumPy's and SciPy's arithmetic."""
        return True

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        if not len(y):
            return AbstainingVoter()
        weights, constants = self._regression(X, y) if self.n_classes == 2 else self._sums(X, y, seed)
        return ClassifierVoter(_logistic(weights, constants, self.n_classes), np.arange(self.n_classes))

    def _regression(self, X: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        signs = np.where(y == 1, 1.0, -1.0)
        few = len(y) <= X.shape[1]  # of n rows and d coordinates the smaller system: one weight a row, or a coordinate
        matrix = X @ X.T if few else X.T @ X
        matrix.reshape(-1)[:: len(matrix) + 1] += self.penalty
        _, solved, failed = linalg.lapack.dposv(matrix, signs if few else X.T @ signs)
        if failed:
            raise ValueError  # as other failures; nobody is told of it
        weights = np.reshape(solved, (1, -1))
        return weights @ X if few else weights, np.zeros(1)

    def _sums(self, X: FloatArray, y: IntArray, seed: int) -> tuple[FloatArray, FloatArray]:
        weights = np.zeros((self.n_classes, X.shape[1]))
        np.add.at(weights, y, X)
        typical = sqrt(float(np.sum(weights**2)) / weights.size)  # of a score, where all directions are alike
        return weights, DITHER * typical * np.random.default_rng(seed).gumbel(size=self.n_classes)


def _logistic(weights: FloatArray, constants: FloatArray, n_classes: int) -> Any:
    """Return the logistic regression with these scores, as if it had been fitted: linear voters are counted as one."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.coef_, model.intercept_ = np.ascontiguousarray(weights), constants
    model.classes_, model.n_features_in_ = np.arange(n_classes), weights.shape[1]
    model.n_iter_ = np.ones(1, dtype=np.int32)
    return model
