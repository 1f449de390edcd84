"""Run a piece of work in a forked child that cannot print, crash, or use up anything but itself.

What a teacher prints, and whether it crashes, depends on private rows: its streams lead nowhere, and its death is an
abstention. Children are forked by a clean worker (:mod:`quorate.ensemble.workers.workers`), never by the user's own
process, whose threads and OpenMP state a fork would break.
"""

from __future__ import annotations

import enum
import faulthandler
import logging
import os
import random
import re
import signal
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np

from quorate.ensemble.workers.lifetime import be_child, buried, fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")

# How often a silent child is asked whether it still lives. Latency only: results are read as soon as they are written.
_HEARTBEAT_SECONDS = 0.2
# How long a child keeps results before it writes them. To write and read each by itself takes as long as some fits;
# what is lost with a child that dies is computed anew, each item alone, as are all items after it.
_KEEP_SECONDS = 0.05

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class Lost(enum.Enum):
    """Why an item has no result."""

    FAILED = "failed"  # its own doing: an exception, a crash, its CPU time used up
    KILLED = "killed"  # no memory left, to itself or to a neighbour; only a run alone can tell


def in_children(
    function: Callable[[Item], bytes],
    items: Sequence[Item],
    *,
    together: bool,
    cpu_seconds: float | None = None,
) -> list[bytes | Lost]:
    """Return ``function(item)`` for each item, computed in forked children; ``Lost.FAILED`` for whatever it raises.

    `together`: whether items may follow one another in one child. When that dies, every item without a result runs
    again in a child of its own, so an item loses itself alone. `cpu_seconds`: of one item's process; never wall-clock
    time, by which one slow item would time others out.
    """
    results: list[bytes | Lost] = []
    if together and len(items) > 1:
        results, _ = _child(function, items, cpu_seconds)
    for item in items[len(results) :]:
        done, status = _child(function, [item], cpu_seconds)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        results.append(done[0] if done else Lost.KILLED if killed else Lost.FAILED)
    return results


def on_one_thread_each(
    function: Callable[[Item], bytes], together: bool, cpu_seconds: float | None, items: Sequence[Item]
) -> list[bytes | Lost]:
    """In a worker: do as :func:`in_children`, with the numerical libraries held to one thread."""
    with one_thread_each():
        return in_children(function, items, together=together, cpu_seconds=cpu_seconds)


def polars_threads() -> bool:
    """Tell whether threads of polars run in this process, as after another teacher's code was loaded: it must not be
    forked from then, since a child has none of them and would wait for ever.
    """
    if "polars" not in sys.modules:
        return False
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended since
            if re.match(r"polars-\d", name.read_text(encoding="utf-8")):
                return True
    return False


def seed_global_generators(seed: int) -> None:
    """Seed the generators that a teacher may use without asking: one teacher's draws must not move another's."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002 - the legacy generator is what such a teacher uses
    torch = sys.modules.get("torch")  # where it was not imported, it has drawn nothing
    if torch is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """In a worker: hold the numerical libraries that are loaded to one thread, in the children forked meanwhile too."""
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries(_n_modules: int) -> ThreadpoolController:
    """Look for the libraries, anew where a module was imported since: that takes longer than to train many a model."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def load_what_children_need() -> None:
    """In a worker: load what torch, where it is loaded, loads at an optimizer's first step, which takes a child
    seconds; by one step on a made-up number.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        number = torch.nn.Parameter(torch.zeros(1))
        number.grad = torch.zeros(1)
        torch.set_num_threads(1)  # no thread is to be there when a child is forked
        torch.optim.SGD([number], lr=0.1).step()


def _child(
    function: Callable[[Item], bytes], items: Sequence[Item], cpu_seconds: float | None
) -> tuple[list[bytes | Lost], int]:
    """Fork; return the results the child sent before it ended, and how it ended."""
    reader, writer = Pipe(duplex=False)
    worker = os.getpid()
    with warnings.catch_warnings():
        # Python warns of a fork beside other threads. Here they are the idle threads of the worker's own plumbing.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = fork()
    if pid == 0:
        _work(function, items, cpu_seconds, worker, reader, writer)
    writer.close()
    results: list[bytes | Lost] = []
    status = None
    while True:
        if reader.poll(0 if status is not None else _HEARTBEAT_SECONDS):
            try:
                results += _unframed(reader.recv_bytes())
            except (EOFError, OSError):
                break
        elif status is not None:
            break
        elif (ended := os.waitpid(pid, os.WNOHANG))[0] == pid:
            # Its own children may still hold the pipe open: read what is there and wait no longer.
            status = ended[1]
    if status is None:
        status = os.waitpid(pid, 0)[1]
    buried(pid)
    reader.close()
    return results, status


def _work(
    function: Callable[[Item], bytes],
    items: Sequence[Item],
    cpu_seconds: float | None,
    worker: int,
    reader: Connection,
    writer: Connection,
) -> NoReturn:
    """Be the child: do the work in silence, send the results, and leave without a trace."""
    try:
        reader.close()
        be_child(worker)
        _silence()
        kept: list[bytes] = []
        # Near its limit an item that is run twice may end in two ways, so there no result waits for a later item.
        sent, keep = time.monotonic(), _KEEP_SECONDS if cpu_seconds is None else 0.0
        for number, item in enumerate(items, start=1):
            if cpu_seconds is not None:
                # The default action of SIGPROF ends the process, also inside compiled code.
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            try:
                kept.append(_framed(function(item)))
            except MemoryError:
                # Whose doing it was cannot be told here either: end as the operating system would have ended it.
                os.kill(os.getpid(), signal.SIGKILL)
            except BaseException:  # noqa: BLE001 - SystemExit too: a teacher's failure is an abstention, told to nobody
                kept.append(_framed(None))
            if number == len(items) or time.monotonic() - sent >= keep:
                try:
                    writer.send_bytes(kept[0] if len(kept) == 1 else b"".join(kept))
                except MemoryError:
                    os.kill(os.getpid(), signal.SIGKILL)
                kept, sent = [], time.monotonic()
    finally:
        os._exit(0)


def _framed(result: bytes | None) -> bytes:
    """Return one result as it is written: its sign, its length, and itself; a minus alone where there is none."""
    return b"-" if result is None else b"+" + len(result).to_bytes(8, "big") + result


def _unframed(message: bytes) -> list[bytes | Lost]:
    """Read results that were written together. What code of a teacher's own wrote to the pipe is a failure."""
    results: list[bytes | Lost] = []
    at = 0
    while at < len(message):
        begin = at + 9
        end = begin + int.from_bytes(message[at + 1 : begin], "big")
        if message[at : at + 1] == b"-":
            results.append(Lost.FAILED)
            at += 1
        elif message[at : at + 1] == b"+" and begin <= end <= len(message):
            results.append(message[begin:end])
            at = end
        else:
            return [*results, Lost.FAILED]
    return results


def _silence() -> None:
    """Cut the child off from the terminal, the logs and the disk's core dumps, and keep it on one thread."""
    import resource

    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123 - for the rest of this process
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    faulthandler.disable()  # it writes to a descriptor of its own
    logging.disable(sys.maxsize)
    # Also so that a process where warnings are errors trains the same teachers.
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold private rows
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.environ.update(ONE_THREAD)  # for libraries that load only now; those loaded are limited by the worker
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")  # when memory runs out, the child goes, not the worker or the user's process
