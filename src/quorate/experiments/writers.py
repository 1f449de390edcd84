"""MNIST where the unit is who wrote a digit: 539 writers, about 111 digits each; votes beside direct methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from quorate.arguments import count, one_of
from quorate.data import PublicPool
from quorate.direct.config import DirectConfig
from quorate.direct.descend import descend
from quorate.direct.model import published_model
from quorate.direct.prepare import prepare_direct
from quorate.direct.task import DirectTask
from quorate.experiments.measurement import Experiment, Scored, scored, summed
from quorate.experiments.mnist import DEFAULT, DELTA, N_PUBLIC, direct_score, upright, votes
from quorate.experiments.noisy_gradient_descent import PLAIN
from quorate.experiments.sources import LabelledTable, Split, folder_of_files, found, mnist
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise
from quorate.release.keys import fingerprint_key
from quorate.types import IntArray, Secret

EPSILONS = (0.5, 1.0, 2.0)
CLIPS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the default's clip; the grid

FIXED, BEST = "public coordinates, clip by default, direct", "public coordinates, best clip of a grid, direct"
METHODS = (DEFAULT, FIXED, BEST, PLAIN)
NOTES = (
    (
        "the unit is a writer; accounting is exact, for adding, removing or replacing one writer, and for replacing "
        "one by plain noisy gradient descent"
    ),
    (
        f"best clip of a grid: the best on the test images of {', '.join(f'{clip:g}' for clip in CLIPS)} times the "
        "default; nobody could make that choice, and no guarantee covers it"
    ),
    "noise is seeded so that the table can be made again: these runs carry no guarantee, and their rows are public",
)


def reproduce_writers(
    *,
    repeats: int = 1,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    files: Path | None = None,
    command: str = "quorate reproduce writers",
    watch: Callable[[str, int, int], None] | None = None,
) -> Experiment:
    """Learn digits from writers, each of whom is protected with all that they wrote.

    `repeats`: divisions of the test images into 5,000 public and 5,000 held out. The first is the published order's
        halves.
    `epsilons`: budgets; δ is 1e-5.
    `methods`: among :data:`METHODS`; all by default.
    `seed`: of divisions, shards and noise.
    `files`: where the data set is, with ``mnist/writers.npz``.
    `command`: for the record.
    `watch`: ``watch(stage, done, total)``.

    Raises PreconditionFailed if the data set is not there.
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = tuple(one_of("method", name, METHODS) for name in methods or METHODS)
    folder = folder_of_files(files)
    with np.load(found(folder, "mnist/writers.npz")) as archive:
        writers = archive["train"]
    train, test = mnist(folder)
    scores: dict[tuple[str, float], list[Scored]] = {}
    for repeat in range(repeats):
        if watch:
            watch("writers", repeat, repeats)
        parts = _divided(train, test, repeat, seed)
        for epsilon in epsilons:
            for method, score in _scores(chosen, parts, writers, epsilon, seed + repeat):
                scores.setdefault((method, epsilon), []).append(score)
    if watch:
        watch("writers", repeats, repeats)
    n_writers = len(np.unique(writers))
    return Experiment(
        name="writers",
        title=f"MNIST by writer: {n_writers:,} writers with {len(writers):,} digits, {N_PUBLIC:,} public images",
        rows=tuple(
            summed(told, data="mnist, by writer", method=method, epsilon=epsilon, delta=DELTA)
            for (method, epsilon), told in scores.items()
        ),
        notes=NOTES,
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
    )


def _divided(train: LabelledTable, test: LabelledTable, repeat: int, seed: int) -> Split:
    shown = upright(test.X)
    order = np.random.default_rng(seed + repeat).permutation(len(shown)) if repeat else np.arange(len(shown))
    pool, held_out = order[:N_PUBLIC], order[N_PUBLIC:]
    return Split(
        name="mnist",
        X_private=upright(train.X),
        y_private=train.codes,
        X_public=shown[pool],
        X_test=shown[held_out],
        y_test=test.codes[held_out],
    )


def _scores(
    chosen: Sequence[str], parts: Split, writers: IntArray, epsilon: float, seed: int
) -> list[tuple[str, Scored]]:
    """Fit the chosen methods at one budget."""
    made: dict[str, Scored] = {}
    if DEFAULT in chosen:
        made[DEFAULT] = votes(parts, epsilon, seed, groups=writers)
    if FIXED in chosen or BEST in chosen:
        by_clip = at_clips(parts, writers, epsilon, seed, CLIPS if BEST in chosen else (1.0,))
        made[FIXED] = by_clip[1.0]
        made[BEST] = max(by_clip.values(), key=lambda each: each.accuracy)
    if PLAIN in chosen:
        made[PLAIN] = direct_score(PLAIN, parts, epsilon, seed, groups=writers)
    return [(method, made[method]) for method in chosen]


def at_clips(
    parts: Split, writers: IntArray, epsilon: float, seed: int, factors: Sequence[float]
) -> dict[float, Scored]:
    """Go the rounds of the direct method with each clip; coordinates are the same for all."""
    asked: dict[str, Any] = {"classes": list(range(10)), "epsilon": epsilon, "delta": DELTA, "feature_map": "rbf"}
    task = prepare_direct(
        DirectConfig(**asked, n_records=len(np.unique(writers)), neighbours="replace"),  # as the plain method's ε
        parts.X_private,
        parts.y_private,
        public=PublicPool(parts.X_public),
        groups=writers,
        fingerprint_key=fingerprint_key(None),
        noise=SeededNoise(seed),
    )
    default, made, units = task.plan.settings.clip, {}, task.units()
    for factor in factors:
        clip = factor * default
        grid, settings = replace(task.plan.grid, clip=clip), replace(task.plan.settings, clip=clip)
        model = _fitted(replace(task, plan=replace(task.plan, grid=grid, settings=settings)), units, epsilon)
        score = scored(model.predict(parts.X_test), parts.y_test, clip=clip, dimension=task.plan.dimension)
        made[factor] = score
    return made


def _fitted(task: DirectTask, units: Secret[Any], epsilon: float) -> Any:
    """Go the rounds of one plan on private rows that are in its coordinates already."""
    with Ledger(budget=Budget(epsilon, DELTA)) as ledger:
        reservation = task.charge_on(ledger).reserve(ledger)
        weights, _ = descend(task.plan, units, reservation, task.noise)
    return published_model(task.plan, task.schema, weights, task.classes)
