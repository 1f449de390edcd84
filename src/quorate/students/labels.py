"""The plain student: a classifier fitted on released labels (LZCW21 Alg. 3, last step)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.data import take
from quorate.stored_names import stored_as
from quorate.students.declared import fit_student
from quorate.students.student import EstimatorStudent
from quorate.students.student_data import StudentData


@stored_as("quorate.students.labels.LabelStudent")
@dataclass(frozen=True)
class LabelStudent(EstimatorStudent):
    """Fit the classifier on the points that got a label.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier; a logistic regression by default.

    Notes
    -----
    Noisy votes are read as the class that they favour. What becomes of a query without an answer, the data says.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang, 2021), Algorithm 3; BTT18 (Bassily, Thakkar, Thakurta, 2018), Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.labelling import Released
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no, mechanism = np.zeros(3, dtype=bool), GaussianNoisyMax(sigma=5.0, form="binary")
    >>> released = Released(np.array([0, 1, 0]), np.array([False, False, True]), no, mechanism)
    >>> X = np.array([[-1.0], [1.0], [0.5]])
    >>> data = StudentData(pool=X, points=X, queries=np.arange(3), released=released, classes=["no", "yes"],
    ...                 n_teachers=100, seed=0)
    >>> LabelStudent().fit(data).predict(X).tolist()
    ['no', 'yes', 'yes']
    """

    def fit(self, data: StudentData) -> Any:
        """Return the fitted classifier; its ``classes_`` are those that got a label, a constant where one alone did."""
        rows, codes = data.labels()
        return fit_student(self.learner, take(data.pool, rows), codes, data.classes, seed=data.estimator_seed)
