"""A number as the target of noisy rounds: what one cell says, what one unit adds, what all of it costs."""

import pickle
import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import floor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from tests.direct.conftest import RoundsThatCount
from tests.gaussian import gaussian_epsilon

import quorate
from quorate import Ledger, PrivateRegressor, PublicPool
from quorate.audit import rounds as audited
from quorate.data.labels import STEPS, TargetRange
from quorate.direct import contributions, descend
from quorate.direct.contributions import Grid, lengths_of, of_groups, of_records, slopes
from quorate.direct.rounds import Descent, narrowed
from quorate.errors import DataRefused, InvalidParameter, LedgerMismatch, PreconditionFailed, SeededNoiseRefused
from quorate.run.cells import lists_of

POOL, PRIVATE = 100, 800
ROWS = np.random.default_rng(0).normal(size=(POOL + PRIVATE + 300, 3))
TARGETS = 50 + 12 * ROWS[:, 0] + np.random.default_rng(1).normal(size=len(ROWS))
PART, HELD = slice(POOL, POOL + PRIVATE), slice(POOL + PRIVATE, None)
RANGE = TargetRange(0.0, 100.0)
GRID = Grid(bits=12, clip=0.3, k=30, link="range")


def estimator(**changes):
    given = {"target_range": (0, 100), "epsilon": 1.0, "delta": 1e-5, "n_records": PRIVATE, "feature_map": "linear"}
    return PrivateRegressor(**{**given, "unsafe_noise_seed": 1, **changes})


def fitted(X=None, y=None, *, groups=None, **changes):
    X, y = ROWS[PART] if X is None else X, TARGETS[PART] if y is None else y
    return estimator(**changes).fit(X, y, public=PublicPool(ROWS[:POOL]), groups=groups)


