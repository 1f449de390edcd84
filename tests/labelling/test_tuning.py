"""Paid choices and error estimates: sensitivity of the scores, exact laws, coverage, and the order of acts."""

import math
import sys
from functools import cache

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from tests.labelling.conftest import paid
from tests.mechanisms.test_choice import MECHANISMS, permute_and_flip_law

from quorate.accounting import PureDP
from quorate.ensemble import ClassifierTeacher, hash_shards, teacher_errors
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter
from quorate.labelling import Candidate, choose_model, choose_teachers, estimate_error, read_error
from quorate.labelling.tuning import teacher_scores
from quorate.mechanisms import Exponential, LaplaceNoisyMax, NoisySum, PermuteAndFlip
from quorate.noise import SeededNoise
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FALSE_ALARM = 1e-6
KEY = Secret(bytes(range(32)))
RNG = np.random.default_rng(9)
X = RNG.normal(size=(240, 3))
Y = (X[:, 0] > 0).astype(np.int64)
SLOTS = [b"%d" % unit for unit in range(240)]
GOOD, BAD = ClassifierTeacher(LogisticRegression()), ClassifierTeacher(DummyClassifier())


class TestScores:
    @pytest.mark.heavy
    @given(n_teachers=st.lists(st.integers(1, 400), min_size=2, max_size=5), grid=st.integers(1, 1000), data=st.data())
    def test_one_teacher_of_each_candidate_moves_no_score_by_more_than_the_grid(self, n_teachers, grid, data):
        """The proof of the module, on random sums: the errors of one teacher go from a to b, in every candidate."""
        sums, moved = [], []
        for k in n_teachers:
            others = data.draw(st.integers(0, (k - 1) * grid))
            a, b = data.draw(st.integers(0, grid)), data.draw(st.integers(0, grid))
            sums.append(others + a)
            moved.append(others + b)
        before, after = (teacher_scores(Secret(np.array(s)), n_teachers).reveal() for s in (sums, moved))

        assert np.abs(before - after).max() <= grid

    def test_the_grid_is_reached_by_the_smallest_ensemble(self):
        before = teacher_scores(Secret(np.array([0, 0])), [5, 50]).reveal()
        after = teacher_scores(Secret(np.array([7, 7])), [5, 50]).reveal()
        assert np.abs(before - after).tolist() == [7, 0]

    @given(sums=st.lists(st.integers(0, 10**6), min_size=2, max_size=5), k=st.integers(1, 300))
    def test_they_are_the_mean_errors_to_less_than_a_step(self, sums, k):
        n_teachers = [k + 7 * i for i in range(len(sums))]
        scores = teacher_scores(Secret(np.array(sums)), n_teachers).reveal()
        exact = [-total * min(n_teachers) / size for total, size in zip(sums, n_teachers, strict=True)]

        assert all(0 <= score - e < 1 + 1e-6 for score, e in zip(scores.tolist(), exact, strict=True))

    def test_twins_that_round_up_to_a_common_size_or_forget_the_smallest_are_caught(self):
        """Scaled to the largest ensemble, one teacher of the smallest moves its score ten grids far."""
        grid, n_teachers = 100, [5, 50]

        def cheat(sums):
            return [-total * max(n_teachers) // size for total, size in zip(sums, n_teachers, strict=True)]

        assert max(abs(a - b) for a, b in zip(cheat([0, 0]), cheat([grid, grid]), strict=True)) == 10 * grid


@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential])
@given(
    scores=st.lists(st.integers(-40, 0), min_size=2, max_size=5),
    epsilon=st.floats(0.1, 5),
    failure=st.floats(0.001, 0.9),
)
def test_the_chosen_score_is_rarely_further_behind_than_printed(kind, scores, epsilon, failure):
    mechanism = kind(epsilon=epsilon, sensitivity=3)
    behind = mechanism.shortfall(len(scores), failure)
    chances = dict(MECHANISMS)[kind](scores, epsilon, 3)

    assert chances[np.array(scores) < max(scores) - behind].sum() <= failure * (1 + 1e-9)


def test_that_bound_without_the_factor_two_would_be_passed():
    scores, failure = [0, *[-8] * 4], 0.05
    half = PermuteAndFlip(epsilon=2.0, sensitivity=3).shortfall(5, failure) / 2

    assert half < 8
    assert permute_and_flip_law(scores, 2.0, 3)[1:].sum() > failure


