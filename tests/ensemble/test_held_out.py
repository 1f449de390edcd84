"""Held-out rows: what one changed unit can do to teachers' errors and to a model's outcomes, by brute force."""

import sys

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from quorate.ensemble import (
    ClassifierTeacher,
    ConstantVoter,
    Ensemble,
    count_votes,
    hash_shards,
    held_out_in_shards,
    held_out_rows,
    teacher_errors,
    unit_outcomes,
)
from quorate.ensemble.held_out import on_grid
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

KEY = Secret(bytes(range(32)))
K, GRID = 5, 100
RNG = np.random.default_rng(4)
UNITS = np.repeat(np.arange(60), RNG.integers(1, 4, 60))  # one to three rows a unit
X = RNG.normal(size=(len(UNITS), 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=len(UNITS)) > 0).astype(np.int64)
SLOTS = [b"%d" % unit for unit in UNITS]
ALONE = [b"%d" % row for row in range(len(X))]  # each row by itself
TEACHER = ClassifierTeacher(LogisticRegression())


def errors_of(X=X, y=Y, unit_keys=SLOTS, teacher=TEACHER, grid=GRID, **options):
    shards = hash_shards(unit_keys, K, KEY)
    given = {"n_teachers": K, "n_classes": 2, "key": KEY, "grid": grid, **options}
    return teacher_errors(teacher, X, y, unit_keys, shards, **given).reveal()


class TestSplit:
    def test_all_rows_of_a_unit_are_on_one_side_and_no_other_unit_matters(self):
        held = held_out_rows(SLOTS, 0.4, KEY).reveal()
        side = dict(zip(SLOTS, held.tolist(), strict=True))

        assert [side[slot] for slot in SLOTS] == held.tolist()
        for subset in (SLOTS[::3], SLOTS[::-1], [*SLOTS, b"new"]):
            again = held_out_rows(subset, 0.4, KEY).reveal()
            assert all(side.get(slot, h) == h for slot, h in zip(subset, again.tolist(), strict=True))

    @pytest.mark.default_cases(1)
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_each_unit_is_held_out_with_the_stated_probability(self, share):
        n = 40_000
        held = held_out_rows([b"%d" % i for i in range(n)], share, KEY).reveal().mean()

        assert abs(held - share) < 5 * np.sqrt(share * (1 - share) / n)  # false alarm 6e-7

    def test_it_has_nothing_to_do_with_the_partition_or_with_another_key(self):
        unit_keys = [b"%d" % i for i in range(4_000)]
        held = held_out_rows(unit_keys, 0.5, KEY).reveal()
        other = held_out_rows(unit_keys, 0.5, Secret(bytes(32))).reveal()

        assert abs(np.mean(held == other) - 0.5) < 0.05
        assert abs(held[hash_shards(unit_keys, 2, KEY).reveal() == 0].mean() - 0.5) < 0.06

    def test_a_shard_holds_out_its_share_of_units_and_at_least_one_of_two(self):
        shards = hash_shards(SLOTS, 20, KEY)
        held = held_out_in_shards(SLOTS, shards, 0.3, KEY).reveal()
        for shard in range(20):
            mine = shards.reveal() == shard
            units = len(set(UNITS[mine]))
            assert len(set(UNITS[mine & held])) == (0 if units < 2 else min(max(round(0.3 * units), 1), units - 1))
            assert not set(UNITS[mine & held]) & set(UNITS[mine & ~held])

    def test_a_shard_does_not_see_who_is_in_another_shard(self):
        shards = hash_shards(SLOTS, K, KEY).reveal()
        held = held_out_in_shards(SLOTS, Secret(shards), 0.3, KEY).reveal()
        gone = shards != 2
        again = held_out_in_shards(
            [slot for slot, here in zip(SLOTS, gone, strict=True) if here], Secret(shards[gone]), 0.3, KEY
        ).reveal()

        np.testing.assert_array_equal(held[gone], again)

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize("share", [0, 1, -0.2, 2, float("nan"), True, "0.3", None])
    def test_a_share_lies_between_0_and_1(self, share):
        with pytest.raises(InvalidParameter, match=r"^share must be "):
            held_out_rows(SLOTS, share, KEY)
        with pytest.raises(InvalidParameter, match=r"^share must be "):
            held_out_in_shards(SLOTS, hash_shards(SLOTS, K, KEY), share, KEY)


