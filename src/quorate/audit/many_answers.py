"""Many answers of a run told as a few sums, so that thousands of runs of thousands of answers fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quorate.mechanisms import DECLINED, Mechanism, NoisyCounts
from quorate.noise import NoiseSource
from quorate.types import IntArray


@dataclass(frozen=True, slots=True)
class SumOfAnswers:
    """A whole run of a mechanism that answers each query by itself; what is told is how often each answer came.

    Noisy counts are added up. Sums are made from released answers alone, so whatever an attack on them proves it
    proves about the run; and where every query has the same votes, they hold all that there is to know.

    Parameters
    ----------
    mechanism : Mechanism
        With ``release_many(counts, noise)``.

    Examples
    --------
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> from quorate.noise import SeededNoise
    >>> runs = np.tile([90, 10], (2, 50, 1))  # two runs of 50 queries
    >>> SumOfAnswers(GaussianNoisyMax(sigma=4.0)).release_many(runs, SeededNoise(0)).tolist()  # declined, 0, 1
    [[0, 50, 0], [0, 50, 0]]
    """

    mechanism: Mechanism
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one run, ``(n_queries, n_classes)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``; return sums, ``(n_runs, …)``."""
        n_runs, n_queries, n_classes = counts.shape
        answers = np.asarray(self.mechanism.release_many(counts.reshape(-1, n_classes), noise))
        each = answers.reshape(n_runs, n_queries, -1)
        if isinstance(self.mechanism, NoisyCounts):
            return np.asarray(each.sum(axis=1))
        codes = (DECLINED, *range(n_classes))
        return np.stack([(each[:, :, 0] == code).sum(axis=1) for code in codes], axis=1)
