"""Worker processes are kept: a smaller request is served by some of those that there are, and no more at once."""

from __future__ import annotations

import gc
import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import polars as pl
import pytest
from sklearn import config_context, get_config

from quorate.ensemble.workers.isolation import Lost, in_children, polars_threads
from quorate.ensemble.workers.workers import end_workers, isolated_map

pytestmark = pytest.mark.heavy

KEPT: list[bytearray] = []


def spans(items: list[float]) -> list[bytes | Lost]:
    """Wait as long as each item says; tell the process, and when it began and ended."""
    found: list[bytes | Lost] = []
    for item in items:
        began = time.monotonic()
        time.sleep(item)
        found.append(json.dumps([os.getpid(), began, time.monotonic()]).encode())
    return found


def of(n_jobs: int, n: int, seconds: float) -> list[tuple[int, float, float]]:
    told = dict(isolated_map(spans, lambda _: seconds, range(n), n_jobs=n_jobs, batch=1)).values()
    assert None not in told
    return [tuple(json.loads(each or b"")) for each in told]


def meet(items: list[str]) -> list[bytes | Lost]:
    """Say in the folder that this process is at work, and wait until another one has said so; tell the process.

    However late the second one starts, the first is still at work then.
    """
    for item in items:
        Path(item, str(os.getpid())).touch()
        until = time.monotonic() + 60
        while len(list(Path(item).iterdir())) < 2:
            if time.monotonic() > until:
                return [Lost.FAILED for _ in items]
            time.sleep(0.01)
    return [str(os.getpid()).encode() for _ in items]


def two_at_once(folder: Path) -> set[int]:
    """Have six items done by two workers, each of which has seen the other at work; return their processes."""
    folder.mkdir()
    told = dict(isolated_map(meet, lambda _: str(folder), range(6), n_jobs=2, batch=1)).values()
    assert None not in told, "nobody else was at work"
    return {int(each or b"") for each in told}


def test_fewer_are_served_by_the_same_processes_of_which_no_more_work_at_once(tmp_path):
    end_workers()
    two = two_at_once(tmp_path / "two")
    assert len(two) == 2
    one = of(1, 4, 0.05)
    assert all(sum(began <= at < ended for _, began, ended in one) == 1 for _, at, _ in one)
    assert {pid for pid, _, _ in one} <= two
    assert {pid for pid, _, _ in of(2, 2, 0.0)} <= two


def test_more_than_there_are_get_a_new_set(tmp_path):
    end_workers()
    (one,) = {pid for pid, _, _ in of(1, 2, 0.0)}
    two = two_at_once(tmp_path / "two")
    assert len(two) == 2
    assert one not in two


def start_threads(items: list[int]) -> list[bytes | Lost]:
    """Do in a worker what starts the threads of polars there, as a module that a teacher comes from may."""
    assert not polars_threads()
    assert pl.DataFrame({"x": range(9), "y": range(9)})[[1, 2]].height == 2
    assert polars_threads()
    return [str(os.getpid()).encode() for _ in items]


def pid_of_parent(item: int) -> bytes:
    """Do in a child what needs such threads."""
    assert pl.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})[[item % 2]].to_numpy().shape == (1, 2)
    return str(os.getppid()).encode()


def children(items: list[int]) -> list[bytes | Lost]:
    return in_children(pid_of_parent, items, together=True)


def test_no_child_is_forked_from_a_worker_in_which_polars_has_threads():
    """A child would have none of them, and wait for ever."""
    end_workers()
    first = dict(isolated_map(start_threads, int, range(2), n_jobs=2, batch=1))
    assert None not in first.values()
    then = dict(isolated_map(children, int, range(2), n_jobs=2, batch=1))
    assert None not in then.values()
    assert not set(then.values()) & set(first.values())


class HoldsItself:
    """A teacher that no count of references frees."""

    alive: ClassVar[WeakSet[HoldsItself]] = WeakSet()

    def __init__(self) -> None:
        self.myself = self

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        HoldsItself.alive.add(self)


def looked_at_by_a_collection(_: HoldsItself) -> bytes:
    return str(len(gc.get_objects())).encode()


def held(items: list[HoldsItself]) -> list[bytes | Lost]:
    """Tell how many the worker holds, those of this batch too, and what a child of it would look at."""
    alive = str(len(HoldsItself.alive)).encode()
    return [alive + b" " + each for each in in_children(looked_at_by_a_collection, items, together=True)]


def test_a_kept_worker_holds_nothing_of_earlier_batches():
    """Also what holds itself: a worker lives as long as its process, and forks for each of many batches."""
    end_workers()
    told = dict(isolated_map(held, lambda _: HoldsItself(), range(6), n_jobs=1, batch=2)).values()
    assert [each.split()[0] for each in told if each] == [b"2"] * 6


def test_what_a_worker_holds_is_not_looked_at_by_a_collection_in_its_children():
    """It would copy every page that they share."""
    end_workers()
    ((_, told),) = isolated_map(held, lambda _: HoldsItself(), [0], n_jobs=1, batch=1)
    assert int((told or b"").split()[1]) < 1000


def left_behind(items: list[int]) -> list[bytes | Lost]:
    """Leave 350 MB in this process, as what imports torch does; tell the process."""
    KEPT.extend(bytearray(size) for size in items)
    time.sleep(1.1)  # loky looks at a worker once a second
    return [str(os.getpid()).encode() for _ in items]


@pytest.mark.filterwarnings("error")
def test_a_worker_with_which_a_task_has_left_hundreds_of_megabytes_stays():
    processes = dict(isolated_map(left_behind, lambda n: n * 350_000_000, range(3), n_jobs=1, batch=1)).values()
    assert len(set(processes)) == 1, processes


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_nothing_hands_results_out_any_more_all_is_done_again_by_other_workers(monkeypatch):
    from joblib.externals.loky.process_executor import _ExecutorManagerThread

    end_workers()
    process_result_item = _ExecutorManagerThread.process_result_item
    results: list[object] = []

    def of_the_second(thread: Any, result: object) -> None:
        results.append(result)
        if len(results) == 2:
            raise UserWarning
        process_result_item(thread, result)

    monkeypatch.setattr(_ExecutorManagerThread, "process_result_item", of_the_second)
    processes = dict(isolated_map(spans, lambda _: 0.01, range(4), n_jobs=1, batch=1)).values()
    assert len(processes) == 4
    assert None not in processes


def configured(items: list[int]) -> list[bytes | Lost]:
    """Tell what scikit-learn is told in a worker."""
    return [json.dumps(get_config()).encode() for _ in items]


def test_what_the_environment_tells_scikit_learn_is_not_told_to_workers(monkeypatch):
    for name, value in (("ASSUME_FINITE", "1"), ("WORKING_MEMORY", "7"), ("PAIRWISE_DIST_CHUNK_SIZE", "3")):
        monkeypatch.setenv(f"SKLEARN_{name}", value)
    end_workers()  # those of earlier tests have read another environment
    ((_, config),) = isolated_map(configured, int, range(1), n_jobs=1, batch=1)
    with config_context(assume_finite=False, working_memory=1024, pairwise_dist_chunk_size=256):
        assert json.loads(config) == get_config()
    end_workers()