class TestTeacherErrors:
    @pytest.mark.heavy
    def test_are_what_training_by_hand_gives(self):
        shards = hash_shards(SLOTS, K, KEY).reveal()
        held = held_out_in_shards(SLOTS, Secret(shards), 0.3, KEY).reveal()
        expected = []
        for shard in range(K):
            mine, exam = (shards == shard) & ~held, (shards == shard) & held
            wrong = LogisticRegression().fit(X[mine], Y[mine]).predict(X[exam]) != Y[exam]
            by_unit = [wrong[UNITS[exam] == unit].mean() for unit in set(UNITS[exam])]
            expected.append(int(np.rint(GRID * np.mean(by_unit))))

        errors = errors_of()
        assert errors.tolist() == expected
        assert errors_of(n_jobs=2).tolist() == expected
        assert errors_of(pd.DataFrame(X, columns=list("abc"))).tolist() == expected

    @pytest.mark.heavy
    def test_one_changed_unit_changes_one_of_them_within_0_and_the_grid(self):
        """Brute force: remove, replace, and add units, one at a time."""
        before, moved = errors_of(), []
        for unit in (0, 33):
            mine = unit == UNITS
            replaced = X.copy()
            replaced[mine] = 100 * RNG.normal(size=(mine.sum(), 3))
            for X_, y_, unit_keys in (
                (X[~mine], Y[~mine], [s for s, gone in zip(SLOTS, mine, strict=True) if not gone]),
                (replaced, np.where(mine, 1 - Y, Y), SLOTS),
                (
                    np.vstack([X, 50 + np.zeros((30, 3))]),
                    np.concatenate([Y, np.zeros(30, np.int64)]),
                    [*SLOTS, *[b"new%d" % unit] * 30],
                ),
            ):
                after = errors_of(X_, y_, unit_keys)
                assert (after != before).sum() <= 1
                assert after.min() >= 0
                assert after.max() <= GRID
                moved.append(int(np.abs(after - before).sum()))
        assert 0 < max(moved) <= GRID

    @pytest.mark.heavy
    def test_a_teacher_that_fails_or_abstains_or_cannot_hold_out_counts_as_always_wrong(self):
        assert errors_of(teacher=Fails()).tolist() == [GRID] * K
        assert errors_of(teacher=Votes(-1)).tolist() == [GRID] * K
        few = list(range(K))
        lonely = [b"lonely%d" % unit for unit in few]
        errors = errors_of(X[:K], Y[:K], lonely)
        shards = hash_shards(lonely, K, KEY).reveal()
        for shard in range(K):
            if (shards == shard).sum() < 2:
                assert errors[shard] == GRID

    @pytest.mark.heavy
    def test_a_perfect_teacher_errs_nowhere_and_a_unit_with_many_rows_weighs_one(self):
        assert errors_of(y=np.ones_like(Y), teacher=Votes(1)).tolist() == [0] * K
        unit_keys, y = [b"%d" % i for i in range(40)], np.zeros(40, np.int64)
        busy = next(s for s, held in zip(unit_keys, self.held(unit_keys), strict=True) if held)
        n_rows = 500  # all of them wrong
        many = [*unit_keys, *[busy] * n_rows]
        y_many = np.concatenate([y, np.ones(n_rows, np.int64)])
        errors = errors_of(np.zeros((len(many), 1)), y_many, many, teacher=Votes(0))
        n_held = self.held(unit_keys)[
            hash_shards(unit_keys, K, KEY).reveal() == hash_shards([busy] * K + unit_keys, K, KEY).reveal()[0]
        ].sum()

        assert errors.max() == int(np.rint(GRID * (n_rows / (n_rows + 1)) / n_held))
        assert (errors > 0).sum() == 1

    @staticmethod
    def held(unit_keys):
        return held_out_in_shards(unit_keys, hash_shards(unit_keys, K, KEY), 0.3, KEY).reveal()

    def test_bad_input_is_refused_before_anything_is_trained(self):
        with pytest.raises(InvalidParameter, match=r"^grid must be "):
            errors_of(grid=0)
        with pytest.raises(DataRefused, match="differ in number"):
            errors_of(y=Y[:-1])
        with pytest.raises(DataRefused, match="outside the 2 classes"):
            errors_of(y=Y + 1)
        with pytest.raises(InvalidParameter, match="teacher must have train"):
            errors_of(teacher=LogisticRegression())


