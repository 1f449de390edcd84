"""Votes for a number: what one unit moves, what is charged, what goes on after a kill, what is refused."""

import pickle
from contextlib import nullcontext
from dataclasses import replace
from math import sqrt

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from tests.gaussian import gaussian_epsilon

import quorate
from quorate import Ledger, PrivateRegressor, PublicPool
from quorate.data.labels import STEPS, TargetRange
from quorate.ensemble import AbstainingVoter, RegressorTeacher, sum_numbers
from quorate.errors import (
    BudgetExhausted,
    DataRefused,
    InvalidParameter,
    LedgerMismatch,
    PreconditionFailed,
    QuorateWarning,
)
from quorate.mechanisms import NoisyMean
from quorate.mechanisms.noisy_mean import TargetCounts
from quorate.noise import SeededNoise
from quorate.release.charge import TARGET_COUNT
from quorate.report import render_html, render_text
from quorate.types import Secret
from quorate.voting import number_flow, numbers
from quorate.voting.numbers import NumberConfig, prepare_numbers

N, POOL = 600, 120
_rng = np.random.default_rng(0)
ROWS = _rng.normal(size=(N + POOL + 300, 3))
TARGETS = 50 + 12 * ROWS[:, 0] + _rng.normal(size=len(ROWS))
X, Y = ROWS[:N], TARGETS[:N]
PUBLIC, HELD = PublicPool(ROWS[N : N + POOL]), slice(N + POOL, None)
G = 2**15
KEY = Secret(bytes(range(32)))


def estimator(**changes):
    given = {"target_range": (0, 100), "epsilon": 8.0, "delta": 1e-5, "n_records": N}
    return PrivateRegressor(**{**given, "method": "votes", "n_jobs": 1, "unsafe_noise_seed": 1, **changes})


def fitted(**changes):
    return estimator(**changes).fit(X, Y, public=PUBLIC)


def task(x=X, y=Y, *, groups=None, **changes):
    given = {"target_range": TargetRange(0.0, 100.0), "epsilon": 4.0, "delta": 1e-5, "n_records": N}
    how = {"public": PUBLIC, "groups": groups, "fingerprint_key": KEY, "noise": SeededNoise(0)}
    return prepare_numbers(NumberConfig(**{**given, **changes}), x, y, **how)


def sums(of):
    return number_flow.sums_of(of, number_flow.shards_of(of), (0, STEPS), lambda *_: None).reveal()[:, 0]


class TestOneUnit:
    IDS = np.arange(N) // 3

    def test_moves_each_sum_by_at_most_the_sensitivity_and_changes_one_teacher(self):
        changed, gone = Y.copy(), Y.copy()
        changed[self.IDS == 5], gone[self.IDS == 5] = 1e300, np.nan
        before = sums(task(groups=self.IDS, n_records=200))
        for y in (changed, gone):
            moved = sums(task(y=y, groups=self.IDS, n_records=200)) - before
            assert np.any(moved)
            assert np.abs(moved).max() <= 2 * G
            assert np.sum(moved**2) <= len(moved) * G**2  # twice a half of the range's half, on each

    def test_leaves_the_votes_of_all_other_teachers_as_they_are(self, monkeypatch):
        votes = []

        def kept(voters, asked, mechanism, **how):
            votes.append([voter.vote(asked) for voter in voters.reveal()])
            return sum_numbers(voters, asked, mechanism, **how)

        monkeypatch.setattr(number_flow, "sum_numbers", kept)
        removed = np.arange(N) != 17  # by ids: the others stay who they are
        ids = np.arange(N).astype(str)
        sums(task(groups=ids))
        sums(task(X[removed], Y[removed], groups=ids[removed]))
        assert sum(not np.array_equal(one, other) for one, other in zip(*votes, strict=True)) == 1

    def test_in_two_shards_is_refused_before_anything_is_fitted(self, monkeypatch):
        def by_row(slots, n_teachers, key, *, partition, fewer):
            return Secret(np.arange(len(slots)) % n_teachers)

        monkeypatch.setattr(number_flow, "partition_rows", by_row)
        monkeypatch.setattr(number_flow, "train_chunk", lambda *_, **__: pytest.fail("fitted"))
        with pytest.raises(PreconditionFailed, match="could change more than one teacher"):
            sums(task(groups=self.IDS, n_records=200))


