"""BNS15, Section 5: a private active learner, which asks for few labels of a secret sample.

Algorithm 4 is ``learner``; Claim 5.7, and what it costs without rounding up, is ``price``.
"""

from typing import Any

from quorate.learners.sub_sampling.learner import SubSampling
from quorate.renamed import found_in

__all__ = ["SubSampling"]


def __getattr__(name: str) -> Any:
    """Find what version 0.1 had here, in one module, where it is now."""
    return found_in(__name__, name, [f"{__name__}.{file}" for file in ("learner",)])
