r"""How far one changed row moves what stochastic gradient descent learns (BTT18a, Theorem 2; Hardt and others 2016).

A learner is *γ-uniformly stable* if on any two tables that differ in one row its parameters differ by at most γ, in the
mean over its coins; *γ-on-average stable* if that holds in the mean over tables of n independent rows, over the row
that is replaced by another independent one, and over its coins.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from quorate.arguments import count, real


def btt18a_theorem_2(uniform_stability: float) -> float:
    r"""Return the on-average stability of a learner that is γ-uniformly stable on shuffled rows: γ.

    If :math:`A(\pi(\cdot))`, π a uniformly random permutation of the rows, is γ-uniformly stable, then A itself is
    γ-on-average stable, whatever order it takes the rows in: one pass without any coin, for example.

    Parameters
    ----------
    uniform_stability : float
        γ ≥ 0 of the learner on rows in random order.

    Notes
    -----
    Proof. Independent rows have the same law in any order, so :math:`(\pi(D), \pi(D'))`, with row 1 replaced, has the
    law of :math:`(D, D^{(j)})`, with row j replaced, where j is the place to which π takes row 1. In the mean over π, j
    is uniform; so the mean over rows of A's change is the mean over tables of the change of :math:`A(\pi(\cdot))`.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101), Theorem 2.

    Examples
    --------
    >>> btt18a_theorem_2(hrs16_convex_parameters(1.0, 0.5, [1.0] * 100, 100))
    2.0
    """
    return real("uniform_stability", uniform_stability, at_least=0)


def hrs16_convex_parameters(lipschitz: float, smoothness: float, steps: Iterable[float], n_rows: int) -> float:
    r"""Return by how much one row moves the parameters, for convex losses: :math:`\frac{2L}n\sum_t \alpha_t`.

    Parameters
    ----------
    lipschitz : float
        L ≥ 0: every loss is L-Lipschitz in the parameters.
    smoothness : float
        β ≥ 0: its gradient is β-Lipschitz.
    steps : iterable of float
        :math:`\alpha_t` in (0, 2/β], one for each step.
    n_rows : int
        n ≥ 1. Each step takes a random row, or the rows are gone through in random order.

    References
    ----------
    Hardt, Recht and Singer (2016), arXiv:1509.01240, proof of the theorem for convex losses.

    Examples
    --------
    >>> hrs16_convex_parameters(2.0, 1.0, [0.5] * 100, 1_000)
    0.2
    """
    lipschitz, n_rows = real("lipschitz", lipschitz, at_least=0), count("n_rows", n_rows, at_least=1)
    smoothness = real("smoothness", smoothness, at_least=0)
    most = 2 / smoothness if smoothness > 0 else None
    return 2 * lipschitz * fsum(real("steps", step, above=0, at_most=most) for step in steps) / n_rows


def hrs16_convex(lipschitz: float, smoothness: float, steps: Iterable[float], n_rows: int) -> float:
    r"""Return the uniform stability in loss, for convex losses: :math:`\frac{2L^2}n\sum_t \alpha_t`.

    Parameters
    ----------
    lipschitz, smoothness : float
        L ≥ 0 and β ≥ 0.
    steps : iterable of float
        :math:`\alpha_t` in (0, 2/β].
    n_rows : int
        n ≥ 1.

    References
    ----------
    Hardt, Recht and Singer (2016), arXiv:1509.01240, the theorem for convex losses.

    Examples
    --------
    >>> hrs16_convex(2.0, 1.0, [0.5] * 100, 1_000)
    0.4
    """
    return lipschitz * hrs16_convex_parameters(lipschitz, smoothness, steps, n_rows)


def hrs16_non_convex(lipschitz: float, smoothness: float, c: float, n_steps: int, n_rows: int) -> float:
    r"""Return the uniform stability in loss, for losses in [0, 1] that need not be convex.

    .. math:: \frac{1 + 1/(\beta c)}{n - 1}\,(2cL^2)^{\frac1{\beta c+1}}\,T^{\frac{\beta c}{\beta c+1}}

    Parameters
    ----------
    lipschitz, smoothness : float
        L > 0 and β > 0.
    c : float
        c > 0: the step sizes do not grow, and step t is at most c/t.
    n_steps : int
        T ≥ 1.
    n_rows : int
        n ≥ 2.

    Notes
    -----
    The proof: until step t₀ the changed row is not met, but for a probability t₀/n; from there on the parameters drift
    apart by at most :math:`\frac{2L}{\beta(n-1)}(T/t_0)^{\beta c}`; the t₀ is the best one.

    References
    ----------
    Hardt, Recht and Singer (2016), arXiv:1509.01240, the theorem for non-convex losses.

    Examples
    --------
    >>> round(hrs16_non_convex(1.0, 1.0, 1.0, 100, 1_001), 4)
    0.0283
    """
    lipschitz, smoothness = real("lipschitz", lipschitz, above=0), real("smoothness", smoothness, above=0)
    c, n_steps = real("c", c, above=0), count("n_steps", n_steps, at_least=1)
    n_rows = count("n_rows", n_rows, at_least=2)
    power = smoothness * c
    growth = (2 * c * lipschitz**2) ** (1 / (power + 1)) * n_steps ** (power / (power + 1))
    return (1 + 1 / power) / (n_rows - 1) * float(growth)
