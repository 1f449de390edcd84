"""Rows that memory does not hold: the same integers whatever holds the rows, and wherever a block ends."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.used_rows import used

from quorate import PrivateLogisticRegression, PublicPool
from quorate.data import database
from quorate.data import spool as data_spool
from quorate.data.database import DatabaseQuery
from quorate.data.formats import columnar, delimited_text
from quorate.data.reading import read_cells
from quorate.direct import spool
from quorate.direct.config import DirectConfig
from quorate.direct.contributions import Grid, group_contribution, lengths_of, of_records, slopes
from quorate.direct.prepare import prepare_direct
from quorate.direct.spool import DenseUnits
from quorate.errors import PreconditionFailed
from quorate.noise import SeededNoise
from quorate.run import usable_rows
from quorate.run.resources import Threads
from quorate.run.schema import Schema
from quorate.run.usable_rows import places_of
from quorate.types import Secret

N, LONG = 1_800, 1_100  # rows; one person has more of them than are summed at once


def table(n, seed):
    rng = np.random.default_rng(seed)
    age = pl.Series("age", rng.integers(18, 95, n)).cast(pl.Float64)
    return pl.DataFrame({"age": age, "bmi": rng.normal(26, 4, n), "ward": rng.choice(["n", "s", "w"], n)})


@pytest.fixture(scope="module")
def people():
    """Private rows; some cannot be used, some are nobody's, and the rows of a person lie apart."""
    rng, rows = np.random.default_rng(7), table(N, seed=1)
    whose = np.array([f"p{each}" for each in rng.integers(0, 150, N)], dtype=object)
    whose[rng.permutation(N)[:LONG]] = "everywhere"
    whose[::97] = None
    ill = np.where(rows["age"].to_numpy() > rng.normal(55, 20, N), "yes", "no").astype(object)
    ill[::41] = "unknown"
    age = rows["age"].to_numpy().copy()
    age[::31] = np.inf
    ages = [None if at % 43 == 0 else each for at, each in enumerate(age.tolist())]
    strings = {"ill": ill.tolist(), "person": whose.tolist()}
    return rows.with_columns(pl.Series("age", ages), *(pl.Series(name, each) for name, each in strings.items()))


CONFIG = DirectConfig(classes=["no", "yes"], epsilon=1.0, delta=1e-5, rounds=2, n_records=400, feature_map="linear")
KEYED = {"fingerprint_key": Secret(bytes(32)), "noise": SeededNoise(0)}


def task_of(people, X, *, grouped, y=None, unit=None):
    pool = table(200, seed=2)
    public = PublicPool(pool.to_pandas() if isinstance(X, pd.DataFrame) else pool)
    groups = (people["person"] if unit is None else unit) if grouped else None
    return prepare_direct(CONFIG, X, people["ill"] if y is None else y, public=public, groups=groups, **KEYED)


def task_read(people, source, **how):
    read = read_cells(source, label="ill", unit="person", n_features=3, memory=0, **how)
    assert type(read.X).__name__ == "PartedFrame"
    return task_of(people, read.X, grouped=True, y=read.y, unit=read.unit)


SPARSE = sparse.random(900, 40, density=0.2, format="csr", random_state=0)
SPARSE.data[::17] = np.inf  # rows that cannot be used


def sparse_task(*, grouped):
    rng = np.random.default_rng(4)
    labels, whose = rng.choice(["no", "yes", "unknown"], 900), rng.integers(0, 60, 900)
    whose[:500] = 7  # more rows than are summed together
    return prepare_direct(CONFIG, SPARSE, labels, public=None, groups=whose if grouped else None, **KEYED)


def summed(task, folder=None):
    units = task.units(folder=folder).reveal()
    weights = np.random.default_rng(3).normal(size=task.plan.start.shape)
    with np.errstate(all="ignore"):
        return np.asarray(units.summing(task.plan.grid)(weights))


def one_by_one(task):
    (rows, codes), plan = used(task), task.plan
    private = task.private.reveal()
    weights = np.random.default_rng(3).normal(size=plan.start.shape)
    z = plan.coordinates(rows)
    if private.units is None:
        return of_records(z, lengths_of(z), codes, weights, plan.grid)
    slope = np.rint(slopes(z, codes, weights, plan.grid) * 2.0**16)
    whose = private.units[np.concatenate([places for places, _ in private.blocks()])]
    return sum(group_contribution(z[whose == each], slope[whose == each], plan.grid) for each in np.unique(whose))


