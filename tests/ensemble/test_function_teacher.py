"""Functions as teachers: what they are called with, and what counts as a vote."""

import random
from functools import partial

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.voters import private

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.ensemble import CommandTeacher, FunctionTeacher, as_teacher, train_teachers, with_classes
from quorate.ensemble.teachers.command.teacher import COMMAND_IS_STATED
from quorate.ensemble.teachers.function import FUNCTION_IS_STATED, codes_of
from quorate.errors import InvalidParameter
from quorate.findings import Outcome
from quorate.types import Secret
from quorate.voting.scope import TEACHER_IS_STATED

RNG = np.random.default_rng(8)
X = RNG.normal(size=(120, 3))
CODES = (X[:, 0] > 0).astype(np.int64)
LABELS = np.array(["no", "yes"])[CODES]
POOL = RNG.normal(size=(60, 3))


def nearest(X, y, X_new):
    """Votes of the nearest row of the shard."""
    return [y[((X - row) ** 2).sum(axis=1).argmin()] for row in X_new]


def threshold(X, y):
    """A rule that is learned once, and asked afterwards."""
    cut = (X[y == "yes", 0].mean() + X[y == "no", 0].mean()) / 2
    return lambda X_new: np.where(X_new[:, 0] > cut, "yes", "no")


@pytest.mark.heavy
@pytest.mark.parametrize("function", [nearest, threshold])
def test_both_forms_learn_through_the_classifier(function):
    assert private(function, X, LABELS, POOL).score(X, LABELS) > 0.75


@pytest.mark.heavy
def test_the_same_seed_at_every_call_and_another_for_every_teacher():
    def draws(X, y, X_new, *, seed):
        return [seed % 2] * len(X_new)

    def global_draws(X, y):
        value = int(np.random.random() < 0.5) + 2 * int(random.random() < 0.5)  # noqa: NPY002 - what is tested
        return lambda X_new: [value] * len(X_new)

    for function in (draws, global_draws):
        ensembles = [
            train_teachers(
                FunctionTeacher(function), X, CODES, Secret(np.arange(120) % 12), n_teachers=12, n_classes=4,
                key=Secret(bytes(32)), n_jobs=n_jobs,
            )
            for n_jobs in (1, 2)
        ]  # fmt: skip
        votes = [[voter.vote(POOL[:1])[0] for voter in ensemble.voters.reveal()] for ensemble in ensembles]
        assert votes[0] == votes[1]
        assert len(set(votes[0])) > 1


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("returned", "codes"),
    [
        (["no", "yes"], [0, 1]),
        (np.array(["yes", "yes"]), [1, 1]),
        (pl.Series(["no", None]), [0, -1]),
        (["no", float("nan")], [0, -1]),
        (["no", "perhaps"], [0, -1]),
        (["no", ["yes"]], [0, -1]),
        (["no", 1], [0, -1]),
        (["no"], [-1, -1]),
        (["no", "yes", "no"], [-1, -1]),
    ],
)
def test_what_counts_as_a_vote(returned, codes):
    assert codes_of(returned, 2, ["no", "yes"]).tolist() == codes


@pytest.mark.parametrize(("returned", "codes"), [([1, 0.0], [1, 0]), ([True, "x"], [1, -1]), ([0.5, 1e400], [-1, -1])])
def test_codes_where_no_classes_are_given(returned, codes):
    assert codes_of(returned, 2, None).tolist() == codes


def test_a_function_that_fails_abstains_and_one_that_returns_no_function_too():
    def fails(X, y, X_new):
        raise ValueError("a private row")

    shard = (X[:9], CODES[:9], 0)
    assert FunctionTeacher(fails).train(*shard).vote(POOL).tolist() == [-1] * 60
    assert FunctionTeacher(lambda X, y: 3).train(*shard).vote(POOL).tolist() == [-1] * 60
    assert FunctionTeacher(nearest).train(X[:0], CODES[:0], 0).vote(POOL).tolist() == [-1] * 60


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda X, y, X_new: ["maybe"] * len(X_new), "it returned the vote 'maybe'; expected one of ['no', 'yes']"),
        (lambda X, y, X_new: ["no"], "it returned 1 votes for 200 rows"),
        (lambda X, y: "no", r"it returned str; a function predict(X_new) is expected"),
        (lambda X, y, X_new: X_new["colour"], "fails on the public rows (numpy): IndexError"),
    ],
)
def test_on_public_rows_it_is_refused_with_the_reason_before_anything_is_charged(function, said):
    clf = PrivateClassifier(function, classes=["no", "yes"], epsilon=1.0, delta=1e-3, n_teachers=4)
    with pytest.raises(InvalidParameter) as refused:
        clf.fit(X, LABELS, public=PublicPool(POOL))
    assert said in str(refused.value)


def test_a_function_of_other_arguments_is_refused():
    with pytest.raises(InvalidParameter, match="takes 1 arguments"):
        as_teacher(lambda X: X)


