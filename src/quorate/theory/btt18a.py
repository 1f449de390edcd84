r"""Online queries by subsample and aggregate: Corollary 3.9 and Theorem 3.11 of BTT18a, the first version of BTT18.

The numbers in the theorem are those that LZCW21 repeats in its Lemma 3.
"""

from __future__ import annotations

from math import log, sqrt

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.mechanisms.stage_noise import btt18_algorithm_2_noise
from quorate.theory.lzcw21_cutoff import lzcw21_lemma_46

_SHARE = 3 / 4  # of data sets on which f gives its usual value
_NEEDED = 2 / 3  # of the K values


def btt18a_corollary_3_9(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return the distance from which on :math:`A_{OQR}` answers every query: :math:`w + \varphi`.

    Where at most T of m adaptively chosen queries have a distance to instability of no more than this, all others are
    answered with their own value, with probability at least 1 − β.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta, beta : float
        In (0, 1).
    cutoff, n_queries : int
        T ≥ 1 and m ≥ 1.

    Returns
    -------
    float
        The distance, not rounded.

    Notes
    -----
    The proof adds the threshold w of :math:`A_{OQR}` to the φ of the sparse vector's utility, which is
    :func:`lzcw21_lemma_46`. Both have δ/2 here, as the noise of :func:`btt18_algorithm_2_noise` has: the other half is
    the threshold's.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101), Corollary 3.9, put together as its proof says.

    Examples
    --------
    >>> round(btt18a_corollary_3_9(1.0, 1e-5, 10, 1_000, 0.05))
    5614
    """
    _, threshold = btt18_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return threshold + lzcw21_lemma_46(epsilon, delta / 2, cutoff, n_queries, beta)


def btt18a_theorem_3_11(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return the parts of :math:`A_{subSamp}`: :math:`k = 136\log(4mT/\min(\delta, \beta/2))\sqrt{T\log(2/\delta)}/\varepsilon`.

    Let all but at most T of m adaptively chosen queries f have a value :math:`x_f` that f takes with probability at
    least 3/4 on n/k fresh rows. Then all those queries are answered with it, with probability at least 1 − β.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta, beta : float
        In (0, 1).
    cutoff, n_queries : int
        T ≥ 1 and m ≥ 1.

    Returns
    -------
    float
        k, not rounded.

    Notes
    -----
    The proof asks for two things: enough parts for the noise, and enough for two thirds of them to agree, which is
    :func:`btt18a_agreeing_parts`. This k is both only where
    :math:`\varepsilon \le \tfrac{136}{72}\sqrt{T\log(2/\delta)}`; :func:`btt18a_theorem_3_11_at_any_epsilon` is the larger.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101), Theorem 3.11 and Algorithm 4.

    Examples
    --------
    >>> round(btt18a_theorem_3_11(1.0, 1e-5, 10, 1_000, 0.05))
    33221
    """  # noqa: E501  a formula is one line
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    beta = real("beta", beta, above=0, below=1)
    cutoff, n_queries = count("cutoff", cutoff, at_least=1), count("n_queries", n_queries, at_least=1)
    return 136 * log(4 * n_queries * cutoff / min(delta, beta / 2)) * sqrt(cutoff * log(2 / delta)) / epsilon


def btt18a_agreeing_parts(n_queries: int, beta: float, share: float = _SHARE) -> float:
    r"""Return the parts of which two thirds agree on every query: :math:`k = \frac{\log(2m/\beta)}{2(share - 2/3)^2}`.

    72 log(2m/β) at a share of 3/4; for all m queries together, but for a probability β/2.

    Parameters
    ----------
    n_queries : int
        m ≥ 1.
    beta : float
        β in (0, 1).
    share : float, default 3/4
        How likely a part gives the usual value; in (2/3, 1].

    Returns
    -------
    float
        k, not rounded.

    Notes
    -----
    Proof. Of k independent parts fewer than 2k/3 give it with probability at most
    :math:`e^{-2k(share - 2/3)^2} = \beta/(2m)` (Hoeffding), for each query.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101), proof of Theorem 3.11.

    Examples
    --------
    >>> round(btt18a_agreeing_parts(1_000, 0.05), 1)
    763.0
    """
    n_queries, beta = count("n_queries", n_queries, at_least=1), real("beta", beta, above=0, below=1)
    share = real("share", share, at_most=1)
    if not share > _NEEDED:
        raise InvalidParameter(f"share must be a number > 2/3 and <= 1, got {share!r}")
    return log(2 * n_queries / beta) / (2 * (share - _NEEDED) ** 2)


def btt18a_theorem_3_11_at_any_epsilon(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    """Return the larger of the two numbers of parts that the proof of Theorem 3.11 asks for.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta, beta : float
        In (0, 1).
    cutoff, n_queries : int
        T ≥ 1 and m ≥ 1.

    Notes
    -----
    The larger of :func:`btt18a_theorem_3_11` and :func:`btt18a_agreeing_parts`. The noise is that of BTT18's Algorithm
    2, whose scale falls as 1/ε, so that its share is right for every ε.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101), Theorem 3.11, with both of its conditions.

    Examples
    --------
    >>> round(btt18a_theorem_3_11_at_any_epsilon(100.0, 1e-5, 10, 1_000, 0.05))
    763
    """
    noise = btt18a_theorem_3_11(epsilon, delta, cutoff, n_queries, beta)
    return max(noise, btt18a_agreeing_parts(n_queries, beta))
