"""Which columns go together: sums by a slow second way, what is made of them, and what they cost."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.gaussian import gaussian_epsilon

from quorate.accounting import epsilon, zcdp
from quorate.data.declared_schema import Schema
from quorate.data.dialect import PLAIN
from quorate.data.feature_maps import LinearMap
from quorate.data.unit_ids import counted_rows
from quorate.direct.before_pool import before_pool, plan_on
from quorate.direct.joint_moments import SHRINKAGES, PairColumns, moment_of, mostly_numbers, pairs_of, sums_over
from quorate.mechanisms.pair_sums import NoisyPairSums
from quorate.run import usable_rows
from quorate.run.schema import Schema as ReadSchema
from quorate.run.usable_rows import PrivateTable, UsableRows
from quorate.types import Secret

DECLARED = Schema({"age": (0, 120), "bmi": (10.0, 60.0), "pulse": (30, 200), "ward": ["n", "s", "w"]})
B = 2**13


def people(n, seed, together=0.9):
    """Rows whose numbers go together; of a pool they do not."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    age, bmi, pulse = (together * common + np.sqrt(1 - together**2) * rng.normal(size=n) for _ in range(3))
    ward = rng.choice(["n", "s", "w"], n, p=[0.6, 0.39, 0.01])  # a value that few rows have is far from the others
    return pl.DataFrame(
        {
            "age": (45 + 15 * age).round().clip(0, 120).astype(int),
            "bmi": (26 + 4 * bmi).clip(10, 60),
            "pulse": (70 + 10 * pulse).round().clip(30, 200).astype(int),
            "ward": ward,
        }
    )


def read_by(pool, declared=DECLARED):
    schema = ReadSchema.of_declared(declared, pool, PLAIN)
    encoded = schema.numbers(schema.pool)
    return schema, PairColumns.of(LinearMap.fit(encoded), encoded, 150)


SCHEMA, COLUMNS = read_by(people(400, 9, together=0.0))


def rows_of(frame, codes=None, schema=SCHEMA):
    n = len(frame)
    return UsableRows(PrivateTable.of(schema, frame), np.zeros(n, dtype=np.int8) if codes is None else codes, None, n)


def integers_of(private):
    """The integers of each row that can be used, by its place."""
    whole = {}
    for at, numbers in private.blocks():
        for place, row in zip(at.tolist(), COLUMNS.integers(numbers).tolist(), strict=True):
            whole[place] = [int(entry) for entry in row]
    return whole


def one_by_one(frame, counted, codes=None):
    """The sums by a loop over rows, each read by itself, in whole numbers of any size."""
    total = [0] * COLUMNS.n_pairs
    for place in np.flatnonzero(counted).tolist():
        own = None if codes is None else codes[place : place + 1]
        for row in integers_of(rows_of(frame[place : place + 1], own)).values():
            pairs = [row[i] * row[j] for i in range(len(row)) for j in range(i + 1, len(row))]
            total = [one + other for one, other in zip(total, pairs, strict=True)]
    return total


def test_sums_are_those_of_a_loop_over_rows_whatever_a_block_is(monkeypatch):
    n, frame, rng = 60, people(60, 1), np.random.default_rng(2)
    codes = np.where(rng.random(n) < 0.1, -1, 0).astype(np.int8)  # no label
    ages = [None if place % 11 == 0 else age for place, age in enumerate(frame["age"])]
    frame, counted = frame.with_columns(age=pl.Series(ages)), rng.random(n) < 0.7
    expected = one_by_one(frame, counted, codes)
    assert max(map(abs, expected)) > B**2
    assert expected != one_by_one(frame, counted)  # a row without a label adds nothing
    for at_once in (1, 7, 1 << 14):
        monkeypatch.setattr(usable_rows, "AT_ONCE", at_once)
        monkeypatch.setattr(usable_rows, "TEXTS_AT_ONCE", at_once)
        assert sums_over(COLUMNS, rows_of(frame, codes), counted).reveal().tolist() == expected
    assert sums_over(COLUMNS, rows_of(frame), np.zeros(n, dtype=bool)).reveal().tolist() == [0] * COLUMNS.n_pairs


