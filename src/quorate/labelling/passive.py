"""Passive student queries: every query is fixed before the first answer (LZCW21 Alg. 3; BTT18 Alg. 3).

The order that the guarantee rests on is kept block by block: mark as drawn → durable → draw the noise → store →
go on. A block that was marked but not stored when the process died was perhaps drawn, so it is never drawn again:
it counts as answered and comes out declined, with a reason of its own. A resumed run therefore ends, charges
nothing twice and draws nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.labelling.block_answers import answering
from quorate.labelling.release_log import ReleaseBuilder, Released
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.release import check_covered
from quorate.release.charge import LABEL
from quorate.types import FloatArray, IntArray, Secret

BLOCK = 64  # queries a block: what a crash costs at most, against two durable writes a block
_MOST_BLOCKS = 32  # where there are many queries: a crash then costs one answer in so many, and a run waits for no disk

ROUNDS = 5  # how often a student is fitted anew for an interactive mechanism

Progress = Callable[[int, int], None]
Predict = Callable[[Released], FloatArray | None]


def label(
    counts: Secret[IntArray] | Secret[FloatArray],
    mechanism: Mechanism,
    reservation: Reservation,
    noise: NoiseSource,
    *,
    block: int = BLOCK,
    predict: Predict | None = None,
    progress: Progress | None = None,
    fewer: bool = False,
) -> Released:
    """Answer every query whose votes are given, from a reservation made for that many.

    `counts`: votes ``(n_queries, n_classes)``; for soft labels the teachers' scores ``(n_queries, n_teachers)``. A
    stream ends with this call: its open stage is given up. `reservation`: holds ``n_queries`` answers of `mechanism`
    under the purpose "label", those of blocks drawn earlier included. `noise`: addressed by purpose and by a block's
    first query. `block`: queries a block, ≥ 1. `predict`: for an interactive mechanism; ``predict(released)`` returns a
    student's class probabilities ``(n_queries, n_classes)`` from what was released so far, and is asked anew after
    every fifth of the queries. `progress`: called as ``progress(done, total)`` before each block and at the end.
    `fewer`: whether there may be fewer queries than the reservation holds labels; the rest stays there, for questions
    that come later.

    Returns the answers in the order of the queries, those of earlier blocks included. Raises InvalidParameter if the
    votes are no table, the reservation is for another number of queries, or it did not pay for this mechanism; nothing
    is drawn then.

    Privacy: the reservation pays for ``n_queries`` releases of `mechanism`, and each query is drawn at most once. A
    seeded run that was killed and resumed repeats an unbroken one with the same `block`, but for the block that was in
    flight; a stream also loses its open stage, and goes on with other thresholds. With another block size a run draws
    other noise: an address belongs to a block, not to a query.
    """
    count("block", block, at_least=1)
    if counts.reveal().ndim != 2:
        raise InvalidParameter("counts must be votes (n_queries, n_classes); pass one row per query")
    n_queries, n_classes = counts.reveal().shape
    reserved = check_covered(reservation, LABEL, mechanism)
    if reserved != n_queries and not (fewer and reserved > n_queries):
        raise InvalidParameter(
            f"counts must have one row for each of the {reserved:,} labels reserved, got {n_queries:,}; the queries "
            "of a run are fixed before its first answer"
        )
    in_ledger = partial(_stored, mechanism, reservation, n_queries=n_queries, n_classes=n_classes)
    done = sum(earlier.count for earlier in reservation.blocks(LABEL) if earlier.first < n_queries)
    answers_by = answering(mechanism, reservation)
    round_ = block * max(1, n_queries // (ROUNDS * block))
    predictions, learned = None, 0  # from the first so many answers: the same ones after a restart
    while done < n_queries:
        if predict is not None and done - done % round_ > learned:
            learned = done - done % round_
            predictions = predict(in_ledger().released(before=learned))
        if progress:
            progress(done, n_queries)
        size = min(block, n_queries - done)
        drawn, _ = answers_by.answer(
            LABEL,
            size,
            lambda drawn: counts.reveal()[drawn.first : drawn.first + drawn.count],
            noise,
            predictions=None if predictions is None else predictions[done : done + size],
        )
        done = drawn.first + drawn.count
    if progress:
        progress(n_queries, n_queries)
    return in_ledger().released()  # with what another server, which shares the ledger, has stored meanwhile


def block_size(n_queries: int, noise: NoiseSource, *, informed: bool) -> int:
    """How many labels are drawn and stored together: seeded noise, and a student asked in between, hang on that."""
    return BLOCK if noise.seeded or informed else max(BLOCK, -(-n_queries // _MOST_BLOCKS))


def stored_labels(
    mechanism: Mechanism, reservation: Reservation, *, n_classes: int, n_queries: int | None = None
) -> Released:
    """Read the labels that a ledger holds, after a restart.

    `n_queries`: where it may be less than that of the labels that are reserved.
    """
    reserved = check_covered(reservation, LABEL, mechanism)
    n_queries = reserved if n_queries is None else n_queries
    return _stored(mechanism, reservation, n_queries=n_queries, n_classes=n_classes).released()


def _stored(mechanism: Mechanism, reservation: Reservation, *, n_queries: int, n_classes: int) -> ReleaseBuilder:
    builder = ReleaseBuilder(mechanism, n_queries=n_queries, n_classes=n_classes)
    for block in reservation.blocks(LABEL):
        if block.first >= n_queries:  # a question that came later
            break
        builder.put(block.first, block.count, block.answers)
    return builder
