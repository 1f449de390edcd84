"""What training 250 teachers on Adult costs, and what isolation adds.

    python benchmarks/ensemble.py [train] [forks]

CPU time is that of all processes together, and stands beside the same work in a plain scikit-learn loop of the same
run, so the ratio means something on any machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np


def cpu_seconds() -> float:
    from joblib.externals.loky import get_reusable_executor

    # A child's CPU time is known once it has ended.
    get_reusable_executor().shutdown(wait=True)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measured(title, work):
    before, wall = cpu_seconds(), time.perf_counter()
    result = work()
    wall = time.perf_counter() - wall
    cpu = cpu_seconds() - before
    print(f"  {title:<58} {cpu:7.2f} s CPU {wall:7.2f} s wall")
    return result, cpu


def adult():
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from quorate.data import load_adult

    data = load_adult()
    numbers = [name for name, dtype in data.test.schema.items() if dtype.is_numeric()]
    words = [name for name in data.test.columns if name not in numbers]
    encoder = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
    )
    X_public = encoder.fit_transform(data.test.to_pandas())  # the public side
    X = encoder.transform(data.train.to_pandas())
    return X, (data.train_labels == ">50K").astype(np.int64), np.asarray(X_public)


def train() -> None:
    from sklearn.linear_model import LogisticRegression

    from quorate.ensemble import ClassifierTeacher, hash_shards, train_teachers
    from quorate.types import Secret

    X, y, _ = adult()
    K, key = 250, Secret(bytes(32))
    shards = hash_shards([row.to_bytes(8, "big") for row in range(len(y))], K, key)
    model = LogisticRegression(max_iter=1000)
    print(f"250 logistic teachers on Adult, {X.shape[1]} columns")

    def loop():
        shard = shards.reveal()
        return [LogisticRegression(max_iter=1000).fit(X[shard == i], y[shard == i]) for i in range(K)]

    plain, plain_cpu = measured("a plain loop over scikit-learn", loop)
    for n_jobs in (1, 2):
        ensemble, cpu = measured(
            f"train_teachers, n_jobs={n_jobs}, worker start included",
            lambda n_jobs=n_jobs: train_teachers(
                ClassifierTeacher(model), X, y, shards, n_teachers=K, n_classes=2, key=key, n_jobs=n_jobs
            ),
        )
        print(f"  ratio of CPU time to the plain loop: {cpu / plain_cpu:.2f}")
    same = all(
        (voter.estimator.coef_ == by_hand.coef_).all()
        for voter, by_hand in zip(ensemble.voters.reveal(), plain, strict=True)
    )
    print(f"  same coefficients to the last bit: {same}")


class Idle:
    """Trains at no cost, so that what is measured is the isolation."""

    def __init__(self, together: bool):
        self.keeps_no_global_state = together

    def train(self, _X, _y, _seed):
        from quorate.ensemble import ConstantVoter

        return ConstantVoter(0)


def forks() -> None:
    from quorate.ensemble import train_teachers
    from quorate.types import Secret

    K = 250
    X, y, shards = np.zeros((K, 1)), np.zeros(K, dtype=np.int64), Secret(np.arange(K))
    print("the price of isolation, per teacher (worker start included)")
    for together in (True, False):
        title = "batches of 16 in a process" if together else "each in a process of its own"
        _, cpu = measured(
            title,
            lambda together=together: train_teachers(
                Idle(together), X, y, shards, n_teachers=K, n_classes=2, key=Secret(bytes(32))
            ),
        )
        print(f"  {1000 * cpu / K:.1f} ms of CPU per teacher")


if __name__ == "__main__":
    parts = sys.argv[1:] or ["train", "forks"]
    if len(parts) == 1:
        {"train": train, "forks": forks}[parts[0]]()
    else:
        # Each in a process of its own, so that one part's peak memory is not another's.
        for part in parts:
            subprocess.run([sys.executable, __file__, part], check=True)
