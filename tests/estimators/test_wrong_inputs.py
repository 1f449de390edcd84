"""What a stranger gets wrong: one line that names the cause, what it got and what to do; nothing is charged or lost."""

from dataclasses import dataclass
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.small_task import POOL, M, N, X, Y, classifier, fitted

from quorate import (
    Budget,
    LabelPrivateClassifier,
    Ledger,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateRegressor,
    PublicPool,
    SubsampleAggregate,
    check,
)
from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.mechanisms import GaussianNoisyMax
from quorate.students import LabelStudent

PUBLIC = PublicPool(POOL)
NAMES = ["a", "b", "c", "d"]
FRAME, FRAMED = pl.DataFrame(X, schema=NAMES), pl.DataFrame(POOL, schema=NAMES)
BUDGET = {"epsilon": 4.0, "delta": 1e-5}


@dataclass
class Place:
    """Where a stranger is: an empty folder, and a classifier that somebody fitted before."""

    folder: Path
    done: PrivateClassifier

    @property
    def ledger(self):
        return self.folder / "ledger.db"

    def fit(self, X=X, y=Y, public=PUBLIC, groups=None, **arguments):
        clf = classifier(**{"ledger": self.ledger, **arguments})
        return clf.fit(X, y, public=public, groups=groups)


class Parts:
    """What a data set of pyarrow looks like: many files, none of which is read yet."""

    def to_table(self):
        raise AssertionError("the owner calls it")


def nan_at(values, place=3):
    changed = np.asarray(values).astype(float)
    changed[place] = np.nan
    return changed


def holding_ledger(place):
    with Ledger(place.folder / "busy.db", budget=Budget(9.0, 1e-3)):
        place.fit(ledger=place.folder / "busy.db")


def other_budget(place):
    with Ledger(place.folder / "other.db", budget=Budget(0.5, 1e-5)):
        pass
    place.fit(ledger=place.folder / "other.db")


class Net:
    """A net of torch, as far as its class and methods tell: it trains by `train`."""

    def train(self, mode=True):
        return self


Net.__module__ = "torch.nn.modules.container"


class NoFit:
    """A student that cannot be fitted."""

    def predict(self, X):
        return X


class Plain(NoFit):
    """A class that knows nothing of scikit-learn."""

    def fit(self, X, y):
        """Learn nothing."""


DIRECT = PrivateLogisticRegression(classes=[0, 1], **BUDGET)
NUMBER = PrivateRegressor(target_range=(-3, 3), method="votes", **BUDGET)
SHARDS = {**BUDGET, "n_shards": 60, "cutoff": 1, "n_queries": 2, "n_jobs": 1}

