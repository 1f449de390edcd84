"""A choice among finitely many candidates by integer scores, and one private prediction by such a choice.

The exponential mechanism (BNS15 Algorithm 5); permute-and-flip, at the same price and never a worse choice (McKenna and
Sheldon 2020); and the private prediction in which base hypotheses vote and one label leaves (LWY25 Lemma 4.1; Dwork and
Feldman 2018).

Scores are integers, so that a choice can be sampled exactly. A quality that is no integer is rounded to a grid
first: with a grid of step h pass ``rint(q/h)`` and, since rounding moves each score by up to half a step, the
sensitivity ``Δ/h + 1``; or scale the exact fractions up to integers.

A private quantile on a public grid, the place that a share of units is at or below, is one exact choice: what makes
prediction sets where only private rows have labels (arXiv:2102.06202, Algorithm 1, with permute-and-flip in the place
of the exponential mechanism).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import ceil, exp, expm1, log, log1p
from typing import ClassVar

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import Answerable, AnswerNoise
from quorate.mechanisms.answers import in_blocks, many_queries
from quorate.mechanisms.fields import FROM_TASK, PRICE
from quorate.mechanisms.mechanism import QueryMechanism, Takes, register, unlisted
from quorate.noise import NoiseSource, geometric
from quorate.noise.source import MAX_SCALE, words_of
from quorate.noise.table import exp_negative
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray


def many_choices(scores: IntArray) -> IntArray:
    """Return the scores ``(n_queries, n_candidates)``, checked: int64; they may be negative."""
    if not isinstance(scores, np.ndarray) or scores.ndim != 2:
        raise InvalidParameter(
            "counts must be an int64 array (n_queries, n_candidates); pass one row of scores a query"
        )
    if scores.dtype != np.int64:
        raise InvalidParameter(f"counts must be int64 scores, got {scores.dtype}; round them to a grid")
    if scores.shape[1] < 2:
        raise InvalidParameter(f"counts must have at least 2 candidates, got {scores.shape[1]}; one needs no choice")
    if scores.size and (scores.min() < -MAX_SCALE or scores.max() > MAX_SCALE):
        raise InvalidParameter("counts must be scores from -2^40 to 2^40; use a coarser grid")
    return scores


@dataclass(frozen=True, slots=True)
class CandidateChoice(QueryMechanism):
    r"""Choose one of finitely many candidates, the better ones more often, at ε whatever their number.

    Votes are scores too: of the classes. A subclass gives each candidate x below the best one at most
    :math:`e^{-\varepsilon x/(2\Delta)}` times the best one's probability, or does stochastically better.

    `epsilon`: ε of one choice; must be > 0. `sensitivity`: Δ > 0: how far one changed teacher or record moves any one
    score. Votes have 1.
    """

    epsilon: float = field(metadata=PRICE)
    sensitivity: float = field(default=1.0, metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "sensitivity", real("sensitivity", self.sensitivity, above=0))

    @property
    def event(self) -> PureDP:
        """Price of one choice."""
        return PureDP(self.epsilon)

    def shortfall(self, n_candidates: int, failure: float) -> float:
        r"""Return how far below the best score the chosen one is, at most, but with probability `failure`.

        There are at most n − 1 worse candidates: :math:`(2\Delta/\varepsilon) \log((n-1)/failure)`, rounded up.
        """
        spread = 2 * self.sensitivity / self.epsilon
        return max(spread * math.log((n_candidates - 1) / failure), 0.0) * (1 + 2.0**-40)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Choose for each row of ``(n_queries, n_candidates)`` int64 scores: indices ``(n_queries,)``."""
        return self._choices(many_choices(counts), noise)

    @abstractmethod
    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        """Choose for each row of checked scores."""


_UNIFORM_WORDS = 4


