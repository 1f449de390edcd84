"""Training: reproducible teacher by teacher, silent, and unstoppable."""

import importlib
import pickle
import sys
import threading
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.ensemble.voters import KEY, misbehave, shards_of, speak

from quorate.ensemble import (
    AbstainingVoter,
    ClassifierTeacher,
    ConstantVoter,
    Ensemble,
    count_votes,
    teacher_seed,
    train_chunk,
    train_teachers,
)
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, SecretRefused
from quorate.types import Secret

# Test modules cannot be imported by a worker process; what they define travels by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.mostly_heavy

K = 6
RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=300) > 0).astype(np.int64)
SHARDS = shards_of(300, K)
ROWS = [np.flatnonzero(SHARDS.reveal() == number) for number in range(K)]


def train(teacher, X=X, y=Y, shards=SHARDS, numbers=range(K), n_classes=2, **options):
    return train_chunk(
        teacher, X, y, shards, numbers=numbers, n_teachers=K, n_classes=n_classes, key=KEY, **options
    ).reveal()


class Remembers:
    """Its voter is what it was given."""

    def __init__(self, X, y, seed):
        self.X, self.y, self.seed = X, y, seed

    def vote(self, X):
        return np.zeros(len(X), dtype=np.int64)


class Remember:
    def train(self, X, y, seed):
        return Remembers(X, y, seed)


class Misbehave:
    """Does something else on each shard, as told by the first feature of its rows."""

    def __init__(self, ways, together):
        self.ways, self.keeps_no_global_state = ways, together

    def train(self, X, y, seed):
        match self.ways.get(int(X[0, 0]), "behave"):
            case "no voter":
                return 3
            case "no pickle":
                return type("Locked", (), {"vote": ConstantVoter(0).vote, "lock": threading.Lock()})
            case "unreadable":
                return Unreadable()
            case way:
                misbehave(way)
        return ConstantVoter(1)


class Unreadable:
    def vote(self, X):
        return np.zeros(len(X), dtype=np.int64)

    def __reduce__(self):
        return int, ("not a number",)


WAYS = ["raise", "exit", "vanish", "segfault", "killed", "memory", "no voter", "no pickle", "unreadable"]
BY_SHARD = np.repeat(np.arange(float(K)), 2).reshape(-1, 1)
SHARD_OF_ROW = Secret(np.repeat(np.arange(K), 2))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("way", "options"),
    [*((way, {}) for way in WAYS), ("kill the worker", {"n_jobs": 2}), ("spin", {"teacher_cpu_seconds": 0.3})],
)
def test_a_teacher_that_fails_abstains_alone(way, options, together):
    teacher, y = Misbehave({1: way, 4: way}, together), np.zeros(2 * K, dtype=np.int64)
    voters = train(teacher, BY_SHARD, y, SHARD_OF_ROW, **options)

    assert [type(voter) for voter in voters] == [
        AbstainingVoter if number in {1, 4} else ConstantVoter for number in range(K)
    ]


class Talks:
    def train(self, X, y, seed):
        speak()
        if y[0]:
            raise ValueError("row")
        return Shouts()


class Shouts:
    def vote(self, X):
        speak()
        raise ValueError("row")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_a_teacher_says_reaches_the_terminal(n_jobs, capfd, caplog):
    ensemble = train_teachers(Talks(), X, Y, SHARDS, n_teachers=K, n_classes=2, key=KEY, n_jobs=n_jobs)
    counts = count_votes(ensemble, X[:3], n_jobs=n_jobs).reveal()

    assert counts.sum() == 0
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.quick
def test_a_logistic_teacher_is_the_model_fitted_on_its_shard_alone():
    voters = train(ClassifierTeacher(LogisticRegression(), batched=False))
    slow = [LogisticRegression().fit(X[ROWS[number]], Y[ROWS[number]]).coef_ for number in range(K)]

    assert all((voter.estimator.coef_ == by_hand).all() for voter, by_hand in zip(voters, slow, strict=True))


class DrawsFromTheGlobalGenerator:
    keeps_no_global_state = True  # together in one process, where a shared generator would show

    def train(self, X, y, seed):
        return Remembers(np.random.random(), None, seed)  # noqa: NPY002


@pytest.mark.quick
def test_the_global_generator_is_each_teachers_own():
    whole = [voter.X for voter in train(DrawsFromTheGlobalGenerator())]
    last = [voter.X for voter in train(DrawsFromTheGlobalGenerator(), numbers=range(5, 6))]

    assert len(set(whole)) == K
    assert whole[5:] == last


def test_a_teacher_is_given_its_rows_in_order_and_its_own_seed():
    for number, voter in enumerate(train(Remember())):
        assert (X[ROWS[number]] == voter.X).all()
        assert (voter.y == Y[ROWS[number]]).all()
        assert voter.seed == teacher_seed(KEY, number)
    assert len({teacher_seed(KEY, number) for number in range(1000)}) == 1000


