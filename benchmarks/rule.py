"""Votes and the direct method by default, beside what the rule of ``method="auto"`` takes without labelled public rows.

    python -m benchmarks.rule [splits]

Rows of Adult play records, and persons with as many rows each as the table says, drawn at random; Mushroom plays
records. 2,000 other rows are the pool, 4,000 are scored on (of Mushroom 1,000 and 1,124). ε = 1 for replacing one unit,
δ = 1e-5; numbers of units and rows are declared. Printed is the table of ``docs/how-to/which-method.md``, with the
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

CASES = (  # table, units, rows a unit
    ("Adult", 12_000, 1), ("Adult", 2_000, 1), ("Mushroom", 6_000, 1), ("Adult", 6_000, 2), ("Adult", 1_200, 10),
    ("Adult", 500, 40), ("Adult", 400, 60), ("Adult", 300, 3),
)  # fmt: skip


def measured(table: tuple[Any, Any], units: int, rows_each: int, seed: int, held: tuple[int, int]) -> list[float]:
    """Return the accuracies of votes and of the direct method on one split."""
    X, labels = table
    order, (pool, scored) = np.random.default_rng(seed).permutation(len(labels)), held
    private, public, shown = np.split(order, [units * rows_each, units * rows_each + pool])
    groups = None if rows_each == 1 else np.arange(len(private)) // rows_each
    how: dict[str, Any] = {
        "classes": sorted(set(labels.tolist())), "epsilon": 1.0, "delta": 1e-5, "n_records": units, "n_jobs": 1,
        "n_rows": None if groups is None else len(private), "unsafe_noise_seed": seed, "allow_hopeless": True,
    }  # fmt: skip
    more: dict[str, dict[str, Any]] = {"votes": {}, "direct": {"neighbours": "replace"}}
    return [
        float(
            PrivateClassifier(method=method, **how, **more[method])  # type: ignore[arg-type]
            .fit(X[private], labels[private], public=PublicPool(X[public]), groups=groups)
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
    print("| table | units | rows a unit | votes | direct | votes − direct | the rule takes |\n" + "| --- " * 7 + "|")
    for name, units, rows_each in CASES:
        held = (2_000, 4_000) if name == "Adult" else (1_000, 1_124)
        both = 100 * np.array([measured(tables[name], units, rows_each, seed, held) for seed in range(splits)])
        gap = both[:, 0] - both[:, 1]
        error = gap.std(ddof=1) / np.sqrt(splits)
        rows = units * rows_each
        chosen = choose_method(grouped=rows_each > 1, n_records=units, n_rows=rows, unit="person")
        votes, direct = both.mean(axis=0)
        print(
            f"| {name} | {units:,} | {rows_each} | {votes:.1f} % | {direct:.1f} % | {gap.mean():+.1f} ± {error:.1f} | "
            f"{chosen.by if chosen else ''} |",
            flush=True,
        )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=True)
    print(f"src {commit.stdout.strip()}, {splits} splits")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # many fits of public data, seeded
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
