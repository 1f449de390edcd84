"""Run a command for so long as its own time lasts, and end all that it started.

Its own time is the CPU time of its processes, and the time in which no thread of theirs wants a processor: a command
that sleeps or waits uses it up. Time in which it waits for its turn does not count, so that one slow teacher makes no
other late.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quorate.ensemble.command.place import CallFolder
from quorate.ensemble.lifetime import MARK, end_marked, new_mark

_LOOK_SECONDS = 0.1  # how often its time is counted
_PROC = Path("/proc")
_WANTS_A_TURN = frozenset("RD")  # running or to be run, or waiting for a disk that others use too


class Ending(NamedTuple):
    """How a command ended."""

    code: int  # its exit code; less than 0: it was killed
    late: bool  # whether its time was up


def run_command(
    arguments: Sequence[str],
    folder: CallFolder,
    *,
    environment: Mapping[str, str],
    seconds: float,
    words: BinaryIO | None = None,
) -> Ending:
    """Run a command in a session of its own, without a shell, and end whatever it leaves.

    `arguments`: the program and its arguments. `folder`: its working directory. `environment`: all that it finds in its
    environment, but for the mark by which its processes are known. `seconds`: its own time, after which it is killed.
    Where the kernel does not show processes (other than Linux), a command is waited for however long it takes. `words`:
    what it prints goes here; nowhere by default, since it may quote private rows. Raises OSError if the program cannot
    be started.
    """
    mark = new_mark()
    started = subprocess.Popen(  # noqa: S603 - the owner's own command, and no shell reads it
        list(arguments),
        cwd=folder.path,
        env={**environment, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if words is None else words,
        stderr=subprocess.DEVNULL if words is None else words,
        start_new_session=True,
    )
    try:
        folder.watch(started.pid)
        late = not _wait(started, seconds)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        end_marked(mark)
        started.wait()
        folder.watch(None)
    return Ending(started.returncode, late)


def _wait(started: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until it ends, and return True; False where its own time is up before."""
    idle, most, before = 0.0, 0.0, time.monotonic()
    look = _LOOK_SECONDS
    while True:
        with suppress(subprocess.TimeoutExpired):
            started.wait(look)
            return True
        used = _used(started.pid)
        now = time.monotonic()
        if used is not None:
            most = max(most, used.cpu_seconds)
            if not used.wants_a_turn:
                idle += min(look, now - before)  # never more than was meant: whoever looks late counts less
        before = now
        if most + idle > seconds:
            return False
        look = min(1.0, max(_LOOK_SECONDS, (seconds - most - idle) / 20))


class _Used(NamedTuple):
    cpu_seconds: float
    wants_a_turn: bool


def _used(session: int) -> _Used | None:
    """Add up what the processes of a session have used; None where the kernel does not show them."""
    if not _PROC.joinpath("self", "stat").exists():
        return None
    ticks, wants = 0, False
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            fields = (folder / "stat").read_text("latin-1").rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(
                    map(int, fields[11:15])
                )  # user and system time, its own and of children that it waited for
                wants = wants or _any_wants_a_turn(folder)
    return _Used(ticks / os.sysconf("SC_CLK_TCK"), wants)


def _any_wants_a_turn(process: Path) -> bool:
    """Look at all threads of a process: its main one may do nothing but wait for those that work."""
    for thread in process.glob("task/[0-9]*/stat"):
        with suppress(OSError, IndexError):  # it ended meanwhile
            if thread.read_text("latin-1").rpartition(")")[2].split()[0] in _WANTS_A_TURN:
                return True
    return False
