"""Teachers trained elsewhere are those of this machine; plain linear ones travel as their numbers alone there too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.one_worker import OneWorker
from tests.ensemble.voters import KEY, learned

from quorate.ensemble import AbstainingVoter, ClassifierTeacher, train_elsewhere, train_teachers, training
from quorate.ensemble.workers.cluster.elsewhere import map_elsewhere
from quorate.ensemble.workers.cluster.remote import do_remotely
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

K, C = 300, 2
RNG = np.random.default_rng(3)
X = RNG.normal(size=(K * 8, 4))
Y = (X[:, 0] + RNG.normal(size=len(X)) > 0).astype(np.int64)
SHARDS = np.repeat(np.arange(K), 8)
SHARDS[SHARDS == 7] = 8  # the seventh has no row
Y[SHARDS == 9] = 1
X[np.flatnonzero(SHARDS == 10)[0], 0] = np.nan
SHARED: dict[str, Any] = {"n_teachers": K, "n_classes": C, "key": KEY}


def parts() -> Any:
    """The rows of sixty-four teachers at a time, as a run hands them over."""
    for start in range(0, K, 64):
        numbers = range(start, min(start + 64, K))
        mine = np.isin(SHARDS, numbers)
        yield numbers, X[mine], Y[mine], Secret(SHARDS[mine])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("model", "sizes"), [(LogisticRegression(), [300]), (DecisionTreeClassifier(max_depth=2), [64, 64, 64, 108])]
)
def test_the_teachers_of_a_worker_are_those_of_this_machine(
    model: Any, sizes: list[int], folder: Path, worker: Any
) -> None:
    found = dict(train_elsewhere(ClassifierTeacher(model), parts(), scheduler=worker, **SHARED))
    here = train_teachers(ClassifierTeacher(model), X, Y, Secret(SHARDS), **SHARED).voters.reveal()
    assert [learned(found[number].reveal()) for number in range(K)] == [learned(each) for each in here]
    assert {type(here[7])} == {AbstainingVoter}
    assert worker.sizes == sizes
    assert list(folder.iterdir()) == []


def says_what_is_loaded(items: list[Any]) -> list[Any]:
    return [str("sklearn" in sys.modules).encode() for _ in items]


@pytest.mark.heavy
@pytest.mark.parametrize("whole", [False, True])
def test_a_worker_loads_scikit_learn_only_for_teachers_that_are_made_of_it(
    whole: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker: Any = OneWorker(folder, do_remotely)
    if whole:  # a twin, which is found out
        monkeypatch.setattr(training, "lightest", lambda _teacher, pickled, *_args, **_kwargs: pickled)
    list(train_elsewhere(ClassifierTeacher(LogisticRegression()), parts(), scheduler=worker, **SHARED))
    ((_, said),) = map_elsewhere(worker, says_what_is_loaded, [(0, None)])  # in the same process
    assert said == str(whole).encode()


def test_nothing_is_sent_where_no_teacher_is_wanted(worker: Any) -> None:
    assert list(train_elsewhere(ClassifierTeacher(LogisticRegression()), (), scheduler=worker, **SHARED)) == []
    assert worker.sizes == []
