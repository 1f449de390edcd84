r"""What the learners of BNS15 ask for: its Theorems 3.3, 4.13, 4.14 and 4.16, and the claims on LabelBoost.

d is the number of bits of a point of the domain, S the labelled rows and T those to be relabelled. A name that ends in
``_shape`` returns an expression that the paper gives up to constants, with constant 1.
"""

from __future__ import annotations

from math import e, exp, inf, log

from quorate.arguments import count, real
from quorate.theory.bns15_bounds import sauer

_LARGEST_EXPONENT = 700.0  # e to this is a float
_MOST_POINTS = 1 << 60


def bns15_theorem_3_3_labelled_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of GenericLearner: :math:`\frac{VC}{\alpha^3\varepsilon}\log\frac1\alpha + \frac1{\alpha\varepsilon}\log\frac1\beta`.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1): an error above α with probability at most β.
    epsilon : float
        ε > 0; the learner is ε-DP.

    Notes
    -----
    :math:`1/\alpha^3` comes of bounding :math:`\log|H|` by the number of sanitized points; Sauer's lemma bounds it by
    VC(C) times a logarithm, which makes it 1/α: :class:`quorate.learners.GenericLearner` counts that way.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 3.3: m.

    Examples
    --------
    >>> round(bns15_theorem_3_3_labelled_shape(2, 0.1, 0.05, 1.0))
    4635
    """  # noqa: E501  a formula is one line
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    epsilon = real("epsilon", epsilon, above=0)
    return vc / (alpha**3 * epsilon) * log(1 / alpha) + log(1 / beta) / (alpha * epsilon)


def bns15_theorem_3_3_rows_shape(n_bits: int, vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return all rows of GenericLearner: :math:`\frac{d\,VC}{\alpha^3\varepsilon}\log\frac1\alpha + \frac1{\alpha\varepsilon}\log\frac1\beta`.

    Parameters
    ----------
    n_bits : int
        d ≥ 1: the domain has :math:`2^d` points.
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    epsilon : float
        ε > 0.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 3.3: n.

    Examples
    --------
    >>> round(bns15_theorem_3_3_rows_shape(32, 2, 0.1, 0.05, 1.0))
    147395
    """  # noqa: E501  a formula is one line
    n_bits = count("n_bits", n_bits, at_least=1)
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    epsilon = real("epsilon", epsilon, above=0)
    return n_bits * vc / (alpha**3 * epsilon) * log(1 / alpha) + log(1 / beta) / (alpha * epsilon)


def bns15_claim_4_2_points(
    vc_dimension: int, alpha: float, beta: float, n_labelled: int, *, epsilon: float = 1.0
) -> float:
    r"""Return how many points S and T may have together: :math:`\frac\beta e VC\,e^{\varepsilon\alpha|S|/(2VC)}`.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    n_labelled : int
        \|S\|.
    epsilon : float, default 1.0
        ε > 0 of the exponential mechanism; the paper's is 1.

    Returns
    -------
    float
        Infinite where it is beyond a float.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Claim 4.2.

    Examples
    --------
    >>> round(bns15_claim_4_2_points(1, 0.1, 0.1, 200))
    810
    """
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    exponent = real("epsilon", epsilon, above=0) * alpha * count("n_labelled", n_labelled) / (2 * vc)
    return beta / e * vc * exp(exponent) if exponent < _LARGEST_EXPONENT else inf


def bns15_claim_4_2(vc_dimension: int, alpha: float, beta: float, n_labelled: int) -> float:
    r"""Return how many unlabelled rows S can relabel, as printed: :math:`\frac\beta e VC\,e^{\alpha|S|/(2VC)} - |S|`.

    With at most so many, LabelBoostProcedure chooses a concept that errs on at most α of S, but for a probability β.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    n_labelled : int
        \|S\|.

    Returns
    -------
    float
        Not rounded; negative where S is too small for any.

    Notes
    -----
    The proof uses Sauer's lemma, which is for more than VC(C) points, and the claim does not ask for them. It is false
    without: with VC(C) = 100, α = 1/2, β = 0.1 and one labelled row it allows two unlabelled ones, and a concept that
    errs on the one labelled row is chosen with probability :math:`1/(1 + \sqrt e) = 0.38`.
    :func:`bns15_claim_4_2_counted` holds for every class.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Claim 4.2.

    Examples
    --------
    >>> round(bns15_claim_4_2(1, 0.1, 0.1, 200)), round(bns15_claim_4_2(100, 0.5, 0.1, 1), 2)
    (610, 2.69)
    """
    return bns15_claim_4_2_points(vc_dimension, alpha, beta, n_labelled) - n_labelled


