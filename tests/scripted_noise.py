"""A source of noise that gives the words that it was told to give, for tests of what is made of each word."""

from __future__ import annotations

import numpy as np

from quorate.types import WordArray


class ScriptedNoise:
    """Gives its words in their order, wherever it is asked; more than there are is a mistake of the test.

    Parameters
    ----------
    *words : int
        64-bit words, from 0 to 2^64 − 1.
    """

    seeded = True

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> WordArray:
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n, "more words asked for than scripted"
        return np.array(given, dtype=np.uint64)

    def at(self, purpose: str, index: int) -> ScriptedNoise:
        return self
