"""What a learner may ask of a concept class: its dichotomies, its empirical errors, its size.

Bounds on the number of dichotomies, and refusals by them, are functions of the class and of the *number* of points,
which is public. A message names the column and the domain, never a value or a row.

Weighted errors are exact integers. With the sign + for a point labelled 1 and − for one labelled 0, a concept's
mistakes are the weight of all points labelled 1 less the signed weight of the points that it labels 1: for the least
error the largest such sum is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import comb
from numbers import Integral, Real
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.data.rows import as_rows, is_frame, kind, width
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import FloatArray, IntArray

Points = NDArray[Any]  # (n_points, n_features), as `ConceptClass.check` returns them
Labels = NDArray[np.uint8]  # (n_points,), 0 or 1


class Concept(Protocol):
    """One labelling rule: a frozen value whose fields may be published."""

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""


class Concepts(Protocol):
    """Finitely many concepts of one class, in a fixed order."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Concept: ...

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``; as large as that, so for few points."""

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return ``(n_concepts,)``: the weight of the points that each concept labels otherwise; exact integers.

        `weights` are whole numbers >= 0, ``(n_points,)``; 1 each by default. It uses the structure of the class, never
        the ``(n_concepts, n_points)`` table where that is large.
        """


class ConceptClass(Protocol):
    """A class of functions from points to {0, 1}."""

    @property
    def n_features(self) -> int:
        """Number of columns of a point."""

    @property
    def vc_dimension(self) -> int:
        """VC(C), or the least bound on it that is known."""

    @property
    def domain_size(self) -> int | None:
        """Number of points of the domain; None where it is not finite."""

    def check(self, X: Any) -> Points:
        """Return the points in the form that the class works on.

        Raises DataRefused if a point lies outside the domain; the message says which domain, and never a value.
        """

    def n_dichotomies(self, points: Points) -> int:
        """Return an upper bound on the number of dichotomies on `points`, cheaply: what a limit is held against.

        A function of how many points there are, which is public, so that a refusal tells nothing of private ones. A
        class may offer the same as ``growth(n_points)``.
        """

    def dichotomies(self, points: Points, *, limit: int = ...) -> Concepts:
        """Return one concept for every dichotomy that the class realises on `points`.

        A function of the *set* of points: neither their order nor how often each occurs matters.

        Raises InvalidParameter if there would be more than `limit`; the message holds the number.
        """

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Concept:
        """Return a concept of least weighted empirical error; ties go to the first in a fixed order of the class."""

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[Concepts, IntArray]:
        r"""Return the dichotomies h on T, and :math:`|T||W| \min_f \{dis_T(h, f) + err_W(f)\}` of each (LWY25 Alg. 1).

        Exact integers: rows of T weigh :math:`|W|`, rows of W weigh :math:`|T|`. A class without structure may return
        what :func:`relabelling_scores_by_erm` does. Where more is refused than
        by the number of dichotomies, ``refuse_relabelling(n_T, n_W)`` tells it from the numbers of rows alone.
        """


#: Dichotomies that are enumerated at most where nothing else is said: thresholds of four million points.
DICHOTOMY_LIMIT: Final = 1 << 22

#: Steps of a search, at most, where they grow faster than the points: about a minute.
WORK_LIMIT: Final = 1 << 33


def symmetric_difference_vc(growth: Callable[[int], int]) -> int:
    r"""Return the largest VC dimension that :math:`C^{\oplus} = \{h \oplus f : h, f \in C\}` can have.

    Two equal concepts give the constant 0, and each of the other pairs gives one dichotomy, so that
    :math:`1 + \binom{\Pi_C(n)}{2} \ge 2^n` wherever n points are shattered; and whoever shatters n points shatters
    every smaller number of them. So the bound is the last n before the inequality fails for the first time.

    `growth`: an upper bound on :math:`\Pi_C(n)`, the largest number of dichotomies of C on n points, for every n.

    BNS15, the observation on VC(C⊕) in Section 3: the same count, rounded there to 10 VC(C).

    Examples
    --------
    >>> from quorate.theory import sauer
    >>> symmetric_difference_vc(lambda n: n + 1), symmetric_difference_vc(lambda n: sauer(n, 2))
    (2, 11)
    """
    n = 0
    while 1 + comb(growth(n + 1), 2) >= 2 ** (n + 1):
        n += 1
    return n


