"""Columns may be called by anything: a name is made a text once, where a frame comes in, and looked up as that."""

import warnings

import numpy as np
import pandas as pd
import pytest

from quorate import (
    LabelPrivateClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    SubsampleAggregate,
    check,
    plan,
)
from quorate.data.rows import as_rows
from quorate.errors import QuorateError
from quorate.learners import Binning, NoisyThreshold, telling_columns
from quorate.learners.concepts import Thresholds

NAMES = {
    "numbers": [0, 1, 2],
    "levels": pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]),
    "of every kind": [None, 0.5, pd.Timestamp("2020-01-01")],
}
TEXTS = {
    "numbers": ["0", "1", "2"],
    "levels": ["a/x", "a/y", "b/x"],
    "of every kind": ["None", "0.5", "2020-01-01 00:00:00"],
}
PROMISED = {"classes": ["no", "yes"], "epsilon": 8.0, "delta": 1e-5}
FEW = {"n_teachers": 5, "n_jobs": 1, "allow_hopeless": True, "unsafe_noise_seed": 1}
draw = np.random.default_rng(3)
TABLES = [draw.normal(size=(n, 3)) for n in (120, 60, 20)]
ANSWERS = [np.where(table[:, 0] > 0, "yes", "no") for table in TABLES]


def frames(names):
    made = [pd.DataFrame(table) for table in TABLES]
    for frame in made:
        frame[2] = np.where(frame[2] > 0, "u", "v")
        frame.columns = pd.Index(names, tupleize_cols=False) if isinstance(names, list) else names
    return made


def by_votes(X, U, new):
    clf = PrivateClassifier(**PROMISED, **FEW, n_records=120, online_answers=2)
    public = PublicPool(U)
    check(clf, X, ANSWERS[0], public=public)
    clf.fit(X, ANSWERS[0], public=public)
    clf.facts(evaluation=(new, ANSWERS[2]))
    clf.ask(new[:2])
    return clf


def by_rounds(X, U, new):
    clf = PrivateLogisticRegression(**PROMISED, n_records=120, unsafe_noise_seed=1)
    public = PublicPool(U)
    check(clf, X, ANSWERS[0], public=public)
    clf.fit(X, ANSWERS[0], public=public)
    clf.facts(evaluation=(new, ANSWERS[2]))
    return clf


def by_labels(X, U, new):
    clf = LabelPrivateClassifier(**PROMISED, **FEW)
    check(clf, X, ANSWERS[0])
    return clf.fit(X, ANSWERS[0])


WAYS = [by_votes, by_rounds, by_labels]


@pytest.mark.heavy
@pytest.mark.heavy_cases(4)
@pytest.mark.several_fits
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NAMES)
def test_a_name_of_any_kind_does_as_well_as_its_text(kind, way):
    given, as_text = frames(NAMES[kind]), frames(TEXTS[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, texts = way(*given), way(*as_text)
    assert own.feature_names_in_.tolist() == TEXTS[kind]
    in_another_order = [] if way is by_labels else [given[2].iloc[:, ::-1]]  # which that one refuses
    for new in (given[2], as_text[2], *in_another_order):
        assert own.predict(new).tolist() == texts.predict(as_text[2]).tolist()
    assert own.predict_proba(given[2]).tolist() == texts.predict_proba(as_text[2]).tolist()
    assert given[0].columns.tolist() == list(NAMES[kind])  # the owner's own frame stays as it was


@pytest.mark.heavy
def test_an_array_has_the_columns_that_pandas_numbers():
    private, public, new = map(pd.DataFrame, TABLES)
    clf = PrivateLogisticRegression(**PROMISED, n_records=120, unsafe_noise_seed=1)
    clf.fit(private, ANSWERS[0], public=PublicPool(public))
    assert clf.predict(TABLES[2]).tolist() == clf.predict(new).tolist()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("names", [[0, "0", 1], [("a", "b"), "a/b", "c"]], ids=["number", "levels"])
def test_two_names_that_become_one_are_refused_in_a_line_wherever_a_frame_comes_in(names):
    twice, sound = frames(names)[0], frames(["a", "b", "c"])
    said = rf"more than one column is called '{'0' if 0 in names else 'a/b'}'; rename one of them"
    ways = [
        lambda: PublicPool(twice),
        lambda: as_rows(twice),
        *(lambda way=way: way(twice, sound[1], sound[2]) for way in WAYS),
        lambda: plan(public=twice, n_records=120, **PROMISED),
        lambda: NoisyThreshold(concepts=Thresholds(bits=4), epsilon=1.0).fit(twice, ANSWERS[0]),
        lambda: SubsampleAggregate(epsilon=1.0, delta=1e-5, n_shards=60, cutoff=1, n_queries=1).fit(twice),
        lambda: telling_columns(twice.iloc[:, :2], 1),
    ]
    for way in ways:
        with pytest.raises(QuorateError, match=said):
            way()


@pytest.mark.parametrize("kind", NAMES)
def test_learners_and_their_levels_know_names_of_any_kind(kind):
    given, texts = frames(NAMES[kind])[1], frames(TEXTS[kind])[1]
    levels = Binning.from_pool(texts, TEXTS[kind], levels=4)
    assert np.array_equal(levels.transform(given), levels.transform(texts))
    assert np.array_equal(
        Binning(dict(zip(NAMES[kind], levels.cuts.values(), strict=True))).transform(given), levels.transform(texts)
    )
    assert telling_columns(given, 2) == telling_columns(texts, 2)
    one = pd.DataFrame({NAMES[kind][1]: np.arange(200) % 16})
    learner = NoisyThreshold(concepts=Thresholds(bits=4), epsilon=8.0, unsafe_noise_seed=1)
    learner.fit(one, np.arange(200) % 16 > 7)
    assert learner.feature_names_in_.tolist() == [TEXTS[kind][1]]
    learner.predict(one)


@pytest.mark.heavy
def test_a_function_of_an_aggregate_is_given_the_names_of_its_owner():
    given = pd.DataFrame({0: np.ones(200)})
    private = SubsampleAggregate(epsilon=50.0, delta=1e-5, n_shards=40, cutoff=1, n_queries=1, n_jobs=1).fit(given)
    assert private.feature_names_in_.tolist() == ["0"]
    assert private.ask(lambda X, y: int(X[0].mean())) == 1
