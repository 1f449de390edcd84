"""Answering queries by a sparse vector over an ensemble: BTT18 up to Lemma 3.3, with the constants as printed.

m queries, k teachers, (ε, δ) the guarantee, T the cut-off. The cut-off of Theorem 3.2 is in
:mod:`quorate.theory.lzcw21_cutoff`, and Section 4 in :mod:`quorate.theory.btt18_learner`.

**How many answered queries are wrong, in terms of rows and VC dimension: BTT18, Theorems 3.4 and 3.5.** m queries, n
private rows, V the VC dimension, ε of the guarantee, T the cut-off. A name that ends in ``_shape`` returns an
expression that the paper gives up to constants and logarithms, with constant 1 and none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log, sqrt

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
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
        (:func:`~quorate.theory.lzcw21_cutoff.btt18_cutoff`), or one that holds for a mean error
        (:func:`~quorate.theory.lzcw21_cutoff.cutoff_for_mean_error`).
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


@dataclass(frozen=True, kw_only=True, slots=True)
class MisclassificationShape:
    """What Theorem 3.4 or 3.5 of BTT18 says of m queries, up to constants and logarithms.

    Parameters
    ----------
    n_queries : int
        m.
    free_queries : float
        M: for so many queries the rate is the one without privacy.
    cutoff : float
        T.
    rate : float
        The share of misclassified queries, as printed.

    Examples
    --------
    >>> MisclassificationShape(n_queries=10, free_queries=100.0, cutoff=1.0, rate=0.01).rate_by_cutoff
    0.1
    """

    n_queries: int
    free_queries: float
    cutoff: float
    rate: float

    @property
    def rate_by_cutoff(self) -> float:
        """T/m, which is what Theorem 3.2 gives for this T.

        It is the printed rate for m ≥ M. For fewer queries the proofs show that Õ(1) of the m queries are
        misclassified, which is a rate of 1/m and not of 1/M: where each query is misclassified with probability 1/M,
        one in m = √β M queries is so with probability √β > β, and the rate is then 1/m, not Õ(1/M).
        """
        return min(1.0, self.cutoff / self.n_queries)


def btt18_theorem_3_4_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> MisclassificationShape:
    r"""Return the misclassification rate in the realizable case, up to constants and logarithms.

    :math:`V/(\varepsilon n)` for up to :math:`M = \varepsilon n/V` queries, then
    :math:`mV^2/(\varepsilon^2n^2)`; :math:`T = \bar m^2V^2/(\varepsilon^2n^2)` with :math:`\bar m = \max(M, m)`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and V, each at least 1.
    epsilon : float
        ε > 0.

    Returns
    -------
    MisclassificationShape
        Its ``rate_by_cutoff`` says what becomes of (i) below M queries.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 3.4.

    Examples
    --------
    >>> btt18_theorem_3_4_shape(10_000, 4_000, 5, 1.0).rate
    0.001
    """
    n_rows, n_queries, vc_dimension, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    ratio = vc_dimension / (epsilon * n_rows)
    free = 1 / ratio
    rate = ratio if n_queries <= free else n_queries * ratio * ratio
    cutoff = (max(free, n_queries) * ratio) ** 2
    return MisclassificationShape(n_queries=n_queries, free_queries=free, cutoff=cutoff, rate=rate)


def btt18_theorem_3_5_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, gamma: float
) -> MisclassificationShape:
    r"""Return the misclassification rate in the non-realizable case, up to constants and logarithms.

    :math:`\gamma + \sqrt{V/(\varepsilon n)}` for up to :math:`M = \min(1/\gamma, \sqrt{\varepsilon n/V})` queries, then
    :math:`\gamma + m^{1/3}V^{2/3}/(\varepsilon n)^{2/3}`;
    :math:`T = \bar m\gamma + \bar m^{4/3}V^{2/3}/(\varepsilon n)^{2/3}` with :math:`\bar m = \max(M, m)`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and V, each at least 1.
    epsilon : float
        ε > 0.
    gamma : float
        γ in [0, 1], the error of the best hypothesis.

    Returns
    -------
    MisclassificationShape
        As for :func:`btt18_theorem_3_4_shape`.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 3.5.

    Examples
    --------
    >>> round(btt18_theorem_3_5_shape(10_000, 1_000, 10, 1.0, 0.01).rate, 3)
    0.11
    """
    n_rows, n_queries, vc_dimension, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    gamma = real("gamma", gamma, at_least=0, at_most=1)
    ratio = vc_dimension / (epsilon * n_rows)
    free = sqrt(1 / ratio) if gamma == 0 else min(1 / gamma, sqrt(1 / ratio))
    rate = gamma + (sqrt(ratio) if n_queries <= free else n_queries ** (1 / 3) * ratio ** (2 / 3))
    most = max(free, n_queries)
    cutoff = most * gamma + most ** (4 / 3) * ratio ** (2 / 3)
    return MisclassificationShape(n_queries=n_queries, free_queries=free, cutoff=cutoff, rate=rate)


def btt18_advanced_composition_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> float:
    r"""Return the rate that advanced composition alone would give: :math:`\sqrt m\,V/(\varepsilon n)`.

    Parameters
    ----------
    n_rows, n_queries, vc_dimension : int
        n, m and V, each at least 1.
    epsilon : float
        ε > 0.

    Notes
    -----
    At a rate of α the theorem answers :math:`\alpha(\varepsilon n/V)^2` queries and advanced composition
    :math:`\alpha^2(\varepsilon n/V)^2`: the factor 1/α of the abstract. From :math:`(\varepsilon n/V)^2` queries on,
    where both rates are 1, advanced composition is no worse.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), after Theorem 3.4 and in Section 1.1.

    Examples
    --------
    >>> btt18_advanced_composition_shape(10_000, 10_000, 5, 1.0)
    0.05
    """
    n_rows, n_queries, vc_dimension, epsilon = _sizes(n_rows, n_queries, vc_dimension, epsilon)
    return sqrt(n_queries) * vc_dimension / (epsilon * n_rows)


def btt18_queries_gained_shape(alpha: float) -> float:
    """Return how many times as many queries as advanced composition the theorem answers at a rate of α: 1/α.

    Parameters
    ----------
    alpha : float
        In (0, 1).

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), abstract: "by at least a factor of 1/α in some cases".

    Examples
    --------
    >>> btt18_queries_gained_shape(0.05)
    20.0
    """
    return 1 / real("alpha", alpha, above=0, below=1)


def _sizes(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> tuple[int, int, int, float]:
    sizes = (
        count("n_rows", n_rows, at_least=1),
        count("n_queries", n_queries, at_least=1),
        count("vc_dimension", vc_dimension, at_least=1),
    )
    epsilon = real("epsilon", epsilon, above=0)
    if sizes[2] > epsilon * sizes[0]:
        raise InvalidParameter(
            f"vc_dimension must be at most epsilon * n_rows = {epsilon * sizes[0]:g}, got {vc_dimension!r}; "
            "with fewer rows nothing is shown"
        )
    return *sizes, epsilon
