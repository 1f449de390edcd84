"""BNS15 and LWY25: how many labels and rows private learners need, by theorem and by measurement.

Begin with ``experiment``, which is what ``quorate reproduce few-labels`` runs. Each part of it is a file (``domain``,
``vc``, ``agnostic``, ``constants``, ``adult``); ``draws`` is what they share, ``tables`` is what is made of their
rows.
"""

from quorate.experiments.few_labels.experiment import FewLabels, reproduce_few_labels

__all__ = ["FewLabels", "reproduce_few_labels"]