@stored_as("quorate.mechanisms.exponential.Exponential")
@register
@dataclass(frozen=True, slots=True)
class Exponential(CandidateChoice):
    r"""Choose a candidate h with probability proportional to :math:`e^{\varepsilon q(h)/(2\Delta)}`.

    Notes
    -----
    Privacy: each weight moves by a factor of at most :math:`e^{\varepsilon/2}`, and so does their sum: ε-DP.
    The number of candidates does not enter. Larger scores are better; negate an error. See
    :class:`PermuteAndFlip` for a sampler that is never worse at the same price.

    Exactness: weights are computed relative to the best score, in 320-bit integers, from the exact rational
    :math:`\varepsilon/(2\Delta)`, and one 256-bit uniform integer chooses: within 2^-250 in total variation.

    References
    ----------
    McSherry and Talwar (2007); BNS15 (Beimel, Nissim, Stemmer), Algorithm 5; LWY25 (Li, Wang, Ye), Lemma 2.9.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> Exponential(epsilon=1.0).release(np.array([10, 40, 12]), SeededNoise(0))
    1
    """

    @property
    def answer_noise(self) -> AnswerNoise:
        r"""Gumbel noise of scale :math:`2\Delta/\varepsilon` on every score: its largest has the mechanism's law."""
        return AnswerNoise(distribution="gumbel", scale=2 * self.sensitivity / self.epsilon)

    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        rate = Fraction(self.epsilon) / (2 * Fraction(self.sensitivity))
        gaps, place = np.unique(scores.max(axis=1, keepdims=True) - scores, return_inverse=True)
        weights = [exp_negative(rate * gap) for gap in gaps.tolist()]
        choices = np.empty(scores.shape[0], dtype=np.int64)
        words = words_of(noise, _UNIFORM_WORDS * scores.shape[0]).reshape(-1, _UNIFORM_WORDS)
        for i, row in enumerate(place.reshape(scores.shape)):
            borders = list(accumulate(weights[j] for j in row.tolist()))
            uniform = int.from_bytes(words[i].astype(">u8").tobytes(), "big")
            # The number of borders at or below total·U/2^256: the inverse CDF at a 256-bit uniform.
            choices[i] = bisect_right(borders, (borders[-1] * uniform) >> 64 * _UNIFORM_WORDS)
        return choices


_PRIORITY_WORDS = 4


