"""LWY25: from a private learner that needs a true concept to one that needs none, and predictions one by one.

Begin with ``price`` (Algorithm 1 and Lemma 3.1), then ``learner`` (Algorithm 2). Theorem 3.6 and what is needed of the
base learner are ``bound``, the split of the budget is ``search``. ``prediction`` and ``voting`` are Theorem 4.2 and
Lemma 4.1. ``subsampled`` is the transformation that the paper improves on.
"""

from quorate.learners.agnostic.learner import AgnosticLearner
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.agnostic.subsampled import SubsampledAgnostic

__all__ = ["AgnosticLearner", "AgnosticPrediction", "SubsampledAgnostic"]
