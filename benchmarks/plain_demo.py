"""The demo's pipeline as one would write it without quorate: no isolation, no ledger, no exact noise, no report.

    python -m benchmarks.plain_demo [--one-form]

Adult, half of its test rows the pool; as many teachers, answers and as much noise as the demo's recipe has. The student
learns the shares of the noisy counts, and as in the demo its form is chosen: linear, linear in the features of a
kernel, or ridge regression in these, whichever predicts noisy shares best over three folds; the kernel is computed once
for all of them. With ``--one-form`` there is no such choice and the student is linear: nine fits fewer than the demo's
comparison takes, and a student that is less accurate by about a point. Then, as the demo does, noisy gradient rounds on
the rows themselves. It is the peer of ``quorate demo`` and nobody's example: its noise is that of NumPy.
"""

from __future__ import annotations

import sys

import numpy as np
from joblib import Parallel, delayed
from sklearn.compose import make_column_transformer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold
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


def softmax(X, share):
    """A logistic regression on every point twice, weighted by the shares of the classes."""
    share = np.clip(share, 0, 1)
    twice, label = np.vstack([X, X]), np.repeat([True, False], len(X))
    model = LogisticRegression().fit(twice, label, sample_weight=np.concatenate([share, 1 - share]))
    return lambda rows: model.predict_proba(rows)[:, 1]


def ridge(X, share, noise_sd):
    """Kernel ridge regression whose penalty is the known noise over the variance of a unanimous share."""
    return Ridge(alpha=4 * noise_sd**2).fit(X, share).predict


def student_of(X, share, noise_sd):
    """The form that predicts noisy shares best over three folds, fitted on all of them; from rows to shares."""
    kernel = Nystroem(gamma=0.5 / X.var(axis=0).sum(), n_components=500, random_state=0).fit(X)
    Z = kernel.transform(X)
    forms = [(softmax, X), (softmax, Z), (lambda rows, some: ridge(rows, some, noise_sd), Z)]
    errors = [
        np.mean(
            [np.mean((fit(rows[rest], share[rest])(rows[fold]) - share[fold]) ** 2) for rest, fold in FOLDS.split(X)]
        )
        for fit, rows in forms
    ]
    best = int(np.argmin(errors))
    fit, rows = forms[best]
    model = fit(rows, share)
    return model if best == 0 else lambda rows: model(kernel.transform(rows))


FOLDS = KFold(3, shuffle=True, random_state=0)


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
    share = (votes + rng.normal(0, sigma, size=answers)) / K
    student = softmax(X_pool, share) if "--one-form" in sys.argv else student_of(X_pool, share, sigma / K)
    direct = descend(X, y, rng)
    assert np.mean((np.column_stack([np.ones(len(X_held_out)), X_held_out]) @ direct > 0) == y_test[held_out]) > 0.8
    without_privacy = LogisticRegression().fit(X, y)
    assert accuracy_score(y_test[held_out], without_privacy.predict(X_held_out)) > 0.8
    print(accuracy_score(y_test[held_out], student(X_held_out) > 0.5))


TEACHERS = 485  # as the demo has

if __name__ == "__main__":
    main()