@stored_as("quorate.mechanisms.permute_and_flip.PermuteAndFlip")
@register
@dataclass(frozen=True, slots=True)
class PermuteAndFlip(CandidateChoice):
    r"""Visit the candidates in random order and choose the first whose coin says so.

    The coin of candidate h says so with probability :math:`e^{\varepsilon(q(h) - q^*)/(2\Delta)}`, where :math:`q^*` is
    the best score.

    Notes
    -----
    The best candidate's coin always says so. Privacy: ε-DP (McKenna and Sheldon 2020, Theorem 1),
    and the chosen score is stochastically at least that of :class:`Exponential`.

    Exactness: no candidate is visited twice, so all coins may be flipped first and the choice is a uniform one among
    those that say so. A coin of probability :math:`r^g` with :math:`r = e^{-1/\lambda}`, λ = 2Δ/ε rounded up, is
    the event that an exact geometric draw of scale λ is at least the gap g. The uniform choice is the largest
    of independent random words, ties broken by further words, up to 256 bits.

    References
    ----------
    McKenna and Sheldon (2020), arXiv:2010.12603.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> PermuteAndFlip(epsilon=1.0).release(np.array([10, 40, 12]), SeededNoise(0))
    1
    """

    def __post_init__(self) -> None:
        CandidateChoice.__post_init__(self)
        if not self._scale <= MAX_SCALE:
            raise InvalidParameter(
                parameter="epsilon",
                got=self.epsilon,
                expected="at least 2^-39 times the sensitivity",
                advice="use a coarser grid",
            )

    @property
    def _scale(self) -> float:
        return float(np.nextafter(2 * (self.sensitivity / self.epsilon), np.inf))

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        r"""Return what K teachers can get answered: the best of C is chosen with :math:`(1 - (1-q)^C)/(Cq)`.

        q is the probability that the coin of one of the others says so; the best one is among :math:`1 + B` that do,
        B binomial.
        """
        q = exp(-n_teachers / self._scale)
        return Answerable(probability=-expm1(n_classes * log1p(-q)) / (n_classes * q) if 0 < q < 1 else 1.0)

    def answer_law(self, counts: IntArray, only: int | None = None) -> FloatArray:
        r"""Return the law of the choice: candidate c with probability :math:`q_c\, \mathbf{E}[1/(1 + B_c)]`.

        :math:`q_c` is the probability that its coin says so, and :math:`B_c` how many of the others' do.
        """
        heads = np.exp(-(counts.max(axis=1, keepdims=True) - counts) / self._scale)
        shares = []
        for c in range(counts.shape[1]) if only is None else (only,):
            others = np.delete(heads, c, axis=1)
            number = np.zeros((len(counts), others.shape[1] + 1))  # its law, one coin after the other
            number[:, 0] = 1.0
            for j in range(others.shape[1]):
                moved = number * others[:, [j]]
                number *= 1 - others[:, [j]]
                number[:, 1:] += moved[:, :-1]
            shares.append(heads[:, c] * (number / np.arange(1, number.shape[1] + 1)).sum(axis=1))
        return np.column_stack([*shares, np.zeros(len(counts))])

    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        choices = np.empty(scores.shape[0], dtype=np.int64)
        for rows, block in in_blocks(scores):
            gaps = block.max(axis=1, keepdims=True) - block
            heads = geometric(self._scale, block.shape, noise) >= gaps
            for _ in range(_PRIORITY_WORDS):  # one round, but for ties of 64 bits
                priority = noise.words(block.size).reshape(block.shape)
                largest = np.where(heads, priority, np.uint64(0)).max(axis=1, keepdims=True)
                heads &= priority == largest
                if (heads.sum(axis=1) == 1).all():
                    break
            choices[rows] = heads.argmax(axis=1)
        return choices


