"""How long concept classes take, beside the plain way to the same integers; and how long learners take to fit.

    python benchmarks/learners.py [--json]

CPU seconds, best of three. The plain way labels all points by all concepts, or minimises once for every dichotomy; it
runs on a smaller case where it would take hours, and the ratio is of both on that smaller case.
"""

import argparse
import json
import time

import numpy as np

from quorate.learners import AgnosticLearner, NoisyThreshold
from quorate.learners.concepts import Intervals, Rectangles, Stumps, Thresholds, relabelling_scores_by_erm
from quorate.ledger import Budget, Ledger


def mistakes_by_table(concepts, points, labels):
    return (concepts.labels(points) != labels).sum(axis=1)


def sample(concepts, n, rng):
    bits = getattr(concepts, "bits", 20)
    points = concepts.check(rng.integers(0, 1 << bits, (n, concepts.n_features)))
    noise = rng.random(n) < 0.2
    return points, ((points[:, 0] < (1 << bits) // 2) ^ noise).astype(np.uint8)


def seconds(work):
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def mistakes_case(concepts, n_concepts, n_points, small):
    rng = np.random.default_rng(0)

    def case(enumerated, counted):
        points, labels = sample(concepts, max(enumerated, counted), rng)
        found = concepts.dichotomies(points[:enumerated])
        return found, points[:counted], labels[:counted]

    found, points, labels = case(n_concepts, n_points)
    fast, _ = seconds(lambda: found.mistakes(points, labels))
    few, points, labels = case(*small)
    quick, one = seconds(lambda: few.mistakes(points, labels))
    plain, other = seconds(lambda: mistakes_by_table(few, points, labels))
    assert (one == other).all()
    return {
        "case": f"mistakes, {concepts}",
        "concepts": len(found),
        "points": n_points,
        "seconds": fast,
        "ratio": plain / quick,
    }


def relabelling_case(concepts, n_T, n_W, small):
    rng = np.random.default_rng(1)
    T, (W, labels) = sample(concepts, n_T, rng)[0], sample(concepts, n_W, rng)
    fast, (found, _) = seconds(lambda: concepts.relabelling_scores(T, W, labels))
    T, W, labels = T[: small[0]], W[: small[1]], labels[: small[1]]
    quick, (_, one) = seconds(lambda: concepts.relabelling_scores(T, W, labels))
    plain, (_, other) = seconds(lambda: relabelling_scores_by_erm(concepts, T, W, labels))
    assert (one == other).all()
    return {
        "case": f"relabelling, {concepts}",
        "concepts": len(found),
        "points": n_T + n_W,
        "seconds": fast,
        "ratio": plain / quick,
    }


def fit_case(learner, n):
    rng = np.random.default_rng(2)
    points, labels = sample(learner.concepts, n, rng)
    fast, _ = seconds(lambda: learner.set_params(ledger=Ledger(budget=Budget(1.0, 1e-6))).fit(points, labels))
    return {
        "case": f"fit, {type(learner).__name__}, {learner.concepts}",
        "concepts": learner.concepts.domain_size + 1,
        "points": n,
        "seconds": fast,
        "ratio": None,
    }


def agnostic(bits):
    concepts = Thresholds(bits)
    return AgnosticLearner(concepts=concepts, base=NoisyThreshold(concepts=concepts, epsilon=1.0), epsilon=0.1)


CASES = [
    lambda: mistakes_case(Thresholds(40), 10**6, 10**6, (1000, 10_000)),
    lambda: mistakes_case(Intervals(40), 1000, 10**6, (50, 10_000)),
    lambda: mistakes_case(Rectangles(20, 2), 60, 10_000, (20, 2000)),
    lambda: mistakes_case(Stumps(10), 1000, 10**5, (50, 2000)),
    lambda: relabelling_case(Thresholds(40), 500_000, 500_000, (1000, 1000)),
    lambda: relabelling_case(Intervals(40), 1000, 10**6, (40, 1000)),
    lambda: relabelling_case(Rectangles(20, 2), 60, 1000, (9, 50)),
    lambda: relabelling_case(Stumps(10), 200, 10_000, (30, 500)),
    lambda: fit_case(NoisyThreshold(concepts=Thresholds(60), epsilon=1.0), 20_000),
    lambda: fit_case(agnostic(16), 10**6),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [case() for case in CASES]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'case':<48}{'concepts':>10}{'points':>10}{'seconds':>9}{'plain / ours':>14}")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.0f}"
        print(f"{row['case']:<48}{row['concepts']:>10.3g}{row['points']:>10}{row['seconds']:>9.3f}{ratio:>14}")


if __name__ == "__main__":
    main()
