"""Public data in their roles: the sizes of the paper's splits, no label where none belongs, clear refusals."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from quorate.errors import DataRefused, PreconditionFailed
from quorate.experiments.sources import (
    LabelledTable,
    a9a,
    file_of,
    folder_of_files,
    idx,
    imdb,
    mnist,
    mushroom,
    real_sim,
    split,
    weighed_words,
)

LARGER = Path(__import__("os").environ.get("QUORATE_DATA", Path(__file__).parents[2] / "../shared/data"))


def numbered(n: int) -> LabelledTable:
    return LabelledTable(name="numbers", X=np.arange(n, dtype=float)[:, None], codes=np.arange(n) % 2)


def test_a_split_gives_every_row_one_role():
    parts = split(numbered(1_000), 3)
    rows = [part[:, 0].astype(int).tolist() for part in (parts.X_private, parts.X_public, parts.X_test)]
    assert [len(part) for part in rows] == [800, 20, 180]
    assert sorted(rows[0] + rows[1] + rows[2]) == list(range(1_000))
    assert parts.y_private.tolist() == [row % 2 for row in rows[0]]
    assert parts.y_test.tolist() == [row % 2 for row in rows[2]]


def test_splits_differ_by_their_seed_and_by_nothing_else():
    first, again, other = (split(numbered(500), seed).X_test.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_larger_pool_comes_out_of_the_test_part():
    small, large = split(numbered(1_000), 5), split(numbered(1_000), 5, n_public=100)
    assert large.X_private.tolist() == small.X_private.tolist()
    assert (len(large.X_public), len(large.X_test)) == (100, 100)


def test_a_split_holds_no_label_of_the_pool():
    assert not [name for name in split(numbered(100), 0).__slots__ if name.startswith("y_public")]


def test_the_bundled_sets_have_their_published_sizes():
    assert mushroom().X.shape == (8_124, 112)
    assert (mushroom().codes.sum(), a9a().codes.sum()) == (3_916, 7_841 + 3_846)
    assert a9a().X.shape == (48_842, 123)


@pytest.mark.skipif(not (LARGER / "imdb" / "imdb_counts.npz").exists(), reason="QUORATE_DATA has no imdb")
def test_reviews_are_rows_of_length_one():
    reviews = imdb(LARGER)
    assert reviews.X.shape == (50_000, 18_522)
    test = split(reviews, 0).X_test
    np.testing.assert_allclose(np.sqrt(test.multiply(test).sum(axis=1)), 1.0)
    assert np.bincount(reviews.codes).tolist() == [25_000, 25_000]


@pytest.mark.skipif(not (LARGER / "mnist").exists(), reason="QUORATE_DATA has no mnist")
def test_digits_are_read_as_they_were_published():
    train, test = mnist(LARGER)
    assert (train.X.shape, test.X.shape) == ((60_000, 784), (10_000, 784))
    assert np.bincount(train.codes).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert (float(train.X.min()), float(train.X.max())) == (0.0, 1.0)


def test_a_row_is_weighed_by_itself_and_by_public_rows_alone():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.7, (60, 8)).astype(float) + np.eye(60, 8)
    private, public, test = (csr_array(counts[part]) for part in (slice(0, 30), slice(30, 45), slice(45, 60)))
    first = weighed_words(private, public, test)
    other = counts[:30].copy()
    other[1:] = rng.poisson(3.0, (29, 8)) + 1.0
    again = weighed_words(csr_array(other), public, test)
    np.testing.assert_array_equal(first[0].toarray()[0], again[0].toarray()[0])
    np.testing.assert_array_equal(first[2].toarray(), again[2].toarray())
    # The cheat: words weighed by the private rows too would move with them.
    pooled = weighed_words(private, csr_array(counts[:45]), test)[2].toarray()
    moved = weighed_words(private, csr_array(np.vstack([other, counts[30:45]])), test)[2].toarray()
    assert np.abs(pooled - moved).max() > 1e-3


def test_real_sim_is_read_from_a_users_file(tmp_path):
    path = tmp_path / "real-sim"
    path.write_text("+1 1:0.5 20958:0.5\n-1 2:1\n")
    loaded = real_sim(path)
    assert loaded.X.shape == (2, 20_958)
    assert loaded.codes.tolist() == [1, 0]
    path.write_text("3 1:0.5\n")
    with pytest.raises(DataRefused, match=r"labels \+1 and -1"):
        real_sim(path)


def test_a_missing_or_broken_file_is_told_in_one_line(tmp_path, monkeypatch):
    with pytest.raises(PreconditionFailed, match="QUORATE_DATA") as refusal:
        file_of(tmp_path, "imdb/imdb_counts.npz")
    assert "\n" not in str(refusal.value)
    monkeypatch.delenv("QUORATE_DATA", raising=False)
    with pytest.raises(PreconditionFailed, match="--files or QUORATE_DATA") as refusal:
        folder_of_files()
    assert "\n" not in str(refusal.value)
    monkeypatch.setenv("QUORATE_DATA", str(tmp_path))
    assert folder_of_files() == tmp_path
    assert folder_of_files(tmp_path / "given") == tmp_path / "given"
    for content in (b"\x00\x00\x08\x01\x00\x00\x00\x05ab", b"\x00\x00\x0d\x01\x00\x00\x00\x01a", b"ab"):
        (tmp_path / "broken.gz").write_bytes(gzip.compress(content))
        with pytest.raises(DataRefused, match="idx"):
            idx(tmp_path / "broken.gz")
    (tmp_path / "fine.gz").write_bytes(gzip.compress(b"\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03abcdef"))
    assert idx(tmp_path / "fine.gz").shape == (2, 3)