@stored_as("quorate.mechanisms.private_prediction.PrivatePrediction")
@register
@dataclass(frozen=True, slots=True)
class PrivatePrediction(QueryMechanism):
    r"""Release one label, chosen by permute-and-flip with the number of votes as the score.

    Parameters
    ----------
    epsilon : float
        ε of one prediction; must be > 0.

    Notes
    -----
    The votes are those of r hypotheses learned on disjoint parts of the data, so one changed record moves each
    count by at most 1: ε-DP for **one** prediction. Each further one costs as much again.

    Where each hypothesis errs with probability at most α/4, :meth:`n_hypotheses` of them make the released label err
    with probability at most α (LWY25, Lemma 4.1, with the exponential mechanism; permute-and-flip is never worse).

    References
    ----------
    LWY25 (Li, Wang, Ye), Lemma 4.1; Dwork and Feldman (2018), arXiv:1803.10266.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = PrivatePrediction(epsilon=1.0)
    >>> mechanism.n_hypotheses(alpha=0.1)
    23
    >>> mechanism.release(np.array([2, 21]), SeededNoise(0))
    1
    """

    epsilon: float = field(metadata=PRICE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PermuteAndFlip(self.epsilon).epsilon)

    @property
    def event(self) -> PureDP:
        """Price of one prediction."""
        return PureDP(self.epsilon)

    def n_hypotheses(self, alpha: float) -> int:
        r"""Return :math:`r = \lceil 6 \log(4/\alpha)/\varepsilon \rceil` for an error of at most `alpha`, in (0, 1)."""
        return lwy25_lemma_4_1_hypotheses(alpha, self.epsilon)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what so many hypotheses can get answered: that of permute-and-flip."""
        return PermuteAndFlip(self.epsilon).answerable(n_teachers, n_classes)

    def answer_law(self, counts: IntArray, only: int | None = None) -> FloatArray:
        """Return the law of a prediction: that of permute-and-flip."""
        return PermuteAndFlip(self.epsilon).answer_law(counts, only)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Predict for each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        return PermuteAndFlip(self.epsilon).release_many(many_queries(counts), noise)


def lwy25_lemma_4_1_hypotheses(alpha: float, epsilon: float) -> int:
    r"""Return how many hypotheses vote on one private prediction: :math:`r = \lceil 6\ln(4/\alpha)/\varepsilon\rceil`.

    Where each of them errs with probability at most α/4, the released label errs with probability at most α.

    Parameters
    ----------
    alpha : float
        In (0, 1).
    epsilon : float
        ε > 0 of the prediction.

    References
    ----------
    LWY25 (Li, Wang, Ye), Lemma 4.1; Dwork and Feldman (2018), arXiv:1803.10266.

    Examples
    --------
    >>> lwy25_lemma_4_1_hypotheses(0.1, 1.0)
    23
    """
    return ceil(6 * log(4 / real("alpha", alpha, above=0, below=1)) / real("epsilon", epsilon, above=0))


_FINEST = 1_000  # denominator of a share


@stored_as("quorate.mechanisms.quantile.PrivateQuantile")
@unlisted
@dataclass(frozen=True, slots=True)
class PrivateQuantile(QueryMechanism):
    r"""Choose the place on a grid that a share of units is at or below.

    `epsilon`: ε of one release; must be > 0. `share`: in (0, 1), of at most three decimals.

    Notes
    -----
    Counts are ``(n_places,)``: how many units have each place, each unit one. With the share p/q of n units and
    :math:`N_j` of them at or below place j, :math:`D_j = pn - qN_j` is how many are missing there, in q-ths, and
    :math:`-D_{j-1}` how many too many lie below. The score of j is
    :math:`-\max(0, D_j, -D_{j-1})`, so that the quantile itself has 0, whatever the data are.

    Privacy: one unit replaced moves one :math:`N_j` by at most 1 and n not at all, so :math:`D_j` by at most q; one
    added or removed moves it by p or by p − q. A largest of such numbers moves no further. So the sensitivity is q for
    each of the three changes, and the choice by :class:`~quorate.mechanisms.PermuteAndFlip` is ε-DP.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> PrivateQuantile(epsilon=5.0, share=0.9).release(np.array([500, 300, 150, 50]), SeededNoise(0))
    2
    """

    takes: ClassVar[Takes] = "sums"

    epsilon: float = field(metadata=PRICE)
    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", real("share", self.share, above=0, below=1))
        if self.as_fraction.denominator > _FINEST:
            raise InvalidParameter(
                parameter="share", got=self.share, expected="at most three decimals", advice="round it, as 0.9"
            )
        object.__setattr__(self, "epsilon", self.choice.epsilon)

    @property
    def as_fraction(self) -> Fraction:
        """The share as it is typed: 0.9 is nine tenths."""
        return Fraction(repr(self.share))

    @property
    def choice(self) -> PermuteAndFlip:
        """What chooses, by scores in q-ths of a unit."""
        return PermuteAndFlip(epsilon=self.epsilon, sensitivity=float(self.as_fraction.denominator))

    @property
    def event(self) -> PureDP:
        """Price of one release, for a unit added, removed or replaced."""
        return PureDP(self.epsilon)

    def missing(self, n_places: int, failure: float) -> float:
        """Return how many units fewer than the share are at or below the place, but with probability `failure`."""
        return self.choice.shortfall(n_places, failure) / self.as_fraction.denominator

    def scores(self, counts: IntArray) -> IntArray:
        """Return the scores of all places, ``(n_queries, n_places)``."""
        p, q = self.as_fraction.as_integer_ratio()
        deficits = p * counts.sum(axis=1, keepdims=True) - q * np.cumsum(counts, axis=1)
        below = np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), -deficits[:, :-1]], axis=1)
        return np.asarray(-np.maximum(np.maximum(deficits, below), 0), dtype=np.int64)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Choose a place for each row of ``(n_queries, n_places)`` counts: ``(n_queries,)``, from 0."""
        return self.choice.release_many(self.scores(many_queries(counts)), noise)
