"""Boosting of scikit-learn and of other libraries as teachers: labels, missing values, threads, exactness, few rows."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate.ensemble import ClassifierTeacher, dump_voters, load_voters
from quorate.ensemble.teachers.classifier import ClassifierVoter, on_one_thread
from quorate.ensemble.teachers.prior_matching import PriorMatchingTeacher
from quorate.errors import PreconditionFailed
from quorate.types import Secret
from quorate.voting.models import built_in, model_of

xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")

RNG = np.random.default_rng(11)
CLASSES = ["cold", "mild", "warm"]


def rows(n: int, *, holes: bool = True):
    X = RNG.normal(size=(n, 4))
    codes = np.digitize(X[:, 0], [-0.4, 0.4])
    if holes:
        X[RNG.random(n) < 0.2, 3] = np.nan
    return X, np.array(CLASSES)[codes]


def models() -> dict[str, object]:
    return {
        "scikit-learn": HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
        "xgboost": xgboost.XGBClassifier(n_estimators=8, max_depth=3),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=8, min_child_samples=5, verbosity=-1),
    }


@pytest.mark.parametrize("name", models())
def test_a_shard_without_some_of_the_classes_votes_for_its_own(name):
    X, _ = rows(80, holes=False)
    y = np.where(X[:, 0] > 0, 7, 2)
    votes = ClassifierTeacher(models()[name]).train(X, y, 3).vote(X)

    assert set(votes.tolist()) == {2, 7}
    assert (votes == y).mean() > 0.9


def test_labels_that_are_not_relabelled_would_fail():
    X, _ = rows(80, holes=False)
    with pytest.raises(ValueError, match="classes"):
        models()["xgboost"].fit(X, np.where(X[:, 0] > 0, 7, 2))


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("step", [False, True])
def test_each_teacher_keeps_to_one_thread_and_draws_from_its_seed(name, step):
    model = models()[name].set_params(n_jobs=4, subsample=0.7)
    model = make_pipeline(StandardScaler(), model) if step else model
    teacher = ClassifierTeacher(model)
    fresh = teacher.fresh(5)
    last = fresh.steps[-1][1] if step else fresh

    assert last.n_jobs == 1
    assert last.random_state == (teacher.fresh(5).steps[-1][1] if step else teacher.fresh(5)).random_state
    assert (model.steps[-1][1] if step else model).n_jobs == 4  # its owner's stays


def test_lightgbm_does_not_choose_its_way_by_the_clock():
    fresh = ClassifierTeacher(models()["lightgbm"]).fresh(1)
    assert fresh.get_params()["deterministic"]
    assert fresh.get_params()["force_row_wise"]

    chosen = lightgbm.LGBMClassifier(force_col_wise=True)
    on_one_thread(chosen)
    assert "force_row_wise" not in chosen.get_params()


@pytest.mark.parametrize("name", models())
def test_the_same_shard_gives_the_same_trees_whatever_it_is_trained_beside(name):
    X, y = rows(120)
    codes = np.array([CLASSES.index(each) for each in y])
    teacher = ClassifierTeacher(models()[name])
    first = teacher.train(X, codes, 9).estimator.predict_proba(X)
    teacher.train(X[::-1], codes[::-1], 10)

    assert (teacher.train(X, codes, 9).estimator.predict_proba(X) == first).all()


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_trees_are_kept_in_the_text_of_their_library_and_vote_the_same_when_read(name):
    X, y = rows(90)
    three = np.array([CLASSES.index(label) for label in y])
    two = (three > 0).astype(np.int64)
    weighted = clone(models()[name])
    if name == "lightgbm":
        weighted.set_params(class_weight={"warm": 5})
    voters = (
        ClassifierTeacher(models()[name]).train(X, three, 1),
        ClassifierTeacher(models()[name]).train(X, two * 2, 2),  # a shard without one of the classes
        ClassifierTeacher(weighted).with_classes(CLASSES).train(X, two * 2, 3),
        PriorMatchingTeacher(ClassifierTeacher(models()[name]), X).train(X, two, 4),
    )
    written = dump_voters(Secret(voters)).reveal()
    X_new = rows(400)[0]

    for before, after in zip(voters, load_voters(written).reveal(), strict=True):
        assert type(after) is type(before)
        assert np.array_equal(after.vote(X_new), before.vote(X_new))
    with pytest.raises(PreconditionFailed, match="not a file of teachers"):
        load_voters(written[:-40])


def test_an_objective_of_the_owners_own_is_not_kept():
    X, y = rows(60)
    own = xgboost.XGBClassifier(n_estimators=2, objective=lambda truth, raw: (raw - truth, np.ones_like(raw)))
    voter = ClassifierVoter(own.fit(X, (y == "warm").astype(int)), np.array([0, 1]))
    assert dump_voters(Secret((voter,))) is None


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_a_name_in_a_run_stands_for_small_trees(name, tmp_path):
    assert type(model_of(name, "teacher", folder=tmp_path)).__module__.startswith(name)


@pytest.mark.parametrize(
    ("name", "library"),
    [("xgboost", "xgboost"), ("lightgbm", "lightgbm"), ("mine:net", "skorch"), ("mine:net", "torch")],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(name, library, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(f"import {library}\n\ndef net():\n    return {library}.x\n")
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    extra = "torch" if library == "skorch" else library
    with pytest.raises(PreconditionFailed) as refused:
        model_of(name, "teacher", folder=tmp_path)
    assert f'{library} is not installed; install it with: pip install "quorate[{extra}]"' in str(refused.value)


def test_the_names_are_not_for_students():
    with pytest.raises(Exception, match="student model 'xgboost' is not built in"):
        built_in("xgboost", "student")
