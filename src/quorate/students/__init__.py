"""The public side: students that may be published, since they see released answers and public points alone."""

from __future__ import annotations

from quorate.students.declared import class_probabilities, fit_student
from quorate.students.shares import VoteShares, fit_vote_shares
from quorate.students.teach import teach_plain, teach_values

__all__ = ["teach_plain", "teach_values", "fit_student", "class_probabilities", "VoteShares", "fit_vote_shares"]