class TestCheatingTwins:
    """Statistics that look alike and are not: each moves by more than the grid with one unit."""

    def test_mistakes_of_an_unreleased_ensemble_move_by_every_row(self):
        """K = 2k + 1 teachers, k against k: the last one alone decides every private row."""
        rows = np.zeros((300, 1))

        def mistakes(last):
            voters = (*[ConstantVoter(0)] * 4, *[ConstantVoter(1)] * 4, ConstantVoter(last))
            plurality = count_votes(Ensemble(Secret(voters), 2), rows).reveal().argmax(axis=1)
            return int((plurality != 0).sum())

        assert mistakes(1) - mistakes(0) == 300  # claimed: 1

    @pytest.mark.heavy
    def test_rows_counted_instead_of_units_move_by_the_rows_of_a_person(self):
        model, y = (
            DummyClassifier(strategy="constant", constant=0).fit([[0.0], [1.0]], [0, 1]),
            np.repeat([0, 1], [20, 50]),
        )
        unit_keys = [*[b"%d" % i for i in range(20)], *[b"busy"] * 50]
        by_row = [(model.predict(np.zeros((n, 1))) != y[:n]).sum() for n in (20, 70)]
        by_unit = [
            unit_outcomes(model, np.zeros((n, 1)), y[:n], unit_keys[:n], classes=[0, 1], grid=10).reveal()
            for n in (20, 70)
        ]
        assert by_row[1] - by_row[0] == 50  # in units of a whole contribution; claimed: 1
        assert np.abs(by_unit[1] - by_unit[0]).sum() == 10  # in steps of a tenth

    def test_an_error_that_is_not_clipped_moves_by_more_than_the_grid(self):
        """A log loss instead of an error: one teacher's contribution has no bound."""
        confident = LogisticRegression(C=1e6, max_iter=10_000).fit([[0.0], [1.0]], [0, 1])
        loss = -confident.predict_log_proba([[1.5]])[0, 0]
        assert loss > 10  # in units of a whole contribution; an error is at most 1

    @pytest.mark.heavy
    def test_a_model_that_looks_at_the_whole_batch_would_carry_one_unit_to_all_others(self):
        batch = np.zeros((12, 1))
        moved = batch.copy()
        moved[0] = 1_000
        y = np.zeros(12, np.int64)
        unit_keys = [b"%d" % i for i in range(12)]

        in_one_call = [(AboveMean().predict(rows) != y).sum() for rows in (batch, moved)]
        one_by_one = [
            unit_outcomes(AboveMean(), rows, y, unit_keys, classes=[0, 1]).reveal() for rows in (batch, moved)
        ]
        assert abs(in_one_call[1] - in_one_call[0]) > 10
        assert np.abs(one_by_one[1] - one_by_one[0]).sum() <= 2


