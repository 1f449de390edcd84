"""What a mechanism is asked, vote counts, and what it answers: a class, a score, noisy votes, or half a noisy lead.

A teacher votes for one class or abstains, and neighbouring data sets change one teacher. So two counts move by one
each, or one count does. Each kind of answer says which class an answer stands for and, where votes are released and not
classes alone, the share of the teachers that it stands for. A kind holds public numbers, as a mechanism does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from quorate.errors import InvalidParameter
from quorate.noise.source import MAX_SCALE
from quorate.types import FloatArray, IntArray

#: How a declined query (⊥) stands in an array of answers; a single release returns None.
DECLINED: Final = -1


class Answers(ABC):
    """How the answers of a mechanism are read; by default each is a class code, or ``DECLINED``.

    Attributes
    ----------
    may_be_negative : bool
        Class attribute: whether −1 is an answer like any other, and never stands for a declined query.
    """

    __slots__ = ()
    may_be_negative: ClassVar[bool] = False

    def shape(self, n_queries: int, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the answers to so many queries."""
        del n_classes
        return (n_queries,)

    @abstractmethod
    def codes(self, answers: IntArray) -> IntArray:
        """Return the class that each answer stands for, ``(n_queries,)``; ties go to the lowest index."""

    def of_shares(self, shares: FloatArray, n_teachers: int) -> IntArray:
        """Return the answers to queries of which K teachers have these shares ``(n_queries, n_classes)``, noise apart.

        By default the class of the largest share. Made-up shares alone go in: nothing here protects a vote.
        """
        del n_teachers
        return np.asarray(shares.argmax(axis=1), dtype=np.int64)


class Classes(Answers):
    """Class codes.

    Examples
    --------
    >>> Classes().codes(np.array([2, 0, DECLINED])).tolist()
    [2, 0, -1]
    """

    __slots__ = ()

    def codes(self, answers: IntArray) -> IntArray:
        """Return the answers: each is a class."""
        return answers


class Values(Answers):
    """Numbers from which the share of the teachers can be estimated that vote for each class."""

    __slots__ = ()

    def of_shares(self, shares: FloatArray, n_teachers: int) -> IntArray:
        """See :meth:`Answers.of_shares`; a kind of an owner's own need not have it."""
        raise NotImplementedError

    @abstractmethod
    def shares(self, answers: IntArray, n_teachers: int) -> FloatArray:
        """Return the estimated share for each class, ``(n_queries, n_classes)``; noise may push one beyond 0 or 1."""

    @abstractmethod
    def share_noise(self, n_teachers: int) -> float:
        """Return the standard deviation of the noise of one share."""

    @abstractmethod
    def columns(self, classes: Sequence[str]) -> list[str]:
        """Return the names of the columns in which the numbers are published."""

    def published(self, answers: IntArray) -> IntArray | FloatArray:
        """Return the numbers that are published, ``(n_queries,)`` or ``(n_queries, n_classes)``."""
        return answers


@dataclass(frozen=True, slots=True)
class NoisyVotes(Values):
    """Noisy counts ``(n_queries, n_classes)``, with noise of standard deviation `sigma`, in votes.

    Examples
    --------
    >>> votes = NoisyVotes(sigma=5.0)
    >>> votes.codes(np.array([[-4, 7, 7]])).tolist(), votes.shares(np.array([[30, 10, 0]]), 40).tolist()
    ([1], [[0.75, 0.25, 0.0]])
    """

    sigma: float
    may_be_negative: ClassVar[bool] = True

    def shape(self, n_queries: int, n_classes: int) -> tuple[int, ...]:
        """Return ``(n_queries, n_classes)``."""
        return (n_queries, n_classes)

    def codes(self, answers: IntArray) -> IntArray:
        """Return the class with the largest noisy count."""
        largest: IntArray = answers.argmax(axis=1)
        return largest

    def shares(self, answers: IntArray, n_teachers: int) -> FloatArray:
        """Return the noisy counts divided by K: unbiased where every teacher votes."""
        shares: FloatArray = answers / n_teachers
        return shares

    def of_shares(self, shares: FloatArray, n_teachers: int) -> IntArray:
        """Return K times the shares, rounded."""
        return np.rint(shares * n_teachers).astype(np.int64)

    def share_noise(self, n_teachers: int) -> float:
        r"""Return :math:`\sigma/K`."""
        return self.sigma / n_teachers

    def columns(self, classes: Sequence[str]) -> list[str]:
        """Return a column for each class."""
        return [f"noisy_votes_{name}" for name in classes]


@dataclass(frozen=True, slots=True)
class NoisyHalfLeads(Values):
    r"""Noisy half-leads :math:`v = \lceil (n_1 - n_0)/2 \rceil + Z` of class 1 of two, ``(n_queries,)``.

    Notes
    -----
    v stands for :math:`n_1 = v + \lfloor K/2 \rfloor` votes of K, so the shares are
    :math:`1/2 \mp (v - \tfrac12 [K \text{ odd}])/K`; the odd half is what the rounding up has added. That is unbiased
    where every teacher votes. An abstention counts as half a vote for either class, and the shares may be off by
    :math:`1/(2K)`.

    Examples
    --------
    >>> leads = NoisyHalfLeads(sigma=5.0)
    >>> leads.codes(np.array([3, 0, -1])).tolist(), leads.shares(np.array([12, -1]), 40).tolist()
    ([1, 0, 0], [[0.2, 0.8], [0.525, 0.475]])
    """

    sigma: float
    may_be_negative: ClassVar[bool] = True

    def codes(self, answers: IntArray) -> IntArray:
        """Return class 1 where its noisy lead is above 0."""
        return (answers > 0).astype(np.int64)

    def shares(self, answers: IntArray, n_teachers: int) -> FloatArray:
        """Return the shares of both classes, as in the notes."""
        lead = (answers - (n_teachers % 2) / 2) / n_teachers
        return np.column_stack([0.5 - lead, 0.5 + lead])

    def of_shares(self, shares: FloatArray, n_teachers: int) -> IntArray:
        """Return the votes for class 1, beyond half of K."""
        return np.rint(shares[:, 1] * n_teachers).astype(np.int64) - n_teachers // 2

    def share_noise(self, n_teachers: int) -> float:
        r"""Return :math:`\sigma/K`."""
        return self.sigma / n_teachers

    def columns(self, classes: Sequence[str]) -> list[str]:
        """Return one column."""
        return ["noisy_half_lead"]


