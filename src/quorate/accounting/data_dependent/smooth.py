r"""Smooth sensitivity of a data-dependent total: how far it can move, near this data set and further off.

Each query's bound is a function of one number that one changed vote moves by at most a fixed step: the effective gap u
(step √2/σ) for a noisy vote, the largest count (step 1) for a threshold test. So the local sensitivity at distance d
is the largest change of that function over one step, from wherever d changed votes lead; and with
:math:`LS(d) = \sum_{queries}` of them, :math:`\max_d e^{-\beta d} LS(d)` is a β-smooth bound (Nissim, Raskhodnikova,
Smith 2007, Def. 2.2; PATE18 App. B does the same).

How far d votes lead is found on the votes themselves, and not by d steps of the effective gap: these are reached only
where all votes are for two classes. A vote is changed by moving, adding or removing it. Let
:math:`h(g) = \Phi^c(g/\sqrt2\sigma)`, which is convex from 0 on (with integer noise from a gap of ½), so that
:math:`q = \sum_c h(g_c)` is

- smallest where all d votes go to the first class, each from the class that is nearest to it at that moment (a sum of
  convex terms falls fastest there), or from nowhere once no other votes are left;
- largest where all d votes go from the first class to the second (a sum of convex terms is largest at a corner). Where
  the second would draw level, every larger q is taken to be reached: no bound depends on q there.

Both extremes are exact, so that what is reached from a neighbour in d steps is reached from here in d + 1: this is what
makes the bound smooth.

The one way out for a total is noise scaled to that (GNSS of PATE18 App. B): the total at one fixed order is counted in
public steps, and an integer of discrete Gaussian noise is added whose scale is a multiple of the smooth sensitivity,
itself a secret. What the release costs is known beforehand and holds at every data set (:func:`release_rdp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, log1p, sqrt
from typing import Any

import numpy as np

from quorate.accounting.data_dependent.noisy_max import (
    Noise,
    bit_divergence,
    checked_noise,
    effective_gap,
    gaussian_bound,
    log_q_gaussian,
    revealed_counts,
)
from quorate.accounting.renyi import checked_orders
from quorate.ambient import own_switches
from quorate.arguments import real
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE
from quorate.types import BoolArray, FloatArray, IntArray, Secret

_CELLS = 256  # grid cells to one step of the effective gap, where they are not too many
_FEWEST_CELLS, _MOST_EDGES = 16, 2**18
_NEGLIGIBLE = 1e-12  # a share of the bound
_LEAST_MULTIPLIER = 4.0  # below, the integers would show in the divergence (see release_rdp)


@own_switches()
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

    `counts` ``(n_queries, n_classes)``: votes per class of all queries that were asked. `sigma`: noise of the noisy
    vote, in votes. `order`: the one Rényi order of the total, fixed beforehand. `beta`: β > 0: by how much log of the
    bound may differ between neighbours. `answered` ``(n_queries,)``: which queries got a noisy vote (a public output);
    all where left out. `threshold`, `threshold_sigma`: the threshold test that every query went through, if there was
    one. `noise` ("discrete", "continuous"): as for :func:`gnmax_rdp`.

    In nats. Secret: it depends on the votes.
    """
    sigma, beta = real("sigma", sigma, above=0), real("beta", beta, above=0)
    grid, kind = checked_orders([order]), checked_noise(noise)
    votes = revealed_counts(counts)
    chosen = _answered(answered, votes.shape[0])
    curves = [_noisy_vote(votes[chosen], sigma, grid, kind, beta)] if chosen.size else []
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


def _noisy_vote(votes: IntArray, sigma: float, order: FloatArray, noise: Noise, beta: float) -> FloatArray:
    """Return LS(d), d = 0, 1, …, summed over the queries, up to where it no longer grows or counts."""
    drops = _Drops.of(votes.shape[1], sigma, order)
    rows, times = np.unique(-np.sort(-votes, axis=1), axis=0, return_counts=True)
    first = 0.5 if noise == "discrete" else 0.0  # from where h is convex

    def cell(gaps: FloatArray) -> IntArray:
        return drops.cell(effective_gap(log_q_gaussian(np.sort(gaps, axis=1), sigma, noise), votes.shape[1]))

    gaps = (rows[:, :1] - rows[:, 1:]).astype(np.float64)  # ascending
    ahead, left = gaps.copy(), rows[:, 1:].copy()
    low = high = cell(gaps)
    settled, best, sums = 0.0, 0.0, list[float]()
    while True:
        d = len(sums)
        largest = drops.largest(low, high)
        sums.append(settled + float(largest @ times))
        best = max(best, sums[-1] * exp(-beta * d))
        going = largest < drops.peak
        settled += drops.peak * float(times[~going].sum())
        if not going.any():
            return np.asarray(sums)
        gaps, ahead, left = gaps[going], ahead[going], left[going]
        times, low, high = times[going], low[going], high[going]
        most = settled + drops.peak * float(times.sum())
        if most * exp(-beta * (d + 1)) < _NEGLIGIBLE * best:
            return np.asarray([*sums, most])
        _move_ahead(ahead, left)
        # Left of all steps that start from a cell on the peak is nearer to smaller ones; right of all that end before
        # a cell, to larger ones.
        falls, rises = drops.peak_at < low, drops.peak_at > high - drops.cells
        if rises.any():
            high = _where(rises, cell(ahead[rises]), high)
        if falls.any():
            nearer = gaps[falls] - (d + 1)
            nearer[:, 0] -= d + 1
            level = nearer[:, 0] < first
            nearer[level] = first  # stands for every q that is larger
            low = _where(falls, np.where(level, 0, cell(nearer)), low)


