"""Small seeded fits of the estimators, for each mechanism and unit."""

from functools import partial

import numpy as np
from tests.golden.pinned import DELTA, SEED, guarantee, ledger, lines, pinned, processes

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool, SubsampleAggregate
from quorate.errors import BudgetExhausted
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)

N, N_PUBLIC, K, EPSILON, ONLINE = 240, 24, 12, 12.0, 3
ANSWERS = N_PUBLIC + ONLINE

_rng = np.random.default_rng(7)
# Two clear clouds for each class: no vote hangs on the last bits of a teacher's fit.
_CENTRES = np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, 0.0], [0.0, 4.0, -3.0]])
CODES = np.arange(N) % 3
X = np.round(_CENTRES[CODES] + _rng.normal(size=(N, 3)), 2)
POOL = np.round(_CENTRES[np.arange(N_PUBLIC) % 3] + 1.5 * _rng.normal(size=(N_PUBLIC, 3)), 2)
PEOPLE = np.arange(N) // 2

#: What is given as ``mechanism=``: a name leaves the noise to the budget.
TWO_CLASSES = {
    "auto": "auto",
    "GaussianNoisyMax": "GaussianNoisyMax",
    "NoisyCounts": "NoisyCounts",
    "LaplaceNoisyMax": "LaplaceNoisyMax",
    "ConfidentNoisyMax": ConfidentNoisyMax(5.0, 12.0, 4.0, form="binary"),
    "InteractiveNoisyMax": InteractiveNoisyMax(
        threshold=4.0, sigma_threshold=12.0, sigma_answer=5.0, n_teachers=K, confidence=0.9, form="binary"
    ),
    "DistanceToInstability": "DistanceToInstability",
    "Exponential": "Exponential",
    "PermuteAndFlip": "PermuteAndFlip",
    "PrivatePrediction": "PrivatePrediction",
    "StableSparseVector": StableSparseVector(epsilon=11.0, delta=5e-6, cutoff=3, n_queries=ANSWERS),
    "SoftLabel": SoftLabel(epsilon=11.0, delta=5e-6, cutoff=3, n_queries=ANSWERS, bins=3),
}
THREE_CLASSES = {
    "NoisyCounts": NoisyCounts(sigma=3.0),
    "GaussianNoisyMax": GaussianNoisyMax(sigma=3.0),
    "ConfidentNoisyMax": ConfidentNoisyMax(5.0, 12.0, 4.0),
    "LaplaceNoisyMax": LaplaceNoisyMax(laplace_scale=6.0),
    "DistanceToInstability": DistanceToInstability(epsilon=0.4, delta=1e-8),
    "Exponential": Exponential(epsilon=0.4),
    "PermuteAndFlip": PermuteAndFlip(epsilon=0.4),
    "PrivatePrediction": PrivatePrediction(epsilon=0.4),
    "StableSparseVector": StableSparseVector(
        epsilon=11.0, delta=5e-6, cutoff=3, n_queries=N_PUBLIC, calibration="lzcw21"
    ),
}


def classified(mechanism, *, classes, unit):
    with pinned(), ledger(EPSILON) as book:
        made = PrivateClassifier(
            classes=list(range(classes)), epsilon=EPSILON, delta=DELTA, n_teachers=K, queries="all",
            mechanism=mechanism, online_answers=ONLINE if classes == 2 else 0, ledger=book, n_records=N,
            unsafe_noise_seed=SEED, **processes(PrivateClassifier, 1),
        )  # fmt: skip
        made.fit(X, CODES % classes, public=PublicPool(POOL), groups=PEOPLE if unit == "person" else None)
        asked = _asked(made) if classes == 2 else []
        return {
            "guarantee": guarantee(made.guarantee_),
            "ledger": lines(book),
            "released": {**_released(made), "asked": asked},
        }


def label_private(mechanism, *, unit):
    with pinned(), ledger(EPSILON) as book:
        made = LabelPrivateClassifier(
            classes=[0, 1], epsilon=EPSILON, delta=DELTA, n_teachers=K, queries=N_PUBLIC, mechanism=mechanism,
            ledger=book, unsafe_noise_seed=SEED, **processes(LabelPrivateClassifier, 1),
        )  # fmt: skip
        made.fit(X, CODES % 2, groups=None if unit == "label" else PEOPLE)
        return {"guarantee": guarantee(made.guarantee_), "ledger": lines(book), "released": _released(made)}


def _asked(made):
    """Return the answers to two points, or the refusal of a mechanism that has closed."""
    try:
        return made.ask(X[:2])
    except BudgetExhausted as refusal:
        return str(refusal)


def _released(made):
    released = made.released_
    return {
        "queries": made.queries_.tolist(),
        "codes": released.codes.tolist(),
        "answers": released.answers.tolist(),
        "predictions": made.predict(X[::7]).tolist(),
    }


def widest(X, y):
    return int(X.var(axis=0).argmax())


def middle(X, y):
    """Return the median of the first column, to whole tens."""
    return round(float(np.median(X[:, 0])) / 10) * 10


def unlike(X, y):
    """Return something that no two shards share."""
    return repr(X.tolist())


def aggregated(calibration, *, unit):
    with pinned(), ledger(40.0, 1e-3) as book:
        made = SubsampleAggregate(
            epsilon=40.0, delta=1e-3, n_shards=40, cutoff=2, n_queries=12, calibration=calibration,
            ledger=book, unsafe_noise_seed=SEED, **processes(SubsampleAggregate, 1),
        )  # fmt: skip
        made.fit(X, CODES, groups=PEOPLE if unit == "person" else None)
        asked = [made.ask(function, name=function.__name__) for function in (middle, unlike, widest, middle)]
        return {"guarantee": guarantee(made.guarantee_), "ledger": lines(book), "released": {"asked": asked}}


def cases():
    return {
        **{
            f"PrivateClassifier, {name}, {unit}": partial(classified, mechanism, classes=2, unit=unit)
            for name, mechanism in TWO_CLASSES.items()
            for unit in ("record", "person")
        },
        **{
            f"PrivateClassifier of three classes, {name}, record": partial(
                classified, mechanism, classes=3, unit="record"
            )
            for name, mechanism in THREE_CLASSES.items()
        },
        **{
            f"LabelPrivateClassifier, {name}, {unit}": partial(label_private, mechanism, unit=unit)
            for name, mechanism in TWO_CLASSES.items()
            if name != "InteractiveNoisyMax"
            for unit in ("label", "person's labels")
        },
        **{
            f"SubsampleAggregate, {calibration}, {unit}": partial(aggregated, calibration, unit=unit)
            for calibration in ("tight", "lzcw21", "btt18")
            for unit in ("record", "person")
        },
    }
