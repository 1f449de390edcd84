"""The teacher waist: anything that turns (shard, points) into one vote or an abstention per point.

Sensitivity never depends on what a teacher is. It rests on one fact alone, kept by :mod:`quorate.ensemble.training`:
a teacher is a function of its own shard, the public side, and a seed derived from the run's key and its number.

A voter that fails on several rows is asked about fewer: rows of several people wait together, and whoever sent one of
them must not spoil the answers to all. A vote on a row is then what the voter says of that row; where it fails on a row
by itself, it abstains there. It stays one voter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from quorate.data.rows import n_rows
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.types import IntArray

ABSTAINED = -1


@runtime_checkable
class Voter(Protocol):
    """A trained teacher. It is secret: it was computed from private rows and nothing else protects them."""

    def vote(self, X: Any, /) -> IntArray:
        """Return one class code per row of `X`, ``(n_rows,)``, or ``ABSTAINED`` (-1) where it has no vote."""
        ...


@runtime_checkable
class Teacher(Protocol):
    """A way to train one voter on one shard.

    What an implementation must promise: it reads nothing but its arguments and public facts, and keeps nothing
    between calls. It may raise, crash or run out of time: then this teacher abstains, and the run goes on.

    An attribute ``keeps_no_global_state = True`` says that training touches no state of the process beyond NumPy's
    and Python's global generators. Several such teachers are trained one after the other in one process, which is
    faster; all others get a fresh process each. ``takes_missing = True`` says that rows may have missing values,
    ``reads_frames = True`` that a frame is to be handed over as it is. ``caveats``, a tuple of sentences, says what its
    isolation rests on beside; the guarantee repeats them. A method ``with_classes(classes)`` is told the declared
    classes, and returns the teacher to use; ``on_public_rows()`` returns one for a trial on public rows, which raises
    what goes wrong in plain words.
    """

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard, from this teacher's own `seed`, 0..2^63-1, and no other randomness.

        `X`: the shard's rows ``(n_rows, n_features)``, of the same kind as the private table. `y`: ``(n_rows,)`` class
        codes, 0..C-1. Not every class need be present, and the shard may be empty.
        """
        ...


@stored_as("quorate.ensemble.teachers.AbstainingVoter")
@dataclass(frozen=True, slots=True)
class AbstainingVoter:
    """The voter of a teacher that could not be trained."""

    def vote(self, X: Any, /) -> IntArray:
        """Abstain on every row of `X`."""
        return np.full(_n_rows(X), ABSTAINED, dtype=np.int64)


@stored_as("quorate.ensemble.teachers.ConstantVoter")
@dataclass(frozen=True, slots=True)
class ConstantVoter:
    """The voter of a shard in which only one class occurs, for which it votes everywhere."""

    code: int = field(repr=False)

    def vote(self, X: Any, /) -> IntArray:
        """Vote for the only class on every row of `X`."""
        return np.full(_n_rows(X), self.code, dtype=np.int64)


def untrained(codes: IntArray) -> Voter | None:
    """Return the voter of a shard in which these classes occur, where there is nothing to train; else None."""
    if codes.size == 0:
        return AbstainingVoter()
    return ConstantVoter(int(codes[0])) if codes.size == 1 else None


def other_classes(teacher: Teacher, own: Sequence[Any], declared: Sequence[Any]) -> None:
    """Refuse a teacher made for other classes, or another order: its votes would stand for others than are counted."""
    if list(own) != list(declared) or list(map(str, own)) != list(map(str, declared)):  # True is not 1 in a file
        raise InvalidParameter(
            f"{type(teacher).__name__} was made for other classes than the task has; leave out classes= there"
        )


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return len(X) if shape is None else int(shape[0])


def by_halves(answer: Callable[[Any], Any], X: Any, nothing: Callable[[int], Any]) -> Any:
    """Return ``answer(X)``; where that fails, what it says of each half, down to rows, of which ``nothing(n)`` is the
    rest. MemoryError is raised: a neighbour may have taken it, and whoever runs the teachers tries again with nothing
    beside.
    """
    n = n_rows(X)
    try:
        return answer(X)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a teacher's failure is an abstention, told to nobody
        if n <= 1:
            return nothing(n)
    return np.concatenate([by_halves(answer, X[part], nothing) for part in (slice(0, n // 2), slice(n // 2, n))])
