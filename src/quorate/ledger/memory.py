"""A store in memory: for tests, and for runs of which nothing durable is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorate.ledger.state import GENESIS, Head
from quorate.ledger.store import StoredEntry


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
