"""A query that was answered before gets the same answer and costs nothing.

Answering it again with fresh noise would cost again, and whoever asks often enough could average the noise away.
Queries are the same where their features are the same byte for byte, after canonical encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from threading import Condition, Lock

import numpy as np

from quorate.stored_names import stored_as
from quorate.types import IntArray


def distinct(digests: Sequence[bytes]) -> tuple[IntArray, IntArray]:
    """Find the first row of every distinct query.

    Parameters
    ----------
    digests : sequence of bytes
        One canonical digest a row.

    Returns
    -------
    first : IntArray
        ``(n_distinct,)``, the row in which each distinct query appears first, in order of appearance.
    which : IntArray
        ``(n_rows,)``, for every row the index into `first` of its query.

    Examples
    --------
    >>> first, which = distinct([b"a", b"b", b"a"])
    >>> first.tolist(), which.tolist()
    ([0, 1], [0, 1, 0])
    """
    seen: dict[bytes, int] = {}
    which = np.fromiter((seen.setdefault(digest, len(seen)) for digest in digests), dtype=np.int64, count=len(digests))
    first: IntArray = np.unique(which, return_index=True)[1].astype(np.int64)
    return first, which


@stored_as("quorate.labelling.memo.Memo")
class Memo:
    """Released answers by the digest of their query. What it holds was released, so it may be printed.

    Parameters
    ----------
    answers : mapping of bytes to int, optional
        What was released so far: class codes, -1 for declined.

    Examples
    --------
    >>> memo = Memo({b"a": 1})
    >>> memo.remember([b"b"], [0])
    >>> [memo.recall(digest) for digest in (b"a", b"b", b"c")]
    [1, 0, None]
    """

    def __init__(self, answers: Mapping[bytes, int] | None = None) -> None:
        self._answers = dict(answers or {})
        # Held while a batch is planned, so that two threads do not pay for one query twice; `under_way` are the queries
        # that are being drawn by a thread that does not hold it.
        self.lock = Condition(Lock())
        self.under_way: set[bytes] = set()

    def remember(self, digests: Iterable[bytes], answers: Iterable[int]) -> None:
        """Keep answers; the first answer to a query stays."""
        for digest, answer in zip(digests, answers, strict=True):
            self._answers.setdefault(digest, answer)

    def recall(self, digest: bytes) -> int | None:
        """Return the class code (or -1 for declined) released for this query, or None where it was never asked."""
        return self._answers.get(digest)

    def await_answers(self, digests: Set[bytes]) -> None:
        """Wait, with the lock held, until none of these queries is under way: its answer is then remembered."""
        self.lock.wait_for(lambda: self.under_way.isdisjoint(digests))

    @contextmanager
    def drawing(self, digests: Set[bytes]) -> Iterator[None]:
        """Let others plan and draw other queries while these are drawn; the lock is not held meanwhile."""
        self.under_way |= digests
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()
            self.under_way -= digests
            self.lock.notify_all()

    def __len__(self) -> int:
        return len(self._answers)
