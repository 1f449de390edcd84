"""LWY25: from a private learner that needs a true concept to one that needs none, and predictions one by one.

Begin with ``price`` (Algorithm 1 and Lemma 3.1), then ``learner`` (Algorithm 2, and the transformation that it improves
on). Theorem 3.6 and what is needed of the base learner are ``bound``; ``prediction`` and ``voting`` are Theorem 4.2 and
Lemma 4.1.
"""

from quorate.learners.agnostic.learner import AgnosticLearner, SubsampledAgnostic
from quorate.learners.agnostic.prediction import AgnosticPrediction

__all__ = ["AgnosticLearner", "AgnosticPrediction", "SubsampledAgnostic"]
