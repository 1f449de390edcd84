"""What the true size adds: against scores drawn one by one, and against a run on rows of which there are enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quorate import PrivateLogisticRegression, PublicPool
from quorate.planning.plan_row import PlanRow
from quorate.planning.public_side import labelled_material, public_side
from quorate.planning.rehearsal.estimate import Played, accuracy_of, estimate, growth, sensitivity_of
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal
from quorate.run.public_facts import PublicFacts

N, M, LABELLED, TEST = 20_000, 400, 1_200, 5_000
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5}


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
        by_a_quadratic_rule(n, seed) for seed, n in enumerate((N, M, LABELLED, TEST))
    )
    run = PrivateLogisticRegression(classes=[0, 1], n_records=N, unsafe_noise_seed=0, **BUDGET)
    had = float((run.fit(X, y, public=PublicPool(pool)).predict(unseen) == truth).mean())

    material = labelled_material(public_side(pool, (0, 1)), evaluation=labelled)
    facts = PublicFacts(n_records=N, n_public=M, n_classes=2, width=8, **BUDGET)
    effort = Effort(folds=2, repeats=1, teachers=8, n_asked=M, every_row=True)
    rehearsal = Rehearsal(material=material, facts=facts, effort=effort)
    row = PlanRow(way="direct", name="gradient rounds")
    played = rehearsal._played(facts, row, "at length")
    found = estimate(played, "labelled public rows", n_classes=2)
    assert found.low <= had <= found.high
    assert found.accuracy == pytest.approx(had, abs=0.03)
    first_order = float(np.mean([each.whole + each.first_order for each in played]))
    assert first_order < had - 0.01
