"""BNS15, Section 3: labels for VC(C) alone, since the unlabelled rows are sanitized.

Algorithm 1 is ``learner``; the few points that its candidates are made on are ``net``. Sanitizers themselves stand in
:mod:`quorate.learners.sanitizers`.
"""

from typing import Any

from quorate.learners.generic.learner import GenericLearner
from quorate.renamed import found_in

__all__ = ["GenericLearner"]


def __getattr__(name: str) -> Any:
    """Find what version 0.1 had here, in one module, where it is now."""
    return found_in(__name__, name, [f"{__name__}.{file}" for file in ("learner",)])