def bns15_claim_4_2_counted(vc_dimension: int, alpha: float, beta: float, n_labelled: int) -> int:
    r"""Return how many unlabelled rows S can relabel, for every class of this VC dimension.

    The largest \|T\| with :math:`\sum_{i \le VC}\binom{|S|+|T|}{i} \le \beta e^{\alpha|S|/2}`.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    n_labelled : int
        \|S\| ≥ 1.

    Returns
    -------
    int
        −1 if not even S alone can be relabelled by itself; at most 2⁶⁰.

    Notes
    -----
    Proof. At most :math:`\sum_{i\le VC}\binom{|S|+|T|}{i}` dichotomies are candidates (Sauer), one of which makes no
    mistake on S. The exponential mechanism at ε = 1 chooses any one that errs on more than α of S with probability at
    most :math:`e^{-\alpha|S|/2}` (Proposition A.1). The printed bound is this one with :math:`(e|P|/VC)^{VC}` in place
    of the sum and :math:`\beta^{VC}` in place of β, where \|P\| > VC(C).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Claim 4.2, with the count that its proof begins with.

    Examples
    --------
    >>> bns15_claim_4_2_counted(1, 0.1, 0.1, 200), bns15_claim_4_2_counted(100, 0.5, 0.1, 1)
    (2001, -1)
    """
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    n_labelled = count("n_labelled", n_labelled, at_least=1)
    room = (log(beta) + alpha * n_labelled / 2) * (1 - 2.0**-48)

    def fits(n_unlabelled: int) -> bool:
        return log(sauer(n_labelled + n_unlabelled, vc)) <= room

    if not fits(0):
        return -1
    low, high = 0, 1
    while high < _MOST_POINTS and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def bns15_claim_4_9_labelled(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels that LabelBoost begins with: :math:`\frac{96000}\alpha VC\log\frac{2240}{\alpha\beta}`.

    With as many, and 90000n unlabelled rows, every iteration i begins with at least
    :func:`bns15_claim_4_9_iteration` of them.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Claim 4.9; it is the m of Theorem 4.13 with its constants.

    Examples
    --------
    >>> round(bns15_claim_4_9_labelled(1, 0.1, 0.1))
    11826625
    """
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    return 96_000 / alpha * vc * log(2240 / (alpha * beta))


def bns15_claim_4_9_iteration(vc_dimension: int, alpha: float, beta: float, iteration: int) -> float:
    r"""Return the labels that iteration i begins with: :math:`\frac{4800}{\alpha_i} VC\log\frac{14}{\alpha_i\beta_i}`.

    With :math:`\alpha_i = \alpha/(10\cdot2^i)` and :math:`\beta_i = \beta/(4\cdot2^i)`.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    iteration : int
        i ≥ 1. At i = 1 it is :func:`bns15_claim_4_9_labelled`.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Claim 4.9.

    Examples
    --------
    >>> round(bns15_claim_4_9_iteration(1, 0.1, 0.1, 1))
    11826625
    """
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    alpha_i, beta_i = bns15_algorithm_3_accuracy(alpha, beta, iteration)
    return 4800 / alpha_i * vc * log(14 / (alpha_i * beta_i))


def bns15_algorithm_3_accuracy(alpha: float, beta: float, iteration: int) -> tuple[float, float]:
    r"""Return :math:`\alpha_i = \alpha/(10 \cdot 2^i)` and :math:`\beta_i = \beta/(4 \cdot 2^i)` of LabelBoost's iteration i.

    Parameters
    ----------
    alpha, beta : float
        In (0, 1).
    iteration : int
        i ≥ 1.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Algorithm 3, step 2a.

    Examples
    --------
    >>> bns15_algorithm_3_accuracy(0.1, 0.1, 1)
    (0.005, 0.0125)
    """  # noqa: E501  a formula is one line
    alpha, beta = real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
    iteration = count("iteration", iteration, at_least=1)
    return alpha / (10 * 2.0**iteration), beta / (4 * 2.0**iteration)


def bns15_algorithm_3_taken(vc_dimension: int, alpha_i: float, beta_i: float, n_labelled: int, n_base: int) -> float:
    r"""Return the unlabelled rows an iteration takes: :math:`\min\{30000n, \beta_iVC\,e^{\alpha_i|S|/(200VC)} - |S|\}`.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha_i, beta_i : float
        Of the iteration, in (0, 1).
    n_labelled : int
        \|S\|, before 99 of 100 rows are deleted.
    n_base : int
        n ≥ 1: the rows of the base learner.

    Returns
    -------
    float
        v, not rounded.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Algorithm 3, step 2b.

    Examples
    --------
    >>> bns15_algorithm_3_taken(1, 0.005, 0.0125, 11_826_626, 100)
    3000000.0
    """
    vc = count("vc_dimension", vc_dimension, at_least=1)
    alpha_i, beta_i = real("alpha_i", alpha_i, above=0, below=1), real("beta_i", beta_i, above=0, below=1)
    n_labelled, n_base = count("n_labelled", n_labelled), count("n_base", n_base, at_least=1)
    exponent = alpha_i * n_labelled / (200 * vc)
    return min(30_000.0 * n_base, beta_i * vc * exp(min(exponent, _LARGEST_EXPONENT)) - n_labelled)


def bns15_theorem_4_13_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels of LabelBoost: :math:`\frac1\alpha VC\log\frac1{\alpha\beta}`.

    From an (α, β, ε = 1, δ, n, n)-learner it makes an (11α, 2β, ε = 1, 41δ, O(n), m)-learner.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).

    Notes
    -----
    The constants are those of :func:`bns15_claim_4_9_labelled`, and 90000 for O(n).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 4.13.

    Examples
    --------
    >>> round(bns15_theorem_4_13_shape(2, 0.1, 0.1), 1)
    92.1
    """
    vc, alpha, beta = _checked(vc_dimension, alpha, beta)
    return vc / alpha * log(1 / (alpha * beta))


def bns15_theorem_4_14_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of LabelBoost at any ε: :math:`\frac1{\alpha\varepsilon}VC\log\frac1{\alpha\beta}`.

    From an (α, β, 1, δ, n, n)-learner it makes a (λα, λβ, ε, δ, O(n/ε), m)-learner, for a constant λ.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).
    epsilon : float
        ε > 0.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 4.14.

    Examples
    --------
    >>> round(bns15_theorem_4_14_shape(2, 0.1, 0.1, 0.5), 1)
    184.2
    """
    return bns15_theorem_4_13_shape(vc_dimension, alpha, beta) / real("epsilon", epsilon, above=0)


def bns15_theorem_4_16_shape(vc_dimension: int, alpha: float, beta: float, epsilon: float) -> float:
    r"""Return the labels of LabelBoost where no concept need be right: :math:`\frac1{\alpha^2\varepsilon}VC\log\frac1{\alpha\beta}`.

    From an (α, β, 1, δ, n, n)-learner of F it makes a (λα, λβ, ε, δ, O(n/ε), m)-agnostic learner using F.

    Parameters
    ----------
    vc_dimension : int
        VC(F) ≥ 1.
    alpha, beta : float
        In (0, 1).
    epsilon : float
        ε > 0.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 4.16, of which the paper gives no proof.

    Examples
    --------
    >>> round(bns15_theorem_4_16_shape(2, 0.1, 0.1, 0.5))
    1842
    """  # noqa: E501  a formula is one line
    return bns15_theorem_4_14_shape(vc_dimension, alpha, beta, epsilon) / alpha


def _checked(vc_dimension: int, alpha: float, beta: float) -> tuple[int, float, float]:
    vc = count("vc_dimension", vc_dimension, at_least=1)
    return vc, real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
