r"""The exact trade-off of discrete Gaussian noise under unit shifts.

One unit shift of an integer with noise of parameter σ has privacy loss :math:`(1-2z)/(2\sigma^2)` at noise z. Over
n unit shifts the loss depends on the sum S of the n noises alone,

.. math::
    L = \frac{n - 2S}{2\sigma^2}, \qquad
    \delta(\varepsilon) = \sum_{s<t} P(S=s)\left(1 - e^{(s-t)/\sigma^2}\right), \quad t = n/2 - \sigma^2\varepsilon,

and this symmetric pair dominates every step, so the curve holds for adaptively chosen queries. A histogram answer is
two unit shifts (+1 and −1), an abstention one.

Three ways to the sum, chosen by size, each an upper bound:

* σ above about 1.8: the law of S *is* the discrete Gaussian with parameter :math:`\tau = \sigma\sqrt n`, up to a
  factor that is bounded below (:func:`_merging`); a window of the lattice is summed directly;
* the same with a wide lattice: the sum is its integral (the Gaussian curve) plus the Euler-Maclaurin term of the kink
  at t, with the remainder bounded and added; near the centre plus a bound of the whole difference;
* small σ: the law of S by FFT, tilted so that the tail keeps its digits; round-off and cut tails are added.
"""

from __future__ import annotations

from math import ceil, exp, expm1, factorial, floor, inf, log, log1p, pi, sqrt

import numpy as np

from quorate.accounting import gaussian
from quorate.deferred import fft
from quorate.types import FloatArray

_ROUND_OFF = 2.0**-42  # of a sum of up to 2^23 exponentials, relative
_LISTED = 500_000  # losses that a law lists at most
_WIDEST = 3_000_000  # lattice points that are summed one by one
_STRIDE = 4096  # lattice points that become one loss because losses need not lie closer
_SHALLOW, _DEEP = 2.4, 30.0  # standard deviations below the centre
_SMALLEST_SIGMA = 0.05  # below, the loss of one answer passes 200 nats: no lattice is worth its sum


def unit_shifts(l2_sensitivity: float) -> int | None:
    """Return how many unit shifts an L2 sensitivity stands for (1, 2 or 3), or None where that is not determined."""
    square = l2_sensitivity * l2_sensitivity  # infinite where it is beyond a float
    if square > 4:
        return None
    nearest = round(square)
    # √2 squared is not 2 in floats; never round a sensitivity down by more than that
    return nearest if nearest in (1, 2, 3) and abs(square - nearest) < 1e-9 else None


def log_delta(epsilon: float, sigma: float, shifts: int) -> float:
    """Return log δ at ε ≥ 0 for `shifts` ≥ 1 unit shifts in all answers together under noise σ, rounded up."""
    merging = _merging(sigma, shifts)
    if not merging <= 2.0**-44:
        return _by_fft(epsilon, sigma, shifts)
    t, tau = _threshold(epsilon, sigma, shifts), sigma * sqrt(shifts)
    result = _by_integral(epsilon, t, tau, sigma, shifts)
    if result is None:
        result = _by_lattice(epsilon, t, tau, sigma, shifts)
    return min(result + merging, 0.0)


