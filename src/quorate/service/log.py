"""Where lines of the log go: a queue with an end, and a thread that writes. Whoever says something never waits for it.

A disk that is full, a pipe that nobody reads, a reader that ended: lines are dropped and counted, and answers go on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from select import select
from typing import Final

MOST: Final = 10_000  # lines that wait
_AFTER_A_CUT: Final = {False: "", True: "\n"}


class Log:
    r"""Writes lines to a descriptor of its own.

    `descriptor`: where to; it is closed at the end. None, where there is no such place: then every line is dropped.
    `most`: lines that may wait; further ones are dropped.
    """

    def __init__(self, descriptor: int | None, *, most: int = MOST) -> None:
        self._descriptor, self._most = descriptor, most
        self._lines: deque[str] = deque()
        self._turn = threading.Condition()
        self._ending = self._cut = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="quorate log", daemon=True)
        self._thread.start()

    @classmethod
    def to_stderr(cls) -> Log:
        """Return one that writes to standard error, where this process has one."""
        descriptor = None
        with suppress(OSError, ValueError, AttributeError):
            descriptor = os.dup(sys.stderr.fileno())
        return cls(descriptor)

    def write(self, line: str) -> None:
        """Have a line written, or drop it; this does not wait."""
        with self._turn:
            if len(self._lines) >= self._most or self._ending:
                self.dropped += 1
            else:
                self._lines.append(line)
                self._turn.notify()

    def close(self, seconds: float = 2.0) -> None:
        """Write what waits, for so long at most."""
        with self._turn:
            self._ending = True
            self._turn.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._lines or self._ending)
                if not self._lines:
                    break
                line = self._lines.popleft()
            try:
                self._put(line)
            except OSError:
                with self._turn:
                    self.dropped += 1
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _put(self, line: str) -> None:
        if self._descriptor is None:
            raise OSError
        rest = f"{_AFTER_A_CUT[self._cut]}{line}\n".encode("utf-8", "backslashreplace")
        self._cut = False
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select([], [self._descriptor], [])  # somebody made the pipe one that does not wait
            except OSError:
                self._cut = True  # perhaps a part of the line stands there
                raise
