"""What runs in a child can neither be heard nor take anything down with it."""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.ensemble.voters import misbehave, speak

from quorate import PrivateClassifier, PublicPool
from quorate.ensemble import TrialFailed, tried
from quorate.ensemble.workers import isolation
from quorate.ensemble.workers.isolation import (
    Lost,
    _framed,
    _unframed,
    in_children,
    one_thread_each,
    seed_global_generators,
)
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateError


def noisy(item: int) -> bytes:
    speak()
    return str(item).encode()


WAYS = ["behave", "raise", "exit", "vanish", "segfault", "killed", "interrupt", "memory", "behave"]


def crash(item: int) -> bytes:
    misbehave(WAYS[item])
    return str(item).encode()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("together", [True, False])
def test_nothing_a_child_says_reaches_the_terminal(together, capfd, caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert in_children(noisy, [1, 2], together=together) == [b"1", b"2"]

    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert caught == []


def test_that_test_would_hear_it(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noisy(1)

    out, err = capfd.readouterr()
    assert out.count("private") >= 3
    assert err.count("private") >= 3


@pytest.mark.heavy
@pytest.mark.parametrize("together", [True, False])
def test_an_item_that_crashes_loses_itself_alone(together):
    expected = [b"0", *[Lost.FAILED] * 4, Lost.KILLED, Lost.FAILED, Lost.KILLED, b"8"]

    assert in_children(crash, range(9), together=together) == expected


def test_a_crash_leaves_no_traceback_behind(tmp_path):
    was_enabled = faulthandler.is_enabled()
    with (tmp_path / "traceback").open("w") as file:
        faulthandler.enable(file)
        try:
            assert in_children(crash, [4], together=False) == [Lost.FAILED]
        finally:
            faulthandler.enable(sys.__stderr__) if was_enabled else faulthandler.disable()

    assert (tmp_path / "traceback").read_text() == ""


def use_up_cpu(item: int) -> bytes:
    while item:
        sum(range(1000))
    return b"done"


def sleep(item: int) -> bytes:
    time.sleep(item)
    return b"done"


@pytest.mark.heavy
@pytest.mark.parametrize("together", [True, False])
def test_cpu_time_runs_out_for_the_item_that_used_it(together):
    assert in_children(use_up_cpu, [0, 1, 0], together=together, cpu_seconds=0.2) == [b"done", Lost.FAILED, b"done"]


def test_time_on_the_wall_does_not_count():
    assert in_children(sleep, [1], together=True, cpu_seconds=0.3) == [b"done"]


@pytest.mark.heavy
def test_cpu_time_is_counted_for_each_item_anew():
    def a_little(_: int) -> bytes:
        start = time.process_time()
        while time.process_time() - start < 0.15:
            pass
        return b"done"

    assert in_children(a_little, range(4), together=True, cpu_seconds=0.3) == [b"done"] * 4


def noted(folder: Path, item: int) -> bytes:
    with (folder / "done").open("a") as file:
        file.write(str(item))
    if item == 2:
        os._exit(0)
    return str(item).encode()


@pytest.mark.heavy
@pytest.mark.parametrize(("cpu_seconds", "done"), [(10.0, "01223"), (None, "0120123")])
def test_under_a_limit_no_result_waits_for_a_later_item(tmp_path, monkeypatch, cpu_seconds, done):
    """Without a limit what the crash takes along is computed anew, which gives the same."""
    monkeypatch.setattr(isolation, "_KEEP_SECONDS", 60.0)
    found = in_children(partial(noted, tmp_path), range(4), together=True, cpu_seconds=cpu_seconds)
    assert found == [b"0", b"1", Lost.FAILED, b"3"]
    assert (tmp_path / "done").read_text() == done


@pytest.mark.heavy
def test_what_a_teacher_writes_to_the_pipe_is_a_failure_of_its_own_and_no_error_of_the_worker(monkeypatch):
    pipes = []

    def pipe(*, duplex: bool):
        pipes.append(multiprocessing.Pipe(duplex=duplex))
        return pipes[-1]

    def scribbles(item: int) -> bytes:
        if item == 1:
            os.write(pipes[-1][1].fileno(), (5).to_bytes(4, "big") + b"?????")
        return str(item).encode()

    monkeypatch.setattr(isolation, "Pipe", pipe)
    assert in_children(scribbles, range(3), together=False) == [b"0", Lost.FAILED, b"2"]


def test_results_are_read_as_they_were_written_and_anything_else_is_a_failure():
    assert _unframed(_framed(b"one") + _framed(None) + _framed(b"")) == [b"one", Lost.FAILED, b""]
    assert _unframed(b"anything else") == [Lost.FAILED]


class Joined(bytes):
    def __len__(self) -> int:
        raise MemoryError


def too_much(item: int) -> bytes:
    return Joined(b"all") if item == 1 else b"some"


@pytest.mark.heavy
def test_a_result_for_which_there_is_no_room_is_to_be_settled_by_a_run_alone():
    """Not a failure: a neighbour may have taken the room, and whoever failed is not asked again."""
    assert in_children(too_much, range(3), together=True) == [b"some", Lost.KILLED, b"some"]


def test_libraries_are_looked_for_anew_after_an_import_alone(monkeypatch):
    with one_thread_each():
        known = isolation._libraries(len(sys.modules))
        assert {each["num_threads"] for each in known.info()} <= {1}
    assert isolation._libraries(len(sys.modules)) is known
    monkeypatch.setitem(sys.modules, "a_new_library", sys)
    assert isolation._libraries(len(sys.modules)) is not known


def leave_something_running(item: int) -> bytes:
    # It would hold the pipe open, and go on, if nobody ended it.
    if os.fork() == 0:
        time.sleep(60)
    subprocess.Popen(["sleep", "60"], close_fds=False)
    return b"done"


@pytest.mark.heavy
def test_what_a_child_leaves_running_is_ended_and_not_waited_for():
    start = time.monotonic()

    assert in_children(leave_something_running, [1, 2], together=False) == [b"done", b"done"]
    assert time.monotonic() - start < 30


def remember(item: int, seen: list[int] = []) -> bytes:  # noqa: B006 - state that outlives a call is the point
    seen.append(item)
    return str(seen).encode()


@pytest.mark.heavy
def test_items_apart_share_no_state_and_items_together_would():
    assert in_children(remember, [1, 2], together=False) == [b"[1]", b"[2]"]
    assert in_children(remember, [1, 2], together=True) == [b"[1]", b"[1, 2]"]
    assert remember(0) == b"[0]"


@pytest.mark.heavy
def test_large_results_come_back_whole():
    assert in_children(lambda n: bytes(n), [10_000_000, 0], together=True) == [bytes(10_000_000), b""]


def test_the_global_generators_follow_the_seed():
    def draws(seed: int) -> tuple[float, float]:
        seed_global_generators(seed)
        return random.random(), float(np.random.random())  # noqa: NPY002

    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        assert draws(2**63 - 1) == draws(2**63 - 1)
        assert draws(1) != draws(2)
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


def test_no_core_file_is_written():
    import resource

    def core_limit(_: int) -> bytes:
        return str(resource.getrlimit(resource.RLIMIT_CORE)).encode()

    assert in_children(core_limit, [1], together=True) == [b"(0, 0)"]


class Loud(GaussianNB):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Loud:
        print("loud")
        warnings.warn("loud", UserWarning, stacklevel=2)
        logging.getLogger("loud").critical("loud")
        super().fit(X, y, sample_weight)
        return self


def _state() -> tuple[Any, ...]:
    return (
        sys.stdout, sys.stderr, logging.root.manager.disable, tuple(warnings.filters), dict(os.environ),
        Path.cwd(), np.geterr(), sys.excepthook, warnings.showwarning,
    )  # fmt: skip


def _loud_fit(_: Any) -> Any:
    return Loud().fit(np.arange(4.0).reshape(2, 2), [0, 1]).predict(np.zeros((1, 2))).tolist()


@pytest.mark.heavy
def test_nothing_of_the_process_is_swapped_while_trials_run_in_threads(capfd):
    tried(_loud_fit, None)  # which loads what is loaded once
    before, answers, seen = _state(), [], []

    def work() -> None:
        answers.append(tried(_loud_fit, None))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen.append(_state() == before)
        threads[0].join(0.005)
        for thread in threads[1:]:
            thread.join(0.005)
    assert answers == [[0]] * 3
    assert all(seen)
    assert _state() == before
    assert "loud" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("trial", "failure"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda _: sys.exit("enough"), "SystemExit: enough"),
        (lambda _: os.abort(), "its process ended without a word"),
    ],
    ids=["raises", "exits", "crashes"],
)
def test_what_a_trial_raises_is_told_in_one_line(trial, failure):
    with pytest.raises(TrialFailed, match=failure):
        tried(trial, None)


def test_what_does_not_travel_is_refused_by_its_name():
    lock = threading.Lock()
    with pytest.raises(InvalidParameter, match="the student Locked cannot be sent to a process of its own"):
        tried(lambda _: lock, None, called="the student Locked")


def _fit_in_here(queue: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    fit = PrivateClassifier(classes=[0, 1], epsilon=4.0, delta=1e-5, n_records=60, n_teachers=5).fit
    try:
        fit(X, (X[:, 0] > 0).astype(int), public=PublicPool(rng.normal(size=(20, 2))))
    except QuorateError as refusal:
        queue.put((type(refusal), str(refusal)))
    except BaseException as error:  # noqa: BLE001 - told to the test
        queue.put((type(error), str(error)))


def test_a_process_that_may_have_no_children_is_told_so_before_anything():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_fit_in_here, args=(queue,), daemon=True)
    process.start()
    kind, said = queue.get(timeout=60)
    process.join()
    assert issubclass(kind, PreconditionFailed)
    assert "daemonic" in said
    assert "\n" not in said