def sum_law(
    sigma: float, shifts: int, tilt: float, *, step: float = 0.0
) -> tuple[FloatArray, FloatArray, float] | None:
    r"""Return the law of the privacy loss of `shifts` unit shifts, listed where it, or it times :math:`e^{\theta L}`,
    weighs.

    `step`: losses need not lie closer than so many nats; those between are split over two. Returns `losses` in nats,
    increasing, and `log_weights`, rounded up, each ``(n_losses,)``; `beyond`: probability of larger ones (smaller ones
    are listed as the least). None where the law is too wide, or σ too small, to be listed.
    """
    merging = _merging(sigma, shifts)
    centre, tau = -tilt * shifts, sigma * sqrt(shifts)  # e^(θL) moves the centre of every noise by −θ
    width = 26 * tau + abs(centre)
    if sigma < _SMALLEST_SIGMA or width > 100 * _WIDEST:
        return None
    if merging <= 2.0**-44:
        stride = max(ceil(width / _LISTED), floor(min(step * sigma**2, tau, _STRIDE)))
        s = floor(centre - 13 * tau) - 1.0 + stride * np.arange(ceil(width / stride) + 4, dtype=np.float64)
        masses = -(s * s) / (2 * tau * tau) if stride == 1 else _thinned(s, stride, tau, sigma)
        log_weights = masses - log(_normaliser(tau)) + merging + _ROUND_OFF
        beyond = below = exp(-80.0)
    else:
        s, log_weights, beyond, below = _listed(sigma, shifts, -tilt)
    log_weights[-1] = np.logaddexp(log_weights[-1], log(below))
    losses = (shifts - 2 * s) / (2 * sigma**2)
    losses += 2.0**-51 * np.abs(losses)  # σ² and the quotient were rounded
    return losses[::-1].copy(), log_weights[::-1].copy(), beyond


def _thinned(s: FloatArray, stride: int, tau: float, sigma: float) -> FloatArray:
    r"""Return log masses (without the normaliser) on every `stride`-th sum, dominating the law on all of them.

    A sum between two listed ones is split over both, so that its probabilities under both worlds stay what they were:
    merging the halves gives it back. The mass at s + m + i is :math:`e^{-(2sm+m^2+2mi+i^2)/2\tau^2}` times
    :math:`e^{-si/\tau^2}` of that at s. In a block of i where :math:`|si|\le\tau^2` for all s, the last factor is its
    Taylor series, so that a block is a polynomial in s whose coefficients are moments of i. The terms that are left
    out are below 2^-56 of the sum, and no term is above e² of it.
    """
    totals = np.zeros(s.size)
    at_next = np.exp((2 * s[:-1] * stride + stride * stride) / (2 * tau * tau))  # the mass at s beside that at the next
    farthest = float(np.max(np.abs(s)))
    block = max(1, min(stride, floor(tau * tau / farthest)))
    ratio = farthest * block / (tau * tau)
    n_terms = next(k for k in range(2, 30) if ratio**k * exp(2 * ratio) < 2.0**-56 * factorial(k))
    for m in range(0, stride, block):
        i = np.arange(min(block, stride - m), dtype=np.float64)
        mass = np.exp(-(2 * m * i + i * i) / (2 * tau * tau))
        # the loss falls by j/σ² from s to s + j; the share of the lower loss keeps p·e^{−loss}
        lower = np.expm1((m + i) / sigma**2) / np.expm1(stride / sigma**2)
        powers = (i / block) ** np.arange(n_terms)[:, None] / [[factorial(k)] for k in range(n_terms)]
        at_s = np.exp(-(2 * s * m + m * m) / (2 * tau * tau))  # the mass at s + m beside that at s
        x = -s * (block / (tau * tau))
        totals += at_s * np.polynomial.polynomial.polyval(x, powers @ (mass * (1 - lower)))
        totals[1:] += (at_s * np.polynomial.polynomial.polyval(x, powers @ (mass * lower)))[:-1] * at_next
    return np.asarray(np.log(totals) - s * s / (2 * tau * tau))


def _listed(sigma: float, shifts: int, centre: float) -> tuple[FloatArray, FloatArray, float, float]:
    """Return (sums, log weights, mass below them, mass above them) for small σ, around a tilted centre and around 0."""
    log_mass, s0, masses, cut, error = _tilted_sum(sigma, shifts, centre)
    s = s0 + np.arange(masses.size, dtype=np.float64)
    log_weights = np.log(masses + error) + log_mass - centre * s / sigma**2
    # what lies below the window weighs even less without the tilt
    beyond = cut * exp(min(log_mass - centre * s0 / sigma**2, 0.0))
    if centre == 0:
        return s, log_weights, beyond, cut
    _, b0, bulk, bulk_cut, bulk_error = _tilted_sum(sigma, shifts, 0.0)
    more = b0 + np.arange(bulk.size, dtype=np.float64)
    keep = more > s[-1]
    if not np.any(keep):
        return s, log_weights, beyond, bulk_cut
    # sums between the two windows count as the nearest smaller one, whose loss is larger
    log_weights[-1] = np.logaddexp(log_weights[-1], log(bulk_cut))
    return (
        np.concatenate([s, more[keep]]),
        np.concatenate([log_weights, np.log(bulk[keep] + bulk_error)]),
        beyond,
        bulk_cut,
    )