def test_declared_classes_are_told_once():
    told = with_classes(nearest, ["no", "yes"])

    assert told.classes == ("no", "yes")
    assert told.with_classes(("no", "yes")) is told


@pytest.mark.parametrize("classes", [["a", "b"], ["yes", "no"], ["no", "yes", "c"]])
@pytest.mark.parametrize("made", [FunctionTeacher(nearest, ("no", "yes")), CommandTeacher("sh", classes=["no", "yes"])])
def test_one_that_was_made_for_other_classes_is_refused(made, classes):
    """Its votes would be counted for classes that it does not mean."""
    with pytest.raises(InvalidParameter, match="was made for other classes than the task has"):
        with_classes(made, classes)


def test_truth_values_are_other_classes_than_numbers():
    with pytest.raises(InvalidParameter, match="other classes"):
        CommandTeacher("sh", classes=[False, True]).with_classes([0, 1])


TREE = DecisionTreeClassifier().fit(X, CODES)
SCALER = StandardScaler().fit(X)
UNFITTED = DecisionTreeClassifier()


def with_argument(model, X, y, X_new):
    return model.predict(X_new)


def with_default(X, y, X_new=None, *, model=TREE):
    return lambda X_new: model.predict(X_new)


def of_its_module(X, y, X_new):
    return [TREE.predict(row[None])[0] for row in X_new]


def calls_another(X, y, X_new):
    return of_its_module(X, y, X_new)


def learns(X, y, X_new):
    return clone(UNFITTED).fit(X, y).predict(X_new)


def closed_over(model):
    def function(X, y, X_new):
        return model.predict(X_new)

    return function


class Owner:
    def __init__(self, model):
        self.models = [model]

    def method(self, X, y, X_new):
        return self.models[0].predict(X_new)

    def __call__(self, X, y, X_new):
        return self.method(X, y, X_new)


FITTED = [
    partial(with_argument, TREE),
    partial(with_argument, {"a": [TREE]}),
    closed_over(TREE),
    closed_over(closed_over(TREE)),
    with_default,
    of_its_module,
    calls_another,
    Owner(TREE).method,
    Owner(TREE),
    partial(Owner(TREE)),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("function", FITTED)
def test_one_that_holds_a_fitted_model_is_refused(function):
    """Every teacher would have seen the rows that it was fitted on."""
    for take in (as_teacher, lambda given: with_classes(given, ["no", "yes"])):
        with pytest.raises(InvalidParameter, match="the function holds a fitted model: DecisionTreeClassifier"):
            take(function)


@pytest.mark.parametrize(
    "function", [partial(with_argument, UNFITTED), closed_over(UNFITTED), learns, Owner(UNFITTED), Owner([]).method]
)
def test_one_that_holds_none_is_taken(function):
    assert as_teacher(function).function is function


def test_a_step_that_was_fitted_on_public_rows_is_taken_where_that_is_said():
    function = closed_over(SCALER)
    with pytest.raises(InvalidParameter, match="StandardScaler"):
        as_teacher(function)
    assert with_classes(function, ["no", "yes"], preprocessing="public").function is function
    with pytest.raises(InvalidParameter, match="DecisionTreeClassifier"):
        as_teacher(closed_over(TREE), preprocessing="public")


class OfItsOwn:
    def train(self, X, y, seed):
        return FunctionTeacher(nearest).train(X, y, seed)


class SaysOneSentence(OfItsOwn):
    caveats = "it asks a thermometer"


@pytest.mark.heavy
def test_one_of_its_own_learns_private_labels_too_and_nobody_looks_into_it():
    how = {"classes": [0, 1], "epsilon": 50.0, "delta": 1e-3, "n_teachers": 12, "unsafe_noise_seed": 0}
    clf = LabelPrivateClassifier(teacher=OfItsOwn(), **how).fit(X, CODES)
    assert clf.score(X, CODES) > 0.75
    assert clf._facts.setup.teacher == "OfItsOwn"
    (unfitted,) = (check for check in clf._facts.checks if check.code == "preprocessing")
    assert unfitted.outcome is Outcome.NOT_COVERED


# Votes for class 1 whatever it is asked: what is called has the files in place of $0 and on.
ONES = CommandTeacher(["sh", "-c", 'tail -n +2 "$1" | sed s/.*/1/ > "$2"'])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("teacher", "said"),
    [
        (nearest, FUNCTION_IS_STATED),
        (OfItsOwn(), TEACHER_IS_STATED),
        (SaysOneSentence(), SaysOneSentence.caveats),
        (ONES, COMMAND_IS_STATED),
        (UNFITTED, None),
    ],
    ids=["function", "own", "a sentence", "command", "classifier"],
)
def test_the_guarantee_says_what_the_isolation_of_teachers_rests_on(teacher, said):
    labels = LABELS if teacher is nearest else CODES
    clf = private(teacher, X, labels, POOL, n_teachers=2)
    stated = [each for each in clf.guarantee_.caveats if "owner's" in each or "thermometer" in each]

    assert stated == ([] if said is None else [said])
