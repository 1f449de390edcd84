"""Small seeded fits of the private learners."""

from functools import partial

import numpy as np
from sklearn.base import clone
from tests.golden.pinned import SEED, guarantee, ledger, lines, pinned

from quorate.learners import (
    UNLABELLED,
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Intervals, PointFunctions, Thresholds
from quorate.learners.sanitizers import BLR, MWEM, Tree

CUTS, POINTS, BITS = Thresholds(bits=4), PointFunctions(bits=4), 4

X = ((np.arange(520) * 7) % 2**BITS).reshape(-1, 1)
#: How many of the rows, from the first, have a label; 120 where nothing is said.
N_LABELLED = {"SubSampling": len(X), "LabelBoost with the paper's constants": 400}

BASE = ExponentialLearner(concepts=CUTS, epsilon=1.0)
LEARNERS = {
    "ExponentialLearner": ExponentialLearner(concepts=CUTS, epsilon=2.0),
    "ExponentialLearner of intervals": ExponentialLearner(
        concepts=Intervals(bits=3), epsilon=2.0, selection="exponential"
    ),
    "NoisyThreshold": NoisyThreshold(concepts=CUTS, epsilon=2.0),
    "EmpiricalLearner": EmpiricalLearner(concepts=CUTS, base=BASE, epsilon=2.0),
    "SubSampling": SubSampling(concepts=CUTS, base=BASE, epsilon=2.0, n_labels=60),
    "GenericLearner with a tree": GenericLearner(concepts=CUTS, sanitizer=Tree(), epsilon=2.0),
    "GenericLearner with BLR": GenericLearner(concepts=Thresholds(bits=2), sanitizer=BLR(size=3), epsilon=2.0),
    "GenericLearner with MWEM": GenericLearner(concepts=POINTS, sanitizer=MWEM(rounds=2), epsilon=2.0),
    "LabelBoost": LabelBoost(concepts=CUTS, base=BASE, epsilon=2.0, base_rows=40),
    "LabelBoost with the paper's constants": LabelBoost(concepts=CUTS, base=BASE, epsilon=2.0, constants="paper"),
    "AgnosticLearner": AgnosticLearner(concepts=CUTS, base=BASE, epsilon=2.0),
    "AgnosticPrediction": AgnosticPrediction(concepts=CUTS, epsilon=2.0, n_queries=2),
    "SubsampledAgnostic": SubsampledAgnostic(concepts=CUTS, base=BASE, epsilon=2.0),
}


def fitted(learner, n_labelled):
    with pinned(), ledger(2.0) as book:
        made = clone(learner).set_params(ledger=book, unsafe_noise_seed=SEED)
        rows = X % 2**made.concepts.bits
        made.fit(rows, np.where(np.arange(len(rows)) < n_labelled, (rows[:, 0] < 9).astype(int), UNLABELLED))
        released = {}
        if isinstance(made, AgnosticPrediction):
            released["asked"] = made.ask(rows[:2]).tolist()
        else:
            released["concept"] = repr(made.concept_)
            released["predictions"] = made.predict(np.unique(rows, axis=0)).tolist()
        return {"guarantee": guarantee(made.guarantee_), "ledger": lines(book), "released": released}


def cases():
    return {
        f"learner, {name}": partial(fitted, learner, N_LABELLED.get(name, 120)) for name, learner in LEARNERS.items()
    }
