"""Private learners with few labels: a concept class, private rows of which few are labelled, a publishable concept.

Every learner is a scikit-learn classifier for 0 and 1 over a concept class (:mod:`quorate.learners.concepts`); a row
without a label has ``UNLABELLED``. It takes the target (ε, δ) and calibrates itself; its guarantee is for one replaced
record.

Here belongs what learns from private rows without teachers, in folders that carry the papers' names. What any private
release does (ledger, noise, guarantee) belongs in :mod:`quorate.release`; how votes of teachers are answered, in
:mod:`quorate.labelling`. Begin with ``private_learner.py``, the shell of every learner, and then with the file that
holds the algorithm you know. BNS15 is Beimel, Nissim and Stemmer, LWY25 is Li, Wang and Ye, KLNRS11 is Kasiviswanathan,
Lee, Nissim, Raskhodnikova and Smith. What their statements say in numbers is in :mod:`quorate.theory`; what is
proven here stands together in ``docs/theory/private-learners.md``.

========================================== ===========================================================
BNS15, Algorithm 1 (GenericLearner)        generic.py: GenericLearner
BNS15, Theorem 3.3                         generic.py: GenericLearner
BNS15, Corollary 3.4 (ε, δ)                sanitizers/medians.py: Medians
BNS15, Algorithm 2 (LabelBoostProcedure)   label_boost/learner.py: relabelled
BNS15, Lemma 4.1                           label_boost/schedule.py: bns15_lemma_4_1
BNS15, Claim 4.2                           label_boost/constants.py: TightConstants
BNS15, Claim 4.3                           amplification.py: bns15_claim_4_3
BNS15, Claim 4.5                           amplification.py: bns15_claim_4_5
BNS15, Algorithm 3 (LabelBoost)            label_boost/learner.py: LabelBoost
BNS15, Lemma 4.6                           label_boost/schedule.py: price_of
BNS15, Claim 4.9                           label_boost/constants.py: PaperConstants
BNS15, Lemma 4.12                          label_boost/constants.py: TightConstants
BNS15, Theorem 4.13                        label_boost/learner.py: LabelBoost
BNS15, Theorem 4.14                        label_boost/constants.py: PaperConstants
BNS15, Definition 5.4 (transcripts)        private_learner.py: PrivateLearner
BNS15, Algorithm 4 (SubSampling)           sub_sampling.py: SubSampling
BNS15, Claim 5.7                           sub_sampling.py: bns15_claim_5_7
BNS15, Theorem 5.8                         sub_sampling.py: SubSampling
BNS15, Definition A.2 (sanitizers)         sanitizers/tree.py: Tree
BNS15, Definition A.2 (for RECTANGLE)      sanitizers/boxes.py: Boxes
BNS15, Theorem B.2 (dichotomies)           base/exponential.py: growth_of
BNS15, Theorem B.5                         label_boost/schedule.py: rows_to_generalise
BNS15, Theorem B.6                         sanitizers/small_domains.py: theorem_size
LWY25, Lemma 2.9                           agnostic/bound.py: learner_error
LWY25, Definition 2.11 (empirical)         agnostic/bound.py: errs_little_on_any_rows
LWY25, Lemma 2.12                          transformed_learner.py: EmpiricalLearner
LWY25, Lemma 2.13                          amplification.py: lwy25_lemma_2_13
LWY25, Algorithm 1 (A_Relabel)             agnostic/price.py: relabelled_sample
LWY25, Algorithm 1, step 3 (scores)        concepts/protocol.py: relabelling_scores_by_erm
LWY25, Algorithm 2 (A_Agnostic)            agnostic/learner.py: AgnosticLearner
LWY25, Lemma 3.1                           agnostic/price.py: AgnosticPrice
LWY25, Claim 3.2                           agnostic/bound.py: relabelling_error
LWY25, Theorem 3.6                         agnostic/bound.py: agnostic_error
LWY25, Lemma 4.1 (votes)                   agnostic/voting.py: voting_error
LWY25, Theorem 4.2 (predictions)           agnostic/prediction.py: AgnosticPrediction
Nandi and Bassily 2020 (stable answers)    agnostic/voting.py: stable_error
Semi-private learning (public rows)        base/exponential.py: ExponentialLearner.excess
KLNRS11, Theorem 3.4                       base/exponential.py: ExponentialLearner
KLNRS11, Theorem 3.4, any labels           base/exponential.py: agnostic_choice_rows
========================================== ===========================================================
"""

from quorate.learners.agnostic.learner import AgnosticLearner, SubsampledAgnostic
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.base.exponential import ExponentialLearner
from quorate.learners.base.grid_choice import GridChoice, NoisyThreshold
from quorate.learners.binning import Binning, telling_columns
from quorate.learners.generic import GenericLearner
from quorate.learners.label_boost.learner import LabelBoost
from quorate.learners.private_learner import UNLABELLED, Plan, PrivateLearner, RowsNeeded
from quorate.learners.sub_sampling import SubSampling
from quorate.learners.transformed_learner import EmpiricalLearner

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
    "Binning",
    "telling_columns",
]
