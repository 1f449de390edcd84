"""BNS15, Section 3: labels for VC(C) alone, since the unlabelled rows are sanitized.

Algorithm 1 is ``learner``, with the few points that its candidates are made on. Sanitizers themselves stand in
:mod:`quorate.learners.sanitizers`.
"""

from quorate.learners.generic.learner import GenericLearner

__all__ = ["GenericLearner"]
