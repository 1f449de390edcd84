"""What chooses the queries: a pure function of public points and of answers that were released already.

A random subset of the public points is the control of every other strategy.

Strategies that read the pool as a stream do so in epochs: what such a strategy believes changes between epochs alone.
Inside an epoch every point is judged by what was believed at its start, so an epoch's questions are one batch. A point
that is not asked may be given a label by the belief itself. The whole past is worked out afresh from what was asked
and answered, which makes each batch a function of the history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.errors import InvalidParameter, named
from quorate.findings import Finding, Severity, caution
from quorate.stored_names import stored_as
from quorate.types import IntArray

GAIN_IS_UNCERTAIN = "gain-over-random-is-uncertain"
COMPARE = (
    'Compare with Random of the same size, at the same noise (quorate.toml: strategy = "random"), before you rely on it'
)


def compared(words: str) -> Finding:
    """Return the caution that a random subset may do as well, with what is known of it."""
    return caution(GAIN_IS_UNCERTAIN, Severity.NOTE, f"{words}. {COMPARE}")


@stored_as("quorate.labelling.active.strategy.History")
@dataclass(frozen=True, slots=True, eq=False)
class History:
    """What a strategy may know of the past, and all that it may know of the private side.

    Parameters
    ----------
    rows : IntArray
        ``(n_asked,)`` rows of the pool that were asked, in the order in which they were.
    codes : IntArray
        ``(n_asked,)`` classes that were *released* for them; -1 where the answer was declined or lost.
    n_classes : int
        Number of declared classes.

    Examples
    --------
    >>> past = History(np.array([4, 7]), np.array([1, -1]), 2)
    >>> past.labelled
    (array([4]), array([1]))
    """

    rows: IntArray
    codes: IntArray
    n_classes: int

    @property
    def labelled(self) -> tuple[IntArray, IntArray]:
        """Rows that have an answer, and their classes."""
        answered = self.codes >= 0
        return self.rows[answered], self.codes[answered]

    def not_asked(self, n_points: int) -> IntArray:
        """Rows of a pool of `n_points` that were not asked yet, in their order."""
        open_ = np.ones(n_points, dtype=np.bool_)
        open_[self.rows] = False
        return np.flatnonzero(open_).astype(np.int64)


@dataclass(frozen=True)
class Strategy(ABC):
    """A way to choose queries, given as ``queries=``.

    Parameters
    ----------
    n : int
        The cap ℓ ≥ 1: the most points that are asked. The noise is that of this many answers, and so is the
        guarantee, whether they are asked or not.

    Raises
    ------
    InvalidParameter
        If a field is out of range.

    Notes
    -----
    Privacy: a strategy sees public points and released answers. Which points it asks is therefore post-processing, and
    the answers are those of a fixed schedule of ℓ releases to adaptively chosen queries (LZCW21 Alg. 5).

    A strategy of your own is a frozen dataclass that derives from this one and has a :meth:`next_batch`.
    """

    n: int

    learns: ClassVar[bool] = True  # whether the points, or the answers, have a say
    two_classes: ClassVar[bool] = False  # whether it is made for two classes alone

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count("n", self.n, at_least=1, hint="The most points that may be asked"))

    @abstractmethod
    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose what to ask next.

        Parameters
        ----------
        pool : (n_points, n_features) array or CSR matrix
            Distinct public points as numbers, in a random order: a stream.
        history : History
            What was asked so far.
        rng : numpy.random.Generator
            Of this batch alone: the same one after a restart.

        Returns
        -------
        IntArray
            Rows of the pool that were not asked yet; none to stop. What lies beyond the cap is cut off.
        """

    def spread(self, pool: Any, rows: IntArray, rng: np.random.Generator) -> IntArray | None:
        """Say whose answer each point may take over for the student.

        Parameters
        ----------
        pool : (n_points, n_features) array or CSR matrix
            As in :meth:`next_batch`.
        rows : IntArray
            ``(n_asked,)`` rows that were asked.
        rng : numpy.random.Generator
            That of the first batch.

        Returns
        -------
        IntArray or None
            ``(n_points,)`` places in `rows`, -1 for none. None where only asked points have answers.
        """
        return None

    def cautions(self, *, width: int) -> tuple[Finding, ...]:
        """Say what the owner should hear before the budget is spent; `width`: the number of columns of the pool."""
        if not self.learns:
            return ()
        name = type(self).__name__
        return (compared(f"whether {name} beats a random subset of the same size depends on the task"),)

    def check(self, *, n_points: int, n_classes: int) -> None:
        """Refuse, with InvalidParameter, a task with fewer points than may be asked, or too many classes."""
        if self.n > n_points:
            raise InvalidParameter(
                f"{type(self).__name__} asks {self.n:,} queries ({named('queries')}), but the pool has {n_points:,} "
                "distinct points; ask at most that many",
                parameter="queries",
                got=self.n,
                expected=f"at most {n_points:,}",
            )
        if self.two_classes and n_classes != 2:
            raise InvalidParameter(
                f"{type(self).__name__} ({named('strategy')}) is made for two classes, and there are {n_classes}; take "
                "Margin, Disagreement, KMeans, CoreSet or Random",
                parameter="strategy",
                got=type(self).__name__,
            )


