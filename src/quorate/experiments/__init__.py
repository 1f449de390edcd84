"""The papers' experiments on public data, with their figures beside ours.

Here belongs what reproduces a figure of a paper, behind ``quorate reproduce``: its data, its repetitions and its rows.
What others could use belongs in the room of its subject. Begin with :mod:`~quorate.experiments.measurement`, then
:mod:`~quorate.experiments.table4`.

Every ``reproduce_…`` takes `repeats`, splits or divisions with noise of their own; `seed` of all of them; `epsilons`,
the budgets, and `methods`, the lines, all by default; `files`, where the larger data sets are; `command` for the
record; and ``watch(stage, done, total)``. It raises InvalidParameter if a name is not known, and PreconditionFailed if
a file is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.experiments.few_labels import reproduce_few_labels
    from quorate.experiments.margins import reproduce_margins
    from quorate.experiments.measurement import Experiment, Measured
    from quorate.experiments.mnist import reproduce_mnist
    from quorate.experiments.table4 import reproduce_table4
    from quorate.experiments.writers import reproduce_writers

__all__ = [
    "Experiment",
    "Measured",
    "reproduce_table4",
    "reproduce_margins",
    "reproduce_mnist",
    "reproduce_writers",
    "reproduce_few_labels",
]
__getattr__ = on_demand(__name__)
