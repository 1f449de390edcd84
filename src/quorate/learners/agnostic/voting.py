r"""Private predictions after a fit: how many hypotheses vote, what is proven of their votes (LWY25, Lemma 4.1).

Each answer is :math:`\varepsilon_p`-DP, and all of them together :math:`(\varepsilon_A, \delta_A)`-DP by the exact
composition of pure releases, however each point was chosen. Proof: ``docs/theory/learner-proofs.md``, the sixth
section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import exp, log, sqrt
from typing import Any

import numpy as np

from quorate.accounting import PureDP, Repeated
from quorate.accounting import epsilon as composed_epsilon
from quorate.errors import BudgetExhausted
from quorate.labelling import Memo
from quorate.learners.agnostic.bound import EVENTS, Growth, consistent_error, disagreement, relabelling_error
from quorate.learners.agnostic.price import AgnosticPrice, best_split
from quorate.learners.concepts.protocol import Concept
from quorate.mechanisms import PrivatePrediction
from quorate.noise import NoiseSource
from quorate.release import Account, DrawnBlock
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

_WRONG_SHARES = (0.2, 0.27, 1 / 3, 0.4)  # t
_ERRORS = tuple(2.0**-k for k in (1, 2, 3, 5, 8, 12))  # the α for which LWY25 would take r hypotheses
_WORTH_HAVING = 0.4  # a coin errs with 1/2
_LEAST_SHARE = 4.0**-6
_STEPS = 30  # of a bisection: to nine digits


@stored_as("quorate.learners.agnostic.voting.PredictionPlan")
@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionPlan:
    """How predictions will be made: public, and fixed before any private row is used.

    `price`: its ε_A pays for all predictions. `n_hypotheses`: r: on how many parts of the relabelled rows a concept is
    learned. `excess`: the error beyond the best concept's is at most this, but for a probability β.
    """

    price: AgnosticPrice
    mechanism: PrivatePrediction
    n_hypotheses: int
    excess: float


def voting_error(
    n_rows: int, n_hypotheses: int, epsilon: float, growth: Growth, beta: float, *, share: float = 1.0
) -> float:
    r"""Bound how often a private vote of consistent concepts differs from the concept that labelled their rows.

    `n_rows`: s, cut into `n_hypotheses` parts.
    `n_hypotheses`: r.
    `epsilon`: ε of one prediction.
    `growth`: a bound on the number of dichotomies on so many points.
    `beta`: where the bound may fail.
    `share`: what γ is multiplied by: below 1 nothing is proven.

    Returns: :math:`\min_t \{\gamma/t + \tfrac12 e^{-\varepsilon r (1 - 2t)/2}\}`: each hypothesis errs with probability
    at most γ (Blumer et al. 1989), so more than tr of them do with at most γ/t; else the right label leads by
    :math:`r(1-2t)` votes. With t = 1/3, :math:`r = 6\log(4/\alpha)/\varepsilon` and γ = α/4 it is below α: LWY25, Lemma
    4.1.
    """
    error_of_one = share * consistent_error(n_rows // n_hypotheses, growth, beta / n_hypotheses)
    return min(error_of_one / t + exp(-epsilon * n_hypotheses * (1 - 2 * t) / 2) / 2 for t in _WRONG_SHARES)


def least_epsilon_of_each(price: AgnosticPrice, n_queries: int) -> float:
    r"""Return an ε of each answer with which all cost at most :math:`(\varepsilon_A, \delta_A)`: by closed forms.

    The sum of all, or by :math:`\varepsilon_p^2/2`-zCDP (Bun and Steinke 2016), whichever is larger.
    """
    together = price.learner_epsilon
    by_sum = together / n_queries * (1 - 2**-50)
    if not price.learner_delta:
        return by_sum
    surprise = -log(price.learner_delta)
    root_of_rho = together / (sqrt(surprise + together) + sqrt(surprise))
    return max(by_sum, root_of_rho * sqrt(2 / n_queries) * (1 - 2**-30))


def epsilon_of_each(price: AgnosticPrice, n_queries: int) -> float:
    """Return the largest ε of each answer with which all cost at most the learner's part, by the exact composition."""
    low = least_epsilon_of_each(price, n_queries)
    if not price.learner_delta:
        return low

    def fits(epsilon: float) -> bool:
        return composed_epsilon(Repeated(PureDP(epsilon), n_queries), price.learner_delta) <= price.learner_epsilon

    if not fits(low):  # closed forms hold; a rounding may not
        return price.learner_epsilon / n_queries * (1 - 2**-50)
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def plan_predictions(
    n_rows: int,
    *,
    epsilon: float,
    n_queries: int,
    growth: Growth,
    beta: float,
    delta: float = 0.0,
    wanted: float = 0.0,
    fits: Callable[[int], bool] = lambda _: True,
) -> PredictionPlan:
    """Split (ε, δ), for all predictions, on labelled rows so that the proven error is least; by public figures.

    Where so few rows prove nothing that was `wanted`, or that a coin has not, the terms that fall with the rows are
    divided by 4 until they would: answers are better than a coin's long before that can be shown. `wanted`: an error
    beyond the best concept's that is good enough; 1 proves what can be. `fits`: whether so many rows may be relabelled.
    Raises DataRefused if there are too few rows for any plan.
    """
    beta_of_one = beta / EVENTS

    def voting(price: AgnosticPrice, share: float, exact: float | None = None) -> tuple[float, int]:
        """Return the error with the best number of hypotheses, and that number."""
        one = PrivatePrediction(exact or least_epsilon_of_each(price, n_queries))
        sizes = {min(one.n_hypotheses(error), price.n_sampled) for error in _ERRORS} | {1}
        return min(
            (voting_error(price.n_sampled, size, one.epsilon, growth, beta_of_one, share=share), size)
            for size in sorted(sizes)
        )

    def excess(price: AgnosticPrice, share: float, exact: float | None = None) -> float:
        relabelled = disagreement(relabelling_error(price, growth, beta_of_one), price.n_sampled, growth, beta_of_one)
        return share * relabelled + voting(price, share, exact)[0]

    share = 1.0
    while True:
        split = best_split(n_rows, epsilon=epsilon, delta=delta, excess=partial(excess, share=share), fits=fits)
        if split.excess <= max(wanted, _WORTH_HAVING) or wanted >= 1 or share <= _LEAST_SHARE:
            break
        share /= 4
    exact = epsilon_of_each(split.price, n_queries)  # the search has closed forms: this one takes its time
    return PredictionPlan(
        price=split.price,
        mechanism=PrivatePrediction(exact),
        n_hypotheses=voting(split.price, share, exact)[1],
        excess=excess(split.price, 1.0, exact),
    )