def _threshold(epsilon: float, sigma: float, shifts: int) -> float:
    return shifts / 2 - sigma * sigma * epsilon


def _blur(epsilon: float, sigma: float, shifts: int) -> float:
    """Return how far ``1 − e^{(s−t)/σ²}`` can be off because t is known to a few units in its last place; a sum s above
    t by no more than σ² times that is counted.
    """
    return 8 * 2.0**-53 * (shifts / (2 * sigma**2) + epsilon)


def _merging(sigma: float, shifts: int) -> float:
    r"""Bound of ``|log P(S = s) − log P(Z = s)|`` for all s, where Z is discrete Gaussian with parameter σ√n.

    With :math:`\rho_v(z) = e^{-z^2/2v}`, the sum of discrete Gaussians of parameters a, b has the mass
    :math:`\rho_{a+b}(s) \sum_z \rho_{ab/(a+b)}(z - sa/(a+b))` up to a constant, and by Poisson summation the inner sum
    depends on s by a factor within :math:`1 \pm 2\sum_{k\ge1} e^{-2\pi^2k^2 ab/(a+b)}`. Adding the n noises one after
    another, :math:`ab/(a+b) = \sigma^2 j/(j+1)`; the constant is fixed by both laws summing to 1, which doubles it.
    """
    total = 0.0
    for j in range(1, min(shifts, 9)):
        total += _ripple(sigma * sigma * j / (j + 1))
    if shifts > 9:
        total += (shifts - 9) * _ripple(sigma * sigma * 0.9)
    return 2 * total


def _ripple(variance: float) -> float:
    """Return the largest change of log of a Gaussian's sum over a shifted lattice, against its integral."""
    eta = 2.0 * exp(-2 * pi * pi * variance) * 1.0001
    return log1p(eta) - log1p(-eta) if eta < 0.5 else inf


def _normaliser(tau: float) -> float:
    """Return Σ exp(−s²/2τ²) over the integers: by its own terms, or by those of its Poisson sum."""
    if tau > 0.7:
        return tau * sqrt(2 * pi) * (1 + 2 * sum(exp(-2 * pi * pi * tau * tau * k * k) for k in range(1, 4)))
    return 1 + 2 * sum(exp(-k * k / (2 * tau * tau)) for k in range(1, 8))


def _by_lattice(epsilon: float, t: float, tau: float, sigma: float, shifts: int) -> float:
    """Sum ``P(S=s) (1 − e^{(s−t)/σ²})`` over s < t, term by term, S discrete Gaussian with parameter τ."""
    blur = _blur(epsilon, sigma, shifts)
    top = ceil(t + blur * sigma * sigma) - 1
    deepest = min(top, 0)
    far = -_DEEP * tau if tau > _WIDEST / 20 else -inf  # δ is below 1e-190 there: a close bound will do
    if deepest < max(far, -(2**48)):  # or floats no longer tell neighbouring sums apart; the noise is sub-Gaussian
        return -((deepest / tau) ** 2) / 2 * (1 - 2.0**-40)
    bottom = floor(-sqrt(deepest * deepest + 110 * tau * tau)) - 2
    normaliser, log_reference = _normaliser(tau), -((deepest / tau) ** 2) / 2
    total, high = 0.0, top
    if top - bottom > (4 if t > -_SHALLOW * tau else 40) * _WIDEST:
        return _by_curvature(epsilon, t, tau, sigma, shifts)
    while high >= bottom:  # in blocks, so that a wide lattice needs little memory
        low = max(bottom, high - _WIDEST + 1)
        s = np.arange(low, high + 1, dtype=np.float64)
        masses = np.exp(-(s * s) / (2 * tau * tau) - log_reference)
        total += float(masses @ -np.expm1(np.minimum(s - t, 0.0) / sigma**2)) + blur * float(np.sum(masses))
        high = low - 1
    # below `bottom` the terms fall at least geometrically
    fall = -expm1((2 * bottom - 1) / (2 * tau * tau))
    total += exp(-((bottom / tau) ** 2) / 2 - log_reference) / fall
    return log(total) + log_reference - log(normaliser) + _ROUND_OFF


