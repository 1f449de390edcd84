"""The door to machines beyond this one: a Dask scheduler, and storage that its workers share with this process.

Dask brings tasks to workers, and starts them again elsewhere when a worker is lost. Nothing private goes by way of it:
rows, teachers and votes lie in files of the run's owner (:mod:`quorate.ensemble.workers.cluster.exchange`), and Dask
sees their names.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from quorate.ambient import unwarned
from quorate.arguments import is_this_machine
from quorate.data.stream import Workspace
from quorate.ensemble.workers.cluster.exchange import check_folder
from quorate.ensemble.workers.cluster.remote import ALWAYS, differences, environment, not_as_here
from quorate.errors import Interrupted, InvalidParameter, PreconditionFailed
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = TypeVar("Answer")

_ADDRESS = re.compile(r"(?P<how>\w+)://(?P<host>\[[^\]]+\]|[^:/\[\]]+)(:\d+)?/?")
_CONNECT_SECONDS = 15
_FIRST_WORKER_SECONDS = 60
_NO_WORKER_SECONDS = 300
_COUNT_SECONDS = 2.0  # how often workers are counted

_LOOPS = ("asyncio", "tornado.application")  # which log what is raised in a callback of Dask's

_hushing = Lock()
_hushed: list[list[tuple[logging.Logger, int, bool]]] = []  # once for each connection of our own that is open

STAYS = "what was charged before stays charged, and is never charged twice"


@stored_as("quorate.ensemble.workers.cluster.scheduler.DaskScheduler")
class DaskScheduler:
    """Where teachers are trained and asked, or rounds are added up, if not here: the workers of a Dask scheduler.

    Parameters
    ----------
    at : str or distributed.Client
        ``"tls://host:port"``, or ``"tcp://host:port"`` on this very machine; or a client that is connected already,
        with certificates of its own (``distributed.Security``), which stays open.
    folder : path
        A folder on storage that every worker reaches by the same path, as the same user. Private rows, teachers and
        votes lie in a hidden folder of mode 0700 there while they are needed.
    plain_tcp : bool, default False
        Whether ``tcp://`` to another machine is allowed. Whoever reaches such a port can have the workers run what
        they like, as the user who reads the private rows.
    name : str, default "scheduler"
        What a refusal calls it.

    Raises
    ------
    InvalidParameter
        If the address is none, or is that of another machine without TLS.

    Examples
    --------
    >>> DaskScheduler("tls://cluster.example.org:8786", folder=Path("my-run/private"))
    DaskScheduler('tls://cluster.example.org:8786')
    >>> DaskScheduler("tcp://cluster.example.org:8786", folder=Path("my-run/private"))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: scheduler is reached by plain TCP on another machine...
    """

    def __init__(self, at: Any, *, folder: Path, plain_tcp: bool = False, name: str = "scheduler") -> None:
        self.at, self.folder, self.plain_tcp = at, Path(folder), plain_tcp
        check_address(self.address, plain_tcp=plain_tcp, name=name)
        self._open: Connection | None = None

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        if isinstance(self.at, str):
            return self.at
        known = getattr(getattr(self.at, "scheduler", None), "address", None)
        if not isinstance(known, str):
            raise InvalidParameter(
                'scheduler must be an address ("tls://host:8786") or a distributed.Client, got '
                f"{type(self.at).__name__}"
            )
        return known

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Connect, for as long as the outermost block of this kind lasts."""
        if self._open is not None:
            yield self._open
            return
        if not self.folder.is_dir():
            raise PreconditionFailed(f"{self.folder} is not there; make it, on storage that the workers share")
        with _quiet(isinstance(self.at, str)):
            client = _client(self.at)
            try:
                self._open = Connection(client, self.address, Workspace(lambda: self.folder))
                self._open.check()
                yield self._open
            finally:
                if self._open is not None:
                    self._open.workspace.close()
                self._open = None
                if client is not self.at:
                    with suppress(Exception):  # a scheduler that is gone cannot be told good-bye
                        client.close(timeout=2)

    def __deepcopy__(self, memo: Any) -> DaskScheduler:
        """Return itself: a connection has no copy, and scikit-learn's ``clone`` asks for one."""
        return self

    def __repr__(self) -> str:
        return f"DaskScheduler({self.address!r})"


def as_scheduler(given: Any) -> DaskScheduler | None:
    """Return what an estimator was given as a scheduler, or refuse it."""
    if isinstance(given, DaskScheduler | None):
        return given
    raise InvalidParameter(
        f"scheduler must be a DaskScheduler, got {type(given).__name__}; write "
        'scheduler=DaskScheduler("tls://host:8786", folder="/shared/me"), from quorate.ensemble'
    )


