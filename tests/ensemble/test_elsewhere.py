"""What passes between machines: files with private rows, messages that tell nothing, refusals before rows are read."""

import logging
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import pytest
from sortedcontainers import SortedList
from tests.ensemble.conftest import OneWorker, in_this_process

from quorate.ensemble import DaskScheduler
from quorate.ensemble.workers.cluster import elsewhere, exchange, remote, scheduler
from quorate.ensemble.workers.cluster.elsewhere import batches_of, map_elsewhere
from quorate.ensemble.workers.cluster.exchange import Stored, check_folder, put, put_each, take, take_each
from quorate.ensemble.workers.cluster.remote import RemoteResult, RemoteTask, do_remotely
from quorate.ensemble.workers.cluster.remote import environment as environment_here
from quorate.ensemble.workers.isolation import Lost, in_children
from quorate.ensemble.workers.pool import import_path
from quorate.ensemble.workers.workers import isolated_map
from quorate.errors import Interrupted, InvalidParameter, PreconditionFailed

MARKER = b"a-private-diagnosis"


def echo(items: list[Any]) -> list[bytes | Lost]:
    return in_children(_of, items, together=False)


def _of(item: Any) -> bytes:
    if item == "dies":
        os.kill(os.getpid(), 9)
    if item == "raises":
        raise ValueError(MARKER.decode())
    return bytes(item)


def kills_its_process(items: list[Any]) -> list[bytes | Lost]:
    os._exit(1)


def is_lost_on_the_way(items: list[Any]) -> list[bytes | Lost]:
    raise MemoryError(MARKER.decode())


def task_for(folder: Path, work: Any, items: list[Any], *, at: str | None = None, **changes: Any) -> RemoteTask:
    stored = put_each(folder, [exchange.pack(item) for item in items])
    made = RemoteTask(at or str(folder), put(folder, work), stored, environment_here(), import_path())
    return made._replace(**changes)


@pytest.mark.heavy
def test_a_message_holds_nothing_of_the_rows_and_the_file_does(folder):
    task = task_for(folder, echo, [MARKER, b"other"])
    came = do_remotely(task)
    for message in (task, came):
        sent = pickle.dumps(message)
        assert MARKER not in sent
        assert len(sent) < 4_000  # it is as long for a thousand rows as for two
        assert MARKER.decode() not in repr(message)
    assert came.stored is not None
    assert MARKER in (folder / task.items.name).read_bytes()
    assert take_each(folder, came.stored) == [MARKER, b"other"]


def test_a_digest_tells_nothing_to_who_guesses_the_content(folder):
    """The same rows twice: without the file, no guess can be tried against what the scheduler sees."""
    first, second = put(folder, [MARKER]), put(folder, [MARKER])
    assert first.digest != second.digest
    assert first.name != second.name


def test_files_are_their_owners_alone(folder):
    before = os.umask(0)
    try:
        stored = put(folder, 1)
    finally:
        os.umask(before)
    assert (folder / stored.name).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        (folder / stored.name).open("x")


def test_a_file_that_was_altered_is_not_unpickled(folder):
    stored = put(folder, [1])
    other = put(folder, [2])
    (folder / stored.name).write_bytes((folder / other.name).read_bytes())
    with pytest.raises(PreconditionFailed, match="was altered on its way"):
        take(folder, stored)
    assert take(folder, Stored(stored.name, other.digest)) == [2]


@pytest.mark.parametrize("pieces", [[], [b""], [b"", Lost.KILLED, MARKER, b"", Lost.FAILED], [bytes(100_000), b"1"]])
def test_pieces_come_back_as_they_were(folder, pieces):
    stored = put_each(folder, iter(pieces))
    assert take_each(folder, stored) == pieces
    assert (folder / stored.name).stat().st_mode & 0o777 == 0o600


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("at", [0, 31, 32, 40, -9, -8, -1])
def test_one_altered_bit_is_noticed_wherever_it_is(folder, at, monkeypatch):
    """In the random bytes, in a row, in the lengths and in how long those are; nothing is unpickled then."""
    stored = put_each(folder, [MARKER, MARKER])
    found = bytearray((folder / stored.name).read_bytes())
    found[at] ^= 1
    (folder / stored.name).write_bytes(found)
    monkeypatch.setattr("cloudpickle.loads", lambda _: pytest.fail("it was unpickled"))
    with pytest.raises(PreconditionFailed, match="was altered on its way"):
        take_each(folder, stored)


