"""Where a class is rare, rows of a plan are judged by the score that suits it; what of an estimate is luck or size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

import quorate
from quorate import PrivateLogisticRegression, PublicPool
from quorate.findings import Outcome
from quorate.planning.plan import Plan, in_order
from quorate.planning.plan_row import PlanRow
from quorate.planning.public_side import labelled_material, public_side
from quorate.planning.rehearsal.estimate import (
    Played,
    accuracy_of,
    estimate,
    estimate_value,
    growth,
    sensitivity_of,
)
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal, kept, without_luck
from quorate.planning.text import render_plan
from quorate.run.cautions import rehearsal_caution
from quorate.run.expectation import Expected, ExpectedValue
from quorate.run.public_facts import PublicFacts

FACTS = PublicFacts(n_records=6_000, n_public=500, n_classes=2, width=8, epsilon=1.0, delta=1e-5)


def expected(value: float, *, accuracy: float = 0.96, scoring: str = "roc_auc", baseline: float = 0.5) -> Expected:
    scored = ExpectedValue(scoring=scoring, value=value, low=value - 0.02, high=value + 0.02, baseline=baseline)
    return Expected(accuracy=accuracy, low=0.9, high=1.0, basis="labelled public rows", scored=scored)


def row(n_teachers: int, told: Expected) -> PlanRow:
    return PlanRow(way="votes", name="NoisyCounts", n_teachers=n_teachers, n_queries=500, expected=told)


def test_rows_stand_in_the_order_of_the_chosen_score():
    rows = [row(10, expected(0.7, accuracy=0.97)), row(20, expected(0.8)), row(30, expected(0.75))]
    assert [each.n_teachers for each in in_order(FACTS, rows)] == [20, 30, 10]
    assert "its expected ROC-AUC is the best, 0.050 better than the next row's" in in_order(FACTS, rows)[0].why
    plan = Plan(facts=FACTS, rows=in_order(FACTS, rows))
    for asked, why in ((False, "a class is rare"), (True, "it was asked for")):
        assert f"ROC-AUC, since {why}\n" in render_plan(replace(plan, score_was_asked_for=asked))
    losses = [row(n, expected(value, scoring="log_loss", baseline=0.7)) for n, value in ((10, 0.4), (20, 0.3))]
    assert [each.n_teachers for each in in_order(FACTS, losses)] == [20, 10]


@pytest.mark.parametrize(
    ("scoring", "value", "baseline", "applies"),
    [
        ("roc_auc", 0.79, 0.5, False),
        ("roc_auc", 0.49, 0.5, True),
        ("log_loss", 0.15, 0.18, False),
        ("log_loss", 0.2, 0.18, True),
    ],
)
def test_the_caution_before_paying_is_by_the_chosen_score(scoring, value, baseline, applies):
    told = expected(value, accuracy=0.959, scoring=scoring, baseline=baseline)
    found = rehearsal_caution(told, 0.96)  # by accuracy the student is always no better
    assert found.applies == applies
    assert found.outcome is not Outcome.NOT_RUN
    assert rehearsal_caution(replace(told, scored=None), 0.96).applies
    if applies:
        assert f"{baseline:.3f}: the budget would be spent for nothing" in found.words


def test_what_is_missing_is_added_to_first_order():
    hits = np.ones((3, 10), dtype=bool)
    played = [Played(hits=hits, fold=fold, size=0.5, values=(0.8, 0.75, 0.77)) for fold in range(3)]
    found = estimate_value(played, "roc_auc", 0.5)
    assert found.value == pytest.approx(0.8 + 0.5 * 0.04)
    assert found.low < 0.8 < found.high
    whole = estimate_value([Played(hits=hits, fold=0, size=1.0, values=(0.99, 0.9, 0.9))], "roc_auc", 0.5)
    assert whole.value == pytest.approx(0.99)
    assert whole.high == 1.0  # no score goes beyond it


def test_accuracy_is_told_as_it_was():
    told = Expected(accuracy=0.84, low=0.8, high=0.88, basis="labelled public rows")
    assert "scored" not in told.tree()
    assert str(told) == "84.0 % (80.0 to 88.0 %)"
    assert (told.merit, told.gain(0.8)) == (0.84, pytest.approx(0.04))


@pytest.fixture(scope="module")
def rare():
    X, y = make_classification(1_700, n_features=6, weights=[0.9], class_sep=1.5, random_state=1)
    return X, np.array(["nein", "ja"])[y]


def made(rare: tuple[Any, Any], **how: Any) -> Any:
    X, y = rare
    return quorate.plan(
        X[:300], epsilon=2.0, delta=1e-5, n_records=900, classes=["ja", "nein"], evaluation=(X[300:], y[300:]),
        n_teachers=[20], queries=[300], mechanisms=["NoisyCounts"], **how,
    )  # fmt: skip


@pytest.mark.heavy
def test_a_plan_ranks_by_what_suits_a_rare_class_and_comes_near_what_a_fit_has(rare):
    plan = made(rare)
    assert plan.scoring == "roc_auc"
    assert {each.expected.scored.scoring for each in plan.answering if each.expected is not None} == {"roc_auc"}
    assert "expected ROC-AUC" in str(plan)
    X, y = rare
    scores = []
    for seed in range(3):
        clf = quorate.PrivateLogisticRegression(
            classes=["ja", "nein"], epsilon=2.0, delta=1e-5, n_records=900, unsafe_noise_seed=seed
        )
        clf.fit(X[300:1_200], y[300:1_200], public=quorate.PublicPool(X[:300]))
        scores.append(clf.score(X[1_200:], y[1_200:], scoring="roc_auc"))
    (direct,) = (each for each in plan.answering if each.way == "direct")
    assert abs(direct.expected.scored.value - np.mean(scores)) < 0.1


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)  # beside ROC-AUC above
@pytest.mark.usefixtures("brief_rehearsals")
@pytest.mark.parametrize("scoring", ["log_loss", "balanced_accuracy", "average_precision", "f1", "accuracy"])
def test_a_plan_ranks_by_any_score_that_is_asked_for(rare, scoring):
    plan = made(rare, scoring=scoring)
    assert plan.scoring == scoring
    assert plan.tree()["rows"][0]["expected"]["accuracy"] > 0.8


@pytest.mark.heavy
def test_nothing_bought_is_said_before_it_is_paid(rare):
    X, y = rare
    shuffled = np.random.default_rng(0).permutation(y)  # nothing tells the classes apart
    clf = quorate.PrivateClassifier(classes=["ja", "nein"], epsilon=2.0, delta=1e-5, n_records=900, n_teachers=20)
    found = quorate.check(
        clf, X[300:1_200], y[300:1_200], public=quorate.PublicPool(X[:300]), evaluation=(X[1_200:], shuffled[1_200:])
    )
    assert found.found["expected"]["scored"]["scoring"] == "roc_auc"
    assert abs(found.found["expected"]["scored"]["value"] - 0.5) < 0.2


@pytest.mark.parametrize(("between", "luck"), [(0.02, 0.02), (0.01, 0.03), (0.03, 0.01)])
def test_what_is_kept_is_the_share_of_the_variance_that_is_the_rows_own(between, luck):
    """Over 40 rows in 4 divisions, by the definition of the share; its standard error is 0.12 at most."""
    rng, n_rows, n_divisions = np.random.default_rng(0), 40, 4
    own, common = between * rng.normal(size=(n_rows, 1)), 0.05 * rng.normal(size=(1, n_divisions))
    found = kept(own + common + luck * rng.normal(size=(n_rows, n_divisions)))
    assert found == pytest.approx(between**2 / (between**2 + luck**2 / n_divisions), abs=0.3)


def test_the_best_of_several_is_expected_as_well_as_it_is():
    """The twin beside it: as played, the best of six is expected too well, and differences are further off."""
    rng, off, as_played = np.random.default_rng(1), [], []
    for _ in range(300):
        true = 0.8 + 0.01 * rng.normal(size=6)
        played = true[:, None] + 0.03 * rng.normal(size=(6, 4))
        raw = played.mean(axis=1)
        shrunk = raw.mean() + kept(played) * (raw - raw.mean())
        best = int(raw.argmax())
        off.append([shrunk[best] - true[best], np.std(shrunk - true)])
        as_played.append([raw[best] - true[best], np.std(raw - true)])
    luck, spread = np.mean(off, axis=0)
    raw_luck, raw_spread = np.mean(as_played, axis=0)
    assert raw_luck > 0.01
    assert luck < raw_luck / 2
    assert spread < 0.8 * raw_spread


def played(accuracies: list[float]) -> list[Played]:
    """One play in each division."""
    return [
        Played(hits=np.arange(1_000) < np.full((3, 1), 1_000 * each), fold=fold, size=1.0)
        for fold, each in enumerate(accuracies)
    ]


def test_rows_keep_their_order_and_their_ranges_move_along():
    plays = {"votes/A": played([0.8, 0.7]), "votes/B": played([0.76, 0.7]), "votes/C": played([0.62, 0.68])}
    rows = [
        PlanRow(
            way="votes", name=name, expected=Expected(accuracy=a, low=a - 0.1, high=a + 0.05, basis="paid estimate")
        )
        for name, a in (("A", 0.75), ("B", 0.73), ("C", 0.65), ("D", 0.9))
    ]
    by_key = {row.key: list(plays.values())[at] for at, row in enumerate(rows[:3])}
    found = without_luck(rows, by_key)
    accuracies = [row.expected.accuracy for row in found if row.expected is not None]
    assert accuracies[3] == 0.9  # of which no plays were given
    assert accuracies[0] > accuracies[1] > accuracies[2]
    assert accuracies[0] < 0.75
    assert accuracies[2] > 0.65
    assert sum(accuracies[:3]) == pytest.approx(0.75 + 0.73 + 0.65)
    for row in found[:3]:
        assert row.expected.accuracy - row.expected.low == pytest.approx(0.1)
    uneven = {**by_key, rows[0].key: played([0.8])}
    assert without_luck(rows, uneven) == rows  # a row that could not be played in each division is compared with none


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_choice_is_right_as_often_as_the_true_score_is_the_largest(n_classes):
    """Against 40,000 draws: four standard errors are 0.01 at most."""
    scores = np.random.default_rng(0).normal(size=(40_000, n_classes))
    for sensitivity in (0.0, 0.7, 1.5, 3.0):
        lead = np.sqrt(2) * sensitivity
        drawn = float((scores[:, 0] + lead > scores[:, 1:].max(axis=1)).mean())
        found = accuracy_of(np.array([sensitivity]), n_classes)[0]
        assert found == pytest.approx(drawn, abs=0.01)
        assert sensitivity_of(float(found), n_classes) == pytest.approx(sensitivity, abs=0.01)


def drawn_hits(n_classes: int, *, by_size: float, n: int = 60_000) -> tuple[np.ndarray, float]:
    """Draw scores of n rows: which are right with the whole, halves and quarters, and how many without what size adds.

    `by_size` is the variance that the size of the whole adds, beside 1 from row to row. Each quarter has one of its
    own, four times as large, and what halves and the whole have is the mean of that of their quarters.
    """
    rng = np.random.default_rng(n_classes)
    lasting = rng.normal(size=(n, n_classes))
    lasting[:, 0] += 2.0
    quarters = [np.sqrt(4 * by_size) * rng.normal(size=(n, n_classes)) for _ in range(4)]
    halves = [(quarters[0] + quarters[1]) / 2, (quarters[2] + quarters[3]) / 2]
    parts = [(halves[0] + halves[1]) / 2, *halves, *quarters]
    right = [(lasting + each).argmax(axis=1) == 0 for each in (*parts, 0.0)]
    return np.stack(right[:-1]), float(right[-1].mean())


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("by_size", [0.2, 1.0])
def test_the_true_size_adds_what_scores_without_that_of_few_rows_have(n_classes, by_size):
    hits, endless = drawn_hits(n_classes, by_size=by_size)
    one = Played(hits=hits, fold=0, size=0.0)
    added = growth(one.lost, one.whole, size=0.0, n_classes=n_classes)
    assert one.whole + added.mean == pytest.approx(endless, abs=0.01)
    assert added.variance**0.5 < 0.01
    assert growth(one.lost, one.whole, size=1.0, n_classes=n_classes).mean == 0.0


def test_in_proportion_to_one_over_the_size_would_be_caught():
    """The twin: where size adds as much as rows differ, the step from halves to the whole says too little."""
    hits, endless = drawn_hits(2, by_size=1.0)
    one = Played(hits=hits, fold=0, size=0.0)
    assert one.whole + one.first_order < endless - 0.03


def test_few_rows_are_not_taken_at_their_word():
    """Coins: a whole that happens to be luckier than its halves and quarters is no reason to expect much more."""
    coins = np.random.default_rng(0).random((7, 60)) < 0.5
    coins[0, :33] = True
    one = Played(hits=coins, fold=0, size=0.01)
    added = growth(one.lost, one.whole, size=one.size, n_classes=2)
    assert one.whole > 0.7
    assert one.whole + added.mean < 0.95
    assert added.variance**0.5 > 0.02
    right = Played(hits=np.ones((7, 50), dtype=bool), fold=0, size=0.1)
    assert estimate([right], "labelled public rows", n_classes=2).accuracy <= 1.0


def by_a_quadratic_rule(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of eight numbers, and a class that takes hundreds of dimensions to tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    between = np.random.default_rng(5).normal(size=(8, 8))
    scores = np.einsum("ij,jk,ik->i", X, between, X) / 8 + X[:, 0] / 2
    return X, (scores + 0.5 * rng.logistic(size=n) > 0).astype(np.int64)


@pytest.mark.heavy
def test_a_model_of_many_dimensions_grows_by_more_than_its_last_step():
    """By a run on all private rows: some hundred rows leave out much that the direct method learns from 20,000."""
    (X, y), (pool, _), labelled, (unseen, truth) = (
        by_a_quadratic_rule(n, seed) for seed, n in enumerate((20_000, 400, 1_200, 5_000))
    )
    budget: dict[str, Any] = {"n_records": len(X), "epsilon": 2.0, "delta": 1e-5}
    run = PrivateLogisticRegression(classes=[0, 1], unsafe_noise_seed=0, **budget)
    had = float((run.fit(X, y, public=PublicPool(pool)).predict(unseen) == truth).mean())

    material = labelled_material(public_side(pool, (0, 1)), evaluation=labelled)
    facts = PublicFacts(n_public=len(pool), n_classes=2, width=8, **budget)
    effort = Effort(folds=2, repeats=1, teachers=8, n_asked=len(pool), every_row=True)
    rehearsal = Rehearsal(material=material, facts=facts, effort=effort)
    row = PlanRow(way="direct", name="gradient rounds")
    played = rehearsal._played(facts, row, "at length")
    found = estimate(played, "labelled public rows", n_classes=2)
    assert found.low <= had <= found.high
    assert found.accuracy == pytest.approx(had, abs=0.03)
    first_order = float(np.mean([each.whole + each.first_order for each in played]))
    assert first_order < had - 0.01
