"""δ and ε of a Gaussian mechanism in closed form (Balle and Wang, 2018, Theorem 8), solved here and not by quorate."""

from math import exp

from scipy.optimize import brentq
from scipy.stats import norm


def gaussian_delta(epsilon, mu):
    """δ of one shift by μ standard deviations, and so of any vector with that length."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def gaussian_epsilon(mu, delta):
    """ε at δ of the same."""
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 1e-9, 100.0, xtol=1e-12))
