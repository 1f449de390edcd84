"""BNS15, Section 4: a private learner that needs few labels, from one that needs many.

Begin with ``learner``: Algorithm 2 (LabelBoostProcedure), then Algorithm 3 (LabelBoost). Its sizes and Lemma 4.1 are
``schedule``, worked out by one of the two sets of ``constants``, the printed ones or tight ones.
Rules for a random part of the rows stand in :mod:`quorate.learners.amplification`.
"""

from quorate.learners.label_boost.learner import LabelBoost

__all__ = ["LabelBoost"]