def test_an_item_whose_packing_is_broken_off_leaves_no_file(folder):
    def pieces() -> Iterator[bytes]:
        yield MARKER
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_each(folder, pieces())
    assert list(folder.iterdir()) == []


def test_a_file_that_comes_late_is_waited_for(folder, monkeypatch):
    stored = put(folder, "late")
    place = folder / stored.name
    place.rename(folder / "aside")
    monkeypatch.setattr(exchange.time, "sleep", lambda _: (folder / "aside").rename(place))
    assert take(folder, stored) == "late"
    exchange.remove(folder, stored)
    monkeypatch.setattr(exchange, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(FileNotFoundError):
        take(folder, stored)


@pytest.mark.parametrize("mode", [0o750, 0o701])
def test_a_folder_that_others_may_look_into_is_refused(folder, mode):
    folder.chmod(0o700)
    check_folder(folder)
    folder.chmod(mode)
    with pytest.raises(PreconditionFailed, match="others than its owner"):
        check_folder(folder)


def test_storage_that_is_not_shared_is_refused_before_anything_is_read(folder):
    task = task_for(folder, echo, [b""], at=str(folder / "elsewhere"))
    with pytest.raises(PreconditionFailed, match="storage that every worker reaches by the same path"):
        do_remotely(task)


def test_a_worker_set_up_otherwise_is_refused_in_one_line(folder):
    here = environment_here()
    task = task_for(folder, echo, [b""], environment={**here, "numpy": "1.0", "Python": "3.9.1"})
    with pytest.raises(PreconditionFailed) as refused:
        do_remotely(task)
    assert f"numpy {here['numpy']} there and 1.0 here" in str(refused.value)
    assert "Python" in str(refused.value)
    assert "\n" not in str(refused.value)
    task = task_for(folder, echo, [b""], environment={**here, "BLAS kernels": "Z80"})
    with pytest.raises(PreconditionFailed, match=r"BLAS kernels .* there and Z80 here.*OPENBLAS_CORETYPE"):
        do_remotely(task)
    assert remote.unlike(here) == []


@pytest.mark.heavy
def test_what_the_teacher_itself_is_made_of_must_be_the_same_everywhere(folder):
    """A library that quorate has never heard of: any that is loaded, and that the pickle of the work names."""
    sent: list[RemoteTask] = []

    def keeps(task: RemoteTask) -> RemoteResult:
        sent.append(task)
        return in_this_process(task)

    worker: Any = OneWorker(folder, keeps)
    work = partial(with_a_teacher, pickle.dumps(SortedList([1])))
    assert list(map_elsewhere(worker, work, [(0, Unwilling(0, None))])) == [(0, b"0")]
    assert sent[0].environment["sortedcontainers"] == version("sortedcontainers")

    altered = sent[0]._replace(environment={**sent[0].environment, "sortedcontainers": "0.1"})
    assert remote.unlike(altered.environment) == [f"sortedcontainers {version('sortedcontainers')} there and 0.1 here"]


@pytest.mark.heavy
def test_a_module_is_traced_to_every_distribution_that_the_standard_library_names():
    mine = remote._distributions()
    for module, names in packages_distributions().items():
        assert set(names) <= {each.metadata["Name"] for each in mine[module]}


def with_a_teacher(pickled: bytes, items: list[Any]) -> list[bytes | Lost]:
    return numbers_of(items)


@pytest.mark.heavy
def test_items_fail_alone_and_say_nothing(folder, capfd):
    came = do_remotely(task_for(folder, echo, [b"a", "raises", "dies", b"b"]))
    assert came.stored is not None
    assert take_each(folder, came.stored) == [b"a", Lost.FAILED, Lost.KILLED, b"b"]
    assert MARKER.decode() not in "".join(capfd.readouterr())


@pytest.mark.heavy
@pytest.mark.parametrize("work", [kills_its_process, is_lost_on_the_way])
def test_a_process_that_is_lost_is_told_without_a_reason_and_replaced(folder, work):
    assert do_remotely(task_for(folder, work, [b"a"])) == RemoteResult(None, 0)
    assert do_remotely(task_for(folder, echo, [b"a"])).stored is not None


@pytest.mark.heavy
def test_work_that_a_worker_cannot_load_is_a_public_fact(folder):
    task = task_for(folder, Unloadable(), [b"a"])
    with pytest.raises(PreconditionFailed, match="cannot load what it is to do: ModuleNotFoundError"):
        do_remotely(task)


class Unloadable:
    def __reduce__(self) -> Any:
        return __import__, ("a_module_that_is_nowhere",)


def test_a_full_disk_is_told_by_its_number(folder, monkeypatch):
    task = task_for(folder, echo, [b"a"])
    exchange.remove(folder, task.items)
    monkeypatch.setattr(remote, "take_each", lambda *_: (_ for _ in ()).throw(OSError(28, "")))
    assert remote._do(task) == RemoteResult(None, 28)


class Unwilling:
    """An item that does not travel, or whose unpacking raises, or ends the process."""

    def __init__(self, number: int, why: Any = None) -> None:
        self.number, self.why, self.made_by = number, why, os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        if self.why == "does not travel":
            raise ValueError(MARKER.decode())
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.why == "exits":
            if os.getpid() == self.made_by:  # what ends a worker would end the tests here
                raise AssertionError
            os._exit(3)
        if self.why is not None:
            raise self.why


def numbers_of(items: list[Any]) -> list[bytes | Lost]:
    return [b"%d" % item.number for item in items]


def outcome(folder: Path, why: Any, n: int, do: Any = in_this_process) -> dict[int, bytes | None]:
    worker: Any = OneWorker(folder, do)
    items = ((number, Unwilling(number, why if number == 3 else None)) for number in range(n))
    found = dict(map_elsewhere(worker, numbers_of, items))
    assert worker.sizes == [n] + [1] * n
    assert list(folder.iterdir()) == []
    return found


def all_but_one(n: int) -> dict[int, bytes | None]:
    return {number: None if number == 3 else b"%d" % number for number in range(n)}


WHYS = [
    ValueError(MARKER.decode()),
    MemoryError(),
    OSError(28, MARKER.decode()),  # not the disk's
    PreconditionFailed(MARKER.decode()),
    SystemExit(3),
    "does not travel",
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("why", WHYS, ids=lambda why: why if isinstance(why, str) else type(why).__name__)
def test_an_item_that_cannot_be_unpacked_is_lost_alone(why, folder):
    assert outcome(folder, why, 64) == all_but_one(64)


@pytest.mark.heavy
def test_an_item_that_ends_the_process_that_unpacks_it_is_lost_alone_as_on_one_machine(folder):
    items = [Unwilling(number, "exits" if number == 3 else None) for number in range(5)]
    here = dict(isolated_map(numbers_of, items.__getitem__, range(5), n_jobs=1, batch=5))
    assert outcome(folder, "exits", 5, do_remotely) == here == all_but_one(5)


def with_its_neighbours(folder: Path, killed: Any) -> Iterator[Any]:
    """A twin: the second round unpacks the whole file once more, and would then pick one item of it."""
    for batch, places in killed:
        packed = take_each(folder, batch.stored)
        exchange.remove(folder, batch.stored)
        for at in places:
            yield batch._replace(numbers=(batch.numbers[at],), stored=put_each(folder, packed))


def test_that_test_catches_a_second_round_that_unpacks_neighbours(worker, monkeypatch):
    monkeypatch.setattr(elsewhere, "_alone", with_its_neighbours)
    items = ((number, Unwilling(number, ValueError() if number == 3 else None)) for number in range(64))
    found = dict(map_elsewhere(worker, numbers_of, items))
    assert found != all_but_one(64)
    assert set(found.values()) == {None}  # one unit has silenced 64 teachers


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n", [0, 1, 49, 50, 64, 113, 114, 130, 250, 1000])
def test_every_item_is_in_one_task_and_no_task_is_small(n):
    batches = list(batches_of((number, "") for number in range(n)))
    assert [number for batch in batches for number, _ in batch] == list(range(n))
    assert all(50 <= len(batch) <= 113 for batch in batches) or n < 50
    assert len(batches) <= 1 or n >= 50
    large = list(batches_of(((number, "") for number in range(n)), size=256))
    assert [number for batch in large for number, _ in batch] == list(range(n))
    assert all(200 <= len(batch) <= 455 for batch in large) or n < 200


def test_items_are_asked_for_when_they_are_sent():
    asked = []
    batches = batches_of((asked.append(number) or number, "") for number in range(1000))  # type: ignore[func-returns-value]
    next(batches)
    assert len(asked) <= 128


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("cluster:8786", "must be the address"),
        ("http://cluster:8786", "must be the address"),
        ("inproc://10.0.0.1/1/1", "must be the address"),
        ("tcp://cluster:8786", "plain TCP"),
        ("tcp://10.0.0.1:8786", "plain TCP"),
        ("tcp://[fe80::1]:8786", "plain TCP"),
        ("tcp://127.0.0.1.example.org:8786", "plain TCP"),
        (8786, "distributed.Client"),
    ],
)
def test_an_address_where_others_may_give_orders_is_refused_and_tls_and_this_machine_are_taken(address, why, tmp_path):
    with pytest.raises(InvalidParameter, match=why):
        DaskScheduler(address, folder=tmp_path)
    if why == "plain TCP":
        DaskScheduler(address, folder=tmp_path, plain_tcp=True)
    for taken in ("tls://cluster:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tcp://localhost:1"):
        assert DaskScheduler(taken, folder=tmp_path).address == taken