class TestUnitOutcomes:
    @pytest.mark.heavy
    def test_are_what_predicting_by_hand_gives(self):
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[:60], np.array(["no", "yes"])[Y[:60]])
        predicted = (model.predict(X) == "yes").astype(int)
        table = unit_outcomes(model, X, Y, ALONE, classes=["no", "yes"]).reveal()

        expected = [((c == Y) & ((predicted == Y) == right)).sum() for c in (0, 1) for right in (True, False)]
        assert table.tolist() == expected
        both = unit_outcomes(model, X, Y, ALONE, classes=["no", "yes"], by_class=False, n_jobs=2).reveal()
        assert both.tolist() == [expected[0] + expected[2], expected[1] + expected[3]]

    @pytest.mark.heavy
    def test_each_unit_adds_exactly_the_grid_split_by_its_rows(self):
        model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[:60], Y[:60])
        table = unit_outcomes(model, X, Y, SLOTS, classes=[0, 1], grid=1000).reveal()
        right = model.predict(X) == Y
        shares = np.zeros(4)
        for unit in range(60):
            for row in np.flatnonzero(unit == UNITS):
                shares[2 * Y[row] + (not right[row])] += 1 / (unit == UNITS).sum()

        assert table.sum() == 60 * 1000
        np.testing.assert_allclose(table / 1000, shares, atol=60 / 1000)

    @pytest.mark.heavy
    @pytest.mark.parametrize("grid", [10, 1000])
    def test_one_changed_unit_moves_no_more_than_two_grids(self, grid):
        model = LogisticRegression().fit(X, Y)
        before = unit_outcomes(model, X, Y, SLOTS, classes=[0, 1], grid=grid).reveal()
        for unit in (0, 31):
            mine = unit == UNITS
            kept = [s for s, gone in zip(SLOTS, mine, strict=True) if not gone]
            removed = unit_outcomes(model, X[~mine], Y[~mine], kept, classes=[0, 1], grid=grid).reveal()
            swapped = unit_outcomes(model, X, np.where(mine, 1 - Y, Y), SLOTS, classes=[0, 1], grid=grid).reveal()
            assert np.abs(before - removed).sum() == grid
            assert (before - removed).min() >= 0
            assert np.abs(before - swapped).sum() <= 2 * grid
            assert (before - swapped).clip(0).sum() <= grid

    def test_a_row_on_which_the_model_fails_dies_or_prints_is_one_mistake_and_silent(self, capfd):
        rows = np.zeros((5, 1))
        rows[:3, 0] = [1, 2, 3]
        unit_keys = [b"%d" % i for i in range(5)]
        table = unit_outcomes(Breaks(), rows, np.zeros(5, np.int64), unit_keys, classes=[0, 1]).reveal()

        assert table.tolist() == [3, 2, 0, 0]  # raised, killed; printed is no mistake
        out = capfd.readouterr()
        assert "private" not in out.out + out.err

    def test_bad_input(self):
        with pytest.raises(DataRefused, match="a unit has several rows"):
            unit_outcomes(AboveMean(), X, Y, SLOTS, classes=[0, 1])
        with pytest.raises(DataRefused, match="differ in number"):
            unit_outcomes(AboveMean(), X, Y[:-1], ALONE, classes=[0, 1])
        with pytest.raises(DataRefused, match="must be class codes"):
            unit_outcomes(AboveMean(), X, Y + 1, ALONE, classes=[0, 1])
        with pytest.raises(DataRefused, match="must be class codes"):
            unit_outcomes(AboveMean(), X, Y * 1.0, ALONE, classes=[0, 1])
        with pytest.raises(InvalidParameter, match=r"predict\(X\)"):
            unit_outcomes(object(), X, Y, ALONE, classes=[0, 1])
        with pytest.raises(InvalidParameter, match="outside the declared classes"):
            unit_outcomes(LogisticRegression().fit(X, Y), X, Y, ALONE, classes=["no", "yes"])
        with pytest.raises(InvalidParameter, match=r"^grid must be "):
            unit_outcomes(AboveMean(), X, Y, ALONE, classes=[0, 1], grid=1.5)
        with pytest.raises(PreconditionFailed, match="cannot be sent"):
            unit_outcomes(DoesNotTravel(), X, Y, ALONE, classes=[0, 1])


@pytest.mark.heavy
@given(parts=st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any), grid=st.integers(1, 50))
def test_rounding_keeps_the_sum_and_every_share_to_within_a_step(parts, grid):
    steps = on_grid(np.array(parts), grid, len(parts))
    off = steps - grid * np.array(parts) / sum(parts)

    assert steps.sum() == grid
    assert steps.min() >= 0
    assert np.abs(off).max() < 1
    assert all(step == 0 for step, part in zip(steps, parts, strict=True) if part == 0)


@given(
    parts=st.integers(1, 4).flatmap(lambda c: st.lists(st.integers(0, 9), min_size=2 * c, max_size=2 * c)).filter(any),
    grid=st.integers(1, 50),
)
def test_the_right_cells_together_are_off_by_at_most_half_a_step_a_class(parts, grid):
    """What a printed half width counts with."""
    off = on_grid(np.array(parts), grid, len(parts)) - grid * np.array(parts) / sum(parts)

    assert abs(off[::2].sum()) <= len(parts) / 4 + 1e-9


class Votes:
    keeps_no_global_state = True

    def __init__(self, code):
        self.code = code

    def train(self, X, y, seed):
        return ConstantVoter(self.code)


class Fails:
    def train(self, X, y, seed):
        raise RuntimeError("a private reason")


class AboveMean:
    def predict(self, X):
        return (X[:, 0] < X.mean()).astype(int)


class Breaks:
    def predict(self, X):
        if X[0, 0] == 1:
            raise ValueError("private")
        if X[0, 0] == 2:
            import os

            os.abort()
        if X[0, 0] == 3:
            print("private")
        return np.zeros(len(X), dtype=int)


class DoesNotTravel(AboveMean):
    def __reduce__(self):
        raise TypeError("no")
