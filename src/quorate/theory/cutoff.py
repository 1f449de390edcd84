r"""How many unstable answers to allow: the cut-off T of a sparse vector, from an error rate (BTT18, Theorem 3.2).

Both functions count by Lemma 3.3 of BTT18: K voters that make at most B mistakes each, or on average, on m queries
leave fewer than B/ξ queries on which more than ξK of them are mistaken. On all others at least 2/3 (ξ = 1/3) agree
on the truth, and a sparse vector with enough teachers answers them without touching its cut-off.
"""

from __future__ import annotations

import math

from quorate.accounting.relative_entropy import relative_entropy
from quorate.arguments import count, real
from quorate.errors import InvalidParameter

_STEPS = 200  # of a bisection: more than a float can tell apart


def btt18_cutoff(error: float, n_queries: int, beta: float) -> float:
    r"""Return :math:`T = 3\left((\gamma+\alpha)m + \sqrt{(\gamma+\alpha)m\log(m/\beta)/2}\right)`, as printed.

    Parameters
    ----------
    error : float
        :math:`\gamma + \alpha` in [0, 1]: an error rate that *every* teacher keeps.
    n_queries : int
        m ≥ 1.
    beta : float
        β in (0, 1).

    Returns
    -------
    float
        T, not rounded; it may be above m.

    Notes
    -----
    The proof takes the root from a Chernoff bound, which has :math:`\sqrt{3(\gamma+\alpha)m\log(m/\beta)}` there. At
    the printed constant a teacher's mistakes pass :math:`B = T/3` with a probability of the order of
    :math:`(\beta/m)^{1/4}`, not :math:`\beta/m`; and with e = 0.005, m = 200, β = 1e-9 the number of queries on which
    a third of the teachers err may reach T two thousand times as often as β. It is kept for the record;
    :func:`cutoff_for_mean_error` is the one to use.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 3.2.

    Examples
    --------
    >>> round(btt18_cutoff(0.05, 1_000, 0.05), 2)
    197.2
    """
    error = _rate(error)
    m = count("n_queries", n_queries, at_least=1)
    beta = real("beta", beta, above=0, below=1)
    return 3 * (error * m + math.sqrt(error * m * math.log(m / beta) / 2))


def cutoff_for_mean_error(error: float, n_queries: int, beta: float, *, disagreeing: float = 1 / 3) -> int:
    r"""Return a T such that, with probability 1 - β, more than a third of the teachers err on fewer than T queries.

    Parameters
    ----------
    error : float
        e in [0, 1]: a bound on the expected error of the teachers, averaged over them; for example the ``upper`` of a
        paid error estimate.
    n_queries : int
        m ≥ 1 queries, drawn independently from the distribution that the error rate is about.
    beta : float
        β in (0, 1).
    disagreeing : float, default 1/3
        ξ in (0, 1/2]: the share of mistaken teachers from which on a query counts.

    Returns
    -------
    int
        T, from 1 to m.

    Notes
    -----
    Given the teachers, let :math:`Z_i \in [0, 1]` be the share of them that errs on query i. The :math:`Z_i` are
    independent with mean at most e, so by the bound of Chernoff and Hoeffding :math:`\sum_i Z_i \ge bm` has at most
    probability :math:`e^{-m\,\mathrm{kl}(b, e)}` for :math:`b \ge e`. With b such that this is β, fewer than
    :math:`bm/\xi` queries have :math:`Z_i > \xi`: T is that, rounded up. No union over the teachers is needed, and
    the mean of their errors is enough, which is what a private estimate gives.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Theorem 3.2 and Lemma 3.3; Hoeffding (1963), Theorem 1.

    Examples
    --------
    >>> cutoff_for_mean_error(0.05, 1_000, 0.05)
    204
    """
    error = _rate(error)
    m = count("n_queries", n_queries, at_least=1)
    beta = real("beta", beta, above=0, below=1)
    share = real("disagreeing", disagreeing, above=0)
    if share > 0.5:
        raise InvalidParameter(f"disagreeing must be a number > 0 and <= 0.5, got {disagreeing!r}")
    needed = math.log(1 / beta) / m * (1 + 2.0**-40)
    low, high = error, 1.0
    for _ in range(_STEPS):  # kl(b, e) rises in b from 0 at b = e; `high` is always large enough, or 1
        middle = (low + high) / 2
        low, high = (low, middle) if relative_entropy(middle, error) >= needed else (middle, high)
    return min(max(math.ceil(high * m / share * (1 + 2.0**-40)), 1), m)


def _rate(error: float) -> float:
    error = real("error", error)
    if not 0 <= error <= 1:
        raise InvalidParameter(f"error must be a number from 0 to 1, got {error!r}")
    return error