def refuse_beyond(limit: int, n_dichotomies: int, concepts: object) -> None:
    """Refuse an enumeration of more dichotomies than `limit`; the message holds the number."""
    if n_dichotomies > count("limit", limit, at_least=1):
        raise InvalidParameter(
            f"limit: {concepts!r} may realise up to {n_dichotomies} dichotomies on so many points, more than {limit}; "
            "take fewer points or a smaller class, or raise the limit"
        )


def refuse_work(steps: int, concepts: object) -> None:
    """Refuse a search of more than :data:`WORK_LIMIT` steps; the message holds the number."""
    if steps > WORK_LIMIT:
        raise InvalidParameter(
            f"points: a search among {concepts!r} on so many points may take {steps} steps, more than {WORK_LIMIT}; "
            "use fewer points, fewer columns or a coarser grid"
        )


MAX_BITS = 62  # a cut behind the last point of the grid, 2^62, is still an int64


def grid_bits(name: str, value: object) -> int:
    """Return the logarithm of a grid's size, from 1 to 62."""
    bits = count(name, value, at_least=1)
    if bits > MAX_BITS:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {MAX_BITS}, got {bits}; use a coarser grid")
    return bits


def grid_points(X: Any, bits: tuple[int, ...], concepts: object) -> IntArray:
    """Return ``(n_points, n_features)`` int64 points of the grid with ``2**bits[j]`` values in column j."""
    columns = _read(X, len(bits), concepts)
    points = np.empty((len(columns[0]), len(bits)), dtype=np.int64)
    for j, column in enumerate(columns):
        if not _on_grid(column, 2 ** bits[j]):
            raise DataRefused(
                f"X: column {j} leaves the domain of {concepts!r}; expected whole numbers from 0 to {2 ** bits[j] - 1}"
            )
        points[:, j] = column
    return points


def real_points(X: Any, n_features: int, concepts: object) -> FloatArray:
    """Return ``(n_points, n_features)`` finite float64 points."""
    columns = _read(X, n_features, concepts)
    points = np.empty((len(columns[0]), n_features), dtype=np.float64)
    for j, column in enumerate(columns):
        points[:, j] = column
        if not np.isfinite(points[:, j]).all():
            raise DataRefused(f"X: column {j} leaves the domain of {concepts!r}; expected finite numbers, none missing")
    points += 0.0  # −0.0 becomes 0.0: equal points are written alike
    return points


def _on_grid(column: NDArray[Any], size: int) -> bool:
    if column.dtype.kind == "f" and not (np.isfinite(column) & (np.floor(column) == column)).all():
        return False
    return bool(int(column.min()) >= 0 and int(column.max()) < size)


def _read(X: Any, n_features: int, concepts: object) -> list[NDArray[Any]]:
    """Split a table of any kind into numeric columns, whole numbers not passed through floats."""
    rows = as_rows(_as_table(X, n_features))
    if width(rows) != n_features:
        # "X has … features, but …": the words that scikit-learn's users know
        raise DataRefused(f"X has {width(rows)} features, but {concepts!r} is expecting {n_features} features as input")
    if is_frame(rows):
        frame = [rows.iloc[:, j] if kind(rows) == "pandas" else rows[:, j] for j in range(n_features)]
        columns = [_whole_objects(np.asarray(column)) for column in frame]
    else:
        table = rows.toarray() if kind(rows) == "sparse" else rows
        columns = [table[:, j] for j in range(n_features)]
    for j, column in enumerate(columns):
        if column.dtype.kind not in "biuf":
            raise DataRefused(f"X: column {j} does not hold numbers; encode it first")
    return columns


