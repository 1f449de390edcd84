"""Choose a feature set privately: each shard tries public candidates on its own rows and votes for its best.

Adult's training rows play the private data. What is asked is which set of columns predicts best, and then which single
column does. The answers are exact, and one privacy budget pays for both.

Run it with ``python examples/choose_features.py``. The imports stand at the top, so that a worker process makes them
once and not for every shard.
"""

from __future__ import annotations

import argparse
from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quorate import SubsampleAggregate
from quorate.data import load_adult

CANDIDATES = {  # public: nobody looked at the private rows to make them
    "who": ["age", "sex", "race", "native-country"],
    "work": ["workclass", "occupation", "hours-per-week"],
    "school": ["education-num"],
    "home and school": ["marital-status", "education-num", "age"],
}
COLUMNS = ["age", "education-num", "marital-status", "occupation", "hours-per-week"]


def best_features(X: Any, y: Any, candidates: dict[str, list[str]]) -> str:
    """Return the name of the candidate with the least cross-validated log-loss on this shard's rows alone."""
    frame = X.to_pandas()
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")),
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        ),
        LogisticRegression(C=0.3),
    )
    scores = {
        name: cross_val_score(model, frame[columns], y, cv=2, scoring="neg_log_loss").mean()
        for name, columns in candidates.items()
    }
    return max(scores, key=lambda name: scores[name])


def main(n_records: int, n_shards: int, epsilon: float, seed: int | None) -> None:
    """Ask both questions, and say what was answered and at what price."""
    adult = load_adult()
    private = SubsampleAggregate(
        epsilon=epsilon,
        delta=1e-6,
        n_shards=n_shards,
        cutoff=2,
        n_queries=10,
        unsafe_noise_seed=seed,
    ).fit(adult.train[:n_records], adult.train_labels[:n_records])
    sets = private.ask(best_features, CANDIDATES, name="best feature set")
    single = private.ask(best_features, {column: [column] for column in COLUMNS}, name="best single column")
    print(f"best feature set    {sets or 'declined: the shards do not agree'}")
    print(f"best single column  {single or 'declined: the shards do not agree'}")
    print(private.summary())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=32_561)
    arguments.add_argument("--shards", type=int, default=160)
    arguments.add_argument("--epsilon", type=float, default=2.0)
    arguments.add_argument("--seed", type=int, help="for tests: reproducible, therefore not private")
    told = arguments.parse_args()
    main(told.records, told.shards, told.epsilon, told.seed)