PURPOSE = "prediction"


@stored_as("quorate.learners.agnostic.hypotheses.Hypotheses")
@dataclass(kw_only=True, slots=True)
class Hypotheses:
    """Secret concepts, and all that ``ask`` needs of a fit: nothing that is drawn or counted is a public attribute."""

    concepts: Secret[tuple[Concept, ...]] = field(repr=False)
    mechanism: PrivatePrediction
    n_queries: int
    noise: NoiseSource
    account: Account
    memo: Memo
    drawn: int = 0

    def answers(self, points: Any, drawn: DrawnBlock) -> list[int]:
        """Let the hypotheses vote on some points, and release one label each."""
        votes = votes_of(self.concepts.reveal(), points)
        released: list[int] = self.mechanism.release_many(votes, drawn.noise(self.noise)).tolist()
        return released

    def refuse_more_than(self, n_new: int) -> None:
        """Refuse to draw more answers than were charged, those that this object drew counted by itself."""
        if self.drawn + n_new > self.n_queries:
            left = self.n_queries - self.drawn
            raise BudgetExhausted(
                f"{n_new:,} new points were asked, and {left:,} of n_queries={self.n_queries:,} answers are left; ask "
                "fewer, or fit again with more",
                spent=self.drawn,
                requested=n_new,
                limit=self.n_queries,
                unit="answers",
            )


def votes_of(hypotheses: tuple[Concept, ...], points: Any) -> IntArray:
    """Count the votes for 0 and for 1, ``(n_points, 2)``."""
    ones = np.zeros(len(points), dtype=np.int64)
    for hypothesis in hypotheses:
        ones += hypothesis.labels(points)
    return np.column_stack([len(hypotheses) - ones, ones])
