"""What choosing the queries gains over a random subset of the same size, at the same noise.

    python benchmarks/strategies.py [mushroom] [a9a] [repeats]

Splits, teachers and students as in LZCW21's experiments; ε = 1, δ = 1/n, a cap of 30 % of the pool, released labels.
Accuracy is the mean over splits; the difference to the random subset is taken split by split, with its standard error.
"""

from __future__ import annotations

import sys

import numpy as np

from quorate.experiments.measurement import standard_error
from quorate.experiments.sources import a9a, mushroom, split
from quorate.experiments.table4 import LinearEnsemble
from quorate.labelling.active import CoreSet, Disagreement, KMeans, Margin, OracularCAL, Random

SETS = {"mushroom": mushroom, "a9a": a9a}
EPSILON, SHARE = 1.0, 0.3
STRATEGIES = (Random, Margin, CoreSet, KMeans, OracularCAL, Disagreement)


def compare(name: str, repeats: int) -> None:
    data = SETS[name]()
    found = {strategy: [] for strategy in STRATEGIES}
    for seed in range(repeats):
        ensemble = LinearEnsemble(split(data, seed), seed)
        for strategy in STRATEGIES:
            cap = round(SHARE * ensemble.parts.X_public.shape[0])
            found[strategy].append(ensemble.active(EPSILON, strategy(cap)))
    print(f"{name}, {repeats} splits, ε = {EPSILON:g}")
    control = np.array([each.accuracy for each in found[Random]])
    for strategy, scores in found.items():
        accuracy = np.array([each.accuracy for each in scores])
        asked = np.mean([each.n_queries for each in scores])
        gain = accuracy - control
        error = standard_error(gain) or 0.0
        print(f"  {strategy.__name__:<14}{accuracy.mean():.4f}   {gain.mean():+.4f} ± {error:.4f}   {asked:.0f} asked")


if __name__ == "__main__":
    words = sys.argv[1:]
    repeats = next((int(word) for word in words if word.isdigit()), 10)
    for name in [word for word in words if word in SETS] or SETS:
        compare(name, repeats)
