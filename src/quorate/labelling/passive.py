"""Passive student queries: every query is fixed before the first answer (LZCW21 Alg. 3; BTT18 Alg. 3).

The order that the guarantee rests on is kept block by block: mark as drawn → durable → draw the noise → store →
go on. A block that was marked but not stored when the process died was perhaps drawn, so it is never drawn again:
it counts as answered and comes out declined, with a reason of its own. A resumed run therefore ends, charges
nothing twice and draws nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.labelling.released import Gathering, Released
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.types import IntArray, Secret

BLOCK = 64  # queries a block: what a crash costs at most, against two durable writes a block
PURPOSE = "label"

Progress = Callable[[int, int], None]


def label(
    counts: Secret[IntArray],
    mechanism: Mechanism,
    reservation: Reservation,
    noise: NoiseSource,
    *,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> Released:
    """Answer every query whose votes are given, from a reservation made for that many.

    Parameters
    ----------
    counts : Secret[IntArray]
        Votes ``(n_queries, n_classes)``.
    mechanism : Mechanism
        What may cross the boundary.
    reservation : Reservation
        Holds ``n_queries`` answers under the purpose "label", those of blocks drawn earlier included.
    noise : NoiseSource
        Addressed by purpose and by a block's first query, so that a seeded run that was killed and resumed repeats
        an unbroken one.
    block : int
        Queries a block.
    progress : callable, optional
        Called as ``progress(done, total)``.

    Returns
    -------
    Released
        In the order of the queries, those of earlier blocks included.

    Notes
    -----
    Privacy: the reservation pays for ``n_queries`` releases of `mechanism`, and each query is drawn at most once.
    """
    n_queries, n_classes = counts.reveal().shape
    gathering = Gathering(mechanism, n_queries=n_queries, n_classes=n_classes)
    done = 0
    for earlier in reservation.blocks(PURPOSE):
        gathering.put(earlier.first, earlier.count, earlier.answers)
        done = earlier.first + earlier.count
    while done < n_queries:
        if progress:
            progress(done, n_queries)
        drawn = reservation.draw(PURPOSE, min(block, n_queries - done))  # durable before any noise exists
        rows = counts.reveal()[drawn.first : drawn.first + drawn.count]
        answers = mechanism.release_many(rows, noise.at(PURPOSE, drawn.first)).tolist()
        reservation.store(drawn, answers)  # durable before anybody sees it
        gathering.put(drawn.first, drawn.count, answers)
        done = drawn.first + drawn.count
    if progress:
        progress(n_queries, n_queries)
    return gathering.released()
