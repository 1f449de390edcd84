"""A private learner from answered queries: Section 4 of BTT18.

Algorithm 3 labels m public points by Algorithm 2 and trains a student on them. α is the target error, γ the error of
the best hypothesis, V the VC dimension, n the private rows. A name that ends in ``_shape`` returns an expression that
the paper gives up to constants and logarithms, with constant 1 and none of them.

**How far one changed row moves what stochastic gradient descent learns (BTT18a, Theorem 2; Hardt and others 2016).** A
learner is *γ-uniformly stable* if on any two tables that differ in one row its parameters differ by at most γ, in the
mean over its coins; *γ-on-average stable* if that holds in the mean over tables of n independent rows, over the row
that is replaced by another independent one, and over its coins.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, log

from quorate.arguments import count, real
from quorate.errors import InvalidParameter


def btt18_claim_4_1_queries(alpha: float, beta: float) -> float:
    r"""Return the number of queries that Claim 4.1 asks for: :math:`m \ge 4\log(1/(\alpha\beta))/\alpha`.

    Parameters
    ----------
    alpha, beta : float
        :math:`0 < \beta \le \alpha < 1`.

    Returns
    -------
    float
        Not rounded.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Claim 4.1.

    Examples
    --------
    >>> round(btt18_claim_4_1_queries(0.1, 0.05))
    212
    """
    alpha, beta = _accuracy(alpha, beta)
    return 4 * log(1 / (alpha * beta)) / alpha


def btt18_claim_4_1(gamma: float, alpha: float) -> float:
    r"""Return the bound on the error of the private labels: :math:`err(h_{priv}) \le 3\gamma + 7\alpha`, as printed.

    For :math:`\beta \le \alpha`, at least :func:`btt18_claim_4_1_queries` queries and teachers that are
    :math:`(\alpha, \beta/k, n/k)`-learners, but for a probability 2β.

    Parameters
    ----------
    gamma : float
        γ in [0, 1].
    alpha : float
        α in (0, 1).

    Returns
    -------
    float
        Not capped at 1.

    Notes
    -----
    The statement holds, but not by its proof, which puts
    :math:`\sqrt{\log(m/\beta)/(2m(\gamma+\alpha))}` for the :math:`\sqrt{(\gamma+\alpha)\log(m/\beta)/(2m)}` of Theorem
    3.2 and takes that to be at most α: at γ = 0, α = β = 0.01 and the least m it is 0.42. With the root of Theorem 3.2
    the step fails for γ much above α. :func:`btt18_claim_4_1_by_markov` has a smaller bound, for every m, and a proof.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Claim 4.1.

    Examples
    --------
    >>> round(btt18_claim_4_1(0.05, 0.01), 4)
    0.22
    """
    return 3 * real("gamma", gamma, at_least=0, at_most=1) + 7 * real("alpha", alpha, above=0, below=1)


def btt18_claim_4_1_by_markov(gamma: float, alpha: float) -> float:
    r"""Return a bound on the error of the private labels that needs no queries: :math:`3(\gamma + \alpha)`.

    Parameters
    ----------
    gamma : float
        γ in [0, 1].
    alpha : float
        α in (0, 1): each teacher errs with probability at most γ + α; that their errors do on average is enough.

    Returns
    -------
    float
        Not capped at 1.

    Notes
    -----
    Proof. Given the teachers, let Z(x, y) in [0, 1] be the share of them that errs on a fresh point. Its mean is at
    most γ + α, so by Markov's inequality :math:`P(Z > 1/3) < 3(\gamma+\alpha)`. Where Z ≤ 1/3, at least two thirds of
    the teachers agree on the truth, and with the k of Algorithm 2 the label is released, but for the noise's β. No
    number of queries enters, and no union over them.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Claim 4.1, with another proof.

    Examples
    --------
    >>> round(btt18_claim_4_1_by_markov(0.05, 0.01), 4)
    0.18
    """
    return 3 * (real("gamma", gamma, at_least=0, at_most=1) + real("alpha", alpha, above=0, below=1))


def btt18_public_rows_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many public points the student of Theorems 4.2 and 4.3 takes: :math:`(V + \log(1/\beta))/\alpha^2`.

    Parameters
    ----------
    vc_dimension : int
        V ≥ 1.
    alpha, beta : float
        :math:`0 < \beta \le \alpha < 1`.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorems 4.2 and 4.3; a constant is left open there.

    Examples
    --------
    >>> round(btt18_public_rows_shape(5, 0.1, 0.05))
    800
    """
    alpha, beta = _accuracy(alpha, beta)
    return (count("vc_dimension", vc_dimension, at_least=1) + log(1 / beta)) / alpha**2