# What a fit is given in place of what is sound, and what the line has to say: cause, what was got, what to do.
# A class of errors stands before it where it matters.
GAPS = X.copy()
GAPS[3, 1] = np.nan
FITS = {
    "classes of another type": (
        {"classes": ["no", "yes"]},
        ("y: a label outside classes was found", "declared: 'no', 'yes'"),
    ),
    "classes as a text": ({"classes": "01"}, ("classes must be a list of at least two labels", "got '01'")),
    "a class listed twice": ({"classes": [0, 0, 1]}, ("classes: 0 is listed twice", "once")),
    "epsilon as a text": ({"epsilon": "1"}, ("epsilon must be a number > 0, got '1'", "epsilon=1.0")),
    "delta of zero": ({"delta": 0}, ("delta must be a number > 0 and < 1, got 0", "delta=1e-6")),
    "delta of one": ({"delta": 1}, ("delta must be", "got 1", "below 1 / number of units")),
    "no teachers": ({"n_teachers": 0}, ("n_teachers must be a whole number >= 1, got 0", '"auto" chooses it')),
    "more teachers than rows": ({"n_teachers": N + 1}, ("n_teachers=301", "records", 'Take n_teachers="auto"')),
    "a fitted teacher": ({"teacher": GaussianNB().fit(POOL, POOL[:, 0] > 0)}, ("already fitted", "unfitted")),
    "a teacher class": ({"teacher": GaussianNB}, ("must be an instance, got the class GaussianNB", "()")),
    "a teacher by name": ({"teacher": "logistic"}, ("must have fit and predict, got str",)),
    "a student without fit": ({"student": NoFit()}, ("must have fit and predict, got NoFit without fit",)),
    "a net of torch": ({"teacher": Net()}, ("got Net, a module of torch", "NeuralNetClassifier(Net, ...)")),
    "the class of a net": ({"teacher": Net}, ("got Net, a module of torch", "NeuralNetClassifier(Net")),
    "a regressor": (
        {"teacher": make_pipeline(StandardScaler(), LinearRegression())},
        ("the teacher Pipeline is a regressor", "such as LogisticRegression()"),
    ),
    "a fitted classifier in a student": (
        {"student": LabelStudent(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))},
        ("LogisticRegression is already fitted",),
    ),
    "a student class": ({"student": LogisticRegression}, ("must be an instance", "add ()")),
    "a plain class as student": (
        {"student": Plain()},
        ("the student Plain is a plain class", "copied, stored", "class Plain(ClassifierMixin, BaseEstimator)"),
    ),
    "a plain class in a student": (
        {"student": make_pipeline(StandardScaler(), Plain())},
        ("a part of the student Pipeline, Plain is a plain class",),
    ),
    "a mechanism misspelled": ({"mechanism": "NoisyCount"}, ("mechanism must be", 'did you mean "NoisyCounts"? A')),
    "no processes": ({"n_jobs": 0}, ("n_jobs must be a whole number >= 1, got 0", "None, or -1")),
    "a scheduler by its address": (
        {"scheduler": "tls://host:8786"},
        ("scheduler must be a DaskScheduler, got str", 'DaskScheduler("tls://host:8786", folder='),
    ),
    "a seed as a text": ({"unsafe_noise_seed": "1"}, ("unsafe_noise_seed must be a whole number", "got '1'")),
    "class_weight": ({"class_weight": "balanced"}, ("no argument 'class_weight'", "class_shares=")),
    "verbose in words": ({"verbose": "yes"}, ("verbose must be", "got 'yes'", "True shows progress")),
    "a label missing": ({"y": nan_at(Y)}, ("y: a label is missing", "Drop the rows without")),
    "labels with fractions": ({"y": X[:, 0]}, ("y: labels are numbers with a fraction", "y > limit")),
    "labels too few": ({"y": Y[:-1]}, ("X and y differ in length", "one label for every row")),
    "labels forgotten": ({"y": None}, ("y: this classifier requires y", "is None", "give one label")),
    "one label for all": ({"y": 1}, ("y: got int", "give one label for every row")),
    "a generator of rows": ({"X": (row for row in X)}, ("X: got generator", "expected a 2-D array")),
    "texts as rows": ({"X": ["a"] * N}, ("private rows are", "public rows", "give both in the same kind")),
    "a path as rows": ({"X": "private.csv"}, ("X: got str", "Read the file first")),
    "no rows": ({"X": None}, ("X: got NoneType", "expected a 2-D array")),
    "a lazy frame": ({"X": FRAME.lazy(), "public": PublicPool(FRAMED)}, ("X: got LazyFrame", "collect()")),
    "sparse rows, a frame as pool": (
        {"X": csr_array(X), "public": PublicPool(FRAMED)},
        ("private rows are sparse, public rows polars", "same kind"),
    ),
    "pandas and polars": (
        {"X": pd.DataFrame(X, columns=NAMES), "public": PublicPool(FRAMED)},
        ("pandas", "polars", "same kind"),
    ),
    "groups too few": ({"groups": np.arange(N - 1)}, ("groups: expected one unit id per row", "differ")),
    "a group missing": (
        {"groups": ["", *map(str, range(1, N))]},
        ("groups: unit ids are missing", "give every row one"),
    ),
    "groups of floats": (
        {"groups": nan_at(np.arange(N))},
        ("groups: a column of floats has lost digits", "Int64", "whole_ids=True"),
    ),
    "rows counted as persons": (
        {"groups": np.arange(N) // 3, "n_records": N, "n_teachers": "auto"},
        ("n_records=300 is the number of rows", "that of persons, which is smaller", "n_rows=300"),
    ),
    "a pool that is an array": ({"public": POOL}, ("public must be a PublicPool, got ndarray", "PublicPool(X_public)")),
    "no pool": ({"public": None}, ("neither public= nor schema= is given",)),
    "a pool with fewer columns": ({"public": PublicPool(POOL[:, :3])}, ("public has 3 features, but private has 4",)),
    "a pool with other columns": (
        {"X": FRAME, "public": PublicPool(FRAMED.rename({"a": "z"}))},
        ("public lacks the column 'a'", "private lacks the column 'z'"),
    ),
    "a ledger where none can be written": (
        {"ledger": "/proc/ledger.db"},
        ("no file can be written in /proc", "where you may write"),
    ),
    "a budget as a ledger": (
        {"ledger": Budget(1.0, 1e-5)},
        ("ledger must be a path or a Ledger, got Budget", "Ledger(path"),
    ),
    # of the ledger's units, of public numbers, of the method
    "one class": ({"classes": [0]}, (InvalidParameter, "must be a list of at least two labels, got [0]")),
    "a set of classes": ({"classes": {0, 1}}, (InvalidParameter, "a set has no order")),
    "epsilon below the ledger's unit": ({"epsilon": 1e-10}, (InvalidParameter, "at least 1e-9")),
    "delta below the ledger's unit": ({"delta": 1e-20}, (InvalidParameter, "at least 1e-18")),
    "a declared n above the truth": ({"n_teachers": "auto", "n_records": 10**9}, (DataRefused, "the true number of")),
    "more queries than points": ({"queries": M + 1}, (InvalidParameter, "ask at most that many")),
    "a mechanism of another form": ({"mechanism": GaussianNoisyMax(9.0, "histogram")}, (InvalidParameter, "form")),
    "a unit without groups": ({"unit": "person"}, (InvalidParameter, 'unit is "person", and no groups were given')),
    "groups of records": ({"unit": "record", "groups": np.arange(N)}, (InvalidParameter, 'unit is "record"')),
    "a fitted step": (
        {"teacher": make_pipeline(StandardScaler().fit(POOL), GaussianNB())},
        (InvalidParameter, "this Pipeline step is already fitted: StandardScaler"),
    ),
    "missing values that the teacher cannot take": (
        {"X": GAPS, "teacher": LogisticRegression()},
        (DataRefused, "Input contains NaN in column 1"),
    ),
    "infinity": ({"X": np.where(np.isnan(GAPS), np.inf, GAPS)}, (DataRefused, "infinity in column 1")),
    "the private rows as the pool": ({"public": PublicPool(X)}, (DataRefused, "the private rows again")),
    "the private rows shuffled": ({"public": PublicPool(X[::-1].copy())}, (DataRefused, "the private rows again")),
}


