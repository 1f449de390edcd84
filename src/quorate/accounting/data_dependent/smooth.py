r"""Smooth sensitivity of a data-dependent total: how far it can move, near this data set and further off.

Each query's bound is a function of one number that one changed vote moves by at most a fixed step: the effective gap u
(step √2/σ) for a noisy vote, the largest count (step 1) for a threshold test. So the local sensitivity at distance d
is the largest drop of that function over one step, within d + 1 steps; and with
:math:`LS(d) = \sum_{queries}` of them, :math:`\max_d e^{-\beta d} LS(d)` is a β-smooth bound (Nissim, Raskhodnikova,
Smith 2007, Def. 2.2; PATE18 App. B does the same vote by vote).
"""

from __future__ import annotations

from math import ceil, exp, log, sqrt
from typing import Any

import numpy as np

from quorate.accounting.data_dependent.noisy_max import effective_gap, gaussian_bound, log_q_gaussian
from quorate.accounting.data_dependent.threshold import bit_divergence
from quorate.accounting.data_dependent.votes import Noise, checked_noise, gaps_to_the_top, revealed_counts
from quorate.accounting.renyi import checked_orders
from quorate.arguments import real
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.types import FloatArray, IntArray, Secret

_CELLS = 16  # grid cells to one step of the effective gap


def smooth_sensitivity(
    counts: object,
    sigma: float,
    order: float,
    beta: float,
    *,
    answered: object = None,
    threshold: float | None = None,
    threshold_sigma: float | None = None,
    noise: Noise = "discrete",
) -> Secret[float]:
    r"""Return a β-smooth upper bound on the local sensitivity of the total data-dependent bound at one order.

    Parameters
    ----------
    counts : array of int ``(n_queries, n_classes)``, or a Secret of one
        Votes per class of all queries that were asked.
    sigma : float
        Noise of the noisy vote, in votes.
    order : float
        The one Rényi order of the total, fixed beforehand.
    beta : float
        β > 0: by how much log of the bound may differ between neighbours.
    answered : array of bool ``(n_queries,)``, optional
        Which queries got a noisy vote (a public output); all where left out.
    threshold, threshold_sigma : float, optional
        The threshold test that every query went through, if there was one.
    noise : {"discrete", "continuous"}
        As for :func:`gnmax_rdp`.

    Returns
    -------
    Secret of float
        In nats. Secret: it depends on the votes.

    Examples
    --------
    >>> votes = np.array([[200, 30, 20]] * 5)
    >>> near = smooth_sensitivity(votes, 40.0, 12.0, 0.05).reveal()
    >>> 0 < near <= 5 * 12.0 / 40.0**2
    True
    """
    sigma, beta = real("sigma", sigma, above=0), real("beta", beta, above=0)
    grid, kind = checked_orders([order]), checked_noise(noise)
    votes = revealed_counts(counts)
    asked = _answered(answered, votes.shape[0])
    curves = [_noisy_vote(votes[asked], sigma, grid, kind)] if asked.size else []
    if (threshold is None) != (threshold_sigma is None):
        raise InvalidParameter("threshold and threshold_sigma must be given together; pass both or neither")
    if threshold is not None and threshold_sigma is not None:
        limit, spread = real("threshold", threshold, at_least=0), real("threshold_sigma", threshold_sigma, above=0)
        curves.append(_threshold_test(votes, limit, spread, grid, kind))
    furthest = max((curve.shape[0] for curve in curves), default=0)
    total = np.zeros(furthest)
    for curve in curves:  # beyond its end a curve stays at its last, largest value
        total += np.concatenate([curve, np.full(furthest - curve.size, curve[-1])])
    decay = np.exp(-beta * np.arange(furthest))
    return Secret(float(np.max(total * decay, initial=0.0)) * (1 + 1e-12))


def _answered(answered: object, n_queries: int) -> IntArray:
    if answered is None:
        return np.arange(n_queries)
    mask = np.asarray(answered)
    if mask.dtype != np.bool_ or mask.shape != (n_queries,):
        raise InvalidParameter("answered must be booleans of shape (n_queries,); pass which queries got an answer")
    return np.flatnonzero(mask)


