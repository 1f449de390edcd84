"""BNS15 and LWY25: how many labels and rows private learners need, by theorem and by measurement.

Begin with ``experiment``, which is what ``quorate reproduce few-labels`` runs, and its tables. Its parts: ``labels``
(against the domain and the VC dimension), ``theorems`` (wrong labels, constants, bounds), ``fits`` and ``adult``; what
they share is ``draws``.
"""

from quorate.experiments.few_labels.experiment import FewLabels, reproduce_few_labels

__all__ = ["FewLabels", "reproduce_few_labels"]
