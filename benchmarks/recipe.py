"""The default number of teachers: how rows a teacher were fitted to classes, and what the default is worth elsewhere.

    python benchmarks/recipe.py outside [table ...] [splits=N]     tables that no constant was fitted on
    python benchmarks/recipe.py persons [splits=N]                 the writers of MNIST, each a person of 111 digits
    python benchmarks/recipe.py fitted [table ...] [splits=N]      tables that the exponent of C - 1 was held against

"outside" and "persons" fit the shipped classifier as it is: the default, the number of teachers of version 0.1, and a
grid around the default, of which the best is shown. The best of a grid is chosen by the accuracy that is printed, so
it is too high by the noise of the choice. "fitted" trains teachers in this process, and scores the model of the vote
shares for a grid of rows a teacher; then it prints what each exponent of C - 1 loses against the best of the grid.

δ is 1/n. Tables of scikit-learn come with it; those of statsmodels and plotnine are left out where these packages are
not installed (`pip install statsmodels plotnine`; quorate needs neither), MNIST where QUORATE_DATA does not name it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import calibrate_sigma
from quorate.data import load_adult, load_mushroom, public_encoder
from quorate.errors import PreconditionFailed
from quorate.experiments.measurement import standard_error
from quorate.experiments.sources import file_of, folder_of_files, mnist
from quorate.labelling import Released
from quorate.mechanisms import NoisyCounts
from quorate.run.public_facts import PublicFacts
from quorate.students import StudentData, VoteShareStudent
from quorate.voting.recipe import recipe, rows_per_teacher

EPSILONS = (0.5, 1.0, 2.0)
GRID = (0.5, 1.0, 2.0)  # times the default number of teachers
ROWS = (3, 4.5, 6.7, 10, 15, 22, 33, 50)  # a teacher
EXPONENTS = (0.0, 1 / 4, 1 / 3, 1 / 2)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A labelled table, how much of it plays the private rows and the pool, and over how many splits."""

    load: Callable[[], tuple[Any, Any]]
    n: int
    m: int
    splits: int = 5
    most_test: int = 5_000
    grid: tuple[float, ...] = GRID
    n_teachers: tuple[int, ...] = ()  # more of the grid


