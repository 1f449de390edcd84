"""Teachers that vote for class 1 as often, on the public pool, as their own shard holds it.

Where classes are unequal, strongly regularised teachers of few rows all vote for the larger class everywhere, and no
ensemble can undo that. Each still sees its shard, its seed and public rows alone, so the sensitivity of the votes is
what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.data.rows import n_rows
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, ConstantVoter, Voter, by_halves
from quorate.ensemble.teachers.unfitted import may_have
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.types import FloatArray, IntArray


@stored_as("quorate.ensemble.prior_matching.PriorMatchingTeacher")
@dataclass(frozen=True, eq=False)
class PriorMatchingTeacher:
    """Train a classifier on a shard of two classes, then let its votes on the pool match the shard's base rate.

    `classifier`: a ClassifierTeacher, whose estimator has ``decision_function`` or ``predict_proba``, or a TinyTeacher.
    `pool`: public points ``(n_public, n_features)``, at least one, as the teachers see them. InvalidParameter
    otherwise.

    The threshold lies halfway between the scores of two neighbouring pool points, so that the number of points above it
    is the base rate times the pool, to the nearest whole number; of points with one and the same score either all are
    above or none.
    """

    classifier: ClassifierTeacher | TinyTeacher
    pool: Any = field(repr=False)

    def __post_init__(self) -> None:
        estimator = getattr(self.classifier, "estimator", None)  # a tiny teacher has scores
        scored = estimator is None or may_have(estimator, "decision_function") or may_have(estimator, "predict_proba")
        if not scored:
            raise InvalidParameter(
                f"prior matching needs scores, and the teacher ({type(estimator).__name__}) has neither "
                "decision_function nor predict_proba; choose another teacher, or leave prior matching out"
            )
        if not n_rows(self.pool):
            raise InvalidParameter("prior matching needs public points; give a pool with at least one")

    @property
    def keeps_no_global_state(self) -> bool:
        """As for the classifier alone."""
        return self.classifier.keeps_no_global_state

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        voter = self.classifier.train(X, y, seed)
        if isinstance(voter, AbstainingVoter | ConstantVoter):
            return voter
        assert isinstance(voter, ClassifierVoter)  # noqa: S101 - what a classifier's teacher gives otherwise
        try:
            scores = positive_scores(voter.estimator, self.pool)
            if scores.shape != (n_rows(self.pool),):
                return AbstainingVoter()
            threshold = matching_threshold(scores, float(np.mean(y == voter.codes[1])))
        except MemoryError:
            raise  # as in the classifier's own training
        except Exception:  # noqa: BLE001 - to stop, or to say why, would be an output that depends on private rows
            return AbstainingVoter()
        if not isinstance(self.classifier, TinyTeacher):
            return MatchedVoter(voter.estimator, voter.codes, threshold)
        if np.isinf(threshold):
            return ConstantVoter(int(threshold < 0))
        voter.estimator.intercept_ = voter.estimator.intercept_ - threshold  # it is counted with the other linear ones
        return voter


@stored_as("quorate.ensemble.prior_matching.MatchedVoter")
@dataclass(frozen=True, eq=False)
class MatchedVoter:
    """A classifier fitted on 0 and 1, their codes ``(2,)``, and the score above which it votes for the second."""

    estimator: Any = field(repr=False)
    codes: IntArray = field(repr=False)
    threshold: float = field(repr=False)

    @property
    def keeps_no_global_state(self) -> bool:
        """As for the classifier alone."""
        return ClassifierVoter(self.estimator, self.codes).keeps_no_global_state

    def vote(self, X: Any, /) -> IntArray:
        """Return one class code per row; -1 wherever the classifier fails or gives no number."""
        votes: IntArray = by_halves(self._scored, X, lambda n: np.full(n, ABSTAINED, dtype=np.int64))
        return votes

    def _scored(self, X: Any) -> IntArray:
        votes = np.full(n_rows(X), ABSTAINED, dtype=np.int64)
        scores = positive_scores(self.estimator, X)
        if scores.shape != votes.shape:
            raise ValueError  # as other failures; nobody is told of it
        known = ~np.isnan(scores)
        votes[known] = self.codes[(scores[known] > self.threshold).astype(np.int64)]
        return votes


def positive_scores(estimator: Any, X: Any) -> FloatArray:
    """Return ``(n_rows,)`` scores that grow with the second class."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    return np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1]


def matching_threshold(scores: FloatArray, base_rate: float) -> float:
    """Return the threshold above which a share `base_rate` of the scores lies, to the nearest number of scores."""
    above = round(base_rate * len(scores))
    if above == 0:
        return float("inf")
    if above == len(scores):
        return float("-inf")
    ordered = np.sort(scores)
    low, high = ordered[-above - 1], ordered[-above]
    # Halfway, but never so that rounding lifts it to the upper one; equal scores stay below together.
    return float(min(low + (high - low) / 2, np.nextafter(high, -np.inf))) if low < high else float(high)