@pytest.mark.heavy
@pytest.mark.parametrize("grouped", [False, True])
def test_blocks_and_the_spool_change_no_integer_of_a_round(people, grouped, monkeypatch, tmp_path):
    whole = task_of(people, people.drop("ill", "person"), grouped=grouped)
    expected = one_by_one(whole)
    assert (summed(whole) == expected).all()
    assert np.abs(expected).max() > 2**20
    for cells, held, threads in ((1_777, 0, "2"), (130, 0, "1"), (13_000, 10**9, "2")):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", threads)
        monkeypatch.setattr(usable_rows, "CELLS", cells)
        monkeypatch.setattr(usable_rows, "SORTED_AT_ONCE", cells)
        monkeypatch.setattr(spool, "NUMBERS", cells)
        monkeypatch.setattr(data_spool, "IN_MEMORY", held)
        task = task_of(people, people.drop("ill", "person"), grouped=grouped)
        assert task.fingerprint == whole.fingerprint
        assert (summed(task, tmp_path) == expected).all(), (cells, held)
    assert list(tmp_path.iterdir()) == []


def test_a_row_far_behind_is_written_at_its_place(tmp_path):
    made = data_spool.Spool(1, tmp_path, most=0)
    rows, places = np.arange(48, dtype=np.int32).reshape(3, 16), np.array([0, 1, 40_000_000], dtype=np.int32)
    made.write_rows(rows, 8, places)  # beyond 2³¹ bytes
    made.write_rows(rows[:0], 8, places[:0])
    assert made.size == 8 + 40_000_001 * 64
    for row, place in zip(rows, places.tolist(), strict=True):
        assert (made.read(8 + place * 64, (16,), np.int32) == row).all()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_threads_change_no_integer_of_a_round(n_outputs, monkeypatch):
    monkeypatch.setattr(spool, "NUMBERS", 50)
    rng, grid = np.random.default_rng(0), Grid(bits=18, clip=1.0, k=28)
    z, codes = np.rint(rng.normal(size=(200, 5)) * 2**18), rng.integers(0, n_outputs, 200)
    weights = rng.normal(size=(5, n_outputs))
    sums = []
    for n in (1, 3):
        units = DenseUnits.of(5, 200, None, Threads(n), None, None)
        units.put(z, codes, np.arange(200))
        sums.append(units.summing(grid)(weights))
    assert (sums[0] == of_records(z, lengths_of(z), codes, weights, grid)).all()
    assert (sums[1] == sums[0]).all()
    assert np.abs(sums[0]).max() > 2**18


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
def test_places_of_rows_are_those_of_a_sort_of_all(at_once, monkeypatch):
    monkeypatch.setattr(usable_rows, "SORTED_AT_ONCE", at_once)
    rng = np.random.default_rng(at_once)
    for n, n_units in ((0, 1), (1, 1), (60, 9), (60, 200), (300, 3)):
        codes, units = rng.integers(-1, 2, n), rng.integers(0, n_units, n)
        kept = np.flatnonzero(codes >= 0)
        kept = kept[np.argsort(units[kept], kind="stable")]
        starts, places = places_of(codes, units)
        assert places[kept].tolist() == list(range(len(kept)))
        assert (places[codes < 0] == -1).all()
        assert starts.tolist() == [*np.flatnonzero(np.diff(units[kept], prepend=-1)), len(kept)]
        starts, places = places_of(codes, None)
        assert starts is None
        assert places[codes >= 0].tolist() == list(range(len(kept)))


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.arrow", "database", "pandas", "rows"])
def test_what_holds_the_rows_changes_no_integer(people, name, monkeypatch, tmp_path):
    expected = task_of(people, people.drop("ill", "person"), grouped=True)
    monkeypatch.setattr(columnar, "_CELLS", 5_000)
    monkeypatch.setattr(delimited_text, "AT_ONCE", 30_000)
    monkeypatch.setattr(usable_rows, "CELLS", 3_000)
    if "." in name:
        write = {"t.parquet": people.write_parquet, "t.csv": people.write_csv, "t.arrow": people.write_ipc}[name]
        write(tmp_path / name)
        found = task_read(people, tmp_path / name)
    elif name == "database":
        with closing(sqlite3.connect(tmp_path / "t.db")) as made, made:
            made.execute("create table t (age, bmi, ward, ill, person)")
            made.executemany("insert into t values (?, ?, ?, ?, ?)", people.rows())
        monkeypatch.setattr(database, "_AT_ONCE", 500)
        monkeypatch.setattr(data_spool, "IN_MEMORY", 0)
        query = DatabaseQuery("sqlite:///t.db", "select * from t order by rowid", "[data] private", tmp_path)
        found = task_read(people, query, folder=lambda: tmp_path)
    elif name == "pandas":
        frame = people.drop("ill", "person").to_pandas()
        found = task_of(people, frame, grouped=True, y=people["ill"].to_pandas(), unit=people["person"].to_pandas())
    else:
        found = task_of(people, people.drop("ill", "person"), grouped=True, unit=people["person"].to_list())
    assert found.fingerprint == expected.fingerprint
    assert (summed(found) == summed(expected)).all()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("grouped", [True, False])