def test_a_pandas_shard_tells_nothing_of_the_rows_beside_it():
    """Neither their number, through the index, nor their values, through the categories of the whole table."""

    def shards(values):
        frame = pd.DataFrame({"city": pd.Categorical(values, categories=list(dict.fromkeys(values)))})
        voters = train(Remember(), frame, np.zeros(2 * K, dtype=np.int64), SHARD_OF_ROW)
        return [(voter.X["city"].cat.categories.tolist(), voter.X.index.tolist()) for voter in voters]

    before = shards(["b", "a"] * K)
    after = shards(["rare", "a", *["b", "a"] * (K - 1)])

    assert before[0] != after[0]
    assert before[1:] == after[1:]
    assert before[1] == (["a", "b"], [0, 1])


def test_private_rows_are_not_written_to_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    wide = np.zeros((K, 400_000))  # far above joblib's limit for arrays that are not memory-mapped
    in_shm = set(Path("/dev/shm").glob("*")) if Path("/dev/shm").exists() else set()
    seen = []

    def look(*_):
        seen.extend(path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1000)
        if Path("/dev/shm").exists():
            new = set(Path("/dev/shm").glob("joblib*")) - in_shm
            seen.extend(path for folder in new for path in folder.rglob("*"))

    ways = Secret(np.arange(K))
    train(Remember(), wide, np.zeros(K, dtype=np.int64), ways, progress=look, n_jobs=2)
    assert seen == []


def test_progress_counts_teachers():
    told = []
    train(Remember(), numbers=range(2, K), progress=lambda *numbers: told.append(numbers))

    assert told == [(done, 4) for done in range(1, 5)]


def test_what_an_interrupted_training_left_can_be_followed_by_another():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Remember(), progress=stop)
    assert len(train(Remember())) == K


def test_the_ensemble_tells_its_size_and_nothing_else():
    ensemble = train_teachers(ClassifierTeacher(LogisticRegression()), X, Y, SHARDS, n_teachers=K, n_classes=2, key=KEY)

    assert repr(ensemble) == str(ensemble) == "Ensemble(n_classes=2)"  # with a teacher a unit, how many is secret
    with pytest.raises(SecretRefused):
        pickle.dumps(ensemble)
    with pytest.raises(SecretRefused):
        cloudpickle.dumps(ensemble)
    with pytest.raises(InvalidParameter, match="voters must be a Secret"):
        Ensemble((ConstantVoter(0),), n_classes=2)


@pytest.mark.quick
def test_chunks_make_an_ensemble():
    teacher = ClassifierTeacher(LogisticRegression())
    chunks = [Secret(train(teacher, numbers=numbers)) for numbers in (range(2), range(2, K))]
    joined = Ensemble.from_chunks(chunks, n_classes=2)
    whole = train_teachers(teacher, X, Y, SHARDS, n_teachers=K, n_classes=2, key=KEY)

    assert len(joined.voters.reveal()) == K
    assert (count_votes(joined, X).reveal() == count_votes(whole, X).reveal()).all()


@pytest.mark.quick
def test_what_does_not_fit_is_refused_before_anything_is_trained():
    with pytest.raises(DataRefused, match="differ in number"):
        train(Remember(), y=Y[:-1])
    with pytest.raises(DataRefused, match="outside the 2 classes"):
        train(Remember(), y=Y + 1)
    with pytest.raises(DataRefused, match="class codes"):
        train(Remember(), y=Y.astype(float))
    with pytest.raises(InvalidParameter, match="shards must be"):
        train(Remember(), shards=Secret(SHARDS.reveal() + 1))
    with pytest.raises(InvalidParameter, match="numbers must be"):
        train(Remember(), numbers=range(K + 1))
    for n_jobs in (0, True, 1.5):
        with pytest.raises(InvalidParameter, match="n_jobs"):
            train(Remember(), n_jobs=n_jobs)
    for seconds in (0, float("nan"), True, "1"):
        with pytest.raises(InvalidParameter, match="teacher_cpu_seconds"):
            train(Remember(), teacher_cpu_seconds=seconds)


class CannotTravel:
    def __init__(self):
        self.lock = threading.Lock()

    def train(self, X, y, seed): ...


class CannotArrive(Unreadable):
    def train(self, X, y, seed): ...


def test_a_teacher_that_no_worker_can_have_is_refused():
    with pytest.raises(InvalidParameter, match="Wrap a classifier in ClassifierTeacher"):
        train(LogisticRegression())
    with pytest.raises(InvalidParameter, match="cannot be sent to a worker"):
        train(CannotTravel())
    with pytest.raises(PreconditionFailed, match="cannot load the teacher: ValueError"):
        train(CannotArrive())


def test_code_that_became_importable_after_the_workers_started_is_found(tmp_path, monkeypatch):
    """As in a notebook that changes its directory, or its path, between two fits."""
    train(ClassifierTeacher(LogisticRegression()))
    (tmp_path / "later_teachers.py").write_text(
        "from sklearn.linear_model import LogisticRegression\nclass Later(LogisticRegression):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    later = importlib.import_module("later_teachers").Later

    assert all(type(voter.estimator).__name__ == "Later" for voter in train(ClassifierTeacher(later())))


def test_the_users_own_joblib_works_after_teachers_were_trained():
    """A regression: workers taken from loky's shared pool left joblib with an executor that it could not use."""
    train(ClassifierTeacher(GaussianNB()))

    assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-i) for i in range(3)) == [0, 1, 2]
