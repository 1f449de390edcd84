"""The private side: partition → teachers → votes. Everything that leaves this room is a Secret.

Here belongs how units meet teachers, how teachers are trained apart from each other, and how their votes are counted.
Noise does not: a vote becomes an answer in :mod:`quorate.labelling`. Begin with :mod:`~quorate.ensemble.partition`,
then :mod:`~quorate.ensemble.training` and :mod:`~quorate.ensemble.votes`.
"""

from quorate.ensemble.diagnostics import (
    Agreement,
    agreement,
    average_stability,
    expected_margins,
    high_margin_curve,
    margins,
    soft_label_quality,
)
from quorate.ensemble.ensemble import Ensemble, as_teacher, with_classes
from quorate.ensemble.held_out import held_out_in_shards, held_out_rows, teacher_errors, unit_outcomes, unit_places
from quorate.ensemble.numbers import RegressorTeacher, sum_numbers
from quorate.ensemble.partition import (
    Partition,
    PartitionFault,
    balanced_shards,
    change_of_one_teacher,
    check_partition,
    hash_shards,
    partition_rows,
    seeds_of_units,
    shared_shards,
)
from quorate.ensemble.persistence import dump_voters, load_voters
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.command import CommandTeacher
from quorate.ensemble.teachers.function import FunctionTeacher
from quorate.ensemble.teachers.prior_matching import PriorMatchingTeacher
from quorate.ensemble.teachers.prompted import ChatEndpoint, ChatTeacher, ChatVoter
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, ConstantVoter, Teacher, Voter
from quorate.ensemble.teachers.unfitted import Preprocessing, check_unfitted, not_looked_into
from quorate.ensemble.training import teacher_seed, train_chunk, train_elsewhere, train_teachers
from quorate.ensemble.votes import count_votes, gather_scores
from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
from quorate.ensemble.workers.workers import TrialFailed, sent, tried

__all__ = [
    "Partition",
    "change_of_one_teacher",
    "hash_shards",
    "balanced_shards",
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
    "PriorMatchingTeacher",
    "CommandTeacher",
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
    "teacher_seed",
    "Ensemble",
    "count_votes",
    "gather_scores",
    "RegressorTeacher",
    "sum_numbers",
    "held_out_rows",
    "held_out_in_shards",
    "unit_places",
    "teacher_errors",
    "TrialFailed",
    "sent",
    "tried",
    "unit_outcomes",
    "margins",
    "expected_margins",
    "high_margin_curve",
    "agreement",
    "Agreement",
    "average_stability",
    "soft_label_quality",
    "dump_voters",
    "load_voters",
]
