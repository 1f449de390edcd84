"""A small convolutional student for images, where torch and skorch are installed (the extra ``quorate[torch]``)."""

from __future__ import annotations

from typing import Any

from quorate.errors import PreconditionFailed

NO_TORCH = 'torch and skorch are not installed; install them with: pip install "quorate[torch]"'
EPOCHS, BATCH, RATE = 20, 64, 1e-3
SIDE = 28


def torch_is_there() -> bool:
    """Whether torch and skorch are installed."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("torch", "skorch"))


def convolutional(seed: int, *, n_classes: int = 10) -> Any:
    """Return an unfitted scikit-learn classifier of images of 28 by 28 grey values, ``(n_images, 784)`` float32.

    Two layers of convolution and pooling, one of 128 units with dropout; Adam, twenty epochs.

    `seed`: of weights and batches. `n_classes`: c. Raises PreconditionFailed if torch or skorch is not installed.
    """
    if not torch_is_there():
        raise PreconditionFailed(NO_TORCH)
    import torch
    from skorch import NeuralNetClassifier
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
    return NeuralNetClassifier(
        layers,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=RATE,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )
