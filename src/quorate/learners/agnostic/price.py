r"""What the realizable-to-agnostic transformation costs: three privacy parameters in, one guarantee out (LWY25).

LWY25 states Lemma 3.1 as (O(ε), O(εδ)). Its proof, with the sampled share and the choice's ε kept apart, gives
figures; one more comparison inside the same proof makes them smaller. Letters: s of n rows are sampled into T, in
random order; :math:`q = s/n`; the choice is :math:`\varepsilon_e`-DP for a score of sensitivity :math:`1/(n-s)`; the
base learner is :math:`(\varepsilon_A, \delta_A)`-DP; the data sets S₁, S₂ differ in row 1.

**Row 1 not sampled.** The candidates are the same, so :math:`p_1(I) \le e^{\varepsilon_e} p_2(I)`.

**Row 1 sampled.** Against another data set whose T differs in one row, let the scores of dichotomies that agree on
the common rows of T differ by at most :math:`\kappa`. Take the candidates in groups, one for each dichotomy z of those
common rows: a group has one or two members in either data set. So the probabilities of a group are within a factor
:math:`4 e^{\varepsilon_e (n - s) \kappa}`: its own weight within :math:`2 e^{\varepsilon_e (n-s)\kappa/2}`, and the sum
of all weights again. (For permute-and-flip, which is the largest score after exponential noise: with
:math:`v = e^{-\text{noise}}` a candidate wins with probability :math:`\int_0^1 \prod_g (1 - b_g v)_+ dv`, and
:math:`(1 - bv)_+^2 \ge (1 - 2bv)_+`, so that doubling every rival at most halves it; the same factor follows in each of
the four cases of one or two members.) Relabelled by any member of the group, T differs from the other T, relabelled by
any member of the other group, in one row at most; and the groups' probabilities add up to 1, so that
:math:`p_1 \le \sum_z w_1(z) (e^{\varepsilon_A} p_2(\cdot | z) + \delta_A) \le 4 e^{\varepsilon_e (n-s)\kappa}
e^{\varepsilon_A} p_2 + \delta_A`. Two such data sets are compared:

- S₂ with row 1 exchanged for a row of W, as in the paper: :math:`\kappa = 1/s + 1/(n-s)`, a factor
  :math:`M = 4 e^{\varepsilon_e/q + \varepsilon_A}`;
- S₂ with the same rows sampled: W is the same, :math:`\kappa = 1/s`, a factor :math:`M' = M e^{-\varepsilon_e}`.

Let a and b be the averages of :math:`p_2(I)` over the I without and with row 1; then
:math:`P_2 = (1-q) a + q b` and, for every :math:`\theta \in [0, 1]`,
:math:`P_1 \le (1-q) e^{\varepsilon_e} a + q (\theta M a + (1-\theta) M' b) + q \delta_A`. The θ that makes the right
side a multiple of :math:`P_2`, but for δ, gives

.. math::

    e^{\varepsilon} = \frac{(1-q)\, e^{\varepsilon_e} + q M}{1 - q + q\, e^{\varepsilon_e}}, \qquad
    \delta = q\, \delta_A,

and θ = 0 gives ε = ε_e where :math:`M' < e^{\varepsilon_e}`. The paper's own proof is θ = 1, which wastes the share b,
:math:`e^\varepsilon = e^{\varepsilon_e} + \frac{q}{1-q} M`, and has :math:`4 q e^{\varepsilon_e/q} \delta_A`.

**A secret sample with new labels, those of a concept that fits the other rows: LWY25, Algorithm 1.**
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1, inf, log, log1p

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification.without_replacement import random_arrangement
from quorate.learners.base.choice_bound import chosen
from quorate.learners.base.exponential import MECHANISMS, Selection
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.mechanisms import Exponential, PermuteAndFlip
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

_LOG_4 = log(4)
_UP = 1 + 2**-40  # above the rounding of a few float operations; they never cancel, since M − 1 ≥ 3 e^{ε_e}
_LEAST_LEARNER = 1e-6  # a base learner with less says nothing
_LARGEST_DELTA = 0.5  # and one with more promises nothing
_LARGEST_LOG = 700.0  # exp() of more is no float


@stored_as("quorate.learners.agnostic_price.AgnosticPrice")
@dataclass(frozen=True, kw_only=True, slots=True)
class AgnosticPrice:
    r"""The privacy parameters of one realizable-to-agnostic transformation, and what it costs as a whole.

    `n`: rows, at least 2; public. `n_sampled`: s, the rows of T; from 1 to n − 1. `choice_epsilon`:
    :math:`\varepsilon_e \ge 0` of the choice of a labelling. Each score moves by at most 1/(n − s). `learner_epsilon`:
    :math:`\varepsilon_A \ge 0` of the base learner on T. `learner_delta`: :math:`\delta_A` of the base learner, in [0,
    1]. Raises InvalidParameter if a number is out of range. Privacy: replace-one neighbours on rows, n public. It rests
    on T being a uniform subset in uniform order, which nobody learns.

    References
    ----------
    LWY25 (Li, Wang, Ye), Lemma 3.1, whose proof is carried out with every constant in this module's text.
    """

    n: int
    n_sampled: int
    choice_epsilon: float
    learner_epsilon: float
    learner_delta: float = 0.0

    def __post_init__(self) -> None:
        count("n", self.n, at_least=2)
        count("n_sampled", self.n_sampled, at_least=1)
        if not self.n_sampled < self.n:
            raise InvalidParameter(
                f"n_sampled must be below n={self.n}, got {self.n_sampled}; the rows that are left give the scores"
            )
        for name in ("choice_epsilon", "learner_epsilon"):
            object.__setattr__(self, name, real(name, getattr(self, name), at_least=0))
        object.__setattr__(self, "learner_delta", real("learner_delta", self.learner_delta, at_least=0, at_most=1))

    @property
    def share(self) -> float:
        """The share q = s/n of the rows that is sampled."""
        return self.n_sampled / self.n

    @property
    def epsilon(self) -> float:
        """ε of the whole, rounded up; infinite where it is beyond a float."""
        q, excess = self.share, expm1(min(self.choice_epsilon, _LARGEST_LOG))
        log_m = self._log_m
        if not log_m < _LARGEST_LOG:
            return inf
        above_one = ((1 - 2 * q) * excess + q * expm1(log_m)) / (1 + q * excess)
        return max(log1p(above_one * _UP) * _UP, self.choice_epsilon)

    @property
    def delta(self) -> float:
        """δ of the whole, rounded up."""
        return min(self.share * self.learner_delta * _UP, 1.0)

    @property
    def event(self) -> PureDP | ApproxDP:
        """What the whole is charged as."""
        if not self.epsilon < inf:
            raise InvalidParameter("epsilon of the whole is beyond every float; lower choice_epsilon or n_sampled")
        return ApproxDP(self.epsilon, self.delta) if self.learner_delta else PureDP(self.epsilon)

    @property
    def _log_m(self) -> float:
        return _LOG_4 + self.choice_epsilon / self.share + self.learner_epsilon


def affordable_learner(
    epsilon: float, delta: float, *, n: int, n_sampled: int, choice_epsilon: float
) -> AgnosticPrice | None:
    r"""Spend what is left of (ε, δ), after sampling and the choice, on the base learner.

    `epsilon`, `delta`: the target of the whole: ε > 0, 0 ≤ δ < 1. `n`, `n_sampled`, `choice_epsilon`: as for
    :class:`AgnosticPrice`. Returns: with the largest :math:`(\varepsilon_A, \delta_A)` whose whole costs at most (ε,
    δ); None where nothing is left for a base learner.
    """
    if not choice_epsilon < epsilon <= _LARGEST_LOG:
        return None
    q, excess, most = n_sampled / n, expm1(choice_epsilon), epsilon * (1 - 2**-32)  # the rest is for rounding
    m = 1 + (expm1(most) * (1 + q * excess) - (1 - 2 * q) * excess) / q
    learner_epsilon = log(m) - _LOG_4 - choice_epsilon / q if m > 0 else 0.0
    if not learner_epsilon >= _LEAST_LEARNER:
        return None
    pure = AgnosticPrice(
        n=n, n_sampled=n_sampled, choice_epsilon=choice_epsilon, learner_epsilon=learner_epsilon * (1 - 2**-40)
    )
    if not pure.epsilon <= epsilon:
        return None
    return replace(pure, learner_delta=min(delta / q * (1 - 2**-38), _LARGEST_DELTA))


#: Candidates at most.
MOST_CANDIDATES = 1 << 20


def choice_at(price: AgnosticPrice, selection: Selection) -> Exponential | PermuteAndFlip:
    """Return what chooses a labelling at a price; a plan makes it too, so that a refusal comes before the charge.

    Raises InvalidParameter if ε_e is so small that permute-and-flip cannot flip its coins exactly.
    """
    return MECHANISMS[selection](price.choice_epsilon, float(price.n_sampled))


def relabelled_sample(
    points: Points,
    labels: NDArray[np.uint8],
    concepts: ConceptClass,
    price: AgnosticPrice,
    selection: Selection,
    noise: NoiseSource,
) -> tuple[Points, NDArray[np.uint8]]:
    r"""Sample T in secret, and relabel it by a concept that fits the other rows: LWY25, Algorithm 1.

    `points`, `labels`: the labelled rows. `concepts`: the class. `price`: n, s and :math:`\varepsilon_e`. `selection`:
    what chooses, by :math:`s(n-s)\,\min_f \{dis_T(h, f) + err_W(f)\}`: whole numbers, which one row of W moves by at
    most s. `noise`: of the sample and of the choice. Returns: t in random order, and its new labels; its own are never
    looked at. Privacy: they are no release. What is learned from them costs what :class:`AgnosticPrice` says. The order
    is random so that a row exchanged for another leaves all others in their places, as the proof has it, whatever the
    learner makes of the order.
    """
    sampled = random_arrangement(price.n, price.n_sampled, noise.at("relabelled rows", 0))
    rest = np.ones(price.n, dtype=np.bool_)
    rest[sampled] = False
    T = points[sampled]
    candidates, scores = concepts.relabelling_scores(T, points[rest], labels[rest])
    new = candidates[chosen(choice_at(price, selection), -scores, noise.at("chosen labelling", 0))]
    return T, new.labels(T).astype(np.uint8)