class TestACell:
    def test_says_a_place_in_the_range_by_exact_arithmetic(self):
        draw = random.Random(3)
        for _ in range(300):
            low = draw.choice([0.0, -1.0, 1e-9, -7.25e6, draw.uniform(-1e3, 1e3)])
            held = TargetRange.of((low, low + draw.choice([1.0, 3.0, 1e4, draw.uniform(0.5, 900)])))
            value = draw.uniform(held.low - held.width, held.high + held.width)
            exact = (Fraction(value) - Fraction(held.low)) / Fraction(held.width) * STEPS
            [steps] = held.steps_of([value]).tolist()
            assert abs(steps - min(max(exact, 0), STEPS)) <= Fraction(1, 2) + Fraction(1, 10**6)

    @pytest.mark.parametrize(
        "cell",
        [None, float("nan"), np.inf, -np.inf, "", "many", pd.NA, pd.NaT, 10**400, 1 + 2j, [5.0], object(), b"\xff"],
    )
    def test_that_is_no_finite_number_says_nothing(self, cell):
        assert RANGE.steps_of([cell]).tolist() == [-1]

    @pytest.mark.parametrize("cell", [25, 25.0, "25", " 25.0 ", Decimal(25), Fraction(25), np.float32(25), np.int8(25)])
    def test_says_the_same_in_every_type(self, cell):
        assert RANGE.steps_of([cell]).tolist() == [STEPS // 4]

    def test_beyond_the_range_is_the_nearer_end(self):
        assert RANGE.steps_of([-5, 1e308, "-1e308"]).tolist() == [0, STEPS, 0]

    def test_decides_nothing_about_the_other_cells_of_any_container(self):
        draw = random.Random(5)
        odd = [None, "x", float("nan"), float("inf"), 1e300, 2**63, True]
        containers = [
            list,
            tuple,
            lambda cells: np.array(cells, dtype=object),
            lambda cells: pd.Series(cells),
            lambda cells: pd.Series(cells, dtype=object),
            lambda cells: pl.Series(cells, dtype=pl.Object),
        ]
        for _ in range(60):
            cells = [draw.choice([draw.uniform(-20, 120), draw.randint(0, 100)]) for _ in range(9)]
            clean = RANGE.steps_of(cells)
            place = draw.randrange(9)
            cells[place] = draw.choice(odd)
            for container in containers:
                steps = np.concatenate([RANGE.steps_of(part) for part in lists_of(container(cells))])
                assert (np.delete(steps, place) == np.delete(clean, place)).all()


@pytest.mark.parametrize(
    "given", [None, 5, (1,), (1, 2, 3), (2, 1), (0, 0), (0, np.inf), (np.nan, 1), ("0", "9"), (-1e308, 1e308), "09"]
)
def test_a_range_that_is_none_is_refused_in_one_line(given):
    with pytest.raises(InvalidParameter, match=r"^target_range[^\n]*$"):
        fitted(target_range=given)


class TestAUnit:
    """What it adds."""

    rng = np.random.default_rng(2)
    z = np.rint(rng.normal(size=(120, 6)) * 2.0**11)
    codes = rng.integers(0, STEPS + 1, 120)

    @pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
    def test_is_its_residual_times_its_coordinates_clipped(self, scale):
        weights = scale * np.random.default_rng(4).normal(size=(6, 1))
        z = self.z * 2.0**-GRID.bits
        score = (z @ weights)[:, 0]
        place = np.array([min(max(0.5 + value / 4, 0.0), 1.0) for value in score])
        residual = self.codes / STEPS - place
        assert np.allclose(slopes(self.z, self.codes, weights, GRID)[:, 0], residual, atol=1e-5)
        gradient = z * residual[:, None]
        gradient *= np.minimum(1, GRID.clip / np.maximum(np.linalg.norm(gradient, axis=1), 1e-300))[:, None]
        released = of_records(self.z, lengths_of(self.z), self.codes, weights, GRID)[:, 0] * GRID.step
        assert np.allclose(released, gradient.sum(axis=0), atol=1e-3)

    def test_is_the_same_alone_and_never_longer_than_the_clip(self):
        for scale in (0.0, 1.0, 1e3):
            weights = scale * np.random.default_rng(4).normal(size=(6, 1))
            alone = [
                of_records(self.z[[at]], lengths_of(self.z[[at]]), self.codes[[at]], weights, GRID)
                for at in range(len(self.z))
            ]
            assert (sum(alone) == of_records(self.z, lengths_of(self.z), self.codes, weights, GRID)).all()
            assert max(sum(int(value) ** 2 for value in each.ravel()) for each in alone) <= 4**GRID.k
            starts = np.arange(0, 121, 4)
            groups = [
                of_groups(self.z[at : at + 4], self.codes[at : at + 4], np.array([0, 4]), weights, GRID)
                for at in range(0, 120, 4)
            ]
            assert (sum(groups) == of_groups(self.z, self.codes, starts, weights, GRID)).all()
            assert max(sum(int(value) ** 2 for value in each.ravel()) for each in groups) <= 4**GRID.k

    def test_counts_as_the_shares_of_its_rows_in_each_cell(self):
        grid = Grid(bits=12, clip=0.3, k=30, link="range", low=9_000, high=31_001, cells=6)
        starts = np.array([0, 1, 4, 11, 50, 120])
        alone = []
        for first, end in pairwise(starts.tolist()):
            shares = [Fraction(0)] * 6
            for code in self.codes[first:end].tolist():
                place = Fraction(code - grid.low, grid.high - grid.low) * 6
                shares[min(max(floor(place), 0), 5)] += Fraction(1, end - first)
            alone.append([floor(share * 2**30) for share in shares])
            assert sum(value**2 for value in alone[-1]) <= 4**30
        together = of_groups(self.z, self.codes, starts, np.ones((6, 1)), grid)
        assert together[:, 0].tolist() == [sum(column) for column in zip(*alone, strict=True)]
        records = of_records(self.z, lengths_of(self.z), self.codes, np.ones((6, 1)), grid)
        assert (records == of_groups(self.z, self.codes, np.arange(121), np.ones((6, 1)), grid)).all()
        assert records.sum() == 120 * 2**30

    @pytest.mark.heavy
    @pytest.mark.filterwarnings("error")
    def test_without_a_target_adds_nothing_and_no_word_says_so(self):
        X, y = ROWS[PART], TARGETS[PART].tolist()
        without = fitted(np.delete(X, 7, axis=0), y[:7] + y[8:])
        for cell in (None, "much", np.inf):
            with_it = fitted(X, [*y[:7], cell, *y[8:]])
            assert (with_it.coef_ == without.coef_).all()
        assert (fitted(X, [*y[:7], 1e9, *y[8:]]).coef_ == fitted(X, [*y[:7], 100, *y[8:]]).coef_).all()
        assert (fitted(X, [*y[:7], 1e9, *y[8:]]).coef_ != without.coef_).any()


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_price_of_both_relations_follows_from_noise_clip_and_rounds(epsilon):
    model = fitted(epsilon=epsilon)
    plan = model.plan_
    moved = plan.settings.clip / plan.noise * np.sqrt(plan.settings.rounds)  # by adding one unit
    assert model.guarantee_.epsilon == pytest.approx(gaussian_epsilon(moved, 1e-5), rel=1e-4)
    assert model.guarantee_.epsilon <= epsilon
    [other] = model.guarantee_.also
    assert other.epsilon == pytest.approx(gaussian_epsilon(2 * moved, 1e-5), rel=1e-4)
    assert other.epsilon >= gaussian_epsilon(2 * moved, 1e-5)


class TestTheAudit(RoundsThatCount):
    rows = ROWS[:80]
    asked = {"n_classes": 0, "rounds": 16}  # noqa: RUF012

    def test_catches_rounds_without_noise(self, monkeypatch):
        monkeypatch.setattr(descend, "discrete_gaussian", lambda sigma, shape, source: np.zeros(shape, dtype=np.int64))
        assert self.violated()

    @pytest.mark.heavy
    def test_catches_residuals_that_are_not_clipped(self, monkeypatch):
        def unclipped(z, lengths, codes, weights, grid):
            scaled = contributions.slopes(z, codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
            return np.asarray(z.T @ np.trunc(scaled)).astype(np.int64)

        monkeypatch.setattr(audited, "of_records", unclipped)
        assert self.violated()


class TestThePart:
    """Where targets lie, by noisy counts."""

    def test_holds_the_share_that_it_is_chosen_for_however_noisy_counts_are(self):
        # 90 % with a standard deviation of .02; by noisy shares as they are of .07, the twin that is caught here.
        draw, n_units, cells = np.random.default_rng(7), 2_600, 64
        places = draw.gamma(2.0, 0.1, n_units).clip(0, 1)
        exact = np.bincount((places * cells).astype(int).clip(0, cells - 1), minlength=cells)
        held = {False: [], True: []}
        widths = {False: [], True: []}
        for _ in range(200):
            noisy = np.rint((exact + draw.normal(0, 48, cells)) * 2.0**20).astype(np.int64)
            for nearest, shares in held.items():
                grid = narrowed(Grid(12, 0.3, 20, "range", cells=cells), noisy, n_units, last=True, nearest=nearest)
                inside = (places * STEPS >= grid.low) & (places * STEPS <= grid.high)
                shares.append(float(inside.mean()))
                widths[nearest].append((grid.high - grid.low) / STEPS)
        assert np.quantile(held[True], 0.05) > 0.9
        assert np.mean(widths[True]) < 0.7
        assert np.quantile(held[False], 0.05) < 0.82


class TestTheEstimator:
    def test_learns_and_predicts_within_the_range(self):
        model = fitted(epsilon=2.0)
        assert model.score(ROWS[HELD], TARGETS[HELD]) > 0.7
        far = model.predict(np.array([[1e6, 0, 0], [-1e6, 0, 0]]))
        assert (far >= 0).all()
        assert (far <= 100).all()
        again = model.set_params(target_range=(0, 1)).predict(ROWS[HELD])  # of a next fit
        assert again.max() > 1

    @pytest.mark.heavy
    @pytest.mark.parametrize("wide", [(0, 40_000), (-20_000, 100)])
    def test_learns_where_the_range_is_many_times_wider_than_the_targets(self, wide):
        model = fitted(epsilon=4.0, target_range=wide)
        assert model.plan_.settings.counting
        assert model.score(ROWS[HELD], TARGETS[HELD]) > 0.6
        assert fitted(epsilon=4.0, target_range=wide, rounds=15).score(ROWS[HELD], TARGETS[HELD]) < 0  # nothing counts

    def test_a_counting_round_that_was_lost_looks_at_no_part(self):
        plan = fitted(epsilon=4.0).plan_
        lost = Descent(plan.settings, plan.grid, plan.n_units, plan.start)
        one = np.zeros_like(plan.start, dtype=np.int64)
        one[1] = PRIVATE << plan.grid.k
        lost.replay([None, one])
        assert (lost.grid.low, lost.grid.high, lost.grid.cells) == (STEPS // 4, STEPS // 2, 0)
        lost.replay([None, one])
        assert lost.n_rounds == 1

    @pytest.mark.heavy
    def test_an_offset_and_a_unit_of_the_target_change_nothing_but_the_unit(self):
        shifted = fitted(y=(TARGETS[PART] - 30) * 8, target_range=(-240, 560))
        assert np.allclose(shifted.predict(ROWS[HELD]), (fitted().predict(ROWS[HELD]) - 30) * 8, atol=0.05)

    @pytest.mark.default_cases(1)
    @pytest.mark.parametrize(
        "how", [{"groups": np.arange(PRIVATE) // 4, "n_records": PRIVATE // 4}, {"n_records": None}]
    )
    def test_persons_and_a_number_that_was_read(self, how):
        model = fitted(epsilon=4.0, **how)
        assert model.guarantee_.unit == ("person" if "groups" in how else "record")
        assert bool(model.guarantee_.also) == ("groups" in how)
        assert model.score(ROWS[HELD], TARGETS[HELD]) > 0.3

    @pytest.mark.heavy
    def test_a_schema_stands_in_for_public_rows_and_rows_of_length_one_for_both(self):
        frame = pl.DataFrame({name: ROWS[:, place] for place, name in enumerate("abc")})
        drawn = estimator(epsilon=4.0).fit(frame[PART], TARGETS[PART], schema=dict.fromkeys("abc", (-6.0, 6.0)))
        assert drawn.calibrate(frame[HELD], TARGETS[HELD]).coverage_promise().n_rows == 300
        assert drawn.score(frame[HELD], TARGETS[HELD]) > 0.6
        bare = estimator(epsilon=4.0).fit(ROWS[PART], TARGETS[PART])
        assert bare.score(ROWS[HELD], TARGETS[HELD]) > 0.6

    def test_intervals_hold_the_target_as_promised_and_private_rows_make_none(self, capsys):
        model, targets = fitted(epsilon=2.0), TARGETS.copy()
        with pytest.raises(
            PreconditionFailed, match=r"First call calibrate\(X, y\)\. Without such rows, fit with calibration_share="
        ):
            model.predict_interval(ROWS[HELD])
        rows, held = ROWS[HELD], targets[HELD]
        held[:3] = [1e9, 101, -5]  # beyond the range, as some of those that intervals are for may be
        model.calibrate(rows[:99], held[:99])
        off = np.sort(np.abs(held[:99] - model.predict(rows[:99])))[90 - 1]
        low, high = model.predict_interval(rows, coverage=0.9).T
        np.testing.assert_allclose(low, model.predict(rows) - off, atol=1e-6)
        np.testing.assert_allclose(high, model.predict(rows) + off, atol=1e-6)
        assert np.mean((low <= held) & (held <= high)) > model.coverage_promise().least - 0.05
        beyond = np.where(np.arange(len(held)) % 3 == 0, 150.0, held)  # a third of the targets
        low, high = model.calibrate(rows[:99], beyond[:99]).predict_interval(rows, coverage=0.9).T
        assert np.mean((low <= beyond) & (beyond <= high)) > model.coverage_promise().least - 0.05
        with pytest.raises(InvalidParameter, match=r"coverage=0.999 needs 999 rows .* calibrate with 999 labelled"):
            model.predict_interval(rows, coverage=0.999)
        for wrong in ([*held[:9], np.nan], held[:9]):
            with pytest.raises(DataRefused, match=r"row 9 holds no finite number|got 9 for 10 rows; give one target"):
                model.calibrate(rows[:10], wrong)
        model.calibrate(ROWS[PART], TARGETS[PART])
        assert "calibration holds private rows" in capsys.readouterr().err
        assert model.coverage_promise().n_rows == 99
        with pytest.raises(PreconditionFailed, match="a copy of a fitted PrivateRegressor takes no calibration rows"):
            pickle.loads(pickle.dumps(model)).calibrate(rows, held)  # noqa: S301 - our own

    def test_check_says_what_the_fit_does_and_charges_nothing(self):
        seen = quorate.check(estimator(), ROWS[PART], TARGETS[PART], public=PublicPool(ROWS[:POOL]))
        assert seen.found["target_range"] == [0.0, 100.0]
        assert "classes" not in seen.found
        assert seen.found["rounds"] == fitted().plan_.settings.rounds
        assert "a number from 0 to 100" in str(seen)
        assert "Compare target_range= with y before it" in " ".join(str(seen).split())

    @pytest.mark.heavy
    def test_the_same_fit_costs_nothing_again_and_another_range_is_another_fit(self, tmp_path):
        path = tmp_path / "ledger.db"
        how = {"ledger": path, "unsafe_noise_seed": None}
        first, public = fitted(**how), PublicPool(ROWS[:POOL])
        assert (fitted(**how).coef_ == first.coef_).all()
        assert (estimator(**how).resume(ROWS[PART], TARGETS[PART], public=public).coef_ == first.coef_).all()
        with pytest.raises(PreconditionFailed):
            estimator(**how, target_range=(0, 101)).resume(ROWS[PART], TARGETS[PART], public=public)
        with pytest.raises(LedgerMismatch):
            estimator(**how).resume(ROWS[PART], TARGETS[PART] + 1, public=public)
        with Ledger(path) as ledger:
            assert len(ledger.reservations()) == 1

    @pytest.mark.heavy
    def test_a_copy_predicts_and_the_file_opens_without_trust(self, tmp_path):
        import skops.io

        model = fitted(unsafe_noise_seed=None)
        assert (pickle.loads(pickle.dumps(model)).predict(ROWS[HELD]) == model.predict(ROWS[HELD])).all()  # noqa: S301
        opened = skops.io.load(model.export(tmp_path / "model.skops"))
        assert np.allclose(np.clip(opened.predict(ROWS[HELD]), 0, 100), model.predict(ROWS[HELD]))
        assert not hasattr(clone(model), "model_")
        with pytest.raises(SeededNoiseRefused):
            fitted().export(tmp_path / "seeded.skops")
