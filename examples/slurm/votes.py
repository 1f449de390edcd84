"""Votes of some of the teachers: one task of a Slurm array, or of any other batch system, or of Ray.

``count`` trains the teachers of one task, each on its own shard, and keeps how many of them vote for each class on each
public row. ``join`` adds up what the tasks have kept, for ``quorate votes release``. Every task reads the whole private
table, and the key that divides it: which teacher a row goes to hangs on the row's place and on that key alone.

The counts are as private as the rows. ``umask 077`` before it, and no task's output tells any of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate.ensemble import Ensemble, as_teacher, count_votes, hash_shards, train_chunk
from quorate.types import Secret


def count(
    private: Path,
    public: Path,
    label: str,
    classes: list[str],
    teachers: int,
    key: Path,
    out: Path,
    task: int,
    tasks: int,
) -> Path:
    """Train the teachers of one task, and write how they vote.

    Parameters
    ----------
    private, public : path
        CSV files with the same columns of numbers; the private one has the column `label` too.
    label : str
        The column to predict.
    classes : list of str
        Every class there may be.
    teachers : int
        How many there are in all.
    key : path
        32 random bytes, the same for all tasks, readable by their owner alone.
    out : path
        The folder for the counts.
    task, tasks : int
        Which of how many, from 0 on.
    """
    rows, asked = pl.read_csv(private), pl.read_csv(public)
    X = rows.drop(label).select(asked.columns).to_numpy().astype(float)
    codes = np.array([classes.index(each) for each in rows[label].cast(pl.String).to_list()])
    secret = Secret(key.read_bytes())
    shards = hash_shards([place.to_bytes(8, "big") for place in range(len(X))], teachers, secret)
    mine = range(task * teachers // tasks, (task + 1) * teachers // tasks)
    voters = train_chunk(
        as_teacher(make_pipeline(StandardScaler(), LogisticRegression())),
        X,
        codes,
        shards,
        numbers=mine,
        n_teachers=teachers,
        n_classes=len(classes),
        key=secret,
    )
    counts = count_votes(Ensemble(voters, len(classes)), asked.to_numpy().astype(float))
    out.mkdir(mode=0o700, exist_ok=True)
    place = out / f"part-{task:05d}-of-{tasks:05d}.npy"
    np.save(place, counts.reveal())
    return place


def join(out: Path) -> Path:
    """Add up the counts of all tasks; refuse where one is missing."""
    parts = sorted(out.glob("part-*-of-*.npy"))
    wanted = {int(part.stem.rpartition("-")[2]) for part in parts}
    if len(wanted) != 1 or len(parts) != wanted.pop():
        raise SystemExit(f"{out} does not hold the counts of every task of one array; send those that failed again")
    place = out / "counts.npy"
    np.save(place, sum(np.load(part, allow_pickle=False) for part in parts))
    return place


def main() -> None:
    """Read what is asked, and do it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = parser.add_subparsers(dest="what", required=True)
    counting, joining = parts.add_parser("count"), parts.add_parser("join")
    for each in (counting, joining):
        each.add_argument("--out", type=Path, default=Path("votes"))
    for name in ("private", "public", "key"):
        counting.add_argument(f"--{name}", type=Path, required=True)
    for name in ("teachers", "task", "tasks"):
        counting.add_argument(f"--{name}", type=int, required=True)
    counting.add_argument("--label", required=True)
    counting.add_argument("--classes", type=lambda text: text.split(","), required=True)
    given = vars(parser.parse_args())
    print({"count": count, "join": join}[given.pop("what")](**given))


if __name__ == "__main__":
    main()
