"""The private side: partition → teachers → votes. Everything that leaves this room is a Secret.

Here belongs how units meet teachers, how teachers are trained apart from each other, and how their votes are counted.
Noise does not: a vote becomes an answer in :mod:`quorate.labelling`. Begin with :mod:`~quorate.ensemble.partition`,
then :mod:`~quorate.ensemble.training` and :mod:`~quorate.ensemble.votes`.
"""

from quorate.ensemble.average_stability import AverageStability, average_stability
from quorate.ensemble.carried import not_looked_into
from quorate.ensemble.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.command import CommandTeacher, CommandVoter
from quorate.ensemble.diagnostics import (
    Agreement,
    HighMarginCurve,
    SoftLabelQuality,
    agreement,
    expected_margins,
    high_margin_curve,
    margins,
    soft_label_quality,
)
from quorate.ensemble.ensemble import Ensemble
from quorate.ensemble.function_teacher import FunctionTeacher, FunctionVoter
from quorate.ensemble.held_out import held_out_in_shards, held_out_rows
from quorate.ensemble.kinds import as_teacher, with_classes
from quorate.ensemble.partition import (
    Partition,
    balanced_shards,
    change_of_one_teacher,
    hash_shards,
    partition_rows,
    seeds_of_units,
    shared_shards,
    unit_shards,
)
from quorate.ensemble.partition_check import PartitionFault, check_partition
from quorate.ensemble.persistence import dump_voters, load_voters
from quorate.ensemble.prior_matching import MatchedVoter, PriorMatchingTeacher
from quorate.ensemble.prompted import ChatEndpoint, ChatTeacher, ChatVoter
from quorate.ensemble.scheduler import DaskScheduler, check_address
from quorate.ensemble.scores import gather_scores
from quorate.ensemble.teacher_errors import teacher_errors
from quorate.ensemble.teachers import ABSTAINED, AbstainingVoter, ConstantVoter, Teacher, Voter
from quorate.ensemble.training import teacher_seed, train_chunk, train_teachers
from quorate.ensemble.training_elsewhere import train_elsewhere
from quorate.ensemble.trial import TrialFailed, tried
from quorate.ensemble.unfitted import Preprocessing, check_unfitted
from quorate.ensemble.unit_outcomes import unit_outcomes
from quorate.ensemble.votes import count_votes

__all__ = [
    "Partition",
    "change_of_one_teacher",
    "hash_shards",
    "balanced_shards",
    "unit_shards",
    "seeds_of_units",
    "shared_shards",
    "partition_rows",
    "check_partition",
    "PartitionFault",
    "Teacher",
    "Voter",
    "ABSTAINED",
    "AbstainingVoter",
    "ConstantVoter",
    "ClassifierTeacher",
    "as_teacher",
    "with_classes",
    "ClassifierVoter",
    "FunctionTeacher",
    "FunctionVoter",
    "PriorMatchingTeacher",
    "MatchedVoter",
    "CommandTeacher",
    "CommandVoter",
    "ChatEndpoint",
    "ChatTeacher",
    "ChatVoter",
    "Preprocessing",
    "check_unfitted",
    "not_looked_into",
    "train_teachers",
    "train_chunk",
    "train_elsewhere",
    "DaskScheduler",
    "check_address",
    "teacher_seed",
    "Ensemble",
    "count_votes",
    "gather_scores",
    "held_out_rows",
    "held_out_in_shards",
    "teacher_errors",
    "TrialFailed",
    "tried",
    "unit_outcomes",
    "margins",
    "expected_margins",
    "high_margin_curve",
    "HighMarginCurve",
    "agreement",
    "Agreement",
    "average_stability",
    "AverageStability",
    "soft_label_quality",
    "SoftLabelQuality",
    "dump_voters",
    "load_voters",
]
