"""What is a waste is said before it is paid for; what is sound is not talked down."""

import numpy as np
import pytest

from quorate.accounting.attacker import DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED, EPSILON_PROMISES_LITTLE
from quorate.findings import Outcome, Severity
from quorate.mechanisms import GaussianNoisyMax, LaplaceNoisyMax, NoisyCounts, PermuteAndFlip, StableSparseVector
from quorate.noise import SeededNoise
from quorate.run.cautions import (
    LABELS_ARE_COINS,
    NOTHING_CAN_BE_ANSWERED,
    ONE_ANSWER_IS_UNSURE,
    considered,
    unanimous_right,
)
from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import recipe

CODES = (
    NOTHING_CAN_BE_ANSWERED, LABELS_ARE_COINS, ONE_ANSWER_IS_UNSURE, DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED,
    EPSILON_PROMISES_LITTLE,
)  # fmt: skip

ADULT = {"n_records": 32_561, "n_public": 8_140, "n_classes": 2, "width": 69, "epsilon": 1.0, "delta": 1e-5}


def test_a_sound_task_gets_no_caution():
    made = recipe(PublicFacts(**ADULT))
    assert made.cautions == ()
    assert {each.code: each.outcome for each in made.considered} == dict.fromkeys(CODES, Outcome.PASSED)


@pytest.mark.parametrize("change", [{"n_records": 50}, {"epsilon": 1e-3}])
def test_labels_close_to_coin_tosses_are_said_to_be(change):
    (said,) = recipe(PublicFacts(**ADULT | change)).cautions
    assert (said.code, said.severity, said.outcome) == (LABELS_ARE_COINS, Severity.SERIOUS, Outcome.FAILED)
    assert "coin tosses" in said.words


def test_a_delta_that_gives_away_a_whole_unit_is_said():
    (said,) = recipe(PublicFacts(**ADULT | {"delta": 1e-3})).cautions
    assert (said.code, said.severity) == (DELTA_GIVES_AWAY_A_UNIT, Severity.SERIOUS)
    assert "with it the data of a whole record could be published. Choose delta well below 1 / 32,561" in said.words
    (of_people,) = recipe(PublicFacts(**ADULT | {"delta": 1e-3, "unit": "patient"})).cautions
    assert "above 1 / 32,561 patients" in of_people.words
    assert recipe(PublicFacts(**ADULT | {"delta": 1 / 32_561})).cautions == ()


def test_how_sure_one_online_answer_is_is_said_where_it_is_not():
    (said,) = recipe(PublicFacts(**ADULT | {"online_answers": 100})).cautions
    assert (said.code, said.severity) == (ONE_ANSWER_IS_UNSURE, Severity.WARNING)
    assert "right at most 76 % of the time" in said.words
    assert recipe(PublicFacts(**ADULT | {"online_answers": 100, "epsilon": 8.0, "n_public": 50})).cautions == ()


MECHANISMS = {
    "noisy votes": lambda noise: NoisyCounts(noise, "binary"),
    "the largest noisy vote": lambda noise: GaussianNoisyMax(noise, "binary"),
    "Laplace": LaplaceNoisyMax,
    "permute and flip": lambda noise: PermuteAndFlip(2 / noise),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", MECHANISMS)
def test_labels_are_called_coins_where_there_are_few_teachers_for_the_noise_and_nowhere_else(name):
    facts = PublicFacts(**ADULT)

    def coins(n_teachers, n_queries):
        heard = considered(facts, MECHANISMS[name](100.0), n_teachers=n_teachers, n_queries=n_queries)
        return any(each.code == LABELS_ARE_COINS and each.applies for each in heard)

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
    heard = considered(PublicFacts(**ADULT | {"width": 3}), NoisyCounts(sigma, "binary"), **task)
    assert any(each.code == LABELS_ARE_COINS and each.applies for each in heard) == (share < 0.1)

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
