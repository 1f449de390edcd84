"""Teachers that predict a number: a vote is a place in a public range, and what is released is the sum of all votes.

A place is a whole number of steps from the low end, 0 … 2 `grid`, as a class is its code; so teachers are trained, and
asked, where and as those that vote for classes. Who abstains, or predicts no finite number, has no place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from quorate.ambient import unwarned
from quorate.data.rows import n_rows
from quorate.ensemble.linear.tiny import TinyPredictor, places_of
from quorate.ensemble.linear.voters import blas
from quorate.ensemble.teachers.classifier import ClassifierTeacher
from quorate.ensemble.teachers.teacher import AbstainingVoter, Voter
from quorate.ensemble.votes import votes_of_each
from quorate.stored_names import stored_as
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.data.labels import TargetRange
    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
    from quorate.types import IntArray


class Counted(Protocol):
    """A mechanism, as far as it says what a vote adds to a sum."""

    def steps(self, places: IntArray, /) -> IntArray:
        """Return what votes add, ``(n_queries,)``, by their places."""


@stored_as("quorate.ensemble.numbers.RegressorTeacher")
@dataclass(frozen=True, eq=False)
class RegressorTeacher:
    """Train a fresh copy of a regressor on one shard, with targets in their own unit, as
    :class:`~quorate.ensemble.ClassifierTeacher` does.

    `target_range`: where places of targets lie. `grid`: steps from its middle to an end. `voted`: the part of it where
    places of votes lie, by default all. An empty shard abstains, and so does an exception in ``fit``; a row on which
    ``predict`` fails, or says no finite number, is an abstention on that row.
    """

    estimator: Any
    target_range: TargetRange
    grid: int
    voted: TargetRange | None = None

    @cached_property
    def copies(self) -> ClassifierTeacher:
        """What makes copies of the estimator, each by itself; refuses one that cannot be copied, or is fitted."""
        return ClassifierTeacher(self.estimator, batched=False)

    @property
    def keeps_no_global_state(self) -> bool:
        """Whether every part comes from a library that keeps no state in the process."""
        return self.copies.keeps_no_global_state

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        if not len(y):
            return AbstainingVoter()
        try:
            estimator = self.copies.fresh(seed)
            estimator.fit(X, self.target_range.low + y * (self.target_range.width / (2 * self.grid)))
        except MemoryError:
            raise  # as in ClassifierTeacher
        except Exception:  # noqa: BLE001 - to stop, or to say why, would be an output that depends on private rows
            return AbstainingVoter()
        return RegressorVoter(estimator, self.voted or self.target_range, self.grid, self.keeps_no_global_state)


@stored_as("quorate.ensemble.numbers.RegressorVoter")
@dataclass(frozen=True, eq=False)
class RegressorVoter:
    """What :class:`RegressorTeacher` trains."""

    estimator: Any
    target_range: TargetRange
    grid: int
    keeps_no_global_state: bool

    def vote(self, X: Any, /) -> IntArray:
        """Return the place of each row's number, or an abstention where there is none."""
        predicted = np.asarray(self.estimator.predict(X), dtype=np.float64)
        if predicted.shape != (n_rows(X),):
            raise ValueError  # as other failures; nobody is told of it
        with np.errstate(over="ignore", invalid="ignore"):
            return places_of((predicted - self.target_range.low) / (self.target_range.width / 2) - 1, self.grid)


def sum_numbers(
    voters: Secret[tuple[Voter, ...]],
    X: Any,
    mechanism: Counted,
    *,
    grid: int,
    n_jobs: int = 1,
    scheduler: DaskScheduler | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Secret[IntArray]:
    """Sum what the votes of all teachers add, ``(n_queries, 1)``.

    `X`: the queries, as the teachers see rows. `mechanism`: what says how much a vote adds, whatever others vote.
    `grid`: steps from the middle of the range to an end. Privacy: one changed teacher changes one term of each sum.
    """
    sums, others = np.zeros(n_rows(X), dtype=np.int64), {}
    for number, voter in enumerate(voters.reveal()):
        if not isinstance(voter, TinyPredictor):
            others[number] = voter
            continue
        with blas().limit(limits=1), unwarned():  # as in a worker; what is warned of may depend on private rows
            sums += mechanism.steps(voter.vote(X))
    together = all(bool(getattr(voter, "keeps_no_global_state", True)) for voter in others.values())
    for _, places in votes_of_each(
        others, X, 2 * grid + 1, n_jobs=n_jobs, scheduler=scheduler if others else None, together=together
    ):
        sums += mechanism.steps(places)
    if progress is not None:  # at the end: how many had to be asked in a process depends on private rows
        progress(len(voters.reveal()), len(voters.reveal()))
    return Secret(sums[:, None])
