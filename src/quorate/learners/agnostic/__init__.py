"""LWY25: from a private learner that needs a true concept to one that needs none, and predictions one by one.

Begin with ``relabelling`` (Algorithm 1), then ``learner`` (Algorithm 2). Lemma 3.1 is ``price``, Theorem 3.6 is
``bound``, the split of the budget is ``search``, and what is needed of the base learner is ``base``. ``prediction``,
``hypotheses`` and ``voting`` are Theorem 4.2 and Lemma 4.1. ``subsampled`` is the transformation that the paper
improves on.
"""

from quorate.learners.agnostic.learner import AgnosticLearner
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.agnostic.subsampled import SubsampledAgnostic

__all__ = ["AgnosticLearner", "AgnosticPrediction", "SubsampledAgnostic"]
