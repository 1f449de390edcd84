"""What a ledger needs of the place where it is kept, and a place in memory, of which nothing durable is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from quorate.ledger.state import GENESIS, Head


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEntry:
    """What a store holds: the lines as they are, unverified, and the anchored head."""

    lines: tuple[object, ...]
    anchor: Head


@runtime_checkable
class LedgerStore(Protocol):
    """Keeps the lines of one ledger, in order. It decides nothing: the chain and its rules are checked above it.

    Formal guarantees
    -----------------
    - When :meth:`append` returns, all its lines and the new anchor are on stable storage (if :attr:`durable`).
    - If the process dies at any moment, all lines of an :meth:`append` are there, or none; the anchor never names
      an entry that is not there.
    - Nobody else appends between :meth:`begin` and :meth:`append` or :meth:`abandon`.
    - Whatever goes wrong raises: :class:`~quorate.errors.LedgerBusy` where another process holds the ledger,
      :class:`~quorate.errors.LedgerIntegrityError` otherwise. A ledger uses a store no more after an error, but for
      ``LedgerBusy`` of :meth:`begin`: nothing was begun then, and it may be tried again.
    - The message of an error goes to the log of a service. It holds no line that was to be stored.
    """

    @property
    def durable(self) -> bool:
        """Whether entries outlive the process."""

    @property
    def in_place(self) -> bool:
        """Whether what holds the ledger is still where it was opened, as far as that is seen at once."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What is recorded about the store when a session starts: its kind and version."""

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, oldest first, and the anchor."""

    def begin(self, after: int, /) -> Sequence[object]:
        """Begin to write; return the lines beyond ``after`` that others appended (none in an exclusive store)."""

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append in one atomic, durable step; then anchor ``head``, the last of them."""

    def abandon(self) -> None:
        """End what :meth:`begin` began, with nothing written."""

    def anchor(self, head: Head) -> None:
        """Anchor a head that is in the chain already."""

    def close(self) -> None:
        """Let go of the ledger. May be called again."""


class MemoryStore:
    """Keeps lines in a list; they end with the process.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.durable, store.load().lines
    (False, ())
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._anchor = GENESIS
        self.commits = 0

    @property
    def durable(self) -> bool:
        """False: nothing outlives the process."""
        return False

    @property
    def in_place(self) -> bool:
        """True."""
        return True

    @property
    def facts(self) -> Mapping[str, str]:
        """The store's kind."""
        return {"store": "memory"}

    def load(self, after: int = 0) -> StoredEntry:
        """Return all lines beyond ``after``, and the anchor."""
        return StoredEntry(lines=tuple(self._lines[after:]), anchor=self._anchor)

    def begin(self, after: int, /) -> Sequence[str]:
        """Begin to write: nobody else can have appended."""
        return self._lines[after:]

    def append(self, lines: Sequence[str], head: Head) -> None:
        """Append, then anchor."""
        self._lines.extend(lines)
        self._anchor = head
        self.commits += 1

    def abandon(self) -> None:
        """End what was begun."""

    def anchor(self, head: Head) -> None:
        """Anchor a head."""
        self._anchor = head

    def close(self) -> None:
        """Nothing is held."""
