"""A trial on public rows has no hold on the process it is asked from, and its failures are told."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from quorate import PrivateClassifier, PublicPool
from quorate.ensemble import TrialFailed, tried
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateError


class Loud(GaussianNB):
    """A model that prints, warns and logs."""

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
def test_nothing_of_the_process_is_swapped_while_trials_run_in_threads(capfd: pytest.CaptureFixture[str]) -> None:
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
def test_what_a_trial_raises_is_told_in_one_line(trial: Any, failure: str) -> None:
    with pytest.raises(TrialFailed, match=failure):
        tried(trial, None)


def test_what_does_not_travel_is_refused_by_its_name() -> None:
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


def test_a_process_that_may_have_no_children_is_told_so_before_anything() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_fit_in_here, args=(queue,), daemon=True)
    process.start()
    kind, said = queue.get(timeout=60)
    process.join()
    assert issubclass(kind, PreconditionFailed)
    assert "daemonic" in said
    assert "\n" not in said
