r"""Answering queries by a sparse vector over an ensemble: BTT18 up to Lemma 3.3, with the constants as printed.

m queries, k teachers, (ε, δ) the guarantee, T the cut-off. The cut-off of Theorem 3.2 is in
:mod:`quorate.theory.cutoff`, the rates of Section 3 in :mod:`quorate.theory.btt18_rates`, and Section 4 in
:mod:`quorate.theory.btt18_learner`.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, log, sqrt

from quorate.arguments import count, real
from quorate.mechanisms.stage_noise import btt18_algorithm_2_noise


def btt18_theorem_2_5(epsilon: float, delta: float, beta: float) -> float:
    r"""Return how stable f(D) must be for :math:`A_{stab}` to release it: :math:`(\log(1/\delta) + \log(1/\beta))/\varepsilon`.

    Where f(D) is that stable, and :math:`\Gamma = \log(1/\delta)/\varepsilon`, Algorithm 1 outputs f(D) with
    probability at least 1 − β.

    Parameters
    ----------
    epsilon : float
        ε > 0 of the one query.
    delta, beta : float
        In (0, 1).

    Returns
    -------
    float
        A distance to instability, in rows (in teachers, where they vote); not rounded.

    Notes
    -----
    The proof gives β/2: the noise must fall below :math:`-\log(1/\beta)/\varepsilon`.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 2.5.

    Examples
    --------
    >>> round(btt18_theorem_2_5(1.0, 1e-5, 0.05), 3)
    14.509
    """  # noqa: E501  a formula is one line
    epsilon = real("epsilon", epsilon, above=0)
    delta, beta = real("delta", delta, above=0, below=1), real("beta", beta, above=0, below=1)
    return (log(1 / delta) + log(1 / beta)) / epsilon


def btt18_algorithm_2_teachers(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return how many teachers Algorithm 2 takes: :math:`k = 34\sqrt2\,\lambda\log(4mT/\min(\delta, \beta/2))`.

    With :math:`\lambda = \sqrt{32\,T\log(2/\delta)}/\varepsilon`; a query on which at least two thirds of them agree is
    then answered, all such queries together but for a probability β.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta, beta : float
        In (0, 1).
    cutoff : int
        T ≥ 1.
    n_queries : int
        m ≥ 1.

    Returns
    -------
    float
        k, not rounded.

    Notes
    -----
    :math:`34\sqrt2\sqrt{32} = 272`: twice what the proof of Theorem 3.2 asks for, which is
    :math:`k/3 \ge 32\sqrt2\log(\cdot)\sqrt{T\log(2/\delta)}/\varepsilon`, and twice the 136 of
    :func:`~quorate.theory.lzcw21_cutoff.lzcw21_lemma_3`.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Algorithm 2, step 1.

    Examples
    --------
    >>> round(btt18_algorithm_2_teachers(1.0, 1e-5, 10, 1_000, 0.05))
    66441
    """
    beta = real("beta", beta, above=0, below=1)
    scale, _ = btt18_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return 34 * sqrt(2) * scale * log(4 * n_queries * cutoff / min(delta, beta / 2))


def btt18_theorem_3_2_rate(cutoff: float, n_queries: int) -> float:
    """Return the misclassification rate of Algorithm 2: at most T/m.

    Parameters
    ----------
    cutoff : float
        T ≥ 0, a bound on the queries on which more than a third of the teachers err: that of the theorem
        (:func:`~quorate.theory.cutoff.btt18_cutoff`), or one that holds for a mean error
        (:func:`~quorate.theory.cutoff.cutoff_for_mean_error`).
    n_queries : int
        m ≥ 1.

    Returns
    -------
    float
        Share of the m queries that are answered wrongly or declined, at most 1; but for a probability 2β.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 3.2 (ii).

    Examples
    --------
    >>> btt18_theorem_3_2_rate(50, 1_000)
    0.05
    """
    cutoff, n_queries = real("cutoff", cutoff, at_least=0), count("n_queries", n_queries, at_least=1)
    return min(1.0, cutoff / n_queries)


def btt18_lemma_3_3(mistakes: float, xi: float) -> float:
    r"""Return B/ξ: fewer than so many queries have more than ξk mistaken classifiers, as printed.

    Parameters
    ----------
    mistakes : float
        B ≥ 0: no classifier makes more mistakes on the m queries.
    xi : float
        ξ in (0, 1/2].

    Returns
    -------
    float
        B/ξ, not rounded. The lemma says "less than".

    Notes
    -----
    "Less than" is false for B = 0, where 0 queries are not fewer than 0; :func:`btt18_lemma_3_3_counted` has the
    statement that always holds.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Lemma 3.3; LZCW21, Lemma 4, has "at most 3B" for ξ = 1/3.

    Examples
    --------
    >>> btt18_lemma_3_3(10, 0.25)
    40.0
    """
    return real("mistakes", mistakes, at_least=0) / real("xi", xi, above=0, at_most=0.5)


def btt18_lemma_3_3_counted(n_queries: int, n_teachers: int, mistakes: int, xi: float) -> int:
    r"""Return the largest number of queries on which more than ξk of k classifiers can be mistaken.

    :math:`\min(m, \lfloor kB/(\lfloor \xi k \rfloor + 1) \rfloor)`.

    Parameters
    ----------
    n_queries, n_teachers : int
        m ≥ 1 and k ≥ 1.
    mistakes : int
        B ≥ 0.
    xi : float
        ξ in (0, 1/2].

    Returns
    -------
    int
        0 for B = 0; never above B/ξ, and below it otherwise.

    Notes
    -----
    Proof. Let N queries have more than ξk mistakes, so at least :math:`\lfloor \xi k \rfloor + 1` each. All teachers
    together make at most kB mistakes, so :math:`N(\lfloor \xi k\rfloor + 1) \le kB`. It is attained: deal the mistakes
    out to the teachers in turn, :math:`\lfloor \xi k\rfloor + 1` different ones a query.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Lemma 3.3, with its strict inequality repaired.

    Examples
    --------
    >>> btt18_lemma_3_3_counted(1_000, 10, 10, 0.25), btt18_lemma_3_3_counted(1_000, 10, 0, 0.25)
    (33, 0)
    """
    n_queries, n_teachers = count("n_queries", n_queries, at_least=1), count("n_teachers", n_teachers, at_least=1)
    mistakes = count("mistakes", mistakes)
    xi = real("xi", xi, above=0, at_most=0.5)
    return min(n_queries, n_teachers * mistakes // (floor(Fraction(xi) * n_teachers) + 1))
