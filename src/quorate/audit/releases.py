"""What can be audited, and how it is run many times: once for each bit, on one of two neighbours."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.noise import NoiseSource
from quorate.types import IntArray


class Releases(Protocol):
    """Anything that can be audited: ``release(counts, noise)``, and ``release_many(counts, noise)`` if it has one."""

    def release(self, counts: NDArray[Any], noise: NoiseSource, /) -> Any:
        """Answer from the counts of one query, or of one stream of queries."""
        ...


def run_block(mechanism: Any, pair: NDArray[Any], bits: IntArray, noise: NoiseSource) -> Any:
    """Run the mechanism once for each bit; return the outcomes, the run first.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> class Echo:
    ...     def release(self, counts, noise):
    ...         return int(counts[0])
    >>> run_block(Echo(), np.array([[5, 1], [4, 2]]), np.array([0, 1, 1]), SeededNoise(0))
    [5, 4, 4]
    """
    streams = pair.ndim == 3
    interactive = getattr(mechanism, "takes_streams", hasattr(mechanism, "step"))
    if not hasattr(mechanism, "release_many"):
        if streams and not interactive:
            return [[mechanism.release(row, noise) for row in pair[bit]] for bit in bits.tolist()]
        return [mechanism.release(pair[bit], noise) for bit in bits.tolist()]
    counts = pair[bits]
    if not streams or interactive:
        return mechanism.release_many(counts, noise)
    answers = mechanism.release_many(counts.reshape(-1, pair.shape[-1]), noise)
    if isinstance(answers, np.ndarray):
        return answers.reshape(len(bits), -1)
    queries = pair.shape[1]
    return [answers[start : start + queries] for start in range(0, len(answers), queries)]