def test_one_row_of_each_unit_counts():
    frame = people(48, 3)
    whose = [f"p{place % 16}".encode() for place in range(48)]
    counted = counted_rows(whose, Secret(bytes(32)))
    assert counted.sum() == 16
    total = sums_over(COLUMNS, rows_of(frame), counted).reveal()
    assert total.tolist() == one_by_one(frame, counted)
    other = frame.with_columns(  # rows that do not count are others
        bmi=pl.Series(np.where(counted, frame["bmi"].to_numpy(), 59.0)),
        ward=pl.Series(np.where(counted, frame["ward"], "w")),
    )
    assert (sums_over(COLUMNS, rows_of(other), counted).reveal() == total).all()


def garbled(frame, form, cell):
    """The same rows in a container, with one cell of row 7 in place of another."""
    ages = frame["age"].to_list()
    ages[7] = cell
    if form == "polars":
        return frame.with_columns(age=pl.Series(ages, strict=False))
    table = frame.to_pandas()
    if form == "pandas float" and (cell is None or isinstance(cell, float)):
        table["age"] = pd.Series(ages, dtype=float)
    else:
        table["age"] = pd.Series(ages, dtype=object) if form != "pandas" else pd.Series(ages)
    return table


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("form", ["pandas", "pandas float", "pandas object", "polars"])
@pytest.mark.parametrize("cell", [None, float("nan"), "text", 1e300, -1e300, float("inf"), 0, 10**18, "45"])
def test_one_cell_changes_no_integer_of_another_row(form, cell, monkeypatch):
    frame = people(40, 4)
    if form == "polars" and isinstance(cell, str):
        ages = [str(age) for age in frame["age"]]
        ages[7] = cell
        changed, base = (frame.with_columns(age=pl.Series(each)) for each in (ages, [str(age) for age in frame["age"]]))
    else:
        changed, base = garbled(frame, form, cell), garbled(frame, form, frame["age"][7])
    expected = integers_of(rows_of(base))
    assert len(expected) == 40
    assert expected == integers_of(rows_of(frame))
    for at_once in (1 << 14, 5):
        monkeypatch.setattr(usable_rows, "AT_ONCE", at_once)
        monkeypatch.setattr(usable_rows, "TEXTS_AT_ONCE", at_once)
        found = integers_of(rows_of(changed))
        assert set(expected) - set(found) <= {7}
        assert {place: row for place, row in found.items() if place != 7} == {
            place: row for place, row in expected.items() if place != 7
        }
        assert all(sum(entry**2 for entry in row) <= B**2 for row in found.values())


def test_a_row_that_is_longer_than_half_of_the_pool_is_shortened_to_the_bound():
    frame = people(40, 4).with_columns(ward=pl.lit("w"))
    [(_, numbers)] = rows_of(frame).blocks()
    steps, lengths = COLUMNS._in_steps(numbers)
    assert np.median(lengths) > 2 * COLUMNS.longest
    far = np.flatnonzero(lengths > COLUMNS.longest)
    assert (steps == np.rint(steps)).all()
    rows = integers_of(rows_of(frame))
    assert len(far) > 20
    assert all(0.99 * B**2 < sum(entry**2 for entry in rows[place]) <= B**2 for place in far.tolist())
    assert np.linalg.norm(COLUMNS.integers(SCHEMA.numbers(SCHEMA.pool)), axis=1).min() < 0.98 * B  # not all are


def test_columns_that_do_not_vary_are_not_compared_and_at_most_as_many_as_there_is_noise_for():
    pool = people(300, 5, together=0.0).with_columns(pulse=pl.lit(70))
    schema, columns = read_by(pool)
    encoded = schema.numbers(schema.pool)
    few = PairColumns.of(columns.linear, encoded, 2)
    assert len(few) == 3
    assert few.n_pairs == 3
    own = columns.standardised(columns.linear.images(encoded) * 2.0**-columns.linear.bits)
    assert np.allclose(own.mean(axis=0)[:-1], 0, atol=1e-9)
    assert np.allclose(own.std(axis=0)[:-1], 1)
    assert (own[:, -1] == 1).all()
    variances = (columns.linear.images(encoded)[:, :-1] * 2.0**-columns.linear.bits).var(axis=0)
    assert set(few.places) == set(np.argsort(-variances)[:2])
    assert set(columns.places) == set(np.flatnonzero(variances > 1e-8))
    assert columns.n_pairs == len(columns) * (len(columns) - 1) // 2


