"""Every class with every learner on 20,000 rows: it fits, or the refusal names what does; and which asks for less."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from quorate.errors import InvalidParameter, QuorateError
from quorate.experiments.few_labels.adult import coarse_stumps
from quorate.experiments.few_labels.draws import chooser, drawn, measured, rows_asked
from quorate.experiments.few_labels.labels import cluster
from quorate.experiments.measurement import Measured, watched
from quorate.learners import (
    UNLABELLED,
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    PrivateLearner,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.amplification import smallest_count
from quorate.learners.concepts import FiniteClass, Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.sanitizers import MWEM, Boxes, Tree
from quorate.types import IntArray, Watch

FITS: Final = "fits at n = 20,000"
N_ROWS, N_LABELS = 20_000, 2_000
LEVELS: Final = tuple(product((0.0, 1.0, 2.0, 3.0), repeat=6))
HUNDREDS: Final = tuple((float(point),) for point in range(0, 1 << 16, 1 << 8))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One class, and what its learners need of it; `sizes`: values of each column."""

    name: str
    concepts: ConceptClass
    sizes: tuple[int, ...]
    sanitizer: Any
    domain: Any = field(default=None, repr=False)

    def rows(self) -> tuple[IntArray, IntArray]:
        """Return rows, and labels of which most are hidden."""
        random = np.random.default_rng(len(self.name))
        X = np.column_stack([random.integers(0, size, N_ROWS) for size in self.sizes])
        return X, (X[:, 0] < self.sizes[0] // 2).astype(np.int64)


def cases() -> list[Case]:
    """Return a class of each kind."""
    fine = 1 << 16
    return [
        Case(name="Thresholds(16)", concepts=Thresholds(16), sizes=(fine,), sanitizer=Tree(), domain=HUNDREDS),
        Case(name="Intervals(16)", concepts=Intervals(16), sizes=(fine,), sanitizer=Tree(), domain=HUNDREDS),
        Case(name="PointFunctions(16)", concepts=PointFunctions(16), sizes=(fine,), sanitizer=Tree(), domain=HUNDREDS),
        Case(
            name="Rectangles(16, 2)",
            concepts=Rectangles(16, 2),
            sizes=(fine, fine),
            sanitizer=Boxes(),
            domain=tuple(product(range(0, fine, fine // 16), repeat=2)),
        ),
        Case(name="Rectangles((2, 2, 1), 3)", concepts=Rectangles((2, 2, 1), 3), sizes=(4, 4, 2), sanitizer=MWEM()),
        Case(name="Stumps(6)", concepts=Stumps(6), sizes=(4,) * 6, sanitizer=MWEM(domain=LEVELS), domain=LEVELS),
        Case(
            name="FiniteClass, 38",
            concepts=FiniteClass(coarse_stumps(), n_features=6),
            sizes=(4,) * 6,
            sanitizer=MWEM(domain=LEVELS),
        ),
    ]


def learners(case: Case) -> Mapping[str, Any]:
    """Return every learner for a class, at ε = 1."""
    whole = ExponentialLearner(concepts=case.concepts, domain=case.domain, epsilon=1.0)
    base: PrivateLearner = whole
    if isinstance(case.concepts, Thresholds):
        base = NoisyThreshold(concepts=case.concepts, epsilon=1.0)
    anything: Any = case.concepts
    return {
        "NoisyThreshold": NoisyThreshold(concepts=anything, epsilon=1.0),
        "ExponentialLearner": whole,
        "GenericLearner": GenericLearner(concepts=case.concepts, sanitizer=case.sanitizer, epsilon=1.0),
        "SubSampling": SubSampling(base=base, epsilon=1.0),
        "EmpiricalLearner": EmpiricalLearner(base=base, epsilon=1.0),
        "LabelBoost": LabelBoost(base=base, epsilon=1.0),
        "AgnosticLearner": AgnosticLearner(base=base, epsilon=1.0),
        "AgnosticPrediction": AgnosticPrediction(concepts=case.concepts, epsilon=1.0),
        "SubsampledAgnostic": SubsampledAgnostic(base=base, epsilon=1.0),
    }


def fitted(case: Case, name: str, learner: Any, seed: int) -> tuple[float, str | None]:
    """Fit, and return the CPU seconds, and what a refusal names that fits; None where there was none."""
    X, y = case.rows()
    few = name in {"GenericLearner", "LabelBoost"}
    labels = np.where(np.arange(N_ROWS) < N_LABELS, y, UNLABELLED) if few else y
    begun = time.process_time()
    try:
        learner.set_params(unsafe_noise_seed=seed).fit(X, labels)
    except InvalidParameter as refusal:
        instead = refusal.instead
        if not instead:
            raise
        return time.process_time() - begun, instead
    return time.process_time() - begun, None


def every_class_with_every_learner(*, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Fit all of them once."""
    rows = []
    for case in watched(watch, "every class with every learner", cases()):
        for name, learner in learners(case).items():
            seconds, instead = fitted(case, name, learner, seed)
            figures: dict[str, Any] = {"cpu_seconds": round(seconds, 2), "instead": instead}
            rows.append(measured(f"{FITS}: {case.name}", name, repeats=1, **figures))
    return rows


PAYS = "labels of a construction, and of its base learner alone"
BITS, BETA = 32, 0.1
EPSILONS, ALPHAS = (1.0, 0.1, 0.01), (0.1, 0.01)
GRID = Thresholds(bits=BITS)

#: Unlabelled rows of a run: enough for the tree's noise on points in a cluster, and far fewer than the theorem's.
UNLABELLED_ROWS = {1.0: 60_000, 0.1: 300_000, 0.01: 3_000_000}
_SHARED = 4  # labelled samples for one sanitized table


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One construction at one ε and α, beside the base learner at the price and the error of the whole."""

    name: str
    learner: Any
    alone: NoisyThreshold
    any_labels: bool = False
    case: str = "not known"


def base_at(epsilon: float, alpha: float) -> NoisyThreshold:
    """Return the base learner of this part."""
    return NoisyThreshold(concepts=GRID, epsilon=epsilon, alpha=alpha, beta=BETA)


def cells(epsilon: float, alpha: float) -> list[Cell]:
    """Return every construction at one ε and α."""
    alone = base_at(epsilon, alpha)
    target: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "beta": BETA}
    inner = base_at(4.0 if epsilon >= 1 else 1.0, alpha)  # an ε* above ε is what a secret sample buys
    base: dict[str, Any] = {"base": base_at(1.0, alpha)}
    boost = LabelBoost(**base, **target)
    return [
        Cell(
            name="GenericLearner, Tree",
            learner=GenericLearner(concepts=GRID, sanitizer=Tree(), **target),
            alone=alone,
            case="fine grids with unlabelled rows",
        ),
        Cell(
            name=f"SubSampling, base ε = {inner.epsilon:g}",
            learner=SubSampling(base=inner, epsilon=epsilon),
            alone=alone,
            case="many rows, and labels that are asked for",
        ),
        Cell(
            name="LabelBoost",
            learner=boost,
            alone=alone,
            case=f"by theorem, a base learner that needs {pays_from(boost):,} labels or more; none is shipped, no run",
        ),
        Cell(
            name="EmpiricalLearner",
            learner=EmpiricalLearner(base=base_at(1.0, alpha), epsilon=epsilon),
            alone=alone,
            case="not known: it buys a bound for the rows as they are",
        ),
        Cell(
            name="AgnosticLearner",
            learner=AgnosticLearner(**base, **target),
            alone=alone,
            any_labels=True,
            case=against_a_subsample(epsilon, alpha),
        ),
        Cell(name="SubsampledAgnostic", learner=SubsampledAgnostic(**base, **target), alone=alone, any_labels=True),
        Cell(
            name="AgnosticPrediction, 1 query",
            learner=AgnosticPrediction(concepts=GRID, **target),
            alone=alone,
            any_labels=True,
        ),
    ]


def pays_from(boost: LabelBoost) -> int:
    """Return from how many rows of its base learner on LabelBoost asks for fewer labels than so many."""

    def fewer(n_base: int) -> bool:
        return LabelBoost(**boost.get_params(deep=False) | {"base_rows": n_base}).rows_needed().labelled < n_base

    return smallest_count(fewer, 1_000)


def against_a_subsample(epsilon: float, alpha: float) -> str:
    """Say where LWY25's transformation beats the one before it, for a base learner that needs a true concept."""
    target: dict[str, Any] = {"base": base_at(1.0, alpha), "epsilon": epsilon, "alpha": alpha, "beta": BETA}
    rows = [_labels(partial(rows_asked, kind(**target))) for kind in (AgnosticLearner, SubsampledAgnostic)]
    if rows[0] is None or rows[1] is None or rows[0] >= rows[1]:
        return "not known"
    return (
        f"a base that needs a true concept: {rows[1] / rows[0]:.1f} times fewer rows than a subsample; none is shipped"
    )


def which_pays(*, repeats: int, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Return the labels of every construction and of its base alone, with a run where the construction pays."""
    budgets = [(epsilon, alpha) for epsilon in EPSILONS for alpha in ALPHAS]
    return [
        _row(cell, epsilon, alpha, repeats=repeats, seed=seed)
        for epsilon, alpha in watched(watch, "which pays", budgets)
        for cell in cells(epsilon, alpha)
    ]


def _labels(rows_needed: Callable[[], Any]) -> int | None:
    try:
        return int(rows_needed().labelled)
    except QuorateError:
        return None


def _row(cell: Cell, epsilon: float, alpha: float, *, repeats: int, seed: int) -> Measured:
    own = _labels(partial(rows_asked, cell.learner))
    alone = _labels(cell.alone.agnostic_rows_needed if cell.any_labels else cell.alone.rows_needed)
    pays = own is not None and alone is not None and own < alone
    errors = errors_of(cell, own or 0, epsilon, repeats=repeats, seed=seed) if pays else (None, None)
    in_all = None if own is None else own + rows_asked(cell.learner).unlabelled
    return measured(
        PAYS,
        cell.name,
        epsilon=epsilon,
        repeats=repeats if pays else 0,
        alpha=alpha,
        labels_of_theorem=None if own is None else float(own),
        rows_of_theorem=None if in_all is None else float(in_all),
        labels_of_base_alone=None if alone is None else float(alone),
        pays=float(pays),
        error_mean=errors[0],
        error_of_base_mean=errors[1],
        case=cell.case,
    )


def errors_of(cell: Cell, n_labels: int, epsilon: float, *, repeats: int, seed: int) -> tuple[float, float]:
    """Return mean errors with the construction's labels: of the construction, and of the base learner with as many."""
    errors = []
    for repeat in range(-(-repeats // _SHARED)):
        rng = np.random.default_rng([seed, repeat, n_labels])
        population = cluster(BITS, rng)
        pick = _picked(cell.learner, population, n_labels, epsilon, rng, seed + repeat)
        for number in range(_SHARED):
            points, labels = population.sample(n_labels, rng)
            alone = drawn(cell.alone, points, labels, seed + 1_000 * repeat + number)
            errors.append([population.error(pick(points, labels, number)), population.error(alone)])
    means = np.array(errors).mean(axis=0)
    return float(means[0]), float(means[1])


def _picked(learner: PrivateLearner, population: Any, n_labels: int, epsilon: float, rng: Any, seed: int) -> Any:
    if isinstance(learner, GenericLearner):
        unlabelled, _ = population.sample(UNLABELLED_ROWS[epsilon], rng)
        return chooser(learner, unlabelled, n_labels, seed)
    assert isinstance(learner, SubSampling)  # noqa: S101  no other construction pays
    needs = rows_asked(learner)
    points, labels = population.sample(needs.labelled + needs.unlabelled, rng)
    return lambda _points, _labels, number: drawn(learner, points, labels, seed + 1_000_003 * number)
