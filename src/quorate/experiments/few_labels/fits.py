"""Every class with every learner on 20,000 rows: it fits, or the refusal names what does."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np

from quorate.errors import QuorateError
from quorate.experiments.few_labels.adult import coarse_stumps
from quorate.experiments.measured import Measured
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
from quorate.learners.concepts import FiniteClass, Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.sanitizers import MWEM, Boxes, Tree
from quorate.types import IntArray, Watch

FITS: Final = "fits at n = 20,000"
N_ROWS, N_LABELS = 20_000, 2_000
LEVELS: Final = tuple(product((0.0, 1.0, 2.0, 3.0), repeat=6))
HUNDREDS: Final = tuple((float(each),) for each in range(0, 1 << 16, 1 << 8))

#: What a refusal may send a user to.
REMEDIES: Final = ("ExponentialLearner", "GenericLearner", "NoisyThreshold", "Boxes", "Tree", "MWEM", "domain")
_NAMED = re.compile("|".join(REMEDIES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One class, and what its learners need of it.

    `name`: for tables. `concepts`: the class. `sizes`: how many values a row has in each column. `sanitizer`: the one
    for it. `domain`: for the whole class, where its grid is too large to list.
    """

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
    """Fit, and return the CPU seconds, and what a refusal names; None where there was none.

    Raises QuorateError if a refusal names nothing that fits.
    """
    X, y = case.rows()
    few = name in {"GenericLearner", "LabelBoost"}
    given = np.where(np.arange(N_ROWS) < N_LABELS, y, UNLABELLED) if few else y
    begun = time.process_time()
    try:
        learner.set_params(unsafe_noise_seed=seed).fit(X, given)
    except QuorateError as refusal:
        names = _NAMED.findall(str(refusal).partition(";")[2])
        if not names:
            raise
        return time.process_time() - begun, names[0]
    return time.process_time() - begun, None


def every_class_with_every_learner(*, seed: int, watch: Watch | None = None) -> list[Measured]:
    """Fit all of them once."""
    rows = []
    for place, case in enumerate(found := cases()):
        if watch:
            watch("every class with every learner", place, len(found))
        for name, learner in learners(case).items():
            seconds, instead = fitted(case, name, learner, seed)
            rows.append(
                Measured(
                    data=f"{FITS}: {case.name}",
                    method=name,
                    epsilon=1.0,
                    delta=0.0,
                    n_queries=None,
                    repeats=1,
                    accuracy_mean=None,
                    accuracy_se=None,
                    balanced_accuracy_mean=None,
                    more={"cpu_seconds": round(seconds, 2), "instead": instead},  # type: ignore[dict-item]
                )
            )
    if watch:
        watch("every class with every learner", 1, 1)
    return rows
