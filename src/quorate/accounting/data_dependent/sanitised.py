r"""The one way out for a data-dependent total: noise scaled to its smooth sensitivity (GNSS of PATE18 App. B).

The total at one fixed order is counted in public steps, and an integer of discrete Gaussian noise is added whose scale
is a multiple of the smooth sensitivity, itself a secret. What the release costs is known beforehand and holds at every
data set (:func:`release_rdp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p

import numpy as np

from quorate.accounting.data_dependent.smooth import decay_is_allowed
from quorate.accounting.renyi import checked_orders
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE
from quorate.types import FloatArray, Secret

_LEAST_MULTIPLIER = 4.0  # below, the integers would show in the divergence (see release_rdp)


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

    Notes
    -----
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
    if not decay_is_allowed(a, beta):
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

    Notes
    -----
    Privacy: rounding to a step moves the total by at most one step more than its sensitivity S, and S/step + 1 is
    β-smooth if S is. The samplers' largest scale caps the noise, so the total is first clipped to [0, L] with L public.
    A clipped total moves by at most min(S, L), which is β-smooth if S is: a larger S counts as L. Charge
    :attr:`SanitisedTotal.release_cost` with the labels.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> total = release_total(Secret(np.full(100, 0.002)), Secret(0.001), order=10.0, beta=0.02, multiplier=10.0,
    ...                       source=SeededNoise(1))
    >>> -0.2 < total.value < 0.6
    True
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
