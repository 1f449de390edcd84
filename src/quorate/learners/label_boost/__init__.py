"""BNS15, Section 4: a private learner that needs few labels, from one that needs many.

Begin with ``procedure`` (Algorithm 2, LabelBoostProcedure), then ``learner`` (Algorithm 3, LabelBoost). Its sizes are
``schedule``, worked out from a ``task`` by ``paper`` (the printed constants) or by ``tight``; Lemma 4.1 is ``price``.
Rules for a random part of the rows stand in :mod:`quorate.learners.amplification`.
"""

from typing import Any

from quorate.learners.label_boost.learner import LabelBoost
from quorate.renamed import found_in

__all__ = ["LabelBoost"]


def __getattr__(name: str) -> Any:
    """Find what version 0.1 had here, in one module, where it is now."""
    return found_in(
        __name__,
        name,
        [
            f"{__name__}.{file}"
            for file in (
                "learner",
                "procedure",
            )
        ],
    )
