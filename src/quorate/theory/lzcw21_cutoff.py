"""Cut-off T and number of teachers K for the sparse vector of LZCW21: Algorithm 2, Lemma 3, Theorem 5, Proposition 18.

ℓ or m queries, K teachers, (ε, δ) the guarantee; T may be above m. The cut-offs count by Lemma 3.3 of BTT18: K voters
that make at most B mistakes each, or on average, on m queries leave fewer than B/ξ queries on which more than ξK of
them are mistaken. On all others at least 2/3 (ξ = 1/3) agree on the truth, and a sparse vector with enough teachers
answers them without touching its cut-off.

>>> round(lzcw21_lemma_3(1.0, 1e-5, 10, 1_000, 0.05)), lzcw21_lemma_3_at_any_epsilon(1.0, 1e-5, 10, 1_000, 0.05)
(33221, 16270)
>>> cutoff_for_mean_error(0.05, 1_000, 0.05)
204
"""

from __future__ import annotations

from math import ceil, floor, log, sqrt

from quorate.accounting.pure import relative_entropy
from quorate.mechanisms.stage_noise import lzcw21_algorithm_2_noise
from quorate.theory.symbols import number, statement

_STEPS = 200  # of a bisection: more than a float can tell apart


@statement(
    "BTT18, Theorem 3.2",
    error=number("γ + α in [0, 1], an error rate that *every* teacher keeps", at_least=0, at_most=1),
)
def btt18_cutoff(error: float, n_queries: int, beta: float) -> float:
    r"""Return :math:`T = 3\left((\gamma+\alpha)m + \sqrt{(\gamma+\alpha)m\log(m/\beta)/2}\right)`, as printed.

    The proof's Chernoff bound has another root, with which T is passed far less often than with the printed one. It is
    kept for the record; :func:`cutoff_for_mean_error` is the one to use.
    """
    return 3 * (error * n_queries + sqrt(error * n_queries * log(n_queries / beta) / 2))


@statement(
    "BTT18, Theorem 3.2 and Lemma 3.3; Hoeffding (1963), Theorem 1",
    error=number(
        "e in [0, 1], a bound on the mean expected error of the teachers, as the ``upper`` of a paid error estimate",
        at_least=0,
        at_most=1,
    ),
    disagreeing=number(
        "ξ in (0, 1/2], the share of mistaken teachers above which a query counts", above=0, at_most=0.5
    ),
)
def cutoff_for_mean_error(error: float, n_queries: int, beta: float, *, disagreeing: float = 1 / 3) -> int:
    r"""Return a T such that, with probability 1 - β, more than a third of the teachers err on fewer than T queries.

    T is from 1 to m; the m queries are drawn independently from the distribution that the error rate is about.

    Given the teachers, let :math:`Z_i \in [0, 1]` be the share of them that errs on query i. The :math:`Z_i` are
    independent with mean at most e, so by the bound of Chernoff and Hoeffding :math:`\sum_i Z_i \ge bm` has at most
    probability :math:`e^{-m\,\mathrm{kl}(b, e)}` for :math:`b \ge e`. With b such that this is β, fewer than
    :math:`bm/\xi` queries have :math:`Z_i > \xi`: T is that, rounded up. No union over the teachers is needed, and
    the mean of their errors is enough, which is what a private estimate gives.
    """
    needed = log(1 / beta) / n_queries * (1 + 2.0**-40)
    low, high = error, 1.0
    for _ in range(_STEPS):  # kl(b, e) rises in b from 0 at b = e; `high` is always large enough, or 1
        middle = (low + high) / 2
        low, high = (low, middle) if relative_entropy(middle, error) >= needed else (middle, high)
    return min(max(ceil(high * n_queries / disagreeing * (1 + 2.0**-40)), 1), n_queries)


