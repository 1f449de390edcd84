r"""On-average stability of a learner: how far one exchanged row moves its prediction, on average (BTT18 Def. 5.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.arguments import count
from quorate.data.rows import n_rows, take
from quorate.ensemble.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers import ConstantVoter, Voter
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class AverageStability:
    r"""An estimate of :math:`\lambda = E\,|h_S(x) - h_{S^{(i)}}(x)|`.

    Attributes
    ----------
    mean : float
        In [0, 1]; of the score for class 1 with two classes, else half the total change of all scores.
    standard_error : float
        Of the mean, over the exchanges tried.
    """

    mean: float
    standard_error: float


def average_stability(
    teacher: ClassifierTeacher,
    X: Any,
    y_codes: IntArray,
    points: Any,
    *,
    n_rows_each: int,
    n_classes: int,
    exchanges: int = 30,
    rng: np.random.Generator,
) -> Secret[AverageStability]:
    r"""Estimate on-average stability by training again with one row exchanged.

    Parameters
    ----------
    teacher : ClassifierTeacher
        What is trained, with the same seed before and after an exchange.
    X : (n_rows, n_features)
        Rows to draw from: private ones, whence the Secret, or public or synthetic ones.
    y_codes : IntArray
        ``(n_rows,)`` class codes.
    points : (n_points, n_features)
        Where predictions are compared; the mean over them is taken.
    n_rows_each : int
        Rows of one shard, ≥ 1 and less than those of `X`.
    n_classes : int
        C ≥ 2.
    exchanges : int
        Pairs of trainings, ≥ 2.
    rng : numpy.random.Generator
        Draws shards, the row that goes and the row that comes; no privacy rests on it.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    A model without ``predict_proba`` is compared by its votes. A model that cannot be trained has equal scores.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> found = average_stability(
    ...     ClassifierTeacher(LogisticRegression()), X, y, X[:50], n_rows_each=100, n_classes=2, rng=rng
    ... )
    >>> found.reveal().mean < 0.05
    True
    """
    exchanges = count("exchanges", exchanges, at_least=2)
    count("n_classes", n_classes, at_least=2)
    if not count("n_rows_each", n_rows_each, at_least=1) < n_rows(X):
        raise InvalidParameter("n_rows_each must be less than the number of rows, so that one can be exchanged")
    moved = np.empty(exchanges)
    for each in range(exchanges):
        drawn = rng.permutation(n_rows(X))[: n_rows_each + 1]
        before, after = drawn[:-1], drawn[:-1].copy()
        after[rng.integers(n_rows_each)] = drawn[-1]
        seed = int(rng.integers(2**63))
        scores = [
            class_scores(teacher.train(take(X, rows), y_codes[rows], seed), points, n_classes)
            for rows in (before, after)
        ]
        moved[each] = np.abs(scores[0] - scores[1]).sum(axis=1).mean() / 2
    return Secret(AverageStability(float(moved.mean()), float(moved.std(ddof=1) / math.sqrt(exchanges))))


def class_scores(voter: Voter, points: Any, n_classes: int) -> FloatArray:
    """Return a voter's probabilities ``(n_points, n_classes)``; its votes where it has none, 1/C where it abstains."""
    scores = np.full((n_rows(points), n_classes), 1 / n_classes)
    if isinstance(voter, ClassifierVoter) and hasattr(voter.estimator, "predict_proba"):
        scores[:] = 0.0
        scores[:, voter.codes] = voter.estimator.predict_proba(points)
        return scores
    if isinstance(voter, ClassifierVoter | ConstantVoter):
        votes = voter.vote(points)
        voted = votes >= 0
        scores[voted] = np.eye(n_classes)[votes[voted]]
    return scores
