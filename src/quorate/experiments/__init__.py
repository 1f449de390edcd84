"""The papers' experiments on public data, with their figures beside ours.

Here belongs what reproduces a figure of a paper, behind ``quorate reproduce``: its data, its repetitions and its rows.
What others could use belongs in the room of its subject. Begin with :mod:`~quorate.experiments.measured`, then
:mod:`~quorate.experiments.table4`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.experiments.few_labels import reproduce_few_labels
from quorate.experiments.margins import reproduce_margins
from quorate.experiments.measured import Experiment, Measured
from quorate.experiments.mnist import reproduce_mnist
from quorate.experiments.table4 import reproduce_table4
from quorate.experiments.writers import reproduce_writers

__all__ = ["EXPERIMENTS", "Experiment", "Measured", "reproduce_table4", "reproduce_margins", "reproduce_few_labels"]

#: By the names that ``quorate reproduce`` takes.
EXPERIMENTS: Mapping[str, Callable[..., Experiment]] = {
    "table4": reproduce_table4,
    "margins": reproduce_margins,
    "mnist": reproduce_mnist,
    "writers": reproduce_writers,
    "few-labels": reproduce_few_labels,
}
