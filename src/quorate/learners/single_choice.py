"""One choice among candidates whose number may be private: a single candidate is taken without a draw."""

from __future__ import annotations

import numpy as np

from quorate.mechanisms import CandidateChoice
from quorate.noise import NoiseSource
from quorate.types import IntArray


def chosen(mechanism: CandidateChoice, scores: IntArray, noise: NoiseSource) -> int:
    """Choose one of some candidates by their ``(n_candidates,)`` int64 scores: its index.

    On some private points a whole class collapses to one dichotomy. A refusal to choose would tell that; taking the one
    there is tells no more than a choice that could not have come out otherwise.
    """
    return int(mechanism.release_many(scores[np.newaxis], noise)[0]) if len(scores) > 1 else 0
