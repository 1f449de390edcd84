"""Ctrl-C, SIGTERM and a terminal that is closed stop a command in the same way, and within seconds.

Each of them raises KeyboardInterrupt in the main thread, so that whatever is under way is left in order and worker
processes are ended. Python does that between two of its own instructions and no sooner; an exception that is raised in
a callback may also be lost. So a second thread hears of the signal as well, from the operating system, and ends the
process where it is still there after a while; a block that is drawn has longer, until its answers are stored. What is
stored stays either way, and workers end with their owner.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from quorate.errors import NOTHING_CHARGED, STANDS, Interrupted, QuorateError, note_charge

GRACE_SECONDS = 2.0
GRACE_OF_A_BLOCK = 60.0  # seconds, of answers that are drawn and not stored yet

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_stopped: list[int] = []  # the signals that were answered
_said: list[Interrupted] = []  # what is said of a stop, the innermost words last
_stored: list[Callable[[], str]] = []  # says what a block has stored, and what to type; the innermost last


def interruption() -> Interrupted:
    """Say what a stop leaves behind, in the words of the block that it broke off."""
    if _said:
        return _said[-1]
    return _stopped_with("what was charged before stays charged, and is never charged twice")


def _stopped_with(charged: str) -> Interrupted:
    words = "nothing is left half written; type the same command again"
    with suppress(QuorateError, OSError):
        words = _stored[-1]() if _stored else words
    return Interrupted(f"interrupted; {words}", charged=charged)


@contextmanager
def interrupted_as(words: Interrupted) -> Iterator[None]:
    """Have a stop of the block told in `words`, by whichever thread; at its end they go again."""
    _said.append(words)
    yield
    _said.remove(words)


@contextmanager
def charged_as(look: Callable[[], str | None], *, stored: Callable[[], str]) -> Iterator[None]:
    """Have a stop or an error of the block say what was charged, as `look` finds it at its end. Where that takes too
    long or cannot be said, the words of every stop are. `stored`: says what a stop has stored, and what to type; called
    by whichever thread, so that it opens no ledger.
    """
    _stored.append(stored)
    try:
        yield
        _stored.remove(stored)
    except BaseException as error:
        charge = None
        with suppress(QuorateError, OSError):
            charge = look()
        if charge is not None and isinstance(error, KeyboardInterrupt):
            _said.append(_stopped_with(charge))
        elif charge is not None:
            note_charge(charge)  # for the error that stands in place of one of a library
            if isinstance(error, QuorateError) and error.charged in (NOTHING_CHARGED, STANDS):
                error.charged = charge
        raise


@contextmanager
def stopping(at_last: Callable[[], NoReturn]) -> Iterator[None]:
    """Have the block stopped by signals: at once by KeyboardInterrupt, else by `at_last` after two seconds, in another
    thread, which ends the process. A signal that is ignored (``nohup``, a job in the background) stays ignored. Outside
    the main thread, where Python hears no signals, the block just runs.
    """
    _said.clear()  # an earlier command of this process, broken off, has left its words
    _stored.clear()
    heard = [number for number in _SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread() or not heard:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    over = threading.Event()
    before = {number: signal.signal(number, _interrupt) for number in heard}
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reader, over, at_last), name="quorate signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        if not _stopped:  # where it was, the way out of the interpreter counts too
            over.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(writer)  # which ends the listener


def _interrupt(number: int, _: object) -> None:
    _stopped.append(number)
    raise KeyboardInterrupt


@atexit.register
def _leave() -> None:
    """Skip what the interpreter does last after a stop, for seconds. Registered first, so that it is called last."""
    if _stopped:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(Interrupted.exit_code)


def _listen(reader: int, over: threading.Event, at_last: Callable[[], NoReturn]) -> None:
    while number := os.read(reader, 1):
        if number[0] in _SIGNALS and not _is_over(over):
            with suppress(OSError):
                if sys.stderr.isatty():
                    sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
            at_last()
    os.close(reader)


def _is_over(over: threading.Event) -> bool:
    """Wait for the end of what is stopped, and tell whether it came in time."""
    block = sys.modules.get("quorate.release.block")  # which no command loads for this alone
    grace, step = GRACE_SECONDS, 0.1
    until = time.monotonic() + GRACE_OF_A_BLOCK
    while grace > 0 and not over.wait(step):
        if block is None or not block.is_uninterrupted() or time.monotonic() > until:
            grace -= step
    return over.is_set()