def symmetric_noise(p, tau, seed):
    noise = np.triu(np.random.default_rng(seed).normal(size=(p, p)) * tau, 1)
    return noise + noise.T


def correlations(p, seed, factors=3):
    rng = np.random.default_rng(seed)
    loads = rng.normal(size=(p, factors))
    moment = loads @ loads.T + np.eye(p)
    lengths = np.sqrt(np.diag(moment))
    return moment / lengths / lengths[:, None]


@pytest.mark.parametrize("p", [2, 5, 40, 151])
def test_a_second_moment_is_found_again_under_little_noise(p):
    for seed in range(5):
        true = correlations(p, seed)
        floor = np.maximum(np.linalg.eigvalsh(true), 0.3)
        tau = 0.01 / np.sqrt(p)
        found = moment_of(true - np.eye(p) + symmetric_noise(p, tau, seed), tau)
        assert found is not None
        values, vectors = np.linalg.eigh(true)
        bounded = (vectors * np.maximum(values, 0.3)) @ vectors.T
        lengths = np.sqrt(np.diag(bounded))
        off = np.linalg.norm(found - bounded / lengths / lengths[:, None], 2)
        # The edge of the noise is .02; what is below it is joined, and the scaling to ones moves as much again.
        assert off < 0.1 * floor[-1], (p, seed, off)


@pytest.mark.parametrize(("p", "tau"), [(40, 0.2), (150, 0.1), (9, 0.02)])
def test_it_is_nearer_to_the_truth_than_what_was_released_and_than_no_correlations(p, tau):
    for seed in range(5):
        true = correlations(p, seed, factors=2)
        noisy = true - np.eye(p) + symmetric_noise(p, tau, seed)
        off = np.linalg.norm(moment_of(noisy, tau) - true)
        assert off < 0.4 * np.linalg.norm(np.eye(p) - true)
        if tau > 0.05:  # under less noise the least eigenvalue that is believed costs more than noise does
            assert off < 0.8 * np.linalg.norm(noisy + np.eye(p) - true)


@pytest.mark.parametrize(("p", "tau"), [(12, 0.07), (33, 0.04), (60, 0.06), (150, 0.03)])
def test_a_direction_has_what_it_has_in_the_moment_without_noise(p, tau):
    """An independent check: the noisy directions are looked at in the true moment, which falls slowly as that of true
    tables does. Eigenvalues set back to those without noise, the rule before, are the twin that is further off.
    """
    off = {shrinkage: [] for shrinkage in ("expected", "spikes")}
    for seed in range(10):
        turned = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))[0]
        true = (turned / np.arange(1, p + 1)) @ turned.T
        true /= np.sqrt(np.outer(np.diag(true), np.diag(true)))
        noisy = true - np.eye(p) + symmetric_noise(p, tau, seed)
        directions = np.linalg.eigh(noisy)[1]
        for shrinkage, errors in off.items():
            found = moment_of(noisy, tau, shrinkage)
            has, should = (np.einsum("ij,ik,kj->j", directions, of, directions) for of in (found, true))
            errors.append(np.log(has / np.maximum(should, 0.3)) ** 2)
    expected, spikes = (float(np.sqrt(np.mean(errors))) for errors in off.values())
    assert expected < 0.2
    assert expected < 0.6 * spikes


@pytest.mark.parametrize(("p", "tau"), [(9, 0.01), (9, 0.3), (40, 0.05), (150, 0.01)])
def test_of_noise_alone_next_to_nothing_is_made(p, tau):
    """The largest eigenvalue of noise is beyond the edge now and then, by little; then half of it is believed."""
    edge, believed = 2 * tau * np.sqrt(p), 0
    for seed in range(200):
        found = moment_of(symmetric_noise(p, tau, seed), tau)
        if found is not None:
            believed += 1
            assert np.linalg.norm(found - np.eye(p), 2) < 1.2 * edge
    assert believed < 0.25 * 200, believed


