"""A block of answers: marked as drawn → durable → its noise → stored → told. The one place where that is done.

Noise for a release is had from a :class:`DrawnBlock` alone, and a block is durably drawn before there is one. So an
answer that was perhaps drawn is in the ledger, whenever a process dies; and it is there as drawn, so that it is never
drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from quorate.ledger import Block, Part, Receipt, Reservation
from quorate.noise import NoiseSource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """A block that is marked as drawn, durably: what its noise is had from, and where its answers go.

    Parameters
    ----------
    reservation : Reservation
        What pays for it.
    block : Block
        The block, as :meth:`~quorate.ledger.Reservation.draw` returned it.
    """

    reservation: Reservation
    block: Block

    @property
    def first(self) -> int:
        """Number of its first answer among the reservation's answers for this purpose, from 0."""
        return self.block.first

    @property
    def count(self) -> int:
        """How many answers it holds."""
        return self.block.count

    def noise(self, source: NoiseSource) -> NoiseSource:
        """Return the noise of these answers: the stream of `source` at their purpose and number."""
        return source.at(self.block.purpose, self.block.first)

    def store(self, answers: object) -> Receipt:
        """Record the answers, durably; only then may anybody see them."""
        return self.reservation.store(self.block, answers)

    def answer(
        self, compute: Callable[[DrawnBlock], T], *, record: Callable[[T], object] = lambda answers: answers
    ) -> T:
        """Compute the answers, store them, and only then return them; the arguments are those of :func:`release`."""
        answers = compute(self)
        self.store(record(answers))  # durable before anybody sees it
        return answers


def draw(
    reservation: Reservation,
    purpose: str,
    count: int = 1,
    *,
    stage: int | None = None,
    after: Block | None = None,
    parts: Sequence[Part] | None = None,
) -> DrawnBlock:
    """Count answers as given; they are on stable storage when this returns.

    Parameters
    ----------
    reservation, purpose, count, stage, after, parts
        As in :meth:`quorate.ledger.Reservation.draw`.
    """
    if stage is None and parts is None:
        return DrawnBlock(reservation, reservation.draw(purpose, count))
    return DrawnBlock(reservation, reservation.draw(purpose, count, stage=stage, after=after, parts=parts))


def release(
    reservation: Reservation,
    purpose: str,
    count: int,
    compute: Callable[[DrawnBlock], T],
    *,
    record: Callable[[T], object] = lambda answers: answers,
    parts: Sequence[Part] | None = None,
) -> tuple[DrawnBlock, T]:
    """Draw a block, compute its answers, store them, and only then return them.

    Parameters
    ----------
    reservation : Reservation
        With `count` answers left for `purpose`.
    purpose : str
        What the answers are for.
    count : int
        How many, at least 1.
    compute : callable
        From the drawn block to its answers, with noise of ``drawn.noise(source)`` and no other.
    record : callable, optional
        From the answers to the JSON that is stored; the answers as they are by default.
    parts : sequence of Part, optional
        The requests of several clients that share the block.

    Returns
    -------
    drawn : DrawnBlock
        The block.
    answers
        What `compute` returned.

    Raises
    ------
    BudgetExhausted
        If fewer answers are left; nothing is drawn then.
    QuotaExhausted
        If fewer are left of a client's quota; nothing is drawn then.

    Notes
    -----
    Whatever goes wrong between draw and store leaves a block that counts as given and has no answers. It is never drawn
    again.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise, discrete_laplace
    >>> reservation = Ledger(budget=Budget(1.0, 1e-5)).reserve(PureDP(1.0), delta=0, purposes={"sum": 1}, key="sum")
    >>> secret = 40
    >>> drawn, sums = release(
    ...     reservation, "sum", 1,
    ...     lambda drawn: [secret + int(z) for z in discrete_laplace(1.0, 1, drawn.noise(SeededNoise(0)))])
    >>> reservation.blocks("sum")[0].answers == sums
    True
    """
    drawn = draw(reservation, purpose, count, parts=parts)
    return drawn, drawn.answer(compute, record=record)
