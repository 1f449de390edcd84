r"""How far from the best classifier the student of LZCW21 ends: Theorems 5, 10, 19, 20 and 28, Remark 12.

n private rows, m public points, d the VC dimension, τ in (0, 1] the exponent of the Tsybakov noise condition (1 where
the label noise is bounded or there is none). A name that ends in ``_shape`` returns an expression that the paper gives
up to constants and logarithms, with constant 1 and none of them, unless it prints one.
"""

from __future__ import annotations

from math import e, log, sqrt

from quorate.arguments import count, real


def lzcw21_teachers_shape(cutoff: float, n_queries: int, epsilon: float, delta: float, beta: float) -> float:
    r"""Return the K of Theorems 5 and 10: :math:`\log(mT/\min(\delta, \beta))\sqrt{T\log(1/\delta)}/\varepsilon`.

    Parameters
    ----------
    cutoff : float
        T ≥ 1.
    n_queries : int
        m ≥ 1.
    epsilon : float
        ε > 0.
    delta, beta : float
        In (0, 1).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorems 5 and 10; :func:`~quorate.theory.lzcw21_cutoff.lzcw21_lemma_3` has
    the constants.

    Examples
    --------
    >>> round(lzcw21_teachers_shape(10, 1_000, 1.0, 1e-5, 0.05), 1)
    222.4
    """
    cutoff, n_queries = real("cutoff", cutoff, at_least=1), count("n_queries", n_queries, at_least=1)
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    beta = real("beta", beta, above=0, below=1)
    return log(n_queries * cutoff / min(delta, beta)) * sqrt(cutoff * log(1 / delta)) / epsilon


def lzcw21_theorem_5_realizable_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, delta: float
) -> float:
    r"""Return the error in the realizable case: :math:`\frac{d^2m\log(1/\delta)}{n^2\varepsilon^2} + \sqrt{d/m}`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 5.

    Examples
    --------
    >>> round(lzcw21_theorem_5_realizable_shape(100_000, 10_000, 4, 1.0, 1e-5), 4)
    0.0202
    """
    n, m, d, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    return d**2 * m * log(1 / real("delta", delta, above=0, below=1)) / (n * epsilon) ** 2 + sqrt(d / m)


def lzcw21_theorem_5_agnostic_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, best_error: float
) -> float:
    r"""Return the error in the agnostic case: :math:`13Err(h^*) + \frac{m^{1/3}d^{2/3}}{n^{2/3}\varepsilon^{2/3}} + \sqrt{d/m}`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0.
    best_error : float
        Err(h*) in [0, 1]; its factor 13 is as printed.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 5.

    Examples
    --------
    >>> round(lzcw21_theorem_5_agnostic_shape(100_000, 10_000, 4, 1.0, 0.01), 3)
    0.175
    """  # noqa: E501  a formula is one line
    n, m, d, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    best_error = real("best_error", best_error, at_least=0, at_most=1)
    return 13 * best_error + float(m ** (1 / 3) * (d / (n * epsilon)) ** (2 / 3)) + sqrt(d / m)


def lzcw21_theorem_10_cutoff_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the cut-off of Theorem 10: :math:`T = \left(\frac{m^{2-\tau}d^\tau}{n^\tau\varepsilon^\tau}\right)^{2/(4-3\tau)}`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0.
    tau : float
        τ in (0, 1].

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 10.

    Examples
    --------
    >>> round(lzcw21_theorem_10_cutoff_shape(100_000, 10_000, 4, 1.0, 1.0), 2)
    0.16
    """  # noqa: E501  a formula is one line
    n, m, d, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    tau = real("tau", tau, above=0, at_most=1)
    return float((m ** (2 - tau) * (d / (n * epsilon)) ** tau) ** (2 / (4 - 3 * tau)))


def lzcw21_theorem_10_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the excess error of PATE-PSQ under τ-TNC: :math:`\frac dm + \left(\frac{md^2}{n^2\varepsilon^2}\right)^{\tau/(4-3\tau)}`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0.
    tau : float
        τ in (0, 1].

    Returns
    -------
    float
        Of :math:`Err(\hat h^S) - Err(h^*)`.

    Notes
    -----
    The second term is T/m for the T of :func:`lzcw21_theorem_10_cutoff_shape`.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 10.

    Examples
    --------
    >>> round(lzcw21_theorem_10_shape(100_000, 10_000, 4, 1.0, 0.5), 4)
    0.1103
    """  # noqa: E501  a formula is one line
    n, m, d, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    tau = real("tau", tau, above=0, at_most=1)
    return d / m + float((m * (d / (n * epsilon)) ** 2) ** (tau / (4 - 3 * tau)))


