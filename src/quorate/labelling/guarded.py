"""A mechanism of a user's own while it answers: what it raises on votes is told to nobody, and answers are looked at.

An exception's message may hold the votes that it failed on. So it is left out, and so is the exception itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism, StreamMechanism, check_answers, check_state, check_step, is_own
from quorate.noise import NoiseSource
from quorate.types import IntArray

T = TypeVar("T")

CHARGED = "what was charged stays charged, and the queries of this block count as answered"


def guarded(mechanism: Any) -> Any:
    """Return what is asked in place of a mechanism: itself, or for one of a user's own a guard around it.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> guarded(NoisyCounts(sigma=5.0))
    NoisyCounts(sigma=5.0, form='histogram')
    """
    return Guarded(mechanism) if is_own(mechanism) else mechanism


@dataclass(frozen=True, slots=True)
class _State:
    """A stream's state, of which nothing but the number of stages is touched without a guard."""

    stages_spent: int
    own: Any


@dataclass(frozen=True, slots=True)
class Guarded:
    """Asks a mechanism of a user's own."""

    mechanism: Mechanism

    @property
    def takes(self) -> str:
        """What it looks at."""
        return self.mechanism.takes

    def release_many(self, counts: Any, noise: NoiseSource, *more: Any) -> IntArray:
        """Answer each row; the answers are what the mechanism declares, or none of them is stored."""
        answer: Any = self.mechanism.release_many  # type: ignore[attr-defined]  # one that answers each query

        def looked_at() -> IntArray:
            answers: IntArray = answer(counts, noise, *more)
            check_answers(self.mechanism, answers, n_queries=len(counts), n_classes=counts.shape[1])
            return answers

        return untold(self.mechanism, looked_at)

    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> _State:
        """Open a run of a stream."""

        def looked_at() -> _State:
            state = self._stream.init(noise, stages_spent=stages_spent, asked=asked)
            return _State(check_state(self._stream, state, spent=stages_spent), state)

        return untold(self.mechanism, looked_at)

    def step(self, state: _State, row: Any, noise: NoiseSource, /) -> tuple[_State, int | None]:
        """Answer one query of a stream; the answer is what the mechanism declares, or it is not stored."""

        def looked_at() -> tuple[_State, int | None]:
            spent = state.stages_spent
            stepped = self._stream.step(replace(state.own, stages_spent=spent), row, noise)
            after, answer = check_step(self._stream, stepped, row=row, spent=spent)
            return _State(after, stepped[0]), answer

        return untold(self.mechanism, looked_at)

    @property
    def _stream(self) -> StreamMechanism:
        assert isinstance(self.mechanism, StreamMechanism)  # noqa: S101 - the caller's condition
        return self.mechanism


def untold(mechanism: Mechanism, answer: Callable[[], T]) -> T:
    """Return what `answer` does, and turn whatever it raises on votes into one line that tells nothing of them.

    Raises
    ------
    InvalidParameter
        In place of any exception.
    """
    with suppress(Exception, SystemExit):  # the user's own code, on votes; what ends a process has a message too
        return answer()
    # After the exception is gone, so that it does not travel with this one.
    raise InvalidParameter(
        f"mechanism {type(mechanism).__name__} fails on the votes of this run, or does not answer as it declares; "
        "how is not told, since that may hold votes. Try it on votes of your own making",
        charged=CHARGED,
    )
