r"""Students of noisy votes: the noise is public, so a vote share can be learned as a function of the point.

The default student learns from noisy votes where they were released, and from labels elsewhere.

*The student of public coordinates*, a vote share linear in them, shrunk by the known noise, in closed form. With u the
coordinates of a point, of length one, and :math:`e_j` the effect of a direction (its mean square over the pool, in (0,
1]), the share of class c is :math:`1/C + \gamma_c^T u` with :math:`\gamma_{cj} \sim N(0, v e_j)`. Noisy shares are seen
through :math:`N(0, \tau^2)` noise of known standard deviation. With :math:`u_i \sqrt e = U S V^T` over the points that
were answered, the data enter by :math:`q_c = U^T (y_c - 1/C)` alone, v is the most likely one,

.. math:: v = \arg\max \sum_{c, j} \log N(q_{cj};\, 0,\, v s_j^2 + \tau^2),

one for all classes, and :math:`\gamma_c = \sqrt e\, V\, \frac{v s}{v s^2 + \tau^2}\, q_c`. One decomposition, and
nothing to tune: with much noise v is small, and the share is everywhere about 1/C.

Where teachers of two classes are sure, shares bend: :math:`\mathrm{logistic}(4 \gamma^T u)`, which has the same slope
at a half, with half of that variance and the most likely :math:`\gamma`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import one_of, real, truth
from quorate.data import take
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, as_numbers
from quorate.deferred import optimize, special
from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism
from quorate.stored_names import stored_as
from quorate.students.shares import (
    ProcessShares,
    TreeShares,
    VoteShares,
    check_shares,
    fit_on_vote_shares,
    fit_process_shares,
    fit_tree_shares,
    fit_vote_shares,
    logistic_of,
)
from quorate.students.student import EstimatorStudent, LabelStudent, LinearPrior, Student, StudentData
from quorate.types import FloatArray

_LOG_VARIANCES = (-14.0, 10.0)  # of γ along a direction of effect 1


def fit_linear_shares(
    u: FloatArray, shares: FloatArray, *, noise_sd: float, effects: FloatArray, bends: bool = False
) -> FloatArray:
    r"""Return γ, ``(n_classes, n_directions)``.

    `u`: the public points that were answered, ``(n_queries, n_directions)``. `shares`: ``(n_queries, n_classes)``,
    unbiased, with noise; NaN never. `noise_sd`: τ > 0. `effects`: e, ``(n_directions,)``. `bends`: whether shares of
    two classes are logistic functions. Raises InvalidParameter if `shares` has not one finite row for each point, or
    `noise_sd` is not > 0.
    """
    check_shares(u, shares)
    noise = real("noise_sd", noise_sd, above=0) ** 2
    scaled = u * np.sqrt(effects)
    weights, v = _most_likely(scaled, shares - 1 / shares.shape[1], noise)
    if bends:
        weights = _bent(scaled, shares[:, 1], weights[:, 1], variance=v / 2, noise=noise)
    return np.asarray(weights.T * np.sqrt(effects))


def fit_linear_numbers(seen: FloatArray, means: FloatArray, *, noise_sd: float, effects: FloatArray) -> FloatArray:
    r"""Return γ, ``(n_directions,)``, of a number that is linear in coordinates: least squares that knows its noise.

    `seen`: how a teacher's number follows from γ at each point that was asked, ``(n_queries, n_directions)``. `means`:
    the noisy means of the teachers' numbers, ``(n_queries,)``, where 0 is the middle of the range. `noise_sd`: τ > 0,
    the standard deviation of their noise. `effects`: e, so that :math:`\gamma_j \sim N(0, v e_j)`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(400, 2))
    >>> gamma = fit_linear_numbers(points, points @ [0.5, 0.0], noise_sd=0.01, effects=np.ones(2))
    >>> np.round(gamma, 2).tolist()
    [0.5, 0.0]
    """
    scaled = seen * np.sqrt(effects)
    weights, _ = _most_likely(scaled, means[:, None], real("noise_sd", noise_sd, above=0) ** 2)
    return np.asarray(weights[:, 0] * np.sqrt(effects))


def _most_likely(scaled: FloatArray, values: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """Return weights ``(n_directions, n_outputs)`` by the most likely variance, and that variance; `values`: less what
    is expected without weights.
    """
    left, lengths, right = np.linalg.svd(scaled, full_matrices=False)
    q = left.T @ values
    squares, of_outputs = lengths**2, np.sum(q**2, axis=1)

    def cost(log_variance: float) -> float:
        spread = np.exp(log_variance) * squares + noise
        return float(np.sum(values.shape[1] * np.log(spread) + of_outputs / spread))

    v = float(np.exp(optimize.minimize_scalar(cost, bounds=_LOG_VARIANCES, method="bounded").x))
    gain = v * lengths / (v * squares + noise)
    return np.asarray((right.T * gain) @ q), v


def _bent(scaled: FloatArray, share: FloatArray, start: FloatArray, *, variance: float, noise: float) -> FloatArray:
    """Return the most likely weights of both classes, ``(n_directions, 2)``, of shares that are logistic functions."""

    def cost(weights: FloatArray) -> tuple[float, FloatArray]:
        expected = special.expit(4 * scaled @ weights)
        residual = expected - share
        slope = 4 * scaled.T @ (residual * expected * (1 - expected)) / noise + weights / variance
        return 0.5 * float(residual @ residual / noise + weights @ weights / variance), slope

    weights = optimize.minimize(cost, start, jac=True, method="L-BFGS-B").x
    return np.column_stack([-weights, weights])


def linear_share_student(
    u: FloatArray, shares: FloatArray, prior: LinearPrior, *, noise_sd: float, classes: Any
) -> Any:
    """Return the student as a fitted logistic regression of coordinates."""
    linear = fit_linear_shares(u, shares, noise_sd=noise_sd, effects=prior.effects, bends=prior.bends)
    weights = prior.sharpness * linear
    return logistic_of(weights, np.zeros(len(weights)), classes)


SHARES = ("linear", "kernel", "gaussian-process", "trees", "smooth", "auto")
CHOOSING = ("smooth", "auto")  # by folds of the noisy votes
FOLDS = 3
ENOUGH_FOR_TREES = 500  # answers: ten leaves of the smallest size
FEW = 50  # answers below which folds tell nothing; then the model is linear

Model: TypeAlias = VoteShares | ProcessShares | TreeShares
Form: TypeAlias = tuple[PoolCoordinates, Callable[[Any, FloatArray, PoolCoordinates], Model]]


@stored_as("quorate.students.values.VoteShareStudent")
@dataclass(frozen=True)
class VoteShareStudent(EstimatorStudent):
    r"""Learn the vote shares from all noisy votes at once, and teach the classifier the whole pool by them.

    First the shares are learned as a function of the point, which averages the noise of all answers. Then every
    public point, asked or not, stands in the classifier's training set once for each class, weighted by its share.
    A classifier that takes no weights gets each point once, with the class of the largest share; so does a Pipeline
    with a step before the last that learns from labels, such as a selection of features, which no weight reaches.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier. By default the model of the shares is the student itself, as a scikit-learn
        Pipeline that ends in a logistic regression.
    shares : {"linear", "kernel", "gaussian-process", "trees", "smooth", "auto"}
        How a share depends on the point (:mod:`~quorate.students.shares`). A softmax of a linear function, or of
        features of a Gaussian kernel; a Gaussian process; boosted trees. ``"auto"`` takes the one that predicts *noisy*
        votes best in three folds, and the linear one unless another is better by a standard error: the votes are
        released, so to look again is free. Trees are tried from 500 answers on. ``"smooth"`` is the same without trees:
        it takes a tenth of the time, and what it publishes opens without a list of trusted types.
    weights : bool, default True
        Whether each point stands once for each class, weighted by its share, where the classifier takes weights.
        False gives each point once, with its largest class: for a classifier whose time grows faster than its rows.

    Raises
    ------
    InvalidParameter
        If `shares` is none of these, or `weights` no truth value; on :meth:`check` and :meth:`learn`, if no votes
        were released.

    Notes
    -----
    The noise of a share is that of :meth:`~quorate.labelling.Released.share_noise`. In the binary form one draw moves
    both shares, in opposite directions, which the softmax is told by a factor :math:`\sqrt2`.

    Examples
    --------
    >>> from quorate.labelling import Released
    >>> from quorate.mechanisms import NoisyCounts
    >>> mechanism, no = NoisyCounts(sigma=5.0, form="binary"), np.zeros(3, dtype=bool)
    >>> released = Released(np.array([-40, 3, 44]), no, no, mechanism)
    >>> X = np.array([[-2.0], [0.0], [2.0], [1.0]])
    >>> data = StudentData(pool=X, points=X, queries=np.arange(3), released=released, classes=["no", "yes"],
    ...                 n_teachers=100, seed=0)
    >>> VoteShareStudent().fit(data).predict(X).tolist()
    ['no', 'yes', 'yes', 'yes']
    """

    shares: Literal["linear", "kernel", "gaussian-process", "trees", "smooth", "auto"] = "linear"
    weights: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("shares", self.shares, SHARES)
        truth("weights", self.weights)

    @property
    def compares_models(self) -> bool:
        """Whether models of the votes are compared, which takes many fits."""
        return self.shares in CHOOSING

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that releases classes."""
        if not mechanism.releases_values:
            raise InvalidParameter(
                f"VoteShareStudent learns from noisy votes, and {type(mechanism).__name__} releases classes; choose "
                "the mechanism NoisyCounts, or the student NoiseAwareStudent"
            )

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Return the classifier, fitted on the whole pool; without any answer, the constant first class."""
        self.check(data.released.mechanism)
        if len(data.answered) == 0:
            return LabelStudent(self.learner).fit(replace(data, declined="drop"))
        points = self._points(data)
        if self.estimator is not None:
            return fit_on_vote_shares(self.estimator, data, self.model(data, points)(points), weights=self.weights)
        return self.model(data, points).classifier(data.pool, data.classes)

    def settled(self, data: StudentData) -> VoteShareStudent:
        """Return this student with the model that it would choose by these votes: others like them need not choose."""
        self.check(data.released.mechanism)
        if self.shares not in CHOOSING or len(data.answered) == 0:
            return self
        return replace(self, shares=self._choice(data, self._points(data)))  # type: ignore[arg-type]

    def model(self, data: StudentData, points: Any) -> Model:
        """Return the fitted model of the shares, which maps rows like those of `points` to ``(n, n_classes)``."""
        self.check(data.released.mechanism)
        kind = self._choice(data, points) if self.shares in CHOOSING else self.shares
        geometry, fit = self._forms(data, points)[kind]()
        return fit(*_answers(data, points), geometry)

    def _points(self, data: StudentData) -> Any:
        """Return the pool as the model of the shares sees it: where that is the student, as a student sees it."""
        return data.points if self.estimator is not None else as_numbers(data.pool).transform(data.pool)

    def _choice(self, data: StudentData, points: Any) -> str:
        """Return the model that predicts noisy votes best; the linear one where folds tell nothing."""
        X, noisy = _answers(data, points)
        if len(noisy) < FEW:
            return "linear"
        names = ["kernel", "gaussian-process"]
        if self.shares == "auto" and len(noisy) >= ENOUGH_FOR_TREES:
            names.append("trees")
        forms = self._forms(data, points)
        return best_of("linear", names, {name: forms[name]() for name in ("linear", *names)}, X, noisy)

    def _forms(self, data: StudentData, points: Any) -> dict[str, Callable[[], Form]]:
        """Return how each model measures points, and what fits it; a geometry is worked out when it is asked for."""
        noise_sd = data.released.share_noise(data.n_teachers)
        draws = math.sqrt(2) if data.released.answers.ndim == 1 else 1.0

        def softmax(X: Any, noisy: FloatArray, geometry: PoolCoordinates) -> Model:
            return fit_vote_shares(X, noisy, noise_sd=draws * noise_sd, geometry=geometry)

        def process(X: Any, noisy: FloatArray, geometry: PoolCoordinates) -> Model:
            return fit_process_shares(X, noisy, noise_sd=noise_sd, geometry=geometry)

        def trees(X: Any, noisy: FloatArray, geometry: PoolCoordinates) -> Model:
            return fit_tree_shares(X, noisy, geometry=geometry)

        return {
            "linear": lambda: (data.coordinates(points), softmax),
            "kernel": lambda: (data.kernel(points), softmax),
            "gaussian-process": lambda: (data.kernel(points), process),
            "trees": lambda: (data.coordinates(points), trees),
        }


def _answers(data: StudentData, points: Any) -> tuple[Any, FloatArray]:
    """Return the points that were answered, and their noisy shares."""
    answered = data.answered
    X = take(points, np.asarray(data.queries)[answered])
    return X, data.released.vote_shares(data.n_teachers)[answered]


def best_of(simple: str, rivals: Sequence[str], forms: Mapping[str, Form], X: Any, noisy: FloatArray) -> str:
    """Return the rival with the largest :func:`gain`, or the simple model where none has any."""
    projected: dict[PoolCoordinates, Any] = {}  # once for all folds, and for all models of one geometry

    def errors(name: str) -> FloatArray:
        geometry, fit = forms[name]
        if geometry not in projected:
            projected[geometry] = geometry.project(X)
        known = PoolCoordinates((), geometry.standard)
        return errors_by_folds(lambda rows, shares: fit(rows, shares, known), projected[geometry], noisy)

    of_simple = errors(simple)
    gains = [gain(of_simple, errors(rival)) for rival in rivals]
    best = int(np.argmax(gains))
    return rivals[best] if gains[best] > 0 else simple


def errors_by_folds(fit: Callable[[Any, FloatArray], Model], X: Any, noisy: FloatArray) -> FloatArray:
    """Return the squared error of each noisy share, predicted from the other folds; the folds are the same for all."""
    from sklearn.model_selection import KFold

    errors = np.empty(len(noisy))
    for rest, fold in KFold(FOLDS, shuffle=True, random_state=0).split(noisy):
        predicted = fit(take(X, rest), noisy[rest])(take(X, fold))
        errors[fold] = np.sum((predicted - noisy[fold]) ** 2, axis=1)
    return errors


def gain(of_simple: FloatArray, of_rival: FloatArray) -> float:
    """By how much one model predicts noisy shares better than a simpler one, less one standard error.

    Of the squared errors of both, as :func:`errors_by_folds` has them. The noise of the votes adds its variance to
    either, and so falls out of the difference.
    """
    gains = of_simple - of_rival
    return float(gains.mean() - gains.std(ddof=1) / math.sqrt(len(gains)))


@stored_as("quorate.students.answers.AutoStudent")
@dataclass(frozen=True)
class AutoStudent(EstimatorStudent):
    """Make the most of whatever was released: what a bare classifier given as ``student=`` does.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier. By default, where noisy votes were released, a share linear in public coordinates
        and shrunk by the known noise (:mod:`quorate.students.values`); where the pool has no such coordinates, the
        model of the vote shares that predicts noisy votes best, linear or curved (``shares="smooth"`` of
        :class:`VoteShareStudent`); and where no votes were released a logistic regression.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> AutoStudent(GaussianNB()).learner
    GaussianNB()
    """

    @property
    def compares_models(self) -> bool:
        """Whether models of the votes are compared, which takes many fits."""
        return self.estimator is None

    def settled(self, data: StudentData) -> EstimatorStudent:
        """Return what learns from answers like these, with the model that it would choose by them."""
        open_ = self.estimator is None and data.prior is None
        if open_ and data.released.holds_values and len(data.answered) > 0:
            return VoteShareStudent(shares="smooth").settled(data)
        return self

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Learn as :class:`VoteShareStudent` or :class:`LabelStudent` would."""
        values = data.released.holds_values and len(data.answered) > 0
        if not values:
            return LabelStudent(self.learner).fit(data)
        if self.estimator is None and data.prior is not None:
            noise = data.released.share_noise(data.n_teachers)
            return linear_share_student(*_answers(data, data.pool), data.prior, noise_sd=noise, classes=data.classes)
        if self.estimator is None:
            return VoteShareStudent(shares="smooth").fit(data)
        return VoteShareStudent(self.estimator).fit(data)


def as_student(given: Any) -> Student:
    """Return a student as it is, and a bare classifier, or None, as one that learns from whatever is released."""
    return given if isinstance(given, Student) else AutoStudent(given)
