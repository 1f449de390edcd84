r"""Sample sizes of VC classes: Appendix B of BNS15, with the constants as printed.

Each function returns the right-hand side of an inequality m ≥ …, not rounded. log and ln are natural.
"""

from __future__ import annotations

from math import comb, e, log

from quorate.arguments import count, real


def sauer(n_points: int, vc_dimension: int) -> int:
    r"""Return :math:`\sum_{i \le d} \binom{n}{i}`: no class of VC dimension d realises more dichotomies on n points.

    Parameters
    ----------
    n_points, vc_dimension : int
        n ≥ 0 and d ≥ 0.

    References
    ----------
    Sauer (1972); :func:`bns15_theorem_b_2` is the rounder bound that BNS15 and LWY25 use.

    Examples
    --------
    >>> sauer(60, 4), sauer(3, 5)
    (523686, 8)
    """
    return sum(comb(n_points, i) for i in range(min(n_points, vc_dimension) + 1))


def bns15_theorem_b_2(n_points: int, vc_dimension: int) -> float:
    r"""Return Sauer's bound as printed: at most :math:`(en/d)^d` dichotomies on n points, for n > d.

    Parameters
    ----------
    n_points : int
        n > d. (LWY25, Lemma 2.4, has n ≥ d; that holds too, and is taken here.)
    vc_dimension : int
        d ≥ 1.

    Notes
    -----
    For n < d it is false: on one point a class with d = 10 realises 2 dichotomies, and :math:`(e/10)^{10} < 10^{-5}`.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.2; LWY25 (Li, Wang, Ye), Lemma 2.4.

    Examples
    --------
    >>> round(bns15_theorem_b_2(60, 4))
    2764031
    """
    vc_dimension = count("vc_dimension", vc_dimension, at_least=1)
    n_points = count("n_points", n_points, at_least=vc_dimension)
    return float((e * n_points / vc_dimension) ** vc_dimension)


def bns15_theorem_b_3(vc_dimension: int, alpha: float) -> float:
    r"""Return the least number of labels of any learner with β < 1/2: :math:`(VC - 1)/(16\alpha)`, as printed.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha : float
        α in (0, 1).

    Notes
    -----
    Printed for every α; it is false for α near 1. A learner that remembers 34 labelled points and tosses a coin for
    every other one has, on any distribution and for any class that holds all functions on its points, an error above
    0.99 with probability below 0.41: a point of mass 0.1 or more, of which there are ten at most, is not among the 34
    with probability at most :math:`0.9^{34}` each, together below 0.28; and if none is missing, the error has a mean of
    at most 1/2 and a variance of at most :math:`\sum \mu(x)^2/4 \le 0.025`, so it passes 0.99 with probability at most
    :math:`0.025/0.49^2 < 0.11` (Chebyshev). 34 labels are enough for every VC dimension, where the theorem asks for
    more than 34 from VC(C) = 540 on. :func:`bns15_theorem_b_3_for_small_errors` holds.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.3, after Ehrenfeucht, Haussler, Kearns and Valiant (1989).

    Examples
    --------
    >>> bns15_theorem_b_3(17, 0.1)
    10.0
    """
    return (count("vc_dimension", vc_dimension, at_least=1) - 1) / (16 * real("alpha", alpha, above=0, below=1))


def bns15_theorem_b_3_for_small_errors(vc_dimension: int, alpha: float) -> float:
    r"""Return the same number, :math:`(VC - 1)/(16\alpha)`, for α ≤ 1/8 and learners with β < 1/7, where it is proven.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha : float
        α in (0, 1/8].

    Notes
    -----
    Proof. Let d points be shattered. One of them has mass 1 − 8α, each other one :math:`8\alpha/(d-1)`, and the labels
    of those are fair coins. With :math:`m < (d-1)/(16\alpha)` labelled rows fewer than (d − 1)/2 of them are expected
    to be seen, so more than (d − 1)/2 not to be, on each of which any hypothesis errs with probability 1/2. So the part
    E of the error that these points make has a mean above 2α, and it is at most 8α:
    :math:`2\alpha < E[E] \le \alpha + 7\alpha P(E > \alpha)`, and so :math:`P(E > \alpha) > 1/7`, for some labelling
    too. Rows without a label tell nothing of the labels.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.3, under conditions that it needs.

    Examples
    --------
    >>> bns15_theorem_b_3_for_small_errors(17, 0.1)
    10.0
    """
    return bns15_theorem_b_3(vc_dimension, real("alpha", alpha, above=0, at_most=0.125))


def bns15_theorem_b_4(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many labelled rows make consistent concepts good: :math:`\frac8\alpha(VC\ln\frac{16}\alpha + \ln\frac2\beta)`.

    With probability at least 1 − β every concept of C that makes no mistake on them has an error of at most α.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.4.

    Examples
    --------
    >>> round(bns15_theorem_b_4(1, 0.1, 0.05))
    701
    """  # noqa: E501  a formula is one line
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    return 8 / alpha * (vc * log(16 / alpha) + log(2 / beta))


def bns15_theorem_b_5(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many rows make seen disagreements tell of all: :math:`\frac{48}\alpha(10VC\log\frac{48e}\alpha + \log\frac5\beta)`.

    With probability at least 1 − β no two concepts of C that differ on at most α/10 of the rows differ on α or more of
    the distribution.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 0.
    alpha : float
        α > 0; from 1 on nothing is said.
    beta : float
        β in (0, 1).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.5.

    Examples
    --------
    >>> round(bns15_theorem_b_5(1, 0.1, 0.05), 1)
    36644.7
    """  # noqa: E501  a formula is one line
    vc = count("vc_dimension", vc_dimension)
    alpha, beta = real("alpha", alpha, above=0), real("beta", beta, above=0, below=1)
    return 48 / alpha * (10 * vc * log(48 * e / alpha) + log(5 / beta))


def bns15_theorem_b_6(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many rows make every empirical error near: :math:`\frac{50\,VC}{\alpha^2}\ln\frac1{\alpha\beta}`.

    With probability at least 1 − β the error of every concept of H is within α of its share of mistakes, whatever
    function labels the rows.

    Parameters
    ----------
    vc_dimension : int
        VC(H) ≥ 0.
    alpha : float
        α in (0, 1).
    beta : float
        β in (0, 1]; 1 is the limit at which such rows exist.

    Notes
    -----
    For VC(H) = 0 it asks for no rows, and is false: H may hold one concept of error 1/2, and one row shows a share of 0
    or 1. It is meant for VC(H) ≥ 1.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem B.6.

    Examples
    --------
    >>> round(bns15_theorem_b_6(1, 0.1, 0.05))
    26492
    """
    vc = count("vc_dimension", vc_dimension)
    alpha, beta = real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, at_most=1)
    return 50 * vc / alpha**2 * log(1 / (alpha * beta))


def _checked(vc_dimension: int, alpha: float, beta: float) -> tuple[int, float, float]:
    vc = count("vc_dimension", vc_dimension, at_least=1)
    return vc, real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
