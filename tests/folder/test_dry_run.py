"""A model that does not fit the table is refused on public rows; one that fails on private rows alone is not heard."""

import logging
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from quorate import Budget, Ledger, PrivateClassifier, PublicPool
from quorate.errors import InvalidParameter
from quorate.mechanisms import InteractiveNoisyMax, SoftLabel
from quorate.students import LabelStudent, NoiseAwareStudent, SelfTraining, SpreadLabels, VoteShareStudent

pytestmark = pytest.mark.mostly_heavy

MARK = 777.0  # a value that no public row has
CLASSES = ["no", "maybe", "yes"]
SETTINGS = {"classes": CLASSES, "epsilon": 8.0, "delta": 1e-5, "n_teachers": 5, "n_jobs": 1}


def table(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.array(CLASSES)[np.digitize(X[:, 0], [-0.5, 0.5])]


X, Y = table(150, 1)
POOL = table(80, 2)[0]


def fit(teacher=None, student=None, *, rows=X, pool=POOL, **changes):
    return PrivateClassifier(teacher, student, **{**SETTINGS, **changes}).fit(rows, Y, public=PublicPool(pool))


def rows_of_pandas(frame):
    return frame.iloc[:].to_numpy()


class FailsOnTheMark(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        if np.any(X == MARK):
            raise ValueError("a private value was met")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[-1])


class Answers(ClassifierMixin, BaseEstimator):
    """Predicts what it was told to, whatever it saw."""

    def __init__(self, answer=0):
        self.answer = answer

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.answer)


class Loud(GaussianNB):
    def fit(self, X, y):
        print("fitting")
        print("fitting", file=sys.stderr)
        warnings.warn("fitting", stacklevel=1)
        logging.getLogger("loud").critical("fitting")
        return super().fit(X, y)


def test_a_pipeline_that_cannot_read_polars_frames_is_refused_and_nothing_is_charged():
    teacher = make_pipeline(FunctionTransformer(rows_of_pandas), LogisticRegression())
    names = ["a", "b", "c"]
    ledger = Ledger(budget=Budget(8.0, 1e-5))
    with pytest.raises(InvalidParameter, match=r"^the teacher Pipeline fails on the public rows \(polars\): ") as told:
        fit(teacher, rows=pl.DataFrame(X, names), pool=pl.DataFrame(POOL, names), ledger=ledger)
    said = str(told.value)
    assert "AttributeError: 'DataFrame' object has no attribute 'iloc'" in said
    assert "every teacher would abstain" in said
    assert said.endswith("Make it fit and predict such rows, or give them in the form it takes")
    assert "\n" not in said
    assert ledger.reservations() == ()


@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_folder_with_such_a_teacher_is_refused_at_check_and_at_run(make_run, cli, verb):
    root = make_run(**{"teachers.model": "unread_ward:teacher"})
    (root / "unread_ward.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "def teacher():\n"
        "    return make_pipeline(StandardScaler(), LogisticRegression())\n"
    )
    said = cli.refused(2, verb, root)
    assert "the teacher Pipeline fails on the public rows (polars): ValueError: could not convert string" in said
    assert said.strip().endswith("(QUO-E001; nothing was charged)")
    assert not (root / "ledger.db").exists()


@pytest.mark.several_fits
def test_a_teacher_that_fails_on_private_rows_alone_abstains_in_silence(capfd):
    marked = X.copy()
    marked[:, 2] = MARK
    silent = fit(FailsOnTheMark(), rows=marked)
    heard = fit(FailsOnTheMark())
    assert silent.recipe_ == heard.recipe_
    assert silent.facts().answers.asked == heard.facts().answers.asked == 80
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("answer", [7, -1, 0.5, np.nan, "none"], ids=repr)
def test_a_teacher_that_predicts_what_is_none_of_its_labels_is_refused(answer):
    with pytest.raises(InvalidParameter, match="the teacher Answers fails on the public rows"):
        fit(Answers(answer))


def test_a_student_is_rehearsed_as_well():
    with pytest.raises(InvalidParameter, match=r"the student Answers fails.*not one of its labels"):
        fit(student=Answers("perhaps"))
    with pytest.raises(InvalidParameter, match="the student LinearRegression is a regressor") as told:
        fit(student=LinearRegression())
    assert "abstain" not in str(told.value)
    assert fit(student=Answers("yes")).predict(POOL).tolist() == ["yes"] * len(POOL)


def test_nothing_that_a_model_says_at_the_rehearsal_is_heard(capfd, caplog):
    disabled = logging.root.manager.disable
    fit(Loud(), GaussianNB())
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert logging.root.manager.disable == disabled


@pytest.mark.parametrize(
    "teacher",
    [
        KNeighborsClassifier(n_neighbors=15),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=5),
        make_pipeline(StandardScaler(), SelectFromModel(LogisticRegression(C=0.05, l1_ratio=1, solver="saga"))),
    ],
    ids=["many neighbours", "five folds", "a step that selects features"],
)
def test_a_sound_model_passes_on_a_pool_of_seven_rows(teacher):
    if hasattr(teacher, "steps"):
        teacher.steps.append(("last", GaussianNB()))
    fit(teacher, pool=POOL[:7])


