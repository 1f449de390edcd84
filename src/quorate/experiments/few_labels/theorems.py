"""Rows needed where labels are wrong, against 1/ε; by LabelBoost's constants; and errors beside the theorems' bounds.

LWY25's transformation stands beside relabelling a subsample, the largest keep-rates that give the target back beside
those that are printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from quorate.experiments.few_labels.draws import LearningTask, Size, drawn, fewest_rows, measured, rows_asked
from quorate.experiments.few_labels.labels import cluster
from quorate.experiments.measurement import Measured, watched
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
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Threshold, Thresholds
from quorate.learners.label_boost.learner import BoostConstants
from quorate.learners.sanitizers import Tree
from quorate.types import FloatArray, Watch

BITS = 16
CUT = 2**14  # a quarter of the rows is below it
ALPHA = 0.01  # of the theorems for any labels
BY_THEOREM = "thresholds over 2^16 points, any labels, by theorem"
TRANSFORMED, SUBSAMPLED = "AgnosticLearner", "subsample, relabelled by itself"
BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE = (
    "subsample, no relabelling",
    "NoisyThreshold, all rows",
    "base learner, true labels",
)

_DOMAIN = Thresholds(bits=BITS)
_BASE = NoisyThreshold(concepts=_DOMAIN, epsilon=1.0)


def _plain(epsilon: float) -> PrivateLearner:
    if epsilon >= 1:
        return NoisyThreshold(concepts=_DOMAIN, epsilon=epsilon)
    return SubSampling(concepts=_DOMAIN, base=_BASE, epsilon=epsilon, n_labels=2**40, base_rows=None)


MAKERS: Mapping[str, Callable[[float], PrivateLearner]] = {
    TRANSFORMED: lambda epsilon: AgnosticLearner(concepts=_DOMAIN, base=_BASE, epsilon=epsilon, alpha=ALPHA),
    SUBSAMPLED: lambda epsilon: SubsampledAgnostic(concepts=_DOMAIN, base=_BASE, epsilon=epsilon, alpha=ALPHA),
    BASE_ON_SUBSAMPLE: _plain,
    DIRECT: lambda epsilon: NoisyThreshold(concepts=_DOMAIN, epsilon=epsilon, alpha=ALPHA),
    REALIZABLE: lambda epsilon: NoisyThreshold(concepts=_DOMAIN, epsilon=epsilon, alpha=ALPHA),
}


#: What is tried where labels say very little.
HARDEST = (TRANSFORMED, BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE)


def rows_against_epsilon(size: Size, *, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure how many rows each way needs for the same excess error, at every ε.

    *Extra* rows are those beyond what the base learner needs, at the same ε and error, where the labels are true.
    """
    rows = []
    steps = [(task, epsilon) for task in size.tasks for epsilon in task.epsilons]
    for task, epsilon in watched(watch, "rows against 1/ε", steps):
        names = HARDEST if task.hardest else tuple(MAKERS)
        searches = {name: _searched(name, epsilon, task, repeats=repeats, seed=seed) for name in names}
        alone = searches[REALIZABLE][0]
        proven = float(rows_asked(MAKERS[DIRECT](epsilon)).labelled)
        for name, (needed, excess) in searches.items():
            has_theorem = name in {TRANSFORMED, SUBSAMPLED, REALIZABLE}  # those of the others are for true labels
            in_theory = float(rows_asked(MAKERS[name](epsilon)).labelled) if has_theorem else None
            wrong = 0.0 if name == REALIZABLE else task.label_noise
            row = measured(
                "thresholds over 2^16 points, " + (f"{wrong:.4g} of labels wrong" if wrong else "labels all true"),
                name,
                excess,
                best=wrong,
                epsilon=epsilon,
                n_queries=needed,
                rows_needed=needed,
                extra_rows=None if needed is None or alone is None else needed - alone,
                rows_of_theorem=in_theory,
                extra_rows_of_theorem=None if in_theory is None else in_theory - proven,
                excess_mean=float(excess.mean()),
                excess_wanted=task.excess,
                alpha=ALPHA,
            )
            rows.append(row)
    return rows


def excess_errors(learner: PrivateLearner, n_rows: int, label_noise: float, *, repeats: int, seed: int) -> FloatArray:
    r"""Return the error beyond the best cut's on fresh points, once for each repeat; exact but for the noise.

    A cut that is off by a share of the evenly spread points errs by that share times :math:`1 - 2\eta` more.
    """
    errors = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, n_rows, repeat])
        points = rng.integers(0, 2**BITS, (n_rows, 1))
        labels = ((points[:, 0] < CUT) ^ (rng.random(n_rows) < label_noise)).astype(np.int8)
        concept = drawn(learner, points, labels, seed + repeat)
        assert isinstance(concept, Threshold)  # noqa: S101
        errors.append((1 - 2 * label_noise) * abs(concept.cut - CUT) / 2**BITS)
    return np.array(errors)


