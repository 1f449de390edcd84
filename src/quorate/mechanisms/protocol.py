"""What every mechanism is: a price, and a way from secret counts to a public answer."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias, TypeVar

from quorate.accounting import Event
from quorate.noise import NoiseSource
from quorate.types import IntArray

#: How a declined query (⊥) stands in an array of answers; a single release returns None.
DECLINED: Final = -1

#: A class index (or another released integer), a released vector, or None where the mechanism declined.
Answer: TypeAlias = int | IntArray | None


class Mechanism(Protocol):
    """One query's secret counts in, one public answer out, for one event.

    A mechanism is a frozen value: its fields are public. What is computed from private data comes in as an
    argument, revealed, and leaves only as the answer. Whoever calls :meth:`release` has put :attr:`event` into
    the ledger before.
    """

    @property
    def event(self) -> Event:
        """Price of one call of :meth:`release`, and of each row of :meth:`release_many`."""
        ...

    def release(self, counts: IntArray, noise: NoiseSource) -> Answer:
        """Answer one query from its ``(n_classes,)`` int64 vote counts."""
        ...

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` int64 vote counts, as :meth:`release` would."""
        ...


StateT = TypeVar("StateT")


class InteractiveMechanism(Protocol[StateT]):
    """A mechanism with a state that is handed from query to query: one price for a whole run.

    The state is a frozen value. What is secret in it is a :class:`~quorate.types.Secret`; the rest is public.
    """

    @property
    def event(self) -> Event:
        """Price of one whole run."""
        ...

    def init(self, noise: NoiseSource) -> StateT:
        """Open a run."""
        ...

    def step(self, state: StateT, counts: IntArray, noise: NoiseSource) -> tuple[StateT, Answer]:
        """Answer one query from its ``(n_classes,)`` counts, and return the next state with the answer."""
        ...

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Run a whole stream ``(n_queries, n_classes)``, from :meth:`init` to its end."""
        ...
