"""Classes with fit and predict that inherit nothing from scikit-learn."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.voters import private

from quorate.ensemble import ClassifierTeacher, check_unfitted, not_looked_into
from quorate.ensemble.teachers.classifier import set_random_states
from quorate.errors import InvalidParameter
from quorate.findings import Outcome

RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 3))
Y = (X[:, 0] > 0).astype(np.int64)


class NearestMean:
    """Keeps its arguments under their names, and what it learns under names of its own."""

    def __init__(self, shrink=0.0, random_state=None):
        self.shrink = shrink
        self.random_state = random_state

    def fit(self, X, y):
        self.labels = np.unique(y)
        self.means = np.array([X[y == each].mean(axis=0) for each in self.labels]) * (1 - self.shrink)
        self.drawn = np.random.default_rng(self.random_state).random()
        return self

    def predict(self, X):
        distances = [((X - mean) ** 2).sum(axis=1) for mean in self.means]
        return self.labels[np.argmin(distances, axis=0)]


class HidesItsArguments(NearestMean):
    """A constructor whose arguments cannot be read off the object again."""

    def __init__(self, amount=0.0):
        super().__init__(amount)


class TakesMore(NearestMean):
    def __init__(self, **more):
        super().__init__()
        vars(self).update(more)


class RefusesItsOwn(NearestMean):
    """A constructor that takes a text, and keeps a number."""

    def __init__(self, size="3"):
        super().__init__()
        self.size = int(size.strip())


class Around:
    """Keeps a model of another library as it was given."""

    def __init__(self, module):
        self.module = module

    def fit(self, X, y):
        self.module.learn(X, y)

    def predict(self, X):
        return self.module.say(X)


class Slopes:
    """Weights and no mark that tells whether they were learned: like a network of torch."""

    def __init__(self):
        self.weights = np.zeros(3)

    def learn(self, X, y):
        self.weights = self.weights + ((2 * y - 1) @ X) / len(y)

    def say(self, X):
        return (X @ self.weights > 0).astype(int)


class Sampled:
    """Draws in its constructor, from the random state that it is given there."""

    def __init__(self, random_state=None):
        self.random_state = random_state
        self.weights = np.random.default_rng(0 if random_state is None else random_state).normal(size=3)

    def fit(self, X, y):
        self.done = True

    def predict(self, X):
        return (X @ self.weights > 0).astype(int)


class HoldsAModel:
    def __init__(self):
        self.inner = DecisionTreeClassifier()

    def fit(self, X, y):
        self.inner.fit(X, y)
        return self

    def predict(self, X):
        return self.inner.predict(X)


class Centre:
    """A transformer that knows nothing of scikit-learn."""

    def fit(self, X, y=None):
        self.middle = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.middle


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "model",
    [
        NearestMean(0.1),
        HoldsAModel(),
        make_pipeline(StandardScaler(), NearestMean()),
        make_pipeline(Centre(), NearestMean()),
        make_pipeline(Centre(), LogisticRegression()),
        BaggingClassifier(NearestMean(), n_estimators=3),
        GridSearchCV(make_pipeline(Centre(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2),
    ],
    ids=["plain", "holds a model", "step", "two steps", "transformer", "bagged", "search"],
)
def test_a_plain_class_is_a_teacher_by_itself_and_as_a_step(model):
    teacher = ClassifierTeacher(model)
    first, second = teacher.train(X[:40], Y[:40], 1), teacher.train(X[40:], Y[40:], 2)

    assert (first.vote(X) == Y).mean() > 0.7
    assert (second.vote(X) == Y).mean() > 0.7
    assert first.estimator is not second.estimator
    check_unfitted(model)  # it stayed as it was


def test_its_random_state_is_handed_to_the_constructor():
    teacher = ClassifierTeacher(Sampled())
    states = [teacher.train(X, Y, seed).estimator for seed in (1, 1, 2)]

    assert states[0].random_state == states[1].random_state != states[2].random_state
    assert states[0].weights.tolist() == states[1].weights.tolist() != states[2].weights.tolist()


def test_its_random_state_is_set_inside_a_pipeline_too():
    fitted = ClassifierTeacher(make_pipeline(StandardScaler(), NearestMean())).train(X, Y, 7).estimator

    assert fitted.steps[-1][1].fitted_.random_state is not None


def test_that_what_scikit_learn_does_alone_would_fail():
    """Without the step around it the Pipeline asks for tags that are not there."""
    pipeline = make_pipeline(StandardScaler(), NearestMean())
    set_random_states(pipeline, 1)
    pipeline.fit(X, Y)
    with pytest.raises(AttributeError, match="__sklearn_tags__"):
        pipeline.predict(X)


@pytest.mark.heavy
def test_what_a_constructor_was_given_and_nobody_can_look_into_is_said():
    trained = Around(Slopes())
    trained.fit(X, Y)  # in place: nothing tells it from one that is new
    clf = private(trained, X, Y, RNG.normal(size=(60, 3)))
    [check] = [each for each in clf.facts().checks if each.code == "preprocessing"]

    assert check.outcome is Outcome.NOT_COVERED
    assert "an object of the class ndarray" in check.evidence
    assert any("hold an object of the class ndarray" in each for each in clf.guarantee_.caveats)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("model", "found"),
    [
        (NearestMean(0.1), None),
        (make_pipeline(Centre(), LogisticRegression()), None),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=StratifiedKFold(3)), None),
        (RandomizedSearchCV(LogisticRegression(), {"C": loguniform(0.1, 1.0)}), None),
        (make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()), None),
        (Around(Slopes), None),
        (Around([Slopes()]), "ndarray"),
        (Around(Slopes().say), "ndarray"),
        (Around(memoryview(b"weights")), "memoryview"),
        (make_pipeline(FunctionTransformer(lambda rows, weights=X: rows), LogisticRegression()), "ndarray"),
        (KMeans(init=X[:2]), "ndarray"),
    ],
)
def test_what_can_be_looked_into_is_looked_into(model, found):
    assert not_looked_into(model) == found


def test_a_plain_transformer_that_was_fitted_on_public_rows_stays_as_it_is():
    centre = Centre().fit(X + 7.0)
    teacher = ClassifierTeacher(make_pipeline(centre, DecisionTreeClassifier()), preprocessing="public")
    fitted = [teacher.train(X[start : start + 40], Y[start : start + 40], 1).estimator for start in (0, 40)]

    for each in fitted:
        assert each.predict(X[:5]).shape == (5,)
        assert each.steps[0][1].estimator.fitted_.middle.tolist() == centre.middle.tolist()
    with pytest.raises(InvalidParameter, match="already fitted: Centre"):
        ClassifierTeacher(make_pipeline(centre, DecisionTreeClassifier()))


ROWS, LABELS = np.arange(20.0).reshape(10, 2), np.arange(10) // 5
SCALER = StandardScaler().fit(ROWS)
FITTED = LogisticRegression().fit(ROWS, LABELS)


def column_transformer(fit: bool):
    columns = ColumnTransformer([("scale", StandardScaler(), [0])])
    return columns.fit(ROWS) if fit else columns


TAKEN = {
    "inside": [
        LogisticRegression(),
        RandomForestClassifier(warm_start=True),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(Normalizer().fit(ROWS), FunctionTransformer(np.log1p), LogisticRegression()),
        make_pipeline(column_transformer(fit=False), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}),
        VotingClassifier([("a", LogisticRegression()), ("b", RandomForestClassifier())]),
        make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", "passthrough")]), LogisticRegression()),
    ],
    "public": [  # steps that were fitted on public rows
        make_pipeline(step, LogisticRegression())
        for step in (
            SCALER, column_transformer(fit=True), FrozenEstimator(SCALER), make_pipeline(StandardScaler()).fit(ROWS)
        )
    ],
}  # fmt: skip


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("teacher", "how"), [(teacher, how) for how, taken in TAKEN.items() for teacher in taken])
def test_what_has_learned_nothing_from_private_rows_is_taken(teacher, how):
    for said in {how, "public"}:
        check_unfitted(teacher, preprocessing=said)


OF_A_STEP = "this Pipeline step is already fitted: "
ANEW = "cannot be made anew from its constructor's arguments: .*"  # a copy would hand on whatever it has learned
REFUSED = {
    "inside": [
        (NearestMean().fit(X, Y), "is already fitted.*labels"),
        (make_pipeline(StandardScaler(), NearestMean().fit(X, Y)), "is already fitted"),
        (BaggingClassifier(NearestMean().fit(X, Y)), "is already fitted"),
        (HoldsAModel().fit(X, Y), "already fitted: DecisionTreeClassifier"),
        (HidesItsArguments(), f"{ANEW}it keeps no attribute 'amount'"),
        (HidesItsArguments().fit(X, Y), f"{ANEW}it keeps no attribute 'amount'"),
        (TakesMore(depth=3), f"{ANEW}its constructor takes more than it names"),
        (RefusesItsOwn(), f"{ANEW}its constructor refuses the arguments that it has kept"),
        (make_pipeline(StandardScaler(), HidesItsArguments().fit(X, Y)), f"{ANEW}it keeps no attribute 'amount'"),
        (GridSearchCV(make_pipeline(LogisticRegression()), {"steps": [[HidesItsArguments()]]}), f"{ANEW}'amount'"),
        (Around(HidesItsArguments()), f"{ANEW}it keeps no attribute 'amount'"),
        (make_pipeline(SCALER, LogisticRegression()), f"{OF_A_STEP}StandardScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, LABELS), f"{OF_A_STEP}StandardScaler"),
        (make_pipeline(column_transformer(fit=True), LogisticRegression()), f"{OF_A_STEP}ColumnTransformer"),
        (make_pipeline(make_pipeline(SCALER), LogisticRegression()), f"{OF_A_STEP}StandardScaler"),
        (make_pipeline(FrozenEstimator(SCALER), LogisticRegression()), f"{OF_A_STEP}StandardScaler"),
        (make_pipeline(FunctionTransformer(SCALER.transform), LogisticRegression()), f"{OF_A_STEP}StandardScaler"),
        (
            make_pipeline(FunctionTransformer(partial(SCALER.transform, copy=True)), FITTED),
            f"{OF_A_STEP}StandardScaler",
        ),
        (CalibratedClassifierCV(FrozenEstimator(FITTED)), f"{OF_A_STEP}LogisticRegression"),
        (VotingClassifier([("a", FITTED), ("b", RandomForestClassifier())]), f"{OF_A_STEP}LogisticRegression"),
        (GridSearchCV(LogisticRegression(), {"classifier": [FITTED]}), f"{OF_A_STEP}LogisticRegression"),
        (FITTED, "LogisticRegression is already fitted"),
        (LogisticRegression, "got the class LogisticRegression"),
        (StandardScaler(), "without predict"),
        ("logistic", "without fit"),
        (make_pipeline(StandardScaler(), LogisticRegression(), memory="/nowhere"), r"memory=…\) keeps a cache"),
    ],
    "public": [
        (FITTED, "LogisticRegression is already fitted"),
        (make_pipeline(SCALER, FITTED), "already fitted: LogisticRegression"),
        (CalibratedClassifierCV(FITTED), "already fitted: LogisticRegression"),
    ],
    "publik": [(LogisticRegression(), 'did you mean "public"')],
}


@pytest.mark.parametrize(
    ("teacher", "how", "said"), [(teacher, how, said) for how, each in REFUSED.items() for teacher, said in each]
)
def test_what_has_learned_something_or_cannot_be_made_anew_is_refused_in_words(teacher, how, said):
    for take in (check_unfitted, ClassifierTeacher):
        with pytest.raises(InvalidParameter, match=said):
            take(teacher, preprocessing=how)
