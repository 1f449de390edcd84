r"""What a mechanism answers, and how an answer is read: a class, a score, noisy votes, or half a noisy lead.

Each kind says which class an answer stands for and, where votes are released and not classes alone, the share of the
teachers that it stands for. A kind holds public numbers, as a mechanism does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

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
