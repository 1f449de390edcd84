"""How default teachers and students of images were chosen: on training images of MNIST, which no table is scored on.

``python -m benchmarks.image_votes --data FOLDER`` takes the folder with ``mnist/``. Writers of the training images are
divided: 45 are public, 45 are held out, the others private. The unit is a writer, or a record of 300 teachers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from quorate.accounting import calibrate_sigma
from quorate.data.feature_maps.first_maps import PatchFeatures
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.experiments.mnist import upright
from quorate.experiments.sources import file_of, mnist
from quorate.students.shares import fit_process_shares, fit_vote_shares

N_DIRECTIONS, POWERS = (64, 100, 128), (0.0, 0.25, 0.5)
TEACHERS: dict[str, Any] = {
    "logistic, C = 100": LogisticRegression(C=100.0, max_iter=1_000),
    **{f"ridge, alpha = {alpha:g}": RidgeClassifier(alpha=alpha) for alpha in (0.03, 0.1, 0.3, 1.0)},
}
EPSILONS, DELTA, SEEDS, RECORD_TEACHERS = (0.5, 1.0, 2.0), 1e-5, (0, 1), 300


def divided(folder: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Return patch features and classes of public, held-out and private images, and the writers of the last."""
    train, _ = mnist(folder)
    with np.load(file_of(folder, "mnist/writers.npz")) as archive:
        writers = archive["train"]
    order = np.random.default_rng(7).permutation(np.unique(writers))
    images = upright(train.X)
    groups = (order[:45], order[45:90], order[90:])
    rows = [np.flatnonzero(np.isin(writers, each))[: 5_000 if len(each) == 45 else None] for each in groups]
    patches = PatchFeatures.fit(images[rows[0]])
    blocks = [[patches.numbers(images[each[i : i + 5_000]]) for i in range(0, len(each), 5_000)] for each in rows]
    return [np.vstack(each) for each in blocks], [train.codes[each] for each in rows], [writers[rows[2]]]


def shards(writers: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield one shard for each writer, and shards of records."""
    yield "a writer each", [np.flatnonzero(writers == each) for each in np.unique(writers)]
    rows = np.random.default_rng(1).permutation(len(writers))
    yield f"{RECORD_TEACHERS} of records", np.array_split(rows, RECORD_TEACHERS)


def students(public: Any, held: Any, truth: Any, counts: Any, epsilon: float) -> str:
    """Return the accuracy of each model of the shares, over seeds of the noise."""
    n_teachers, scores = counts.sum(axis=1).max(), {}
    sigma = calibrate_sigma(epsilon, DELTA, len(public), np.sqrt(2))
    plain = PoolCoordinates.of(public, one_unit=True)
    curved = plain.kernel(public)
    for seed in SEEDS:
        noisy = (counts + np.random.default_rng(seed).normal(0, sigma, counts.shape)) / n_teachers
        told: dict[str, Any] = {"noise_sd": sigma / n_teachers}
        fitted = {
            "linear": fit_vote_shares(public, noisy, geometry=plain, **told),
            "kernel": fit_vote_shares(public, noisy, geometry=curved, **told),
            "process": fit_process_shares(public, noisy, geometry=curved, **told),
        }
        for name, model in fitted.items():
            scores.setdefault(name, []).append(float((model(held).argmax(axis=1) == truth).mean()))
    return " ".join(f"{name} {np.mean(each):.3f}" for name, each in scores.items())


def main() -> None:
    """Print a line for each kind of directions, teacher and unit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    (public, held, private), (_, truth, labels), (writers,) = divided(parser.parse_args().data)
    for n_directions in N_DIRECTIONS:
        found_directions = PCA(n_directions, random_state=0).fit(public)
        for power in POWERS:
            lengths = found_directions.explained_variance_ ** (power / 2)
            seen = [found_directions.transform(each) / lengths for each in (public, held, private)]
            length = np.sqrt((seen[0] ** 2).sum(axis=1).mean())
            pool, others, rows = (each / length for each in seen)
            for name, teacher in TEACHERS.items():
                for unit, parts in shards(writers):
                    counts = np.zeros((len(pool), 10))
                    for part in parts:
                        counts[np.arange(len(pool)), teacher.fit(rows[part], labels[part]).predict(pool)] += 1
                    told = " | ".join(
                        f"epsilon {each:g}: {students(pool, others, truth, counts, each)}" for each in EPSILONS
                    )
                    print(f"{n_directions} directions, power {power:g}, {name}, {unit} | {told}", flush=True)


if __name__ == "__main__":
    main()
