"""Private records among rows said to be public: what is found, what honest tables are never accused of."""

import pickle
from itertools import product
from math import comb, exp, log

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from quorate.data import PrivateRecords, is_same_table, load_adult, load_mushroom, overlap
from quorate.data.column_kinds import column_kinds
from quorate.data.overlap import FALSE_ALARM, _log_tail_of_overlap


def holds(private, public):
    return PrivateRecords(private[0]).are_in(public[0])


def measured(n, seed, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)).round(6)
    return X, (X[:, 0] > 0).astype(np.int64)


def counted(n, seed, values=5, columns=3):
    """Few distinct records: ``values ** columns``, and as many labels follow from them."""
    X = np.random.default_rng(seed).integers(0, values, size=(n, columns))
    return X, (X[:, 0] > values // 2).astype(np.int64)


def joined(*tables):
    return np.concatenate([X for X, _ in tables]), np.concatenate([y for _, y in tables])


def part(table, rows):
    X, y = table
    return X[rows], y[rows]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("ours", "others"), [*product([20, 1000], [0, 30, 1100, 30_000]), (5, 0), (10, 0), (19, 0)])
def test_private_rows_are_found_among_any_number_of_others_and_a_handful_alone(ours, others):
    private = measured(3000, 1)
    assert holds(private, joined(part(private, slice(0, ours)), measured(others, 2)))


@pytest.mark.parametrize(("values", "columns"), [(5, 3), (2, 5), (3, 4)])
def test_a_private_table_of_few_distinct_records_is_found_whatever_row_it_lost(values, columns):
    private = counted(3000, 3, values, columns)
    for missing in (1, 5, 30):
        assert holds(private, part(private, slice(0, -missing)))
    assert holds(private, joined(part(private, slice(0, -30)), counted(30, 4, values, columns)))


def _frame(X):
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": [f"town {value:.3f}" for value in X[:, 2]]})


