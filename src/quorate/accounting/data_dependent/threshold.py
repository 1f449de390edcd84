r"""The threshold test of Confident-GNMax: one bit, priced exactly, in both directions.

The bit says whether ``max_c n_c + noise >= threshold``. One changed vote moves the maximum by at most 1, so the
divergence from any neighbour, and that of any neighbour from these votes, is that of two known coins.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from quorate.accounting.data_dependent.votes import Noise, checked_noise, revealed_counts
from quorate.accounting.renyi import checked_orders
from quorate.arguments import real
from quorate.deferred import special
from quorate.types import FloatArray, IntArray, Secret


def threshold_rdp(
    counts: object, threshold: float, sigma: float, orders: object, *, noise: Noise = "continuous"
) -> Secret[FloatArray]:
    r"""Return the data-dependent Rényi divergence of the threshold test, per query and order.

    Parameters
    ----------
    counts : array of int ``(n_queries, n_classes)``, or a Secret of one
        Votes per class.
    threshold : float
        T ≥ 0, in votes.
    sigma : float
        Noise on the largest count, in votes.
    orders : array-like of float ``(n_orders,)``
        Rényi orders, > 1.
    noise : {"continuous", "discrete"}
        As for :func:`gnmax_rdp`.

    Returns
    -------
    Secret of ndarray ``(n_queries, n_orders)``
        In nats; never above the data-independent :math:`a/(2\sigma^2)`.

    Notes
    -----
    Privacy: the values depend on the votes and are secret. With p the probability to pass on these votes and p' on a
    neighbour's, the divergence is :math:`\frac{1}{a-1}\log\left(p^a p'^{1-a} + (1-p)^a(1-p')^{1-a}\right)`, at its
    largest over the two neighbours whose maximum is one vote away, and over which of the two comes first: p and p'
    exchanged may give more. So the value bounds both :math:`D_a(M(D) \| M(D'))`, which is data-dependent RDP as PATE18
    has it and all that a total with :func:`gnmax_rdp` claims, and :math:`D_a(M(D') \| M(D))`. PATE18 bounds the same
    bit by its Thm 6, in the first direction.

    Examples
    --------
    >>> bound = threshold_rdp(np.array([[249, 1]]), 120, 20.0, [8.0])
    >>> bool(bound.reveal()[0, 0] < 1e-6 * 8.0 / (2 * 20.0**2))
    True
    """
    sigma, threshold, grid = (
        real("sigma", sigma, above=0),
        real("threshold", threshold, at_least=0),
        checked_orders(orders),
    )
    largest = revealed_counts(counts).max(axis=1)
    distinct, back = np.unique(largest, return_inverse=True)
    return Secret(bit_divergence(distinct, threshold, sigma, grid, checked_noise(noise))[back.ravel()])


def bit_divergence(largest: IntArray, threshold: float, sigma: float, orders: FloatArray, noise: Noise) -> FloatArray:
    """Return the divergence ``(n_values, n_orders)`` of the bit at each largest count and its worse neighbour.

    The larger one of the two directions.

    Examples
    --------
    >>> bit_divergence(np.array([100]), 100.0, 1.0, np.array([2.0]), "continuous").round(3)
    array([[0.627]])
    """
    here = _log_pass_fail(largest, threshold, sigma, noise)
    factor = orders - 1
    result = np.zeros((largest.size, orders.size))
    for step in (-1, 1):
        there = _log_pass_fail(largest + step, threshold, sigma, noise)
        for first, second in ((here, there), (there, here)):
            terms = [a[:, None] + factor * (a - b)[:, None] for a, b in zip(first, second, strict=True)]
            total = np.logaddexp(terms[0], terms[1])
            # each exponent is known to a few units in the last place of the logarithms in it
            sizes = [
                orders * np.abs(a)[:, None] + factor * np.abs(b)[:, None] for a, b in zip(first, second, strict=True)
            ]
            error = sum(size * np.exp(term - total) for size, term in zip(sizes, terms, strict=True))
            result = np.maximum(result, (total + 2.0**-50 * error) / factor)
    worst = orders / (2 * sigma * sigma)
    return np.asarray(np.minimum(result * (1 + 2.0**-46) + 2.0**-49 / factor, worst))


def _log_pass_fail(largest: IntArray, threshold: float, sigma: float, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Return log P(pass) and log P(fail) at each largest count."""
    if noise == "continuous":
        at = (largest - threshold) / sigma
        return np.asarray(special.log_ndtr(at)), np.asarray(special.log_ndtr(-at))
    # noise ≥ need passes; the law is symmetric, so noise ≤ need − 1 is noise ≥ 1 − need
    need = ceil(threshold) - largest
    return _log_tail(need, sigma), _log_tail(1 - need, sigma)


def _log_tail(least: IntArray, sigma: float) -> FloatArray:
    """Return log P(Z ≥ least) of the discrete Gaussian, to all digits on both sides."""
    low, high = int(min(least.min(), -ceil(13 * sigma))), int(max(least.max(), 0)) + ceil(13 * sigma) + 2
    z = np.arange(low, high + 1, dtype=np.float64)
    log_mass = -(z * z) / (2 * sigma * sigma)
    tails = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    return np.asarray(tails[least - low] - special.logsumexp(log_mass))
