"""One small fit of every learner, and the ledgers that version 0.1 wrote of them.

Run under version 0.1, this file writes those ledgers anew: ``python tests/learners/fits_of_0_1.py FOLDER``. Nothing
else may: they stand for what users have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from quorate.learners import (
    UNLABELLED,
    AgnosticLearner,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    PrivateLearner,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.sanitizers import BLR, MWEM, Tree
from quorate.ledger import Budget, Ledger

WRITTEN = Path(__file__).parent / "written_by_0_1"
LEDGERS = {name: WRITTEN / f"{name.replace(' ', '_')}.db" for name in ("few labels", "all labels", "columns")}

GRID = Thresholds(bits=4)
COLUMN = np.arange(16.0)[:, None]
CHOICE = ExponentialLearner(concepts=GRID, epsilon=1.0)
THRESHOLD = NoisyThreshold(concepts=GRID, epsilon=1.0)
EMPIRICAL = EmpiricalLearner(concepts=GRID, base=THRESHOLD, epsilon=1.0)
AROUND: dict[str, Any] = {"concepts": GRID, "base": CHOICE, "epsilon": 0.5}

FITS: dict[str, tuple[str, PrivateLearner]] = {
    "exponential": ("few labels", ExponentialLearner(concepts=GRID, epsilon=0.5)),
    "exponential, as printed": ("few labels", ExponentialLearner(concepts=GRID, epsilon=0.5, selection="exponential")),
    "points": ("few labels", ExponentialLearner(concepts=PointFunctions(bits=4), epsilon=0.5)),
    "intervals": ("few labels", ExponentialLearner(concepts=Intervals(bits=4), epsilon=0.5)),
    "rectangles": ("few labels", ExponentialLearner(concepts=Rectangles(bits=4, n_features=1), epsilon=0.5)),
    "threshold": ("few labels", NoisyThreshold(concepts=GRID, epsilon=0.5)),
    "generic, tree": ("few labels", GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=0.5)),
    "generic, mwem": ("few labels", GenericLearner(concepts=GRID, sanitizer=MWEM(), epsilon=0.5)),
    "generic, blr": ("few labels", GenericLearner(concepts=GRID, sanitizer=BLR(size=2), epsilon=0.5)),
    "generic, stumps": ("columns", GenericLearner(concepts=Stumps(1), sanitizer=MWEM(domain=COLUMN), epsilon=0.5)),
    "label boost": ("few labels", LabelBoost(**AROUND)),
    "label boost, as printed": ("few labels", LabelBoost(**AROUND | {"delta": 1e-6}, constants="paper")),
    "sub-sampling": ("all labels", SubSampling(**AROUND)),
    "sub-sampling, as printed": ("all labels", SubSampling(**AROUND, labelled="first")),
    "empirical": ("few labels", EmpiricalLearner(**AROUND)),
    "agnostic": ("few labels", AgnosticLearner(**AROUND)),
    "agnostic, empirical": ("few labels", AgnosticLearner(**AROUND | {"base": EMPIRICAL})),
    "subsampled": ("few labels", SubsampledAgnostic(**AROUND)),
}  # fmt: skip


def rows(labels: str) -> tuple[Any, Any]:
    """The private rows: ``(8_000, 1)`` points of the grid, or a column of floats, and ``(8_000,)`` labels."""
    random = np.random.default_rng(7)
    X = random.integers(0, 16, (8_000, 1))
    y = (X[:, 0] < 6).astype(int)
    if labels != "all labels":
        y[random.random(8_000) < 0.5] = UNLABELLED
    return X.astype(float) if labels == "columns" else X, y


def fitted(name: str, ledger: Path | Ledger) -> PrivateLearner:
    """Fit a learner by its name, with seeded noise, so that a concept can be told."""
    labels, learner = FITS[name]
    fresh = type(learner)(**learner.get_params(deep=False) | {"ledger": ledger, "unsafe_noise_seed": 5})
    return fresh.fit(*rows(labels))


def write(folder: Path) -> None:
    """Fit everything into new ledgers."""
    for labels, place in LEDGERS.items():
        with Ledger(folder / place.name, budget=Budget(20.0, 1e-3)) as ledger:
            for name in (name for name, (kind, _) in FITS.items() if kind == labels):
                print(name, fitted(name, ledger).concept_)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