DISGUISES = {
    "columns in another order": lambda X: X[:, ::-1].copy(),
    "another type of number": lambda X: X.astype(np.float32),
    "both": lambda X: X[:, [1, 0, 2]].astype(np.float32),
    "another container": lambda X: sparse.csr_array(X),
    "rows in another order, some lacking": lambda X: X[np.random.default_rng(0).permutation(len(X))[:250]],
}
FRAMED = {
    "columns in another order": lambda t: t.select("town", "b", "a"),
    "pandas with an index of its own": lambda t: t.to_pandas().set_index(np.arange(len(t)) + 7)[["b", "town", "a"]],
    "categories": lambda t: t.with_columns(pl.col("town").cast(pl.Categorical)),
    "blanks and another form of Unicode": lambda t: t.with_columns(pl.col("town") + "  "),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("disguise", DISGUISES)
def test_private_rows_in_a_disguise_are_found(disguise):
    X, _ = measured(300, 5)
    whole = np.round(X * 1e6)  # exact in either type of number
    for private in (X, whole):
        assert PrivateRecords(private).are_in(DISGUISES[disguise](private))
    assert PrivateRecords(whole[:, :2].astype(np.int64)).are_in(whole[:, :2].astype(np.float64))


REPEATED = {
    "five times": lambda X: np.concatenate([X] * 5),
    "a part of them ten times": lambda X: np.concatenate([X[:60]] * 10),
    "each another number of times": lambda X: np.repeat(X, np.arange(len(X)) % 7 + 1, axis=0),
    "among others": lambda X: np.concatenate([*[X] * 4, measured(200, 6, X.shape[1])[0]]),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("disguise", REPEATED)
def test_private_rows_that_were_repeated_are_found_on_either_side(disguise, monkeypatch, tmp_path):
    """Else whoever wrote them three times would have the score of the private rows."""
    X = measured(300, 5)[0]
    with monkeypatch.context() as patch:  # in a file, and compared in parts
        patch.setattr(overlap, "ORDERED_AT_ONCE", 9)
        in_parts = PrivateRecords(iter(np.array_split(X, 4)), folder=tmp_path, most=0)
        assert in_parts.are_in(REPEATED[disguise](X))
        assert not in_parts.are_in(REPEATED[disguise](measured(300, 7)[0]))
    assert PrivateRecords(X).are_in(REPEATED[disguise](X))
    assert is_same_table(X, REPEATED[disguise](X))
    assert PrivateRecords(np.concatenate([X] * 3)).are_in(X)
    assert not PrivateRecords(X).are_in(REPEATED[disguise](measured(300, 7)[0]))


def test_a_table_of_few_distinct_rows_repeated_is_not_accused():
    for seed in range(20):
        ours, theirs = counted(400, seed)[0], counted(150, seed + 100)[0]
        assert not PrivateRecords(theirs).are_in(np.concatenate([ours] * 5))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("disguise", FRAMED)
def test_private_rows_of_a_frame_in_a_disguise_are_found(disguise):
    table = _frame(measured(300, 5)[0])
    assert PrivateRecords(table).are_in(FRAMED[disguise](table))
    assert not PrivateRecords(table).are_in(FRAMED[disguise](_frame(measured(300, 6)[0])))


def test_a_column_that_nothing_is_learned_from_is_no_disguise():
    """Else whoever wrote new ids would have the score of private rows."""
    table = _frame(measured(300, 5)[0]).with_columns(pl.Series("id", [f"P{i:05d}" for i in range(300)]))
    kinds = column_kinds(table)
    assert kinds.kinds["id"] == "dropped"
    assert PrivateRecords(table, kinds).are_in(table.with_columns(pl.Series("id", [f"Q{i:05d}" for i in range(300)])))


@pytest.mark.heavy
def test_adult_with_a_thousand_private_rows_among_the_published_test_rows_is_found():
    adult = load_adult()
    records = PrivateRecords(adult.train)
    assert not records.are_in(adult.test)
    assert records.are_in(pl.concat([adult.test, adult.train[:1000]]))


# Each pair is refused with probability 2e-6 at most; some 1,000 of them together with less than 2e-3, and the seeds
# are fixed.


@pytest.mark.heavy
@pytest.mark.parametrize(("values", "columns"), [(2, 1), (2, 5), (2, 10), (3, 6), (5, 3), (2, 14)])
@pytest.mark.parametrize(("n", "m"), [(3000, 3000), (3000, 300), (300, 3000), (40, 40), (3, 3)])
def test_honest_samples_of_one_population_pass(values, columns, n, m):
    for seed in range(25):
        assert not holds(counted(n, 2 * seed, values, columns), counted(m, 2 * seed + 1, values, columns))


def skewed(seed):
    return np.minimum(np.random.default_rng(seed).zipf(1.5, size=(2000, 1)), 10_000).astype(float), None


def common_and_rare(seed):
    """Half of the rows are one of few, of which the other table has rows alone."""
    return joined(counted(1000, 3 * seed, 2, 5), measured(1000, 3 * seed + 1, 5)), counted(1000, 3 * seed + 2, 2, 5)


HONEST = {
    "measurements": lambda seed: (measured(400, 2 * seed), measured(300, 2 * seed + 1)),
    # Binary rows have few sets of cells: any two tables share nearly all of them.
    "sets of cells": lambda seed: (counted(500, 2 * seed, 2, 40), counted(500, 2 * seed + 1, 2, 40)),
    "other populations": common_and_rare,
    "skewed records": lambda seed: (skewed(2 * seed), skewed(2 * seed + 1)),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("kind", HONEST)
def test_honest_samples_of_other_kinds_pass_in_both_directions(kind):
    for seed in range(10):
        ours, theirs = HONEST[kind](seed)
        assert not holds(ours, theirs)
        assert not holds(theirs, ours)


@pytest.mark.heavy
def test_two_parts_of_mushroom_pass_and_its_few_valued_columns_too():
    mushroom = load_mushroom()
    y = (mushroom.labels == "poisonous").astype(np.int64)
    for columns in (mushroom.X.columns, ["odor", "habitat"], mushroom.X.columns[:8]):
        X = mushroom.X.select(columns)
        order = np.random.default_rng(7).permutation(len(y))
        for cut in (1000, 4062):
            assert not holds((X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]]))


def exact_tail(shared, totals):
    """P(Σ min(e, t − e) ≥ shared) by going through every outcome of every record."""
    records = [t for t, k in totals.items() for _ in range(k)]
    return sum(
        np.prod([comb(t, e) / 2**t for t, e in zip(records, outcome, strict=True)])
        for outcome in product(*(range(t + 1) for t in records))
        if sum(min(e, t - e) for t, e in zip(records, outcome, strict=True)) >= shared
    )


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("totals", [{2: 6}, {1: 2, 2: 3, 3: 2}, {4: 2, 5: 2}, {9: 1, 2: 2}, {1: 4}])
def test_the_bound_is_never_below_the_exact_probability_of_any_split(totals):
    most = sum((t // 2) * k for t, k in totals.items())
    for shared in range(1, most + 1):
        assert exp(_log_tail_of_overlap(shared, totals)) >= exact_tail(shared, totals) * (1 - 1e-9)


def test_the_bound_is_exact_where_everything_is_shared_evenly():
    assert _log_tail_of_overlap(20, {2: 20}) == pytest.approx(-20 * log(2), rel=1e-6)
    assert _log_tail_of_overlap(20, {2: 20}) < log(FALSE_ALARM)
    assert _log_tail_of_overlap(19, {2: 19}) > log(FALSE_ALARM)


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.7])
def test_any_other_chance_than_a_half_shares_less(chance):
    """Stochastically: of every t, so that the bound at one half holds for tables of whatever populations."""
    for t in range(2, 30):
        split = {p: [comb(t, e) * p**e * (1 - p) ** (t - e) for e in range(t + 1)] for p in (chance, 0.5)}
        for least in range(1, t // 2 + 1):
            tails = {p: sum(split[p][e] for e in range(least, t - least + 1)) for p in split}
            assert tails[chance] <= tails[0.5] + 1e-12


def test_what_is_kept_shows_and_gives_away_nothing():
    records = PrivateRecords(measured(50, 1)[0])
    assert repr(records) == "PrivateRecords(…)"
    with pytest.raises(Exception, match="does not travel"):
        pickle.dumps(records)