@pytest.mark.parametrize("p", [2, 3, 10, 60])
@pytest.mark.parametrize("tau", [1e-6, 0.02, 0.3, 3.0])
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_it_is_a_moment_of_standardised_columns_whatever_was_released(p, tau, shrinkage):
    rng = np.random.default_rng(p)
    for seed in range(30):
        signal = rng.normal(size=(p, 1)) * 10.0 ** rng.uniform(-1, 1.5)  # also what no columns can have
        absurd = (signal @ signal.T) * (1 - np.eye(p)) * rng.choice([-1, 1])
        for true, least in ((absurd, 0.0), (correlations(p, seed) - np.eye(p), 0.15 if tau < 1 else 0.0)):
            found = moment_of(true + symmetric_noise(p, tau, seed), tau, shrinkage)
            if found is None:
                continue
            assert np.allclose(np.diag(found), 1, rtol=1e-12)
            assert np.allclose(found, found.T, atol=1e-12)
            assert np.linalg.eigvalsh(found)[0] > least  # .3, divided by what the diagonal has grown to


def test_a_column_that_is_the_opposite_of_another_is_believed_under_little_noise_alone():
    noisy = -0.9 * np.array([[0.0, 1, 1], [1, 0, -1], [1, -1, 0]])  # eigenvalues .9, .9 and −1.8
    found = moment_of(noisy, 0.01)
    assert found is not None
    assert found[0, 1] < -0.4
    assert moment_of(-0.25 * (np.ones((3, 3)) - np.eye(3)), 0.24) is None  # −.5 alone, under an edge of .83


def sums_for(columns, moment, n_units):
    """The sums that rows of this second moment have, each no longer than the longest."""
    squared = (columns.longest / B) ** 2 * 4.0**-10 / n_units
    return np.rint(moment[np.triu_indices(len(columns), 1)] / squared).astype(np.int64)


def test_recoloured_features_have_the_second_moment_that_the_sums_tell_of():
    pool = people(500, 6, together=0.0).drop("ward")
    schema, columns = read_by(pool, Schema({name: DECLARED.declared[name] for name in ("age", "bmi", "pulse")}))
    encoded = schema.numbers(schema.pool)
    features = columns.linear.images(encoded) * 2.0**-columns.linear.bits
    wanted = np.eye(len(columns))
    wanted[:2, :2] = [[1, 0.6], [0.6, 1]]
    mechanism = NoisyPairSums(len(columns), 100.0, "add-or-remove")
    found = columns.recoloured(features, sums_for(columns, wanted, 10**6), mechanism, 10**6)
    own = columns.standardised(found)
    own[:, -1] = found[:, -1]
    own[:, :-1] = (found[:, columns.places] - columns.means * found[:, -1:]) / columns.spreads
    moment = own.T @ own / len(own)
    assert np.allclose(moment, wanted, atol=2e-3)
    others = np.setdiff1d(np.arange(features.shape[1] - 1), columns.places)
    assert (found[:, others] == features[:, others]).all()
    silent = columns.recoloured(features, np.zeros(columns.n_pairs, dtype=np.int64), mechanism, 10**6)
    assert silent is features


def test_indicators_that_add_up_to_one_another_are_recoloured_into_finite_rows():
    encoded = SCHEMA.numbers(SCHEMA.pool)
    features = COLUMNS.linear.images(encoded) * 2.0**-COLUMNS.linear.bits
    noisy = np.random.default_rng(0).normal(size=COLUMNS.n_pairs) * 1e15
    mechanism = NoisyPairSums(len(COLUMNS), 0.01, "replace")
    found = COLUMNS.recoloured(features, np.rint(noisy).astype(np.int64), mechanism, 400)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found, axis=1).max() < 100


