"""What one question costs: `ask` of 250 linear teachers beside a plain scikit-learn loop, and after many earlier ones.

    python benchmarks/asking.py [--asks N] [--json]

Ours and the loop get the same question back to back, in one process with one thread, and what is told is the median of
the paired ratios of CPU time. The loop calls `predict` of 250 logistic regressions and counts; it has no noise, no
budget and no record. `durable` writes every charge and every answer to a ledger on disk, and lets go of it again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

TEACHERS, ROWS, COLUMNS = 250, 100, 50
EVERY = 10  # how often the loop runs, to so many questions of ours
WINDOW = 0.1  # share of the questions that stand for the beginning, and for the end


def made_up():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=COLUMNS)
    X = rng.normal(size=(TEACHERS * ROWS, COLUMNS))
    return X, (X @ weights + rng.normal(size=len(X)) > 0).astype(np.int64), rng


def fitted(X, y, pool, asks, ledger):
    from sklearn.linear_model import LogisticRegression

    from quorate import PrivateClassifier, PublicPool

    clf = PrivateClassifier(
        LogisticRegression(), LogisticRegression(), classes=[0, 1], epsilon=8.0, delta=1e-5, n_teachers=TEACHERS,
        queries=100, online_answers=asks, n_records=len(X), ledger=ledger, n_jobs=1,
    )  # fmt: skip
    return clf.fit(X, y, public=PublicPool(pool))


def timed(work) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def measured(clf, models, points) -> dict[str, float]:
    """Ask every point; return milliseconds of CPU at the beginning and the end, and the loop's beside them."""

    def loop(point):
        return np.bincount([model.predict(point)[0] for model in models], minlength=2)

    ours, ratios = [], []
    for i in range(len(points)):
        point = points[i : i + 1]
        ours.append(timed(lambda point=point: clf.ask(point)))
        if i % EVERY == 0:
            ratios.append(timed(lambda point=point: loop(point)) / ours[-1])
    window = max(1, int(len(ours) * WINDOW))
    first, last = np.median(ours[1 : 1 + window]), np.median(ours[-window:])
    counts = np.arange(1, len(ours))
    exponent = np.polyfit(np.log(counts), np.log(np.cumsum(ours[1:])), 1)[0]  # of the total, in the number of questions
    return {
        "asks": len(ours),
        "ratio_to_loop": float(np.median(ratios)),
        "ms_first": float(1e3 * first),
        "ms_last": float(1e3 * last),
        "last_to_first": float(last / first),
        "exponent_of_total": float(exponent),
    }


def main() -> None:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser()
    parser.add_argument("--asks", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    X, y, rng = made_up()
    parts = zip(X.reshape(TEACHERS, ROWS, COLUMNS), y.reshape(TEACHERS, ROWS), strict=True)
    found = {}
    with threadpool_limits(limits=1), tempfile.TemporaryDirectory() as folder:
        models = [LogisticRegression().fit(*part) for part in parts]
        for name, ledger in (("in memory", None), ("durable", Path(folder) / "ledger.db")):
            clf = fitted(X, y, rng.normal(size=(100, COLUMNS)), given.asks, ledger)
            found[name] = measured(clf, models, rng.normal(size=(given.asks, COLUMNS)))
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, line in found.items():
        print(
            f"{name:<10} {line['ratio_to_loop']:6.1f} times as fast as the loop; {line['asks']:,} questions, "
            f"{line['ms_first']:.2f} ms of CPU each at first, {line['ms_last']:.2f} ms at last; the total grows as "
            f"n^{line['exponent_of_total']:.2f}"
        )


if __name__ == "__main__":
    main()
