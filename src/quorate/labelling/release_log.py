"""What has crossed the boundary: answers that were paid for, in the order of the queries they answer.

A sparse vector holds a number of stages. When the last one has ended, the mechanism is closed: the votes on the
queries that follow are not looked at. Such a query was never asked; it was not declined, and nothing can be learned
from it, not even that the teachers disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count as whole
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, Mechanism, StreamMechanism, Values
from quorate.release import NEVER_ASKED
from quorate.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Answers to the queries of one purpose, and how to read them.

    Each query is in one of four states: answered, declined, interrupted or never asked.

    Parameters
    ----------
    answers : IntArray
        What the mechanism released, one row a query: class codes ``(n_queries,)``, noisy half-leads of class 1
        ``(n_queries,)``, or noisy counts ``(n_queries, n_classes)``. A row without an answer holds 0 and means
        nothing.
    declined, interrupted : NDArray[np.bool_]
        ``(n_queries,)``. The mechanism declined; or the process died between charge and storage, so that the query
        was paid for and must never be drawn again.
    mechanism : Mechanism
        What released them.
    never_asked : NDArray[np.bool_], optional
        ``(n_queries,)``. The mechanism was closed before the query's turn came: its votes were not looked at. By
        default none of them.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> no = np.zeros(3, dtype=bool)
    >>> half_leads = Released(np.array([12, -1, 0]), no, np.array([False, False, True]), NoisyCounts(5.0, "binary"))
    >>> half_leads.codes.tolist()
    [1, 0, -1]
    >>> half_leads.vote_shares(40).tolist()
    [[0.2, 0.8], [0.525, 0.475], [nan, nan]]
    """

    answers: IntArray
    declined: NDArray[np.bool_]
    interrupted: NDArray[np.bool_]
    mechanism: Mechanism
    never_asked: NDArray[np.bool_] = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        if cast("Any", self.never_asked) is None:
            object.__setattr__(self, "never_asked", np.zeros_like(self.declined))

    @property
    def asked(self) -> NDArray[np.bool_]:
        """``(n_queries,)``: whether the query was put to the teachers: answered, declined or interrupted."""
        return ~self.never_asked

    @property
    def answered(self) -> NDArray[np.bool_]:
        """``(n_queries,)``: whether the row of :attr:`answers` is an answer."""
        return ~(self.declined | self.interrupted | self.never_asked)

    @property
    def statuses(self) -> list[str]:
        """One word for each query: ``"answered"``, ``"declined"``, ``"interrupted"`` or ``"never asked"``."""
        words = np.full(len(self.declined), "answered", dtype=object)
        for word, which in (
            ("declined", self.declined),
            ("interrupted", self.interrupted),
            ("never asked", self.never_asked),
        ):
            words[which] = word
        return list(words)

    @property
    def codes(self) -> IntArray:
        """``(n_queries,)``: the class released for each query, by its index; -1 where there is no answer."""
        return np.where(self.answered, self.mechanism.answers.codes(self.answers), DECLINED)

    def rows(self, which: IntArray) -> Released:
        """Return the answers to the queries `which`, ``(n_taken,)`` positions, in that order; one may come twice."""
        return Released(
            self.answers[which],
            self.declined[which],
            self.interrupted[which],
            self.mechanism,
            self.never_asked[which],
        )

    @property
    def holds_values(self) -> bool:
        """Whether a student can learn from noisy votes, and not from classes alone."""
        return self.mechanism.releases_values

    def share_noise(self, n_teachers: int) -> float:
        r"""Return the standard deviation of one share's noise: :math:`\sigma/K`, or :math:`1/(B\sqrt{12})` for B bins.

        Raises
        ------
        InvalidParameter
            If classes were released, which have no share.
        """
        return self._values().share_noise(n_teachers)

    def vote_shares(self, n_teachers: int) -> FloatArray:
        r"""Estimate the share of teachers that vote for each class, ``(n_queries, n_classes)``.

        Noise may push a share below 0 or above 1. Rows without an answer hold NaN.

        Parameters
        ----------
        n_teachers : int
            K ≥ 1.

        Raises
        ------
        InvalidParameter
            If classes were released, which have no share, or `n_teachers` is no number of teachers.

        Notes
        -----
        How an answer becomes shares stands with each kind of :mod:`~quorate.mechanisms.answers`.
        """
        read = self._values()
        n_teachers = whole("n_teachers", n_teachers, at_least=1)
        shares = read.shares(self.answers, n_teachers)
        shares[~self.answered] = np.nan
        return shares

    def _values(self) -> Values:
        read = self.mechanism.answers
        if not isinstance(read, Values):
            raise InvalidParameter(
                f"{type(self.mechanism).__name__} released classes, and a class has no vote share; release NoisyCounts"
            )
        return read


class ReleaseBuilder:
    """Collects blocks of answers into one :class:`Released`; what is never put comes out interrupted."""

    def __init__(self, mechanism: Mechanism, *, n_queries: int, n_classes: int) -> None:
        self._mechanism = mechanism
        self._answers = np.zeros(mechanism.answers.shape(n_queries, n_classes), dtype=np.int64)
        self._interrupted = np.ones(n_queries, dtype=np.bool_)

    def put(self, first: int, count: int, answers: Sequence[Any] | None) -> None:
        """Take the answers to queries `first` to ``first + count - 1``; None where a block was never stored."""
        if answers is not None:
            self._answers[first : first + count] = answers
            self._interrupted[first : first + count] = False

    def released(self, before: int | None = None) -> Released:
        """Everything that was put, every query in its state; only of the queries `before` one, if given."""
        interrupted = self._interrupted.copy()
        if before is not None:
            interrupted[before:] = True
        if self._mechanism.answers.may_be_negative:  # it always answers, and a noisy count may well be -1
            return Released(self._answers.copy(), np.zeros_like(interrupted), interrupted, self._mechanism)
        skipped = ~interrupted & never_asked(self._mechanism, np.where(interrupted, 0, self._answers))
        declined = ~interrupted & ~skipped & (self._answers == DECLINED)
        return Released(
            answers=np.where(declined | skipped, 0, self._answers),
            declined=declined,
            interrupted=interrupted,
            mechanism=self._mechanism,
            never_asked=skipped,
        )


def never_asked(mechanism: Mechanism, answers: IntArray) -> NDArray[np.bool_]:
    """Tell which stored answers ``(n_queries,)``, in the order of their queries, stand for ones after the mechanism
    closed. Version 0.1 noted ``DECLINED`` there; once T stages are used up, that was not asked. Released answers alone
    decide.
    """
    noted: NDArray[np.bool_] = answers == NEVER_ASKED
    if not isinstance(mechanism, StreamMechanism):
        return np.zeros_like(noted)
    used = mechanism.stages_used(answers)
    before = np.cumsum(used) - used
    noted |= (answers == DECLINED) & (before >= mechanism.stages)
    return noted
