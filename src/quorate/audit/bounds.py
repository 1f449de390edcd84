r"""One-sided confidence bounds: from what an attack counted to the least privacy loss that explains it.

Let :math:`\underline p(k, n, \alpha)` and :math:`\overline p(k, n, \alpha)` be the Clopper–Pearson bounds of a
binomial proportion. Each function here returns a number that exceeds the true loss with probability at most α.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from quorate.deferred import special
from quorate.types import FloatArray


def proportion_lower(successes: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the Clopper–Pearson lower bound of a proportion, at level ``1 − alpha``; 0 where nothing was tried.

    Examples
    --------
    >>> round(float(proportion_lower(10, 10, 0.05)), 4)  # alpha ** (1 / 10)
    0.7411
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betaincinv(np.maximum(k, 1e-300), n - k + 1, alpha)
    return np.where(k > 0, bound, 0.0)


def proportion_upper(successes: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the Clopper–Pearson upper bound of a proportion, at level ``1 − alpha``; 1 where nothing was tried.

    Examples
    --------
    >>> round(float(proportion_upper(0, 10, 0.05)), 4)
    0.2589
    """
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betainccinv(k + 1, np.maximum(n - k, 1e-300), alpha)
    return np.where(k < n, bound, 1.0)


def pure_epsilon_lower(correct: ArrayLike, guesses: ArrayLike, alpha: float) -> FloatArray:
    r"""Bound ε from below by the right guesses of a uniform secret bit: :math:`\mathrm{logit}\,\underline p`.

    Under ε-DP a guess, made whenever the attacker likes, is right with probability at most
    :math:`e^\varepsilon/(1+e^\varepsilon)`, whatever the others were; abstentions are not counted.

    Examples
    --------
    >>> round(float(pure_epsilon_lower(7_311, 10_000, 0.05)), 3)
    0.963
    """
    return np.maximum(0.0, special.logit(np.maximum(proportion_lower(correct, guesses, alpha), 0.5)))


def approx_epsilon_lower(
    hits_1: ArrayLike, runs_1: ArrayLike, hits_0: ArrayLike, runs_0: ArrayLike, delta: float, alpha: float
) -> FloatArray:
    r"""Bound ε of an (ε, δ) claim from below: :math:`\ln((\underline p_1 - \delta)/\overline p_0)`, each at α/2.

    `hits_1` of `runs_1` runs on one data set and `hits_0` of `runs_0` on its neighbour gave the event.

    Examples
    --------
    >>> round(float(approx_epsilon_lower(7_000, 10_000, 2_500, 10_000, 1e-5, 0.05)), 3)
    0.983
    """
    above = proportion_lower(hits_1, runs_1, alpha / 2) - delta
    below = proportion_upper(hits_0, runs_0, alpha / 2)
    return np.where(above > below, np.log(np.maximum(above, 1e-300) / below), 0.0)


def gaussian_mu_lower(
    hits_1: ArrayLike, runs_1: ArrayLike, hits_0: ArrayLike, runs_0: ArrayLike, alpha: float
) -> FloatArray:
    r"""Bound μ of a Gaussian trade-off curve from below: :math:`\Phi^{-1}(1-\overline{FNR})-\Phi^{-1}(\overline{FPR})`.

    Examples
    --------
    >>> round(float(gaussian_mu_lower(8_413, 10_000, 5_000, 10_000, 0.05)), 2)  # exact: 1
    0.95
    """
    true_positives = proportion_lower(hits_1, runs_1, alpha / 2)
    false_positives = proportion_upper(hits_0, runs_0, alpha / 2)
    with np.errstate(invalid="ignore"):  # -inf minus inf where nothing was counted
        return np.maximum(
            0.0, np.nan_to_num(special.ndtri(true_positives) - special.ndtri(false_positives), nan=0.0, neginf=0.0)
        )
