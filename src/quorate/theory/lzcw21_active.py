r"""PATE with the Gaussian mechanism and active student queries: Theorem 22 of LZCW21, and the K that it shares with 28.

ℓ answers are paid for, n private rows, m public points, d the VC dimension, θ the disagreement coefficient. A name that
ends in ``_shape`` has constant 1 where the paper leaves one open.
"""

from __future__ import annotations

from math import log, sqrt

from quorate.arguments import count, real


def lzcw21_gaussian_teachers(n_rows: int, n_answers: int, epsilon: float, delta: float) -> float:
    r"""Return the teachers of Theorems 22 and 28.

    .. math:: K = \frac{6\sqrt{\log(2n)}\left(\sqrt{\ell\log(1/\delta)} + \sqrt{\ell\log(1/\delta) + \varepsilon\ell}\right)}
              {\varepsilon}

    Parameters
    ----------
    n_rows, n_answers : int
        n ≥ 1 and ℓ ≥ 1 (m in Theorem 28, where all points are labelled).
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1).

    Returns
    -------
    float
        K, not rounded.

    Notes
    -----
    It is :math:`6\sigma\sqrt{2\log(2n)}` for the σ of Algorithm 1, so that the noise passes K/6 with probability 1/n at
    most, and a query on which more than two thirds of the teachers agree is answered by them.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22 (34) and Theorem 28.

    Examples
    --------
    >>> round(lzcw21_gaussian_teachers(39_073, 293, 1.0, 1 / 39_073))
    2294
    """  # noqa: E501  a formula is one line
    n_rows, n_answers = count("n_rows", n_rows, at_least=1), count("n_answers", n_answers, at_least=1)
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    room = n_answers * log(1 / delta)
    return 6 * sqrt(log(2 * n_rows)) * (sqrt(room) + sqrt(room + epsilon * n_answers)) / epsilon


def lzcw21_answers_shape(theta: float, alpha: float, vc_dimension: int, gamma: float) -> float:
    r"""Return how many labels the active student asks for, up to a constant.

    .. math:: \ell = \theta(\alpha)\left(1 + \log\frac1\alpha\right)
              \left(d\log\theta(\alpha) + \log\frac{\log(1/\alpha)}{\gamma/2}\right)

    Parameters
    ----------
    theta : float
        θ(α) ≥ 1, the disagreement coefficient at α.
    alpha : float
        α in (0, 1/2], where no logarithm in it is negative.
    vc_dimension : int
        d ≥ 1.
    gamma : float
        γ in (0, 1).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22, after Hanneke (2014), Theorem 5.4.

    Examples
    --------
    >>> round(lzcw21_answers_shape(2.0, 0.01, 1, 0.05), 1)
    66.2
    """
    theta, alpha = real("theta", theta, at_least=1), real("alpha", alpha, above=0, at_most=0.5)
    vc, gamma = count("vc_dimension", vc_dimension, at_least=1), real("gamma", gamma, above=0, below=1)
    doubt = log(1 / alpha)
    return theta * (1 + doubt) * (vc * log(theta) + log(doubt / (gamma / 2)))


def lzcw21_theorem_22_alpha_shape(
    n_rows: int, n_public: int, n_teachers: int, vc_dimension: int, tau: float, gamma: float, eta: float = 1.0
) -> float:
    r"""Return the least α of Theorem 22, up to a constant.

    .. math:: \max\left\{\eta^{\frac2{2-\tau}}\left(\frac{dK\log(n/d)+\log(2K/\gamma)}n\right)^{\frac\tau{2-\tau}},\
              \frac{d\log((m+n)/d)+\log(2/\gamma)}m\right\}

    Parameters
    ----------
    n_rows, n_public, n_teachers, vc_dimension : int
        n, m, K and d, each at least 1, and n ≥ d.
    tau : float
        τ in (0, 1].
    gamma : float
        γ in (0, 1).
    eta : float, default 1.0
        η ≥ 1 of the noise condition.

    Notes
    -----
    K depends on ℓ, and ℓ on α: the three are solved for together. :func:`lzcw21_theorem_22_shape` has the solution.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22.

    Examples
    --------
    >>> round(lzcw21_theorem_22_alpha_shape(100_000, 10_000, 100, 4, 1.0, 0.05), 4)
    0.0406
    """
    n, m = count("n_rows", n_rows, at_least=1), count("n_public", n_public, at_least=1)
    k, d = count("n_teachers", n_teachers, at_least=1), count("vc_dimension", vc_dimension, at_least=1)
    n = count("n_rows", n, at_least=d)
    tau, gamma = real("tau", tau, above=0, at_most=1), real("gamma", gamma, above=0, below=1)
    teachers = ((d * k * log(n / d) + log(2 * k / gamma)) / n) ** (tau / (2 - tau))
    teachers *= real("eta", eta, at_least=1) ** (2 / (2 - tau))
    return float(max(teachers, (d * log((m + n) / d) + log(2 / gamma)) / m))


def lzcw21_theorem_22_shape(
    n_rows: int, n_public: int, vc_dimension: int, epsilon: float, delta: float, tau: float, theta: float
) -> float:
    r"""Return the excess error of PATE-ASQ: :math:`\max\left\{\left(\frac{d^{1.5}\sqrt{\theta\log(1/\delta)}}{n\varepsilon}\right)^{\frac\tau{2-\tau}}, \frac dm\right\}`.

    Parameters
    ----------
    n_rows, n_public, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0, and at most log(1/δ).
    delta : float
        δ in (0, 1).
    tau : float
        τ in (0, 1].
    theta : float
        θ(α) ≥ 1.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22.

    Examples
    --------
    >>> round(lzcw21_theorem_22_shape(100_000, 10_000, 4, 1.0, 1e-5, 1.0, 2.0), 6)
    0.0004
    """  # noqa: E501  a formula is one line
    n, m = count("n_rows", n_rows, at_least=1), count("n_public", n_public, at_least=1)
    d, delta = count("vc_dimension", vc_dimension, at_least=1), real("delta", delta, above=0, below=1)
    epsilon = real("epsilon", epsilon, above=0, at_most=log(1 / delta))
    tau, theta = real("tau", tau, above=0, at_most=1), real("theta", theta, at_least=1)
    private = (d**1.5 * sqrt(theta * log(1 / delta)) / (n * epsilon)) ** (tau / (2 - tau))
    return float(max(private, d / m))
