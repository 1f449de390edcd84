"""Many answers of a run told as a few sums, so that thousands of runs of thousands of answers fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quorate.mechanisms import DECLINED, QueryMechanism
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

    mechanism: QueryMechanism
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one run, ``(n_queries, n_classes)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``; return sums, ``(n_runs, …)``."""
        return np.asarray(_told(self.mechanism, counts, noise).sum(axis=1))


@dataclass(frozen=True, slots=True)
class ContrastsOfAnswers:
    """The same run, told by what a changed query and its unchanged neighbour have in common.

    Every second answer (1, 3, 5, …) is compared with the one before it. Told are how many of these pairs agree, and how
    many of the pairs (1, 2), (3, 4), …; the sums over the second answers minus those over the first; and the sums over
    all. Noise that two consecutive answers share falls out of such a difference.

    Parameters
    ----------
    mechanism : Mechanism
        With ``release_many(counts, noise)``.

    Examples
    --------
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> from quorate.noise import SeededNoise
    >>> runs = np.tile([[90, 10], [10, 90]], (1, 25, 1))  # one run of 50 queries; every second has the other class
    >>> ContrastsOfAnswers(GaussianNoisyMax(sigma=4.0)).release_many(runs, SeededNoise(0)).tolist()
    [[0, 0, 0, -25, 25, 0, 25, 25]]
    """

    mechanism: QueryMechanism
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one run, ``(n_queries, n_classes)``, of an even number of queries."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``; return ``(n_runs, 2 + 2 × …)``."""
        told = _told(self.mechanism, counts, noise)
        same = (told[:, 1:] == told[:, :-1]).all(axis=2)
        agree = np.stack([same[:, ::2].sum(axis=1), same[:, 1::2].sum(axis=1)], axis=1)
        first, second = told[:, ::2].sum(axis=1), told[:, 1::2].sum(axis=1)
        return np.concatenate([agree, second - first, second + first], axis=1)


def _told(mechanism: QueryMechanism, counts: IntArray, noise: NoiseSource) -> IntArray:
    """Answer each of ``(n_runs, n_queries, n_classes)``, all queries at once."""
    n_runs, n_queries, n_classes = counts.shape
    answers = np.asarray(mechanism.release_many(counts.reshape(-1, n_classes), noise)).reshape(n_runs, n_queries, -1)
    return told(mechanism, answers, n_classes)


def told(mechanism: Any, answers: IntArray, n_classes: int) -> IntArray:
    """Return what each answer adds to a sum, ``(n_runs, n_queries, …)``: its values, or a 1 for its class or ⊥."""
    inner = getattr(mechanism, "mechanism", mechanism)  # of what a twin is made of
    if getattr(inner, "releases_values", False) or getattr(inner, "takes", "votes") == "sums":
        return answers
    return np.asarray(answers == np.array([DECLINED, *range(n_classes)]), dtype=np.int64)
