"""What a student is, what it may see, and the plain one: a classifier fitted on released labels (LZCW21 Alg. 3).

A student makes a classifier of :class:`StudentData`: public rows, released answers, and public facts about how they
were released. How models of vote shares measure one pool is worked out once for all students of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import count, one_of
from quorate.data import n_rows, take
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.data.rows import kind
from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.mechanisms import Mechanism
from quorate.stored_names import stored_as
from quorate.students.declared import fit_student
from quorate.types import FloatArray, IntArray

#: A query that was declined is left out, or gets a uniformly random class (BTT18 Alg. 3).
Declined: TypeAlias = Literal["drop", "random"]


@dataclass(slots=True, eq=False)
class SharedCoordinates:
    """Coordinates of a pool, and those of a kernel, as they were read off before.

    A plan fits dozens of students of one pool; a run fits one, and finds nothing here.
    """

    _known: dict[tuple[str, bool, bytes], PoolCoordinates] = field(default_factory=dict, repr=False)

    def of(self, points: Any, *, one_unit: bool = False) -> PoolCoordinates:
        """Return :meth:`~quorate.data.feature_maps.pool_coordinates.PoolCoordinates.of` the pool."""
        key = ("linear", one_unit, _digest(points))
        if key not in self._known:
            self._known[key] = PoolCoordinates.of(points, one_unit=one_unit)
        return self._known[key]

    def kernel(self, points: Any, *, one_unit: bool = False) -> PoolCoordinates:
        """Return the geometry of a Gaussian kernel of these coordinates."""
        key = ("kernel", one_unit, _digest(points))
        if key not in self._known:
            self._known[key] = self.of(points, one_unit=one_unit).kernel(points)
        return self._known[key]


def _digest(points: Any) -> bytes:
    """Hash what the coordinates are a function of: all numbers of the pool, their type and their places."""
    sparse = kind(points) == "sparse"
    parts = (points.tocsr().data, points.tocsr().indices, points.tocsr().indptr) if sparse else (np.asarray(points),)
    hashed = blake2b(repr((sparse, points.shape, str(points.dtype))).encode(), digest_size=16)
    for part in parts:
        hashed.update(np.ascontiguousarray(part).tobytes())
    return hashed.digest()


@dataclass(frozen=True, slots=True, eq=False)
class LinearPrior:
    """What is known of vote shares in coordinates of length one, before any answer; public.

    `effects`: e, the mean square of each coordinate over the pool, ``(n_directions,)``. `sharpness`: by
    how much the log odds of a class grow with its share: a teacher of few rows is right a little more often than not
    where the truth is plain. `bends`: whether shares of two classes come so near 0 and 1 that they are no linear
    function of the coordinates.
    """

    effects: FloatArray = field(repr=False)
    sharpness: float
    bends: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StudentData:
    """Everything that a student learns from. All of it may be published, so what it makes of it may be too.

    Parameters
    ----------
    pool : (n_public, n_features)
        The whole public pool as the student sees it: an array, a sparse matrix or a frame.
    points : (n_public, d) array or sparse matrix
        The same rows as numbers.
    queries : IntArray
        ``(n_queries,)``, the rows that were asked.
    released : Released
        Their answers.
    classes : sequence
        The declared classes, at least two.
    n_teachers : int
        K ≥ 1.
    seed : int
        For random states and random classes; no privacy rests on it. The same data always gives the same student.
    declined : {"drop", "random"}
        What becomes of a query that was declined, where a student learns from labels. One that was never asked, or
        whose answer was lost with a process, is left out either way.
    one_unit : bool
        Whether columns of `points` have one common unit, so that none is put in a unit of its own: directions of
        public images.
    prior : LinearPrior, optional
        What is known of shares as functions of the rows of `pool`, where these are coordinates of length one; by
        default they are not.
    shared : SharedCoordinates
        What several students of one pool share; by default nothing.

    Raises
    ------
    InvalidParameter
        If the parts do not fit each other, or a number is out of range.
    """

    pool: Any
    points: Any
    queries: IntArray
    released: Released
    classes: Sequence[Any]
    n_teachers: int
    seed: int
    declined: Declined = "drop"
    one_unit: bool = False
    prior: LinearPrior | None = None
    shared: SharedCoordinates = field(default_factory=SharedCoordinates, repr=False)

    def __post_init__(self) -> None:
        one_of("declined", self.declined, ("drop", "random"))
        count("n_teachers", self.n_teachers, at_least=1)
        count("seed", self.seed)
        n_public, queries = n_rows(self.pool), np.asarray(self.queries)
        if n_rows(self.points) != n_public:
            raise InvalidParameter("points must be the rows of the pool as numbers, one for one")
        if queries.shape != self.released.answered.shape:
            raise InvalidParameter("queries must have one row of the pool for each released answer")
        if len(queries) and not (queries.min() >= 0 and queries.max() < n_public):
            raise InvalidParameter(f"queries must be rows of the pool, 0 to {n_public - 1}")
        if len(self.classes) < 2:
            raise InvalidParameter(f"classes must be at least two, got {len(self.classes)}")

    @property
    def answered(self) -> IntArray:
        """Places in `queries` that hold an answer."""
        return np.flatnonzero(self.released.answered)

    @property
    def estimator_seed(self) -> int:
        """What becomes of every ``random_state`` that the student leaves open."""
        return int(np.random.default_rng(self.seed).integers(2**31))

    def coordinates(self, points: Any) -> PoolCoordinates:
        """Return how models of the shares measure points, read off the pool ``(n_public, n_features)`` as numbers."""
        return self.shared.of(points, one_unit=self.one_unit)

    def kernel(self, points: Any) -> PoolCoordinates:
        """Return those of a Gaussian kernel of these."""
        return self.shared.kernel(points, one_unit=self.one_unit)

    def labels(self) -> tuple[IntArray, IntArray]:
        """Return which rows of the pool have a label, and which: ``(n_labelled,)`` rows and class codes.

        BTT18's A_priv reads the answer ⊥ as a uniformly random label. ⊥ is an answer to a query that was asked; its
        A_binClas halts at the cut-off and says nothing of the queries that follow, so those have no label here.
        """
        codes = self.released.codes
        if self.declined == "random":
            drawn = np.random.default_rng([self.seed, 1]).integers(len(self.classes), size=len(codes))
            codes = np.where(self.released.declined, drawn, codes)
        labelled = np.flatnonzero(codes >= 0)
        return np.asarray(self.queries)[labelled], codes[labelled]


@runtime_checkable
class Student(Protocol):
    """A way to learn from what was released. Any object with these three members is one.

    Examples
    --------
    >>> from quorate.students import LabelStudent
    >>> isinstance(LabelStudent(), Student)
    True
    """

    @property
    def learner(self) -> Any:
        """The unfitted scikit-learn classifier that is taught in the end."""

    def fit(self, data: StudentData) -> Any:
        """Return a fitted scikit-learn classifier that predicts declared classes from rows like the pool's."""

    def check(self, mechanism: Mechanism) -> None:
        """Refuse, with ``InvalidParameter`` and before anything is charged, a mechanism that cannot teach it."""


@dataclass(frozen=True)
class EstimatorStudent:
    """A student that teaches one classifier; every mechanism will do.

    `estimator`: any unfitted scikit-learn classifier or Pipeline; it stays as it is. By default a logistic regression.
    Raises InvalidParameter if `estimator` is a class, or a student already.
    """

    estimator: Any = None

    def __post_init__(self) -> None:
        if inspect.isclass(self.estimator):
            raise InvalidParameter(f"estimator must be an instance, got the class {self.estimator.__name__}; add ()")
        if isinstance(self.estimator, Student):
            raise InvalidParameter(
                f"{type(self).__name__} teaches a scikit-learn classifier, got the student "
                f"{type(self.estimator).__name__}; give the classifier itself"
            )

    @property
    def learner(self) -> Any:
        """The classifier that is taught."""
        return logistic() if self.estimator is None else self.estimator

    def check(self, mechanism: Mechanism) -> None:
        """Take any mechanism."""


def logistic() -> Any:
    """Return the default student, unfitted."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1_000)


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

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Return the fitted classifier; its ``classes_`` are those that got a label, a constant where one alone did."""
        rows, codes = data.labels()
        return fit_student(self.learner, take(data.pool, rows), codes, data.classes, seed=data.estimator_seed)
