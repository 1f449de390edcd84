"""Slow and independent: both worlds' probabilities of every outcome, written out and added up.

Numbers are long doubles (64 bits of mantissa or more); tails beyond 2^-100 are left out.
"""

import numpy as np

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
