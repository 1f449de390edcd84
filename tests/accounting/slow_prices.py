"""Slow and independent: prices by enumeration of every outcome, and by their definition in a hundred digits.

Enumerated numbers are long doubles (64 bits of mantissa or more), and tails beyond 2^-100 are left out. Those of many
digits follow from the exact values of an event's floats.
"""

from itertools import product
from math import comb

import mpmath as mp
import numpy as np
from hypothesis import strategies as st

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Parallel,
    PureDP,
    Repeated,
)

Real = np.longdouble


def noise_pair(sigma, shift=1):
    """Both worlds' probabilities of one discrete Gaussian answer: two ``(n_outcomes,)`` arrays."""
    reach = int(12.5 * sigma) + 4
    z = np.arange(-reach, reach + 1).astype(Real)
    mass = np.exp(-z * z / (2 * Real(sigma) ** 2))
    mass /= mass.sum()
    pad = np.zeros(abs(shift), dtype=Real)
    pair = np.concatenate([mass, pad]), np.concatenate([pad, mass])
    return pair if shift > 0 else pair[::-1]


def response_pair(epsilon):
    p = 1 / (1 + np.exp(-Real(epsilon)))
    return np.array([p, 1 - p]), np.array([1 - p, p])


def approx_pair(epsilon, delta):
    yes, no = response_pair(epsilon)
    delta, zero = Real(delta), Real(0)
    return (np.concatenate([[delta], (1 - delta) * yes, [zero]]), np.concatenate([[zero], (1 - delta) * no, [delta]]))


def laplace_pair(scale):
    z = np.arange(-int(70 * scale), int(70 * scale) + 2).astype(Real)
    norm = np.tanh(1 / (2 * Real(scale)))
    return norm * np.exp(-np.abs(z) / Real(scale)), norm * np.exp(-np.abs(z - 1) / Real(scale))


def merged(pair):
    """The same pair, with outcomes of equal likelihood ratio put together."""
    p, q = pair
    both = (p > 0) & (q > 0)
    key = np.full(p.shape, np.inf)
    key[both] = np.round((np.log(p[both]) - np.log(q[both])).astype(float), 11)
    key[(p == 0) & (q > 0)] = -np.inf
    _, group = np.unique(key, return_inverse=True)
    a, b = np.zeros(group.max() + 1, dtype=Real), np.zeros(group.max() + 1, dtype=Real)
    np.add.at(a, group, p)
    np.add.at(b, group, q)
    return a, b


def delta_of(pairs, epsilon):
    """δ at ε of all `pairs` together, by enumeration of every outcome."""
    p, q = np.ones(1, dtype=Real), np.ones(1, dtype=Real)
    for pair in pairs:
        r, s = merged(pair)
        p, q = merged((np.outer(p, r).ravel(), np.outer(q, s).ravel()))
    gain = p - np.exp(Real(epsilon)) * q
    return gain[gain > 0].sum()


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


sigmas = st.floats(0.5, 200.0)
sensitivities = st.sampled_from([1.0, 2**0.5, 3**0.5])

leaf_events = st.one_of(
    st.builds(Gaussian, sigmas, st.floats(0.1, 3.0)),
    st.builds(DiscreteGaussian, sigmas, st.one_of(sensitivities, st.floats(0.1, 3.0))),
    st.builds(DiscreteLaplace, st.floats(1.0, 100.0), st.sampled_from([1.0, 2.0])),
    st.builds(PureDP, st.floats(0.0, 2.0)),
    st.builds(ApproxDP, st.floats(0.0, 2.0), st.floats(0.0, 1e-6)),
)
events = st.recursive(
    leaf_events,
    lambda inner: st.one_of(
        st.builds(Repeated, inner, st.integers(0, 5)),
        st.lists(inner, max_size=3).map(lambda members: Composed(tuple(members))),
        st.lists(inner, max_size=3).map(lambda members: Parallel(tuple(members))),
    ),
    max_leaves=5,
)
