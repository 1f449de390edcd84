"""BNS15, Section 5: a private active learner, which asks for few labels of a secret sample.

Algorithm 4 and Claim 5.7, with what it costs without rounding up, are ``learner``.
"""

from quorate.learners.sub_sampling.learner import SubSampling

__all__ = ["SubSampling"]