def failing(how):
    """Return a regressor, of a class that travels to another process whole, that says nothing in one way or another."""

    class Failing(RegressorMixin, BaseEstimator):
        def __init__(self, how="raises"):
            self.how = how

        def fit(self, X, y):
            if self.how == "raises":
                raise RuntimeError(str(y[0]))
            return self

        def predict(self, X):
            n = len(X)
            return {"nan": [float("nan")] * n, "text": ["many"] * n, "shape": [[0.0, 0.0]] * n}[self.how]

    return Failing(how)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("how", ["raises", "nan", "text", "shape"])
def test_a_teacher_without_a_number_is_the_middle_and_says_nothing(how, capfd):
    assert not np.any(sums(task(teacher=failing(how), n_teachers=3)))
    assert capfd.readouterr() == ("", "")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("value", [-1e9, 0.0, 25.0, 50.0, 100.0, 1e300])
def test_a_prediction_is_clipped_to_the_range_and_counted_from_its_middle(value):
    class Fixed(LinearRegression):
        def predict(self, X):
            return np.full(len(X), value)

    voter = RegressorTeacher(Fixed(), TargetRange(0.0, 100.0), G).train(X, np.zeros(N, dtype=np.int64), 0)
    mechanism = NoisyMean(sigma=1.0)
    both = sum_numbers(Secret((voter, AbstainingVoter())), X[:2], mechanism, grid=G).reveal()
    assert both.tolist() == [[round((min(max(value, 0.0), 100.0) - 50) / 50 * G)]] * 2


def test_targets_reach_a_teacher_in_their_own_unit():
    places = TargetRange(-40.0, 60.0).steps_of([10.0, -40.0, 60.0])
    seen = []

    class Noting(LinearRegression):
        def fit(self, X, y):
            seen.extend(y.tolist())
            return super().fit(X, y)

    RegressorTeacher(Noting(), TargetRange(-40.0, 60.0), G).train(X[:3], places, 0)
    assert seen == pytest.approx([10.0, -40.0, 60.0])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("epsilon", [0.3, 8.0])
def test_the_charge_is_the_price_by_another_road(epsilon):
    """50 sums, a vector that moves by twice a half of √50; and two counts, of which a unit moves two by 1 each."""
    ledger = Ledger(budget=quorate.Budget(epsilon, 1e-5))
    model = fitted(epsilon=epsilon, ledger=ledger, queries=50)
    counts = model._kept.task.counts
    assert (counts is None) == (epsilon == 0.3)  # of 600 units noise hides the counts
    of_counts = 0.0 if counts is None else 2 * 2 / counts.sigma**2
    by_hand = gaussian_epsilon(sqrt(50 * (2 * 0.5) ** 2 / model.mechanism_.sigma**2 + of_counts), 1e-5)
    assert by_hand <= ledger.spent.epsilon <= epsilon
    assert by_hand > 0.999 * epsilon
    assert model.guarantee_.epsilon == ledger.spent.epsilon
    assert model.guarantee_.neighbours == "add, remove or replace one record"


@pytest.mark.heavy
def test_where_the_number_of_units_is_read_the_guarantee_is_for_replacing_one():
    assert fitted(n_records=None).guarantee_.neighbours == "replace one record"


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("teacher", [None, Ridge()], ids=["default", "Ridge"])
def test_what_is_learned_predicts(teacher):
    model = fitted(teacher=teacher, epsilon=60.0)
    predicted = model.predict(ROWS[HELD])
    assert model.method_ == "votes"
    assert model.score(ROWS[HELD], TARGETS[HELD]) > 0.6
    assert (predicted.min(), predicted.max()) >= (0, 0)
    assert predicted.max() <= 100
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(ROWS[HELD]), predicted)  # noqa: S301


