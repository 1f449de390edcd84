"""Rows needed where labels are wrong, against 1/ε: LWY25's transformation beside relabelling a subsample."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from quorate.experiments.few_labels.draws import LearningTask, Size, drawn, fewest_rows, rows_asked
from quorate.experiments.measurement import Measured, standard_error, watched
from quorate.learners import AgnosticLearner, NoisyThreshold, PrivateLearner, SubsampledAgnostic, SubSampling
from quorate.learners.concepts import Threshold, Thresholds
from quorate.types import FloatArray, Watch

BITS = 16
CUT = 2**14  # a quarter of the rows is below it
ALPHA = 0.01  # of the theorems
TRANSFORMED, SUBSAMPLED = "AgnosticLearner", "subsample, relabelled by itself"
BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE = (
    "subsample, no relabelling",
    "NoisyThreshold, all rows",
    "base learner, true labels",
)

Maker = Callable[[float], PrivateLearner]

_DOMAIN = Thresholds(bits=BITS)
_BASE = NoisyThreshold(concepts=_DOMAIN, epsilon=1.0)


def _plain(epsilon: float) -> PrivateLearner:
    if epsilon >= 1:
        return NoisyThreshold(concepts=_DOMAIN, epsilon=epsilon)
    return SubSampling(concepts=_DOMAIN, base=_BASE, epsilon=epsilon, n_labels=2**40, base_rows=None)


MAKERS: Mapping[str, Maker] = {
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
            in_theory = _theory(name, MAKERS[name](epsilon))
            more: dict[str, float | str | None] = {
                "rows_needed": needed,
                "extra_rows": None if needed is None or alone is None else needed - alone,
                "rows_of_theorem": in_theory,
                "extra_rows_of_theorem": None if in_theory is None else in_theory - proven,
            }
            rows.append(_row(name, epsilon, needed, excess, more, task))
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


def _theory(name: str, learner: PrivateLearner) -> float | None:
    if name in {TRANSFORMED, SUBSAMPLED, REALIZABLE}:
        return float(rows_asked(learner).labelled)
    return None  # their theorems are for true labels


def _row(
    name: str,
    epsilon: float,
    needed: float | None,
    excess: FloatArray,
    more: Mapping[str, float | str | None],
    task: LearningTask,
) -> Measured:
    clean = name == REALIZABLE
    best = 0.0 if clean else task.label_noise
    return Measured(
        data="thresholds over 2^16 points, " + ("labels all true" if clean else f"{best:.4g} of labels wrong"),
        method=name,
        epsilon=epsilon,
        delta=0.0,
        n_queries=needed,
        repeats=len(excess),
        accuracy_mean=1 - best - float(excess.mean()),
        accuracy_se=standard_error(excess),
        more={**more, "excess_mean": float(excess.mean()), "excess_wanted": task.excess, "alpha": ALPHA},
    )


def rows_of_theorems(alphas: tuple[float, ...] = (0.1, 0.05, 0.02, 0.01)) -> list[Measured]:
    """Return the rows that both transformations' theorems ask for, by α and ε."""
    rows = []
    for alpha in alphas:
        for name in (TRANSFORMED, SUBSAMPLED):
            for epsilon in (1.0, 0.5, 0.2, 0.1):
                needed = float(rows_asked(MAKERS[name](epsilon).set_params(alpha=alpha)).labelled)
                alone = float(rows_asked(MAKERS[DIRECT](epsilon).set_params(alpha=alpha)).labelled)
                rows.append(
                    Measured(
                        data="thresholds over 2^16 points, any labels, by theorem",
                        method=name,
                        epsilon=epsilon,
                        delta=0.0,
                        n_queries=needed,
                        more={"alpha": alpha, "rows_of_theorem": needed, "extra_rows_of_theorem": needed - alone},
                    )
                )
    return rows
