"""What the rows that are not relabelled are good for: LWY25's transformation against plain subsampling, measured.

On thresholds whose labels are nearly coins, P(y = 1) = 1/2 ± γ, the error of a threshold tells little: about 1/γ² rows
are needed to see the best one at all, private or not. A learner that keeps a subsample of about εn/3 rows needs n to be
1/(εγ²); one that scores its labellings on all rows does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.learners import NoisyThreshold
from quorate.learners.agnostic.learner import AgnosticLearner, SubsampledAgnostic
from quorate.learners.concepts import Thresholds
from quorate.noise import SeededNoise

DOMAIN = Thresholds(bits=16)
CUT = 30_000
LEARNERS = {"all rows": AgnosticLearner, "subsample": SubsampledAgnostic}


def noisy_rows(n=20_000, flipped=0.1, seed=0):
    """Rows of a threshold, of whose labels such a share is wrong."""
    random = np.random.default_rng(seed)
    X = random.integers(0, DOMAIN.domain_size, (n, 1))
    return X, ((X[:, 0] < CUT) ^ (random.random(n) < flipped)).astype(np.int8)


def transformation(name, epsilon, alpha=0.1, beta=0.1):
    base = NoisyThreshold(concepts=DOMAIN, epsilon=1.0)
    return LEARNERS[name](concepts=DOMAIN, base=base, epsilon=epsilon, alpha=alpha, beta=beta)


def measured_excess(name, *, n, epsilon, gamma, seeds):
    """The error beyond the best threshold's, of one fit a seed: (n_seeds,); at most 2γ."""
    learner = transformation(name, epsilon)
    plan = learner._plan(n, 0, epsilon, 0.0)
    found = [learner._learn(*noisy_rows(n, 0.5 - gamma, seed), SeededNoise(seed), plan).cut for seed in seeds]
    return 2 * gamma * np.abs(np.array(found) - CUT) / DOMAIN.domain_size


@dataclass(frozen=True)
class ExtraRows:
    """Labelled rows that are proven to be enough, and how many of them no realizable learner of this price needs."""

    realizable: int
    needed: dict[str, int]

    def beyond(self, name):
        return self.needed[name] - self.realizable


def extra_rows(epsilon, alpha, beta=0.1):
    realizable = NoisyThreshold(concepts=DOMAIN, epsilon=epsilon, alpha=alpha, beta=beta).rows_needed().labelled
    needed = {name: transformation(name, epsilon, alpha, beta).rows_needed().labelled for name in LEARNERS}
    return ExtraRows(realizable, needed)