def _by_curvature(epsilon: float, t: float, tau: float, sigma: float, shifts: int) -> float:
    r"""Return the lattice sum's integral plus a bound of what they differ by, about 1/τ² of it.

    With h, u, v as in :func:`_by_integral`, Euler-Maclaurin to second order gives
    :math:`|\sum_{k\ge0} h(\theta+k) - \int_0^\infty h| \le \frac1{12}\left(h'(0) + \int|h''|\right)`. As v' ≤ 1/σ²,
    |v''| ≤ 1/σ⁴ and v ≤ (max(t, 0) + |s|)/σ² at s = t − x, and as the moments of a Gaussian bound those of u' and u'',
    the bracket is at most :math:`(4.5 + \max(t, 0)/\tau)/(\tau\sigma^2) + 1/\sigma^4`.
    """
    bracket = (4.5 + max(t, 0.0) / tau) / (tau * sigma**2) + 1 / sigma**4
    integral = exp(float(gaussian.log_delta(epsilon, sqrt(shifts) / sigma)))
    return log(integral + bracket / 12) + 2.0**-46


def _by_integral(epsilon: float, t: float, tau: float, sigma: float, shifts: int) -> float | None:
    r"""Return the lattice sum as integral plus the term of its kink, where the remainder is below 2^-33 of it.

    Write h(x) for the summand at s = t − x, so that h(0) = 0, and θ in (0, 1] for the distance from t to the first
    lattice point below. Euler-Maclaurin to third order gives
    :math:`\sum_{k\ge0} h(\theta+k) = \int_0^\infty h - \frac{B_2(\theta)}{2}h'(0) + R` with
    :math:`|R| \le \frac{\sqrt3}{216}\left(|h''(0)| + \int|h'''|\right)`. For z = −t/τ ≥ 2.4 the Gaussian factor u and
    its first three derivatives are monotone on x ≥ 0, and with v = 1 − e^{−x/σ²} the product rule bounds the bracket
    by :math:`u(0)\left(6z/(\tau\sigma^2) + 4/\sigma^4 + \tau/(z\sigma^6)\right)`; ∫|u'''v| is taken by parts.
    """
    z = -t / tau
    if not z >= _SHALLOW:
        return None
    integral = exp(float(gaussian.log_delta(epsilon, sqrt(shifts) / sigma)))
    # the density at t, times 1 − (the rest of the normaliser): the sum Σ exp(−s²/2τ²) is at least τ√(2π)
    at_t = exp(-z * z / 2) / (tau * sqrt(2 * pi))
    theta = t - (ceil(t) - 1)
    kink = -(theta * theta - theta + 1 / 6) / 2 * at_t / sigma**2
    blur = _blur(epsilon, sigma, shifts) * at_t  # θ = t mod 1 carries the error of t, and B₂ moves by at most as much
    rest = sqrt(3) / 216 * at_t * (6 * z / (tau * sigma**2) + 4 / sigma**4 + tau / (z * sigma**6))
    if not integral > 0 or rest + blur > 2.0**-33 * integral:
        return None
    return log(integral + kink + rest + blur) + 2.0**-46


