"""What is sent in place of a plain linear teacher trains the same voters, and its workers load no scikit-learn."""

import sys
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.conftest import OneWorker
from tests.ensemble.voters import KEY, learned

from quorate.ensemble import (
    AbstainingVoter,
    ClassifierTeacher,
    ConstantVoter,
    train_elsewhere,
    train_teachers,
    training,
)
from quorate.ensemble.training import BareLinearTeacher, Solved, bare
from quorate.ensemble.workers.cluster.elsewhere import map_elsewhere
from quorate.ensemble.workers.cluster.remote import do_remotely
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

N_TEACHERS = 12


def table(n_classes: int, n_columns: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of twelve shards: one of them empty, one of one class, one with a row that is not a number."""
    rng = np.random.default_rng([n_classes, n_columns])
    X = rng.normal(size=(360, n_columns)) * (rng.random((360, n_columns)) < 0.5)
    y, shards = rng.integers(0, n_classes, 360), rng.integers(0, N_TEACHERS, 360)
    shards[shards == 5] = 6
    y[shards == 3] = 1
    X[np.flatnonzero(shards == 7)[0], 0] = np.nan
    return X, y, shards


def trained(model: Any, X: Any, y: np.ndarray, shards: np.ndarray) -> tuple[Any, ...]:
    n_classes = int(y.max()) + 1
    return train_teachers(
        ClassifierTeacher(model), X, y, Secret(shards), n_teachers=N_TEACHERS, n_classes=n_classes, key=KEY
    ).voters.reveal()


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(10)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("n_classes", "n_columns"), [(2, 8), (2, 60), (3, 5), (4, 60)])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(C=3, fit_intercept=False),
        RidgeClassifier(),
        RidgeClassifier(alpha=0.3, fit_intercept=False),
    ],
    ids=repr,
)
def test_every_voter_is_the_one_that_the_whole_teacher_trains(model, n_classes, n_columns, is_sparse, monkeypatch):
    X, y, shards = table(n_classes, n_columns)
    X = sparse.csr_matrix(X) if is_sparse else X
    light = trained(model, X, y, shards)
    monkeypatch.setattr(training, "bare", lambda *_args, **_kwargs: None)

    whole = trained(model, X, y, shards)

    assert [learned(voter) for voter in light] == [learned(voter) for voter in whole]
    assert {type(light[5]), type(light[7])} == {AbstainingVoter}
    assert light[3] == ConstantVoter(1)


def loaded(_items: list[Any]) -> list[Any]:
    return [str("sklearn" in sys.modules).encode()]


def test_a_shard_that_is_not_solved_is_trained_by_the_teacher_that_is_sent_along(monkeypatch):
    X, y, _ = table(2, 8)
    X = np.nan_to_num(X)
    teacher = ClassifierTeacher(LogisticRegression())
    sent = bare(teacher, lambda: teacher, X, n_teachers=1, n_classes=2)
    assert isinstance(sent, BareLinearTeacher)
    assert isinstance(sent.train(X, y, 5), Solved)
    monkeypatch.setattr("quorate.ensemble.training.optimum", lambda *_args, **_kwargs: None)

    voter = sent.train(X, y, 5)

    assert not isinstance(voter, Solved)
    assert learned(voter) == learned(teacher.train(X, y, 5))


@pytest.mark.parametrize(
    ("model", "X", "n_teachers"),
    [
        (DecisionTreeClassifier(), np.zeros((40, 3)), 2),
        (LogisticRegression(class_weight="balanced"), np.zeros((40, 3)), 2),
        (make_pipeline(StandardScaler(), LogisticRegression()), np.zeros((40, 3)), 2),
        (LogisticRegression(), np.zeros((40, 3), dtype=np.float32), 2),
        (LogisticRegression(), np.zeros((20_000, 50)), 1),
        (RidgeClassifier(), np.zeros((300_000, 50)), 1),
    ],
    ids=["tree", "class weights", "pipeline", "32 bits", "large shards", "large shards of ridge"],
)
def test_what_the_solver_leaves_to_scikit_learn_is_sent_as_it_is(model, X, n_teachers):
    teacher = ClassifierTeacher(model)

    assert bare(teacher, lambda: teacher, X, n_teachers=n_teachers, n_classes=2) is None


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
def test_the_teachers_of_a_worker_are_those_of_this_machine(model, sizes, folder, worker):
    found = dict(train_elsewhere(ClassifierTeacher(model), parts(), scheduler=worker, **SHARED))
    here = train_teachers(ClassifierTeacher(model), X, Y, Secret(SHARDS), **SHARED).voters.reveal()
    assert [learned(found[number].reveal()) for number in range(K)] == [learned(each) for each in here]
    assert {type(here[7])} == {AbstainingVoter}
    assert worker.sizes == sizes
    assert list(folder.iterdir()) == []


@pytest.mark.heavy
@pytest.mark.parametrize("whole", [False, True])
def test_a_worker_loads_scikit_learn_only_for_teachers_that_are_made_of_it(whole, folder, monkeypatch):
    worker: Any = OneWorker(folder, do_remotely)
    if whole:  # a twin, which is found out
        monkeypatch.setattr(training, "lightest", lambda _teacher, pickled, *_args, **_kwargs: pickled)
    list(train_elsewhere(ClassifierTeacher(LogisticRegression()), parts(), scheduler=worker, **SHARED))
    ((_, said),) = map_elsewhere(worker, loaded, [(0, None)])  # in the same process
    assert said == str(whole).encode()


def test_nothing_is_sent_where_no_teacher_is_wanted(worker):
    assert list(train_elsewhere(ClassifierTeacher(LogisticRegression()), (), scheduler=worker, **SHARED)) == []
    assert worker.sizes == []