def test_without_noise_to_speak_of_the_student_undoes_what_tiny_teachers_leave_out():
    of = replace(task(), mechanism=NoisyMean(2.0**-5))
    means = of.mechanism.means(sums(of), of.n_teachers)
    weights = number_flow.student_weights(of, means, np.ones(len(means), dtype=bool))
    predicted = number_flow.model_of(of, weights).predict(ROWS[HELD])
    slope = np.polyfit(TARGETS[HELD], predicted, 1)[0]
    assert 0.8 < slope < 1.2


class TestWhereTargetsLie:
    def test_a_unit_counts_once_by_the_row_that_its_identity_chooses(self):
        ids = np.arange(N) // 3
        targets, gone, twice = Y.copy(), Y.copy(), Y.copy()
        gone[ids == 5], twice[ids == 5] = np.nan, [0.0, 50.0, 100.0]
        before, without, other = (
            number_flow.targets_in_cells(task(y=y, groups=ids, n_records=200, epsilon=20.0), 0, STEPS).reveal()
            for y in (targets, gone, twice)
        )
        assert before.sum() == 200 == other.sum()
        assert np.abs(before - without).tolist().count(1) == np.abs(before - without).sum() == 1
        assert np.sum((before - other) ** 2) in (0, 2)  # as the price says

    def test_a_range_that_is_far_too_wide_is_found_out(self, monkeypatch):
        wide = {"target_range": (0, 20_000), "epsilon": 40.0}
        model = fitted(**wide)
        part = model._kept.result.part
        assert part.high < 1_000
        assert model.score(ROWS[HELD], TARGETS[HELD]) > 0.4
        assert f"cut off at {part.low:,.6g} and {part.high:,.6g}" in " ".join(model.facts().setup.recipe)
        monkeypatch.setattr(numbers, "cells_for", lambda *_: 0)
        assert fitted(**wide).score(ROWS[HELD], TARGETS[HELD]) < 0.2

    def test_a_teacher_learns_whole_targets_and_predicts_within_the_part(self):
        places = TargetRange(0.0, 100.0).steps_of([10.0, 60.0, 90.0])
        teacher = RegressorTeacher(Ridge(), TargetRange(0.0, 100.0), G, voted=TargetRange(40.0, 80.0))
        voter = teacher.train(np.array([[1.0], [6.0], [9.0]]), places, 0)
        assert voter.estimator.predict([[20.0]])[0] > 150
        assert voter.vote(np.array([[20.0], [-20.0]])).tolist() == [2 * G, 0]

    @pytest.mark.default_cases(1)
    @pytest.mark.parametrize("dies", ["before the means", "in a count", "after a count"])
    def test_after_a_kill_no_count_is_drawn_again(self, dies, tmp_path, monkeypatch):
        path, drawn = tmp_path / "ledger.db", []
        real = TargetCounts.release_many

        def counted(self, counts, noise):
            drawn.append(len(counts))
            noisy = real(self, counts, noise)
            if dies == "in a count" and len(drawn) == 1:
                raise KeyboardInterrupt
            return noisy

        monkeypatch.setattr(TargetCounts, "release_many", counted)
        with monkeypatch.context() as patch:
            if dies != "in a count":
                name = "train_chunk" if dies == "before the means" else "narrowed_part"
                patch.setattr(number_flow, name, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                fitted(ledger=path)
        told = pytest.warns(QuorateWarning, match="drawn-and-lost: 1 count of targets")
        with told if dies == "in a count" else nullcontext():
            model = estimator(ledger=path).resume(X, Y, public=PUBLIC)
        assert drawn == [1, 1]
        counts, labels = model.facts().spending.parts
        assert (counts.asked, counts.interrupted) == (2, int(dies == "in a count"))
        assert labels.answered == 120
        with Ledger(path) as ledger:
            ledger.verify(prices=True)
            assert len(ledger.reservations()) == 1

    @pytest.mark.default_cases(1)
    @pytest.mark.parametrize("counted", [False, True])
    def test_a_fit_that_was_begun_with_a_sum_for_each_query_or_without_counts_goes_on_so(
        self, counted, tmp_path, monkeypatch
    ):
        calibrated = numbers.NumberRelease.calibrated

        def as_before(budget, n_units, *, at_once=False):
            return calibrated(budget, n_units, at_once=False)

        with monkeypatch.context() as before:
            before.setattr(numbers.NumberRelease, "calibrated", as_before)
            if not counted:
                before.setattr(numbers, "cells_for", lambda *_: 0)
            first = fitted(ledger=tmp_path / "ledger.db")
        again = fitted(ledger=tmp_path / "ledger.db")
        assert type(again.mechanism_) is NoisyMean
        assert np.array_equal(first.predict(X), again.predict(X))
        with Ledger(tmp_path / "ledger.db") as ledger:
            [reservation] = ledger.reservations()
            assert dict(reservation.purposes) == {"label": 120, **({TARGET_COUNT: 2} if counted else {})}


class TestGoingOn:
    def test_a_pool_whose_columns_are_read_otherwise_is_another_fit(self):
        """Its students would be fitted to the means of teachers that saw other numbers."""
        ledger, rows = Ledger(budget=quorate.Budget(8.0, 1e-5)), pl.DataFrame(ROWS, schema=["a", "b", "c"])
        rows = rows.with_columns(pl.Series("d", np.arange(len(ROWS)) % 4).cast(pl.String))
        keys = set()
        for numeric in ((), ("d",)):
            of = PublicPool(rows[N : N + POOL], numeric=numeric)
            asked = estimator(ledger=ledger, n_teachers=50)._task(rows[:N], Y, public=of, groups=None)
            keys.add(asked.charge_on(ledger).key)
        assert len(keys) == 2

    @pytest.mark.heavy
    def test_the_same_fit_on_the_same_ledger_is_charged_once_and_gives_the_same_model(self, tmp_path):
        path = tmp_path / "ledger.db"
        first, again = fitted(ledger=path), fitted(ledger=path)
        assert np.array_equal(first.predict(X), again.predict(X))
        assert np.array_equal(first.predict(X), estimator(ledger=path).resume(X, Y, public=PUBLIC).predict(X))
        with Ledger(path) as ledger:
            assert len(ledger.reservations()) == 1

    def test_what_was_drawn_when_the_process_was_killed_is_not_drawn_again(self, tmp_path, monkeypatch):
        """All of a teacher's numbers are one vector, so one block: half of it could be of teachers trained anew."""
        path, drawn = tmp_path / "ledger.db", []
        real = NoisyMean.release_many

        def dying(self, counts, noise):
            drawn.append(len(counts))
            real(self, counts, noise)
            raise KeyboardInterrupt

        monkeypatch.setattr(NoisyMean, "release_many", dying)
        with pytest.raises(KeyboardInterrupt):
            fitted(ledger=path)
        with pytest.raises(PreconditionFailed, match="what it cost is lost"):
            estimator(ledger=path).resume(X, Y, public=PUBLIC)
        assert drawn == [120]
        with Ledger(path) as ledger:
            assert len(ledger.reservations()) == 1

    @pytest.mark.heavy
    def test_a_fit_that_was_never_charged_is_not_resumed_and_other_data_are_refused(self, tmp_path):
        fitted(ledger=tmp_path / "ledger.db")
        with pytest.raises(PreconditionFailed, match="no fit of these settings"):
            estimator(ledger=tmp_path / "ledger.db", queries=7).resume(X, Y, public=PUBLIC)
        with pytest.raises(LedgerMismatch):
            estimator(ledger=tmp_path / "ledger.db").fit(X[1:], Y[1:], public=PUBLIC)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"method": "vote"}, "^method must be one of"),
        ({"method": "direct", "teacher": Ridge()}, "^teacher is for votes"),
        ({"rounds": 9}, "^rounds is for the direct method"),
        ({"method": "auto", "teacher": Ridge(), "clip": 1.0}, "^clip is for the direct method"),
        ({"teacher": LogisticRegression()}, "^teacher must predict a number"),
        ({"teacher": Ridge().fit(X, Y)}, "Ridge is already fitted"),
        ({"teacher": Ridge}, "must be an instance"),
        ({"teacher": "ridge"}, "must have fit and predict"),
        ({"n_teachers": 0}, "^n_teachers must be"),
        ({"n_teachers": N + 1}, "^n_teachers must be at most 600"),
        ({"queries": POOL + 1}, "^queries=121 but the pool has 120"),
        ({"queries": "few"}, "^queries must be"),
        ({"target_range": None}, "^target_range is required"),
        ({"n_jobs": 0}, "^n_jobs must be"),
    ],
)
def test_what_does_not_go_is_refused_in_one_line_and_nothing_is_charged(changes, refusal, monkeypatch):
    monkeypatch.setattr(Ledger, "reserve", lambda *_, **__: pytest.fail("charged"))
    with pytest.raises(InvalidParameter, match=refusal) as refused:
        fitted(**changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"public": None}, InvalidParameter),
        ({"public": PublicPool(ROWS[:3])}, DataRefused),
        ({"public": PUBLIC, "schema": {"x0": [0, 1]}}, InvalidParameter),
        ({"public": PUBLIC, "groups": np.arange(3)}, DataRefused),
    ],
)
def test_tables_that_do_not_go_are_refused_in_one_line(given, error):
    with pytest.raises(error) as refused:
        estimator().fit(X, Y, **given)
    assert "\n" not in str(refused.value)


