"""The plan of private predictions: how many hypotheses vote, and what is proven of their votes (LWY25, Lemma 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp

from quorate.learners.agnostic.bound import EVENTS, Growth, consistent_error, disagreement, relabelling_error
from quorate.learners.agnostic.price import AgnosticPrice
from quorate.learners.agnostic.search import best_split
from quorate.mechanisms import PrivatePrediction

_WRONG_SHARES = (0.2, 0.27, 1 / 3, 0.4)  # t
_ERRORS = tuple(2.0**-k for k in (1, 2, 3, 5, 8, 12))  # the α for which LWY25 would take r hypotheses
_WORTH_HAVING = 0.4  # a coin errs with 1/2
_LEAST_SHARE = 4.0**-6


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionPlan:
    """How predictions will be made: public, and fixed before any private row is used.

    Parameters
    ----------
    price : AgnosticPrice
        How many rows are relabelled, and how the budget is split; its ε_A pays for all predictions.
    mechanism : PrivatePrediction
        What answers one query.
    n_hypotheses : int
        r: on how many parts of the relabelled rows a concept is learned.
    excess : float
        What is proven: the error beyond the best concept's is at most this, but for a probability β.

    Examples
    --------
    >>> price = AgnosticPrice(n=1_000, n_sampled=50, choice_epsilon=0.01, learner_epsilon=0.5)
    >>> PredictionPlan(price=price, mechanism=PrivatePrediction(0.5), n_hypotheses=9, excess=0.5).n_hypotheses
    9
    """

    price: AgnosticPrice
    mechanism: PrivatePrediction
    n_hypotheses: int
    excess: float


def voting_error(
    n_rows: int, n_hypotheses: int, epsilon: float, growth: Growth, beta: float, *, share: float = 1.0
) -> float:
    r"""Bound how often a private vote of consistent concepts differs from the concept that labelled their rows.

    Parameters
    ----------
    n_rows : int
        s, cut into `n_hypotheses` parts.
    n_hypotheses : int
        r.
    epsilon : float
        ε of one prediction.
    growth : callable
        A bound on the number of dichotomies on so many points.
    beta : float
        Where the bound may fail.
    share : float, default 1.0
        What γ is multiplied by: below 1 nothing is proven.

    Returns
    -------
    float
        :math:`\min_t \{\gamma/t + \tfrac12 e^{-\varepsilon r (1 - 2t)/2}\}`: each hypothesis errs with probability at
        most γ (Blumer et al. 1989), so more than tr of them do with at most γ/t; else the right label leads by
        :math:`r(1-2t)` votes. With t = 1/3, :math:`r = 6\log(4/\alpha)/\varepsilon` and γ = α/4 it is below α: LWY25,
        Lemma 4.1.

    Examples
    --------
    >>> f"{voting_error(20_000, 60, 0.5, lambda n_points: n_points + 1, 0.05):.4f}"
    '0.4752'
    """
    each = share * consistent_error(n_rows // n_hypotheses, growth, beta / n_hypotheses)
    return min(each / t + exp(-epsilon * n_hypotheses * (1 - 2 * t) / 2) / 2 for t in _WRONG_SHARES)


def plan_predictions(
    n_rows: int,
    *,
    epsilon: float,
    n_queries: int,
    growth: Growth,
    beta: float,
    wanted: float = 0.0,
    fits: Callable[[int], bool] = lambda _: True,
) -> PredictionPlan:
    """Split ε on `n_rows` labelled rows so that the proven error is least; a function of public figures.

    Where so few rows prove nothing that was `wanted`, or that a coin has not, the terms that fall with the rows are
    divided by 4 until they would: answers are better than a coin's long before that can be shown.

    Parameters
    ----------
    n_rows : int
        At least 2.
    epsilon : float
        ε of all predictions together.
    n_queries : int
        How many there are.
    growth : callable
        A bound on the number of dichotomies on so many points.
    beta : float
        Where the bound may fail, in (0, 1).
    wanted : float
        An error beyond the best concept's that is good enough to be proven; 1 proves what can be.
    fits : callable, optional
        Whether so many rows may be relabelled.

    Raises
    ------
    DataRefused
        If there are too few rows for any plan.

    Examples
    --------
    >>> plan = plan_predictions(
    ...     10**6, epsilon=1.0, n_queries=1, growth=lambda n_points: n_points + 1, beta=0.1
    ... )
    >>> plan.price.n_sampled, plan.n_hypotheses, f"{plan.excess:.3f}"
    (180834, 20, '0.053')
    """
    each = beta / EVENTS

    def one_of(price: AgnosticPrice) -> PrivatePrediction:
        return PrivatePrediction(price.learner_epsilon / n_queries * (1 - 2**-50))

    def voting(price: AgnosticPrice, share: float) -> tuple[float, int]:
        """Return the error with the best number of hypotheses, and that number."""
        one = one_of(price)
        sizes = {min(one.n_hypotheses(error), price.n_sampled) for error in _ERRORS} | {1}
        return min(
            (voting_error(price.n_sampled, size, one.epsilon, growth, each, share=share), size)
            for size in sorted(sizes)
        )

    def excess(price: AgnosticPrice, share: float) -> float:
        relabelled = disagreement(relabelling_error(price, growth, each), price.n_sampled, growth, each)
        return share * relabelled + voting(price, share)[0]

    share = 1.0
    while True:
        split = best_split(n_rows, epsilon=epsilon, delta=0.0, excess=partial(excess, share=share), fits=fits)
        if split.excess <= max(wanted, _WORTH_HAVING) or wanted >= 1 or share <= _LEAST_SHARE:
            break
        share /= 4
    return PredictionPlan(
        price=split.price,
        mechanism=one_of(split.price),
        n_hypotheses=voting(split.price, share)[1],
        excess=excess(split.price, 1.0),
    )
