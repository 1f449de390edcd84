"""The demo's pipeline as one would write it without quorate: no isolation, no ledger, no exact noise, no report.

Adult, half of its test rows the pool; as many teachers, answers and as much noise as the demo's recipe has; the student
is a logistic regression on the shares of the noisy counts. Then, as the demo does, noisy gradient rounds on the rows
themselves. It is the peer of ``quorate demo`` and nobody's example: its noise is that of NumPy.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quorate.data import load_adult


def train(X, y):
    return LogisticRegression().fit(X, y)


def descend(X, y, rng, rounds=20, step=4.0):
    """Noisy gradient rounds: rows of length one at most, so that no gradient is longer."""
    from quorate.accounting import calibrate_sigma

    rows = np.column_stack([np.ones(len(X)), X])
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 2) * 2
    sigma, w = calibrate_sigma(1.0, 1e-5, rounds, 2.0), np.zeros(rows.shape[1])
    for _ in range(rounds):
        slope = rows.T @ (1 / (1 + np.exp(-rows @ w)) - y)
        w -= step * (slope + rng.normal(0, sigma, len(w))) / len(rows)
    return w


def main() -> None:
    from quorate.accounting import calibrate_sigma

    rng = np.random.default_rng()
    adult = load_adult()
    private, test = adult.train.to_pandas(), adult.test.to_pandas()
    y, y_test = (np.asarray(each) == ">50K" for each in (adult.train_labels, adult.test_labels))
    order = rng.permutation(len(test))
    pool, held_out = order[: len(order) // 2], order[len(order) // 2 :]
    numbers = list(private.select_dtypes("number").columns)
    words = [name for name in private.columns if name not in numbers]
    encoder = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
    ).fit(test.iloc[pool])
    X, X_pool, X_held_out = (encoder.transform(each) for each in (private, test.iloc[pool], test.iloc[held_out]))
    K, answers = TEACHERS, len(X_pool)
    shards = rng.integers(0, K, size=len(X))
    models = Parallel(n_jobs=2)(delayed(train)(X[shards == i], y[shards == i]) for i in range(K))
    votes = sum(model.predict(X_pool).astype(np.int64) for model in models)
    sigma = calibrate_sigma(1.0, 1e-5, answers, 1.0)
    share = np.clip((votes + rng.normal(0, sigma, size=answers)) / K, 0, 1)
    twice, label = np.vstack([X_pool, X_pool]), np.repeat([True, False], len(X_pool))
    student = make_pipeline(LogisticRegression()).fit(
        twice, label, logisticregression__sample_weight=np.concatenate([share, 1 - share])
    )
    direct = descend(X, y, rng)
    assert np.mean((np.column_stack([np.ones(len(X_held_out)), X_held_out]) @ direct > 0) == y_test[held_out]) > 0.8
    without_privacy = LogisticRegression().fit(X, y)
    assert accuracy_score(y_test[held_out], without_privacy.predict(X_held_out)) > 0.8
    print(accuracy_score(y_test[held_out], student.predict(X_held_out)))


TEACHERS = 485  # as the demo has

if __name__ == "__main__":
    main()