def test_a_budget_that_is_too_small_is_refused_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr(number_flow, "train_chunk", lambda *_, **__: pytest.fail("fitted"))
    with pytest.raises(BudgetExhausted):
        fitted(ledger=Ledger(budget=quorate.Budget(1.0, 1e-5)))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("spoil", [lambda y: y[::-1] * 0, lambda y: y * np.nan])
def test_no_private_cell_decides_on_a_refusal(spoil):
    estimator().fit(X, spoil(Y), public=PUBLIC)


@pytest.mark.heavy
@pytest.mark.parametrize("n_units", [0, 1, 20])
def test_fewer_units_than_teachers_are_not_told_of(n_units):
    model = estimator().fit(X[:n_units], Y[:n_units], public=PUBLIC)
    assert model.n_teachers_ == fitted().n_teachers_ > 20


def test_a_check_says_what_a_fit_would_do_and_a_report_what_it_did():
    checked = quorate.check(estimator(), X, Y, public=PUBLIC)
    assert checked.found["method"] == "votes"
    assert "changes exactly one teacher" in " ".join(str(checked).split())
    model = fitted()
    facts = model.facts(evaluation=(ROWS[HELD], TARGETS[HELD]))
    assert facts.from_json(facts.to_json()) == facts
    text, page = render_text(facts), render_html(facts)
    assert "120 answered" in text
    assert "NoisyMean" in text
    assert "a number from 0 to 100" in page


@pytest.mark.heavy
def test_a_fit_by_the_other_method_leaves_nothing_of_the_first():
    model = fitted()
    model.set_params(method="auto").fit(X, Y, public=PUBLIC)
    assert model.method_ == "direct"
    assert hasattr(model, "plan_")
    assert not hasattr(model, "n_teachers_")
