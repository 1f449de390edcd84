"""Students that label the rest of the public pool: by their own surest predictions, or from neighbour to neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quorate.ambient import own_switches, unwarned
from quorate.arguments import count, one_of, real
from quorate.data import n_rows, take
from quorate.ensemble.teachers.unfitted import may_have
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as
from quorate.students.declared import class_probabilities, fit_student, spread
from quorate.students.shares import fit_on_vote_shares
from quorate.students.student import EstimatorStudent, StudentData
from quorate.types import FloatArray


@stored_as("quorate.students.self_training.SelfTraining")
@dataclass(frozen=True)
class SelfTraining(EstimatorStudent):
    """Fit on released labels; take over the predictions that are sure enough; fit again, until none is new.

    Parameters
    ----------
    estimator : estimator, optional
        A scikit-learn classifier with ``predict_proba``; a logistic regression by default.
    threshold : float, default 0.75
        Probability in [0, 1) that a prediction must exceed to be taken for a label.
    max_iter : int, default 10
        How often at most.

    Raises
    ------
    InvalidParameter
        If the classifier has no ``predict_proba``, or a number is out of range.

    Notes
    -----
    The steps are those of scikit-learn's ``SelfTrainingClassifier``, which turns frames into arrays and takes no
    words for classes. Public points that were never asked cost nothing.

    References
    ----------
    Yarowsky (1995), Unsupervised word sense disambiguation rivaling supervised methods.

    Examples
    --------
    >>> from quorate.labelling import Released
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no, mechanism = np.zeros(2, dtype=bool), GaussianNoisyMax(sigma=5.0, form="binary")
    >>> released = Released(np.array([0, 1]), no, no, mechanism)
    >>> X = np.array([[-2.0], [-3.0], [2.0], [3.0]])
    >>> data = StudentData(pool=X, points=X, queries=np.array([0, 2]), released=released, classes=["no", "yes"],
    ...                 n_teachers=100, seed=0)
    >>> SelfTraining(threshold=0.6).fit(data).predict(X).tolist()
    ['no', 'no', 'yes', 'yes']
    """

    threshold: float = 0.75
    max_iter: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        real("threshold", self.threshold, at_least=0, below=1)
        count("max_iter", self.max_iter, at_least=1)
        if not may_have(self.learner, "predict_proba"):
            raise InvalidParameter(
                f"SelfTraining asks the student how sure it is, and {type(self.learner).__name__} has no "
                "predict_proba; choose another classifier, or SpreadLabels"
            )

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Return the classifier of the last round."""
        codes = np.full(n_rows(data.pool), -1, dtype=np.int64)
        rows, labels = data.labels()
        codes[rows] = labels
        for _ in range(self.max_iter):
            unlabelled = np.flatnonzero(codes < 0)
            if len(unlabelled) == 0 or len(np.unique(codes[codes >= 0])) < 2:
                break
            probabilities = class_probabilities(self._fitted(data, codes), take(data.pool, unlabelled), data.classes)
            sure = probabilities.max(axis=1) > self.threshold
            if not sure.any():
                break
            codes[unlabelled[sure]] = probabilities[sure].argmax(axis=1)
        return self._fitted(data, codes)

    def _fitted(self, data: StudentData, codes: Any) -> Any:
        labelled = np.flatnonzero(codes >= 0)
        rows = take(data.pool, labelled)
        return fit_student(self.learner, rows, codes[labelled], data.classes, seed=data.estimator_seed)


MAX_ITERATIONS = 1_000


@stored_as("quorate.students.spreading.SpreadLabels")
@dataclass(frozen=True)
class SpreadLabels(EstimatorStudent):
    """Spread the released labels over the graph of nearest public neighbours, and teach the whole pool.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier; a logistic regression by default.
    method : {"spreading", "propagation"}
        scikit-learn's ``LabelSpreading``, which lets neighbours overrule a label, or ``LabelPropagation``, which
        takes every label for true: for answers with next to no noise.
    neighbours : int, default 7
        Of each point in the graph, itself among them.
    alpha : float, default 0.2
        In (0, 1), for spreading: how much of a point's class is its neighbours' say, and not its own label's.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    Distances are those of :class:`~quorate.data.feature_maps.PoolCoordinates`, made from public points alone. A point
    that no label reaches is not taught.

    References
    ----------
    Zhou et al. (2004), Learning with local and global consistency; Zhu and Ghahramani (2002).

    Examples
    --------
    >>> from quorate.labelling import Released
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no, mechanism = np.zeros(2, dtype=bool), GaussianNoisyMax(sigma=5.0, form="binary")
    >>> released = Released(np.array([0, 1]), no, no, mechanism)
    >>> X = np.array([[-2.0], [-3.0], [2.0], [3.0]])
    >>> data = StudentData(pool=X, points=X, queries=np.array([0, 2]), released=released, classes=["no", "yes"],
    ...                 n_teachers=100, seed=0)
    >>> SpreadLabels(neighbours=2).fit(data).predict(X).tolist()
    ['no', 'no', 'yes', 'yes']
    """

    method: Literal["spreading", "propagation"] = "spreading"
    neighbours: int = 7
    alpha: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("method", self.method, ("spreading", "propagation"))
        count("neighbours", self.neighbours, at_least=2)
        real("alpha", self.alpha, above=0, below=1)

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Return the classifier, fitted on every point that a label has reached."""
        _, codes = data.labels()
        if len(np.unique(codes)) < 2:
            rows = data.pool[: len(codes)]
            return fit_student(self.learner, rows, codes, data.classes, seed=data.estimator_seed)
        return fit_on_vote_shares(self.learner, data, self.reached(data))

    def reached(self, data: StudentData) -> FloatArray:
        """Return what share of each class has reached each public point, ``(n_public, n_classes)``."""
        from sklearn.semi_supervised import LabelPropagation, LabelSpreading

        rows, labels = data.labels()
        codes = np.full(n_rows(data.points), -1, dtype=np.int64)
        codes[rows] = labels
        shared = {"kernel": "knn", "n_neighbors": min(self.neighbours, len(codes)), "max_iter": MAX_ITERATIONS}
        flow = LabelSpreading(alpha=self.alpha, **shared) if self.method == "spreading" else LabelPropagation(**shared)
        with unwarned():  # what has not settled yet is an estimate too
            flow.fit(data.coordinates(data.points).measured(data.points), codes)
        return spread(flow.label_distributions_, flow.classes_, range(len(data.classes)))
