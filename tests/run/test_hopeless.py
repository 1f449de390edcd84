"""What can answer nothing is refused, what is a waste is said before it is paid for, what is sound is let be."""

import re
from functools import cache

import numpy as np
import pytest

from quorate import PrivateClassifier, PublicPool
from quorate.accounting.attacker import DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED, EPSILON_PROMISES_LITTLE
from quorate.errors import InvalidParameter
from quorate.findings import Outcome, Severity
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    StableSparseVector,
)
from quorate.noise import SeededNoise
from quorate.run.cautions import (
    LABELS_ARE_COINS,
    NOTHING_CAN_BE_ANSWERED,
    ONE_ANSWER_IS_UNSURE,
    considered,
    reach,
    unanimous_right,
)
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


@pytest.mark.parametrize("asked", [{"n_records": 3_000}, {"n_records": None}])
def test_teachers_that_are_too_few_are_named_with_the_number_that_would_do(asked):
    facts = PublicFacts(**{**MUSHROOM, **asked})
    [found] = [each for each in recipe(facts, n_teachers=1).considered if each.code == NOTHING_CAN_BE_ANSWERED]
    enough = int(re.search(r"spent\. Take n_teachers=(\d+) or more, raise epsilon", found.words)[1])
    for n_teachers in (enough - 1, enough):
        assert applies(recipe(facts, n_teachers=n_teachers)) is (n_teachers < enough)
    [found] = recipe(PublicFacts(**{**MUSHROOM, **asked, "epsilon": 1e-4}), n_teachers=1).considered[:1]
    assert "n_teachers" not in found.words  # however many there are


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


CODES = (
    NOTHING_CAN_BE_ANSWERED, LABELS_ARE_COINS, ONE_ANSWER_IS_UNSURE, DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED,
    EPSILON_PROMISES_LITTLE,
)  # fmt: skip

ADULT = {"n_records": 32_561, "n_public": 8_140, "n_classes": 2, "width": 69, "epsilon": 1.0, "delta": 1e-5}


@pytest.mark.parametrize(
    "change", [{}, {"delta": 1 / 32_561}, {"online_answers": 100, "epsilon": 8.0, "n_public": 50}], ids=repr
)
def test_a_sound_task_gets_no_caution(change):
    made = recipe(PublicFacts(**ADULT | change))
    assert made.cautions == ()
    assert {each.code: each.outcome for each in made.considered} == dict.fromkeys(CODES, Outcome.PASSED)


RECORD = "with it the data of a whole record could be published. Choose delta well below 1 / 32,561"


@pytest.mark.parametrize(
    ("change", "code", "severity", "words"),
    [
        ({"n_records": 50}, LABELS_ARE_COINS, Severity.SERIOUS, "coin tosses"),
        ({"epsilon": 1e-3}, LABELS_ARE_COINS, Severity.SERIOUS, "coin tosses"),
        ({"delta": 1e-3}, DELTA_GIVES_AWAY_A_UNIT, Severity.SERIOUS, RECORD),
        ({"delta": 1e-3, "unit": "patient"}, DELTA_GIVES_AWAY_A_UNIT, Severity.SERIOUS, "above 1 / 32,561 patients"),
        ({"online_answers": 100}, ONE_ANSWER_IS_UNSURE, Severity.WARNING, "right at most 76 % of the time"),
    ],
)
def test_what_is_a_waste_is_said(change, code, severity, words):
    (said,) = recipe(PublicFacts(**ADULT | change)).cautions
    assert (said.code, said.severity, said.outcome) == (code, severity, Outcome.FAILED)
    assert words in said.words


MECHANISMS = {
    "noisy votes": lambda noise: NoisyCounts(noise, "binary"),
    "the largest noisy vote": lambda noise: GaussianNoisyMax(noise, "binary"),
    "Laplace": LaplaceNoisyMax,
    "permute and flip": lambda noise: PermuteAndFlip(2 / noise),
}


def are_coins(facts, mechanism, **task):
    return any(each.code == LABELS_ARE_COINS and each.applies for each in considered(facts, mechanism, **task))


@pytest.mark.parametrize("name", MECHANISMS)
def test_labels_are_called_coins_where_there_are_few_teachers_for_the_noise_and_nowhere_else(name):
    facts = PublicFacts(**ADULT)

    def coins(n_teachers, n_queries):
        return are_coins(facts, MECHANISMS[name](100.0), n_teachers=n_teachers, n_queries=n_queries)

    assert coins(1, 1_000)
    assert coins(20, 100)
    assert not coins(150, 10_000)  # a label alone is unsure, and many of them tell
    assert not coins(1_000, 1)  # one label, and right
    assert [coins(k, 400) for k in (5, 20, 80, 320, 1_280)] == sorted(
        (coins(k, 400) for k in (5, 20, 80, 320, 1_280)), reverse=True
    )


@pytest.mark.parametrize(("share", "low", "high"), [(0.02, 0.45, 0.6), (0.6, 0.9, 1.0)])
def test_a_student_of_labels_that_are_called_coins_does_badly_and_of_others_well(share, low, high):
    """Against sixty students of 400 noisy votes about a line in three columns, on which all teachers agree."""
    rng, sigma = np.random.default_rng(5), 100.0
    n_teachers = round(share * sigma)
    task = {"n_teachers": n_teachers, "n_queries": 400}
    assert are_coins(PublicFacts(**ADULT | {"width": 3}), NoisyCounts(sigma, "binary"), **task) == (share < 0.1)

    X, line = rng.normal(size=(400, 3)), np.array([1.0, -1.0, 0.5])
    lead = n_teachers * np.sign(X @ line) / 2
    found = np.linalg.lstsq(X, lead[:, None] + rng.normal(0, sigma, (400, 60)), rcond=None)[0]
    right = np.mean(np.sign(X @ found) == np.sign(X @ line)[:, None])
    assert low < right < high


@pytest.mark.parametrize("sigma", [20.0, 60.0])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_unanimous_vote_wins_about_as_often_as_said(sigma, n_classes):
    """Against 20,000 releases: five standard errors, and the union bound's slack above."""
    form = "binary" if n_classes == 2 else "histogram"
    counts = np.zeros((20_000, n_classes), dtype=np.int64)
    counts[:, 1] = 101
    won = np.mean(GaussianNoisyMax(sigma, form).release_many(counts, SeededNoise(3)) == 1)
    said = unanimous_right(NoisyCounts(sigma, form), n_teachers=101, n_classes=n_classes)

    assert said <= won + 5 * np.sqrt(0.25 / 20_000) + 0.01  # a half vote of rounding
    if n_classes == 2:
        assert abs(said - won) < 5 * np.sqrt(0.25 / 20_000) + 0.01


def test_what_could_not_be_looked_for_is_not_called_passed():
    facts = PublicFacts(**ADULT | {"n_records": None})
    sparse = considered(facts, StableSparseVector(1.0, 1e-5, 2, 10), n_teachers=100, n_queries=10)
    passed = dict.fromkeys((NOTHING_CAN_BE_ANSWERED, EPSILON_PROMISES_LITTLE), Outcome.PASSED)
    unknown = dict.fromkeys(CODES, Outcome.NOT_RUN) | passed | {DELTA_NOT_COMPARED: Outcome.FAILED}
    assert {each.code: each.outcome for each in sparse} == unknown
    (said,) = [each for each in sparse if each.applies or each.words]
    assert (said.code, said.severity) == (DELTA_NOT_COMPARED, Severity.NOTE)
    assert "delta = 1e-5 was not compared with 1 / n" in said.words
    assert "Declare it as n_records" in said.words


def test_where_noise_has_no_scale_nothing_is_claimed():
    assert unanimous_right(StableSparseVector(1.0, 1e-5, 2, 10), n_teachers=100, n_classes=2) is None