GIVEN = {"n_classes": 3, "delta": 1e-5}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("eps", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_the_whole_costs_what_was_asked_and_sums_are_a_part_of_it(eps, neighbours):
    before = before_pool(DECLARED, "kernels", neighbours=neighbours, n_units=20_000, epsilon=eps, **GIVEN)
    assert before.pairs is not None
    assert before.pairs.event_for(neighbours) in before.event_for(neighbours).events
    assert eps - 1e-6 < epsilon(before.event_for(neighbours), 1e-5) <= eps
    without = replace(before, pairs=None)
    assert epsilon(without.event_for(neighbours), 1e-5) < eps * 0.98
    whole = zcdp(before.event_for(neighbours))
    assert zcdp(before.pairs.event_for(neighbours)) / whole == pytest.approx(before.of_pairs, rel=0.02)
    assert zcdp(before.fixed.event_for(neighbours)) / whole == pytest.approx(before.of_rounds, rel=0.02)
    assert before.share + before.of_pairs + before.of_rounds == pytest.approx(1)
    assert 0.05 <= before.of_pairs <= 0.1


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_the_whole_costs_what_shifts_that_add_up_in_squares_do(neighbours):
    """An independent check: how far one unit moves each released number, by the proofs, in standard deviations of the
    noise that is drawn; all squares together are one shift of a Gaussian, priced in closed form.
    """
    before = before_pool(DECLARED, "kernels", neighbours=neighbours, n_units=20_000, epsilon=1.0, **GIVEN)
    replaced = neighbours == "replace"
    shifts = [np.sqrt(1 + replaced) * B**2 / np.sqrt(2) / before.pairs.sigma]
    for partition in before.marginals.partitions:
        shifts += [np.sqrt(1 + replaced) / before.marginals.sigma(partition)] * max(partition.depth, 1)
    shifts += [(1 + replaced) * 2**before.fixed.k / before.fixed.sigma] * before.fixed.rounds
    whole = gaussian_epsilon(float(np.linalg.norm(shifts)), 1e-5)
    assert whole == pytest.approx(1.0, rel=1e-4)
    assert epsilon(before.event_for(neighbours), 1e-5) == pytest.approx(whole, rel=1e-4)
    without = gaussian_epsilon(float(np.linalg.norm(shifts[1:])), 1e-5)  # a twin that leaves the sums out
    assert without < 0.98


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_a_ledger_that_adds_rho_is_charged_no_more_than_its_own(neighbours):
    how = {"n_units": 20_000, "epsilon": 1.0, **GIVEN}
    before = before_pool(DECLARED, "kernels", neighbours=neighbours, rho=0.02, **how)
    assert before.pairs is not None
    assert 0.02 * (1 - 1e-6) < zcdp(before.event_for(neighbours)) <= 0.02


def test_where_noise_would_hide_everything_nothing_is_reserved():
    how = {"n_classes": 3, "delta": 1e-5, "epsilon": 1.0, "neighbours": "add-or-remove"}
    few, many = (before_pool(DECLARED, "kernels", n_units=n, **how) for n in (60, 20_000))
    assert (few.pairs, few.of_pairs) == (None, 0.0)
    assert epsilon(few.event_for("add-or-remove"), 1e-5) > 1 - 1e-6
    assert many.pairs is not None
    assert before_pool(DECLARED, "linear", n_units=20_000, **how).pairs is None
    assert before_pool(DECLARED, "kernels", n_units=20_000, paired=False, **how).pairs is None
    assert pairs_of(DECLARED, 1e-3, n_classes=3, n_units=1_000, neighbours="replace") == (None, 0.0)


def test_a_rare_class_of_two_a_number_and_columns_of_words_are_not_compared():
    words = Schema({"age": (0, 120), "ward": list("abcdef"), "sex": ["F", "M"]})
    given = {**GIVEN, "n_units": 20_000, "epsilon": 1.0, "neighbours": "add-or-remove"}
    for declared, n_classes, rare in ((DECLARED, 2, 0.19), (DECLARED, 0, None), (words, 3, None), (words, 2, None)):
        how = {**given, "n_classes": n_classes, "rare": rare}
        assert before_pool(declared, "kernels", **how) == before_pool(declared, "kernels", paired=False, **how)
    for rare in (None, 0.2, 0.5):
        assert before_pool(DECLARED, "kernels", **{**given, "n_classes": 2, "rare": rare}).pairs is not None


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("n_classes", "neighbours"), [(2, "add-or-remove"), (0, "replace")])
def test_marginals_of_lists_get_a_tenth_and_those_of_numbers_what_they_need(n_classes, neighbours):
    lists = Schema({"age": (0, 120), "ward": list("abcdef"), "sex": ["F", "M"]})
    given = {"n_classes": n_classes, "delta": 1e-5, "epsilon": 1.0, "neighbours": neighbours}
    for n_units, needed in ((150, 0.3), (20_000, 0.1)):
        how = {**given, "n_units": n_units}
        of_lists, of_numbers = (before_pool(declared, "kernels", **how) for declared in (lists, DECLARED))
        assert of_lists.share == 0.1
        assert of_numbers.share == before_pool(lists, "kernels", listed=False, **how).share == needed
        assert of_numbers == before_pool(DECLARED, "kernels", listed=False, **how)
    wide = Schema({f"x{place}": (0, 120) for place in range(9)} | {"ward": [str(code) for code in range(40)]})
    for n_units, share in ((1_999, 0.1), (2_000, 0.3)):  # of more units nothing was measured
        assert not mostly_numbers(wide)
        how = {**given, "epsilon": 0.2, "n_units": n_units}
        assert before_pool(wide, "kernels", **how).share == share
        assert 1 - 1e-6 < epsilon(of_lists.event_for(neighbours), 1e-5) <= 1.0