def of_sklearn(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")()
    return loaded.data, loaded.target


def packaged(package: str, name: str, **how: Any) -> pl.DataFrame:
    """Read a CSV file that a package brings along, without importing the package."""
    place = find_spec(package)
    if place is None or place.origin is None:
        raise PreconditionFailed(f"{package} is not installed")
    return pl.read_csv(Path(place.origin).parent / name, **how)


def fair() -> tuple[Any, Any]:
    table = packaged("statsmodels", "datasets/fair/fair.csv")
    return table.drop("affairs").to_numpy().astype(float), (table["affairs"] > 0).cast(int).to_numpy()


def anes96() -> tuple[Any, Any]:
    table = packaged("statsmodels", "datasets/anes96/anes96.csv", separator="\t", quote_char="'")
    return table.drop("PID").to_numpy().astype(float), table["PID"].cast(int).to_numpy()


def diamonds() -> tuple[Any, Any]:
    table = packaged("plotnine", "data/diamonds.csv")
    words = table.drop("cut").select(pl.selectors.string()).columns
    numbers = table.drop("cut", *words).to_numpy().astype(float)
    codes = np.unique(table["cut"].to_list(), return_inverse=True)[1]
    return np.hstack([numbers, table.select(words).to_dummies().to_numpy().astype(float)]), codes


def column_of(frame: pl.DataFrame, name: str, *, without: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """Take a column of words as the classes, and encode the others."""
    rest = frame.drop(name, *without)
    encoded = public_encoder(rest).transform(rest)
    dense = encoded.toarray() if hasattr(encoded, "toarray") else encoded
    return dense, np.unique([str(each) for each in frame[name].to_list()], return_inverse=True)[1]


def mushroom(name: str) -> tuple[Any, Any]:
    return column_of(load_mushroom().X, name)


def adult(name: str, *without: str) -> tuple[Any, Any]:
    loaded = load_adult()
    return column_of(pl.concat([loaded.train, loaded.test]), name, without=without)


def small_mnist() -> tuple[Any, Any]:
    parts = mnist(folder_of_files())
    images = np.vstack([part.X for part in parts]).reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49)
    return images, np.concatenate([part.codes for part in parts])


def clouds(n_classes: int, width: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    centres = 2.2 * math.sqrt(2 / width) * rng.normal(size=(n_classes, width))
    codes = rng.integers(0, n_classes, 40_000)
    return centres[codes] + rng.normal(size=(40_000, width)), codes


OUTSIDE = {
    "digits": Table(load=lambda: of_sklearn("digits"), n=1_347, m=225, grid=(), n_teachers=(100, 135, 200, 270, 400)),
    "breast cancer": Table(load=lambda: of_sklearn("breast_cancer"), n=400, m=60),
    "fair": Table(load=fair, n=5_000, m=500, splits=3),
    "anes96": Table(load=anes96, n=700, m=100),
    "diamonds": Table(load=diamonds, n=43_152, m=1_078, splits=1, grid=()),
}
FITTED = {
    "mnist, 49 pixels": Table(load=small_mnist, n=1_500, m=300, splits=4),
    "mnist, 49 pixels, more": Table(load=small_mnist, n=6_000, m=500, splits=2),
    "mushroom's odor": Table(load=lambda: mushroom("odor"), n=1_500, m=300, splits=4),
    "mushroom's odor, more": Table(load=lambda: mushroom("odor"), n=6_000, m=500, splits=2),
    "mushroom's habitat": Table(load=lambda: mushroom("habitat"), n=1_500, m=300, splits=4),
    "mushroom's habitat, more": Table(load=lambda: mushroom("habitat"), n=6_000, m=500, splits=2),
    "adult's marital status": Table(
        load=lambda: adult("marital-status", "relationship"), n=3_000, m=500, splits=3, most_test=3_000
    ),
    "adult's relationship": Table(
        load=lambda: adult("relationship", "marital-status"), n=15_000, m=1_000, splits=2, most_test=3_000
    ),
    "adult's occupation": Table(load=lambda: adult("occupation"), n=6_000, m=500, splits=2, most_test=3_000),
    "clouds, 5 classes": Table(load=lambda: clouds(5, 20), n=1_500, m=300, splits=4, most_test=3_000),
    "clouds, 20 classes": Table(load=lambda: clouds(20, 40), n=3_000, m=300, splits=3, most_test=3_000),
}


def parts(table: Table, X: Any, codes: Any, seed: int) -> list[tuple[Any, Any]]:
    """Private, public and test rows with their classes; the public ones' are looked at by nothing."""
    order = np.random.default_rng(seed).permutation(len(codes))
    first, second = table.n, table.n + table.m
    cuts = order[:first], order[first:second], order[second : second + table.most_test]
    return [(X[cut], codes[cut]) for cut in cuts]


def facts_of(table: Table, X: Any, codes: Any, epsilon: float, **more: Any) -> PublicFacts:
    return PublicFacts(
        **{
            "n_records": table.n, "n_public": table.m, "n_classes": int(codes.max()) + 1, "width": X.shape[1],
            "epsilon": epsilon, "delta": 1 / table.n, **more,
        }
    )  # fmt: skip


# --- the shipped classifier ------------------------------------------------------------------------------------------


def outside(name: str, table: Table) -> None:
    X, codes = table.load()
    told = f"{name}: {table.n:,} private rows, {table.m} public, {codes.max() + 1} classes, {X.shape[1]} columns"
    print(f"{told}; {table.splits} splits")
    for epsilon in EPSILONS:
        facts = facts_of(table, X, codes, epsilon)
        ours = recipe(facts).n_teachers
        grid = sorted({min(table.n, round(ours * factor)) for factor in table.grid} | set(table.n_teachers))
        right: dict[Any, list[float]] = {each: [] for each in ("auto", *grid)}
        for seed in range(table.splits):
            private, public, test = parts(table, X, codes, seed)
            for n_teachers in right:
                if n_teachers == ours:
                    continue  # the same fit as the default
                made = PrivateClassifier(
                    classes=list(range(codes.max() + 1)), epsilon=epsilon, delta=1 / table.n, n_records=table.n,
                    n_teachers=n_teachers, method="votes", n_jobs=1, unsafe_noise_seed=seed,
                ).fit(*private, public=PublicPool(public[0]))  # fmt: skip
                right[n_teachers].append(float(np.mean(made.predict(test[0]) == test[1])))
        right[ours] = right["auto"]
        best = max(grid, key=lambda each: np.mean(right[each]))
        said = {"default": ours, "best of the grid": best}
        print(f"  ε = {epsilon:<4g}" + " · ".join(f"{what} {mean(right[k])} (K = {k:,})" for what, k in said.items()))
        print("          " + "  ".join(f"{k:,}: {np.mean(right[k]):.3f}" for k in grid), flush=True)


def mean(values: list[float]) -> str:
    error = standard_error(np.asarray(values))
    return f"{np.mean(values):.3f}" + ("" if error is None else f"±{error:.3f}")


def persons(splits: int) -> None:
    folder = folder_of_files()
    train, test = mnist(folder)
    writers = np.load(file_of(folder, "mnist/writers.npz"))["train"]
    units = len(np.unique(writers))
    print(f"mnist: {units} writers, {len(writers):,} private digits of 784 pixels, 5,000 public, 5,000 held out")
    for epsilon in EPSILONS:
        right = []
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(len(test.codes))
            pool, held_out = order[:5_000], order[5_000:]
            made = PrivateClassifier(
                classes=list(range(10)), epsilon=epsilon, delta=1 / units, n_records=units, n_rows=len(writers),
                method="votes", unsafe_noise_seed=seed,
            ).fit(train.X, train.codes, public=PublicPool(test.X[pool]), groups=writers)  # fmt: skip
            right.append(float(np.mean(made.predict(test.X[held_out]) == test.codes[held_out])))
        print(f"  ε = {epsilon:<4g}default {mean(right)} (K = {made.recipe_.n_teachers})", flush=True)


# --- how rows depend on classes --------------------------------------------------------------------------------------


def counted(private: tuple[Any, Any], pool: Any, n_teachers: int, n_classes: int, seed: int) -> Any:
    """Train weakly regularised teachers on a random partition, in this process; return their votes on the pool."""
    (X, codes), rng = private, np.random.default_rng(seed + 100)
    shard = rng.integers(0, n_teachers, len(codes))
    counts, every = np.zeros((len(pool), n_classes), dtype=np.int64), np.arange(len(pool))
    for teacher in range(n_teachers):
        rows = np.flatnonzero(shard == teacher)
        if len(np.unique(codes[rows])) > 1:
            model = LogisticRegression(C=100.0, max_iter=1_000).fit(X[rows], codes[rows])
            counts[every, model.predict(pool)] += 1
        elif len(rows):
            counts[:, codes[rows[0]]] += 1
    return counts


def shares_right(
    counts: Any, pool: Any, test: tuple[Any, Any], n_teachers: int, facts: PublicFacts, seed: int
) -> float:
    """Release noisy counts, and score the linear model of the shares."""
    rng, m = np.random.default_rng(seed + 7), len(counts)
    sigma = calibrate_sigma(facts.epsilon, facts.delta, m, math.sqrt(2))
    noisy, no = np.rint(counts + rng.normal(0, sigma, counts.shape)).astype(np.int64), np.zeros(m, dtype=bool)
    data = StudentData(
        pool=pool, points=pool, queries=np.arange(m), released=Released(noisy, no, no, NoisyCounts(sigma, "histogram")),
        classes=list(range(facts.n_classes)), n_teachers=n_teachers, seed=0,
    )  # fmt: skip
    return float(np.mean(VoteShareStudent().model(data, pool)(test[0]).argmax(axis=1) == test[1]))


def fitted(name: str, table: Table) -> None:
    X, codes = table.load()
    n_classes = int(codes.max()) + 1
    print(f"{name}: {table.n:,} private rows, {table.m} public, {n_classes} classes, {X.shape[1]} columns")
    right: dict[tuple[float, float], list[float]] = {}
    for seed in range(table.splits):
        private, (pool, _), test = parts(table, X, codes, seed)
        for rows in ROWS:
            n_teachers = round(table.n / rows)
            counts = counted(private, pool, n_teachers, n_classes, seed)
            for epsilon in EPSILONS:
                facts = facts_of(table, X, codes, epsilon)
                score = shares_right(counts, pool, test, n_teachers, facts, seed)
                right.setdefault((epsilon, rows), []).append(score)
    for epsilon in EPSILONS:
        curve = np.array([np.mean(right[epsilon, rows]) for rows in ROWS])
        two = rows_per_teacher(replace(facts_of(table, X, codes, epsilon), n_classes=2))
        lost = {
            power: curve.max() - np.interp(math.log(max(4, two * (n_classes - 1) ** -power)), np.log(ROWS), curve)
            for power in EXPONENTS
        }
        print(
            f"  ε = {epsilon:<4g}" + "  ".join(f"{rows:g}: {each:.3f}" for rows, each in zip(ROWS, curve, strict=True))
        )
        print(
            "          lost by exponent " + "  ".join(f"{power:.2g}: {each:.3f}" for power, each in lost.items()),
            flush=True,
        )


def chosen(words: list[str], tables: dict[str, Table]) -> Iterator[tuple[str, Table]]:
    splits = next((int(word.removeprefix("splits=")) for word in words if word.startswith("splits=")), None)
    for name, table in tables.items():
        if not {word for word in words if "=" not in word} or name in words:
            yield name, table if splits is None else replace(table, splits=splits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, words = (sys.argv[1] if len(sys.argv) > 1 else "outside"), sys.argv[2:]
    if what == "persons":
        persons(next((int(word.removeprefix("splits=")) for word in words if word.startswith("splits=")), 1))
        sys.exit()
    for name, table in chosen(words, {"outside": OUTSIDE, "fitted": FITTED}[what]):
        try:
            {"outside": outside, "fitted": fitted}[what](name, table)
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
