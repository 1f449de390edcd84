"""Private learners with few labels: a concept class, private rows of which few are labelled, a publishable concept.

Every learner is a scikit-learn classifier for 0 and 1 over a concept class (:mod:`quorate.learners.concepts`); a row
without a label has ``UNLABELLED``. It takes the target (ε, δ) and calibrates itself; its guarantee is for one replaced
record.
"""

from quorate.learners.agnostic import AgnosticLearner
from quorate.learners.agnostic_prediction import AgnosticPrediction
from quorate.learners.empirical import EmpiricalLearner
from quorate.learners.exponential import ExponentialLearner
from quorate.learners.generic import GenericLearner
from quorate.learners.grid_choice import GridChoice
from quorate.learners.label_boost import LabelBoost
from quorate.learners.noisy_quantile import NoisyQuantile
from quorate.learners.noisy_threshold import NoisyThreshold
from quorate.learners.private_learner import UNLABELLED, Plan, PrivateLearner, RowsNeeded
from quorate.learners.sub_sampling import SubSampling
from quorate.learners.subsampled_agnostic import SubsampledAgnostic

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
