"""What runs on a Dask worker: a batch of teachers, in a clean process of quorate's own that forks a child for them.

The worker's own process neither reads a private row nor holds a teacher: it is told where they lie, and tells where the
result lies. So there is nothing of them for Dask to spill, to send on or to show.

What the last bits of a teacher hang on beside its shard, its number and the run's key are versions and arithmetic. On
one machine all teachers have it in common. Beyond one machine it would depend on where a teacher was trained, and by
that on how long its fellows took; so it has to be the same everywhere.
"""

from __future__ import annotations

import atexit
import os
import pickletools
import platform
import re
import sys
import time
from concurrent.futures import BrokenExecutor
from errno import EIO, ENOMEM
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from quorate.ensemble.workers.cluster.exchange import Stored, check_folder, put_each, take, take_each, unpack
from quorate.ensemble.workers.isolation import Lost
from quorate.ensemble.workers.pool import WorkerPool, first_done
from quorate.errors import PreconditionFailed, QuorateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from importlib.metadata import Distribution

#: Distributions that have to be the same wherever teachers are trained.
ALWAYS = ("quorate", "numpy", "scipy", "scikit-learn", "cloudpickle")
#: The same, where they are loaded here: names of modules, and of the distributions that they come from.
_WHERE_LOADED = {
    "polars": ("polars",),
    "pandas": ("pandas",),
    "torch": ("torch",),
    "skorch": ("skorch",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "catboost": ("catboost",),
}
# "numpy/__init__.py,sha256=...,22" or "six.py": a line of RECORD, and what is imported to have it
_FILE_OF_MODULE = re.compile(r"\"?([A-Za-z_]\w*)(?:/[^,]*)?(?:\.[\w-]+)*\.(?:py|so|pyd)(?:[\",]|\Z)")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*( |\Z)")


def environment() -> dict[str, str]:
    """Return what must be equal on every worker: names that people know, and their versions."""
    loaded = (name for module, names in _WHERE_LOADED.items() if module in sys.modules for name in names)
    packages = {name: version_of(name) for name in (*ALWAYS, *loaded)}
    return {"Python": platform.python_version(), **packages, **_arithmetic()}


def packages_named(pickled: bytes) -> dict[str, str]:
    """Return the distributions, and their versions, of the loaded modules that a pickle names, which is read and not
    run. A pickle within it, as bytes, is read too; a text that happens to be a module's name counts as one.
    """
    modules = {name.partition(".")[0] for name in _names_in(pickled)} & sys.modules.keys()
    names = {package.metadata["Name"] for module in modules for package in _distributions().get(module, ())}
    # As an index knows them: in small letters, by which they are told from other facts.
    return {name: version_of(name) for name in sorted({re.sub(r"[-_.]+", "-", name).lower() for name in names})}


def _names_in(pickled: bytes) -> Iterator[str]:
    """Yield the texts of a pickle that could be names of modules."""
    try:
        for _, argument, _ in pickletools.genops(pickled):
            if isinstance(argument, str) and _MODULE.match(argument):
                yield argument.partition(" ")[0]
            elif isinstance(argument, bytes | bytearray) and argument[:1] == b"\x80":
                yield from _names_in(bytes(argument))
    except ValueError:  # bytes that are no pickle
        return


@cache
def _distributions() -> Mapping[str, list[Distribution]]:
    """Return the distributions that a module at the top may come from; importlib's own function reads every
    description, and takes longer than to connect to a scheduler.
    """
    packages: dict[str, list[Distribution]] = {}
    for package in distributions():
        for module in set((package.read_text("top_level.txt") or "").split()) or _modules_of(package):
            packages.setdefault(module, []).append(package)
    return packages


def _modules_of(distribution: Distribution) -> set[str]:
    """Return the first parts of the names of its files of Python code, compiled ones among them."""
    record = distribution.read_text("RECORD")
    files = record.splitlines() if record is not None else map(str, distribution.files or ())
    return {match[1] for file in files if (match := _FILE_OF_MODULE.match(file))}


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Return what differs, as it is told."""
    return [
        f"{name} {there.get(name, 'missing')} there and {mine} here"
        for name, mine in here.items()
        if there.get(name, "missing") != mine
    ]


@cache
def version_of(distribution: str) -> str:
    """Return the version of a distribution that is installed here, or that it is missing."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


def unlike(here: Mapping[str, str]) -> list[str]:
    """Return in what this process differs from another one, whose :func:`environment` is given."""
    packages = {name: version_of(name) for name in here if name[0].islower()}
    return differences(here, {"Python": platform.python_version(), **packages, **_arithmetic()})


@cache
def _arithmetic() -> dict[str, str]:
    """What a sum or a logarithm of this machine is computed by."""
    import numpy as np
    import scipy.linalg  # noqa: F401 - so that its BLAS is looked at too
    from threadpoolctl import threadpool_info

    kernels = {
        library.get("architecture") or library["internal_api"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        "Machine": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        "BLAS kernels": " ".join(sorted(kernels)),
        "SIMD": " ".join(simd),
    }


_WATCH_SECONDS, _IDLE_SECONDS = 1.0, 30.0
_ENDING = frozenset({"closing", "closed", "failed", "stopping", "stopped"})


class RemoteTask(NamedTuple):
    """All that a worker is sent: public facts, and where it finds the rest."""

    folder: str
    work: Stored  # a function of a list of items, which gives as many results
    items: Stored  # a list of items, each packed by itself; how many is not told
    environment: dict[str, str]  # of who asks
    imports_from: tuple[str, ...]


class RemoteResult(NamedTuple):
    """All that a worker sends back: where results lie, or the machine's error number; neither if lost."""

    stored: Stored | None
    errno: int = 0


class _Idle(NamedTuple):
    """A process that waits for a task of the run that it has worked for."""

    folder: str
    pool: WorkerPool
    since: float


class _Pools:
    """Clean processes, one for each thread that has a task. A process serves one run, since what it imported may be
    another run's code by the same name, and ends soon after, since it has read private rows.
    """

    def __init__(self) -> None:
        self._idle: list[_Idle] = []
        self._lock = Lock()
        self._watched = False

    def take(self, folder: str) -> WorkerPool:
        with self._lock:
            for place, idle in enumerate(self._idle):
                if idle.folder == folder:
                    return self._idle.pop(place).pool
        return WorkerPool(1)

    def give_back(self, folder: str, pool: WorkerPool) -> None:
        with self._lock:
            self._idle.append(_Idle(folder, pool, time.monotonic()))
            if not self._watched:
                self._watched = True
                Thread(target=self._watch, name="quorate idle workers", daemon=True).start()

    def end(self, *, unless: Callable[[_Idle], bool] = lambda _: False) -> None:
        """End those that wait."""
        with self._lock:
            over = [idle for idle in self._idle if not unless(idle)]
            self._idle = [idle for idle in self._idle if idle not in over]
        for idle in over:
            idle.pool.end()

    def _watch(self) -> None:
        while True:
            time.sleep(_WATCH_SECONDS)
            self.end(unless=_is_needed)


def _is_needed(idle: _Idle) -> bool:
    return time.monotonic() - idle.since < _IDLE_SECONDS and Path(idle.folder).exists()


_pools = _Pools()
atexit.register(_pools.end)


class _Abandoned(Exception):
    """Nobody waits for this task any more."""


class _NotUnpacked(Exception):
    """An item cannot be unpacked here; which one, and why, is told to nobody."""


def do_remotely(task: RemoteTask) -> RemoteResult:
    """Do a task on a Dask worker, once it is known to be set up as the machine that asks; nothing is read before."""
    import multiprocessing

    check_worker(task)
    wanted = _wanted()
    multiprocessing.current_process().daemon = False  # a nanny's worker may start no others; ours end with it
    pool, future = _begin(task)
    try:
        if not first_done([future], unless=lambda: pool.is_lost() or not wanted()):
            raise BrokenExecutor if pool.is_lost() else _Abandoned  # noqa: TRY301
        done: RemoteResult = future.result()
    except (QuorateError, _Abandoned):
        pool.end()  # after a refusal too: it may import what has come since, next time
        raise
    except Exception:  # noqa: BLE001 - a lost process, or items that did not travel: the client tries each alone
        pool.end()
        return RemoteResult(None, 0)
    except BaseException:
        pool.end()
        raise
    _pools.give_back(task.folder, pool)
    return done


def _begin(task: RemoteTask) -> tuple[WorkerPool, Future[RemoteResult]]:
    """Hand the task to a process that waits for one, or to a new one where that has broken meanwhile."""
    pool = _pools.take(task.folder)
    try:
        return pool, pool.submit(_do, task)
    except RuntimeError:  # a pool that broke, or was shut down, is one
        pool.end()
        pool = WorkerPool(1)
        return pool, pool.submit(_do, task)


def check_worker(task: RemoteTask) -> None:
    """Refuse, in one line with the remedy, one on which a teacher might become another, or that lacks the folder."""
    unequal = unlike(task.environment)
    if unequal:
        raise PreconditionFailed(not_as_here(f"a worker on {os.uname().nodename}", unequal))
    check_folder(Path(task.folder))


def not_as_here(whose: str, unequal: list[str]) -> str:
    """Return what is said of a worker that is set up in another way."""
    remedy = "install the same versions on every worker"
    if not any(difference[0].islower() or difference.startswith("Python") for difference in unequal):
        remedy = (
            "its last bits would be others; take machines of one kind, or set NPY_DISABLE_CPU_FEATURES and "
            "OPENBLAS_CORETYPE alike on all of them"
        )
    return f"{whose} is not set up as this machine is: {'; '.join(unequal)}. {remedy[0].upper()}{remedy[1:]}"


def _do(task: RemoteTask) -> RemoteResult:
    """In a clean process: read the items, work, and write what came."""
    # From where the client imports too, behind what is this machine's own.
    sys.path.extend(place for place in task.imports_from if place not in sys.path and Path(place).is_dir())
    folder = Path(task.folder)
    try:
        work: Callable[[list[Any]], list[bytes | Lost]] = take(folder, task.work)
    except (OSError, MemoryError) as error:
        return RemoteResult(None, getattr(error, "errno", None) or ENOMEM)
    except QuorateError:
        raise
    except Exception as error:  # noqa: BLE001 - the user's own code, before any private row is looked at
        raise PreconditionFailed(
            f"a worker on {os.uname().nodename} cannot load what it is to do: {type(error).__name__}. Its code must be "
            "importable there, or defined in the main script"
        ) from None
    try:
        packed: list[bytes] = take_each(folder, task.items)  # bytes alone: nothing of an item is unpacked by that
    except OSError as error:
        return RemoteResult(None, error.errno or EIO)
    items = _unpacked(packed)
    del packed  # no child needs a second copy of all rows
    results = work(items)
    try:
        return RemoteResult(put_each(folder, results))
    except OSError as error:
        return RemoteResult(None, error.errno or EIO)


def _unpacked(packed: list[bytes]) -> list[Any]:
    """Unpack items. What one of them holds may stop that in any way, and is no refusal and no error of the machine."""
    try:
        return [unpack(item) for item in packed]
    except BaseException:  # noqa: BLE001 - SystemExit, an OSError, an error of quorate: the client tries each alone
        raise _NotUnpacked from None


def _wanted() -> Callable[[], bool]:
    """Return what tells whether somebody still waits for the task that this thread has."""
    from distributed import get_worker

    try:
        worker = get_worker()
        key = worker.get_current_task()
    except ValueError:  # called by hand, on no worker
        return lambda: True

    def wanted() -> bool:
        if worker.status.name in _ENDING:  # also where it has lost its scheduler
            return False
        known = worker.state.tasks.get(key)
        return known is not None and known.state not in {"cancelled", "released", "forgotten"}

    return wanted