def test_it_has_no_copy_so_that_an_estimator_with_it_can_be_cloned(tmp_path):
    from sklearn.base import clone

    scheduler = DaskScheduler("tls://cluster:8786", folder=tmp_path)
    assert clone(scheduler, safe=False) is scheduler
    assert "cluster" in repr(scheduler)


def test_nobody_at_an_address_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "_CONNECT_SECONDS", 0.2)
    (tmp_path / "private").mkdir(mode=0o700)
    nobody = DaskScheduler("tcp://127.0.0.1:9", folder=tmp_path / "private")
    with pytest.raises(PreconditionFailed, match="no Dask scheduler answers"), nobody.connected():
        pass
    without = DaskScheduler("tls://127.0.0.1:9", folder=tmp_path / "private")
    with pytest.raises(PreconditionFailed, match="needs certificates"), without.connected():
        pass
    assert list((tmp_path / "private").iterdir()) == []


class ConnectionLost(Exception):  # Dask's errors of a lost connection have no class in common
    pass


class DyingClient:
    """A client of one worker whose scheduler dies at some moment; from then on no request is answered."""

    def __init__(self, dies_at: str) -> None:
        self.dies_at, self.status = dies_at, "running"

    def _request(self, moment: str) -> None:
        if moment == self.dies_at:
            self.status = "connecting"
        if self.status != "running":
            raise ConnectionLost

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        self._request("check")
        here = {"packages": {"python": "3"}}
        return {"client": here, "workers": {"tcp://127.0.0.1:1": here}}

    def nthreads(self) -> dict[str, int]:
        self._request("count")
        return {"tcp://127.0.0.1:1": 1}

    def submit(self, function: Any, task: RemoteTask, **_options: Any) -> Any:
        self._request("submit")
        return DyingFuture(self, task)

    def cancel(self, futures: list[Any]) -> None:
        self.status = "closed"
        raise ConnectionLost

    def close(self, timeout: float) -> None:
        raise ConnectionLost


