"""BNS15, Section 5: a private active learner, which asks for few labels of a secret sample.

Algorithm 4 is ``learner``; Claim 5.7, and what it costs without rounding up, is ``price``.
"""

from quorate.learners.sub_sampling.learner import SubSampling

__all__ = ["SubSampling"]