class TestChooseTeachers:
    CANDIDATES = (Candidate(teacher=BAD, n_teachers=12), Candidate(teacher=GOOD, n_teachers=8))

    def choose(self, mechanism=None, reservation=None, candidates=CANDIDATES, y_codes=Y, **options):
        mechanism = mechanism or PermuteAndFlip(epsilon=10.0, sensitivity=100)
        given = {"n_classes": 2, "key": KEY, "noise": SeededNoise(1), **options}
        reservation = reservation or paid(mechanism, "tuning")
        return choose_teachers(candidates, X, y_codes, SLOTS, mechanism=mechanism, reservation=reservation, **given)

    @pytest.mark.heavy
    def test_the_better_teacher_is_chosen_and_the_price_is_that_of_one_choice(self):
        reservation = paid(PermuteAndFlip(epsilon=10.0, sensitivity=100), "tuning")
        chosen = self.choose(reservation=reservation)

        assert reservation.blocks("tuning")[0].answers == [chosen.index] == [1]
        assert chosen.event == PureDP(10.0)
        assert chosen.slack == pytest.approx((2 / 10 * math.log(1 / 0.05) + 1 / 100) / 8 + 1 / 100)
        assert chosen.seeded

    @pytest.mark.heavy
    def test_nothing_is_drawn_when_something_is_wrong(self):
        good = paid(PermuteAndFlip(epsilon=10.0, sensitivity=100), "tuning")
        for options in (
            {"candidates": self.CANDIDATES[:1]},
            {"candidates": [GOOD, BAD]},
            {"mechanism": PermuteAndFlip(epsilon=10.0, sensitivity=0.5)},
            {"mechanism": PermuteAndFlip(epsilon=10.0, sensitivity=1.5)},
            {"mechanism": PermuteAndFlip(epsilon=20.0, sensitivity=100)},
            {"mechanism": LaplaceNoisyMax(laplace_scale=1.0)},
            {"failure": 1.0},
            {"share": 0},
        ):
            with pytest.raises(InvalidParameter):
                self.choose(reservation=good, **options)
        with pytest.raises(DataRefused):
            self.choose(reservation=good, y_codes=Y[:-1])
        with pytest.raises(DataRefused, match="too many teachers"):
            self.choose(reservation=good, candidates=[Candidate(teacher=GOOD, n_teachers=k) for k in (2, 500)])
        assert good.remaining("tuning") == 1

    @pytest.mark.parametrize("bad", [0, -1, 1.5, True, "5", None])
    def test_a_candidate_has_a_number_of_teachers(self, bad):
        with pytest.raises(InvalidParameter, match=r"^n_teachers must be "):
            Candidate(teacher=GOOD, n_teachers=bad)


class TestChooseModel:
    MODELS = tuple(DummyClassifier(strategy="constant", constant=c).fit([[0.0], [1.0]], [0, 1]) for c in (0, 1))

    def choose(self, mechanism, reservation=None, y=None, unit_keys=None, **options):
        y = np.ones(30, np.int64) if y is None else y
        given = {"classes": [0, 1], "noise": SeededNoise(2), **options}
        unit_keys = unit_keys or [b"%d" % row for row in range(len(y))]
        reservation = reservation or paid(mechanism, "tuning")
        rows = np.zeros((len(y), 1))
        return choose_model(self.MODELS, rows, y, unit_keys, mechanism=mechanism, reservation=reservation, **given)

    @pytest.mark.heavy
    def test_the_better_one_is_chosen_each_unit_counted_once(self):
        many = np.concatenate([np.ones(30, np.int64), np.zeros(200, np.int64)])
        unit_keys = [*[b"%d" % row for row in range(30)], *[b"busy"] * 200]
        mechanism = PermuteAndFlip(epsilon=20.0, sensitivity=10)

        assert self.choose(mechanism).index == 1
        assert self.choose(mechanism, y=many, unit_keys=unit_keys).index == 1  # by rows it would be 0

    @pytest.mark.heavy
    def test_a_slack_is_printed_where_the_number_of_units_was_declared(self):
        mechanism = PermuteAndFlip(epsilon=20.0)
        assert self.choose(mechanism).slack is None
        assert self.choose(mechanism, n_units=30).slack == pytest.approx(0.1 * math.log(1 / 0.05) / 30)

    @pytest.mark.heavy
    def test_a_choice_is_made_once(self):
        mechanism = PermuteAndFlip(epsilon=20.0)
        reservation = paid(mechanism, "tuning")
        chosen = self.choose(mechanism, reservation)
        with pytest.raises(BudgetExhausted):
            self.choose(mechanism, reservation)
        assert reservation.blocks("tuning")[0].answers == [chosen.index]


