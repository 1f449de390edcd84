"""Ask what is no classification: the most common category of a column, a median, a yes-or-no finding.

Adult's training rows play the private data. The most common occupation could be any of fourteen, or of a million: the
number of possible values does not enter the price. A median is rounded to a public grid, so that shards can agree.

Run it with ``python examples/most_common_value.py``.
"""

from __future__ import annotations

import argparse
from typing import Any

import polars as pl

from quorate import SubsampleAggregate
from quorate.data import load_adult


def most_common(X: Any, y: Any, column: str) -> str:  # noqa: ARG001 - every question is called so
    """Return the most common value of a column on this shard; among equally common ones the first by its name."""
    counted = X.drop_nulls(column).group_by(column).len().sort(["len", column], descending=[True, False])
    return str(counted[column][0])


def median_to_ten(X: Any, y: Any, column: str) -> int:  # noqa: ARG001
    """Return the median of a column on this shard, to the nearest ten."""
    return round(X[column].median() / 10) * 10


def earn_more(X: Any, y: Any, column: str, value: str) -> bool:
    """Tell whether those with this value earn more than 50,000 dollars more often than the others."""
    high, has = pl.Series(y == ">50K"), (X[column] == value).fill_null(value=False)
    return bool(high.filter(has).mean() > high.filter(~has).mean())


def main(n_records: int, n_shards: int, epsilon: float, seed: int | None) -> None:
    """Ask five questions, and say what was answered and at what price."""
    adult = load_adult()
    private = SubsampleAggregate(
        epsilon=epsilon,
        delta=1e-6,
        n_shards=n_shards,
        cutoff=2,
        n_queries=10,
        unsafe_noise_seed=seed,
    ).fit(adult.train[:n_records], adult.train_labels[:n_records])
    answers = {
        "most common education": private.ask(most_common, "education"),
        "most common occupation": private.ask(most_common, "occupation"),
        "median hours a week, to ten": private.ask(median_to_ten, "hours-per-week"),
        "median age, to ten years": private.ask(median_to_ten, "age"),
        "do managers earn more?": private.ask(earn_more, "occupation", "Exec-managerial"),
    }
    for question, answer in answers.items():
        print(f"{question:<30}{'declined: the shards do not agree' if answer is None else answer}")
    print(private.summary())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=32_561)
    arguments.add_argument("--shards", type=int, default=160)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--seed", type=int, help="for tests: reproducible, therefore not private")
    told = arguments.parse_args()
    main(told.records, told.shards, told.epsilon, told.seed)
