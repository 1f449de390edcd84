"""A block of answers: paid for → marked as drawn → durable → its noise → stored → told. The one place for that.

Noise for a release is had from a :class:`DrawnBlock` alone, and a block is durably drawn before there is one. So an
answer that was perhaps drawn is in the ledger, whenever a process dies; and it is there as drawn, so that it is never
drawn again. Whether a reservation paid for what is about to be drawn is checked before anything is.

What ends a process at once (``kill -9``, a power cut) loses a block that is drawn and not stored. Ctrl-C, SIGTERM and
a terminal that is closed do not: in the main thread they wait until its answers are stored (:func:`uninterrupted`).

Labels come in blocks; an evaluation or a choice is released once (:func:`release_once`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from quorate.accounting import Composed, Event, Parallel, Repeated
from quorate.errors import InvalidParameter
from quorate.ledger import Block, Part, Receipt, Reservation
from quorate.mechanisms import Mechanism, StreamMechanism
from quorate.noise import NoiseSource
from quorate.release.charge import STAGE
from quorate.types import IntArray, Secret

T = TypeVar("T")

_STOPPING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_INSISTED: Final = 3  # signals: somebody who sends so many does not want to wait


_under_way = False  # whether a block of the main thread is


def is_uninterrupted() -> bool:
    """Whether signals are put off now."""
    return _under_way


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off signals that stop a process until the end of the block, in the main thread; elsewhere Python hears none.

    What is drawn is paid for, and an interrupt before its answers are stored would lose it. A handler of Python's own
    takes the place of each one for so long; then the old ones are back, and get what arrived. From the third signal on
    they get it at once. A signal that is ignored, or whose handler is not Python's, is left alone.
    """
    global _under_way
    if _under_way or threading.current_thread() is not threading.main_thread():
        yield
        return
    late: dict[int, FrameType | None] = {}
    owner, heard = os.getpid(), 0
    all_handlers = {int(number): signal.getsignal(number) for number in _STOPPING}
    handlers = {number: own for number, own in all_handlers.items() if callable(own) or own is signal.SIG_DFL}

    def put_off(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if _under_way and heard < _INSISTED and os.getpid() == owner:
            late[number] = frame
            return
        late.clear()  # behind the block, should a signal have come while handlers were put back, and in a child
        _deliver(handlers[number], number, frame)

    try:
        _under_way = True
        for number in handlers:
            signal.signal(number, put_off)
        yield
    finally:  # an error of the block stays the context of what a handler raises
        _under_way = False
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _deliver_each([(handlers[number], number, frame) for number, frame in late.items()])


def _deliver_each(arrived: Sequence[tuple[Any, int, FrameType | None]]) -> None:
    """Call each handler, also where that of another raises."""
    if arrived:
        try:
            _deliver(*arrived[0])
        finally:
            _deliver_each(arrived[1:])


def _deliver(handler: Any, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)
    else:
        signal.signal(number, handler)
        signal.raise_signal(number)


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """A block that is marked as drawn, durably: what its noise is had from, and where its answers go.

    `reservation`: what pays for it. `block`: as :meth:`~quorate.ledger.Reservation.draw` returned it.
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
    """Count answers as given, as :meth:`quorate.ledger.Reservation.draw` does; they are durable when this returns."""
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
    """Draw a block, compute its answers, store them, and only then return the block and them.

    `reservation`: with `count` ≥ 1 answers left for `purpose`. `compute`: from the drawn block to its answers, with
    noise of ``drawn.noise(source)`` and no other. `record`: from the answers to the JSON that is stored; the answers as
    they are by default. `parts`: the requests of several clients that share the block. Raises BudgetExhausted or
    QuotaExhausted if fewer answers are left, in all or of a client's quota; nothing is drawn then. Whatever goes wrong
    between draw and store leaves a block that counts as given and has no answers. It is never drawn again. In the main
    thread a signal that stops the process waits until the answers are stored, so that `compute` must be short.
    """
    with uninterrupted():
        drawn = draw(reservation, purpose, count, parts=parts)
        return drawn, drawn.answer(compute, record=record)


class Priced(Protocol):
    """A mechanism, as far as its price goes."""

    @property
    def event(self) -> Event:
        """Price of one answer; of a whole run, where the mechanism has a state (``init``)."""
        ...


def check_covered(reservation: Reservation, purpose: str, mechanism: Priced) -> int:
    r"""Return how many answers of `mechanism` a reservation holds for one purpose, drawn ones included.

    The ledger knows what was charged, not what is drawn. Without this look, the answers of a noisier mechanism could
    pay for those of a less noisy one, or one charge for the answers of two purposes, and nothing would show it.

    `reservation`: what was charged. `purpose`: what the answers are for. `mechanism`: what is going to answer: for its
    event each time, or for one event in a whole run. Raises InvalidParameter if nothing was reserved for `purpose`, or
    what pays for it does not hold the mechanism's event once for *every* answer that it pays for, of whatever purpose
    (once, for a stream with its stages). What pays is the part of the charged event that the reservation names
    (``charged_to``), or else the whole event, for all purposes.

    Let N answers be paid by a multiset E of single events, and let every mechanism M that answers have N M within E.
    Then of each single event l the answers take at most :math:`\sum_M n_M M_l \le \max_M N M_l \le E_l`, whichever
    mechanisms answer how many of them: what is drawn never passes what was charged. A stream has no such sum with
    others, so what has stages answers by streams alone. The look is at the reservation as it was made; it does not
    depend on what was drawn before.
    """
    reserved = reservation.purposes.get(purpose, 0)
    if reserved == 0:
        raise InvalidParameter(f'the reservation holds no answers for "{purpose}"; name it among the purposes')
    event, sharing = _paying(reservation, purpose)
    answers = sum(reservation.purposes[name] for name in sharing if name != STAGE)
    stream = isinstance(mechanism, StreamMechanism)
    purposes = " and ".join(f'"{name}"' for name in sharing if name != STAGE)
    if (STAGE in sharing) != stream:
        raise InvalidParameter(
            f"the reservation of {purposes} is for {'no stream' if stream else 'a stream with stages'}, got "
            f"{type(mechanism).__name__}; reserve the event of the mechanism that answers, a stream's with its stages"
        )
    paid, needed = single_events(event), single_events(Repeated(mechanism.event, 1 if stream else answers))
    if any(paid[one] < often for one, often in needed.items()) or answers > getattr(mechanism, "n_queries", answers):
        also = "" if stream or len(sharing) == 1 else ", and say with charged_to which part pays for which purpose"
        raise InvalidParameter(
            f"the reservation does not pay for {answers:,} answers of {type(mechanism).__name__} for {purposes}; "
            f"reserve the event of the mechanism that answers{also}"
        )
    return reserved


def single_events(event: Event) -> Counter[Event]:
    """Take an event apart: how often each single event stands in it."""
    if isinstance(event, Repeated):
        return Counter({one: event.times * often for one, often in single_events(event.event).items()})
    if isinstance(event, Composed):
        return sum((single_events(part) for part in event.events), Counter())
    return Counter({event: 1})


def _paying(reservation: Reservation, purpose: str) -> tuple[Event, list[str]]:
    """Return what pays for a purpose, and every purpose that it pays for."""
    charged_to, event = reservation.charged_to, reservation.event
    if charged_to is None:
        return event, list(reservation.purposes)
    if not isinstance(event, Composed | Parallel):  # the ledger refuses to make such a reservation
        raise InvalidParameter("the reservation names parts of an event that has none; reserve their Composed")
    return event.events[charged_to[purpose]], [name for name, part in charged_to.items() if part == charged_to[purpose]]


def release_once(
    sums: Secret[IntArray], mechanism: Mechanism, reservation: Reservation, noise: NoiseSource, *, purpose: str
) -> Any:
    """Release one answer to secret sums or scores, charged to a reservation, and return it as it stands in the ledger.

    `sums`: ``(n_sums,)``, what `mechanism` takes. `reservation`: with at least one answer left for `purpose`,
    ``"evaluation"`` or ``"tuning"``; or BudgetExhausted, and nothing is drawn. `noise`: addressed by purpose and by the
    number of the answer. Raises InvalidParameter as :func:`check_covered` does. A release that was marked as drawn when
    its process ended is lost: it was paid for, and is never drawn again.
    """
    check_covered(reservation, purpose, mechanism)

    def compute(drawn: DrawnBlock) -> list[Any]:
        return [np.asarray(mechanism.release(sums.reveal(), drawn.noise(noise))).tolist()]

    _, [answer] = release(reservation, purpose, 1, compute)
    return answer
