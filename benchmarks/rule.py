"""Votes and the direct method by default, beside what the rule of ``method="auto"`` takes without labelled public rows.

    python -m benchmarks.rule [splits]

Rows of Adult play records, and persons with as many rows each as the table says, drawn at random; Mushroom plays
records. 2,000 other rows are the pool, or bounds and categories of all rows are the schema that one is drawn from;
4,000 are scored on (of Mushroom 1,000 and 1,124). ε = 1 for replacing one unit, δ = 1e-5; the number of units is
declared, and that of rows where the pool is public. Printed is the table of ``docs/how-to/which-method.md``, with the
standard error of the paired difference over the splits, and below it the source that was measured.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np

from quorate import PrivateClassifier, PublicPool
from quorate.data import load_adult, load_mushroom
from quorate.run.public_facts import choose_method

CASES = (  # table, units, rows a unit, whether there is a public pool
    ("Adult", 12_000, 1, True), ("Adult", 2_000, 1, True), ("Mushroom", 6_000, 1, True), ("Adult", 6_000, 2, True),
    ("Adult", 1_200, 10, True), ("Adult", 800, 20, True), ("Adult", 600, 30, True), ("Adult", 500, 40, True),
    ("Adult", 400, 60, True), ("Adult", 300, 3, True),
    ("Adult", 1_800, 3, False), ("Adult", 500, 10, False), ("Adult", 500, 40, False), ("Adult", 300, 60, False),
)  # fmt: skip


def declared(X: Any) -> dict[str, Any]:
    """Return a schema of a frame: bounds of numbers, lists of categories."""
    numbers = {name: (float(X[name].min()), float(X[name].max())) for name in X.columns if X[name].dtype.is_numeric()}
    return {name: numbers.get(name) or sorted(X[name].drop_nulls().unique().to_list()) for name in X.columns}


def measured(
    table: tuple[Any, Any], units: int, rows_each: int, seed: int, held: tuple[int, int], *, public: bool
) -> list[float]:
    """Return the accuracies of votes and of the direct method on one split."""
    X, labels = table
    order, (pool, scored) = np.random.default_rng(seed).permutation(len(labels)), held
    private, others, shown = np.split(order, [units * rows_each, units * rows_each + pool])
    groups = None if rows_each == 1 else np.arange(len(private)) // rows_each
    how: dict[str, Any] = {
        "classes": sorted(set(labels.tolist())), "epsilon": 1.0, "delta": 1e-5, "n_records": units, "n_jobs": 1,
        "n_rows": None if groups is None or not public else len(private),
        "unsafe_noise_seed": seed, "allow_hopeless": True,
    }  # fmt: skip
    side = {"public": PublicPool(X[others])} if public else {"schema": declared(X)}
    more: dict[str, dict[str, Any]] = {"votes": {}, "direct": {"neighbours": "replace"}}
    return [
        float(
            PrivateClassifier(method=method, **how, **more[method])  # type: ignore[arg-type]
            .fit(X[private], labels[private], groups=groups, **side)
            .score(X[shown[:scored]], labels[shown[:scored]])
        )
        for method in more
    ]


def main(splits: int) -> None:
    """Print the table."""
    adult, mushroom = load_adult(), load_mushroom()
    tables = {
        "Adult": (adult.train, np.asarray(adult.train_labels)),
        "Mushroom": (mushroom.X, np.asarray(mushroom.labels)),
    }
    heads = ("table", "units", "rows a unit", "pool", "votes", "direct", "votes − direct", "the rule takes")
    print(f"| {' | '.join(heads)} |\n" + "| --- " * len(heads) + "|")
    for name, units, rows_each, public in CASES:
        held = (2_000, 4_000) if name == "Adult" else (1_000, 1_124)
        fits = [measured(tables[name], units, rows_each, seed, held, public=public) for seed in range(splits)]
        both = 100 * np.array(fits)
        gap = both[:, 0] - both[:, 1]
        error = gap.std(ddof=1) / np.sqrt(splits)
        rows = units * rows_each if public else None
        chosen = choose_method(grouped=rows_each > 1, n_records=units, n_rows=rows, drawn=not public, unit="person")
        (votes, direct), pool = both.mean(axis=0), "public" if public else "drawn"
        print(
            f"| {name} | {units:,} | {rows_each} | {pool} | {votes:.1f} % | {direct:.1f} % | "
            f"{gap.mean():+.1f} ± {error:.1f} | {chosen.by if chosen else ''} |",
            flush=True,
        )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=True)
    print(f"src {commit.stdout.strip()}, {splits} splits")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # many fits of public data, seeded
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
