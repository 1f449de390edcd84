"""Noise-aware hard labels: a label that noise may have changed, with a known probability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from quorate.arguments import one_of
from quorate.data import take
from quorate.data.feature_maps.pool_coordinates import as_numbers
from quorate.mechanisms import Mechanism
from quorate.stored_names import stored_as
from quorate.students.label_noise import LabelNoise, label_noise
from quorate.students.labels import LabelStudent
from quorate.students.shares import Loss, VoteShares, most_probable
from quorate.students.student import EstimatorStudent
from quorate.students.student_data import StudentData
from quorate.students.whole_pool import fit_on_vote_shares
from quorate.types import FloatArray, IntArray

STRAY = 0.01  # of the labels may be anything: what a model does not know about the shares


@stored_as("quorate.students.noisy_labels.NoiseAwareStudent")
@dataclass(frozen=True)
class NoiseAwareStudent(EstimatorStudent):
    r"""Learn the vote shares from released classes whose flip probability is known, and teach the whole pool by them.

    A class that was released says which of the votes noise has put first. How often that is not the largest is a known
    function of the vote shares (:mod:`~quorate.students.label_noise`), so shares can be learned from classes, if not as
    well as from noisy votes: where the teachers agree labels are nearly always right, where they do not they are coin
    tosses, and are taken for such.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier, taught as by :class:`VoteShareStudent`. By default the model of the shares is the
        student itself, as a scikit-learn Pipeline that ends in a logistic regression.
    shares : {"linear", "kernel"}
        How a share depends on the point: a softmax of a linear function (:mod:`~quorate.students.shares`), or of
        features of a Gaussian kernel.

    Raises
    ------
    InvalidParameter
        If `shares` is neither; on :meth:`check` and :meth:`learn`, if the mechanism's labels have no known noise.

    Notes
    -----
    What is fitted is the most probable model of :mod:`~quorate.students.shares` under the likelihood
    :math:`\prod_i (0.99\, P_{y_i}(s(x_i)) + 0.01/C)`. A query without an answer says nothing, and neither would a
    random class in its place: it is left out either way.

    References
    ----------
    Natarajan, Dhillon, Ravikumar and Tewari (2013), Learning with noisy labels; there the flip probability is one
    number, here it depends on the point.

    Examples
    --------
    >>> from quorate.labelling import Released
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> mechanism, no = GaussianNoisyMax(sigma=5.0, form="binary"), np.zeros(4, dtype=bool)
    >>> released = Released(np.array([0, 0, 1, 1]), no, no, mechanism)
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> data = StudentData(pool=X, points=X, queries=np.arange(4), released=released, classes=["no", "yes"],
    ...                 n_teachers=100, seed=0)
    >>> NoiseAwareStudent().fit(data).predict(X).tolist()
    ['no', 'no', 'yes', 'yes']
    """

    shares: Literal["linear", "kernel"] = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("shares", self.shares, ("linear", "kernel"))

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism whose labels have no known noise."""
        label_noise(mechanism, 1)

    def fit(self, data: StudentData) -> Any:
        """Return the classifier, fitted on the whole pool; without any answer, the constant first class."""
        self.check(data.released.mechanism)
        if len(data.answered) == 0:
            return LabelStudent(self.learner).fit(replace(data, declined="drop"))
        if self.estimator is not None:
            return fit_on_vote_shares(self.estimator, data, self.model(data, data.points)(data.points))
        numbers = as_numbers(data.pool).transform(data.pool)
        return self.model(data, numbers).classifier(data.pool, data.classes)

    def model(self, data: StudentData, points: Any) -> VoteShares:
        """Return the fitted model of the shares, which maps rows like those of `points` to ``(n, n_classes)``."""
        answered, n_classes = data.answered, len(data.classes)
        noise = label_noise(data.released.mechanism, data.n_teachers)
        loss = loss_of(noise, data.released.codes[answered], n_classes=n_classes)
        X = take(points, np.asarray(data.queries)[answered])
        geometry = data.coordinates(points)
        if self.shares == "kernel":
            geometry = data.kernel(points)
        return most_probable(X, loss, n_classes=n_classes, geometry=geometry)


def loss_of(noise: LabelNoise, codes: IntArray, *, n_classes: int) -> Loss:
    """Return minus the log likelihood of the labels as a function of the shares, with its slope.

    Examples
    --------
    >>> from quorate.students.label_noise import ExponentialNoise
    >>> loss = loss_of(ExponentialNoise(rate=0.05, n_teachers=100), np.array([1]), n_classes=2)
    >>> value, _ = loss(np.array([[0.4, 0.6]]))
    >>> bool(np.isclose(value, -np.log(0.99 / (1 + np.exp(-1.0)) + 0.005)))
    True
    """

    def loss(shares: FloatArray) -> tuple[float, FloatArray]:
        log_p, slopes = noise.log_likelihood(shares, codes)
        p = (1 - STRAY) * np.exp(log_p)
        likelihood = p + STRAY / n_classes
        return -float(np.log(likelihood).sum()), -slopes * (p / likelihood)[:, None]

    return loss