def _by_fft(epsilon: float, sigma: float, shifts: int) -> float:
    t = _threshold(epsilon, sigma, shifts)
    if sigma < _SMALLEST_SIGMA:
        return 0.0
    at = min(t / shifts, 0.0)
    log_mass, s0, masses, cut, error = _tilted_sum(sigma, shifts, at)
    s = s0 + np.arange(masses.size, dtype=np.float64)
    blur = _blur(epsilon, sigma, shifts)
    below = s < t + blur * sigma * sigma
    x = np.minimum(s[below] - t, 0.0)
    weights = np.exp(-at * x / sigma**2) * (blur - np.expm1(x / sigma**2))  # e^{−at·x/σ²} ≤ 1: both factors are ≤ 0
    total = float(np.sum(weights * (masses[below] + error))) + cut
    return log(total) + log_mass - at * t / sigma**2 + _ROUND_OFF if total > 0 else -inf


def _tilted_sum(sigma: float, shifts: int, centre: float) -> tuple[float, float, FloatArray, float, float]:
    r"""Return the law of the sum of noises, each weighted by :math:`e^{cz/\sigma^2}`, which moves its centre to c.

    Returns: `log_mass`: log of :math:`E[e^{cS/\sigma^2}]`; ``P(S=s) = mass · masses[s − s0] · e^{−cs/σ²}``. `masses`
    sums to 1. `cut, error`: weighted mass outside of its window; round-off of each of its entries.
    """
    reach = ceil(14 * sigma) + 2
    z = np.arange(floor(centre) - reach, floor(centre) + reach + 1, dtype=np.float64)
    log_p = -((z - centre) ** 2) / (2 * sigma * sigma)
    mass = float(np.sum(np.exp(log_p)))
    p = np.exp(log_p) / mass
    log_mass = shifts * (log(mass) - log(_normaliser(sigma)) + centre * centre / (2 * sigma * sigma))
    z0 = float(np.round(np.sum(p * z)))
    step = z - z0
    # Chernoff: the sum leaves the window with weight at most 2·e^-48 on either side
    slopes = np.geomspace(1e-3 / (sigma * sqrt(shifts)), 8.0 / min(sigma, 1.0), 60)
    up = np.log(np.sum(p * np.exp(np.minimum(slopes[:, None] * step, 600)), axis=1))
    down = np.log(np.sum(p * np.exp(np.minimum(-slopes[:, None] * step, 600)), axis=1))
    high = ceil(min(float(np.min((shifts * up + 48) / slopes)), shifts * step[-1])) + 1
    low = floor(max(float(np.max(-(shifts * down + 48) / slopes)), shifts * step[0])) - 1
    size = fft.next_fast_len(high - low + 2)
    angles = 2 * pi * np.arange(size // 2 + 1) / size
    real = np.full(angles.shape, -0.0)
    imaginary = np.zeros(angles.shape)
    for probability, move in zip(p, step, strict=True):  # 1 − the real part, so that powers keep their digits
        real -= 2 * probability * np.sin(angles * move / 2) ** 2
        imaginary -= probability * np.sin(angles * move)
    excess = 2 * real + real * real + imaginary * imaginary
    small = excess < -0.5
    modulus = np.where(
        small,
        np.log(np.maximum(np.hypot(1 + real, imaginary), 1e-30)),
        np.log1p(np.maximum(excess, -0.5)) / 2,
    )
    phase = np.arctan2(imaginary, 1 + real)
    size_of = np.exp(shifts * modulus)
    spectrum = size_of * np.exp(1j * (shifts * phase - angles * -low))
    masses = np.fft.irfft(spectrum, n=size)
    loss = size_of * (2 * log(size) + 4 * shifts * (np.abs(modulus) + np.abs(phase)) + 4)
    loss += np.where(small, 4 * shifts * np.exp((shifts - 1) * modulus), 0.0)  # there the error is absolute
    error = 4 * 2.0**-53 * float(2 * np.sum(loss)) / size + 4 * exp(-48.0)
    return log_mass, shifts * z0 + low, np.maximum(masses, 0.0), 4 * exp(-48.0), error
