"""Networks for digits, where torch and skorch are installed (the extra ``quorate[torch]``).

A small convolutional student of images; and votes of small nets, told every image by patches of the public images: 128
numbers of 240 images in place of 784 pixels, which their student knows too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data import PublicPool
from quorate.data.feature_maps import PoolDirections
from quorate.errors import PreconditionFailed
from quorate.estimators import PrivateClassifier
from quorate.experiments.measurement import Scored, scored
from quorate.experiments.sources import Split
from quorate.students import VoteShareStudent
from quorate.types import FloatArray

NO_TORCH = 'torch and skorch are not installed; install them with: pip install "quorate[torch]"'
EPOCHS, BATCH, RATE = 20, 64, 1e-3
SIDE = 28


def torch_is_there() -> bool:
    """Whether torch and skorch are installed."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("torch", "skorch"))


def _ask_for_torch() -> None:
    if not torch_is_there():
        raise PreconditionFailed(NO_TORCH)


def convolutional(seed: int, *, n_classes: int = 10) -> Any:
    """Return an unfitted scikit-learn classifier of images of 28 by 28 grey values, ``(n_images, 784)`` float32.

    Two layers of convolution and pooling, one of 128 units with dropout; Adam, twenty epochs. It needs torch and
    skorch.
    """
    _ask_for_torch()
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (SIDE // 4) ** 2, 128),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(128, n_classes),
    )
    return _classifier(layers, torch.optim.Adam, lr=RATE, max_epochs=EPOCHS, batch_size=BATCH)


N_TEACHERS, DELTA = 250, 1e-5
STUDENT_C = 5.0
HIDDEN, NET_EPOCHS, NET_RATE, DECAY = 64, 40, 3e-3, 1e-3
_SOME = 1_000  # public images whose distances are looked at

NET = "public patches, torch teachers, SVC"


def votes_of_nets(parts: Split, epsilon: float, seed: int) -> Scored:
    """Train nets in public coordinates, release noisy counts at ε and δ = 1e-5, and score the student."""
    from sklearn.svm import SVC

    private, public, test = coordinates(parts)
    some = public[:_SOME]
    squares = (some**2).sum(axis=1)
    width = float(np.median(squares[:, None] + squares[None] - 2 * some @ some.T))
    model = PrivateClassifier(
        net(public.shape[1]),
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
    """Return the three sides in public coordinates, ``(n, 128)`` each, which have a standard deviation of about one."""
    directions = PoolDirections.of_images(parts.X_public)
    # A typical image has length one there, whatever their number; a net starts best from numbers of size one.
    longer = np.sqrt(directions.n_directions)
    private, public, test = (longer * directions.transform(X) for X in (parts.X_private, parts.X_public, parts.X_test))
    return private, public, test


def net(width: int) -> Any:
    """Return an unfitted net of one hidden layer, as a scikit-learn classifier of ``(n, width)`` numbers."""
    _ask_for_torch()
    import torch

    from quorate.experiments.small_net import SmallNet

    sizes = {"module__width": width, "module__hidden": HIDDEN, "optimizer__weight_decay": DECAY}
    return _classifier(SmallNet, torch.optim.AdamW, lr=NET_RATE, max_epochs=NET_EPOCHS, batch_size=60, **sizes)


def _classifier(module: Any, optimizer: Any, **more: Any) -> Any:
    from skorch import NeuralNetClassifier
    from torch.nn import CrossEntropyLoss

    quiet = {"iterator_train__shuffle": True, "train_split": None, "verbose": 0}
    return NeuralNetClassifier(module, criterion=CrossEntropyLoss, optimizer=optimizer, **quiet, **more)
