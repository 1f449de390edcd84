"""What a student may see: public rows, released answers, and public facts about how they were released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from quorate.arguments import count, one_of
from quorate.data import n_rows
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.errors import InvalidParameter
from quorate.labelling import Released
from quorate.students.shared_coordinates import SharedCoordinates
from quorate.types import IntArray

#: A query that was declined is left out, or gets a uniformly random class (BTT18 Alg. 3).
Declined: TypeAlias = Literal["drop", "random"]


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
    shared : SharedCoordinates
        What several students of one pool share; by default nothing.

    Raises
    ------
    InvalidParameter
        If the parts do not fit each other, or a number is out of range.

    Examples
    --------
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no, mechanism = np.zeros(2, dtype=bool), GaussianNoisyMax(sigma=5.0, form="binary")
    >>> X = np.array([[-1.0], [0.5], [1.0]])
    >>> data = StudentData(
    ...     pool=X, points=X, queries=np.array([0, 2]), released=Released(np.array([0, 1]), no, no, mechanism),
    ...     classes=["no", "yes"], n_teachers=100, seed=0,
    ... )
    >>> rows, codes = data.labels()
    >>> rows.tolist(), codes.tolist()
    ([0, 2], [0, 1])
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
