r"""Noise-aware hard labels: a label that noise may have changed, with a known probability.

The noise is public, so how likely each class is to be released is a known function of the vote shares. Where K teachers
vote with shares s, a mechanism with noise of distribution F on every count releases class c with probability

.. math:: P_c(s) = \mathbf{E}_T \prod_{c' \ne c} F\!\left(K (s_c - s_{c'}) \pm \tfrac12 + T\right), \qquad T \sim F,

with :math:`+\tfrac12` where c wins ties against c' (the lower index does) and :math:`-\tfrac12` where it does not:
the noise is an integer. The expectation is one sum over a grid of T. On a half-lead,

.. math:: P_1(s) = \Phi\left((K s_1 - \lfloor K/2 \rfloor - \tfrac12)/\sigma\right).

F is continuous here: against integer noise each factor is right to :math:`0.011/\sigma^2` (Gaussian) or
:math:`0.07/b^2` (Laplace of scale b). Nothing looks at votes: s is what a model believes, and not what was counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import one_of
from quorate.data import take
from quorate.data.feature_maps.pool_coordinates import as_numbers
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism
from quorate.stored_names import stored_as
from quorate.students.shares import Loss, VoteShares, fit_on_vote_shares, most_probable
from quorate.students.student import EstimatorStudent, LabelStudent, StudentData
from quorate.types import FloatArray, IntArray

BLOCK = 2_000  # labels whose grid is held at once

LogDistribution = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class LabelNoise(Protocol):
    """A known probability of every label."""

    def log_likelihood(self, shares: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return log P of each label ``(n,)`` given shares ``(n, n_classes)``, and its slope ``(n, n_classes)``."""


