"""From released answers to a student: the plain way, and the way that uses what noisy votes say.

Both are post-processing: a function of public points and released answers, free of charge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from quorate.arguments import one_of
from quorate.data import take
from quorate.labelling import Released
from quorate.students.declared import fit_student, takes_weights
from quorate.students.shares import fit_vote_shares
from quorate.types import FloatArray, IntArray

Declined = Literal["drop", "random"]

NO_WEIGHT = 1e-6  # a row with less than this says nothing, and costs the student time


def teach_plain(
    student: Any,
    X: Any,
    released: Released,
    classes: Sequence[Any],
    *,
    declined: Declined = "drop",
    rng: np.random.Generator,
) -> Any:
    """Fit the student on (public point, released class) (LZCW21 Alg. 3, last step).

    Parameters
    ----------
    student : estimator
        Any scikit-learn classifier.
    X : (n_queries, n_features)
        The public points that were asked, as the student sees them.
    released : Released
        Their answers.
    classes : sequence
        The declared classes.
    declined : {"drop", "random"}
        A query without an answer is left out, or gets a uniformly random class as in BTT18 Alg. 3.
    rng : numpy.random.Generator
        For the random classes and the student's own random state; no privacy rests on it.

    Returns
    -------
    estimator
        As :func:`fit_student` returns it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no, mechanism = np.zeros(3, dtype=bool), GaussianNoisyMax(sigma=5.0, form="binary")
    >>> released = Released(np.array([0, 1, 0]), np.array([False, False, True]), no, mechanism)
    >>> X = np.array([[-1.0], [1.0], [0.5]])
    >>> student = teach_plain(LogisticRegression(), X, released, ["no", "yes"], rng=np.random.default_rng(0))
    >>> student.predict(X).tolist()
    ['no', 'yes', 'yes']
    """
    one_of("declined", declined, ("drop", "random"))
    codes = released.codes
    if declined == "random":
        codes = np.where(codes >= 0, codes, rng.integers(len(classes), size=len(codes)))
    labelled = np.flatnonzero(codes >= 0)
    return fit_student(student, take(X, labelled), codes[labelled], classes, seed=int(rng.integers(2**31)))


def teach_values(
    student: Any,
    X_pool: Any,
    points: Any,
    queries: IntArray,
    released: Released,
    classes: Sequence[Any],
    *,
    n_teachers: int,
    rng: np.random.Generator,
) -> Any:
    r"""Fit the student on the whole public pool, weighted by the vote shares that the released values suggest.

    First the shares are learned as a function of the point (:func:`fit_vote_shares`), which averages the noise of all
    answers at once. Then every public point, asked or not, stands in the student's training set once for each class,
    weighted by its share. Where the student takes no weights, it gets the class with the largest share.

    Parameters
    ----------
    student : estimator
        Any scikit-learn classifier.
    X_pool : (n_public, n_features)
        The whole public pool as the student sees it.
    points : (n_public, d) array or sparse matrix
        The same rows as numbers.
    queries : IntArray
        ``(n_queries,)``, the rows that were asked.
    released : Released
        Their noisy votes. A query without an answer is left out; where there is no answer at all, the shares are
        equal.
    classes : sequence
        The declared classes.
    n_teachers : int
        K.
    rng : numpy.random.Generator
        For the student's own random state; no privacy rests on it.

    Returns
    -------
    estimator
        As :func:`fit_student` returns it.

    Raises
    ------
    InvalidParameter
        If `released` holds classes and not values, or a number is out of range.

    Notes
    -----
    The noise of a share is that of :meth:`Released.share_noise`. In the binary form one draw moves both shares, in
    opposite directions, which is told to the fit by a factor :math:`\sqrt2`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from quorate.mechanisms import NoisyCounts
    >>> mechanism, no = NoisyCounts(sigma=5.0, form="binary"), np.zeros(3, dtype=bool)
    >>> released = Released(np.array([-40, 3, 44]), no, no, mechanism)
    >>> X = np.array([[-2.0], [0.0], [2.0], [1.0]])
    >>> student = teach_values(
    ...     LogisticRegression(), X, X, np.array([0, 1, 2]), released, ["no", "yes"],
    ...     n_teachers=100, rng=np.random.default_rng(0),
    ... )
    >>> student.predict(X).tolist()
    ['no', 'yes', 'yes', 'yes']
    """
    answered = np.flatnonzero(released.answered)
    shares = released.vote_shares(n_teachers)[answered]
    per_share = math.sqrt(2) if released.answers.ndim == 1 else 1.0
    noise_sd = per_share * released.share_noise(n_teachers)
    model = fit_vote_shares(take(points, queries[answered]), shares, noise_sd=noise_sd, pool=points)
    seed = int(rng.integers(2**31))
    estimated = model(points)
    if not takes_weights(student):
        return fit_student(student, X_pool, estimated.argmax(axis=1), classes, seed=seed)
    which, codes, weights = once_per_class(estimated)
    return fit_student(student, take(X_pool, which), codes, classes, weights=weights, seed=seed)


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
