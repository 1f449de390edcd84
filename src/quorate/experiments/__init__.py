"""The papers' experiments on public data, with their figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.experiments.few_labels import reproduce_few_labels
from quorate.experiments.margins import reproduce_margins
from quorate.experiments.measured import Experiment, Measured
from quorate.experiments.mnist import reproduce_mnist
from quorate.experiments.table4 import reproduce_table4

__all__ = ["EXPERIMENTS", "Experiment", "Measured", "reproduce_table4", "reproduce_margins", "reproduce_few_labels"]

#: By the names that ``quorate reproduce`` takes.
EXPERIMENTS: Mapping[str, Callable[..., Experiment]] = {
    "table4": reproduce_table4,
    "margins": reproduce_margins,
    "mnist": reproduce_mnist,
    "few-labels": reproduce_few_labels,
}