class DyingFuture:
    key = "quorate-0"
    status = "finished"

    def __init__(self, client: DyingClient, task: RemoteTask) -> None:
        self.client, self.task = client, task

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self.client._request("callback")
        if self.client.dies_at == "wait":
            self.client.status = "connecting"
        else:
            call(self)

    def result(self) -> RemoteResult:
        if self.client.dies_at in ("gather", "task"):
            self.status = "cancelled" if self.client.dies_at == "gather" else "error"
            raise ConnectionLost
        return in_this_process(self.task)


def asked_of(client: DyingClient, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes | None]:
    monkeypatch.setattr(scheduler, "_client", lambda _: client)
    monkeypatch.setattr(scheduler, "_COUNT_SECONDS", 0.0)
    monkeypatch.setattr(elsewhere, "_LOOK_UP_SECONDS", 0.01)
    at = DaskScheduler("tcp://127.0.0.1:8786", folder=folder)
    return dict(map_elsewhere(at, numbers_of, [(number, Unwilling(number)) for number in range(3)]))


@pytest.mark.parametrize("moment", ["check", "count", "submit", "callback", "wait", "gather"])
def test_whenever_a_scheduler_dies_the_same_line_says_so(moment, folder, monkeypatch):
    with pytest.raises(Interrupted, match=r"the scheduler at tcp://127.0.0.1:8786 is gone; what is stored stays"):
        asked_of(DyingClient(moment), folder, monkeypatch)
    assert list(folder.iterdir()) == []


def test_one_that_dies_when_all_is_done_is_not_missed_and_a_task_that_cannot_begin_is_another_matter(
    folder, monkeypatch
):
    assert asked_of(DyingClient("close"), folder, monkeypatch) == {number: b"%d" % number for number in range(3)}
    with pytest.raises(PreconditionFailed, match="a worker cannot begin: ConnectionLost"):
        asked_of(DyingClient("task"), folder, monkeypatch)


def test_an_event_loop_says_nothing_of_a_connection_of_ours_and_all_else(caplog):
    distributed: dict[str, Any] = {"__name__": "distributed.client"}
    exec("def send(): raise OSError('comm closed')", distributed)  # noqa: S102 - a frame of Dask's
    loop = logging.getLogger("tornado.application")
    for wanted in (True, False):
        with scheduler._quiet(wanted=wanted):
            try:
                distributed["send"]()
            except OSError:
                loop.exception("Exception in callback")
            loop.error("something else")
    assert [record.message for record in caplog.records] == [
        "something else",
        "Exception in callback",
        "something else",
    ]


def test_dask_is_silent_while_connected_and_speaks_again_after_it():
    pytest.importorskip("distributed")
    spoke = logging.getLogger("distributed.worker")
    before = [(each.level, each.disabled) for each in (spoke, logging.getLogger("distributed"))]
    with scheduler._quiet(wanted=True):
        assert not spoke.isEnabledFor(logging.CRITICAL)
        assert not logging.getLogger("distributed.made_meanwhile").isEnabledFor(logging.CRITICAL)
    assert [(each.level, each.disabled) for each in (spoke, logging.getLogger("distributed"))] == before
    assert spoke.isEnabledFor(logging.CRITICAL)
    with scheduler._quiet(wanted=False):
        assert spoke.isEnabledFor(logging.CRITICAL)


@pytest.mark.parametrize("page", ["docs/how-to/beyond-one-machine.md", "examples/slurm/dask.sbatch"])
def test_dask_is_measured_as_it_is_advised_to_be_started(page):
    from benchmarks.elsewhere import OPTIONS, SETTINGS

    said = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert all(f"export {name}={value}\n" in said for name, value in SETTINGS.items())
    assert " ".join(OPTIONS) in said