def test_sparse_rows_are_read_by_slices_and_spooled_and_no_integer_changes(grouped, monkeypatch, tmp_path):
    whole = sparse_task(grouped=grouped)
    expected = one_by_one(whole)
    assert np.abs(expected).max() > 2**20
    assert whole.private.reveal().table.X is SPARSE, "a copy of all rows"
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    for rows in (1, 64, 1_000):
        monkeypatch.setattr(usable_rows, "AT_ONCE", max(rows, 10))
        monkeypatch.setattr(spool, "ROWS_TOGETHER", rows)
        monkeypatch.setattr(spool, "AT_ONCE", rows)
        monkeypatch.setattr(data_spool, "IN_MEMORY", 0)
        assert (summed(sparse_task(grouped=grouped), tmp_path) == expected).all(), rows
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_texts_are_spooled_as_words(monkeypatch):
    rng = np.random.default_rng(0)
    words = np.array([f"word{each}" for each in range(300)])

    def texts(n):
        return pl.DataFrame({"note": [" ".join(rng.choice(words, 12)) for _ in range(n)]})

    X, pool = texts(400), texts(150)
    y = ["yes" if "word7 " in f"{note} " else "no" for note in X["note"]]

    def weights():
        how = {"classes": ["no", "yes"], "epsilon": 2.0, "delta": 1e-5, "n_records": 400, "rounds": 3}
        fitted = PrivateLogisticRegression(**how, text="note", unsafe_noise_seed=1)
        return np.asarray(fitted.fit(X, y, public=PublicPool(pool)).coef_)

    expected = weights()
    monkeypatch.setattr(data_spool, "IN_MEMORY", 0)
    monkeypatch.setattr(usable_rows, "TEXTS_AT_ONCE", 57)
    monkeypatch.setattr(spool, "AT_ONCE", 100)
    assert (weights() == expected).all()


def test_no_more_than_a_block_is_ever_read(people, monkeypatch, tmp_path):
    """A twin that parses the whole table is caught by how many rows come at once."""
    most = []
    real = Schema.judged

    def judged(self, X, name="X"):
        most.append(len(X))
        return real(self, X, name)

    monkeypatch.setattr(Schema, "judged", judged)
    monkeypatch.setattr(usable_rows, "CELLS", 3_000)
    people.write_parquet(tmp_path / "t.parquet")
    summed(task_read(people, tmp_path / "t.parquet"))
    assert max(most) <= 1_000


def test_a_file_that_changes_between_two_passes_is_refused(people, tmp_path):
    people.write_csv(tmp_path / "t.csv")
    read = read_cells(tmp_path / "t.csv", label="ill", n_features=4, memory=0)
    people.head(100).write_csv(tmp_path / "t.csv")
    with pytest.raises(PreconditionFailed, match=r"t\.csv was changed while it was read; start again"):
        list(read.X.blocks(10))


@pytest.mark.parametrize("own", [True, False])
def test_the_spool_has_no_name_and_leaves_no_folder(own, tmp_path, monkeypatch):
    monkeypatch.setattr(data_spool, "IN_MEMORY", 100)
    monkeypatch.setattr(data_spool.tempfile, "tempdir", str(tmp_path))
    made = data_spool.Spool(50, tmp_path if own else None)
    first, second = np.arange(10, dtype=np.int64), np.arange(7.0)
    assert made.append(first) == 0
    at = made.append(second)  # more than is held
    assert made.is_file
    assert made.read(0, (10,), np.int64).tolist() == first.tolist()
    assert made.read(at, (7,), np.float64).tolist() == second.tolist()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("last", [126, 127, 128])
def test_a_class_is_read_back_as_it_was_whatever_its_type(last):
    units = spool.DenseUnits.of(2, 2, None, spool.Threads(), None, None)
    codes = np.array([-1, last]).astype(np.int8 if last <= 127 else np.int32)
    units.put(np.ones((2, 2)), codes, np.array([0, 1]))
    assert units._read(0, 2)[1].tolist() == [-1, last]
