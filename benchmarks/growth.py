"""How far the direct method grows from labelled public rows to all private ones: what a rehearsal expects of it.

    python -m benchmarks.growth [table ...]

Of each table some rows are private, some are the pool, some are the labelled public rows of a rehearsal, and some are
scored on. The direct method is played on the labelled rows as a rehearsal does, in the settings and with the noise of
the true run, but scored on thousands of other rows: what remains is how well the whole, the halves and the quarters of
some hundred rows tell what all private rows will have. Beside it stands what a correction in
proportion to one over the size would expect. ``LAW`` of :mod:`quorate.planning.rehearsal.estimate` is how far the
corrections are off here, as a share of themselves, each weighed by its size.

None of these tables is among those on which a prediction is reported (docs/planner.md). Newsgroups and the houses of
Texas are left out where they are missing.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.recipe import adult, clouds, mushroom
from benchmarks.rules import listed, newsgroups
from quorate.data import take
from quorate.errors import PreconditionFailed
from quorate.experiments.sources import weighed_words
from quorate.planning.public_side import public_side
from quorate.planning.rehearsal.estimate import growth
from quorate.planning.rehearsal.rehearsal import FOLDS, codes_of_logits, round_logits

EPSILONS, DELTA = (0.5, 2.0), 1e-5
SEEDS, TEST = 2, 5_000


@dataclass(frozen=True)
class Grown:
    """A table, and how many of its rows are private, the pool, and labelled."""

    load: Callable[[], tuple[Any, Any]]
    n: int
    m: int
    labelled: int


def quadratic() -> tuple[Any, Any]:
    """Two classes by a quadratic rule of ten numbers, with noise."""
    rng = np.random.default_rng(12)
    X, between = rng.normal(size=(50_000, 10)), rng.normal(size=(10, 10))
    scores = np.einsum("ij,jk,ik->i", X, between, X) / 10 + X @ rng.normal(size=10) / 2
    return X, (scores + 0.7 * rng.logistic(size=len(X)) > 0).astype(int)


def clusters() -> tuple[Any, Any]:
    """Seven classes of some clusters each, one label in twelve wrong."""
    rng = np.random.default_rng(11)
    centres, own = rng.normal(size=(60, 8)), rng.integers(0, 7, 60)
    at = rng.choice(60, 50_000, p=rng.dirichlet(np.full(60, 2.0)))
    X = centres[at] + 0.55 * rng.normal(size=(50_000, 8))
    return X, np.where(rng.random(50_000) < 0.08, rng.integers(0, 7, 50_000), own[at])


TABLES = {
    "adult's sex": Grown(lambda: adult("sex", "relationship"), 39_000, 976, 2_000),
    "adult's marital status": Grown(lambda: adult("marital-status", "relationship"), 39_000, 976, 2_000),
    "newsgroups, twenty": Grown(lambda: newsgroups(lambda y: y), 14_000, 1_000, 1_500),
    "newsgroups, halves": Grown(lambda: newsgroups(lambda y: int(y >= 10)), 14_000, 1_000, 1_500),
    "mushroom's habitat": Grown(lambda: mushroom("habitat"), 6_000, 162, 700),
    "texas": Grown(listed, 5_000, 500, 700),
    "clouds, 5 classes": Grown(lambda: clouds(5, 20), 32_000, 1_000, 2_000),
    "clouds, 20 classes": Grown(lambda: clouds(20, 40), 32_000, 1_000, 2_000),
    "a quadratic rule": Grown(quadratic, 43_000, 1_000, 1_500),
    "clusters": Grown(clusters, 43_000, 1_000, 2_000),
}


def grown(name: str, table: Grown) -> list[tuple[float, float, float]]:
    """Print what is expected and what is had at each ε; return what the true size added, expected and had."""
    X, codes = table.load()
    order = np.random.default_rng(0).permutation(len(codes))
    cuts = np.split(order, np.cumsum([table.n, table.m, table.labelled, TEST]))[:4]
    rows = [take(X, cut) for cut in cuts]
    if not isinstance(X, np.ndarray):
        weighed = [weighed_words(rows[0], rows[1], each) for each in rows[2:]]
        rows = [*weighed[0][:2], *(each[2] for each in weighed)]
    n_classes, told = int(codes.max()) + 1, []
    side = public_side(rows[1], tuple(range(n_classes)))
    direct = side.direct("auto")
    along = np.vstack([direct.along(side.schema.parsed(rows[part])[0]) for part in (0, 2, 3)])
    of_all = np.concatenate([codes[cuts[part]] for part in (0, 2, 3)])
    private, labelled, scored = np.split(np.arange(len(of_all)), [table.n, table.n + table.labelled])
    for epsilon in EPSILONS:
        outline = direct.outline(n_classes=n_classes, n_units=table.n, epsilon=epsilon, delta=DELTA)
        z = outline.integers(along)

        def right(part: Any, seed: int, z: Any = z, outline: Any = outline) -> Any:
            return (
                codes_of_logits(round_logits(outline, z, of_all, part, scored, rows_each=1, share=1, seed=seed))
                == of_all[scored]
            )

        plays = played(labelled, partial(right, seed=0))
        whole, losses = (np.mean([each[at] for each in plays], axis=0) for at in (0, 1))
        size = (1 - 1 / FOLDS) * table.labelled / table.n
        added = growth(losses, whole.mean(), size=size, n_classes=n_classes).mean
        had = float(np.mean([right(private, seed).mean() for seed in range(SEEDS)])) - whole.mean()
        straight = (1 - size) * losses[:, 0].mean()
        print(
            f"{name}, ε = {epsilon:g}: {outline.dimension:.0f} effective dimensions, {whole.mean():.3f} as rehearsed; "
            f"private rows add {had:+.3f}, expected {added:+.3f}, in proportion to one over the size {straight:+.3f}",
            flush=True,
        )
        told.append((had, added, straight))
    return told


def played(labelled: Any, right: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Return which rows were right with the rows of each division, and what halves and quarters lose."""
    found, parts = [], np.array_split(np.random.default_rng(2).permutation(labelled), FOLDS)
    for part in parts:
        rows = np.random.default_rng(1).permutation(np.setdiff1d(labelled, part))
        whole = right(rows).astype(float)
        loss = [whole - np.mean([right(each) for each in np.array_split(rows, n)], axis=0) for n in (2, 4)]
        found.append((whole, np.stack(loss, axis=1)))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found: list[tuple[float, float, float]] = []
    for name, table in TABLES.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        try:
            found += grown(name, table)
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
    had, law, straight = np.array(found).T
    for what, added in (("the law", law), ("one over the size", straight)):
        off = added - had
        print(
            f"{what}: off by {off.mean():+.3f} on average, {np.abs(off).mean():.3f} in size, {np.abs(off).max():.3f} "
            f"at most; {math.sqrt((off**2).sum() / (added**2).sum()):.2f} of the correction"
        )
