"""Which rows of a shard stand in a prompt: a function of the shard, the teacher's seed and the public row alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from quorate.types import IntArray

#: "random": the same rows in every prompt of a teacher; "similar": those most like the row that is asked about.
Choice = Literal["random", "similar"]
_WORDS = 2**18  # places that words are hashed to
_WORD = r"(?u)\b\w+\b"


def spread_over_classes(codes: IntArray, shots: int, seed: int) -> IntArray:
    """Choose rows at random, one class after the other as long as each has some left, in random order.

    `codes`: class codes of a shard. `shots`: how many rows at most. `seed`: the teacher's own.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(codes))
    rank = np.empty(len(codes), dtype=np.int64)  # of a row among those of its class, in the shuffled order
    for code in np.unique(codes):
        mine = shuffled[codes[shuffled] == code]
        rank[mine] = np.arange(len(mine))
    chosen = shuffled[np.argsort(rank[shuffled], kind="stable")][:shots]
    return np.asarray(rng.permutation(chosen), dtype=np.int64)


def most_similar(texts: Sequence[str], asked: Sequence[str], shots: int) -> IntArray:
    """Choose for each asked row the rows of a shard that share most words with it, the likest last.

    `texts`, `asked`: rows of the shard, and those that are asked about. `shots`: how many rows for each. Words and
    pairs of words are hashed, so nothing is fitted on any row; ties go to the row that stands first in the shard.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=_WORDS, alternate_sign=False, ngram_range=(1, 2), token_pattern=_WORD)
    likeness = (words.transform(asked) @ words.transform(texts).T).toarray()
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :shots]
    return np.asarray(order[:, ::-1], dtype=np.int64)
