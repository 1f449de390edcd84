"""Digits by votes in public coordinates: patches of the public images tell every image, and small teachers vote.

The centroids of the patches, the directions and the widths are read off the public pool, so a teacher on 240 images has
100 numbers an image to learn from instead of 784 pixels, and its student knows the same coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data import PublicPool
from quorate.data.feature_maps.patches import PatchFeatures
from quorate.estimators import PrivateClassifier
from quorate.experiments.convolutional import NO_TORCH, torch_is_there
from quorate.experiments.measured import Scored, scored
from quorate.experiments.sources import Split
from quorate.students import VoteShareStudent
from quorate.types import FloatArray

N_TEACHERS, DIRECTIONS, DELTA = 250, 100, 1e-5
PENALTY, STUDENT_C = 10.0, 5.0
HIDDEN, EPOCHS, RATE, DECAY = 64, 40, 3e-3, 1e-3
_SOME = 1_000  # public images whose distances are looked at

RIDGE, NET = "public patches, ridge teachers, SVC", "public patches, torch teachers, SVC"


def patch_votes(method: str, parts: Split, epsilon: float, seed: int) -> Scored:
    """Train teachers in public coordinates, release noisy counts, and score the student.

    Parameters
    ----------
    method : str
        :data:`RIDGE` or :data:`NET`.
    parts : Split
        Upright images ``(n, 784)`` of the three sides.
    epsilon : float
        Budget; δ is 1e-5.
    seed : int
        Of shards and noise.

    Raises
    ------
    PreconditionFailed
        If the teachers are to be nets, and torch or skorch is not installed.
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.svm import SVC

    private, public, test = coordinates(parts)
    some = public[:_SOME]
    squares = (some**2).sum(axis=1)
    width = float(np.median(squares[:, None] + squares[None] - 2 * some @ some.T))
    model = PrivateClassifier(
        RidgeClassifier(alpha=PENALTY) if method == RIDGE else net(public.shape[1]),
        VoteShareStudent(SVC(C=STUDENT_C, gamma=1 / width), shares="gaussian-process", weights=False),
        classes=list(range(10)),
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=N_TEACHERS,
        n_records=len(private),
        unsafe_noise_seed=seed,
    ).fit(private, parts.y_private, public=PublicPool(public))
    return scored(model.predict(test), parts.y_test, n_queries=int(model.released_.answered.sum()))


def coordinates(parts: Split) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the three sides in public coordinates, ``(n, 100)`` each.

    They are leading directions of the patch features, each divided by the root of its standard deviation in the pool:
    between leaving directions as long as they are, which few images learn well, and making all equally long.
    """
    from sklearn.decomposition import PCA

    patches = PatchFeatures.fit(parts.X_public)
    pool = patches.numbers(parts.X_public)
    directions = PCA(DIRECTIONS, random_state=0).fit(pool)
    lengths = directions.explained_variance_**0.25

    def told(images: FloatArray) -> FloatArray:
        blocks = (images[first : first + 5_000] for first in range(0, len(images), 5_000))
        return np.vstack([directions.transform(patches.numbers(block)) / lengths for block in blocks])

    return told(parts.X_private), directions.transform(pool) / lengths, told(parts.X_test)


def net(width: int) -> Any:
    """Return an unfitted net of one hidden layer, as a scikit-learn classifier of ``(n, width)`` numbers."""
    from quorate.errors import PreconditionFailed

    if not torch_is_there():
        raise PreconditionFailed(NO_TORCH)
    import torch
    from skorch import NeuralNetClassifier

    from quorate.experiments.small_net import SmallNet

    return NeuralNetClassifier(
        SmallNet,
        module__width=width,
        module__hidden=HIDDEN,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        optimizer__weight_decay=DECAY,
        lr=RATE,
        max_epochs=EPOCHS,
        batch_size=60,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )
