r"""What it costs to ask for few labels of a secret sample of the rows (BNS15, Algorithm 4).

Of t rows a random n are handed to an (ε, δ)-DP learner, m of them with their labels. Where the m are random too, rows
that are exchanged change one entry of the learner's input, and the rule of
:func:`~quorate.learners.amplification.without_replacement.without_replacement` holds as it is. Where they are the m smallest indices, as
printed, exchanging one row for another may make a third gain or lose its label: two entries. With :math:`r = n/t`:

=============================== =============================================================== ==================
price                           ε'                                                              δ'
=============================== =============================================================== ==================
labels of a random m            :math:`\log(1 + r(e^\varepsilon - 1))`                          :math:`r\delta`
of the m first (this module)    :math:`\log\frac{1 - r + re^{2\varepsilon}}{1 - r + re^\varepsilon}`
                                                                                                :math:`r(1 + \theta e^\varepsilon)\delta`
of the m first (BNS15's proof)  :math:`\log(1 + r(e^{2\varepsilon} - 1))`                       :math:`r(1 + e^\varepsilon)\delta`
=============================== =============================================================== ==================

*Proof of the second line.* Let the tables differ in row i, let a and b be the averages over the samples without and
with row i of the learner's answer on the second table, so that it answers :math:`P_2 = (1-r)a + rb`. On the first
table a sample with row i is compared in two ways: with the same sample on the second table, which differs in one entry,
:math:`\le e^\varepsilon b + \delta`; and with row i exchanged for a random row outside, which differs in two and is the
same on both tables, :math:`\le e^{2\varepsilon} a + (1 + e^\varepsilon)\delta`. Mixed with weights 1 − θ and θ,

.. math::
    P_1 \le (1 - r + r\theta e^{2\varepsilon})\, a + r(1-\theta)e^\varepsilon\, b + r(1 + \theta e^\varepsilon)\delta ,

and :math:`\theta = \frac{(1-r)(1 - e^{-\varepsilon})}{1 - r + re^\varepsilon}` makes the first two terms a multiple of
:math:`P_2`. BNS15's proof is θ = 1, which wastes the share b. At r = 1 nothing is sampled, and ε' = ε.
"""  # noqa: E501  the table's columns

from __future__ import annotations

from math import exp, expm1, log1p
from typing import Literal, TypeAlias

from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import Price, rounded_up_price
from quorate.learners.amplification.without_replacement import without_replacement

#: Which rows of the sample are asked for their labels.
Asked: TypeAlias = Literal["random", "first"]


def subsampling(price: Price, *, n_rows: int, n_kept: int, labelled: Asked = "random") -> Price:
    """Return the price of a learner that is run on a secret sample of the rows and a few of its labels.

    `price`: (ε, δ) of the learner on the sample; ε at most 250. `n_rows`, `n_kept`: t >= 1 and n <= t. `labelled`:
    which rows of the sample have labels: a random m of them, or the m with the smallest indices. Raises
    InvalidParameter if a number is out of range. It covers what the learner answers, and not which labels were asked
    for.
    """
    one_of("labelled", labelled, ("random", "first"))
    if labelled == "random":
        return without_replacement(price, n_rows=n_rows, n_kept=n_kept)
    rate = _rate(price, n_rows, n_kept)
    once, twice = expm1(price.epsilon), expm1(2 * price.epsilon)
    epsilon = log1p(rate * (twice - once) / (1 + rate * once))
    theta = (1 - rate) * -expm1(-price.epsilon) / (1 + rate * once)
    return rounded_up_price(epsilon, rate * (1 + theta * exp(price.epsilon)) * price.delta)


def bns15_subsampling(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return the price of BNS15's Algorithm 4 as its proof has it.

    :math:`(\log(1 + r(e^{2\varepsilon} - 1)),\ r(1 + e^\varepsilon)\delta)`.

    Raises InvalidParameter if a number is out of range.
    """
    rate = _rate(price, n_rows, n_kept)
    delta = rate * (1 + exp(price.epsilon)) * price.delta
    return rounded_up_price(log1p(rate * expm1(2 * price.epsilon)), delta)


def bns15_claim_5_7(price: Price, *, epsilon: float, n_kept: int) -> tuple[int, Price]:
    r"""Return how many rows BNS15's Claim 5.7 takes `n_kept` from to bring a price to ε, and that price.

    :math:`t = \frac{n}{\varepsilon}(3 + e^{2\varepsilon^*})` rows give
    :math:`(\varepsilon, \frac{7 + e^{\varepsilon^*}}{3 + e^{2\varepsilon^*}} \varepsilon\delta)`.

    `price`: :math:`(\varepsilon^*, \delta)` of the learner on the sample. `epsilon`: in (0, 1]: the claim says "every
    ε", its proof uses ε <= 1. `n_kept`: n >= 1. Raises InvalidParameter if a number is out of range.
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    real("price.epsilon", price.epsilon, at_most=250)
    n_kept = count("n_kept", n_kept, at_least=1)
    share = 3 + exp(2 * price.epsilon)
    needed = n_kept * share / epsilon
    delta = (7 + exp(price.epsilon)) / share * epsilon * price.delta
    rows = int(needed) + (needed * (1 + 2.0**-46) > int(needed))
    return rows, Price(epsilon, rounded_up_price(0.0, delta).delta)


def _rate(price: Price, n_rows: int, n_kept: int) -> float:
    n_rows, n_kept = count("n_rows", n_rows, at_least=1), count("n_kept", n_kept)
    if n_kept > n_rows:
        raise InvalidParameter(f"n_kept must be at most n_rows={n_rows}, got {n_kept}")
    real("price.epsilon", price.epsilon, at_most=250)
    return n_kept / n_rows
