r"""How many labels an active learner asks for: Theorems 5.6 and 5.8 of BNS15.

A transcript-private learner may be seen to ask for its labels, and needs 1/α of them; one that asks in secret needs no
more for a smaller ε. A name that ends in ``_shape`` returns an expression that the paper gives up to constants, with
constant 1.
"""

from __future__ import annotations

from math import exp, log

from quorate.arguments import count, real
from quorate.theory.bns15_learners import bns15_theorem_4_13_shape

_LARGEST_ALPHA, _LARGEST_BETA = 1 / 9, 1 / 4


def bns15_theorem_5_6(alpha: float, beta: float, epsilon: float, delta: float, n_rows: int) -> float:
    r"""Return labels without which no transcript-private active learner of thresholds does: Ω(1/α), with its constants.

    :math:`m \ge n\left(e^{-2\varepsilon}\,\frac{1 - \frac{25}9\beta}{9\alpha n} - \delta(1 + e^{-\varepsilon})\right)`,
    with n the pool or, where that is larger, :math:`\frac{100}{\alpha^2}\ln\frac1{\alpha\beta}`.

    Parameters
    ----------
    alpha : float
        In (0, 1/9].
    beta : float
        In (0, 1/4].
    epsilon : float
        ε > 0.
    delta : float
        δ in [0, 1).
    n_rows : int
        n ≥ 1, the rows of the pool.

    Returns
    -------
    float
        m, not rounded; 0 where δ is too large for the proof to say anything.

    Notes
    -----
    Without privacy log(1/α) labels are enough. The proof: one of the points among which the threshold lies, a share of
    8α, has to be asked about, and all n rows are asked about nearly alike, since the questions are private.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 5.6, and the last line of its proof solved for m.

    Examples
    --------
    >>> round(bns15_theorem_5_6(0.001, 0.05, 0.1, 0.0, 10**6), 1)
    78.3
    """
    alpha = real("alpha", alpha, above=0, at_most=_LARGEST_ALPHA)
    beta = real("beta", beta, above=0, at_most=_LARGEST_BETA)
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, at_least=0, below=1)
    n = max(count("n_rows", n_rows, at_least=1), 100 / alpha**2 * log(1 / (alpha * beta)))
    asked = exp(-2 * epsilon) * (1 - 25 * beta / 9) / (9 * alpha)
    return max(0.0, asked - n * delta * (1 + exp(-epsilon)))


def bns15_theorem_5_8_shape(vc_dimension: int, alpha: float, beta: float) -> float:
    r"""Return the labels that a private active learner asks for: :math:`\frac1\alpha VC\log\frac1{\alpha\beta}`, whatever ε is.

    From an (α, β, 1, δ, n, n)-learner SubSampling makes a (λα, λβ, ε, δ, O(n/ε), m)-active learner, for a constant λ.

    Parameters
    ----------
    vc_dimension : int
        VC(C) ≥ 1.
    alpha, beta : float
        In (0, 1).

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Theorem 5.8.

    Examples
    --------
    >>> round(bns15_theorem_5_8_shape(2, 0.1, 0.1), 1)
    92.1
    """  # noqa: E501  a formula is one line
    return bns15_theorem_4_13_shape(vc_dimension, alpha, beta)
