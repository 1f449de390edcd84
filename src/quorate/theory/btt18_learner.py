"""A private learner from answered queries: Section 4 of BTT18.

Algorithm 3 labels m public points by Algorithm 2 and trains a student on them. α is the target error, γ the error of
the best hypothesis, V the VC dimension, n the private rows. A name that ends in ``_shape`` returns an expression that
the paper gives up to constants and logarithms, with constant 1 and none of them.

**How far one changed row moves what stochastic gradient descent learns (BTT18a, Theorem 2; Hardt and others 2016).** A
learner is *γ-uniformly stable* if on any two tables that differ in one row its parameters differ by at most γ, in the
mean over its coins; *γ-on-average stable* if that holds in the mean over tables of n independent rows, over the row
that is replaced by another independent one, and over its coins.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, log

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.theory.symbols import BEST_ERROR, number, statement, unchecked, whole

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