@dataclass(frozen=True, slots=True)
class BinnedScores(Values):
    """Codes c of 1 to 2B − 1, each for the score c/(2B) of class 1 of two; or ``DECLINED``.

    Examples
    --------
    >>> scores = BinnedScores(bins=10)
    >>> scores.codes(np.array([19, 2, DECLINED])).tolist(), scores.published(np.array([19, 2])).tolist()
    ([1, 0, -1], [0.95, 0.1])
    """

    bins: int

    def codes(self, answers: IntArray) -> IntArray:
        """Return class 1 where the score is above one half."""
        return np.where(answers == DECLINED, DECLINED, answers > self.bins)

    def published(self, answers: IntArray) -> FloatArray:
        """Return the scores; NaN where a query was declined."""
        return np.where(answers == DECLINED, np.nan, answers / (2 * self.bins))

    def shares(self, answers: IntArray, n_teachers: int) -> FloatArray:
        """Return the score and what it leaves to class 0."""
        scores = self.published(answers)
        return np.column_stack([1 - scores, scores])

    def of_shares(self, shares: FloatArray, n_teachers: int) -> IntArray:
        """Return the codes of the scores of class 1."""
        return np.clip(np.rint(shares[:, 1] * 2 * self.bins), 1, 2 * self.bins - 1).astype(np.int64)

    def share_noise(self, n_teachers: int) -> float:
        r"""Return :math:`1/(B\sqrt{12})`, that of a score which is uniform in its bin."""
        return 1 / (self.bins * math.sqrt(12))

    def columns(self, classes: Sequence[str]) -> list[str]:
        """Return one column, of the last class."""
        return [f"score_{classes[-1]}"]


#: One teacher moves one vote, −1 here and +1 there: the counts move by √2 in Euclidean norm.
VOTE_L2_SENSITIVITY: Final = sqrt(2)

_CELLS_AT_ONCE = 2**20


def one_query(counts: IntArray, *, n_classes: int | None = None) -> IntArray:
    """Return one query's counts ``(n_classes,)`` as the one row of ``(1, n_classes)``, checked as :func:`many_queries`
    does.
    """
    if not isinstance(counts, np.ndarray) or counts.ndim != 1:
        raise InvalidParameter("counts must be one query's votes, an int64 array (n_classes,); pass one row")
    return many_queries(counts[np.newaxis], n_classes=n_classes)


def many_queries(counts: IntArray, *, n_classes: int | None = None) -> IntArray:
    """Return the counts ``(n_queries, n_classes)``; refuse what is no int64 array of C ≥ 2 classes, or no number of
    votes. No message tells a count.
    """
    if not isinstance(counts, np.ndarray) or counts.ndim != 2:
        raise InvalidParameter("counts must be an int64 array (n_queries, n_classes); pass one row of votes per query")
    if counts.dtype != np.int64:
        raise InvalidParameter(f"counts must be int64, got {counts.dtype}; count votes as integers")
    if counts.shape[1] < 2 or (n_classes is not None and counts.shape[1] != n_classes):
        wanted = "at least 2 classes" if n_classes is None else f"{n_classes} classes"
        raise InvalidParameter(f"counts must have {wanted}, got {counts.shape[1]}; pass one column per class")
    if counts.size and (counts.min() < 0 or counts.max() > MAX_SCALE):
        raise InvalidParameter("counts must be numbers of votes, from 0 to 2^40; pass the votes' histogram")
    return counts


def in_blocks(counts: IntArray) -> Iterator[tuple[slice, IntArray]]:
    """Yield the rows a block at a time, so that the noise never needs more than a few megabytes."""
    n = counts.shape[0]
    step = max(1, _CELLS_AT_ONCE // max(1, counts.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        yield rows, counts[rows]


def half_lead(counts: IntArray) -> IntArray:
    r"""Return :math:`\lceil (n_1 - n_0)/2 \rceil` of each row of counts ``(n_queries, 2)``; one teacher moves it by at
    most 1.
    """
    return -((counts[:, 0] - counts[:, 1]) // 2)


def distance_to_instability(counts: IntArray) -> IntArray:
    r"""Return :math:`\max(0, \lceil gap/2 \rceil - 1)` of each row of ``(n_queries, n_classes)`` counts.

    The gap is the largest count minus the second largest.

    Notes
    -----
    Its sensitivity is 1: one changed teacher moves the gap by at most 2. And it is 0 wherever one changed teacher
    could change the plurality class: that takes a gap of at most 2 (of at most 1 where a tie goes to the leader). BTT18
    prints ``gap − 1``, which moves by 2.

    Examples
    --------
    >>> distance_to_instability(np.array([[9, 1, 0], [5, 3, 2], [4, 4, 2]])).tolist()
    [3, 0, 0]
    """
    gap = np.empty(counts.shape[0], dtype=np.int64)
    for rows, block in in_blocks(counts):
        top = np.partition(block, block.shape[1] - 2, axis=1)
        gap[rows] = top[:, -1] - top[:, -2]
    distance: IntArray = np.maximum(0, -(-gap // 2) - 1)
    return distance
