"""The experiments, by the names that ``quorate reproduce`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.experiments.few_labels import reproduce_few_labels
from quorate.experiments.margins import reproduce_margins
from quorate.experiments.measurement import Experiment
from quorate.experiments.mnist import reproduce_mnist
from quorate.experiments.table4 import reproduce_table4
from quorate.experiments.writers import reproduce_writers

EXPERIMENTS: Mapping[str, Callable[..., Experiment]] = {
    "table4": reproduce_table4,
    "margins": reproduce_margins,
    "mnist": reproduce_mnist,
    "writers": reproduce_writers,
    "few-labels": reproduce_few_labels,
}
