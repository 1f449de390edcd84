"""A parameter that names a class means that class on every shard, whichever classes the shard has."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.ensemble import ClassifierTeacher, PriorMatchingTeacher, as_teacher, dump_voters, load_voters
from quorate.ensemble.votes import _score
from quorate.errors import InvalidParameter
from quorate.release.model_digest import described
from quorate.types import Secret

CLASSES = ("well", "sick", "rare")
SORTED = ("rare", "sick", "well")
HEAVY = {"well": 20, "sick": 1}
draw = np.random.default_rng(0)
X = draw.normal(size=(240, 2))
IS_WELL = draw.random(240) < 1 / (1 + np.exp(-2 * (X[:, 0] - 1.5)))
CODES = np.where(IS_WELL, 0, 1)  # as in CLASSES: "rare" is missing, so that a shard would number "well" otherwise


def weighted(weights: Any, kind: Any = LogisticRegression) -> Any:
    return kind(class_weight=weights)


def votes(estimator: Any, classes: Any = CLASSES, codes: Any = CODES, rows: Any = X) -> Any:
    return as_teacher(estimator, classes=classes).train(rows, codes, 0).vote(X)


def nested(weights: Any) -> dict[str, Any]:
    """Ways to put a classifier with these weights into another; trees are fixed, so that no seed tells."""
    own, tree = weighted(weights), DecisionTreeClassifier(max_depth=2, class_weight=weights)
    return {
        "alone": own,
        "tree": tree,
        "pipeline": make_pipeline(StandardScaler(), own),
        "voting": VotingClassifier([("a", own), ("b", weighted(weights))]),
        "stacking": StackingClassifier([("a", own)], final_estimator=weighted(weights), cv=2),
        "bagging": BaggingClassifier(own, n_estimators=3, bootstrap=False),
        "boosting": AdaBoostClassifier(DecisionTreeClassifier(max_depth=1, class_weight=weights), n_estimators=3),
        "calibrated": CalibratedClassifierCV(own, cv=2, ensemble=False),
        "search": GridSearchCV(LogisticRegression(), {"class_weight": [weights]}, cv=2),
        "search in steps": GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()),
            [{"logisticregression__class_weight": (weights,)}],
            cv=2,
        ),
        "search in voters": GridSearchCV(
            VotingClassifier([("a", LogisticRegression())]), {"a__class_weight": [weights]}, cv=2
        ),
        "search for models": GridSearchCV(make_pipeline(own), {"logisticregression": [weighted(weights)]}, cv=2),
    }


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("where", nested(HEAVY))
@pytest.mark.parametrize("weights", [HEAVY, {"well": 20, "rare": 3}, {"well": 20}], ids=["both", "absent", "one"])
def test_weights_go_to_the_class_that_they_name_wherever_the_classifier_stands(where, weights):
    # Where one classifier knows both classes by the same name, scikit-learn itself says what is right.
    numbered = {0: 1, 1: 20}  # as LabelEncoder has "sick" and "well"
    reference = nested(numbered)[where].fit(X, np.where(IS_WELL, 1, 0)).predict(X)
    expected = np.where(reference == 1, 0, 1)
    assert np.array_equal(votes(nested(weights)[where]), expected)
    assert expected.tolist() != votes(nested(None)[where]).tolist()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("classes", "weights"),
    [([0, 1, 2], {0: 1, 1: 1, 2: 20}), ([0, 1, 2], {2: 20}), ([5, 1, 2], {2: 20, 1: 1}), ([False, True], {True: 20})],
    ids=["ints", "one", "other ints", "bools"],
)
def test_numbers_and_truth_values_name_classes_as_well(classes, weights):
    rare = classes.index(max(weights, key=weights.__getitem__))
    codes = np.where(IS_WELL, rare, rare - 1)
    assert np.array_equal(votes(weighted(weights), classes, codes) == rare, votes(weighted(HEAVY)) == 0)


@pytest.mark.parametrize("order", [CLASSES, SORTED], ids=["declared", "sorted"])
def test_numbers_in_the_order_of_the_classes_are_those_of_the_classes_at_hand(order):
    codes = np.array([order.index("well" if well else "sick") for well in IS_WELL])
    own = GaussianNB(priors=[5 / 9, 4 / 9]).fit(X, IS_WELL)
    expected = np.where(own.predict(X), order.index("well"), order.index("sick"))
    assert np.array_equal(votes(GaussianNB(priors=[0.1, 0.5, 0.4]), order, codes), expected)
    many = MultinomialNB(class_prior=[0.1, 0.5, 0.4])
    assert np.all(votes(many, order, codes, np.abs(X)) >= 0)


def test_what_cannot_be_mapped_finds_the_declared_labels():
    class Cautious(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        def __init__(self, prefer: str = "well") -> None:
            self.prefer = prefer

        def fit(self, X: Any, y: Any) -> Any:
            self.classes_, self.share_ = np.unique(y), float(np.mean(y == self.prefer))
            return self

        def predict(self, X: Any) -> Any:
            return np.full(len(X), self.prefer if self.share_ > 0 else self.classes_[0])

    scored = make_scorer(f1_score, pos_label="well")
    search = GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=scored, cv=2, error_score="raise")
    assert set(votes(Cautious())) == {0}
    assert set(votes(search)) == {0, 1}
    assert set(votes(DummyClassifier(strategy="constant", constant="sick"))) == {1}


def test_pairs_of_classes_that_a_classifier_makes_up_have_its_own_names():
    own = OneVsRestClassifier(weighted({0: 1, 1: 20}))
    with pytest.raises(InvalidParameter, match="names 0, which is none of the classes"):
        as_teacher(weighted({0: 1, 1: 20}), classes=CLASSES)
    assert np.array_equal(
        votes(own), np.where(own.fit(X, np.where(IS_WELL, "well", "sick")).predict(X) == "well", 0, 1)
    )


@pytest.mark.parametrize(
    ("teacher", "said"),
    [
        (weighted({"Well": 20}), "class_weight of LogisticRegression names 'Well', which is none of the classes"),
        (make_pipeline(weighted({"ill": 2, "well": 1})), "class_weight of LogisticRegression names 'ill'"),
        (VotingClassifier([("a", weighted({7: 2}))]), "class_weight of LogisticRegression names 7"),
    ],
    ids=["spelt otherwise", "in a step", "no number of a class"],
)
def test_weights_for_what_is_none_of_the_classes_are_refused(teacher, said):
    with pytest.raises(InvalidParameter, match=said):
        as_teacher(teacher, classes=CLASSES)


def test_a_weight_of_the_second_class_is_for_two():
    class Boosts(LogisticRegression):  # type: ignore[misc]
        def __init__(self, scale_pos_weight: float = 1) -> None:
            super().__init__()
            self.scale_pos_weight = scale_pos_weight

    as_teacher(Boosts(20), classes=["no", "yes"])
    as_teacher(Boosts(1), classes=CLASSES)
    with pytest.raises(InvalidParameter, match=r"scale_pos_weight=20 .* is the weight of the second of two classes"):
        as_teacher(Boosts(20), classes=CLASSES)


@pytest.mark.parametrize(
    "plain",
    [LogisticRegression(), weighted("balanced"), GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}), GaussianNB()],
    ids=["logistic", "balanced", "search", "bayes"],
)
def test_a_teacher_that_names_no_class_is_the_one_that_it_was(plain):
    teacher = as_teacher(plain, classes=("lbfgs", "sick", "rare"))  # the first is a default of one of them
    assert teacher.classes is None  # type: ignore[attr-defined]
    assert "classes" not in described(teacher)


def test_the_model_that_was_given_stays_as_it_is():
    given = GridSearchCV(LogisticRegression(), {"class_weight": ({"well": 20, "rare": 2},)}, cv=2)
    votes(given)
    assert given.param_grid == {"class_weight": ({"well": 20, "rare": 2},)}


def test_teachers_that_know_labels_are_stored_and_read_again():
    named = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cg", class_weight={"newton-cg": 20}))
    voter = as_teacher(named, classes=("newton-cg", "sick", "rare")).train(X, CODES, 0)
    assert voter.estimator.labels == ["newton-cg", "sick"]
    written = dump_voters(Secret((voter,)))
    assert written is not None
    assert np.array_equal(load_voters(written.reveal()).reveal()[0].vote(X), voter.vote(X))


def test_scores_and_matched_priors_are_those_of_the_class():
    teacher = as_teacher(weighted({"yes": 3}), classes=("yes", "no"))
    voter = teacher.train(X, CODES, 0)  # type: ignore[arg-type]
    scores = np.frombuffer(_score(X, len(X), voter), dtype=np.float64)  # of class 1, "no"
    assert np.array_equal(scores > 0.5, voter.vote(X) == 1)
    matched = PriorMatchingTeacher(teacher, X).train(X, CODES, 0)  # type: ignore[arg-type]
    assert np.bincount(matched.vote(X)).tolist() == np.bincount(CODES).tolist()


def test_a_declared_teacher_refuses_other_classes():
    teacher = ClassifierTeacher(weighted(HEAVY)).with_classes(CLASSES)
    assert teacher.with_classes(CLASSES) is teacher
    with pytest.raises(InvalidParameter, match="was made for other classes"):
        teacher.with_classes(SORTED)