def _searched(
    name: str, epsilon: float, task: LearningTask, *, repeats: int, seed: int
) -> tuple[float | None, FloatArray]:
    learner, errors = MAKERS[name](epsilon), dict[int, FloatArray]()
    label_noise = 0.0 if name == REALIZABLE else task.label_noise
    repeats = -(-repeats // task.repeats_of)

    def error(n_rows: int) -> float:
        few = max(1, repeats // 4)
        errors[n_rows] = excess_errors(learner, n_rows, label_noise, repeats=few, seed=seed)
        if float(errors[n_rows].sum()) > repeats * task.excess:  # whatever the other draws are, as none is below 0
            return float(errors[n_rows].mean())
        errors[n_rows] = excess_errors(learner, n_rows, label_noise, repeats=repeats, seed=seed)
        return float(errors[n_rows].mean())

    needed = fewest_rows(error, task.excess, start=2048 if label_noise else 128, limit=task.most_rows)
    return (None, errors[max(errors)]) if needed is None else (float(needed), errors[needed])


def rows_of_theorems() -> list[Measured]:
    """Return the rows that both transformations' theorems ask for, by α and ε."""
    rows = []
    for alpha in (0.1, 0.05, 0.02, 0.01):
        for name in (TRANSFORMED, SUBSAMPLED):
            for epsilon in (1.0, 0.5, 0.2, 0.1):
                needed = float(rows_asked(MAKERS[name](epsilon).set_params(alpha=alpha)).labelled)
                alone = float(rows_asked(MAKERS[DIRECT](epsilon).set_params(alpha=alpha)).labelled)
                extra: dict[str, Any] = {"rows_of_theorem": needed, "extra_rows_of_theorem": needed - alone}
                rows.append(measured(BY_THEOREM, name, epsilon=epsilon, n_queries=needed, alpha=alpha, **extra))
    return rows


PROVEN: Mapping[str, Any] = {"alpha": 0.1, "beta": 0.1}  # of learners that are run on the rows of their own theorem
BOOST, BOUNDS = "rows of LabelBoost's theorem", "error at the theorem's rows"
WRONG = 0.2  # of the labels, for the learner that needs no true ones


def printed_against_tight() -> list[Measured]:
    """Return the rows of LabelBoost's theorem with both sets of constants, for larger and larger base learners."""
    base = NoisyThreshold(concepts=Thresholds(bits=32), epsilon=1.0)
    rows = []
    sets: tuple[BoostConstants, ...] = ("paper", "tight")
    for constants, n_base in product(sets, (10**4, 10**6, 10**7)):
        learner = LabelBoost(base=base, epsilon=1.0, **PROVEN, constants=constants, base_rows=n_base)
        more = {"base_rows": float(n_base), **_of_theorem(learner.rows_needed())}
        rows.append(measured(BOOST, f'constants="{constants}"', alpha=PROVEN["alpha"], **more))
    return rows


def _of_theorem(needs: RowsNeeded) -> dict[str, Any]:
    return {"labels_of_theorem": float(needs.labelled), "unlabelled_rows": float(needs.unlabelled)}


def proven_learners() -> dict[str, PrivateLearner]:
    """Return every learner of this part, at α = β = 0.1, to be run on as many rows as its theorem asks for."""
    domain, small = Thresholds(bits=BITS), Thresholds(bits=8)
    either: dict[str, Any] = {"concepts": domain, "epsilon": 1.0, **PROVEN}
    base = NoisyThreshold(**either)
    return {
        "GenericLearner, Tree": GenericLearner(sanitizer=Tree(), **either),
        "NoisyThreshold": base,
        "ExponentialLearner, 2^8 points": ExponentialLearner(**either | {"concepts": small}),
        "EmpiricalLearner": EmpiricalLearner(concepts=domain, base=base, epsilon=1.0),
        "SubSampling, ε = 0.1": SubSampling(concepts=domain, base=base, epsilon=0.1),
        "LabelBoost, tight": LabelBoost(base=base, **either),
        f"AgnosticLearner, {WRONG:.0%} wrong": AgnosticLearner(base=base, **either),
    }


def errors_against_bounds(*, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Measure each learner's error at its own theorem's rows, beside the theorem's α."""
    rows = []
    for name, learner in watched(watch, "errors against bounds", proven_learners().items()):
        needs, wrong = learner.rows_needed(), WRONG if isinstance(learner, AgnosticLearner) else 0.0
        if wrong:
            errors = excess_errors(learner, needs.labelled, wrong, repeats=repeats, seed=seed)
        else:
            errors = _errors(learner, needs, repeats, seed)
        row = measured(
            BOUNDS,
            name,
            errors,
            best=wrong,
            epsilon=learner.epsilon,
            n_queries=float(needs.labelled),
            **PROVEN,
            **_of_theorem(needs),
            error_mean=float(errors.mean()),
            error_max=float(errors.max()),
            share_above_alpha=float(np.mean(errors > PROVEN["alpha"])),
        )
        rows.append(row)
    return rows


def _errors(learner: PrivateLearner, needs: RowsNeeded, repeats: int, seed: int) -> FloatArray:
    errors = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        population = cluster(learner.concepts.bits, rng)
        points, labels = population.sample(needs.labelled + needs.unlabelled, rng)
        if not isinstance(learner, SubSampling):  # it chooses for itself whose label to ask for
            labels[needs.labelled :] = UNLABELLED
        errors.append(population.error(drawn(learner, points, labels, seed + repeat)))
    return np.array(errors)