def fitted_with(changes):
    return lambda place: place.fit(**changes)


def labels_alone_with(changes):
    given = {"classes": [0, 1], **BUDGET, "n_teachers": 10, "allow_hopeless": True, "n_jobs": 1, **changes}
    labels, rows = given.pop("y", Y), given.pop("X", X)
    return lambda place: LabelPrivateClassifier(**given, ledger=place.ledger).fit(rows, labels)


# Rows that labels alone are of, at fit and at predict: no line repeats a value of them.
TABLES = {
    "one column": (X[:, 0], ("got one row or one column", "X.reshape(-1, 1)")),
    "three dimensions": (X[:, :, None], ("expected a 2-D table, got an array of 3 dimensions",)),
    "no rows": (X[:0], ("0 sample(s)", "a minimum of 1 is required")),
    "a missing value": (GAPS, ("Input contains NaN in column 1, which this LabelPrivateClassifier", "fill them")),
    "infinity": (np.where(np.isnan(GAPS), np.inf, GAPS), ("Input contains infinity in column 1; expected finite",)),
}


# All else that is done, and what the line has to say.
WRONG = {
    **{name: (fitted_with(changes), said) for name, (changes, said) in FITS.items()},
    **{
        f"images beside a 2-D pool, {name}": (
            lambda p, fit=fit: fit(p, X[:, :, None]),
            (DataRefused, "X: got an array of 3 dimensions, as images are", "images to PublicPool too"),
        )
        for name, fit in {
            "votes": lambda p, rows: p.fit(X=rows),
            "directly": lambda p, rows: DIRECT.fit(rows, Y, public=PUBLIC),
            "of a number": lambda p, rows: NUMBER.fit(rows, X[:, 0], public=PUBLIC),
        }.items()
    },
    "an argument of nothing": (
        lambda p: PrivateClassifier(foo=1),
        ("no argument 'foo'; help(PrivateClassifier) says which it has",),
    ),
    "a table of nothing": (
        lambda p: p.done.fit(X, Y, foo=1),
        ("no argument 'foo'; it takes X, y, public, groups and schema",),
    ),
    "classes forgotten": (lambda p: PrivateClassifier(**BUDGET).fit(X, Y, public=PUBLIC), ("classes= is required",)),
    "epsilon forgotten": (
        lambda p: PrivateClassifier(classes=[0, 1]).fit(X, Y, public=PUBLIC),
        ("epsilon must be", "got None"),
    ),
    "random_state": (lambda p: PrivateClassifier(random_state=0), ("no argument 'random_state'", "unsafe_noise_seed=")),
    "range of a number": (lambda p: PrivateRegressor(range=(0, 1)), ("no argument 'range'; target_range= of",)),
    "the target": (lambda p: PrivateRegressor(target="price"), ("no argument 'target'; what is to be predicted is y",)),
    "a seed": (lambda p: PrivateClassifier(seed=0), ("no argument 'seed'", "unsafe_noise_seed=")),
    "a model": (lambda p: PrivateLogisticRegression(model=1), ("teacher= and student= of PrivateClassifier",)),
    "groups misspelled": (
        lambda p: classifier(ledger=p.ledger).fit(X, Y, public=PUBLIC, grups=Y),
        ("no argument 'grups'", 'did you mean "groups"?', "Nothing was charged"),
    ),
    "an argument misspelled": (
        lambda p: SubsampleAggregate(**SHARDS, epsilom=1),
        ("no argument 'epsilom'", 'did you mean "epsilon"'),
    ),
    "a lazy frame, directly": (lambda p: DIRECT.fit(FRAME.lazy(), Y, public=PUBLIC), ("X: got LazyFrame", "collect()")),
    "a dictionary, directly": (lambda p: DIRECT.fit({"a": [1]}, Y, public=PUBLIC), ("X: got dict", "expected a 2-D")),
    "a pool of intervals, directly": (
        lambda p: DIRECT.fit(FRAMED, Y, public=PublicPool(FRAMED.to_pandas().apply(pd.cut, bins=3))),
        ("column 'a' has categories that are none of numbers, text", "write them as text"),
    ),
    "a data set, directly": (
        lambda p: DIRECT.fit(Parts(), Y, public=PUBLIC),
        ("X: got Parts", "Call to_table() on it", "name its folder as [data] private of a run"),
    ),
    "rows counted as persons, checked": (
        lambda p: check(classifier(n_records=N), X, Y, public=PUBLIC, groups=np.arange(N) // 3),
        ("n_records=300 is the number of rows",),
    ),
    **{
        f"{name} of votes, directly": (
            lambda p, name=name, value=value: p.fit(teacher=None, n_teachers="auto", **{name: value}),
            (name, f"got {value!r}"),
        )
        for name, value in {"n_jobs": -3, "allow_hopeless": "no", "n_rows": "all"}.items()
    },
    "one unit id for all rows": (
        lambda p: p.fit(groups=7),
        (DataRefused, "groups: got int; give one unit id for every row"),
    ),
    "labels that can be read once": (
        lambda p: p.done.score(X, iter(Y.tolist())),
        (DataRefused, "y: got list_iterator"),
    ),
    **{
        f"weights that are {name}": (  # of 300 entries the first are shown
            lambda p, weights=weights: p.done.score(X, Y, sample_weight=weights),
            ("sample_weight must be one number >= 0",),
        )
        for name, weights in {
            "below zero": -np.ones(N),
            "all zero": np.zeros(N),
            "texts": ["a"] * N,
            "missing": [np.float64("nan")] * N,
        }.items()
    },
    "weights of other rows": (
        lambda p: p.done.score(X, Y, sample_weight=np.ones(2)),
        (
            "sample_weight must be one number >= 0 for each of the 300 rows",
            "got ndarray of shape (2,)",
        ),
    ),
    "the pool by its place": (
        lambda p: classifier(ledger=p.ledger).fit(X, Y, PUBLIC),
        ("PrivateClassifier.fit takes X and y by place, and got 3", "write public= or groups=", "Nothing was charged"),
    ),
    "the pool by its place, resumed": (
        lambda p: classifier(ledger=p.ledger).resume(X, Y, PUBLIC),
        ("PrivateClassifier.resume takes X and y by place",),
    ),
    "the pool by its place, directly": (lambda p: DIRECT.fit(X, Y, PUBLIC), ("write public= or groups=",)),
    "the pool by its place, checked": (
        lambda p: check(classifier(), X, Y, PUBLIC),
        ("check takes estimator, X and y by place, and got 4",),
    ),
    "the groups by their place": (lambda p: SubsampleAggregate(**SHARDS).fit(X, Y, Y), ("write groups=",)),
    "weights of rows": (
        lambda p: classifier(ledger=p.ledger).fit(X, Y, public=PUBLIC, sample_weight=Y),
        ("fit has no argument 'sample_weight'", "leave it out"),
    ),
    "a pool where there is none": (
        lambda p: LabelPrivateClassifier(classes=[0, 1], **BUDGET).fit(X, Y, public=PUBLIC),
        ("no argument 'public'", "no public rows are needed"),
    ),
    "no labels at all": (
        lambda p: classifier(ledger=p.ledger).fit(X, public=PUBLIC),
        ("fit lacks y", "write fit(X, y, public=...)", "Nothing was charged"),
    ),
    "an empty pool": (
        lambda p: p.fit(public=PublicPool(POOL[:0])),
        ("public: 0 sample(s)", "a minimum of 1 is required", "give at least one row"),
    ),
    "a ledger that is a folder": (
        lambda p: p.fit(ledger=p.folder),
        ("the ledger must be a file in a folder that exists",),
    ),
    "a ledger whose name is too long": (
        lambda p: p.fit(ledger=p.folder / ("x" * 252)),
        ("the ledger's name may have", "bytes at most"),
    ),
    "a ledger in no folder": (
        lambda p: p.fit(ledger=p.folder / "no" / "ledger.db"),
        ("there is no folder", "create it first"),
    ),
    "a ledger of a smaller budget": (
        other_budget,
        ("charging ε=4 on top of ε=0 would pass the limit ε=0.5", "smaller epsilon="),
    ),
    "a ledger in use": (holding_ledger, ("another process holds the ledger", "wait")),
    "resume without a ledger": (
        lambda p: classifier().resume(X, Y, public=PUBLIC),
        ("ledger= is None", "give the path"),
    ),
    "a check of a class": (
        lambda p: check(PrivateClassifier, X, Y, public=PUBLIC),
        ("got the class PrivateClassifier", "PrivateClassifier(...)"),
    ),
    "evaluation without labels": (
        lambda p: check(classifier(), X, Y, public=PUBLIC, evaluation=POOL),
        ("evaluation must be a pair (X, y)", "got ndarray"),
    ),
    "evaluation of three": (
        lambda p: p.done.summary(evaluation=(X, Y, Y)),
        ("evaluation must be a pair (X, y)", "got tuple"),
    ),
    "predict about other columns": (lambda p: p.done.predict(X[:, :2]), ("X has 2 features", "expecting 4")),
    "predict about one row": (
        lambda p: p.done.predict(X[0]),
        ("got one row or one column", "Reshape your data: [row] or X.reshape(1, -1)", "Nothing was charged"),
    ),
    "probabilities of one row": (lambda p: p.done.predict_proba(list(X[0])), ("got one row or one column",)),
    "ask about one row": (lambda p: p.done.ask(X[0]), ("got one row or one column", "Nothing was charged")),
    "predict about a text": (lambda p: p.done.predict("some text"), ("got a text", "a 2-D table of rows")),
    "predict about words": (
        lambda p: p.done.predict(FRAME.with_columns(pl.lit("north").alias(FRAME.columns[0]))),
        ("holds no numbers", "the public pool is an array of numbers", "Nothing was charged"),
    ),
    "ask more than is left": (
        lambda p: p.done.ask(X[:9]),
        ("9 of these rows are new", "2 answers are left", "ask about 2 new rows at most"),
    ),
    "ask with a missing value": (lambda p: p.done.ask(nan_at(X[:1], 0)), ("X: Input contains NaN", "GaussianNB")),
    "ask a direct model": (lambda p: DIRECT.ask(X[:1]), ("has no teachers", "predict()")),
    "export a pickle": (lambda p: p.done.export(p.folder / "s.pkl"), ("s.pkl says that it is a pickle", "s.skops")),
    "export to a folder": (lambda p: p.done.export(p.folder), ("is a folder", "student.skops")),
    "report to a folder": (lambda p: p.done.report(p.folder), ("is a folder", "report.html")),
    "report in no folder": (
        lambda p: p.done.report(p.folder / "no" / "r.html"),
        ("there is no folder", "create it first"),
    ),
    "report to a number": (lambda p: p.done.report(5), ("path must be", "got int")),
    "a question that is none": (
        lambda p: SubsampleAggregate(**SHARDS).fit(X).ask("mean"),
        ("must be callable", "got str"),
    ),
    **{
        f"labels alone, {name}": (labels_alone_with(changes), said)
        for name, (changes, said) in {
            "without a budget": ({"epsilon": None}, ("epsilon must be", "got None")),
            "without classes": ({"classes": None}, ("classes= is required",)),
            "classes in words": ({"classes": "all"}, ('or "public"',)),
            "other classes": ({"classes": [0, 2]}, (DataRefused, "a label outside classes")),
            "one class": ({"classes": "public", "y": np.zeros_like(Y)}, (ValueError, "class")),
            "more teachers than labels": ({"n_teachers": N + 1}, ("at most 300, the number of labels",)),
            **{f"{name} in X": ({"X": rows}, (DataRefused, *said)) for name, (rows, said) in TABLES.items()},
            "priors of three classes": ({"classes": [0, 1, 2], "prior_matching": True}, ("two classes",)),
            "more queries than rows": ({"queries": N + 1}, ("queries",)),
        }.items()
    },
}


@pytest.fixture(scope="module")
def others():
    """Fitted classifiers of other kinds: directly, on labels alone, on a frame, and on texts."""
    words = np.random.default_rng(0).choice(["good", "poor", "film", "plot", "seen"], (N + 60, 8))
    texts = [" ".join(each) for each in words]
    pool, texts = PublicPool(texts[N:]), texts[:N]
    direct = {"classes": [0, 1], **BUDGET, "n_records": N, "rounds": 2}
    labels = LabelPrivateClassifier(classes=[0, 1], **BUDGET, n_teachers=10, queries=40, n_jobs=1)
    numbers = {"target_range": (-3, 3), **BUDGET, "n_records": N, "n_jobs": 1}
    return {
        "direct": PrivateLogisticRegression(**direct).fit(X, Y, public=PUBLIC),
        "number": PrivateRegressor(**numbers).fit(X, X[:, 0], public=PUBLIC),
        "voted number": PrivateRegressor(**numbers, method="votes").fit(X, X[:, 0], public=PUBLIC),
        "voted": classifier(teacher=None, student=LogisticRegression(), queries=40).fit(X, Y, public=PUBLIC),
        "voted frame": classifier(teacher=GaussianNB(), queries=40).fit(FRAME, Y, public=PublicPool(FRAMED)),
        "takes gaps": classifier(student=HistGradientBoostingClassifier(), queries=40).fit(X, Y, public=PUBLIC),
        "frame": PrivateLogisticRegression(**direct).fit(FRAME, Y, public=PublicPool(FRAMED)),
        "labels": labels.fit(X, Y),
        "texts": PrivateLogisticRegression(**direct).fit(texts, Y, public=pool),
        "voted texts": classifier(teacher=None, queries=40).fit(texts, Y, public=pool),
    }


ONE_ROW, ONE_TEXT = ("got one row or one column", "X.reshape(1, -1)"), ("got one text", "write [text]")
ASKED = [
    ("direct", X[0], ONE_ROW),
    ("direct", list(X[0]), ONE_ROW),
    ("direct", "a text", ("got a text",)),
    ("labels", X[0], ONE_ROW),
    ("labels", "a text", ("got a text",)),
    ("frame", FRAME["a"], ("got Series, and expected a frame with columns",)),
    ("frame", X, ("got ndarray, and expected a frame with columns 'a', 'b', 'c', 'd'",)),
    ("frame", FRAME.rename({"a": "z"}), ("X lacks the column 'a' of the public pool",)),
    ("texts", "a good film", ONE_TEXT),
    ("texts", pl.DataFrame({"other": ["a good film"]}), ("X lacks the column 'text' of the public pool",)),
    ("voted texts", "a good film", ONE_TEXT),
]


@pytest.mark.heavy
@pytest.mark.several_fits
@pytest.mark.parametrize(("name", "rows", "said"), ASKED, ids=range(len(ASKED)))
def test_what_is_asked_in_another_shape_than_the_fit_is_said_in_one_line(name, rows, said, others):
    for act in ("predict", "predict_proba"):
        with pytest.raises(QuorateError) as refused:
            getattr(others[name], act)(rows)
        line = str(refused.value)
        assert [each for each in (*said, "Nothing was charged") if each not in line] == [], line
        assert "\n" not in line
    if "texts" in name:  # one text is a list of one
        assert others[name].predict(["a good film"]).shape == (1,)


GAPS_OF = {
    "direct": ("column 1, which this PrivateLogisticRegression cannot take", "fill them"),
    "number": ("column 1, which this PrivateRegressor cannot take", "fill them"),
    "voted number": ("column 1, which this PrivateRegressor cannot take", "fill them"),
    "voted": ("column 1, which the student LogisticRegression cannot take", "fill or drop"),
    "voted frame": ("column 'b', which the student LogisticRegression cannot take", "fill or drop"),
    "labels": TABLES["a missing value"][1],
    "frame": None,
    "takes gaps": None,
}
ACTS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
    "predict_set",
    "predict_interval",
)


