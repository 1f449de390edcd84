"""What has crossed the boundary: answers that were paid for, in the order of the queries they answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.mechanisms import DECLINED, Mechanism, NoisyCounts
from quorate.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Released:
    """Answers to the queries of one purpose, and how to read them.

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
    """

    answers: IntArray
    declined: NDArray[np.bool_]
    interrupted: NDArray[np.bool_]
    mechanism: Mechanism

    @property
    def answered(self) -> NDArray[np.bool_]:
        """``(n_queries,)``: whether the row of :attr:`answers` is an answer."""
        return ~(self.declined | self.interrupted)

    @property
    def codes(self) -> IntArray:
        """``(n_queries,)``: the class released for each query, by its index; -1 where there is no answer."""
        return np.where(self.answered, class_codes(self.mechanism, self.answers), DECLINED)

    @property
    def holds_values(self) -> bool:
        """Whether a student can learn from noisy votes, and not from classes alone."""
        return isinstance(self.mechanism, NoisyCounts)

    def vote_shares(self, n_teachers: int) -> FloatArray:
        r"""Unbiased estimates of the share of teachers that vote for each class, ``(n_queries, n_classes)``.

        A noisy half-lead :math:`v` of class 1 over class 0 gives the shares :math:`1/2 \mp v/K`. Noise may push a
        share below 0 or above 1. Rows without an answer hold NaN.
        """
        if not self.holds_values:
            raise TypeError("classes were released, not votes; a class has no vote share")
        values = self.answers / n_teachers
        shares = np.column_stack([0.5 - values, 0.5 + values]) if values.ndim == 1 else values
        shares[~self.answered] = np.nan
        return shares


def class_codes(mechanism: Mechanism, answers: IntArray) -> IntArray:
    """Read each answer of `mechanism` as a class, ``(n_queries,)``; ties go to the lowest index, as everywhere."""
    if not isinstance(mechanism, NoisyCounts):
        return answers
    if mechanism.form == "binary":
        return (answers > 0).astype(np.int64)
    largest: IntArray = answers.argmax(axis=1)
    return largest


class Gathering:
    """Collects blocks of answers into one :class:`Released`."""

    def __init__(self, mechanism: Mechanism, *, n_queries: int, n_classes: int) -> None:
        wide = isinstance(mechanism, NoisyCounts) and mechanism.form == "histogram"
        self._mechanism = mechanism
        self._answers = np.zeros((n_queries, n_classes) if wide else n_queries, dtype=np.int64)
        self._interrupted = np.ones(n_queries, dtype=np.bool_)

    def put(self, first: int, count: int, answers: Sequence[Any] | None) -> None:
        """Take the answers to queries `first` to ``first + count - 1``; None where a block was never stored."""
        if answers is not None:
            self._answers[first : first + count] = answers
            self._interrupted[first : first + count] = False

    def released(self) -> Released:
        """Everything that was put, with the declined answers told apart."""
        declines = not isinstance(self._mechanism, NoisyCounts)  # a noisy count may well be -1
        declined = ~self._interrupted & (self._answers == DECLINED) if declines else np.zeros_like(self._interrupted)
        return Released(
            answers=np.where(declined, 0, self._answers) if declines else self._answers,
            declined=declined,
            interrupted=self._interrupted,
            mechanism=self._mechanism,
        )
