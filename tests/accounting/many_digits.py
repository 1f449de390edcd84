"""Slow and independent: every price by its definition, in a hundred digits, from the exact values of its floats."""

from itertools import product
from math import comb

import mpmath as mp

from quorate.accounting import ApproxDP, DiscreteGaussian, DiscreteLaplace, Gaussian, PureDP

DIGITS = 100
_BITS = 320  # of a probability in fixed point


def rounds(epsilon_0, times):
    """Privacy losses and probabilities of rounds of randomized response: a list of ``(loss, probability)``."""
    p = 1 / (1 + mp.exp(-epsilon_0))
    return [((2 * i - times) * epsilon_0, comb(times, i) * p**i * (1 - p) ** (times - i)) for i in range(times + 1)]


def lattice(sigma, shifts):
    """Privacy losses and probabilities of unit shifts under discrete Gaussian noise.

    The law of the sum is a power of a polynomial with whole coefficients, written as the power of one large integer.
    """
    variance = mp.mpf(sigma) ** 2
    reach = int(24 * sigma) + 6
    with mp.workdps(200):
        mass = [mp.exp(-mp.mpf(z * z) / (2 * variance)) for z in range(-reach, reach + 1)]
        norm = mp.fsum(mass)
        whole = [int(m / norm * 2**_BITS) for m in mass]
    room = (_BITS // 8 + 1) * shifts  # bytes of a coefficient of the power, with nothing to carry over
    base = int.from_bytes(b"".join(m.to_bytes(room, "little") for m in whole), "little")
    power = (base**shifts).to_bytes(room * (2 * reach * shifts + 2), "little")
    return [
        (
            (shifts - 2 * (k - reach * shifts)) / (2 * variance),
            mp.ldexp(int.from_bytes(power[room * k : room * (k + 1)], "little"), -_BITS * shifts),
        )
        for k in range(2 * reach * shifts + 1)
    ]


def gaussian_delta(epsilon, mu):
    """δ of the continuous Gaussian at ε of any sign; each term keeps its digits, and few of them cancel."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def delta_of_law(law, epsilon, mu=0):
    """δ at ε of a privacy-loss distribution, beside a continuous Gaussian part μ where there is one."""
    if mu:
        return mp.fsum(probability * gaussian_delta(epsilon - loss, mu) for loss, probability in law if probability)
    return mp.fsum(-mp.expm1(epsilon - loss) * probability for loss, probability in law if loss > epsilon)


def composed(laws):
    """The sums of independent losses, by every combination."""
    return [
        (mp.fsum(loss for loss, _ in parts), mp.fprod(probability for _, probability in parts))
        for parts in product(*laws)
    ]


def true_delta(parts, epsilon):
    """δ at ε of ``[(event, times), …]``, in a hundred digits; Laplace noise of sensitivity 1 alone is exact."""
    with mp.workdps(DIGITS):
        laws, variance, survive = [], mp.mpf(0), mp.mpf(1)
        for event, times in parts:
            match event:
                case Gaussian():
                    variance += times * (mp.mpf(event.l2_sensitivity) / mp.mpf(event.sigma)) ** 2
                case DiscreteGaussian():
                    laws.append(lattice(event.sigma, times * round(event.l2_sensitivity**2)))
                case DiscreteLaplace():
                    laws.append(rounds(mp.mpf(event.sensitivity) / mp.mpf(event.scale), times))
                case PureDP():
                    laws.append(rounds(mp.mpf(event.epsilon), times))
                case ApproxDP():
                    laws.append(rounds(mp.mpf(event.epsilon), times))
                    survive *= (1 - mp.mpf(event.delta)) ** times
        rest = delta_of_law(composed(laws), mp.mpf(epsilon), mp.sqrt(variance))
        return 1 - survive * (1 - rest)