@statement("LZCW21, Lemma 3, adapted from BTT18a, Theorem 3.11")
def lzcw21_lemma_3(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return the teachers of Lemma 3: :math:`K = 136\log(4\ell T/\min(\delta, \beta/2))\sqrt{T\log(2/\delta)}/\varepsilon`.

    Where at most T of the ℓ queries have a margin (votes for the winner less votes for the other class) below K/3,
    Algorithm 2 finishes all queries and answers all others with the majority, with probability at least 1 − β.

    Algorithm 2 breaks off *at* its T-th ⊥, so T unstable queries are one too many; and 136 is enough for ε ≤ log(2/δ)
    alone. :func:`lzcw21_lemma_3_at_any_epsilon` holds for every ε.
    """  # noqa: E501  a formula is one line
    scale = sqrt(cutoff * log(2 / delta)) / epsilon
    return 136 * log(4 * n_queries * cutoff / min(delta, beta / 2)) * scale


@statement("LZCW21, Lemma 3, with its conditions repaired")
def lzcw21_lemma_3_at_any_epsilon(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> int:
    r"""Return teachers with whom every query of margin K/3 is answered, whatever ε is.

    :math:`K = \lfloor 6(w + 3\lambda\log((\ell + T)/(2\beta)) + 1)\rfloor + 1`, for at most T − 1 queries of a smaller
    margin.
    """
    scale, threshold = lzcw21_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return floor(6 * (threshold + 3 * scale * log((n_queries + cutoff) / (2 * beta)) + 1)) + 1


@statement("LZCW21, Lemma 46; Dwork and Roth (2014)")
def lzcw21_lemma_46(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return how far above its threshold the sparse vector answers: :math:`\varphi = \log(2mT/\beta)\sqrt{512\, T\log(1/\delta)}/\varepsilon`.

    Where at most T of m queries are at or below :math:`w + \varphi`, all others pass with probability at least 1 − β.
    """  # noqa: E501  a formula is one line
    return log(2 * n_queries * cutoff / beta) * sqrt(512 * cutoff * log(1 / delta)) / epsilon


@statement("LZCW21, Theorem 5 (Theorem 27)")
def lzcw21_theorem_5_cutoff(error: float, n_queries: int, beta: float) -> float:
    r"""Return the cut-off of Theorem 5: :math:`T = 3\left(E[Err(\hat h_1)]m + \sqrt{m\log(m/\beta)/2}\right)`, as printed.

    The error is the mean over a teacher's data too, and T does not bound the mistakes "of each teacher", as the proof
    says. :func:`lzcw21_theorem_5_cutoff_by_concentration` holds.
    """  # noqa: E501  a formula is one line
    return 3 * (error * n_queries + sqrt(n_queries * log(n_queries / beta) / 2))


@statement("LZCW21, Theorem 5, with the randomness of the teachers counted")
def lzcw21_theorem_5_cutoff_by_concentration(error: float, n_queries: int, n_teachers: int, beta: float) -> int:
    r"""Return a cut-off for a mean error over data sets, where K teachers have data sets of their own.

    That of :func:`cutoff_for_mean_error` at :math:`e + \sqrt{\log(2/\beta)/(2K)}` and β/2, from 1 to m: but for a
    probability β, more than a third of the teachers err on fewer than T queries.
    """
    return cutoff_for_mean_error(min(1.0, error + sqrt(log(2 / beta) / (2 * n_teachers))), n_queries, beta / 2)


@statement("LZCW21, Proposition 18 (Proposition 30)")
def lzcw21_proposition_18_cutoff(nu: float, n_queries: int, gamma: float) -> float:
    r"""Return the least cut-off of Proposition 18: :math:`\nu m + \sqrt{2\nu m\log(3/\gamma)} + \frac23\log(3/\gamma)`.

    But for a probability γ/3, no more of the m points have an expected margin :math:`\Delta_{n/K}(x) \le \xi`. Since
    Algorithm 2 breaks off at its T-th ⊥, T must be above this. Definition 17 prints
    :math:`P[\Delta_n(x) > \xi] \le \nu`. Meant, and used by the proof, is :math:`P[\Delta_n(x) \le \xi] \le \nu`.
    """
    surprise = log(3 / gamma)
    return nu * n_queries + sqrt(2 * nu * n_queries * surprise) + 2 / 3 * surprise


@statement("LZCW21, Proposition 18 (Proposition 30)")
def lzcw21_proposition_18_teachers(scale: float, xi: float, delta: float, n_queries: int, gamma: float) -> float:
    r"""Return the teachers of Proposition 18: :math:`K \ge \max\{\frac{2\log(3m/\gamma)}{\xi^2}, \frac{3\lambda(\log(4m/\delta)+\log(3m/\gamma))}{\xi}\}`.

    λ is that of :func:`lzcw21_algorithm_2_noise` for this T ≤ m; all but a share ν of the points have an expected
    margin above ξ.

    The proof compares the margin with the threshold, Algorithm 2 half of it, less one; the statement is false too.
    :func:`lzcw21_proposition_18_teachers_by_distance` holds.
    """  # noqa: E501  a formula is one line
    by_margin, noise = _proposition_18(scale, xi, delta, n_queries, gamma)
    return max(by_margin, noise / xi)


@statement("LZCW21, Proposition 18, with the distance in place of the margin")
def lzcw21_proposition_18_teachers_by_distance(
    scale: float, xi: float, delta: float, n_queries: int, gamma: float
) -> float:
    r"""Return teachers for whom Proposition 18 holds; K must be above it.

    :math:`K > \max\{2\log(3m/\gamma)/\xi^2,\ (6\lambda(\log(4m/\delta) + \log(3m/\gamma)) + 2)/\xi\}`.
    """
    by_margin, noise = _proposition_18(scale, xi, delta, n_queries, gamma)
    return max(by_margin, (2 * noise + 2) / xi)


def _proposition_18(scale: float, xi: float, delta: float, n_queries: int, gamma: float) -> tuple[float, float]:
    """The least K by the margin, and the noise that the threshold and a query may have together."""
    surprise = log(3 * n_queries / gamma)
    return 2 * surprise / xi**2, 3 * scale * (log(4 * n_queries / delta) + surprise)