def test_a_pool_too_small_to_show_every_class_twice_rehearses_nothing():
    fit(Answers(7), pool=POOL[:5])


class RefusesWeights(LogisticRegression):
    """Fails where noisy votes are taught, and there alone."""

    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None:
            raise ValueError("no weights here")
        return super().fit(X, y)


class TeachesValuesAlone(VoteShareStudent):
    """A way to learn of the owner's own, which nothing but a trial can tell about."""

    def fit(self, data):
        if data.released.holds_values:
            raise RuntimeError("made for classes")
        return LabelStudent(GaussianNB()).fit(data)

    def check(self, mechanism):
        del mechanism


class HidesItsDoubt(LogisticRegression):
    def predict_proba(self, X):
        raise RuntimeError("no probabilities here")


SOFT = {"classes": ["no", "yes"], "mechanism": SoftLabel(8.0, 1e-5, 2, 40, 10), "queries": 40}
INTERACTIVE = {"mechanism": InteractiveNoisyMax(4, 15.0, 6.0, 5, 0.9), "queries": 2}  # asks a student


@pytest.mark.parametrize(
    ("student", "said", "how"),
    [
        (RefusesWeights(), "no weights here", {"mechanism": "NoisyCounts"}),
        (RefusesWeights(), "no weights here", SOFT),
        (NoiseAwareStudent(RefusesWeights()), "no weights here", {"mechanism": "GaussianNoisyMax"}),
        (SpreadLabels(RefusesWeights()), "no weights here", {"mechanism": "GaussianNoisyMax"}),
        (make_pipeline(StandardScaler(), RefusesWeights()), "no weights here", {"mechanism": "NoisyCounts"}),
        (TeachesValuesAlone(GaussianNB()), "made for classes", {"mechanism": "NoisyCounts"}),
        (HidesItsDoubt(), "no probabilities here", INTERACTIVE),
    ],
    ids=["noisy votes", "soft labels", "noisy labels", "spreading", "last step", "own form", "interim student"],
)
def test_a_student_is_tried_in_the_form_in_which_it_learns(student, said, how):
    ledger = Ledger(budget=Budget(8.0, 1e-5))
    with pytest.raises(InvalidParameter, match=f"the student .* fails on the public rows .*{said}") as refused:
        PrivateClassifier(GaussianNB(), student, **{**SETTINGS, **how}, allow_hopeless=True, ledger=ledger).fit(
            X, labels_of(how), public=PublicPool(POOL)
        )
    assert "\n" not in str(refused.value)
    assert ledger.reservations() == ()


@pytest.mark.parametrize("mechanism", ["GaussianNoisyMax", "LaplaceNoisyMax"])
def test_a_student_that_fails_at_weights_learns_from_labels(mechanism):
    fit(GaussianNB(), RefusesWeights(), mechanism=mechanism, allow_hopeless=True)


def labels_of(how):
    return np.where(Y == "yes", "yes", "no") if "classes" in how else Y


STACKS = {
    "default": StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], cv=2),
    "in a step": make_pipeline(StandardScaler(), StackingClassifier([("a", GaussianNB())], cv=2)),
    "in a search": GridSearchCV(StackingClassifier([("a", GaussianNB())], cv=2), {"passthrough": [False]}, cv=2),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_with_default_arguments_is_a_teacher_and_a_student(stack):
    for role in ("teacher", "student"):
        settings = {**SETTINGS, role: STACKS[stack], "allow_hopeless": True}
        prepared(PrivateClassifier(**settings))
    assert SelfTraining(STACKS[stack]).learner is STACKS[stack]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("model", "how", "said"),
    [
        (VotingClassifier([("a", LogisticRegression())]), {"student": True}, "predict_proba"),
        (SVC(), {"student": True}, "predict_proba"),
        (VotingClassifier([("a", LogisticRegression())]), {"prior_matching": True}, "predict_proba"),
        (RidgeClassifier(), SOFT, "predict_proba"),
        (GridSearchCV(RidgeClassifier(), {"alpha": [1.0]}), SOFT, "predict_proba"),
    ],
    ids=["hard votes", "machine", "matched", "soft", "searched"],
)
def test_a_method_that_stays_away_is_found_on_public_rows(model, how, said):
    rest = {"classes": ["no", "yes"], **{name: value for name, value in how.items() if name != "student"}}
    rest |= (
        {"student": SelfTraining(model), "mechanism": "GaussianNoisyMax"} if "student" in how else {"teacher": model}
    )
    with pytest.raises(InvalidParameter, match=rf"the (teacher|student) .* fails on the public rows .*{said}"):
        prepared(PrivateClassifier(**{**SETTINGS, **rest}, allow_hopeless=True))


def prepared(clf):
    """Everything that comes before the first charge."""
    return clf._task(X, np.where(Y == "yes", "yes", "no"), public=PublicPool(POOL), groups=None)
