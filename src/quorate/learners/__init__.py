"""Private learners with few labels: a concept class, private rows of which few are labelled, a publishable concept.

Every learner is a scikit-learn classifier for 0 and 1 over a concept class (:mod:`quorate.learners.concepts`); a row
without a label has ``UNLABELLED``. It takes the target (ε, δ) and calibrates itself; its guarantee is for one replaced
record.
"""

from quorate.learners.agnostic.learner import AgnosticLearner
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.agnostic.subsampled import SubsampledAgnostic
from quorate.learners.base.exponential import ExponentialLearner
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.base.noisy_quantile import NoisyQuantile
from quorate.learners.base.noisy_threshold import NoisyThreshold
from quorate.learners.empirical import EmpiricalLearner
from quorate.learners.generic.learner import GenericLearner
from quorate.learners.label_boost.learner import LabelBoost
from quorate.learners.private_learner import UNLABELLED, Plan, PrivateLearner, RowsNeeded
from quorate.learners.sub_sampling.learner import SubSampling

__all__ = [
    "UNLABELLED",
    "Plan",
    "RowsNeeded",
    "PrivateLearner",
    "GenericLearner",
    "LabelBoost",
    "SubSampling",
    "EmpiricalLearner",
    "AgnosticLearner",
    "AgnosticPrediction",
    "SubsampledAgnostic",
    "ExponentialLearner",
    "NoisyThreshold",
    "GridChoice",
    "NoisyQuantile",
]