@pytest.mark.heavy
@pytest.mark.several_fits
@pytest.mark.parametrize(("name", "said"), GAPS_OF.items(), ids=GAPS_OF)
def test_a_gap_is_refused_in_one_line_at_predict_where_the_model_takes_none(name, said, others):
    model = others[name]
    rows = pl.DataFrame(GAPS, schema=NAMES) if "frame" in name else GAPS
    for act in ACTS:
        if not hasattr(model, act):
            continue
        ask = getattr(model, act)
        if said is None and "set" not in act:
            ask(rows, Y) if act == "score" else ask(rows)
        elif said is not None:
            with pytest.raises(DataRefused) as refused:
                ask(rows, Y) if act == "score" else ask(rows)
            line = str(refused.value)
            assert [each for each in ("X: Input contains NaN in", *said) if each not in line] == [], line
            assert "\n" not in line


@pytest.mark.heavy
@pytest.mark.several_fits
@pytest.mark.parametrize(("rows", "said"), TABLES.values(), ids=TABLES)
def test_labels_alone_say_of_rows_what_is_wrong_at_predict(rows, said, others):
    for act in ("predict", "predict_proba"):
        with pytest.raises(DataRefused) as refused:
            getattr(others["labels"], act)(rows)
        line = str(refused.value)
        assert [each for each in said if each not in line] == [], line
        assert "\n" not in line