def _noisy_vote(votes: IntArray, sigma: float, order: FloatArray, noise: Noise) -> FloatArray:
    """Return LS(d), d = 0, 1, …, summed over the queries, up to where it no longer grows."""
    n_classes = votes.shape[1]
    step = sqrt(2) / sigma
    width = step / _CELLS
    gaps = effective_gap(log_q_gaussian(gaps_to_the_top(votes), sigma, noise), n_classes)
    # the bound is constant left of `low` (data-independent) and next to nothing right of `high`
    low, high = -8.0, _vanishing(sigma, float(order[0]), n_classes) + 2 * step

    def bound_at(gap: Any) -> FloatArray:
        return gaussian_bound(np.asarray(log(n_classes - 1) + special.log_ndtr(-gap)), sigma, order)[:, 0]

    near, far = low + width * np.arange(ceil((high - low) / width) + 2 * _CELLS), high * 1.03 ** np.arange(200)
    _refuse_rising(bound_at(near), bound_at(far))
    edges = low + width * np.arange(ceil((max(float(gaps.max()), high) - low) / width) + 2 * _CELLS + 2)
    bound = bound_at(edges)
    # largest drop over one step that starts in cell j: from its left edge to one step right of its right edge
    drops = bound[: -_CELLS - 1] - bound[_CELLS + 1 :]
    drops += 4e-12 * bound[0] + 2.0**-46 / (float(order[0]) - 1)  # what the check above and the right edge let through
    cells = np.clip(np.floor((gaps - low) / width).astype(np.int64), 0, drops.size - 1)
    return _widening(drops, cells, back=_CELLS, ahead=_CELLS)


def _refuse_rising(*bounds: FloatArray) -> None:
    """Refuse an order and a σ at which the bound rises with the gap; asked at public gaps, so the votes have no say."""
    if any(np.any(np.diff(bound) > 1e-12 * bounds[0][0]) for bound in bounds):
        raise InvalidParameter("the bound does not fall with the gap at this order and sigma; choose another order")


def _vanishing(sigma: float, order: float, n_classes: int) -> float:
    """Return an effective gap beyond which the bound is next to its round-off."""
    gap = 1.0
    worst = order / sigma**2
    while gap < 1e6:
        log_q = np.array([log(n_classes - 1) + float(special.log_ndtr(-gap))])
        if gaussian_bound(log_q, sigma, np.array([order]))[0, 0] < 4e-15 * worst + 2.0**-47 / (order - 1):
            break
        gap *= 1.1
    return gap


def _threshold_test(votes: IntArray, threshold: float, sigma: float, order: FloatArray, noise: Noise) -> FloatArray:
    largest = votes.max(axis=1)
    reach = ceil(40 * sigma) + 2
    low, high = int(min(largest.min(), threshold - reach)), int(max(largest.max(), threshold + reach))
    values = np.arange(low, high + 2)
    bound = bit_divergence(values, threshold, sigma, order, noise)[:, 0]
    drops = np.abs(np.diff(bound))
    return _widening(drops, largest - low, back=1, ahead=1)


def _widening(drops: FloatArray, cells: IntArray, *, back: int, ahead: int) -> FloatArray:
    """Return, for d = 0, 1, …, the sum over `cells` of the largest of ``drops[cell − (d+1)·back : cell + d·ahead]``."""
    distinct, times = np.unique(cells, return_counts=True)
    peak = float(drops.max())
    sums: list[float] = []
    largest = np.zeros(distinct.size)
    last = drops.size - 1
    from_, to = distinct.copy(), distinct.copy()
    while True:
        d = len(sums)
        new_from = np.maximum(distinct - (d + 1) * back, 0)
        new_to = np.minimum(distinct + d * ahead, last)
        for start, stop in [(new_from, new_to)] if d == 0 else [(new_from, from_), (to, new_to)]:
            width = int((stop - start).max())
            for offset in range(width + 1):
                largest = np.maximum(largest, drops[np.minimum(start + offset, stop)])
        from_, to = new_from, new_to
        sums.append(float(np.sum(largest * times)))
        if np.all(largest >= peak) or (np.all(from_ == 0) and np.all(to == last)):
            return np.asarray(sums)


def decay_is_allowed(order: float, beta: float) -> bool:
    """Whether noise scaled to a β-smooth sensitivity has a finite Rényi divergence at `order`.

    Examples
    --------
    >>> decay_is_allowed(10.0, 0.04), decay_is_allowed(10.0, 0.06)
    (True, False)
    """
    return order * (1 - exp(-2 * beta)) < 1
