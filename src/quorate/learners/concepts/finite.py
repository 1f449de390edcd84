"""Any finite list of fitted classifiers as a concept class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import unwarned
from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import EnumeratedClass, Labels, Points, real_points, signed_weights
from quorate.stored_names import stored_as
from quorate.theory.bns15 import sauer
from quorate.types import FloatArray, IntArray

_BLOCK_CELLS = 1 << 22


@stored_as("quorate.learners.concepts.finite.Member")
@dataclass(frozen=True, slots=True)
class Member:
    """One classifier of a finite class.

    `index`: its place in the list. `classifier`: fitted; its ``predict`` gives 0 or 1 for each row.

    A row for which the classifier fails, or gives anything but 0 or 1, is labelled 0, and nothing is said of it: the
    rows may be private, and an error would be an output that depends on them. Where a whole table fails, its halves are
    tried, so that one row never changes the label of another: a mistake counted for one record stays one.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> always = DummyClassifier(strategy="constant", constant=1).fit([[0.0]], [1])
    >>> Member(0, always).labels(np.zeros((3, 1))).tolist()
    [1, 1, 1]
    """

    index: int
    classifier: Any = field(compare=False)

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""
        if not len(points):
            return np.zeros(0, dtype=np.uint8)
        predicted = self._predicted(points)
        if predicted is not None:
            ones: Labels = (predicted == 1).astype(np.uint8)
            return ones
        half = len(points) // 2
        if not half:
            return np.zeros(1, dtype=np.uint8)
        return np.concatenate([self.labels(points[:half]), self.labels(points[half:])])

    def _predicted(self, points: Points) -> NDArray[Any] | None:
        """Return a number for each row, or None where the classifier fails on the table."""
        try:
            with unwarned():  # a warning may quote a row
                predicted = np.asarray(self.classifier.predict(points))
        except MemoryError:
            raise  # a fact of the machine, not of the rows
        except Exception:  # noqa: BLE001 - to stop, or to say why, would be an output that depends on private rows
            return None
        return predicted if predicted.shape == (len(points),) and predicted.dtype.kind in "biuf" else None


@stored_as("quorate.learners.concepts.finite.MemberConcepts")
@dataclass(frozen=True, eq=False)
class MemberConcepts:
    """Classifiers in the order of their list."""

    members: tuple[Member, ...]

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: int) -> Member:
        return self.members[index]

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        return np.array([member.labels(points) for member in self.members], dtype=np.uint8).reshape(len(self), -1)

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``: one classifier at a time."""
        return self.errors(points, *signed_weights(len(points), labels, weights))

    def errors(self, points: Points, ones: int, signed: IntArray) -> IntArray:
        """Return the mistakes, from weights with the signs of their labels."""
        return np.array([ones - signed[member.labels(points) == 1].sum() for member in self.members], dtype=np.int64)