@pytest.fixture(scope="module")
def done():
    return fitted(online_answers=2, queries=20)


@pytest.mark.parametrize("name", WRONG)
def test_python_says_it_in_one_line_and_charges_nothing(name, done, tmp_path):
    act, said = WRONG[name]
    kinds = [each for each in said if not isinstance(each, str)]
    with pytest.raises(kinds[0] if kinds else QuorateError) as refused:
        act(Place(tmp_path, done))
    line = str(refused.value)
    assert [each for each in said if isinstance(each, str) and each not in line] == [], line
    assert "\n" not in line
    assert len(line) < 500
    assert refused.value.charged in (None, "nothing was charged", "nothing more was charged")  # None: no ledger yet
    assert not (tmp_path / "ledger.db").exists()  # which is opened with the first charge, or not at all
    assert "left: 2 answers" in repr(done)


ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
COMMON = {"epsilon": 1.0, "delta": 1e-5, "unsafe_noise_seed": 1}
GIVEN = {
    PrivateClassifier: {**COMMON, "classes": [0, 1], "n_records": 60, "n_teachers": 4, "allow_hopeless": True},
    LabelPrivateClassifier: {**COMMON, "classes": [0, 1], "n_teachers": 4, "allow_hopeless": True},
    PrivateLogisticRegression: {**COMMON, "classes": [0, 1], "n_records": 60},
    PrivateRegressor: {**COMMON, "target_range": (0, 1), "n_records": 60},
    SubsampleAggregate: {**COMMON, "epsilon": 50.0, "n_shards": 30, "cutoff": 1, "n_queries": 5},
}
EVERY = [(kind, name) for kind in GIVEN for name in signature(kind.__init__).parameters if name != "self"]


