"""In how many dimensions the direct method learns where much privacy is spent: accuracy by the bound on them.

    python -m benchmarks.dimensions tune [table ...]      on tables that chose the bound
    python -m benchmarks.dimensions report [table ...]    on others
    python -m benchmarks.dimensions rare                  ROC-AUC where one of two classes is rare

With little privacy the noise decides how many directions of the pool can be told apart. With much of it the sample
does: n units tell no more than some share of n directions where labels are hard to predict, and a model of more of
them fits the labels that it has seen. All rows of a table but the pool and those that are scored on are private, and
the direct method is played on them in the settings and with the noise of a true run, under each of :data:`BOUNDS` on
its effective dimension. Tables of others' packages and folders are left out where they are missing.

With `rare` all but the commonest or the rarest class of a table are one class, thinned out where a share is given, and
the dimension is (4p(1 − p))^a of what it is where no share is declared, for a rare class of share p: which a of
:data:`POWERS` orders rows best. Declared, it is that of a = 1.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks import growth, planned, rules
from benchmarks.maps import TUNED as MAPPED
from benchmarks.recipe import adult
from quorate.data import take
from quorate.direct import defaults
from quorate.errors import PreconditionFailed
from quorate.experiments.sources import weighed_words
from quorate.planning.public_side import public_side
from quorate.planning.rehearsal.rehearsal import codes_of_logits, round_logits

EPSILONS, DELTA = (2.0, 4.0, 8.0), 1e-5
SPLITS, TEST, MOST_PRIVATE = 2, 4_000, 15_000

#: Bounds on the effective dimension by the number of units, beside those that always hold.
BOUNDS: dict[str, Callable[[int], float]] = {
    "none": lambda n: math.inf,
    "n/100": lambda n: n / 100,
    "n/48": lambda n: n / 48,
    "2√n": lambda n: 2 * math.sqrt(n),
    "as shipped": defaults.most_dimensions,
}

#: Loaders of rows and classes, with the rows that play the pool.
TUNED: dict[str, tuple[Callable[[], tuple[Any, Any]], int]] = {
    **{name: (table.load, table.m) for name, table in rules.TABLES.items()},
    **{name: (table.load, table.m) for name, table in growth.TABLES.items()},
    "adult's occupation": (lambda: adult("occupation"), 2_000),
}
REPORTED: dict[str, tuple[Callable[[], tuple[Any, Any]], int]] = {
    "fair": (planned.fair, 500),
    "health": (planned.health, 800),
    "diamonds": (planned.diamonds, 1_078),
}


#: Tables of benchmarks.maps that chose its settings, with the share that their rarest class is thinned out to.
RARE: tuple[tuple[str, float | None], ...] = (
    ("phoneme", 0.05), ("adult", 0.05), ("spambase", 0.03), ("ring", 0.04), ("letter", None), ("satimage", None),
)  # fmt: skip
POWERS, RARE_EPSILONS, RARE_SPLITS, RARE_ROWS = (0.0, 0.5, 1.0, 1.5), (0.5, 1.0), 3, 8_000


def with_rare_class(name: str, share: float | None) -> tuple[Any, Any]:
    """Return rows, and 1 where one is of the rarest class, thinned out to the share."""
    X, labels = MAPPED[name]()
    codes = np.unique(labels, return_inverse=True)[1]
    rare = (codes == np.argmin(np.bincount(codes))).astype(np.int64)
    if share is None:
        return X, rare
    of_class, others = np.flatnonzero(rare), np.flatnonzero(rare == 0)
    kept = np.random.default_rng(0).permutation(of_class)[: int(share / (1 - share) * len(others))]
    rows = np.concatenate([others, kept])
    return take(X, rows), rare[rows]


def areas(X: Any, rare: Any) -> dict[tuple[float, float], list[float]]:
    """Return ROC-AUC on each split by ε and power."""
    p, dimension = float(rare.mean()), defaults.wanted_dimension
    found: dict[tuple[float, float], list[float]] = {}
    for seed in range(RARE_SPLITS):
        order = np.random.default_rng(seed).permutation(len(rare))[:RARE_ROWS]
        pool, rows = np.split(order, [len(order) // 10])
        side = public_side(take(X, pool), (0, 1))
        direct = side.direct("auto")
        along = direct.along(side.schema.numbers(side.schema.parsed(take(X, rows))[0]))
        scored, private = np.split(np.arange(len(rows)), [len(order) // 4])
        for power in POWERS:
            defaults.wanted_dimension = lambda *of, rare=None, power=power: dimension(*of) * (4 * p * (1 - p)) ** power
            for epsilon in RARE_EPSILONS:
                outline = direct.outline(
                    n_classes=2, n_units=len(private), epsilon=epsilon, delta=DELTA, neighbours="add-or-remove"
                )
                how: dict[str, Any] = {"rows_each": 1, "share": 1, "seed": seed}
                told = round_logits(outline, outline.integers(along), rare[rows], private, scored, **how)
                found.setdefault((epsilon, power), []).append(roc_auc_score(rare[rows][scored], told[:, 0]))
    defaults.wanted_dimension = dimension
    return found


def rare_classes() -> None:
    """Print ROC-AUC by power, and each power's gain over none with its standard error over tables."""
    every = []
    for name, share in RARE:
        X, rare = with_rare_class(name, share)
        found = areas(X, rare)
        every.append({at: float(np.mean(values)) for at, values in found.items()})
        told = ("/".join(f"{every[-1][epsilon, power]:.3f}" for power in POWERS) for epsilon in RARE_EPSILONS)
        print(f"{name:10} {rare.mean():.3f}   " + "   ".join(told), flush=True)
    for epsilon in RARE_EPSILONS:
        for power in POWERS[1:]:
            gains = np.array([means[epsilon, power] - means[epsilon, 0.0] for means in every])
            print(f"ε = {epsilon:g}, a = {power:g}: {gains.mean():+.4f} ± {gains.std(ddof=1) / len(gains) ** 0.5:.4f}")


