r"""Privacy-loss distributions: mixtures of all kinds of noise, composed tightly, and rounded upwards.

A composition of dominating pairs is dominated by the product pair (Zhu, Dong, Wang 2022, Thm 10), whose loss is the
sum of independent losses. A :class:`LossLaw` lists the part of that sum that has atoms and keeps the continuous
Gaussian part as its μ, so that

.. math:: \delta(\varepsilon) = P(L = \infty) + \sum_k P(L = l_k)\;\delta_{\mu}(\varepsilon - l_k).

Few atoms are added up exactly (:func:`outer`). Many are put on a grid first (:func:`on_grid`): an atom between two
grid points is split over both so that its probabilities under *both* worlds stay what they were. Merging the two
halves gives the atom back, so the split pair dominates it by post-processing, and the price is of second order in
the grid step (the "connect the dots" of Doroshenko et al. 2022, met from the other side). The convolution is one FFT
of laws tilted by :math:`e^{\theta l}`, with θ the best Rényi order less one: what matters at (ε, δ) sits in the
middle of the window, and round-off, which is added to every weight, stays small against it.

Hundreds of laws are composed as a tree (:func:`by_fours`). Each of them alone is narrow, and a grid that is fine enough
for it far too fine for the sum; so the step grows with the deviation of what it holds, level by level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log, sqrt

import numpy as np

from quorate.accounting import gaussian
from quorate.accounting.outward import sum_up
from quorate.deferred import fft, special
from quorate.types import FloatArray

_NEGLIGIBLE = -95.0  # log of a weight that may be moved to a larger loss unseen
_GRID = 2**16
_LARGEST_GRID = 2**19
_FINE, _COARSE = 4e-4, 4e-2  # √n θh, for a price of its square/8 of δ: of one grid for all, of each level of a tree


@dataclass(frozen=True, kw_only=True)
class LossLaw:
    """An upper bound of a privacy-loss distribution: atoms ``(n_atoms,)`` in nats, log probabilities rounded up;
    `beyond`: that of an infinite loss; `mu`: μ ≥ 0 of the independent continuous Gaussian part.
    """

    losses: FloatArray
    log_weights: FloatArray
    beyond: float = 0.0
    mu: float = 0.0

    def log_delta(self, epsilon: float) -> float:
        """Return log δ at ε, rounded up."""
        if self.mu > 0:
            terms = self.log_weights + gaussian.log_delta(epsilon - self.losses, self.mu)
        else:
            end = int(np.searchsorted(self.losses, epsilon, side="right")) if self._ascends else None
            above = self.losses > epsilon if end is None else slice(end, None)
            with np.errstate(divide="ignore"):
                terms = self.log_weights[above] + np.log(-np.expm1(epsilon - self.losses[above]))
        total = float(special.logsumexp(terms)) if terms.size else -np.inf
        with np.errstate(divide="ignore"):
            total += 2.0**-46 + (2.0**-50 * abs(total) if np.isfinite(total) else 0.0)
            total = float(np.logaddexp(total, np.log(self.beyond)))
        return min(total, 0.0)

    @cached_property
    def _ascends(self) -> bool:
        """Whether each loss is above the one before it, as on a grid: then those above ε are the last ones."""
        return bool(np.all(self.losses[1:] > self.losses[:-1]))


NO_LOSS = LossLaw(losses=np.zeros(1), log_weights=np.zeros(1))


def outer(first: LossLaw, second: LossLaw) -> LossLaw:
    """Return the law of the sum of two independent losses, atom by atom: exact."""
    return LossLaw(
        losses=sum_up(first.losses[:, None], second.losses).ravel(),
        log_weights=np.add.outer(first.log_weights, second.log_weights).ravel(),
        beyond=first.beyond + second.beyond,
        mu=float(np.hypot(first.mu, second.mu)) * (1 + 2.0**-51),
    )


def by_fours(laws: list[LossLaw], tilt: float, mu: float) -> LossLaw:
    """Return :func:`on_grid` of many as a tree, above the truth by at most 2·10⁻⁴ of δ in each of log₄ n levels."""
    while len(laws) > 1:
        laws = sorted(laws, key=lambda law: float(np.ptp(law.losses)))
        step = coarse_step(tilt, len(laws))
        laws = [on_grid(laws[i : i + 4], tilt, 0.0, step=step) for i in range(0, len(laws), 4)]
    return replace(laws[0], mu=mu)


def coarse_step(tilt: float, n_laws: int) -> float:
    """Return the step of a grid that many laws are put on, at one level of a tree."""
    return _COARSE / max(tilt, 1.0) / sqrt(n_laws)


def on_grid(laws: list[LossLaw], tilt: float, mu: float, *, step: float | None = None) -> LossLaw:
    """Return a law that dominates the sum of the independent losses `laws`, of atoms alone, and a Gaussian part `mu`.
    `tilt`: θ > 0, the Rényi order less one. `step`: in nats; by default one that costs 2·10⁻⁸ of δ, or what is
    listable.
    """
    trimmed = [_trim(law, tilt) for law in laws]
    spread = sum(float(np.ptp(law.losses)) for law in trimmed)
    if step is None:  # second-order price of a split: (θh)²/8 of δ for each law
        step = min(spread / _GRID, _FINE / max(tilt, 1.0) / sqrt(len(laws)))
    step = max(step, spread / _LARGEST_GRID, 1e-12)
    if tilt * step > 50:  # losses too far apart for any grid: the bound that is always true
        return LossLaw(losses=np.zeros(1), log_weights=np.zeros(1), beyond=1.0, mu=mu)
    size = fft.next_fast_len(ceil(spread / step) + 3 * len(laws) + 2, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    start = norm = error = 0.0
    for law in trimmed:
        low, log_norm, weights = _split(law, tilt, step)
        spectrum *= fft.rfft(weights, n=size)
        start, norm = start + low, norm + log_norm
        error += float(np.sqrt(weights @ weights))
    weights = np.maximum(fft.irfft(spectrum, n=size), 0.0) + 8 * 2.0**-53 * log(size) * error
    losses: FloatArray = start + step * np.arange(size, dtype=np.float64)
    blur = 16 * 2.0**-53 * (abs(start) + spread + 1) * len(laws)  # of the atoms' positions
    return LossLaw(
        losses=losses + blur,
        log_weights=np.log(weights) + norm - tilt * losses + 2.0**-44 + tilt * blur,
        beyond=sum(law.beyond for law in trimmed),
        mu=mu,
    )


def _log_sum(logs: FloatArray) -> float:
    """Return log Σ exp; of plain arrays, since laws come by the thousand."""
    most = float(logs.max())
    return most + log(float(np.exp(logs - most).sum())) if most > -np.inf else most


def _trim(law: LossLaw, tilt: float) -> LossLaw:
    """Drop the atoms that weigh nothing, in the law and in its tilted form, towards larger losses."""
    order = np.argsort(law.losses, kind="stable")
    losses, log_weights = law.losses[order], law.log_weights[order]
    tilted = log_weights + tilt * losses
    keep = np.flatnonzero((log_weights > _NEGLIGIBLE) | (tilted - _log_sum(tilted) > _NEGLIGIBLE))
    low, high = int(keep[0]), int(keep[-1])
    beyond = law.beyond + float(np.exp(_log_sum(log_weights[high + 1 :]))) if high + 1 < losses.size else law.beyond
    kept = log_weights[low : high + 1].copy()
    if low > 0:
        kept[0] = _log_sum(log_weights[: low + 1])
    return LossLaw(losses=losses[low : high + 1], log_weights=kept, beyond=beyond)


def _split(law: LossLaw, tilt: float, step: float) -> tuple[float, float, FloatArray]:
    """Return (least grid loss, log of the tilted total, tilted weights on the grid, summing to 1)."""
    low = float(law.losses[0])
    place = (law.losses - low) / step
    cell = np.floor(place).astype(np.int64)
    inside = np.clip(law.losses - low - cell * step, 0.0, step)
    upper = np.expm1(-inside) / np.expm1(-step)  # share that moves up; the rest moves down
    tilted = law.log_weights + tilt * law.losses
    norm = _log_sum(tilted)
    weights = np.exp(tilted - norm)
    size = int(cell[-1]) + 2
    grid = np.bincount(cell, weights * (1 - upper) * np.exp(-tilt * inside), minlength=size)
    grid += np.bincount(cell + 1, weights * upper * np.exp(tilt * (step - inside)), minlength=size)
    return low, norm, np.asarray(grid, dtype=np.float64)
