"""Answers by a sparse vector over an ensemble, and a learner from them: Bassily, Thakkar and Thakurta, as printed.

m queries, k teachers, n private rows, V the VC dimension, (ε, δ) the guarantee, T the cut-off; α is the target error, γ
that of the best hypothesis; nothing is rounded. Algorithm 3 labels m public points by Algorithm 2 and trains a student
on them (Section 4). A name that ends in ``_shape`` returns an expression that the paper gives up to constants and
logarithms, with constant 1 and none of them. The cut-off of Theorem 3.2 is in :mod:`quorate.theory.lzcw21_cutoff`.
BTT18a is the first version of the paper; the numbers in its Theorem 3.11 are those that LZCW21 repeats in its Lemma 3.

**How far one changed row moves what stochastic gradient descent learns (BTT18a, Theorem 2; Hardt and others 2016).** A
learner is *γ-uniformly stable* if on any two tables that differ in one row its parameters differ by at most γ, in the
mean over its coins; *γ-on-average stable* if that holds in the mean over tables of n independent rows, over the row
that is replaced by another independent one, and over its coins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, fsum, log, sqrt

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.mechanisms.stage_noise import btt18_algorithm_2_noise
from quorate.theory.lzcw21_cutoff import lzcw21_lemma_46
from quorate.theory.symbols import BEST_ERROR, REAL_CUTOFF, number, statement, unchecked, whole

_SHARE = 3 / 4  # of data sets on which f gives its usual value
_NEEDED = 2 / 3  # of the k values


@statement("BTT18, Theorem 2.5")
def btt18_theorem_2_5(epsilon: float, delta: float, beta: float) -> float:
    r"""Return how stable f(D) must be for :math:`A_{stab}` to release it: :math:`(\log(1/\delta) + \log(1/\beta))/\varepsilon`.

    A distance to instability, in rows (in teachers, where they vote). Where f(D) is that stable, and
    :math:`\Gamma = \log(1/\delta)/\varepsilon`, Algorithm 1 outputs f(D) with probability at least 1 − β. The proof
    gives β/2: the noise must fall below :math:`-\log(1/\beta)/\varepsilon`.
    """  # noqa: E501  a formula is one line
    return (log(1 / delta) + log(1 / beta)) / epsilon


@statement("BTT18, Algorithm 2, step 1")
def btt18_algorithm_2_teachers(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return how many teachers Algorithm 2 takes: :math:`k = 34\sqrt2\,\lambda\log(4mT/\min(\delta, \beta/2))`.

    With :math:`\lambda = \sqrt{32\,T\log(2/\delta)}/\varepsilon`; a query on which at least two thirds of them agree is
    then answered, all such queries together but for a probability β. :math:`34\sqrt2\sqrt{32} = 272`: twice what the
    proof of Theorem 3.2 asks for, which is
    :math:`k/3 \ge 32\sqrt2\log(\cdot)\sqrt{T\log(2/\delta)}/\varepsilon`, and twice the 136 of
    :func:`~quorate.theory.lzcw21_cutoff.lzcw21_lemma_3`.
    """
    scale, _ = btt18_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return 34 * sqrt(2) * scale * log(4 * n_queries * cutoff / min(delta, beta / 2))


@statement("BTT18, Theorem 3.2 (ii)", cutoff=REAL_CUTOFF)
def btt18_theorem_3_2_rate(cutoff: float, n_queries: int) -> float:
    """Return the misclassification rate of Algorithm 2: at most T/m, and at most 1; but for a probability 2β.

    T bounds the queries on which more than a third of the teachers err: that of the theorem
    (:func:`~quorate.theory.lzcw21_cutoff.btt18_cutoff`), or one that holds for a mean error
    (:func:`~quorate.theory.lzcw21_cutoff.cutoff_for_mean_error`). The rate counts what is answered wrongly or declined.
    """
    return min(1.0, cutoff / n_queries)