def _as_table(X: Any, n_features: int) -> Any:
    """Make a 2-D array of what is neither a table nor sparse; one column may come as ``(n_points,)``."""
    is_frame_like = not isinstance(X, np.ndarray) and len(getattr(X, "shape", ())) == 2
    if is_frame_like or isinstance(X, (str, bytes, dict, np.ma.MaskedArray)):
        return X  # frames, sparse matrices, and what as_rows refuses in its own words
    try:
        array = _whole_objects(np.asarray(X))
    except ValueError:  # rows that differ in length: told by as_rows
        return X
    return array.reshape(-1, 1) if array.ndim == 1 and n_features == 1 else array


def _whole_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Turn Python integers and floats, held as objects, into numbers; text that looks like one stays text."""
    if array.dtype != object:
        return array
    values = array.ravel().tolist()
    try:
        if all(isinstance(value, Integral) for value in values):
            return np.array([int(value) for value in values], dtype=np.int64).reshape(array.shape)
        if all(value is None or isinstance(value, Real) for value in values):
            return array.astype(np.float64)
    except (OverflowError, TypeError, ValueError):  # a number beyond int64 lies outside every domain
        return np.full(array.shape, np.nan)
    raise DataRefused("X: an array holds something else than numbers; encode it first")


MAX_TOTAL = 1 << 59  # of weights, and of |T||W|: no sum or score below leaves int64


def signed_weights(n_points: int, labels: Any, weights: Any = None) -> tuple[int, IntArray]:
    """Return the weight of the points labelled 1, and each point's weight with its label's sign, ``(n_points,)``.

    Raises DataRefused if the labels are not 0 or 1, one for each point; InvalidParameter if the weights (1 each by
    default) are not whole numbers >= 0, one for each point, of at most 2^59 together.
    """
    values = np.asarray(labels)
    if values.shape != (n_points,):
        raise DataRefused("labels must be one for each point, an array (n_points,)")
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise DataRefused("labels must be 0 or 1; rows without a label do not belong here")
    positive = values == 1
    sign = np.where(positive, 1, -1)
    if weights is None:
        return int(positive.sum()), sign
    heavy = np.asarray(weights)
    if heavy.shape != (n_points,) or heavy.dtype.kind not in "iu":
        raise InvalidParameter(f"weights must be an array (n_points,) of integers, got {heavy.dtype}")
    if n_points and (heavy.min() < 0 or int(heavy.max()) > MAX_TOTAL or heavy.sum(dtype=np.float64) > MAX_TOTAL):
        raise InvalidParameter("weights must be whole numbers >= 0, of at most 2^59 together; use smaller ones")
    exact = heavy.astype(np.int64)
    return int(exact[positive].sum()), exact * sign


def unit_scores(n_T: int, n_W: int) -> None:
    """Refuse a relabelling whose scores, up to 2 |T||W|, could leave int64."""
    if n_T * n_W > MAX_TOTAL:
        raise InvalidParameter(
            f"|T||W| must be at most 2^59, so that scores are exact, got {n_T} times {n_W}; take smaller samples"
        )


def prefix_sums(values: NDArray[Any], signed: IntArray) -> tuple[NDArray[Any], IntArray]:
    """Return the q distinct values in order, and the weight of the p lowest of them for p = 0 … q."""
    order = np.argsort(values)
    ordered = values[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(values) else order
    return ordered[last], np.concatenate([[0], np.cumsum(signed[order])[last]])


def gaps(borders: NDArray[Any], values: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the least and the largest number of distinct `values` below a cut in each gap between distinct `borders`.

    Both sorted; ``(n_borders + 1,)`` each. A cut in gap k has exactly k borders below it; every number between occurs.
    """
    least = np.concatenate([[0], np.searchsorted(values, borders, side="right")])
    largest = np.append(np.searchsorted(values, borders, side="left"), len(values))
    return least, largest


