"""Votes given as codes are counted as a plain loop counts them, by either way, whatever the order and the blocks."""

from __future__ import annotations

import runpy
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate.ensemble import ABSTAINED, as_teacher, count_votes, hash_shards, train_teachers, votes
from quorate.ensemble.votes import add_votes, code_type
from quorate.types import Secret


def looped(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    for voter in codes:
        for row, code in enumerate(voter):
            if code != ABSTAINED:
                counts[row, code] += 1
    return counts


def counted(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    add_votes(codes, counts)
    return counts


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_classes", [1, 2, 14, 15, 127, 128, 129, 300])
def test_each_vote_is_counted_once(n_classes):
    """More voters than a byte holds, the lowest and the highest code, and abstentions."""
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(ABSTAINED, n_classes, size=(257, 70)).astype(code_type(n_classes))
    codes[:, 0], codes[:, 1], codes[:, 2] = 0, n_classes - 1, ABSTAINED
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))
    assert np.array_equal(counted(codes[::-1], n_classes), counted(codes, n_classes))


@pytest.mark.parametrize("n_classes", [3, 40])
def test_rows_are_counted_alike_at_the_seams_of_blocks(n_classes, monkeypatch):
    monkeypatch.setattr(votes, "_COMPARED_ROWS", 7)
    monkeypatch.setattr(votes, "_CELLS", 1)
    codes = np.random.default_rng(0).integers(ABSTAINED, n_classes, size=(5, 200))
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))


def test_a_byte_of_voters_that_agree_does_not_overflow(monkeypatch):
    """The twin that lets 256 voters into a byte loses all their votes."""
    codes = np.zeros((512, 3), dtype=np.int8)
    assert (counted(codes, 2)[:, 0] == 512).all()
    monkeypatch.setattr(votes, "GROUP", 256)
    assert (counted(codes, 2)[:, 0] == 0).all()


# --- the example for an array job: its tasks together count the votes of one machine, and its scripts are sound ------


SLURM = Path(__file__).parents[2] / "examples" / "slurm"


@pytest.mark.heavy
def test_the_tasks_of_an_array_count_what_one_machine_counts(tmp_path):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"age": rng.normal(50, 9, 300), "bmi": rng.normal(25, 4, 300)})
    ill = np.where(rows["age"].to_numpy() > 50, "yes", "no")
    rows.with_columns(pl.Series("ill", ill)).write_csv(tmp_path / "private.csv")
    asked = pl.DataFrame({"bmi": rng.normal(25, 4, 20), "age": rng.normal(50, 9, 20)})
    asked.write_csv(tmp_path / "public.csv")
    (tmp_path / "partition.key").write_bytes(bytes(range(32)))
    example = runpy.run_path(str(SLURM / "votes.py"))
    tables = (tmp_path / "private.csv", tmp_path / "public.csv", "ill", ["no", "yes"], 10)
    count = partial(example["count"], *tables, tmp_path / "partition.key", tmp_path / "votes")
    for task in (2, 0):
        count(task, 3)
    with pytest.raises(SystemExit, match="does not hold the counts of every task"):
        example["join"](tmp_path / "votes")
    count(1, 3)
    joined = np.load(example["join"](tmp_path / "votes"))

    key, X = Secret(bytes(range(32))), rows.select("bmi", "age").to_numpy()
    ensemble = train_teachers(
        as_teacher(make_pipeline(StandardScaler(), LogisticRegression())), X, (ill == "yes").astype(np.int64),
        hash_shards([place.to_bytes(8, "big") for place in range(300)], 10, key), n_teachers=10, n_classes=2, key=key,
    )  # fmt: skip
    assert (joined == count_votes(ensemble, asked.to_numpy()).reveal()).all()
    assert (joined.sum(axis=1) == 10).all()


@pytest.mark.parametrize("script", ["dask.sbatch", "votes.sbatch"])
def test_the_scripts_are_read_by_the_shell_and_keep_files_to_their_owner(script):
    subprocess.run(["bash", "-n", SLURM / script], check=True)
    text = (SLURM / script).read_text()
    assert "set -euo pipefail\numask 077\n" in text
