"""Self-training: a student that labels the rest of the public pool itself, surest points first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.arguments import count, real
from quorate.data import n_rows, take
from quorate.ensemble.unfitted import may_have
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as
from quorate.students.declared import class_probabilities, fit_student
from quorate.students.student import EstimatorStudent
from quorate.students.student_data import StudentData


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
