"""A sparse vector asked query by query, as a service asks it: another path through its code than a whole stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.mechanisms import DECLINED, StreamMechanism
from quorate.noise import NoiseSource
from quorate.types import IntArray


@dataclass(frozen=True, slots=True)
class StepByStep:
    """Answer a stream with ``init`` and ``step`` in place of ``release``; the answers have the same distribution.

    Parameters
    ----------
    mechanism : StreamMechanism
        With ``init(noise, stages_spent, asked)`` and ``step(state, counts, noise)``.
    stages_spent : int, default 0
        How many stages were spent before the stream, each on one query.

    Examples
    --------
    >>> from quorate.mechanisms import StableSparseVector
    >>> from quorate.noise import SeededNoise
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=1, n_queries=100)
    >>> StepByStep(mechanism).release(np.array([[900, 100], [510, 490], [900, 100]]), SeededNoise(0)).tolist()
    [0, -1, -1]
    """

    mechanism: StreamMechanism
    stages_spent: int = 0
    takes_streams: ClassVar[bool] = True

    def release(self, counts: NDArray[Any], noise: NoiseSource) -> IntArray:
        """Answer the rows of `counts` in turn; rows after the end are ``DECLINED``, ``(n_queries,)``."""
        answers = np.full(len(counts), DECLINED, dtype=np.int64)
        state = self.mechanism.init(noise, self.stages_spent, self.stages_spent)
        for place, row in enumerate(counts):
            if not state.open:
                break
            state, answer = self.mechanism.step(state, row, noise)
            answers[place] = DECLINED if answer is None else answer
        return answers
