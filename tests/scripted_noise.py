"""A source of noise that gives the words that it was told to give, for tests of what is made of each word."""

import numpy as np


class ScriptedNoise:
    """Gives its words, of 64 bits, in their order, wherever it is asked; more than there are is the test's mistake."""

    seeded = True

    def __init__(self, *words):
        self.left = list(words)

    def words(self, n):
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n, "more words asked for than scripted"
        return np.array(given, dtype=np.uint64)

    def at(self, purpose, index):
        return self
