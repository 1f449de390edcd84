r"""How sure the model of the rounds should be, by one more round that counts how often it is right.

After all other rounds the weights are what is published. The last round counts, with the noise and at the price of any
other, how many units the model is right about and how many it is wrong about, in bins of the probability of its
likeliest class: one unit adds 1 to one count. The temperature T is the number by which all scores are divided such that
in each bin the mean probability of the likeliest class, over the public rows there, is the share that it is right
about. With noisy counts :math:`\tilde r_b` and :math:`\tilde w_b` of right and wrong units, noise of standard
deviation s on each, and :math:`q_b(T)` for that mean, T is where

.. math:: \sum_b \frac{(\tilde r_b - q_b(T) (\tilde r_b + \tilde w_b))^2}{s^2 ((1 - q_b)^2 + q_b^2)
          + n_b q_b (1 - q_b)} + \Bigl(\frac{\log T}{\tau}\Bigr)^2

is least, with the last two :math:`q_b` of each denominator at T = 1 and
:math:`n_b = \max(0, \tilde r_b + \tilde w_b)`. Where noise hides the counts the last term, with τ = ½, keeps T near 1.
All of that is a function of what was released and of public rows.

References
----------
Guo, Pleiss, Sun and Weinberger (2017), arXiv:1706.04599, Section 4.2, for one temperature; their Section 2 for bins.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, Final

import numpy as np

from quorate.deferred import optimize
from quorate.types import FloatArray, IntArray

MOST_BINS: Final = 16
FURTHEST: Final = 20.0  #: from 1, either way
_PRIOR = 0.5  # standard deviation of log T before anything was counted
_SUREST = 6.0  # log-odds of the likeliest class where the last bin is at its end


def bins_for(n_coordinates: int) -> int:
    """Return how many bins there are: two counts each have to find room among the numbers of a round."""
    return min(MOST_BINS, n_coordinates // 2)


def edges_of(n_bins: int, n_classes: int) -> FloatArray:
    """Return the probabilities ``(n_bins - 1,)`` between bins: even in log-odds, from those of one of n_classes."""
    least = -log(n_classes - 1)
    at = (least + (_SUREST - least) * number / n_bins for number in range(1, n_bins))
    return np.array([1 / (1 + exp(-odds)) for odds in at])


def sureness(slopes: FloatArray, codes: IntArray, n_cells: int) -> IntArray:
    """Return the cell of each row: twice the bin of its likeliest class's probability, and 1 more where that is right.
    `slopes`: as :func:`~quorate.direct.contributions.slopes` has them; so a cell is a function of its row alone.
    """
    if slopes.shape[1] == 1:
        wrong = np.abs(slopes[:, 0])  # the probability of the other class
        surest, right = np.maximum(wrong, 1 - wrong), wrong < 0.5
        n_classes = 2
    else:
        own, n_classes = np.arange(len(codes)), slopes.shape[1]
        probabilities = -slopes
        probabilities[own, codes] = 1 - slopes[own, codes]
        surest, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    bins = np.searchsorted(edges_of(n_cells // 2, n_classes), surest, side="right")
    return np.asarray(2 * np.minimum(bins, n_cells // 2 - 1) + right, dtype=np.int64)


def temperature_of(counts: FloatArray, noise: float, logits: FloatArray) -> float:
    """Return the temperature that noisy counts tell. `counts`: ``(n_cells,)``, of wrong and right units in turn.
    `noise`: standard deviation on each. `logits`: of public rows by the same weights, ``(n_public, n_outputs)``.
    """
    wrong, right = counts[::2], counts[1::2]
    n_bins, n_classes = len(wrong), max(logits.shape[1], 2)
    bins = np.searchsorted(edges_of(n_bins, n_classes), _surest(logits), side="right")
    occupied = np.flatnonzero(np.bincount(bins, minlength=n_bins))
    units = (right + wrong)[occupied]

    def means(temperature: float) -> FloatArray:
        surest = _surest(logits / temperature)
        return np.array([surest[bins == one].mean() for one in occupied])

    before = means(1.0)
    chance = np.maximum(units, 0) * before * (1 - before)

    def loss(logarithm: float) -> float:
        q = means(exp(logarithm))
        variance = noise**2 * ((1 - q) ** 2 + q**2) + chance
        return float(np.sum((right[occupied] - q * units) ** 2 / variance) + (logarithm / _PRIOR) ** 2)

    furthest = log(FURTHEST)
    minimum: Any = optimize.minimize_scalar(
        loss, bounds=(-furthest, furthest), method="bounded", options={"xatol": 1e-6}
    )
    return float(exp(minimum.x))


def _surest(logits: FloatArray) -> FloatArray:
    """Return the probability of the likeliest class of each row."""
    if logits.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-np.abs(logits[:, 0]))))
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(1 / raised.sum(axis=1))