def compared(name: str, load: Callable[[], tuple[Any, Any]], m: int) -> dict[float, dict[str, float]]:
    """Print and return the accuracy at each ε under each bound, on average over the splits."""
    X, codes = load()
    n_classes = int(codes.max()) + 1
    found: dict[tuple[float, str], list[float]] = {}
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(codes))
        n_test = min(TEST, len(codes) // 4)
        cuts = order[:m], order[m : m + n_test], order[m + n_test :][:MOST_PRIVATE]
        pool, *others = (take(X, cut) for cut in cuts)
        if not isinstance(X, np.ndarray):
            weighed = [weighed_words(others[1], pool, each) for each in others]
            pool, others = weighed[0][1], [each[2] for each in weighed]
        side = public_side(pool, tuple(range(n_classes)))
        direct = side.direct("auto")
        along = np.vstack([direct.along(side.schema.parsed(each)[0]) for each in others])
        of_all = np.concatenate([codes[cut] for cut in cuts[1:]])
        scored, private = np.split(np.arange(len(of_all)), [n_test])
        for bound, most in BOUNDS.items():
            defaults.most_dimensions = most
            for epsilon in EPSILONS:
                outline = direct.outline(
                    n_classes=n_classes, n_units=len(private), epsilon=epsilon, delta=DELTA, neighbours="replace"
                )
                z = outline.integers(along)
                codes_told = codes_of_logits(
                    round_logits(outline, z, of_all, private, scored, rows_each=1, share=1, seed=seed)
                )
                found.setdefault((epsilon, bound), []).append(float((codes_told == of_all[scored]).mean()))
    print(f"{name}: {len(private):,} private rows, {m:,} public ones, {n_classes} classes")
    means = {at: {bound: float(np.mean(found[at, bound])) for bound in BOUNDS} for at in EPSILONS}
    for epsilon, by_bound in means.items():
        print(
            f"    ε = {epsilon:g}  " + "  ".join(f"{bound} {each:.3f}" for bound, each in by_bound.items()), flush=True
        )
    return means


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, names = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if verb not in ("tune", "report", "rare"):
        sys.exit(__doc__)
    if verb == "rare":
        rare_classes()
        sys.exit()
    every = []
    for name, (load, m) in (TUNED if verb == "tune" else REPORTED).items():
        if names and name not in names:
            continue
        try:
            every.append(compared(name, load, m))
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
    for epsilon in EPSILONS:
        for bound in list(BOUNDS)[1:]:
            gains = np.array([means[epsilon][bound] - means[epsilon]["none"] for means in every])
            print(
                f"ε = {epsilon:g}, {bound}: {gains.mean():+.4f} on average beside no bound, from {gains.min():+.3f} to "
                f"{gains.max():+.3f}"
            )
