"""What the default makes of wide tables: directions of the pool for teachers, and the model of the votes as student.

    python benchmarks/wide.py [mushroom] [a9a] [imdb] [records] [writers] [splits=N]

Beside the default stands what it was before: the same teachers on all columns, and a logistic regression as the
student. δ is one over the number of units, noise is seeded. IMDB and MNIST are left out where QUORATE_DATA does not
name them. Neither of the two constants (256 columns, 64 directions) was fitted on these tables.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from quorate import PrivateClassifier, PublicPool
from quorate.accounting.figures import several
from quorate.errors import PreconditionFailed
from quorate.experiments.measurement import standard_error
from quorate.experiments.sources import Split, a9a, file_of, folder_of_files, imdb, mnist, mushroom, split

EPSILONS = (0.5, 1.0, 2.0)
BEFORE = {"teacher": LogisticRegression(C=100.0, max_iter=1_000), "student": LogisticRegression(max_iter=1_000)}


def digits(seed: int) -> Split:
    train, test = mnist(folder_of_files())
    order = np.random.default_rng(seed).permutation(len(test.codes))
    pool, held_out = order[:5_000], order[5_000:]
    return Split(
        name="mnist", X_private=train.X, y_private=train.codes, X_public=test.X[pool], X_test=test.X[held_out],
        y_test=test.codes[held_out],
    )  # fmt: skip


TABLES: dict[str, tuple[str, Callable[[int], Split], int]] = {
    "mushroom": ("mushroom, 162 public", lambda seed: split(mushroom(), seed), 10),
    "a9a": ("a9a, 976 public", lambda seed: split(a9a(), seed), 5),
    "imdb": ("imdb, 1,000 public", lambda seed: split(imdb(folder_of_files()), seed, n_public=1_000), 2),
    "imdb more": ("imdb, 5,000 public", lambda seed: split(imdb(folder_of_files()), seed, n_public=5_000), 2),
    "records": ("MNIST, 5,000 public, record", digits, 1),
    "writers": ("MNIST, 5,000 public, writer", digits, 2),
}


def writers() -> Any:
    return np.load(file_of(folder_of_files(), "mnist/writers.npz"))["train"]


def measured(name: str, splits: int | None) -> None:
    told, load, usual = TABLES[name]
    groups = writers() if name == "writers" else None
    for epsilon in EPSILONS:
        right: dict[str, list[float]] = {"before": [], "default": []}
        for seed in range(splits or usual):
            parts = load(seed)
            rows = parts.X_private.shape[0]
            units = rows if groups is None else len(np.unique(groups))
            for what, models in {"before": BEFORE, "default": {}}.items():
                made = PrivateClassifier(
                    **models, classes=np.unique(parts.y_test).tolist(), epsilon=epsilon, delta=1 / units,
                    n_records=units, n_rows=None if groups is None else rows, method="votes", unsafe_noise_seed=seed,
                ).fit(parts.X_private, parts.y_private, public=PublicPool(parts.X_public), groups=groups)  # fmt: skip
                right[what].append(float(np.mean(made.predict(parts.X_test) == parts.y_test)))
        said = " · ".join(f"{what} {mean(each)}" for what, each in right.items())
        print(f"{told}, ε = {epsilon:g} ({several(splits or usual, 'split')}): {said}", flush=True)


def mean(values: list[float]) -> str:
    error = standard_error(np.asarray(values))
    return f"{np.mean(values):.3f}" + ("" if error is None else f"±{error:.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    splits = next((int(word.removeprefix("splits=")) for word in sys.argv[1:] if word.startswith("splits=")), None)
    for name in [word for word in sys.argv[1:] if word in TABLES] or TABLES:
        try:
            measured(name, splits)
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
