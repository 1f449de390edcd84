"""Label privacy: what it promises and what not, on any rows, with nothing of the labels left behind."""

import pickle
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_classification
from sklearn.naive_bayes import BernoulliNB

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.accounting import Guarantee
from quorate.data import load_mushroom
from quorate.ensemble import partition_rows, train_teachers
from quorate.noise import OSNoise
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.prepare import prepare

pytestmark = pytest.mark.mostly_heavy
PROMISED = {"epsilon": 1.0, "delta": 1e-5, "allow_hopeless": True}  # few teachers, to be quick


def made(n=1_200, seed=0):
    return make_classification(n, n_features=6, n_informative=4, class_sep=1.5, random_state=seed)


X, y = made(300)


@pytest.fixture(scope="module")
def fitted():
    X, y = made()
    return LabelPrivateClassifier(classes=[0, 1], **PROMISED, n_jobs=1).fit(X[:1_000], y[:1_000])


def test_the_guarantee_is_another_sentence_than_that_of_records_in_report_and_summary_too(fitted, tmp_path):
    promised = fitted.guarantee_
    assert (promised.unit, promised.neighbours) == ("label", "replace one label")
    assert promised.caveats[0].startswith("the guarantee is for labels only: every feature")
    assert (promised.epsilon, promised.delta) == pytest.approx((1.0, 1e-5), rel=1e-6)
    assert Guarantee.from_json(promised.to_json()) == promised
    page = fitted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "labels only" in page
    assert "replace one label" in page
    assert "any one label" in fitted.summary()


def test_it_learns_without_any_other_public_rows(fitted):
    X, y = made()
    generous = LabelPrivateClassifier(classes=[0, 1], epsilon=8.0, delta=1e-5, n_jobs=1).fit(X[:1_000], y[:1_000])
    assert generous.score(X[1_000:], y[1_000:]) > 0.7  # without privacy: .775
    assert fitted.predict_proba(X[1_000:]).shape == (200, 2)
    assert fitted.queries_.max() < 1_000
    assert len(fitted.queries_) == fitted.recipe_.n_queries == 1_000


def test_features_that_serve_as_the_pool_beat_a_small_pool_of_other_rows():
    mushroom = load_mushroom()
    X, y = mushroom.one_hot(), mushroom.labels
    order = np.random.default_rng(0).permutation(len(X))
    train, pool, test = order[:4_000], order[4_000:4_060], order[4_060:6_060]
    settings = {"classes": list(mushroom.classes), "epsilon": 0.5, "delta": 1e-5, "n_jobs": 1, "unsafe_noise_seed": 1}
    ours = LabelPrivateClassifier(**settings).fit(X[train], y[train]).score(X[test], y[test])
    theirs = PrivateClassifier(method="votes", **settings, n_records=4_000).fit(
        X[train], y[train], public=PublicPool(X[pool])
    )
    assert ours > theirs.score(X[test], y[test]) + 0.01


def task_of(X, y, groups=None):
    return prepare(
        RunConfig(classes=[0, 1], **PROMISED, n_teachers=12, partition="balanced", labels_only=True, n_jobs=1),
        X, y, public=PublicPool(X), groups=groups, key=Secret(bytes(32)), fingerprint_key=Secret(bytes(32)),
        noise=OSNoise(),
    )  # fmt: skip


def votes_of_each(task, X, *, trainer=None):
    private = task.inputs.private.reveal()
    shards = partition_rows(private.unit_keys, 12, task.key, partition=task.partition)
    ensemble = train_teachers(
        trainer or task.trainer, X, private.codes, shards, n_teachers=12, n_classes=2, key=task.key
    )
    return [voter.vote(X) for voter in ensemble.voters.reveal()]


def test_one_label_changes_one_teacher():
    X, y = made(240)
    before = votes_of_each(task_of(X, y), X)
    moved = []
    for row in range(0, 240, 40):
        other = y.copy()
        other[row] = 1 - other[row]
        after = votes_of_each(task_of(X, other), X)
        moved.append(sum((a != b).any() for a, b in zip(before, after, strict=True)))
    assert max(moved) == 1


@pytest.mark.quick
def test_all_labels_of_a_person_change_one_teacher():
    X, y = made(240)
    people = np.repeat(np.arange(60), 4)
    task = task_of(X, y, people)
    assert task.neighbouring.stated == "replace one person's labels"
    other = y.copy()
    other[8:12] = 1 - other[8:12]
    pairs = zip(votes_of_each(task, X), votes_of_each(task_of(X, other, people), X), strict=True)
    assert sum((a != b).any() for a, b in pairs) == 1