@dataclass(frozen=True, slots=True)
class HalfLeadNoise:
    """Gaussian noise on the half-lead of class 1 of two."""

    sigma: float
    n_teachers: int

    def log_likelihood(self, shares: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """See :class:`LabelNoise`."""
        sign = np.where(codes == 1, 1.0, -1.0)
        lead = sign * (self.n_teachers * shares[:, 1] - self.n_teachers // 2 - 0.5) / self.sigma
        log_p, slope = log_normal(lead)
        return log_p, np.column_stack([np.zeros_like(slope), sign * slope * self.n_teachers / self.sigma])


@dataclass(frozen=True, slots=True, eq=False)
class CountNoise:
    """Independent noise on every count; the largest is released.

    `n_teachers`: k. `scale`: of the noise, in votes. `log_distribution`: log F at scale 1, and its slope. `nodes`,
    `log_weights`: ``(n_nodes,)``, values of T at scale 1 and the logarithm of their probabilities.
    """

    n_teachers: int
    scale: float
    log_distribution: LogDistribution
    nodes: FloatArray
    log_weights: FloatArray

    def log_likelihood(self, shares: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """See :class:`LabelNoise`."""
        log_p, slopes = np.empty(len(codes)), np.zeros(shares.shape)
        for start in range(0, len(codes), BLOCK):
            block = slice(start, start + BLOCK)
            log_p[block], slopes[block] = self._block(shares[block], codes[block])
        return log_p, slopes

    def _block(self, shares: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        rows, n_classes = np.arange(len(codes)), shares.shape[1]
        ties = np.where(np.arange(n_classes) > codes[:, None], 0.5, -0.5)
        lead = (self.n_teachers * (shares[rows, codes][:, None] - shares) + ties) / self.scale
        log_f, hazard = self.log_distribution(lead[:, :, None] + self.nodes)
        log_f[rows, codes], hazard[rows, codes] = 0.0, 0.0
        log_terms = log_f.sum(axis=1) + self.log_weights
        top = log_terms.max(axis=1, keepdims=True)
        terms = np.exp(log_terms - top)
        total = terms.sum(axis=1)
        slopes = -np.einsum("nct,nt->nc", hazard, terms / total[:, None]) * (self.n_teachers / self.scale)
        slopes[rows, codes] = -slopes.sum(axis=1)
        return np.log(total) + top[:, 0], slopes


@dataclass(frozen=True, slots=True)
class ExponentialNoise:
    r"""The exponential mechanism: :math:`P_c \propto e^{r K s_c}`."""

    rate: float
    n_teachers: int

    def log_likelihood(self, shares: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """See :class:`LabelNoise`."""
        steep = self.rate * self.n_teachers
        log_all = special.log_softmax(steep * shares, axis=1)
        slopes = -steep * np.exp(log_all)
        slopes[np.arange(len(codes)), codes] += steep
        return log_all[np.arange(len(codes)), codes], slopes


def label_noise(mechanism: Mechanism, n_teachers: int) -> LabelNoise:
    """Return what is known about the labels of `mechanism`.

    Raises InvalidParameter if the labels are exact, or how likely each is has no such form.
    """
    noise = mechanism.answer_noise
    if noise is not None and mechanism.takes == "votes":  # a label that a student had confirmed has none
        if noise.distribution == "gumbel":
            return ExponentialNoise(1 / noise.scale, n_teachers)
        if noise.on == "half-lead":
            return HalfLeadNoise(noise.scale, n_teachers)
        grid = (log_normal, *_normal_grid()) if noise.distribution == "gaussian" else (log_laplace, *_laplace_grid())
        return CountNoise(n_teachers, noise.scale, *grid)
    raise InvalidParameter(
        f"NoiseAwareStudent has to know how often noise changes a label, and has no formula for "
        f"{type(mechanism).__name__}; choose GaussianNoisyMax, or the student LabelStudent"
    )


def log_normal(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log Φ and its slope, the inverse Mills ratio."""
    log_f: FloatArray = special.log_ndtr(x)
    return log_f, np.exp(-0.5 * x**2 - 0.5 * math.log(2 * math.pi) - log_f)


def log_laplace(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log F of the Laplace distribution of scale 1, and its slope."""
    tail = 0.5 * np.exp(-np.abs(x))
    below = x < 0
    return np.where(below, x - math.log(2), np.log1p(-tail)), np.where(below, 1.0, tail / (1 - tail))


def _normal_grid() -> tuple[FloatArray, FloatArray]:
    """The trapezoidal rule, which for a smooth function with Gaussian tails converges faster than any power."""
    nodes = np.arange(-16, 17) / 2.0
    return nodes, -0.5 * nodes**2 - 0.5 * math.log(2 * math.pi) + math.log(0.5)


def _laplace_grid() -> tuple[FloatArray, FloatArray]:
    """Simpson's rule on either side of the density's kink."""
    step, half = 0.25, 60
    nodes = np.linspace(-step * half, step * half, 2 * half + 1)
    side = np.tile([4.0, 2.0], half // 2)[: half - 1]
    simpson = np.concatenate([[1.0], side, [2.0], side, [1.0]]) * step / 3
    return nodes, np.log(0.5 * simpson) - np.abs(nodes)


STRAY = 0.01  # of the labels may be anything: what a model does not know about the shares


@stored_as("quorate.students.noisy_labels.NoiseAwareStudent")
@dataclass(frozen=True)
class NoiseAwareStudent(EstimatorStudent):
    r"""Learn the vote shares from released classes whose flip probability is known, and teach the whole pool by them.

    A class that was released says which of the votes noise has put first. How often that is not the largest is a known
    function of the vote shares (:func:`label_noise`), so shares can be learned from classes, if not as well as from
    noisy votes: where the teachers agree labels are nearly always right, where they do not they are coin tosses, and
    are taken for such.

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

    @own_switches()
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
    """Return minus the log likelihood of the labels as a function of the shares, with its slope."""

    def loss(shares: FloatArray) -> tuple[float, FloatArray]:
        log_p, slopes = noise.log_likelihood(shares, codes)
        p = (1 - STRAY) * np.exp(log_p)
        likelihood = p + STRAY / n_classes
        return -float(np.log(likelihood).sum()), -slopes * (p / likelihood)[:, None]

    return loss