@stored_as("quorate.learners.concepts.finite.FiniteClass")
@dataclass(frozen=True, repr=False)
class FiniteClass(EnumeratedClass):
    r"""The functions that finitely many fitted classifiers compute.

    Raises InvalidParameter if there is no classifier, or one has no ``predict``, or gives neither 0 nor 1 for a row of
    zeros, which is public: it is not fitted, or on other labels or columns.

    `classifiers`: at least one; each has ``predict``, which labels every row by itself, 0 or 1. They must not depend on
    the rows that a learner will see: fit them on public data. Where one fails on a row, or gives anything else, the row
    counts as labelled 0, without a word: see :class:`Member`. `n_features`: number of columns, all real numbers;
    classifiers get a float64 array.

    VC dimension at most :math:`\lfloor \log_2 |C| \rfloor`. Each dichotomy is represented by the first classifier of
    the list that has it, and ties of errors go to the first one too.

    Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011): private learning of a finite class.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> constants = [DummyClassifier(strategy="constant", constant=c).fit([[0.0]], [c]) for c in (0, 1)]
    >>> concepts = FiniteClass(constants, n_features=1)
    >>> concepts.vc_dimension
    1
    >>> concepts.erm(concepts.check([0.5, 1.5, 2.5]), np.array([1, 0, 1])).index
    1
    """

    classifiers: Sequence[Any]
    n_features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classifiers", tuple(self.classifiers))
        object.__setattr__(self, "n_features", count("n_features", self.n_features, at_least=1))
        if not self.classifiers:
            raise InvalidParameter("classifiers must hold at least one fitted classifier, got none")
        for i, classifier in enumerate(self.classifiers):
            if not callable(getattr(classifier, "predict", None)):
                raise InvalidParameter(
                    f"classifiers: number {i}, a {type(classifier).__name__}, has no predict; give fitted classifiers"
                )
            label = Member(i, classifier)._predicted(np.zeros((1, self.n_features)))
            if label is None or label[0] not in (0, 1):
                raise InvalidParameter(
                    f"classifiers: number {i}, a {type(classifier).__name__}, must predict 0 or 1 for each row of "
                    f"n_features={self.n_features} numbers, and does not for a row of zeros; give ones that were "
                    "fitted on such rows and labels"
                )

    def __deepcopy__(self, memo: dict[int, Any]) -> FiniteClass:
        """Return the class itself: it is never changed, and scikit-learn's ``clone`` copies what it is given."""
        return self

    def __repr__(self) -> str:
        return f"FiniteClass({len(self.classifiers)} classifiers, n_features={self.n_features})"

    @property
    def vc_dimension(self) -> int:
        """The largest k with 2^k functions in the list; they may realise less."""
        return len(self.classifiers).bit_length() - 1

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(len(self.classifiers), sauer(n_points, self.vc_dimension))

    def check(self, X: Any) -> FloatArray:
        """Return ``(n_points, n_features)`` finite float64 points, or refuse the table."""
        return real_points(X, self.n_features, self)

    def _dichotomies(self, points: Points) -> MemberConcepts:
        concepts = self.members()
        first, _ = _distinct_rows(concepts.labels(np.unique(points, axis=0)))
        return MemberConcepts(tuple(concepts[i] for i in first))

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Member:
        """Return the first classifier of least weighted error."""
        concepts = self.members()
        return concepts[int(np.argmin(concepts.mistakes(points, labels, weights)))]

    def _scores(self, concepts: MemberConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores; the fewest mistakes on W of the classifiers of each dichotomy are found once."""
        errors = self.members().errors(W, ones, signed)
        distinct, multiplicity = np.unique(T, axis=0, return_counts=True)
        on_T = self.members().labels(distinct)
        first, dichotomy = _distinct_rows(on_T)
        least = np.full(len(first), len(W), dtype=np.int64)
        np.minimum.at(least, dichotomy, errors)
        rows = on_T[first].astype(np.float64)  # products of floats are exact below 2^53, and fast
        n_ones = rows @ multiplicity
        scores = np.empty(len(first), dtype=np.int64)
        step = max(1, _BLOCK_CELLS // len(first))
        for start in range(0, len(first), step):
            block = slice(start, start + step)
            both = (rows[block] * multiplicity) @ rows.T
            differ = (n_ones[block, np.newaxis] + n_ones - 2 * both).astype(np.int64)
            scores[block] = (len(W) * differ + len(T) * least).min(axis=1)
        return scores

    def members(self) -> MemberConcepts:
        """Return every classifier of the list."""
        return MemberConcepts(tuple(Member(i, classifier) for i, classifier in enumerate(self.classifiers)))


def _distinct_rows(table: NDArray[np.uint8]) -> tuple[IntArray, IntArray]:
    """Return where each different row of 0 and 1 stands first, in order, and which of them each row equals."""
    if not table.shape[1]:
        return np.zeros(1, dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    packed = np.ascontiguousarray(np.packbits(table, axis=1))
    _, first, same = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True)
    in_order = np.argsort(first)
    place = np.empty(len(first), dtype=np.int64)
    place[in_order] = np.arange(len(first))
    return first[in_order], place[same]