@stored_as("quorate.labelling.active.random_subset.Random")
@dataclass(frozen=True)
class Random(Strategy):
    """Ask n points at random: the first n of the stream, whatever is answered.

    Parameters
    ----------
    n : int
        How many points are asked.

    Notes
    -----
    The same points, at the same noise, as with ``queries=n``.

    Examples
    --------
    >>> past = History(np.array([0]), np.array([1]), 2)
    >>> Random(3).next_batch(np.zeros((5, 1)), past, np.random.default_rng(0))
    array([1, 2])
    """

    learns: ClassVar[bool] = False

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the next points of the stream."""
        return history.not_asked(pool.shape[0])[: self.n - len(history.rows)]


class Belief(Protocol):
    """What is believed at the start of an epoch."""

    def asks(self, rows: IntArray) -> NDArray[np.bool_]:
        """Whether each of these points is to be asked."""

    def labels(self, rows: IntArray) -> IntArray:
        """Class that is taken for granted for each point that is not asked; -1 for none."""


Learn = Callable[[IntArray, IntArray], Belief]


def doubling(n_points: int, first: int) -> Iterator[range]:
    """Cut a stream into epochs of `first`, twice, four times, … as many points."""
    start, size = 0, first
    while start < n_points:
        yield range(start, min(start + size, n_points))
        start, size = start + size, 2 * size


def up_to_powers_of_two(n_points: int) -> Iterator[range]:
    """Cut a stream after 1, 2, 4, 8, … points."""
    start, stop = 0, 1
    while start < n_points:
        yield range(start, min(stop, n_points))
        start, stop = stop, 2 * stop


def next_questions(epochs: Iterator[range], history: History, learn: Learn) -> IntArray:
    """Go through the stream up to the first epoch with a question; return its rows to ask, none where the stream has
    ended. `learn`: ``learn(rows, codes)`` gives the belief that follows from the points so far, -1 for no class.
    """
    released = dict(zip(history.rows.tolist(), history.codes.tolist(), strict=True))
    known, codes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    last = max(released, default=-1)
    for epoch in epochs:
        rows = np.arange(epoch.start, epoch.stop, dtype=np.int64)
        belief = learn(known, codes)
        if epoch.start > last:
            questions = rows[belief.asks(rows)]
            if len(questions):
                return questions
        answered = np.isin(rows, history.rows)
        labels = np.empty(len(rows), dtype=np.int64)
        labels[answered] = [released[row] for row in rows[answered].tolist()]
        labels[~answered] = belief.labels(rows[~answered])
        known, codes = np.concatenate([known, rows]), np.concatenate([codes, labels])
    return np.empty(0, dtype=np.int64)