@pytest.mark.parametrize(
    ("n_numbers", "n_values", "mostly"), [(2, 3, True), (2, 4, False), (3, 5, True), (3, 6, False), (0, 1, False)]
)
def test_columns_are_mostly_numbers_where_half_of_the_features_are(n_numbers, n_values, mostly):
    """A list has a feature for what is missing, too."""
    columns = {f"x{place}": (0, 1) for place in range(n_numbers)} | {"ward": [str(code) for code in range(n_values)]}
    assert mostly_numbers(Schema(columns)) == mostly


def test_the_share_is_the_least_whose_noise_is_clear():
    shares = [
        pairs_of(DECLARED, 0.2, n_classes=3, n_units=n, neighbours="add-or-remove")[1]
        for n in np.geomspace(10, 10**6, 60).astype(int).tolist()
    ]
    told = [share for share in shares if share]
    assert shares[: len(shares) - len(told)] == [0.0] * (len(shares) - len(told))
    assert told == sorted(told, reverse=True)
    assert (told[0], told[-1]) == (0.1, 0.05)
    assert len(set(told)) > 2


def test_a_pool_in_which_no_column_varies_is_planned_for_without_sums():
    before = before_pool(DECLARED, "kernels", neighbours="replace", n_units=20_000, epsilon=1.0, **GIVEN)
    assert before.pairs is not None
    pool = people(120, 1)[:1][[0] * 120]

    def no_sums(columns):
        raise AssertionError("nothing is asked for")

    plan = plan_on(before, ReadSchema.of_declared(DECLARED, pool, PLAIN), no_sums)
    assert plan.settings.rounds == before.fixed.rounds


def test_what_is_said_of_sums_over_pairs_is_what_is_paid_for():
    how = {"neighbours": "add-or-remove", "n_units": 20_000, "epsilon": 1.0, **GIVEN}
    before, without = (before_pool(DECLARED, "kernels", paired=paired, **how) for paired in (True, False))
    sigma = before.pairs.sigma / B**2  # of a row whose squared length is 1
    assert before.noise_of_pairs == pytest.approx(sigma, rel=1e-12)
    assert before.facts["sums_over_pairs"] == {
        "pairs": before.pairs.n_pairs,
        "noise": before.noise_of_pairs,
        "share": before.of_pairs,
    }
    assert "sums_over_pairs" not in without.facts
    assert f"at most {before.pairs.n_pairs} pairs of columns" in before.released_in_words
    percent = f"{100 * before.of_pairs:.0f}"
    for said in (before.step[1], before.pool_in_words(None)):
        assert f"Noisy sums over pairs of columns take another {percent}" in said.replace("\N{NO-BREAK SPACE}", " ")
    for said in (without.step[1], without.pool_in_words(None), without.released_in_words):
        assert "pairs" not in said


@pytest.mark.parametrize("eps", [0.01, 1e-4, 1e-6])
def test_sums_over_pairs_take_no_budget_away_that_was_enough(eps):
    how = {"neighbours": "add-or-remove", "n_units": 10**6, "epsilon": eps, **GIVEN}
    wide = Schema(dict.fromkeys("abcd", (-4.0, 4.0)))
    before_pool(wide, "kernels", paired=False, **how)
    before_pool(wide, "kernels", **how)
