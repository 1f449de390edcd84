"""What can answer nothing is refused before anything is charged, and what is sound is not."""

from functools import cache

import numpy as np
import pytest

from quorate import PrivateClassifier, PublicPool
from quorate.errors import InvalidParameter
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    GaussianNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    StableSparseVector,
)
from quorate.run.cautions import NOTHING_CAN_BE_ANSWERED, reach
from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import recipe

MUSHROOM = {"n_records": 6_499, "n_public": 1_000, "n_classes": 2, "width": 117, "epsilon": 1.0, "delta": 1e-5}


def mechanism(kind, **fields):
    return {"mechanism": kind, "fields": fields}


# Both lists were fixed before the first run. Each entry: changed facts, and what the user asks for.
HOPELESS = [
    ({}, {"n_teachers": 250, "n_queries": 1_000, **mechanism(StableSparseVector, cutoff=120)}),
    ({"epsilon": 0.1}, {"n_teachers": 250, **mechanism(StableSparseVector, cutoff=10)}),
    ({"n_records": 200}, {"n_teachers": 20, **mechanism(StableSparseVector, cutoff=5)}),
    ({}, {"n_teachers": 100, **mechanism(ConfidentNoisyMax, threshold=150.0)}),
    ({"n_classes": 7}, {"n_teachers": 30, **mechanism(ConfidentNoisyMax, threshold=60.0)}),
    ({}, {"n_teachers": 100, **mechanism(DistanceToInstability)}),
    ({"epsilon": 0.01}, {"n_teachers": 30, **mechanism(GaussianNoisyMax)}),
    ({"epsilon": 1e-3}, {"n_teachers": 250, **mechanism(NoisyCounts)}),
    ({"n_records": 40, "epsilon": 0.1}, {}),
    ({"n_records": 60, "n_rows": 6_000, "n_classes": 10, "epsilon": 0.1, "unit": "person"}, {}),
    ({"n_records": 300, "n_classes": 150, "epsilon": 0.25}, {}),
    ({"epsilon": 1e-3}, {"n_teachers": 20, **mechanism(PermuteAndFlip)}),
]
SOUND = [
    *[({"epsilon": epsilon}, {}) for epsilon in (0.25, 0.5, 1.0, 2.0, 8.0)],
    *[({"n_records": n, "delta": 0.1 / n}, {}) for n in (1_000, 32_561, 1_000_000)],
    *[({"n_classes": c, "n_records": 60_000}, {}) for c in (3, 10)],
    ({"n_records": 539, "n_rows": 60_000, "n_classes": 10, "unit": "person", "epsilon": 2.0}, {}),
    ({"n_public": 162}, {}),
    ({"width": 5}, {}),
    ({"width": 1_000, "n_records": 25_000}, {}),
    ({}, {"n_teachers": 250, "n_queries": 100, **mechanism(GaussianNoisyMax)}),
    ({}, {"n_teachers": 250, "n_queries": 50, **mechanism(ConfidentNoisyMax, threshold=150.0)}),
    ({}, {"n_teachers": 1_000, "n_queries": 100, **mechanism(StableSparseVector, cutoff=5)}),
    ({"epsilon": 4.0}, {"n_teachers": 500, "n_queries": 20, **mechanism(DistanceToInstability)}),
    ({"epsilon": 2.0}, {"n_teachers": 100, "n_queries": 10, **mechanism(PermuteAndFlip)}),
    ({"delta": 1e-6, "epsilon": 1.0}, {"n_teachers": 250}),
]


@cache
def recipe_of_hopeless(at):
    """Some take seconds to calibrate."""
    facts, wish = HOPELESS[at]
    return recipe(PublicFacts(**MUSHROOM | facts), **wish)


def applies(made):
    (found,) = [each for each in made.considered if each.code == NOTHING_CAN_BE_ANSWERED]
    return found.applies


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("at", range(len(HOPELESS)))
def test_what_can_answer_nothing_is_found(at):
    assert recipe_of_hopeless(at).cautions, "neither refused nor cautioned"


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("facts", "wish"), SOUND, ids=range(len(SOUND)))
def test_what_is_sound_is_not_talked_down(facts, wish):
    assert recipe(PublicFacts(**MUSHROOM | facts), **wish).cautions == ()


@pytest.mark.heavy
def test_the_lists_are_as_long_as_they_are_said_to_be():
    assert (len(HOPELESS), len(SOUND)) == (12, 20)
    assert sum(applies(recipe_of_hopeless(at)) for at in range(12)) >= 8  # refused; the others are cautioned


def test_the_noise_that_drowns_a_unanimous_vote_lies_where_the_mean_says():
    """By simulation: whether the mean of 50 unanimous answers can be told from that of 50 ties."""
    rng = np.random.default_rng(0)
    for sigma, drowned in ((50 * 50**0.5, True), (5 * 50**0.5, False)):
        found = reach(NoisyCounts(sigma=sigma, form="binary"), n_teachers=50, n_classes=2, n_queries=50)
        unanimous = (50 + rng.normal(0, sigma, size=(4_000, 50))).mean(axis=1)
        tie = (25 + rng.normal(0, sigma, size=(4_000, 50))).mean(axis=1)
        right = ((unanimous > 37.5).mean() + (tie < 37.5).mean()) / 2
        assert found.applies is drowned
        assert bool(right < 0.75) is drowned


@pytest.mark.parametrize("n_teachers", [250, 2_000])
def test_a_threshold_is_out_of_reach_where_it_is_above_what_all_teachers_give(n_teachers):
    far = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=1_000)
    found = reach(far, n_teachers=n_teachers, n_classes=2, n_queries=1_000)
    assert found.applies is (n_teachers == 250)
    if found.applies:
        assert "all of 250 teachers agree it is 124" in found.words


@pytest.mark.heavy
def test_an_estimator_refuses_it_charges_nothing_and_goes_on_where_it_is_told_to():
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(600, 3)), PublicPool(rng.normal(size=(80, 3)))
    y = (X[:, 0] > 0).astype(int)
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    asked = {
        "classes": [0, 1], "epsilon": 0.5, "delta": 1e-6, "n_teachers": 10, "n_jobs": 1, "ledger": ledger,
        "mechanism": DistanceToInstability(epsilon=0.05, delta=1e-8),
    }  # fmt: skip
    with pytest.raises(InvalidParameter, match=r"nothing was spent: DistanceToInstability .* allow_hopeless=True"):
        PrivateClassifier(**asked, queries=5).fit(X, y, public=pool)
    assert ledger.reservations() == ()
    with pytest.raises(InvalidParameter, match="allow_hopeless must be True or False, got 'yes'"):
        PrivateClassifier(**asked, queries=5, allow_hopeless="yes").fit(X, y, public=pool)
    clf = PrivateClassifier(**asked, queries=5, allow_hopeless=True).fit(X, y, public=pool)
    assert clf.guarantee_.epsilon <= 0.5
    assert len(ledger.reservations()) == 1