WRONG_VALUES = {"a mapping": {"a": 1}, "below zero": -3, "a column": pd.Series([1.5, 1.5]), "nothing": pd.NA}


@pytest.mark.default_cases(160)
@pytest.mark.parametrize("wrong", WRONG_VALUES.values(), ids=WRONG_VALUES)
@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind.__name__}-{name}" for kind, name in EVERY])
def test_a_wrong_argument_is_named_with_what_it_got(kind, name, wrong):
    if name == "class_shares" and isinstance(wrong, dict):
        wrong = {0: 2.0}
    made = kind(**{**GIVEN[kind], name: wrong})
    with pytest.raises(InvalidParameter) as refusal:
        _fit(made)
    words = str(refusal.value)
    assert words.startswith(name) or f" in {name} must be" in words, words
    assert [said for said in (repr(wrong), type(wrong).__name__, "2.0", "1.5") if said in words], words
    assert "\n" not in words


def _fit(made):
    if isinstance(made, (SubsampleAggregate, LabelPrivateClassifier)):
        made.fit(ROWS, LABELS)
    else:
        made.fit(ROWS, LABELS, public=PublicPool(ROWS[:30] + 0.5))


def test_nothing_is_left_in_the_place_of_a_wrong_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^ledger must be a path or a Ledger, got int"):
        _fit(PrivateClassifier(**{**GIVEN[PrivateClassifier], "ledger": 3}))
    assert not list(tmp_path.iterdir())
