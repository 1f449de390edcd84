"""Sample sizes of the realizable-to-agnostic transformation and of private prediction: the statements of LWY25.

V is the VC dimension; :mod:`quorate.learners.agnostic.bound` has the same argument with numbers.

**The disagreement coefficient θ(α), on which the labels of an active learner depend (Hanneke 2014; LZCW21).**
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.theory.symbols import number, statement, whole


@statement("LWY25, Lemma 2.5")
def lwy25_lemma_2_5_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the rows on which disagreements are true up to a factor of 2: :math:`(V\ln(1/\alpha) + \ln(1/\beta))/\alpha`.

    With so many, but for a probability β: concepts that differ on at most α of the rows differ on at most 2α of the
    distribution, and the other way round. :func:`~quorate.theory.bns15.bns15_theorem_b_5` has constants.
    """  # noqa: E501  a formula is one line
    return (vc_dimension * log(1 / alpha) + log(1 / beta)) / alpha


@statement("LWY25, Lemma 2.6")
def lwy25_lemma_2_6_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the rows on which every empirical error is within α: :math:`(V + \ln(1/\beta))/\alpha^2`.

    :func:`~quorate.theory.bns15.bns15_theorem_b_6` has constants.
    """
    return (vc_dimension + log(1 / beta)) / alpha**2


@statement("LWY25, Claim 3.2")
def lwy25_claim_3_2_relabelled_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how large T must be for :math:`A_{Relabel}`: :math:`(V\ln(1/\alpha) + \ln(1/\beta))/\alpha`.

    With this T and the W of :func:`lwy25_claim_3_2_others_shape`, T is relabelled by a concept whose error is within α
    of the least, but for a probability β.
    """
    return lwy25_lemma_2_5_shape(vc_dimension, alpha, beta)


@statement(
    "LWY25, Claim 3.2",
    n_relabelled=number("rows in T, ≥ 1. The second term is as printed; the first has an open constant", at_least=1),
)
def lwy25_claim_3_2_others_shape(
    vc_dimension: int, alpha: float, beta: float, epsilon: float, n_relabelled: float
) -> float:
    r"""Return how large W must be for :math:`A_{Relabel}`: :math:`\max\{(V + \ln(1/\beta))/\alpha^2, |T|/(6\varepsilon)\}`."""  # noqa: E501
    return max(lwy25_lemma_2_6_shape(vc_dimension, alpha, beta), n_relabelled / (6 * epsilon))


@statement("LWY25, Lemma 3.3, after Anthony and Bartlett (1999)", d=number("d ≥ 1", at_least=1))
def lwy25_lemma_3_3(d: float, alpha: float, beta: float) -> float:
    r"""Return an n from which on :math:`n\alpha \ge d\ln(en/d) + \ln(1/\beta)`: :math:`(2d\ln(2/\alpha) + 2\ln(1/\beta))/\alpha`."""  # noqa: E501  a formula is one line
    return (2 * d * log(2 / alpha) + 2 * log(1 / beta)) / alpha


@statement("LWY25, Theorem 3.6", n_base=whole("m ≥ 0 rows of the base learner"))
def lwy25_theorem_3_6_shape(n_base: int, vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the rows of a private agnostic learner: :math:`m + \frac{V\log(1/\alpha)+\log(1/\beta)}{\alpha\varepsilon} + \frac{V+\log(1/\beta)}{\alpha^2}`.

    From an (ε, δ)-DP (α, β)-learner with m rows, ε at most a constant, it makes an (ε, δ)-DP (O(α), O(β + δn))-agnostic
    learner. In the proof of Lemma 3.4, :math:`dis_U(g, \bar h) \le dis_T(g, \bar h)` does not hold for a half U of T;
    with a factor of 2 it does, which the O(·) takes up.
    """  # noqa: E501  a formula is one line
    near = lwy25_lemma_2_5_shape(vc_dimension, alpha, beta) / epsilon
    return n_base + near + lwy25_lemma_2_6_shape(vc_dimension, alpha, beta)


@statement(
    "LWY25, Theorem 4.2",
    alpha=number("α in (0, 1/e], where no logarithm in it is negative", above=0, at_most=0.36787944117144233),
)
def lwy25_theorem_4_2_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the rows of private agnostic prediction, up to a constant; ε, of one prediction, is at most a constant.

    .. math:: \frac{V\log^2(1/\alpha) + \log(1/\alpha)\log(\log(1/\alpha)/\beta)}{\alpha\varepsilon}
              + \frac{V + \log(1/\beta)}{\alpha^2}
    """
    doubt = log(1 / alpha)
    votes = (vc_dimension * doubt**2 + doubt * log(doubt / beta)) / (alpha * epsilon)
    return votes + lwy25_lemma_2_6_shape(vc_dimension, alpha, beta)


def disagreement_coefficient(labellings: Any, best: int, alpha: float, weights: Any = None) -> float:
    r"""Return :math:`\theta(\alpha) = \sup_{r > \alpha} P(DIS(B(h^*, r)))/r`, or 1 where that is smaller.

    B(h*, r) are the hypotheses that differ from h* with probability at most r, and DIS of them the points on which two
    of them differ. It is exact, for a finite list of hypotheses on a finite list of points.

    `labellings` ``(n_hypotheses, n_points)``: what each hypothesis says of each point. `best`: which of them is h*.
    `alpha`: α in [0, 1). `weights` ``(n_points,)``: probability of each point; equal by default. Raises
    InvalidParameter if an argument is out of range, or the shapes do not fit.

    The region grows only where r reaches a distance of some hypothesis, so that the supremum is over these distances,
    and over r just above α. With one hypothesis, or α ≥ every distance, it is at most 1/α.

    Hanneke (2014), Definition 7.1; the θ(·) of LZCW21, Theorem 22.
    """
    table = np.asarray(labellings)
    if table.ndim != 2 or table.size == 0 or not np.isin(table, (0, 1)).all():
        raise InvalidParameter("labellings must be a table of 0 and 1 with a row and a column, got another one")
    best, alpha = count("best", best), real("alpha", alpha, at_least=0, below=1)
    if best >= len(table):
        raise InvalidParameter(f"best must be below the number of hypotheses, {len(table)}, got {best}")
    mass = np.full(table.shape[1], 1 / table.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    if mass.shape != table.shape[1:] or not (mass >= 0).all() or not abs(mass.sum() - 1) < 1e-9:
        raise InvalidParameter("weights must be one probability for each point, which sum to 1, got others")
    differs = table != table[best]
    distances = differs @ mass
    order = np.argsort(distances, kind="stable")
    # a point is in DIS(B(h*, r)) if some hypothesis of the ball differs from h* there: h* is in every ball
    region = np.logical_or.accumulate(differs[order], axis=0) @ mass
    ordered = distances[order]
    inside = np.searchsorted(ordered, alpha, side="right")
    ratios = [1.0, *(region[inside:] / ordered[inside:])]  # within equal distances the last is the largest
    if alpha > 0:
        ratios.append(region[inside - 1] / alpha)  # h* itself is at distance 0
    return float(max(ratios))
