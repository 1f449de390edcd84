"""What may cross the privacy boundary: secret counts go in, a public answer comes out, an event is its price.

One file a family. A mechanism is a frozen dataclass whose fields are public; it draws from the noise source that it
is given and keeps nothing. Its class says all that others need to know of it (what it takes and answers, which fields
are noise and how it is calibrated, when it declines, what K teachers can get answered) and is registered; every
registered mechanism runs the same contract suite. A mechanism of a user's own (:mod:`~quorate.mechanisms.own`) is
registered nowhere, which is how it is known.

=============================== ============================================================ ==============
:class:`GaussianNoisyMax`       the class with the most votes, after Gaussian noise          a price a query
:class:`NoisyCounts`            the votes themselves, after Gaussian noise                   a price a query
:class:`NoisySum`               sums of clipped contributions, after noise                   a price a release
:class:`NoisyMean`              the sum of teachers' numbers, after Gaussian noise           a price a query
:class:`NoisyMarginals`         counts of each column's values, level by level               one for all levels
:class:`NoisyPairSums`          sums of products of each pair of columns                     one for all pairs
:class:`LaplaceNoisyMax`        the class with the most votes, after Laplace noise           a price a query
:class:`ConfidentNoisyMax`      a noisy max where enough teachers agree, else ⊥              a price a query
:class:`InteractiveNoisyMax`    a noisy max where teachers and student differ                a price a query
:class:`DistanceToInstability`  the exact plurality class where it is stable, else ⊥         a price a query
:class:`Exponential`            one of finitely many candidates, by score                    a price a query
:class:`PermuteAndFlip`         the same, never worse                                        a price a query
:class:`PrivateQuantile`        the place that a share of units is at or below               a price a release
:class:`PrivatePrediction`      one label from hypotheses on disjoint parts                  a price a query
:class:`StableSparseVector`     exact plurality classes, until T queries were not stable     one for a run
:class:`SoftLabel`              scores in [0, 1] that most teachers give                     one for a run
=============================== ============================================================ ==============

Here belongs one answer from secret counts, and its price; in which order it is charged, drawn and stored belongs in
:mod:`quorate.release`, and how counts come about in :mod:`quorate.ensemble`. Begin with
:mod:`~quorate.mechanisms.mechanism`, then :mod:`~quorate.mechanisms.noisy_max`.
"""

from quorate.mechanisms.answer_law import AgreementTest, Answerable, AnswerNoise
from quorate.mechanisms.answers import (
    DECLINED,
    Answers,
    BinnedScores,
    Classes,
    NoisyHalfLeads,
    NoisyVotes,
    Values,
    distance_to_instability,
)
from quorate.mechanisms.choice import CandidateChoice, Exponential, PermuteAndFlip, PrivatePrediction, PrivateQuantile
from quorate.mechanisms.confident_noisy_max import ConfidentNoisyMax, InteractiveNoisyMax
from quorate.mechanisms.fields import (
    FROM_TASK,
    NOISE,
    PRICE,
    Schedule,
    example,
    noise_fields,
    required_fields,
    task_fields,
    user_fields,
)
from quorate.mechanisms.gaussian_noise import NoisyMaxTerms
from quorate.mechanisms.marginals import MarginalLevel, NoisyMarginals, Partition
from quorate.mechanisms.mechanism import REGISTERED, Answer, Mechanism, QueryMechanism, StreamMechanism, for_runs
from quorate.mechanisms.noisy_max import GaussianNoisyMax, LaplaceNoisyMax, NoisyCounts, SeveralVotesNoisyMax
from quorate.mechanisms.noisy_mean import NoisyMean
from quorate.mechanisms.noisy_sum import NoisySum
from quorate.mechanisms.own import (
    check_answers,
    check_declared,
    check_own,
    check_state,
    check_step,
    data_dependent_terms,
    is_own,
    own_statement,
    owners_code,
)
from quorate.mechanisms.pair_sums import NoisyPairSums
from quorate.mechanisms.soft_label import SoftLabel
from quorate.mechanisms.sparse_vector import DistanceToInstability, SparseVectorState, StableSparseVector

__all__ = [
    "DECLINED",
    "Answer",
    "Mechanism",
    "QueryMechanism",
    "StreamMechanism",
    "CandidateChoice",
    "GaussianNoisyMax",
    "NoisyCounts",
    "SeveralVotesNoisyMax",
    "NoisySum",
    "NoisyMean",
    "NoisyMarginals",
    "NoisyPairSums",
    "MarginalLevel",
    "Partition",
    "LaplaceNoisyMax",
    "ConfidentNoisyMax",
    "InteractiveNoisyMax",
    "DistanceToInstability",
    "distance_to_instability",
    "StableSparseVector",
    "SparseVectorState",
    "SoftLabel",
    "Exponential",
    "PermuteAndFlip",
    "PrivateQuantile",
    "PrivatePrediction",
    "REGISTERED",
    "for_runs",
    "is_own",
    "own_statement",
    "check_declared",
    "check_own",
    "check_answers",
    "check_state",
    "check_step",
    "data_dependent_terms",
    "owners_code",
    "NOISE",
    "PRICE",
    "FROM_TASK",
    "example",
    "noise_fields",
    "task_fields",
    "user_fields",
    "required_fields",
    "Answers",
    "Classes",
    "Values",
    "NoisyVotes",
    "NoisyHalfLeads",
    "BinnedScores",
    "AnswerNoise",
    "AgreementTest",
    "NoisyMaxTerms",
    "Answerable",
    "Schedule",
]