@statement(
    "BTT18, Lemma 3.3; LZCW21, Lemma 4, has \"at most 3B\" for ξ = 1/3",
    mistakes=number("B ≥ 0, the most mistakes that one classifier makes on the m queries", at_least=0),
)  # fmt: skip
def btt18_lemma_3_3(mistakes: float, xi: float) -> float:
    r"""Return B/ξ: fewer than so many queries have more than ξk mistaken classifiers, as printed.

    "Less than" is false for B = 0, where 0 queries are not fewer than 0; :func:`btt18_lemma_3_3_counted` has the
    statement that always holds.
    """
    return mistakes / xi


@statement("BTT18, Lemma 3.3, with its strict inequality repaired")
def btt18_lemma_3_3_counted(n_queries: int, n_teachers: int, mistakes: int, xi: float) -> int:
    r"""Return the largest number of queries on which more than ξk of k classifiers can be mistaken.

    :math:`\min(m, \lfloor kB/(\lfloor \xi k \rfloor + 1) \rfloor)`: 0 for B = 0; never above B/ξ, and below it
    otherwise.

    Proof. Let N queries have more than ξk mistakes, so at least :math:`\lfloor \xi k \rfloor + 1` each. All teachers
    together make at most kB mistakes, so :math:`N(\lfloor \xi k\rfloor + 1) \le kB`. It is attained: deal the mistakes
    out to the teachers in turn, :math:`\lfloor \xi k\rfloor + 1` different ones a query.
    """
    return min(n_queries, n_teachers * mistakes // (floor(Fraction(xi) * n_teachers) + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class MisclassificationShape:
    """What Theorem 3.4 or 3.5 of BTT18 says of m queries, up to constants and logarithms.

    `n_queries`: m. `free_queries`: M: for so many queries the rate is the one without privacy. `cutoff`: T. `rate`: the
    share of misclassified queries, as printed.
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


@statement("BTT18, Theorem 3.4")
def btt18_theorem_3_4_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> MisclassificationShape:
    r"""Return the misclassification rate in the realizable case, up to constants and logarithms.

    :math:`V/(\varepsilon n)` for up to :math:`M = \varepsilon n/V` queries, then
    :math:`mV^2/(\varepsilon^2n^2)`; :math:`T = \bar m^2V^2/(\varepsilon^2n^2)` with :math:`\bar m = \max(M, m)`.
    The ``rate_by_cutoff`` says what becomes of (i) below M queries.
    """
    ratio = _ratio(n_rows, vc_dimension, epsilon)
    free = 1 / ratio
    rate = ratio if n_queries <= free else n_queries * ratio * ratio
    cutoff = (max(free, n_queries) * ratio) ** 2
    return MisclassificationShape(n_queries=n_queries, free_queries=free, cutoff=cutoff, rate=rate)


@statement("BTT18, Theorem 3.5", gamma=BEST_ERROR)
def btt18_theorem_3_5_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, gamma: float
) -> MisclassificationShape:
    r"""Return the misclassification rate in the non-realizable case, up to constants and logarithms.

    :math:`\gamma + \sqrt{V/(\varepsilon n)}` for up to :math:`M = \min(1/\gamma, \sqrt{\varepsilon n/V})` queries, then
    :math:`\gamma + m^{1/3}V^{2/3}/(\varepsilon n)^{2/3}`;
    :math:`T = \bar m\gamma + \bar m^{4/3}V^{2/3}/(\varepsilon n)^{2/3}` with :math:`\bar m = \max(M, m)`.
    """
    ratio = _ratio(n_rows, vc_dimension, epsilon)
    free = sqrt(1 / ratio) if gamma == 0 else min(1 / gamma, sqrt(1 / ratio))
    rate = gamma + (sqrt(ratio) if n_queries <= free else n_queries ** (1 / 3) * ratio ** (2 / 3))
    most = max(free, n_queries)
    cutoff = most * gamma + most ** (4 / 3) * ratio ** (2 / 3)
    return MisclassificationShape(n_queries=n_queries, free_queries=free, cutoff=cutoff, rate=rate)


@statement("BTT18, after Theorem 3.4 and in Section 1.1")
def btt18_advanced_composition_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float) -> float:
    r"""Return the rate that advanced composition alone would give: :math:`\sqrt m\,V/(\varepsilon n)`.

    At a rate of α the theorem answers :math:`\alpha(\varepsilon n/V)^2` queries and advanced composition
    :math:`\alpha^2(\varepsilon n/V)^2`: the factor 1/α of the abstract. From :math:`(\varepsilon n/V)^2` queries on,
    where both rates are 1, advanced composition is no worse.
    """
    _ratio(n_rows, vc_dimension, epsilon)
    return sqrt(n_queries) * vc_dimension / (epsilon * n_rows)


@statement('BTT18, abstract: "by at least a factor of 1/α in some cases"')
def btt18_queries_gained_shape(alpha: float) -> float:
    """Return how many times as many queries as advanced composition the theorem answers at a rate of α: 1/α."""
    return 1 / alpha


def _ratio(n_rows: int, vc_dimension: int, epsilon: float) -> float:
    """V/(εn), at most 1."""
    if vc_dimension > epsilon * n_rows:
        raise InvalidParameter(
            f"vc_dimension must be at most epsilon * n_rows = {epsilon * n_rows:g}, got {vc_dimension!r}; "
            "with fewer rows nothing is shown"
        )
    return vc_dimension / (epsilon * n_rows)


@statement("BTT18a, Corollary 3.9, put together as its proof says")
def btt18a_corollary_3_9(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return the distance from which on :math:`A_{OQR}` answers every query: :math:`w + \varphi`.

    Where at most T of m adaptively chosen queries have a distance to instability of no more than this, all others are
    answered with their own value, with probability at least 1 − β. The proof adds the threshold w of :math:`A_{OQR}` to
    the φ of the sparse vector's utility, which is :func:`lzcw21_lemma_46`. Both have δ/2 here, as the noise of
    :func:`btt18_algorithm_2_noise` has: the other half is the threshold's.
    """
    _, threshold = btt18_algorithm_2_noise(epsilon, delta, cutoff, n_queries)
    return threshold + lzcw21_lemma_46(epsilon, delta / 2, cutoff, n_queries, beta)


@statement("BTT18a, Theorem 3.11 and Algorithm 4")
def btt18a_theorem_3_11(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    r"""Return the parts of :math:`A_{subSamp}`: :math:`k = 136\log(4mT/\min(\delta, \beta/2))\sqrt{T\log(2/\delta)}/\varepsilon`.

    Let all but at most T of m adaptively chosen queries f have a value :math:`x_f` that f takes with probability at
    least 3/4 on n/k fresh rows. Then all those queries are answered with it, with probability at least 1 − β.

    The proof asks for two things: enough parts for the noise, and enough for two thirds of them to agree, which is
    :func:`btt18a_agreeing_parts`. This k is both only where
    :math:`\varepsilon \le \tfrac{136}{72}\sqrt{T\log(2/\delta)}`; :func:`btt18a_theorem_3_11_at_any_epsilon` is the larger.
    """  # noqa: E501  a formula is one line
    return 136 * log(4 * n_queries * cutoff / min(delta, beta / 2)) * sqrt(cutoff * log(2 / delta)) / epsilon


@statement(
    "BTT18a, proof of Theorem 3.11",
    share=unchecked("how likely a part gives the usual value, in (2/3, 1]; 3/4 by default"),
)
def btt18a_agreeing_parts(n_queries: int, beta: float, share: float = _SHARE) -> float:
    r"""Return the parts of which two thirds agree on every query: :math:`k = \frac{\log(2m/\beta)}{2(share - 2/3)^2}`.

    72 log(2m/β) at a share of 3/4; for all m queries together, but for a probability β/2. Proof. Of k independent parts
    fewer than 2k/3 give it with probability at most :math:`e^{-2k(share - 2/3)^2} = \beta/(2m)` (Hoeffding), for each
    query.
    """
    share = real("share", share, at_most=1)
    if not share > _NEEDED:
        raise InvalidParameter(f"share must be a number > 2/3 and <= 1, got {share!r}")
    return log(2 * n_queries / beta) / (2 * (share - _NEEDED) ** 2)


@statement("BTT18a, Theorem 3.11, with both of its conditions")
def btt18a_theorem_3_11_at_any_epsilon(epsilon: float, delta: float, cutoff: int, n_queries: int, beta: float) -> float:
    """Return the larger of the two numbers of parts that the proof of Theorem 3.11 asks for.

    They are :func:`btt18a_theorem_3_11` and :func:`btt18a_agreeing_parts`. The noise is that of BTT18's Algorithm 2,
    whose scale falls as 1/ε, so that its share is right for every ε.
    """
    noise = btt18a_theorem_3_11(epsilon, delta, cutoff, n_queries, beta)
    return max(noise, btt18a_agreeing_parts(n_queries, beta))


_STEPS = unchecked("the step sizes α_t, each in (0, 2/β]")


def _check_order(alpha: float, beta: float) -> None:
    if beta > alpha:
        raise InvalidParameter(f"beta must be at most alpha = {alpha:g}, got {beta!r}")


@statement("BTT18, Claim 4.1")
def btt18_claim_4_1_queries(alpha: float, beta: float) -> float:
    r"""Return the number of queries that Claim 4.1 asks for, β ≤ α: :math:`m \ge 4\log(1/(\alpha\beta))/\alpha`."""
    _check_order(alpha, beta)
    return 4 * log(1 / (alpha * beta)) / alpha


@statement("BTT18, Claim 4.1", gamma=BEST_ERROR)
def btt18_claim_4_1(gamma: float, alpha: float) -> float:
    r"""Return the bound on the error of the private labels: :math:`err(h_{priv}) \le 3\gamma + 7\alpha`, as printed.

    For :math:`\beta \le \alpha`, at least :func:`btt18_claim_4_1_queries` queries and teachers that are
    :math:`(\alpha, \beta/k, n/k)`-learners, but for a probability 2β. It is not capped at 1.

    The statement holds, but not by its proof, which puts
    :math:`\sqrt{\log(m/\beta)/(2m(\gamma+\alpha))}` for the :math:`\sqrt{(\gamma+\alpha)\log(m/\beta)/(2m)}` of Theorem
    3.2 and takes that to be at most α: at γ = 0, α = β = 0.01 and the least m it is 0.42. With the root of Theorem 3.2
    the step fails for γ much above α. :func:`btt18_claim_4_1_by_markov` has a smaller bound, for every m, and a proof.
    """
    return 3 * gamma + 7 * alpha


@statement("BTT18, Claim 4.1, with another proof", gamma=BEST_ERROR)
def btt18_claim_4_1_by_markov(gamma: float, alpha: float) -> float:
    r"""Return a bound on the error of the private labels that needs no queries: :math:`3(\gamma + \alpha)`.

    Each teacher errs with probability at most γ + α; that they do on average is enough. It is not capped at 1.

    Proof. Given the teachers, let Z(x, y) in [0, 1] be the share of them that errs on a fresh point. Its mean is at
    most γ + α, so by Markov's inequality :math:`P(Z > 1/3) < 3(\gamma+\alpha)`. Where Z ≤ 1/3, at least two thirds of
    the teachers agree on the truth, and with the k of Algorithm 2 the label is released, but for the noise's β. No
    number of queries enters, and no union over them.
    """
    return 3 * (gamma + alpha)


@statement("BTT18, Theorems 4.2 and 4.3; a constant is left open there")
def btt18_public_rows_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the public points of the student of Theorems 4.2 and 4.3, β ≤ α: :math:`(V + \log(1/\beta))/\alpha^2`."""
    _check_order(alpha, beta)
    return (vc_dimension + log(1 / beta)) / alpha**2


@statement("BTT18, Theorem 4.2")
def btt18_theorem_4_2_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an error of O(α) in the realizable case: :math:`V^{3/2}/(\varepsilon\alpha^{3/2})`.

    The proof's error is 15α, with probability at least 1 − 3β, 0 < β ≤ α.
    """
    return float(vc_dimension**1.5 / (epsilon * alpha**1.5))


@statement("BTT18, Theorem 4.3")
def btt18_theorem_4_3_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an error of O(α + γ) in general: :math:`V^{3/2}/(\varepsilon\alpha^{5/2})`."""
    return float(vc_dimension**1.5 / (epsilon * alpha**2.5))


@statement("BTT18, Remark 2")
def btt18_remark_2_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows where the student minimises its empirical error: :math:`V^{3/2}/(\varepsilon\alpha)`.

    Realizable case; V/α public points are enough. It is what LZCW21 proves in its Theorem 10 for τ = 1.
    """
    return float(vc_dimension**1.5 / (epsilon * alpha))


@statement("BTT18, Remark 3")
def btt18_remark_3_shape(vc_dimension: int, alpha: float, epsilon: float) -> float:
    r"""Return the private rows for an efficient learner in the realizable case: :math:`V^2/(\varepsilon\alpha)`.

    The student is a learner for realizable data alone, so the teachers are trained to an error of 1/m, and no label of
    the m = V/α public points is wrong.
    """
    return vc_dimension**2 / (epsilon * alpha)


@statement(
    "BTT18a, Theorem 2",
    uniform_stability=number("γ ≥ 0 of the learner on rows in random order", at_least=0),
)
def btt18a_theorem_2(uniform_stability: float) -> float:
    r"""Return the on-average stability of a learner that is γ-uniformly stable on shuffled rows: γ.

    If :math:`A(\pi(\cdot))`, π a uniformly random permutation of the rows, is γ-uniformly stable, then A itself is
    γ-on-average stable, whatever order it takes the rows in: one pass without any coin, for example.

    Proof. Independent rows have the same law in any order, so :math:`(\pi(D), \pi(D'))`, with row 1 replaced, has the
    law of :math:`(D, D^{(j)})`, with row j replaced, where j is the place to which π takes row 1. In the mean over π, j
    is uniform; so the mean over rows of A's change is the mean over tables of the change of :math:`A(\pi(\cdot))`.
    """
    return uniform_stability


@statement("Hardt, Recht and Singer (2016), arXiv:1509.01240, proof of the theorem for convex losses", steps=_STEPS)
def hrs16_convex_parameters(lipschitz: float, smoothness: float, steps: Iterable[float], n_rows: int) -> float:
    r"""Return by how much one row moves the parameters, for convex losses: :math:`\frac{2L}n\sum_t \alpha_t`.

    Each step takes a random row, or the rows are gone through in random order.
    """
    most = 2 / smoothness if smoothness > 0 else None
    return 2 * lipschitz * fsum(real("steps", step, above=0, at_most=most) for step in steps) / n_rows


@statement("Hardt, Recht and Singer (2016), arXiv:1509.01240, the theorem for convex losses", steps=_STEPS)
def hrs16_convex(lipschitz: float, smoothness: float, steps: Iterable[float], n_rows: int) -> float:
    r"""Return the uniform stability in loss, for convex losses: :math:`\frac{2L^2}n\sum_t \alpha_t`."""
    return lipschitz * hrs16_convex_parameters(lipschitz, smoothness, steps, n_rows)


@statement(
    "Hardt, Recht and Singer (2016), arXiv:1509.01240, the theorem for non-convex losses",
    lipschitz=number("L > 0: every loss is L-Lipschitz in the parameters", above=0),
    smoothness=number("its gradient is that much Lipschitz: β > 0", above=0),
    c=number("c > 0: the step sizes do not grow, and step t is at most c/t", above=0),
    n_rows=whole("n ≥ 2 rows", 2),
)
def hrs16_non_convex(lipschitz: float, smoothness: float, c: float, n_steps: int, n_rows: int) -> float:
    r"""Return the uniform stability in loss, for losses in [0, 1] that need not be convex.

    .. math:: \frac{1 + 1/(\beta c)}{n - 1}\,(2cL^2)^{\frac1{\beta c+1}}\,T^{\frac{\beta c}{\beta c+1}}

    The proof: until step t₀ the changed row is not met, but for a probability t₀/n; from there on the parameters drift
    apart by at most :math:`\frac{2L}{\beta(n-1)}(T/t_0)^{\beta c}`; the t₀ is the best one.
    """
    power = smoothness * c
    growth = (2 * c * lipschitz**2) ** (1 / (power + 1)) * n_steps ** (power / (power + 1))
    return (1 + 1 / power) / (n_rows - 1) * float(growth)