class Connection:
    """A scheduler that answers, and the folder where files pass."""

    def __init__(self, client: Any, address: str, workspace: Workspace) -> None:
        self.client, self.address, self.workspace = client, address, workspace
        self.environment = environment()
        self._counted, self._threads, self._seen = 0.0, 0, time.monotonic()
        self.workers: list[str] = []  # their addresses, when they were counted last

    @property
    def folder(self) -> Path:
        """Where files pass; made when it is first asked for."""
        return self.workspace.path.resolve()

    def check(self) -> None:
        """Refuse, in one line with the remedy, workers set up otherwise, none at all, and storage that others may look
        into.
        """
        check_folder(self.folder)
        until = time.monotonic() + _FIRST_WORKER_SECONDS
        while not self.threads():
            if time.monotonic() > until:
                raise PreconditionFailed(
                    f"no worker has come to {self.address} within {_FIRST_WORKER_SECONDS} s; start some: "
                    f"dask worker {self.address}"
                )
            time.sleep(0.2)
        versions = self.call(lambda: self.client.get_versions(packages=list(ALWAYS)))
        here = _versions(versions["client"])
        for address, their_versions in versions["workers"].items():
            unequal = differences(here, _versions(their_versions))
            if unequal:
                raise PreconditionFailed(not_as_here(f"the worker {address}", unequal))

    def threads(self) -> int:
        """Return how many tasks the workers can do at once; Interrupted if the scheduler or all workers are gone."""
        now = time.monotonic()
        if now - self._counted > _COUNT_SECONDS or not self._threads:
            if self.client.status != "running":
                raise self.gone()
            threads = self.call(self.client.nthreads)
            self._threads, self.workers = sum(threads.values()), sorted(threads)
            self._counted = time.monotonic()
        if self._threads:
            self._seen = now
        return self._threads

    def call(self, request: Callable[[], Answer]) -> Answer:
        """Return what `request` gives. Raises Interrupted where the scheduler is lost meanwhile."""
        try:
            return request()
        except Exception:  # noqa: BLE001 - however a connection breaks: Dask has no one error for it
            raise self.gone() from None

    def wait(self) -> None:
        """Look whether there is still something to wait for; see :meth:`threads`."""
        if not self.threads() and time.monotonic() - self._seen > _NO_WORKER_SECONDS:
            raise Interrupted(
                f"no worker is left at {self.address}; what is stored stays. Start some, then the same command goes on",
                charged=STAYS,
            )

    def gone(self) -> Interrupted:
        """Return what is said where the scheduler is lost."""
        return Interrupted(
            f"the scheduler at {self.address} is gone; what is stored stays, and with a scheduler the same command "
            "goes on from there",
            charged=STAYS,
        )


def check_address(address: str, *, plain_tcp: bool, name: str = "scheduler") -> str:
    """Return an address of a scheduler; InvalidParameter for none, or if others could give orders there."""
    parts = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if parts is None or parts["how"] not in ("tls", "tcp"):
        raise InvalidParameter(
            parameter=name, got=address, expected='the address of a Dask scheduler, such as "tls://host:8786"'
        )
    if parts["how"] == "tcp" and not plain_tcp and not is_this_machine(parts["host"].strip("[]")):
        raise InvalidParameter(
            f"{name} is reached by plain TCP on another machine, where whoever reaches that port can have the workers "
            "read the private rows; take tls:// with certificates, or allow it by name where the network is your own: "
            "plain_tcp"
        )
    return address


def _versions(said: Any) -> dict[str, str]:
    packages = said["packages"]
    return {"Python": str(packages["python"]), **{name: str(packages.get(name) or "missing") for name in ALWAYS}}


def _client(at: Any) -> Any:
    if not isinstance(at, str):
        return at
    try:
        import distributed
    except ImportError:
        raise PreconditionFailed('a scheduler needs Dask: pip install "quorate[dask]"') from None
    dask: Any = distributed  # which has no types
    security = dask.Security()
    try:
        known = security.get_connection_args("client").get("ssl_context") is not None
    except (OSError, ValueError):  # a file that is not there, or no certificate
        known = False
    if at.startswith("tls:") and not known:
        raise PreconditionFailed(
            f"{at} needs certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__TLS__CLIENT__CERT and "
            "...__TLS__CLIENT__KEY to files that are there, or give a distributed.Client that has them"
        )
    try:
        with unwarned():  # of versions that differ: those that matter are checked, and refused
            return dask.Client(at, timeout=_CONNECT_SECONDS, set_as_default=False, name="quorate")
    except Exception:  # noqa: BLE001 - whatever a connection that is not made ends with
        raise PreconditionFailed(
            f"no Dask scheduler answers at {at}; start one: dask scheduler. One with TLS answers tls:// alone, and who "
            "has its certificate"
        ) from None


@contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    """Keep Dask's own words away: what has to be said is said in one line."""
    if not wanted:
        yield
        return
    with suppress(ImportError):  # which is told elsewhere
        import distributed  # noqa: F401 - it sets the levels of its loggers
    with _hushing:
        _hushed.append(_hush() if not _hushed else _hushed[0])
    try:
        yield
    finally:
        with _hushing:
            before = _hushed.pop()
            if not _hushed:
                for name in _LOOPS:
                    logging.getLogger(name).removeFilter(_not_of_dask)
                for logger, level, disabled in before:
                    logger.disabled = disabled
                    if logger.level != level:
                        logger.setLevel(level)


def _hush() -> list[tuple[logging.Logger, int, bool]]:
    """Silence Dask's loggers; return each as it was, for the last connection that ends."""
    above = logging.getLogger("distributed")
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = [(logger, logger.level, logger.disabled) for logger in loggers]
    for name in _LOOPS:
        logging.getLogger(name).addFilter(_not_of_dask)
    above.setLevel(logging.CRITICAL + 1)  # also for loggers that come later
    for logger in loggers:
        logger.disabled = True  # not by its level: each that is set empties what every logger remembers
    return before


def _not_of_dask(record: logging.LogRecord) -> bool:
    """Tell whether a record of an event loop is not that of an error in Dask's own code."""
    traceback = record.exc_info[2] if record.exc_info else None
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0] == "distributed":
            return False
        traceback = traceback.tb_next
    return True
