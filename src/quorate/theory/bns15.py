r"""Sample sizes of Beimel, Nissim and Stemmer: Appendix B, the learners of Sections 3 to 5, with constants as printed.

VC is the VC dimension of the class, d the number of bits of a point of the domain, S the labelled rows and T those to
be relabelled. A size is the right-hand side of an inequality m ≥ …, not rounded; log and ln are natural. A name that
ends in ``_shape`` returns an expression that the paper gives up to constants, with constant 1.
"""

from __future__ import annotations

from math import comb, e, exp, inf, log

from quorate.arguments import count
from quorate.theory.symbols import number, statement, whole

_LARGEST_EXPONENT = 700.0  # e to this is a float
_MOST_POINTS = 1 << 60
_ANY_VC = whole("VC(C) ≥ 0")


def sauer(n_points: int, vc_dimension: int) -> int:
    r"""Return :math:`\sum_{i \le d} \binom{n}{i}`: no class of VC dimension d ≥ 0 realises more dichotomies on n ≥ 0 points.

    :func:`bns15_theorem_b_2` is the rounder bound that BNS15 and LWY25 use.

    Sauer (1972).

    Examples
    --------
    >>> sauer(60, 4), sauer(3, 5)
    (523686, 8)
    """  # noqa: E501  a formula is one line
    return sum(comb(n_points, i) for i in range(min(n_points, vc_dimension) + 1))


@statement("BNS15, Theorem B.2; LWY25, Lemma 2.4")
def bns15_theorem_b_2(n_points: int, vc_dimension: int) -> float:
    r"""Return Sauer's bound as printed: at most :math:`(en/d)^d` dichotomies on n points, for n > d.

    LWY25 has n ≥ d; that holds too, and is taken here. For n < d it is false: on one point a class with d = 10 realises
    2 dichotomies, and :math:`(e/10)^{10} < 10^{-5}`.
    """
    n_points = count("n_points", n_points, at_least=vc_dimension)
    return float((e * n_points / vc_dimension) ** vc_dimension)


@statement("BNS15, Theorem B.3, after Ehrenfeucht, Haussler, Kearns and Valiant (1989)")
def bns15_theorem_b_3(vc_dimension: int, alpha: float) -> float:
    r"""Return the least number of labels of any learner with β < 1/2: :math:`(VC - 1)/(16\alpha)`, as printed.

    Printed for every α; it is false for α near 1. A learner that remembers 34 labelled points and tosses a coin for
    every other one has, on any distribution and for any class that holds all functions on its points, an error above
    0.99 with probability below 0.41: a point of mass 0.1 or more, of which there are ten at most, is not among the 34
    with probability at most :math:`0.9^{34}` each, together below 0.28; and if none is missing, the error has a mean of
    at most 1/2 and a variance of at most :math:`\sum \mu(x)^2/4 \le 0.025`, so it passes 0.99 with probability at most
    :math:`0.025/0.49^2 < 0.11` (Chebyshev). 34 labels are enough for every VC dimension, where the theorem asks for
    more than 34 from VC(C) = 540 on. :func:`bns15_theorem_b_3_for_small_errors` holds.
    """
    return (vc_dimension - 1) / (16 * alpha)


@statement("BNS15, Theorem B.3, under conditions that it needs", alpha=number("α in (0, 1/8]", above=0, at_most=0.125))
def bns15_theorem_b_3_for_small_errors(vc_dimension: int, alpha: float) -> float:
    r"""Return the same number, :math:`(VC - 1)/(16\alpha)`, for α ≤ 1/8 and learners with β < 1/7, where it is proven.

    Proof. Let d points be shattered. One of them has mass 1 − 8α, each other one :math:`8\alpha/(d-1)`, and the labels
    of those are fair coins. With :math:`m < (d-1)/(16\alpha)` labelled rows fewer than (d − 1)/2 of them are expected
    to be seen, so more than (d − 1)/2 not to be, on each of which any hypothesis errs with probability 1/2. So the part
    E of the error that these points make has a mean above 2α, and it is at most 8α:
    :math:`2\alpha < E[E] \le \alpha + 7\alpha P(E > \alpha)`, and so :math:`P(E > \alpha) > 1/7`, for some labelling
    too. Rows without a label tell nothing of the labels.
    """
    return bns15_theorem_b_3(vc_dimension, alpha)


