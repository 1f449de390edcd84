r"""What it costs to relabel rows by a concept that was chosen on them, before a private learner sees them (BNS15).

LabelBoostProcedure (BNS15, Algorithm 2) takes one concept for every dichotomy of the rows' points, chooses one by the
exponential mechanism with parameter :math:`\varepsilon_0` and the mistakes on the labelled rows S, relabels the rows of
S and T by it, and hands them to an (ε_A, δ_A)-DP learner. The candidates themselves depend on the points, so this is no
composition. Lemma 4.1 prices it at :math:`(\varepsilon_A + \varepsilon_0 + \log 4,\ 4e^{\varepsilon_0}\delta_A)`, here
:func:`bns15_lemma_4_1`. The same proof, read closely, gives :func:`relabelling`:

.. math::
    (\varepsilon_A + \log c,\ \delta_A), \qquad c = (1 + e^{\varepsilon_0/2})^2
    \text{ for a labelled row}, \quad c = 4 \text{ for an unlabelled one.}

*Proof.* Let row i be the one that differs, K the points that occur in both tables (all other rows are in K), and for a
dichotomy z of K let :math:`G_1(z)`, :math:`G_2(z)` be the candidates of either table that agree with z on K: one, or
two that differ on row i's point alone. Let row i be labelled, and let z make :math:`s_z` mistakes on the other
labelled rows. Each candidate of :math:`G_1(z)` has weight :math:`e^{-\varepsilon_0 s_z/2}` times 1 or :math:`v =
e^{-\varepsilon_0/2}`, as it is right or wrong on row i, and where there are two, one of them is wrong. So the weight
of the group is :math:`e^{-\varepsilon_0 s_z/2} g_1(z)` with :math:`v \le g_1(z) \le 1 + v`, likewise :math:`g_2(z)` in
the other table, and the probabilities :math:`w_1(z)`, :math:`w_2(z)` of the groups are within :math:`((1+v)/v)^2 = c`.
Row i unlabelled: no score moves, :math:`1 \le g \le 2`, c = 4. Relabelled by any member of :math:`G_1(z)`, the one
table differs from the other, relabelled by any member of :math:`G_2(z)`, in row i at most; so whatever the learner
answers,

.. math::
    P_1 \le \sum_z w_1(z) \left(e^{\varepsilon_A} P_2(\cdot|z) + \delta_A\right)
        \le c\, e^{\varepsilon_A} P_2 + \delta_A ,

since the :math:`w_1(z)` sum to 1. No smaller c holds for every class (the tests come arbitrarily near).
"""

from __future__ import annotations

from math import exp, log, log1p
from typing import Literal, TypeAlias

from quorate.arguments import one_of, real
from quorate.learners.amplification.price import Price, rounded_up_price

#: Whether the row that differs has a label before the relabelling.
Changed: TypeAlias = Literal["labelled", "unlabelled"]

_LARGEST_EPSILON_0 = 100.0


def relabelling(price: Price, *, epsilon_0: float, changed: Changed = "labelled") -> Price:
    r"""Return the price of a learner whose rows are relabelled first: :math:`(\varepsilon_A + \log c, \delta_A)`.

    `price`: :math:`(\varepsilon_A, \delta_A)` of the learner, on the relabelled rows. `epsilon_0`: parameter of the
    exponential mechanism, from 0 to 100; mistakes have sensitivity 1. `changed`: which row differs: one whose label is
    counted, or one that only brings its point. Raises InvalidParameter if a number is out of range.

    References
    ----------
    BNS15, Lemma 4.1 and its proof; the constant is this module's.
    """
    epsilon_0 = _checked(epsilon_0)
    one_of("changed", changed, ("labelled", "unlabelled"))
    factor = 2 * (epsilon_0 / 2 + log1p(exp(-epsilon_0 / 2))) if changed == "labelled" else log(4)
    return rounded_up_price(price.epsilon + factor, price.delta)


def bns15_lemma_4_1(price: Price, *, epsilon_0: float = 1.0) -> Price:
    r"""Return the same price as BNS15's proof has it: :math:`(\varepsilon_A + \varepsilon_0 + \log 4, 4e^{\varepsilon_0}\delta_A)`.

    At the paper's :math:`\varepsilon_0 = 1` the lemma rounds 2.386 up to 3. It holds for permute-and-flip too.

    Raises InvalidParameter if a number is out of range.
    """  # noqa: E501  a doctest's message is one line
    epsilon_0 = _checked(epsilon_0)
    return rounded_up_price(price.epsilon + epsilon_0 + log(4), 4 * exp(epsilon_0) * price.delta)


def _checked(epsilon_0: float) -> float:
    return real("epsilon_0", epsilon_0, at_least=0, at_most=_LARGEST_EPSILON_0)