def _where(chosen: BoolArray, values: IntArray, others: IntArray) -> IntArray:
    merged = others.copy()
    merged[chosen] = values
    return merged


def _move_ahead(gaps: FloatArray, left: IntArray) -> None:
    """Give the first class one vote more, from the class that is nearest to it; in place."""
    open_gaps = np.where(left > 0, gaps, np.inf)
    nearest = open_gaps.argmin(axis=1)
    row = np.flatnonzero(left.any(axis=1))
    gaps += 1
    gaps[row, nearest[row]] += 1
    left[row, nearest[row]] -= 1


@dataclass(frozen=True)
class _Drops:
    """How much the bound falls over one step of the effective gap, from each cell of a grid: bounds from above, which
    rise up to a peak and fall after it. `cells`: to a step. `low`, `width`: where the grid begins, a cell's width.
    """

    drops: FloatArray
    peak_at: int
    cells: int
    low: float
    width: float

    @classmethod
    def of(cls, n_classes: int, sigma: float, order: FloatArray) -> _Drops:
        step = sqrt(2) / sigma
        # the bound is constant left of `low` (data-independent) and next to nothing right of `high`
        low, high = -8.0, _vanishing(sigma, float(order[0]), n_classes) + 2 * step
        cells = int(min(_CELLS, max(_FEWEST_CELLS, _MOST_EDGES * step // (high - low))))
        width = step / cells

        def bound_at(gap: Any) -> FloatArray:
            return gaussian_bound(np.asarray(log(n_classes - 1) + special.log_ndtr(-gap)), sigma, order)[:, 0]

        edges = low + width * np.arange(ceil((high - low) / width) + 2 * cells + 2)
        bound = bound_at(edges)
        _refuse_rising(bound, bound_at(high * 1.03 ** np.arange(200)))
        # largest drop over one step that starts in cell j: from its left edge to one step right of its right edge
        drops = bound[: -cells - 1] - bound[cells + 1 :]
        drops += 4e-12 * bound[0] + 2.0**-46 / (float(order[0]) - 1)  # what the check and the right edge let through
        peak_at = int(drops.argmax())
        drops[: peak_at + 1] = np.maximum.accumulate(drops[: peak_at + 1])
        drops[peak_at:] = np.maximum.accumulate(drops[peak_at:][::-1])[::-1]
        return cls(drops, peak_at, cells, low, width)

    @property
    def peak(self) -> float:
        """The largest drop."""
        return float(self.drops[self.peak_at])

    def cell(self, gap: FloatArray) -> IntArray:
        """Return the cell of an effective gap; what is beyond the grid counts as its last cell."""
        return np.clip(np.floor((gap - self.low) / self.width), 0, self.drops.size - 1).astype(np.int64)

    def largest(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the largest drop over a step that starts, or that ends, between two cells."""
        starts = self.drops[np.clip(self.peak_at, low, high)]
        shift = np.maximum(low - self.cells, 0), np.maximum(high - self.cells, 0)
        return np.asarray(np.maximum(starts, self.drops[np.clip(self.peak_at, *shift)]))


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


@dataclass(frozen=True, kw_only=True)
class SanitisedTotal:
    """A released data-dependent total: public, noisy, and not a guarantee.

    `order`: the Rényi order that was fixed beforehand. `value`: the total at that order plus noise, in nats; may be
    negative. `release_cost`: Rényi divergence of releasing it, at the same order, in nats.
    """

    order: float
    value: float
    release_cost: float

    def epsilon(self, delta: float) -> float:
        """Return the ε that `value` and the cost of its release would stand for at δ: a description, no guarantee."""
        delta = real("delta", delta, above=0)
        a = self.order
        return max(self.value, 0.0) + self.release_cost + log1p(-1 / a) - log(delta * a) / (a - 1)


def release_rdp(order: float, beta: float, multiplier: float) -> float:
    r"""Return the Rényi divergence, at `order`, of a release with noise `multiplier` times the smooth sensitivity.

    `order`: a > 1, with :math:`a(1 - e^{-2\beta}) < 1`. `beta`: β of the smooth sensitivity. `multiplier`: noise over
    smooth sensitivity, at least 4.

    In nats; infinite where β is too large for the order.

    Let the noises of two neighbours have scales s and xs, :math:`e^{-\beta} \le x \le e^\beta`; the totals differ by at
    most the smaller sensitivity. The divergence of two Gaussians is
    :math:`\log x + \frac{1}{2(a-1)}\log\frac{x^2}{v} + \frac{a\min(1,x^2)}{2m^2v}` with :math:`v = 1 + a(x^2-1)` and
    m the multiplier. In x² the first two terms together fall up to 1 and grow after it, the third falls throughout:
    so the largest value is at :math:`x = e^{-\beta}`, or is at most the first two at :math:`x = e^\beta` plus
    :math:`a/2m^2`.
    On the integers, Poisson summation changes each normaliser by a factor within :math:`1 \pm 2e^{-2\pi^2w}`, w the
    variance it belongs to (at least :math:`m^2e^{-2\beta}` steps): below 1e-90 for m ≥ 4, and covered by the rounding.
    """
    a, beta, m = float(checked_orders([order])[0]), real("beta", beta, above=0), real("multiplier", multiplier, above=0)
    if not m >= _LEAST_MULTIPLIER:
        raise InvalidParameter(
            parameter="multiplier", got=multiplier, expected=f"at least {_LEAST_MULTIPLIER:g}", advice="raise it"
        )
    if not a * (1 - exp(-2 * beta)) < 1:
        return inf

    def spread(x_squared: float) -> float:
        v = 1 + a * (x_squared - 1)
        return log(x_squared) / 2 + (log(x_squared) - log(v)) / (2 * (a - 1))

    least = exp(-2 * beta)
    below = spread(least) + a * least / (2 * m * m * (1 + a * (least - 1)))
    above = spread(exp(2 * beta)) + a / (2 * m * m)
    return max(below, above) * (1 + 1e-12)


def release_total(
    rdp: Secret[FloatArray],
    sensitivity: Secret[float],
    *,
    order: float,
    beta: float,
    multiplier: float,
    source: NoiseSource,
    step: float = 1e-4,
) -> SanitisedTotal:
    r"""Release the total of data-dependent bounds at one order, with noise scaled to its smooth sensitivity.

    `rdp` ``(n_terms,)``, or one column: the bounds at `order`: of the answered queries, and of the threshold tests if
    there were any. A total above what :func:`largest_total` says counts as that. `sensitivity`: their
    :func:`smooth_sensitivity` at the same order and `beta`. `order`, `beta`, `multiplier`: as in :func:`release_rdp`;
    all fixed beforehand. `source`: where the noise comes from. `step`: the public step in which the total is counted,
    in nats.

    Raises InvalidParameter if a public parameter is out of range. Whether
    anything is raised, and what it says, does not depend on what is secret.

    Privacy: rounding to a step moves the total by at most one step more than its sensitivity S, and S/step + 1 is
    β-smooth if S is. The samplers' largest scale caps the noise, so the total is first clipped to [0, L] with L public.
    A clipped total moves by at most min(S, L), which is β-smooth if S is: a larger S counts as L. Charge
    :attr:`SanitisedTotal.release_cost` with the labels.
    """
    step = real("step", step, above=0)
    cost = release_rdp(order, beta, multiplier)
    if cost == inf:
        raise InvalidParameter(
            "beta is too large for the order: order * (1 - exp(-2 beta)) must be below 1; lower beta"
        )
    most = largest_total(multiplier, step)
    moves, total = _clipped(sensitivity.reveal(), most), _clipped(np.sum(rdp.reveal()), most)
    noise = int(discrete_gaussian(min(multiplier * (moves / step + 1), MAX_SCALE), 1, source)[0])
    return SanitisedTotal(order=float(order), value=(round(total / step) + noise) * step, release_cost=cost)


def largest_total(multiplier: float, step: float) -> float:
    """Return L, the public total beyond which :func:`release_total` clips, in nats; refuse too much noise."""
    step, multiplier = real("step", step, above=0), real("multiplier", multiplier, above=0)
    if multiplier > MAX_SCALE / 2:
        raise InvalidParameter(parameter="multiplier", got=multiplier, expected="at most 2^39", advice="lower it")
    return (MAX_SCALE / multiplier - 1) * step * (1 - 2.0**-50)


def _clipped(value: object, most: float) -> float:
    """Return a secret number inside [0, most], whatever it is: nothing may be raised on its account."""
    number = float(np.asarray(value, dtype=np.float64))
    return min(max(number, 0.0), most) if number == number else most
