"""No process that holds private rows outlives the one that asked for the work.

Three things end together: the worker processes of a pool, the child in which a worker runs a teacher, and whatever a
teacher started itself. Nobody can count on a last word: the process that asked may be killed, a teacher may be in a
compiled loop that hears no signal. So each of the three is tied by other means.

- Every process of a pool carries a *mark* in its environment, drawn for that pool and inherited by whatever is started
  from it. Where the kernel shows environments (Linux, ``/proc``), a process is found by its mark, or by standing in
  the session of a marked one, wherever it was moved to.
- A worker looks four times a second whether its parent is still the process that started it. Where not, it kills what
  its teachers left, and itself. Signals of the terminal are its parent's to answer.
- A child is killed by the kernel when its worker dies (Linux), also in the middle of a compiled loop.

Elsewhere than on Linux a worker kills the process group of its child, and a process that left the group is not found.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import RLock, Thread
from typing import NamedTuple, NoReturn

MARK = "QUORATE_WORKERS"
FROM_TERMINAL = (signal.SIGINT, signal.SIGHUP)

_WATCH_SECONDS = 0.25
_SWEEP_SECONDS = 2.0  # how long a sweep goes on for processes that the kernel has not buried yet
_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1  # Linux, prctl(2)

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class _Process(NamedTuple):
    pid: int
    session: int
    mark: str


def new_mark() -> str:
    """Draw the mark of a new pool, after this process's own if it has one; from the operating system, as tests pin
    :mod:`secrets`, and pools of one mark would kill each other.
    """
    return ":".join([*filter(None, [os.environ.get(MARK)]), os.urandom(8).hex()])


def end_marked(mark: str, *, spare_session: int | None = None) -> None:
    """Kill every process that carries the mark or stands in the session of one that does; return when none is left.

    `spare_session`: left alone, as the one that a worker shares with its fellows. The caller's is searched for marks
    alone. Resource trackers of multiprocessing end by themselves: they remove what the dead ones shared.
    """
    own = os.getsid(0)
    until = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < until:
        running = [process for process in _running() if process.pid != os.getpid()]
        marked = [process for process in running if _carries(process, mark) and process.session != spare_session]
        sessions = {process.session for process in marked} - {own}
        pids = {process.pid for process in marked} | {process.pid for process in running if process.session in sessions}
        if not pids:
            return
        _kill(pids)
        time.sleep(0.01)


def end_session(leader: int) -> None:
    """Kill what is left of the session of a child that has ended, but for resource trackers; see :func:`end_marked`."""
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return  # the usual case: it left nothing
    if not _PROC.joinpath("self", "stat").exists():
        os.killpg(leader, signal.SIGKILL)
    until = time.monotonic() + _SWEEP_SECONDS
    while (pids := {process.pid for process in _running() if process.session == leader}) and time.monotonic() < until:
        _kill(pids)
        time.sleep(0.01)


class _Worker:
    """What a worker process knows of itself."""

    parent: int | None = None
    child: int | None = None  # that it waits for
    mark: str | None = None
    forking = RLock()  # held for good by a worker that ends, so that it starts no further teacher meanwhile


def be_worker(parent: int, mark: str) -> None:
    """Start life as a worker that carries this mark: deaf to the terminal, gone with its parent or at SIGTERM."""
    _Worker.parent, _Worker.mark = parent, mark
    stay_whatever_it_holds()
    gc.disable()  # what it loads stays, and loads quicker; see after_task. Children, which do the work, collect again
    for number in FROM_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FROM_TERMINAL)
    signal.signal(signal.SIGTERM, lambda *_: _end_worker())
    Thread(target=_watch, name="quorate parent watch", daemon=True).start()


def stay_whatever_it_holds() -> None:
    """In a worker of loky: do not go because a task left 300 MB behind. loky warns of that on the thread that hands
    results out; where warnings are errors, that thread ends, and nobody hears of a result any more.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf


def after_task() -> None:
    """In a worker: collect the cycles that a task left; what is left then stays, and is looked at no more."""
    gc.collect()
    gc.freeze()


def fork() -> int:
    """Fork a child that is known to this worker until :func:`buried` is told of its end; never while it ends itself."""
    if _orphaned():  # a fellow that knew it earlier has killed the child before this one
        _end_worker()
    with _Worker.forking:
        pid = os.fork()
        if pid:
            _Worker.child = pid
    return pid


def buried(child: int) -> None:
    """Be told that a child has ended and was waited for: kill what it left running."""
    _Worker.child = None
    end_session(child)


def be_child(worker: int) -> None:
    """Start life as a worker's child in a session of its own: killed with its worker, and to be stopped again."""
    _Worker.parent = _Worker.child = None
    # What the worker holds is never garbage to the child. A collection that looked at all of it would touch, and by
    # that copy, every page that both share: that takes longer than many a fit.
    gc.freeze()
    gc.enable()
    os.setsid()
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != worker:  # it died before the kernel was told
        os._exit(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _orphaned() -> bool:
    return _Worker.parent is not None and os.getppid() != _Worker.parent


def _watch() -> None:
    while not _orphaned():
        time.sleep(_WATCH_SECONDS)
    _end_worker()


def _end_worker() -> NoReturn:
    """Kill what this worker's child runs, what nobody is left to kill, and this process."""
    _Worker.forking.acquire()
    try:
        if _Worker.child is not None:
            end_session(_Worker.child)
        if _Worker.mark is not None and _orphaned():  # its fellows end too; a parent that lives sees to the rest itself
            end_marked(_Worker.mark, spare_session=os.getsid(0))
    finally:
        os._exit(1)


def _carries(process: _Process, mark: str) -> bool:
    return process.mark == mark or process.mark.startswith(f"{mark}:")


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _running() -> list[_Process]:
    """Every process of this machine that may be killed: not the dead that are not buried yet, no resource tracker."""
    processes = []
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile, or is somebody else's
            state, _, _, session = (folder / "stat").read_text("latin-1").rpartition(")")[2].split()[:4]
            if state in "ZX" or b"resource_tracker" in (folder / "cmdline").read_bytes():
                continue
            values = (folder / "environ").read_bytes().split(b"\0")
            name = f"{MARK}=".encode()
            mark = next((value[len(name) :].decode("ascii") for value in values if value.startswith(name)), "")
            processes.append(_Process(int(folder.name), int(session), mark))
    return processes
