"""Label propagation and spreading: released labels flow to their neighbours in the public pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quorate.ambient import unwarned
from quorate.arguments import count, one_of, real
from quorate.data import n_rows
from quorate.stored_names import stored_as
from quorate.students.declared import fit_student, spread
from quorate.students.student import EstimatorStudent
from quorate.students.student_data import StudentData
from quorate.students.whole_pool import fit_on_vote_shares
from quorate.types import FloatArray

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