@statement("BNS15, Theorem B.4")
def bns15_theorem_b_4(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many labelled rows make consistent concepts good: :math:`\frac8\alpha(VC\ln\frac{16}\alpha + \ln\frac2\beta)`.

    With probability at least 1 − β every concept of C that makes no mistake on them has an error of at most α.
    """  # noqa: E501  a formula is one line
    return 8 / alpha * (vc_dimension * log(16 / alpha) + log(2 / beta))


@statement("BNS15, Theorem B.5", vc_dimension=_ANY_VC, alpha=number("α > 0; from 1 on nothing is said", above=0))
def bns15_theorem_b_5(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many rows make seen disagreements tell of all: :math:`\frac{48}\alpha(10VC\log\frac{48e}\alpha + \log\frac5\beta)`.

    With probability at least 1 − β no two concepts of C that differ on at most α/10 of the rows differ on α or more of
    the distribution.
    """  # noqa: E501  a formula is one line
    return 48 / alpha * (10 * vc_dimension * log(48 * e / alpha) + log(5 / beta))


@statement(
    "BNS15, Theorem B.6",
    vc_dimension=_ANY_VC,
    beta=number("β in (0, 1]; 1 is the limit at which such rows exist", above=0, at_most=1),
)
def bns15_theorem_b_6(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return how many rows make every empirical error near: :math:`\frac{50\,VC}{\alpha^2}\ln\frac1{\alpha\beta}`.

    With probability at least 1 − β the error of every concept of H is within α of its share of mistakes, whatever
    function labels the rows. For VC(H) = 0 it asks for no rows, and is false: H may hold one concept of error 1/2, and
    one row shows a share of 0 or 1. It is meant for VC(H) ≥ 1.
    """
    return 50 * vc_dimension / alpha**2 * log(1 / (alpha * beta))


@statement("BNS15, Theorem 3.3: m")
def bns15_theorem_3_3_labelled_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of GenericLearner: :math:`\frac{VC}{\alpha^3\varepsilon}\log\frac1\alpha + \frac1{\alpha\varepsilon}\log\frac1\beta`.

    The learner is ε-DP, and has an error above α with probability at most β. :math:`1/\alpha^3` comes of bounding
    :math:`\log|H|` by the number of sanitized points; Sauer's lemma bounds it by VC(C) times a logarithm, which makes
    it 1/α: :class:`quorate.learners.GenericLearner` counts that way.
    """  # noqa: E501  a formula is one line
    return vc_dimension / (alpha**3 * epsilon) * log(1 / alpha) + log(1 / beta) / (alpha * epsilon)


@statement("BNS15, Theorem 3.3: n")
def bns15_theorem_3_3_rows_shape(n_bits: int, vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return all rows of GenericLearner: :math:`\frac{d\,VC}{\alpha^3\varepsilon}\log\frac1\alpha + \frac1{\alpha\varepsilon}\log\frac1\beta`."""  # noqa: E501
    return n_bits * vc_dimension / (alpha**3 * epsilon) * log(1 / alpha) + log(1 / beta) / (alpha * epsilon)


@statement("BNS15, Claim 4.2", epsilon=number("ε > 0 of the exponential mechanism; the paper's is 1", above=0))
def bns15_claim_4_2_points(
    vc_dimension: int, alpha: float, beta: float, n_labelled: int, *, epsilon: float = 1.0
) -> float:
    r"""Return how many points S and T may have together: :math:`\frac\beta e VC\,e^{\varepsilon\alpha|S|/(2VC)}`.

    Infinite where it is beyond a float.
    """
    exponent = epsilon * alpha * n_labelled / (2 * vc_dimension)
    return beta / e * vc_dimension * exp(exponent) if exponent < _LARGEST_EXPONENT else inf


@statement("BNS15, Claim 4.2")
def bns15_claim_4_2(vc_dimension: int, alpha: float, beta: float, n_labelled: int) -> float:
    r"""Return how many unlabelled rows S can relabel, as printed: :math:`\frac\beta e VC\,e^{\alpha|S|/(2VC)} - |S|`.

    With at most so many, LabelBoostProcedure chooses a concept that errs on at most α of S, but for a probability β. It
    is negative where S is too small for any.

    The proof uses Sauer's lemma, which is for more than VC(C) points, and the claim does not ask for them. It is false
    without: with VC(C) = 100, α = 1/2, β = 0.1 and one labelled row it allows two unlabelled ones, and a concept that
    errs on the one labelled row is chosen with probability :math:`1/(1 + \sqrt e) = 0.38`.
    :func:`bns15_claim_4_2_counted` holds for every class.
    """
    return bns15_claim_4_2_points(vc_dimension, alpha, beta, n_labelled) - n_labelled


@statement(
    "BNS15, Claim 4.2, with the count that its proof begins with", n_labelled=whole("labelled rows in S, ≥ 1", 1)
)
def bns15_claim_4_2_counted(vc_dimension: int, alpha: float, beta: float, n_labelled: int) -> int:
    r"""Return how many unlabelled rows S can relabel, for every class of this VC dimension.

    The largest \|T\| with :math:`\sum_{i \le VC}\binom{|S|+|T|}{i} \le \beta e^{\alpha|S|/2}`: −1 if not even S alone
    can be relabelled by itself; at most 2⁶⁰.

    Proof. At most :math:`\sum_{i\le VC}\binom{|S|+|T|}{i}` dichotomies are candidates (Sauer), one of which makes no
    mistake on S. The exponential mechanism at ε = 1 chooses any one that errs on more than α of S with probability at
    most :math:`e^{-\alpha|S|/2}` (Proposition A.1). The printed bound is this one with :math:`(e|P|/VC)^{VC}` in place
    of the sum and :math:`\beta^{VC}` in place of β, where \|P\| > VC(C).
    """
    room = (log(beta) + alpha * n_labelled / 2) * (1 - 2.0**-48)

    def fits(n_unlabelled: int) -> bool:
        return log(sauer(n_labelled + n_unlabelled, vc_dimension)) <= room

    if not fits(0):
        return -1
    low, high = 0, 1
    while high < _MOST_POINTS and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@statement("BNS15, Claim 4.9; it is the m of Theorem 4.13 with its constants")
def bns15_claim_4_9_labelled(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels that LabelBoost begins with: :math:`\frac{96000}\alpha VC\log\frac{2240}{\alpha\beta}`.

    With as many, and 90000n unlabelled rows, every iteration i begins with at least
    :func:`bns15_claim_4_9_iteration` of them.
    """
    return 96_000 / alpha * vc_dimension * log(2240 / (alpha * beta))


@statement("BNS15, Claim 4.9")
def bns15_claim_4_9_iteration(vc_dimension: int, alpha: float, beta: float, iteration: int) -> float:
    r"""Return the labels that iteration i begins with: :math:`\frac{4800}{\alpha_i} VC\log\frac{14}{\alpha_i\beta_i}`.

    α_i and β_i are those of :func:`bns15_algorithm_3_accuracy`. At i = 1 it is :func:`bns15_claim_4_9_labelled`.
    """
    alpha_i, beta_i = bns15_algorithm_3_accuracy(alpha, beta, iteration)
    return 4800 / alpha_i * vc_dimension * log(14 / (alpha_i * beta_i))


@statement("BNS15, Algorithm 3, step 2a")
def bns15_algorithm_3_accuracy(alpha: float, beta: float, iteration: int) -> tuple[float, float]:
    r"""Return :math:`\alpha_i = \alpha/(10 \cdot 2^i)` and :math:`\beta_i = \beta/(4 \cdot 2^i)` of LabelBoost's iteration i."""  # noqa: E501
    return alpha / (10 * 2.0**iteration), beta / (4 * 2.0**iteration)


@statement(
    "BNS15, Algorithm 3, step 2b",
    alpha_i=number("α_i of the iteration, in (0, 1)", above=0, below=1),
    beta_i=number("β_i of the iteration, in (0, 1)", above=0, below=1),
)
def bns15_algorithm_3_taken(vc_dimension: int, alpha_i: float, beta_i: float, n_labelled: int, n_base: int) -> float:
    r"""Return the unlabelled rows an iteration takes: :math:`\min\{30000n, \beta_iVC\,e^{\alpha_i|S|/(200VC)} - |S|\}`.

    \|S\| is counted before 99 of 100 rows are deleted.
    """
    exponent = alpha_i * n_labelled / (200 * vc_dimension)
    return min(30_000.0 * n_base, beta_i * vc_dimension * exp(min(exponent, _LARGEST_EXPONENT)) - n_labelled)


@statement("BNS15, Theorem 4.13")
def bns15_theorem_4_13_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels of LabelBoost: :math:`\frac1\alpha VC\log\frac1{\alpha\beta}`.

    From an (α, β, ε = 1, δ, n, n)-learner it makes an (11α, 2β, ε = 1, 41δ, O(n), m)-learner. The constants are those
    of :func:`bns15_claim_4_9_labelled`, and 90000 for O(n).
    """
    return vc_dimension / alpha * log(1 / (alpha * beta))


@statement("BNS15, Theorem 4.14")
def bns15_theorem_4_14_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of LabelBoost at any ε: :math:`\frac1{\alpha\varepsilon}VC\log\frac1{\alpha\beta}`.

    From an (α, β, 1, δ, n, n)-learner it makes a (λα, λβ, ε, δ, O(n/ε), m)-learner, for a constant λ.
    """
    return bns15_theorem_4_13_shape(vc_dimension, alpha, beta) / epsilon


@statement("BNS15, Theorem 4.16, of which the paper gives no proof")
def bns15_theorem_4_16_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of LabelBoost where no concept need be right: :math:`\frac1{\alpha^2\varepsilon}VC\log\frac1{\alpha\beta}`.

    From an (α, β, 1, δ, n, n)-learner of F it makes a (λα, λβ, ε, δ, O(n/ε), m)-agnostic learner using F.
    """  # noqa: E501  a formula is one line
    return bns15_theorem_4_14_shape(vc_dimension, alpha, beta, epsilon) / alpha


@statement(
    "BNS15, Theorem 5.6, and the last line of its proof solved for m",
    alpha=number("α in (0, 1/9]", above=0, at_most=1 / 9),
    beta=number("β in (0, 1/4]", above=0, at_most=1 / 4),
    delta=number("δ in [0, 1) of the guarantee", at_least=0, below=1),
    n_rows=whole("n ≥ 1, the rows of the pool", 1),
)
def bns15_theorem_5_6(alpha: float, beta: float, epsilon: float, delta: float, n_rows: int) -> float:
    r"""Return labels without which no transcript-private active learner of thresholds does: Ω(1/α), with its constants.

    :math:`m \ge n\left(e^{-2\varepsilon}\,\frac{1 - \frac{25}9\beta}{9\alpha n} - \delta(1 + e^{-\varepsilon})\right)`,
    with n the pool or, where that is larger, :math:`\frac{100}{\alpha^2}\ln\frac1{\alpha\beta}`; 0 where δ is too large
    for the proof to say anything.

    A transcript-private learner may be seen to ask for its labels; without privacy log(1/α) are enough. The proof: one
    of the points among which the threshold lies, a share of 8α, has to be asked about, and all n rows are asked about
    nearly alike, since the questions are private.
    """
    n = max(n_rows, 100 / alpha**2 * log(1 / (alpha * beta)))
    n_labels = exp(-2 * epsilon) * (1 - 25 * beta / 9) / (9 * alpha)
    return max(0.0, n_labels - n * delta * (1 + exp(-epsilon)))


@statement("BNS15, Theorem 5.8")
def bns15_theorem_5_8_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels that a private active learner asks for: :math:`\frac1\alpha VC\log\frac1{\alpha\beta}`, whatever ε is.

    From an (α, β, 1, δ, n, n)-learner SubSampling makes a (λα, λβ, ε, δ, O(n/ε), m)-active learner, for a constant λ.
    It asks in secret, and so needs no more labels for a smaller ε.
    """  # noqa: E501  a formula is one line
    return bns15_theorem_4_13_shape(vc_dimension, alpha, beta)
