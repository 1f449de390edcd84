"""MNIST where the unit is who wrote a digit: 539 writers, about 111 digits each; votes beside direct methods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from quorate.arguments import count, one_of
from quorate.data import PublicPool
from quorate.direct.config import DirectConfig
from quorate.direct.descend import descend
from quorate.direct.flow import model_of
from quorate.direct.prepare import prepare_direct
from quorate.direct.task import DirectTask
from quorate.experiments.measurement import Experiment, Scored, repeated, scored, summed
from quorate.experiments.mnist import DEFAULT, DELTA, N_PUBLIC, Division, direct_score, upright_digits, votes
from quorate.experiments.noisy_gradient_descent import PLAIN
from quorate.experiments.sources import Split, file_of, folder_of_files
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise
from quorate.release.keys import fingerprint_key
from quorate.types import IntArray, Secret, Watch

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
    watch: Watch | None = None,
) -> Experiment:
    """Learn digits from writers, each of whom is protected with all that they wrote; as :func:`reproduce_mnist`.

    `methods`: among :data:`METHODS`. `files`: with ``mnist/writers.npz`` too.
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = tuple(one_of("methods", name, METHODS) for name in methods or METHODS)
    folder = folder_of_files(files)
    with np.load(file_of(folder, "mnist/writers.npz")) as archive:
        writers = archive["train"]
    train, test = upright_digits(folder)
    cells = [(method, epsilon) for epsilon in epsilons for method in chosen]

    def prepared(repeat: int) -> Writers:
        division = Division(train, test, repeat, seed)
        return Writers(division.parts, writers, division.seed, CLIPS if BEST in chosen else (1.0,))

    scores = repeated("writers", repeats, cells, prepared, Writers.score, watch=watch)
    n_writers = len(np.unique(writers))
    return Experiment(
        name="writers",
        title=f"MNIST by writer: {n_writers:,} writers with {len(writers):,} digits, {N_PUBLIC:,} public images",
        rows=tuple(
            summed(repeats_of, data="mnist, by writer", method=method, epsilon=epsilon, delta=DELTA)
            for (method, epsilon), repeats_of in scores.items()
        ),
        notes=NOTES,
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
    )


class Writers:
    """One division of the images, and who wrote those that play the private ones; the grid of clips is gone once."""

    def __init__(self, parts: Split, writers: IntArray, seed: int, clips: Sequence[float]) -> None:
        self.parts, self.writers, self.seed, self.clips = parts, writers, seed, clips
        self._by_clip: dict[float, dict[float, Scored]] = {}

    def score(self, method: str, epsilon: float | None) -> Scored:
        """Fit one method at one budget."""
        assert epsilon is not None  # noqa: S101  no line of this table is without one
        if method == DEFAULT:
            return votes(self.parts, epsilon, self.seed, groups=self.writers)
        if method == PLAIN:
            return direct_score(PLAIN, self.parts, epsilon, self.seed, groups=self.writers)
        if epsilon not in self._by_clip:
            self._by_clip[epsilon] = at_clips(self.parts, self.writers, epsilon, self.seed, self.clips)
        by_clip = self._by_clip[epsilon]
        return by_clip[1.0] if method == FIXED else max(by_clip.values(), key=lambda score: score.accuracy)


def at_clips(
    parts: Split, writers: IntArray, epsilon: float, seed: int, factors: Sequence[float]
) -> dict[float, Scored]:
    """Go the rounds of the direct method with each clip; coordinates are the same for all."""
    task = prepare_direct(
        DirectConfig(
            classes=list(range(10)),
            epsilon=epsilon,
            delta=DELTA,
            feature_map="rbf",
            n_records=len(np.unique(writers)),
            neighbours="replace",  # as the plain method's ε
        ),
        parts.X_private,
        parts.y_private,
        public=PublicPool(parts.X_public),
        groups=writers,
        fingerprint_key=fingerprint_key(None),
        noise=SeededNoise(seed),
    )
    default, scores, units = task.plan.settings.clip, {}, task.units()
    for factor in factors:
        clip = factor * default
        grid, settings = replace(task.plan.grid, clip=clip), replace(task.plan.settings, clip=clip)
        model = _fitted(replace(task, plan=replace(task.plan, grid=grid, settings=settings)), units, epsilon)
        scores[factor] = scored(model.predict(parts.X_test), parts.y_test, clip=clip, dimension=task.plan.dimension)
    return scores


def _fitted(task: DirectTask, units: Secret[Any], epsilon: float) -> Any:
    """Go the rounds of one plan on private rows that are in its coordinates already."""
    with Ledger(budget=Budget(epsilon, DELTA)) as ledger:
        reservation = task.charge_on(ledger).reserve(ledger)
        weights = descend(task.plan, units, reservation, task.noise).result()
    return model_of(task, weights)