def over_gaps(extreme: np.ufunc, sums: IntArray, least: IntArray, largest: IntArray) -> IntArray:
    """Return the extreme of ``sums[least[k] : largest[k] + 1]`` for each gap k."""
    ends = np.ravel(np.column_stack([least, largest + 1]))  # every other stretch is between two gaps: thrown away
    extremes: IntArray = extreme.reduceat(np.append(sums, sums[-1]), ends)[::2]
    return extremes


class EnumeratedClass(ABC):
    """A concept class whose ``growth(n_points)`` bounds its dichotomies: all that it refuses, it refuses by numbers."""

    @abstractmethod
    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""

    @abstractmethod
    def _dichotomies(self, points: Points) -> Any:
        """One concept for every dichotomy on `points`, in the order of the class."""

    @abstractmethod
    def _scores(self, concepts: Any, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores of all dichotomies on T, neither side empty; `ones`, `signed`: :func:`signed_weights` of W."""

    @property
    def xor_vc_dimension(self) -> int:
        """The least bound on VC(C⊕) that the number of dichotomies gives (as in BNS15, Section 3)."""
        return symmetric_difference_vc(self.growth)

    @property
    def domain_size(self) -> int | None:
        """Number of points of the domain; None where it is not finite."""
        return None

    def n_dichotomies(self, points: Points) -> int:
        """Return :meth:`growth` of the number of points."""
        return self.growth(len(points))

    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> Any:
        """Return one concept for every dichotomy on `points`, in the order of the class."""
        refuse_beyond(limit, self.n_dichotomies(points), self)
        return self._dichotomies(points)

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        refuse_beyond(DICHOTOMY_LIMIT, self.growth(n_T), self)

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[Any, IntArray]:
        """Return the dichotomies on T and their exact scores (LWY25 Algorithm 1): ``(n_concepts,)`` int64."""
        self.refuse_relabelling(len(T), len(W))
        signed, concepts = signed_weights(len(W), labels_of_W), self.dichotomies(T)
        if not (len(T) and len(W)):  # no errors at all
            return concepts, np.zeros(len(concepts), dtype=np.int64)
        return concepts, self._scores(concepts, T, W, *signed)


def relabelling_scores_by_erm(
    concept_class: ConceptClass, T: Points, W: Points, labels_of_W: Labels
) -> tuple[Concepts, IntArray]:
    r"""Return the dichotomies h on T, and :math:`|T||W| \min_f \{dis_T(h, f) + err_W(f)\}` of each, exactly.

    One weighted error is minimised for every dichotomy, with rows of T weighing \|W\| and labelled by h, and rows of W
    weighing \|T\|. The classes of this package with more structure than that are faster; a class of your own may call
    this as its ``relabelling_scores``.

    Returns: the concepts, and ``(n_concepts,)`` int64 scores from 0 to 2 \|T\|\|W\|.

    LWY25 (Li, Wang, Ye), Algorithm 1, step 3.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> concepts = Thresholds(bits=4)
    >>> T, W = concepts.check([3, 9]), concepts.check([5, 6, 12])
    >>> relabelling_scores_by_erm(concepts, T, W, np.array([1, 1, 0]))[1].tolist()
    [3, 0, 0]
    """
    unit_scores(len(T), len(W))
    signed_weights(len(W), labels_of_W)  # refuses what is no label
    concepts = concept_class.dichotomies(T)
    points = np.concatenate([T, W])
    weights = np.repeat(np.array([len(W), len(T)], dtype=np.int64), [len(T), len(W)])
    scores = np.empty(len(concepts), dtype=np.int64)
    for i in range(len(concepts)):
        labels = np.concatenate([concepts[i].labels(T), np.asarray(labels_of_W).astype(np.uint8)])
        best = concept_class.erm(points, labels, weights)
        scores[i] = weights[best.labels(points) != labels].sum()
    return concepts, scores