def test_a_shard_that_depends_on_labels_is_caught():
    """The cheat: rows sorted by label before they are dealt out, so that one label shifts the rest."""
    X, y = made(240)
    other = y.copy()
    other[0] = 1 - other[0]

    def dealt(labels):
        order = np.argsort(labels, kind="stable")
        shards = np.empty(240, dtype=np.int64)
        shards[order] = np.arange(240) % 12
        task = task_of(X, labels)
        ensemble = train_teachers(task.trainer, X, labels, Secret(shards), n_teachers=12, n_classes=2, key=task.key)
        return [voter.vote(X) for voter in ensemble.voters.reveal()]

    assert sum((a != b).any() for a, b in zip(dealt(y), dealt(other), strict=True)) > 1


def test_what_is_kept_after_a_fit_holds_no_label_vote_or_teacher(fitted):
    _, y = made()
    travelled = pickle.dumps(fitted)
    labels = y[:1_000]
    for kind in (np.int64, np.int32, np.int8, np.float64):
        assert labels.astype(kind).tobytes() not in travelled
    assert b"Secret" not in travelled
    again = pickle.loads(travelled)  # noqa: S301 - made here
    assert_array_equal(again.predict(made()[0]), fitted.predict(made()[0]))
    assert again.guarantee_ == fitted.guarantee_


def test_any_container_of_the_same_numbers_gives_the_same_student():
    names = [f"column {i}" for i in range(6)]
    containers = [X, X.tolist(), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]
    settings = {"classes": [0, 1], **PROMISED, "n_teachers": 5, "n_jobs": 1, "unsafe_noise_seed": 3}
    students = [LabelPrivateClassifier(**settings).fit(rows, y) for rows in containers]
    told = [clf.predict(rows).tolist() for clf, rows in zip(students, containers, strict=True)]
    assert told[0] == told[1] == told[2] == told[3]


@pytest.mark.several_fits
def test_sparse_rows_and_frames_with_texts_are_taken():
    settings = {"classes": [0, 1], **PROMISED, "n_teachers": 5, "n_jobs": 1}
    clf = LabelPrivateClassifier(**settings).fit(csr_array(np.maximum(X, 0)), y)
    assert clf.predict(csr_array(np.maximum(X, 0))).shape == (300,)
    frame = pl.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    mixed = LabelPrivateClassifier(**settings).fit(frame, y)
    assert mixed.predict(frame).shape == (300,)


def test_prior_matching_and_other_mechanisms_are_passed_on():
    X, y = made(400)
    clf = LabelPrivateClassifier(
        BernoulliNB(), classes=[0, 1], **PROMISED, n_teachers=8, queries=50, mechanism="GaussianNoisyMax",
        prior_matching=True, n_jobs=1,
    ).fit(X, y)  # fmt: skip
    assert len(clf.queries_) == 50
    assert not clf.released_.holds_values


def test_classes_may_be_read_where_the_owner_says_that_they_are_public():
    clf = LabelPrivateClassifier(classes="public", **PROMISED, n_teachers=5, n_jobs=1).fit(X, np.array(["b", "a"])[y])
    assert clf.classes_.tolist() == ["a", "b"]
    assert "which labels occur was read off the data and is treated as public" in clf.guarantee_.caveats


class Answer(str, Enum):  # noqa: UP042 - whose str() is its name
    NO = "no"
    YES = "yes"


@pytest.mark.parametrize("classes", [["no", "yes"], list(Answer), "public"])
def test_labels_of_another_type_are_the_classes_that_say_the_same(classes):
    """A regression: an array of members of an enumeration holds their names, and not what they say."""
    how = {**PROMISED, "classes": classes, "n_teachers": 5, "n_jobs": 1, "unsafe_noise_seed": 0}
    given = [[list(Answer)[code] for code in y], np.array(["no", "yes"])[y].tolist()]
    if classes != "public":  # whose classes are in the type that y has
        given.append([word.encode() for word in given[1]])
    fits = [LabelPrivateClassifier(**how).fit(X, labels) for labels in given]
    assert [fit.classes_.tolist() for fit in fits] == [["no", "yes"]] * len(fits)
    for fit in fits[1:]:
        assert_array_equal(fit.predict(X), fits[0].predict(X))