class TestErrorEstimate:
    def estimate(self, mechanism, reservation=None, **options):
        given = {"n_teachers": 10, "n_classes": 2, "key": KEY, "noise": SeededNoise(3), **options}
        reservation = reservation or paid(mechanism, "tuning")
        return estimate_error(GOOD, X, Y, SLOTS, mechanism=mechanism, reservation=reservation, **given)

    @pytest.mark.heavy
    def test_it_is_the_mean_of_the_teachers_errors_plus_noise(self):
        shards = hash_shards(SLOTS, 10, KEY)
        errors = teacher_errors(GOOD, X, Y, SLOTS, shards, n_teachers=10, n_classes=2, key=KEY, grid=1000).reveal()
        mechanism = NoisySum(scale=1e-5, grid=1000)
        reservation = paid(mechanism, "tuning")
        estimate = self.estimate(mechanism, reservation)
        [stored] = reservation.blocks("tuning")[0].answers

        assert read_error(stored, mechanism, n_teachers=10, seeded=True) == estimate
        assert estimate.error == pytest.approx(errors.mean() / 1000)
        assert estimate.half_width == pytest.approx(0.5 / 1000)
        x = estimate.error + estimate.half_width
        kl = x * math.log(x / estimate.upper) + (1 - x) * math.log((1 - x) / (1 - estimate.upper))
        assert 10 * kl == pytest.approx(math.log(2 / 0.05), rel=1e-6)
        assert estimate.upper > x

    def test_bad_input_draws_nothing(self):
        mechanism = NoisySum.costing(0.5)
        good = paid(mechanism, "tuning")
        shares = NoisySum.costing(0.5, form="shares")
        with pytest.raises(InvalidParameter, match='form="single"'):
            self.estimate(shares, paid(shares, "tuning"))
        with pytest.raises(InvalidParameter, match="does not pay for 1 answers of NoisySum"):
            self.estimate(NoisySum.costing(0.6), good)
        with pytest.raises(InvalidParameter, match=r"^failure must be "):
            self.estimate(mechanism, good, failure=0)
        with pytest.raises(InvalidParameter, match=r"^n_teachers must be "):
            self.estimate(mechanism, good, n_teachers=0)
        with pytest.raises(InvalidParameter, match=r"^partition must be "):
            self.estimate(mechanism, good, partition="rows")
        assert good.remaining("tuning") == 1


TRIALS = 3_000


def estimates_of(errors, mechanism, failure, read_with=None):
    """Release the sum of each row of errors in [0, 1], (TRIALS, K), and read it."""
    grid = mechanism.grid
    sums = np.rint(errors * grid).astype(np.int64).sum(axis=1, keepdims=True)
    released = mechanism.release_many(sums, SeededNoise(5)).tolist()
    read = cache(lambda answer: read_error(answer, read_with or mechanism, n_teachers=errors.shape[1], failure=failure))
    return [read(answer) for answer in released]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("failure", [0.5, 0.05])
@pytest.mark.parametrize("grid", [1, 7, 1000])
def test_the_noise_part_of_an_estimate_holds_as_often_as_it_says(noise, failure, grid):
    errors = np.tile(np.random.default_rng(1).random(20), (TRIALS, 1))
    found = estimates_of(errors, NoisySum(1.5, grid, noise=noise), failure)
    misses = sum(abs(e.error - errors[0].mean()) > e.half_width for e in found)

    assert stats.binom.sf(misses - 1, TRIALS, failure / 2) > FALSE_ALARM


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("failure", [0.5, 0.1])
@pytest.mark.parametrize("mean", [0.0, 0.02, 0.3, 1.0])
def test_the_upper_bound_covers_the_expected_error_as_often_as_it_says(failure, mean):
    """Errors of 20 teachers as extreme as their mean allows: 0 or 1. Little noise, so that sampling decides."""
    errors = (np.random.default_rng(2).random((TRIALS, 20)) < mean).astype(float)
    found = estimates_of(errors, NoisySum(0.05, 100), failure)
    misses = sum(e.upper < mean for e in found)

    assert stats.binom.sf(misses - 1, TRIALS, failure) > FALSE_ALARM


@pytest.mark.heavy
def test_bounds_that_forget_the_sampling_or_most_of_the_noise_are_caught():
    failure = 0.1
    errors = (np.random.default_rng(2).random((TRIALS, 20)) < 0.3).astype(float)
    found = estimates_of(errors, NoisySum(0.2, 100), failure)
    misses = sum(e.error + e.half_width < 0.3 for e in found)
    assert stats.binom.sf(misses - 1, TRIALS, failure) < FALSE_ALARM

    still = np.full((TRIALS, 20), 0.3)
    found = estimates_of(still, NoisySum(6.0, 100), failure, read_with=NoisySum(1.5, 100))
    misses = sum(abs(e.error - 0.3) > e.half_width for e in found)
    assert stats.binom.sf(misses - 1, TRIALS, failure / 2) < FALSE_ALARM
