"""Questions that come in later: which were answered before, and which of several clients' become one block.

A query that was answered before gets the same answer and costs nothing. Answering it again with fresh noise would cost
again, and whoever asks often enough could average the noise away. Queries are the same where their features are the
same byte for byte, after canonical encoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Condition, Lock

import numpy as np

from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed, QuorateError, QuotaExhausted
from quorate.ledger import Part, Receipt, Reservation, SharedDraw
from quorate.ledger.rules import KEY_USED
from quorate.stored_names import stored_as
from quorate.types import IntArray


def distinct(digests: Sequence[bytes]) -> tuple[IntArray, IntArray]:
    """Find the first row of every distinct query, by one canonical digest a row.

    Returns ``(n_distinct,)``, the row in which each distinct query appears first, in order of appearance; and
    ``(n_rows,)``, for every row the index of its query.
    """
    numbers: dict[bytes, int] = {}
    which = np.fromiter(
        (numbers.setdefault(digest, len(numbers)) for digest in digests), dtype=np.int64, count=len(digests)
    )
    first: IntArray = np.unique(which, return_index=True)[1].astype(np.int64)
    return first, which


@stored_as("quorate.labelling.memo.Memo")
class Memo:
    """Released answers by the digest of their query: class codes, -1 for declined. All of it was released."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientRequest:
    """What one client asks.

    `client`: who asks, as the ledger records it; a quota of this name bounds it. `digests`: one canonical digest a
    query. `key`: idempotency key of this client; another body under the same key is refused. `body`: digest of the
    whole request; by default that of its queries. `quota`: the most answers that the client is ever given, where that
    is less than its quota in the ledger. It goes by the answers that are counted when the request is planned: two
    threads must not ask for such a client at once.
    """

    client: str
    digests: Sequence[bytes]
    key: str | None = None
    body: str | None = None
    quota: int | None = None

    def __post_init__(self) -> None:
        if not self.digests:
            raise InvalidParameter("digests must hold one query at least")
        if self.key is not None and self.body is None:
            object.__setattr__(self, "body", sha256(b"".join(self.digests)).hexdigest())


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """What one client is told.

    `codes`: ``(n_queries,)`` class codes; -1 for declined, -2 for never asked. `charged`: how many answers were drawn
    for this client: queries that were asked before, or by another client whose request was answered together with this
    one, are not among them. `receipt`: of the charge; None where nothing was charged.
    """

    codes: IntArray
    charged: int
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """Requests that are drawn as one block, their parts, and the places of its queries among those of all requests."""

    share: SharedDraw
    requests: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


class Planning:
    """Goes through requests in order; each is free by the memo, whose lock is held, joins a block, or is refused by
    itself. `closed`: from a number of queries to the refusal, where the mechanism is closed.
    """

    def __init__(
        self,
        requests: Sequence[ClientRequest],
        memo: Memo,
        reservation: Reservation,
        purposes: Sequence[str],
        closed: Callable[[int], BudgetExhausted] | None,
    ) -> None:
        for purpose in purposes:
            reservation.remaining(purpose)  # a ledger that was closed, or stopped, refuses all of them
        self.blocks = [PlannedBlock(reservation.share(purpose)) for purpose in purposes]
        self.refused: dict[int, QuorateError] = {}
        self._memo, self._closed = memo, closed
        self._claimed: set[bytes] = set()
        self._by_client: Counter[str] = Counter()
        self._bodies: dict[tuple[str, str], str | None] = {}
        offset = 0
        for number, request in enumerate(requests):
            try:
                self._take(number, request, offset)
            except (BudgetExhausted, QuotaExhausted, PreconditionFailed) as refusal:
                self.refused[number] = refusal
            offset += len(request.digests)

    def _take(self, number: int, request: ClientRequest, offset: int) -> None:
        if self._is_answered(request):
            return
        new = {
            digest: offset + row
            for row, digest in reversed(list(enumerate(request.digests)))  # so that its first row stands for it
            if digest not in self._claimed and self._memo.recall(digest) is None
        }
        if not new:
            return
        if self._closed is not None:
            raise self._closed(len(new))
        if request.quota is not None:
            drawn = self._by_client[request.client] + len(new)
            self.blocks[0].share.check_quota(request.client, drawn, request.quota)
        block = self._joined(Part(client=request.client, count=len(new), key=request.key, body=request.body))
        block.requests.append(number)
        block.rows.extend(sorted(new.values()))
        self._claimed.update(new)
        self._by_client[request.client] += len(new)

    def _is_answered(self, request: ClientRequest) -> bool:
        """Whether the stored answer must be told; a key of another request is refused, even where nothing is drawn."""
        if request.key is None or request.body is None:
            return False
        if self._bodies.setdefault((request.client, request.key), request.body) != request.body:
            raise PreconditionFailed(KEY_USED)
        return self.blocks[0].share.answered(request.client, request.key, request.body)

    def _joined(self, part: Part) -> PlannedBlock:
        """Join the first block whose purpose has as many answers left."""
        *others, last = self.blocks
        for block in others:
            try:
                block.share.add(part)
            except BudgetExhausted:
                continue
            return block
        last.share.add(part)
        return last