def btt18_theorem_4_2_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an error of O(α) in the realizable case: :math:`V^{3/2}/(\varepsilon\alpha^{3/2})`.

    Parameters
    ----------
    vc_dimension : int
        V ≥ 1.
    alpha : float
        α in (0, 1); the proof's error is 15α, with probability at least 1 − 3β, 0 < β ≤ α.
    epsilon : float
        ε > 0.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 4.2.

    Examples
    --------
    >>> round(btt18_theorem_4_2_shape(4, 0.25, 0.5))
    128
    """
    vc, alpha, epsilon = _checked(vc_dimension, alpha, epsilon)
    return float(vc**1.5 / (epsilon * alpha**1.5))


def btt18_theorem_4_3_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an error of O(α + γ) in general: :math:`V^{3/2}/(\varepsilon\alpha^{5/2})`.

    Parameters
    ----------
    vc_dimension : int
        V ≥ 1.
    alpha : float
        α in (0, 1).
    epsilon : float
        ε > 0.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 4.3.

    Examples
    --------
    >>> round(btt18_theorem_4_3_shape(4, 0.25, 0.5))
    512
    """
    vc, alpha, epsilon = _checked(vc_dimension, alpha, epsilon)
    return float(vc**1.5 / (epsilon * alpha**2.5))


def btt18_remark_2_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows where the student minimises its empirical error: :math:`V^{3/2}/(\varepsilon\alpha)`.

    Parameters
    ----------
    vc_dimension : int
        V ≥ 1.
    alpha : float
        α in (0, 1).
    epsilon : float
        ε > 0.

    Notes
    -----
    Realizable case; V/α public points are enough. It is what LZCW21 proves in its Theorem 10 for τ = 1.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Remark 2.

    Examples
    --------
    >>> btt18_remark_2_shape(4, 0.25, 0.5)
    64.0
    """
    vc, alpha, epsilon = _checked(vc_dimension, alpha, epsilon)
    return float(vc**1.5 / (epsilon * alpha))


def btt18_remark_3_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an efficient learner in the realizable case: :math:`V^2/(\varepsilon\alpha)`.

    The student is a learner for realizable data alone, so the teachers are trained to an error of 1/m, and no label of
    the m = V/α public points is wrong.

    Parameters
    ----------
    vc_dimension : int
        V ≥ 1.
    alpha : float
        α in (0, 1).
    epsilon : float
        ε > 0.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Remark 3.

    Examples
    --------
    >>> btt18_remark_3_shape(4, 0.25, 0.5)
    128.0
    """
    vc, alpha, epsilon = _checked(vc_dimension, alpha, epsilon)
    return vc**2 / (epsilon * alpha)


def _checked(vc_dimension: int, alpha: float, epsilon: float) -> tuple[int, float, float]:
    vc = count("vc_dimension", vc_dimension, at_least=1)
    return vc, real("alpha", alpha, above=0, below=1), real("epsilon", epsilon, above=0)


def _accuracy(alpha: float, beta: float) -> tuple[float, float]:
    alpha, beta = real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
    if beta > alpha:
        raise InvalidParameter(f"beta must be at most alpha = {alpha:g}, got {beta!r}")
    return alpha, beta


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
