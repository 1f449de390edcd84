"""The averaging attack: ask the same question again and again, and take the mean of the noisy answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """What repeated answers tell.

    Attributes
    ----------
    mean : FloatArray
        The mean answer, of the shape of one answer: where noise is fresh each time, it tends to the exact votes.
    standard_error : FloatArray
        Its standard error as an attacker would take it.
    asked : int
        How often was asked.
    distinct : int
        How many different answers came. With a memo it is 1, and the mean holds the noise of one answer.
    """

    mean: FloatArray
    standard_error: FloatArray
    asked: int
    distinct: int

    @property
    def learned_more(self) -> bool:
        """Whether asking again told anything that the first answer did not."""
        return self.distinct > 1


def reconstruct(ask: Callable[[], Any], times: int) -> Reconstruction:
    """Ask `times` times and average.

    Parameters
    ----------
    ask : callable
        Asks one and the same question; returns a number or an array of numbers (noisy counts, or a class code).
    times : int
        At least 2.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> from quorate.noise import SeededNoise
    >>> votes, noise, mechanism = np.array([170, 60, 20]), SeededNoise(0), NoisyCounts(sigma=40.0)
    >>> found = reconstruct(lambda: mechanism.release(votes, noise), 4_000)  # no memo, and nobody counts
    >>> bool(np.all(np.abs(found.mean - votes) < 4 * found.standard_error)), bool(found.standard_error.max() < 1)
    (True, True)
    >>> first = mechanism.release(votes, noise)
    >>> reconstruct(lambda: first, 4_000).learned_more  # a memo
    False
    """
    answers = np.array([ask() for _ in range(count("times", times, at_least=2))], dtype=np.float64)
    return Reconstruction(
        mean=np.asarray(answers.mean(axis=0)),
        standard_error=np.where(np.ptp(answers, axis=0) > 0, answers.std(axis=0, ddof=1), 0.0) / np.sqrt(len(answers)),
        asked=len(answers),
        distinct=len(np.unique(answers, axis=0)),
    )
