"""A small net of torch, in a module of its own: worker processes import it by its name."""

from __future__ import annotations

from typing import Any

from torch import nn

from quorate.stored_names import stored_as


@stored_as("quorate.experiments.small_net.SmallNet")
class SmallNet(nn.Module):
    """One hidden layer with dropout; ten classes."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.3), nn.Linear(hidden, 10))

    def forward(self, X: Any) -> Any:
        """Return ``(n, 10)`` scores of rows of any float type."""
        return self.layers(X.float())
