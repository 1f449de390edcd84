"""Teaching any classifier what is known about every public point, by weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data import take
from quorate.students.declared import fit_student, takes_weights
from quorate.students.student_data import StudentData
from quorate.types import FloatArray, IntArray

NO_WEIGHT = 1e-6  # a row with less than this says nothing, and costs the student time


def fit_on_vote_shares(estimator: Any, data: StudentData, shares: FloatArray, *, weights: bool = True) -> Any:
    """Fit the classifier on the whole public pool, asked or not, each point once for each class.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn classifier. One of which a part would learn from labels without their weights
        (:func:`~quorate.students.declared.takes_weights`) gets each point once, with its largest class.
    data : StudentData
        Whose pool it is.
    shares : FloatArray
        ``(n_public, n_classes)``, what is believed about each point, in [0, 1]. A row of zeros is left out.
    weights : bool
        False gives each point once, with its largest class, even where the classifier takes weights.
    """
    if weights and takes_weights(estimator):
        which, codes, each = once_per_class(shares)
        told = {"weights": each}
    else:
        which = np.flatnonzero(shares.max(axis=1) > NO_WEIGHT)
        codes, told = shares[which].argmax(axis=1), {}
    rows = data.pool if len(which) == len(shares) and np.all(np.diff(which) == 1) else take(data.pool, which)
    return fit_student(estimator, rows, codes, data.classes, seed=data.estimator_seed, **told)


def once_per_class(shares: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Row numbers, class codes and weights of a training set in which each point stands once for each class.

    Examples
    --------
    >>> which, codes, weights = once_per_class(np.array([[0.25, 0.75], [1.0, 0.0]]))
    >>> which.tolist(), codes.tolist(), weights.tolist()
    ([0, 0, 1], [0, 1, 0], [0.25, 0.75, 1.0])
    """
    which, codes = np.nonzero(shares > NO_WEIGHT)
    return which, codes, shares[which, codes]
