r"""Where a vote is worse than the voters, and where it is better: Examples 1 and 2 of LZCW21."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp

from quorate.arguments import count, real


def lzcw21_example_1(n_teachers: int) -> float:
    r"""Return the expected error of a vote in "voting fails".

    Four equally likely points, all labelled 1; three hypotheses say 1 on the first and on one other point each, so each
    errs on half; a teacher is any of the three, with equal probability. The majority is right on the first point, and
    goes wrong on the three others.

    Parameters
    ----------
    n_teachers : int
        K ≥ 1. A tie is answered by 1, as in Algorithm 1.

    Returns
    -------
    float
        Exact: 1/2 for one teacher, and at least :math:`\frac34(1 - e^{-K/18})`, towards 3/4.

    Notes
    -----
    On each of the three points a teacher says 1 with probability 1/3, so that
    :math:`\frac34\,P(\mathrm{Bin}(K, \tfrac13) < \tfrac K2)` is the error; the bound is Hoeffding's, with
    :math:`\tfrac12 - \tfrac13 = \tfrac16`.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Example 1 and Figure 1.

    Examples
    --------
    >>> lzcw21_example_1(1), round(lzcw21_example_1(101), 5)
    (0.5, 0.7498)
    """
    k = count("n_teachers", n_teachers, at_least=1)
    wrong = sum(comb(k, ones) * 2 ** (k - ones) for ones in range((k + 1) // 2))
    return float(Fraction(3 * wrong, 4 * 3**k))


def lzcw21_example_2(n_teachers: int, xi: float) -> float:
    r"""Return the bound of "voting wins" on the error of a vote at a point: :math:`e^{-2K\xi^2}`.

    Where each of K independent teachers errs with probability at most 1/2 − ξ.

    Parameters
    ----------
    n_teachers : int
        K ≥ 1.
    xi : float
        ξ in (0, 1/2].

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Example 2.

    Examples
    --------
    >>> round(lzcw21_example_2(250, 0.1), 5)
    0.00674
    """
    return exp(-2 * count("n_teachers", n_teachers, at_least=1) * real("xi", xi, above=0, at_most=0.5) ** 2)
