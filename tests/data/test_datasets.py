"""The bundled data are the published ones."""

import lzma
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from quorate.data import datasets as module
from quorate.data import load_adult, load_mushroom, read_data
from quorate.errors import PreconditionFailed

LARGER = Path(os.environ.get("QUORATE_DATA", Path(__file__).parents[2] / "../shared/data"))


@pytest.mark.heavy
def test_adult_has_its_published_counts():
    adult = load_adult()
    assert (adult.train.shape, adult.test.shape) == ((32_561, 14), (16_281, 14))
    assert (adult.train_labels == ">50K").sum() == 7_841
    assert (adult.test_labels == ">50K").sum() == 3_846
    assert set(adult.train_labels) == set(adult.test_labels) == set(adult.classes)
    for frame, unknown in ((adult.train, 2_399), (adult.test, 1_221)):
        assert frame.filter(pl.any_horizontal(pl.all().is_null())).height == unknown
        text = frame.select(pl.col(pl.String))
        assert text.width == 8
        for name in text.columns:
            values = set(text[name].drop_nulls())
            assert all(value == value.strip() and value not in ("", "?") for value in values)
    assert adult.train.row(0)[:4] == (39, "State-gov", 77516, "Bachelors")


def test_mushroom_has_its_published_counts():
    mushroom = load_mushroom()
    assert mushroom.X.shape == (8_124, 22)
    assert (mushroom.labels == "poisonous").sum() == 3_916
    assert (mushroom.labels == "edible").sum() == 4_208
    assert mushroom.X["stalk-root"].null_count() == 2_480
    assert sum(mushroom.X.null_count().row(0)) == 2_480


def test_the_indicators_of_mushroom_are_the_literatures():
    mushroom = load_mushroom()
    indicators = mushroom.one_hot()
    assert indicators.shape == (8_124, 112)
    assert set(np.unique(indicators)) == {0.0, 1.0}
    assert (indicators.sum(axis=1) == 21).all()
    assert (indicators.sum(axis=0) > 0).all()
    names = [name for name in mushroom.X.columns if name != "stalk-root"]
    letters = [(name, letter) for name in names for letter in module._MUSHROOM_LETTERS[name]]
    assert {name: set(mushroom.X[name]) for name in names} == {n: set(module._MUSHROOM_LETTERS[n]) for n in names}
    for row in (0, 4_000, 8_123):
        assert [float(mushroom.X[name][row] == letter) for name, letter in letters] == indicators[row].tolist()


@pytest.mark.heavy
@pytest.mark.skipif(not (LARGER / "mushroom" / "mushrooms.svm.xz").exists(), reason="QUORATE_DATA is not there")
def test_the_indicators_of_mushroom_are_those_of_the_derived_file():
    table = read_data(LARGER / "mushroom" / "mushrooms.svm.xz", n_features=112)
    mushroom = load_mushroom()
    assert_array_equal(table.y == 1, mushroom.labels == "poisonous")
    assert_array_equal(table.X.toarray(), mushroom.one_hot())


@pytest.mark.heavy
def test_the_indicators_of_adult_are_those_that_platt_describes():
    indicators = load_adult().a9a()
    assert indicators.shape == (48_842, 123)
    assert set(np.unique(indicators)) == {0.0, 1.0}
    unknown = pl.concat([load_adult().train, load_adult().test]).null_count().sum_horizontal().item()
    assert indicators.sum() == 14 * 48_842 - unknown
    first = np.flatnonzero(indicators[0]) + 1  # 39 years, State-gov, Bachelors, …: the first line of the file
    assert first.tolist() == [3, 11, 14, 19, 39, 42, 55, 64, 67, 73, 75, 76, 80, 83]


@pytest.mark.heavy
@pytest.mark.skipif(not (LARGER / "a9a" / "a9a.xz").exists(), reason="QUORATE_DATA is not there")
def test_the_indicators_of_adult_are_those_of_the_published_files():
    tables = [read_data(LARGER / "a9a" / name, n_features=123) for name in ("a9a.xz", "a9a.t.xz")]
    assert_array_equal(np.vstack([table.X.toarray() for table in tables]), load_adult().a9a())
    labels = np.concatenate([load_adult().train_labels, load_adult().test_labels])
    assert_array_equal(np.concatenate([table.y for table in tables]) == 1, labels == ">50K")


@pytest.mark.heavy
@pytest.mark.skipif(not (LARGER / "imdb" / "imdb_counts.npz").exists(), reason="QUORATE_DATA is not there")
def test_the_sparse_reader_reads_the_published_counts_of_reviews():
    table = read_data(LARGER / "imdb" / "imdb_counts.npz", label="y")
    assert table.X.shape == (50_000, 18_522)
    assert table.X.nnz == 6_649_711
    assert table.X.data.max() == 198
    assert np.bincount(table.y).tolist() == [25_000, 25_000]


def test_an_altered_file_is_refused(monkeypatch):
    good = module._SHA256["agaricus-lepiota.data.xz"]
    monkeypatch.setitem(module._SHA256, "agaricus-lepiota.data.xz", good[::-1])
    with pytest.raises(PreconditionFailed, match="not the published file"):
        load_mushroom()
    monkeypatch.setattr(lzma, "decompress", lambda packed: (_ for _ in ()).throw(lzma.LZMAError()))
    with pytest.raises(PreconditionFailed, match="not the published file"):
        load_adult()


def test_the_licence_and_the_references_come_with_the_files():
    text = (Path(module.__file__).parent / "bundled" / "CITATION.md").read_text()
    for needed in ("CC BY 4.0", "10.24432/C5XW20", "10.24432/C5959T", *module._SHA256, *module._SHA256.values()):
        assert needed in text
