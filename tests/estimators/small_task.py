"""A task of two classes that is fitted in a moment: what the tests of this room share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

from quorate import PrivateClassifier, PublicPool

N, M, D = 300, 120, 4


SETTINGS: dict[str, Any] = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_teachers": 10, "n_jobs": 1}


def table(n: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(np.int64)


X, Y = table(N, 1)


POOL = table(M, 2)[0]


def classifier(**changes: Any) -> PrivateClassifier:
    return PrivateClassifier(changes.pop("teacher", GaussianNB()), **{**SETTINGS, **changes})


def fitted(**changes: Any) -> PrivateClassifier:
    return classifier(**changes).fit(X, Y, public=PublicPool(POOL))
