"""LabelBoost's printed constants beside the largest keep-rates that give the target back; and errors beside bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from quorate.experiments.few_labels.agnostic import excess_errors
from quorate.experiments.few_labels.domain import cluster
from quorate.experiments.few_labels.draws import drawn
from quorate.experiments.measurement import Measured, standard_error, watched
from quorate.learners import (
    UNLABELLED,
    AgnosticLearner,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    PrivateLearner,
    RowsNeeded,
    SubSampling,
)
from quorate.learners.concepts import Thresholds
from quorate.learners.label_boost.learner import BoostConstants
from quorate.learners.sanitizers import Tree
from quorate.types import FloatArray, Watch

ALPHA, BETA = 0.1, 0.1
BITS = 16
WRONG = 0.2  # of the labels, for the learner that needs no true ones


def printed_against_tight(base_rows: tuple[int, ...] = (10**4, 10**6, 10**7)) -> list[Measured]:
    """Return the rows of LabelBoost's theorem with both sets of constants, for larger and larger base learners."""
    base = NoisyThreshold(concepts=Thresholds(bits=32), epsilon=1.0)
    rows = []
    sets: tuple[BoostConstants, ...] = ("paper", "tight")
    for constants, n_base in product(sets, base_rows):
        learner = LabelBoost(base=base, epsilon=1.0, alpha=ALPHA, beta=BETA, constants=constants, base_rows=n_base)
        more = {"alpha": ALPHA, "base_rows": float(n_base), **_of_theorem(learner.rows_needed())}
        method = f'constants="{constants}"'
        rows.append(Measured(data="rows of LabelBoost's theorem", method=method, epsilon=1.0, delta=0.0, more=more))
    return rows


def _of_theorem(needs: RowsNeeded) -> dict[str, float]:
    return {"labels_of_theorem": float(needs.labelled), "unlabelled_rows": float(needs.unlabelled)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Proven:
    """One learner at α = β = 0.1, to be run on as many rows as its theorem asks for; `wrong`: share of the labels."""

    name: str
    learner: PrivateLearner
    wrong: float = 0.0


def proven_learners() -> list[Proven]:
    """Return every learner of this part."""
    domain, small = Thresholds(bits=BITS), Thresholds(bits=8)
    base = NoisyThreshold(concepts=domain, epsilon=1.0, alpha=ALPHA, beta=BETA)
    either: dict[str, Any] = {"concepts": domain, "epsilon": 1.0, "alpha": ALPHA, "beta": BETA}
    return [
        Proven(name="GenericLearner, Tree", learner=GenericLearner(sanitizer=Tree(), **either)),
        Proven(name="NoisyThreshold", learner=base),
        Proven(
            name="ExponentialLearner, 2^8 points",
            learner=ExponentialLearner(concepts=small, epsilon=1.0, alpha=ALPHA, beta=BETA),
        ),
        Proven(name="EmpiricalLearner", learner=EmpiricalLearner(concepts=domain, base=base, epsilon=1.0)),
        Proven(name="SubSampling, ε = 0.1", learner=SubSampling(concepts=domain, base=base, epsilon=0.1)),
        Proven(name="LabelBoost, tight", learner=LabelBoost(base=base, **either)),
        Proven(name=f"AgnosticLearner, {WRONG:.0%} wrong", learner=AgnosticLearner(base=base, **either), wrong=WRONG),
    ]


def errors_against_bounds(*, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure each learner's error at its own theorem's rows, beside the theorem's α."""
    return [
        _row(proven, _errors(proven, repeats, seed))
        for proven in watched(watch, "errors against bounds", proven_learners())
    ]


def _errors(proven: Proven, repeats: int, seed: int) -> FloatArray:
    learner, needs = proven.learner, proven.learner.rows_needed()
    if proven.wrong:
        return excess_errors(learner, needs.labelled, proven.wrong, repeats=repeats, seed=seed)
    errors = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        population = cluster(learner.concepts.bits, rng)
        points, labels = population.sample(needs.labelled + needs.unlabelled, rng)
        if not isinstance(learner, SubSampling):  # it chooses for itself whose label to ask for
            labels[needs.labelled :] = UNLABELLED
        errors.append(population.error(drawn(learner, points, labels, seed + repeat)))
    return np.array(errors)


def _row(proven: Proven, errors: FloatArray) -> Measured:
    needs = proven.learner.rows_needed()
    return Measured(
        data="error at the theorem's rows",
        method=proven.name,
        epsilon=proven.learner.epsilon,
        delta=0.0,
        n_queries=float(needs.labelled),
        repeats=len(errors),
        accuracy_mean=1 - proven.wrong - float(errors.mean()),
        accuracy_se=standard_error(errors),
        more={
            "alpha": ALPHA,
            "beta": BETA,
            **_of_theorem(needs),
            "error_mean": float(errors.mean()),
            "error_max": float(errors.max()),
            "share_above_alpha": float(np.mean(errors > ALPHA)),
        },
    )