def lzcw21_remark_12_queries(n_rows: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return how many public points to label: :math:`m^* = (d^{4-5\tau}n^{2\tau}\varepsilon^{2\tau})^{1/(4-2\tau)}`.

    Parameters
    ----------
    n_rows, vc_dimension : int
        n and d, each at least 1.
    epsilon : float
        ε > 0.
    tau : float
        τ in (0, 1].

    Notes
    -----
    Here the two terms of Theorem 10 are equal. The remark says that it minimises their sum; for τ < 1 that is
    :func:`lzcw21_remark_12_minimiser`, which is larger, and makes the sum smaller by a factor of at most 2.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Remark 12.

    Examples
    --------
    >>> round(lzcw21_remark_12_queries(100_000, 4, 1.0, 1.0))
    50000
    """
    n, _, d, epsilon = _sizes(n_rows, 1, vc_dimension, epsilon)
    tau = real("tau", tau, above=0, at_most=1)
    return float((d ** (4 - 5 * tau) * (n * epsilon) ** (2 * tau)) ** (1 / (4 - 2 * tau)))


def lzcw21_remark_12_minimiser(n_rows: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the m at which the bound of Theorem 10 is least: :math:`m^*\,p^{-1/(1+p)}`, :math:`p = \tau/(4-3\tau)`.

    Parameters
    ----------
    n_rows, vc_dimension : int
        n and d, each at least 1.
    epsilon : float
        ε > 0.
    tau : float
        τ in (0, 1].

    Notes
    -----
    Proof. The bound is :math:`d/m + cm^p`, least at :math:`m^{1+p} = d/(pc)`, and :math:`(m^*)^{1+p} = d/c`.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Remark 12, carried out.

    Examples
    --------
    >>> round(lzcw21_remark_12_minimiser(100_000, 4, 1.0, 1.0))
    50000
    """
    balanced = lzcw21_remark_12_queries(n_rows, vc_dimension, epsilon, tau)
    p = tau / (4 - 3 * tau)
    return float(balanced * p ** (-1 / (1 + p)))


def lzcw21_theorem_19_shape(best_disagreement: float, cutoff: float, n_queries: int, vc_dimension: int) -> float:
    r"""Return the error above the infinite ensemble's: :math:`\min_h Dis(h, h^{agg}_\infty) + 2T/m + \sqrt{d/m}`.

    Parameters
    ----------
    best_disagreement : float
        :math:`\min_{h \in H} Dis(h, h^{agg}_\infty)` in [0, 1].
    cutoff : float
        T ≥ 0, of Proposition 18.
    n_queries, vc_dimension : int
        m and d, each at least 1.

    Returns
    -------
    float
        With probability at least 1 − 2γ. The first two terms are as printed.

    Notes
    -----
    As printed it asks for the K of Proposition 18, and for ε ≤ log(2/δ); with the K of
    :func:`~quorate.theory.lzcw21_cutoff.lzcw21_proposition_18_teachers_by_distance` it holds. Its second line has ν in
    place of T/m: a :math:`\sqrt{\nu/m}`, which is hidden with the rest.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 19 (Theorem 31).

    Examples
    --------
    >>> round(lzcw21_theorem_19_shape(0.01, 50, 1_000, 4), 4)
    0.1732
    """
    best = real("best_disagreement", best_disagreement, at_least=0, at_most=1)
    cutoff, m = real("cutoff", cutoff, at_least=0), count("n_queries", n_queries, at_least=1)
    return best + 2 * cutoff / m + sqrt(count("vc_dimension", vc_dimension, at_least=1) / m)


def lzcw21_theorem_20(cutoff: float, n_queries: int, n_teachers: int, vc_dimension: int, gamma: float) -> float:
    r"""Return the error of a student that votes above the infinite ensemble's: :math:`\frac{4T}m + \frac{5(Kd + \log(4/\gamma))}m`, as printed.

    Parameters
    ----------
    cutoff : float
        T ≥ 0, of Proposition 18.
    n_queries, n_teachers, vc_dimension : int
        m, K and d, each at least 1.
    gamma : float
        γ in (0, 1); the bound holds with probability 1 − 2γ.

    Notes
    -----
    It rests on two things that are false, and :func:`lzcw21_theorem_20_by_growth` on neither. *VC(Vote_K(H)) ≤ Kd:* the
    sets ∅, {1}, …, {5}, {12}, {23}, {34}, {45}, {51}, {123} have VC dimension 2, and the votes of two of them, ties to
    1, are all subsets of five points. *Lemma 36* has d where the logarithm of the growth function belongs: of 14,800
    equally likely points some 131 are not among n = 70,000 draws, and nearly always 100 or more; so a set of 100
    points, of probability 0.0067, is not hit, and the lemma says that for the class of these sets (d = 100) it is
    at most 0.0060, but for γ = 0.05. (Also :math:`h^{agg}_\infty` need not be a vote of K hypotheses, as the proof takes
    it to be.)

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 20 (Theorem 32).

    Examples
    --------
    >>> round(lzcw21_theorem_20(50, 100_000, 100, 4, 0.05), 4)
    0.0222
    """  # noqa: E501  a formula is one line
    cutoff, m, k, d, surprise = _voting(cutoff, n_queries, n_teachers, vc_dimension, gamma)
    return 4 * cutoff / m + 5 * (k * d + surprise) / m


def lzcw21_theorem_20_by_growth(
    cutoff: float, n_queries: int, n_teachers: int, vc_dimension: int, gamma: float
) -> float:
    r"""Return a bound that holds for such a student: :math:`\frac{4T}m + \frac{5(Kd\log(2em/d) + \log(4/\gamma))}m`.

    Parameters
    ----------
    cutoff : float
        T ≥ 0: Algorithm 2 answers all but at most T of the m points, and so that its answers are
        :math:`h^{agg}_\infty` on all but those, but for a probability γ.
    n_queries, n_teachers, vc_dimension : int
        m, K and d, each at least 1, and 2m ≥ d.
    gamma : float
        γ in (0, 1); the bound holds with probability 1 − 2γ.

    Notes
    -----
    Proof. Write D for Dis, D̂ for its average on the m points, S for the growth function of :math:`Vote_K(H)`; on 2m
    points K votes make at most :math:`\Pi_H(2m)^K \le (2em/d)^{Kd}` dichotomies. By Vapnik's relative deviations
    (Boucheron, Bousquet, Lugosi 2005, Corollary 5.2), with :math:`A = (\log S(2m) + \log(4/\gamma))/m`, every h of the
    class has :math:`D(h, h_\infty) \le \hat D + 2\sqrt{\hat DA} + 4A \le 2\hat D + 5A`, but for γ. The student
    minimises :math:`\hat D(\cdot, y)`, y the released labels, and the teachers' own vote is in the class and differs
    from y on at most the T points that were not answered; so
    :math:`\hat D(h^S, h_\infty) \le \hat D(h^S, y) + \hat D(y, h_\infty) \le 2T/m`.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 20, with the growth function in place of Kd.

    Examples
    --------
    >>> round(lzcw21_theorem_20_by_growth(50, 100_000, 100, 4, 0.05), 4)
    0.2386
    """
    cutoff, m, k, d, surprise = _voting(cutoff, n_queries, n_teachers, vc_dimension, gamma)
    return 4 * cutoff / m + 5 * (k * d * log(max(2 * e * m / d, e)) + surprise) / m


def lzcw21_theorem_28_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the excess error of PATE by the Gaussian mechanism: :math:`\frac dm + \left(\frac{d\sqrt m}{n\varepsilon}\right)^{\tau/(2-\tau)}`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0.
    tau : float
        τ in (0, 1]; 1 is the realizable case too.

    Notes
    -----
    For the K of :func:`~quorate.theory.lzcw21.lzcw21_gaussian_teachers` with ℓ = m. At τ = 1 it asks for
    :math:`n = d^{3/2}/(\varepsilon\alpha^{3/2})` private rows; the second of the paper's contributions says
    :math:`d^{3/2}/(\varepsilon\alpha)`, which neither this nor Table 1 gives.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 28.

    Examples
    --------
    >>> round(lzcw21_theorem_28_shape(100_000, 10_000, 4, 1.0, 1.0), 4)
    0.0044
    """  # noqa: E501  a formula is one line
    n, m, d, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    tau = real("tau", tau, above=0, at_most=1)
    return d / m + float((d * sqrt(m) / (n * epsilon)) ** (tau / (2 - tau)))


def _sizes(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> tuple[int, int, int, float]:
    return (
        count("n_rows", n_rows, at_least=1),
        count("n_queries", n_queries, at_least=1),
        count("vc_dimension", vc_dimension, at_least=1),
        real("epsilon", epsilon, above=0),
    )


def _voting(
    cutoff: float, n_queries: int, n_teachers: int, vc_dimension: int, gamma: float
) -> tuple[float, int, int, int, float]:
    return (
        real("cutoff", cutoff, at_least=0),
        count("n_queries", n_queries, at_least=1),
        count("n_teachers", n_teachers, at_least=1),
        count("vc_dimension", vc_dimension, at_least=1),
        log(4 / real("gamma", gamma, above=0, below=1)),
    )
