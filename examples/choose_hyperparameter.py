"""Choose a hyper-parameter privately: each shard cross-validates public candidates and votes for its best.

A search over the pooled private rows is a release like any other, and an unpaid one. Here the strength of a logistic
regression's penalty is chosen on Adult: among values a factor of 100 apart, one is best on nearly every shard; among
neighbouring values shards disagree, and the question is declined rather than answered by chance.

Run it with ``python examples/choose_hyperparameter.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate import SubsampleAggregate
from quorate.data import load_adult

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def best_strength(X: Any, y: Any, strengths: Sequence[str]) -> str:
    """Return the C with the least cross-validated log-loss on this shard's rows alone.

    The candidates are text, since a float is no value of a discrete range.
    """
    scores = {
        C: cross_val_score(
            make_pipeline(StandardScaler(), LogisticRegression(C=float(C))), X, y, cv=3, scoring="neg_log_loss"
        ).mean()
        for C in strengths
    }
    return max(scores, key=lambda C: scores[C])


def main(n_records: int, n_shards: int, epsilon: float, seed: int | None) -> None:
    """Ask for the best among far and among near candidates, and say what was answered and at what price."""
    adult = load_adult()
    private = SubsampleAggregate(
        epsilon=epsilon,
        delta=1e-6,
        n_shards=n_shards,
        cutoff=2,
        n_queries=10,
        unsafe_noise_seed=seed,
    ).fit(adult.train[:n_records].select(NUMBERS).to_numpy(), adult.train_labels[:n_records])
    for name, strengths in {
        "C among 0.0001, 0.01, 1": ("0.0001", "0.01", "1"),
        "C among 0.5, 0.7, 1, 1.4": ("0.5", "0.7", "1", "1.4"),
    }.items():
        answer = private.ask(best_strength, strengths, name=name)
        print(f"{name:<28}{answer or 'declined: the shards do not agree'}")
    print(private.summary())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=32_561)
    arguments.add_argument("--shards", type=int, default=160)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--seed", type=int, help="for tests: reproducible, therefore not private")
    told = arguments.parse_args()
    main(told.records, told.shards, told.epsilon, told.seed)
