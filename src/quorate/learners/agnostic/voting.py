r"""Private predictions after a fit: how many hypotheses vote, what is proven of their votes (LWY25, Lemma 4.1).

Each answer is :math:`\varepsilon_p`-DP, and all of them together :math:`(\varepsilon_A, \delta_A)`-DP by the exact
composition of pure releases, however each point was chosen. Proof: ``docs/theory/learner-proofs.md``, the sixth
section. Or a sparse vector releases what the hypotheses are far from a tie on, at no price for each, and all of
:math:`(\varepsilon_A, \delta_A)` pays for T points that it declines (Nandi and Bassily 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, exp, log, sqrt
from typing import Any

import numpy as np

from quorate.accounting import PureDP, Repeated
from quorate.accounting import epsilon as composed_epsilon
from quorate.errors import BudgetExhausted
from quorate.labelling import Memo
from quorate.learners.agnostic.bound import EVENTS, Growth, disagreement, relabelling_error
from quorate.learners.agnostic.price import AgnosticPrice, best_split
from quorate.learners.base.exponential import consistent_error
from quorate.learners.concepts.protocol import Concept
from quorate.ledger import Reservation
from quorate.mechanisms import DECLINED, PrivatePrediction, StableSparseVector
from quorate.mechanisms.stage_noise import StageNoise
from quorate.noise import NoiseSource
from quorate.release import Account, DrawnBlock, Stages, release
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

_WRONG_SHARES = (0.2, 0.27, 1 / 3, 0.4)  # t
_ERRORS = tuple(2.0**-k for k in (1, 2, 3, 5, 8, 12))  # the α for which LWY25 would take r hypotheses
_WORTH_HAVING = 0.4  # a coin errs with 1/2
_LEAST_SHARE = 4.0**-6
_STEPS = 30  # of a bisection: to nine digits
_OF_THRESHOLD = 0.5  # of a stage's ε, in the search: the noise of the threshold


@stored_as("quorate.learners.agnostic.voting.PredictionPlan")
@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionPlan:
    """How predictions will be made: public, and fixed before any private row is used.

    `price`: its ε_A pays for all predictions. `n_hypotheses`: r parts of the relabelled rows. `excess`: bound on the
    error beyond the best concept's, but for a probability β; a point that is declined counts as an error.
    """

    price: AgnosticPrice
    mechanism: PrivatePrediction | StableSparseVector
    n_hypotheses: int
    excess: float

    @property
    def released(self) -> str:
        """What each answer is, in words."""
        one = self.mechanism
        if isinstance(one, PrivatePrediction):
            return f"at ε = {one.epsilon:.4g} each"
        return f"of which {one.cutoff:,} may be declined, by a sparse vector at ε = {one.epsilon:.4g} for all of them"


def voting_error(
    n_rows: int, n_hypotheses: int, epsilon: float, growth: Growth, beta: float, *, share: float = 1.0
) -> float:
    r"""Bound how often a private vote of consistent concepts differs from the concept that labelled their rows.

    :math:`\min_t \{\gamma/t + \tfrac12 e^{-\varepsilon r (1 - 2t)/2}\}` for r parts of s rows and ε of one prediction:
    each hypothesis errs with probability at most γ (Blumer et al. 1989), so more than tr of them do with at most γ/t;
    else the right label leads by :math:`r(1-2t)` votes. With t = 1/3, :math:`r = 6\log(4/\alpha)/\varepsilon` and γ =
    α/4 it is below α: LWY25, Lemma 4.1. `share`: what γ is multiplied by: below 1 nothing is proven.
    """
    error_of_one = share * consistent_error(n_rows // n_hypotheses, growth, beta / n_hypotheses)
    return min(error_of_one / t + exp(-epsilon * n_hypotheses * (1 - 2 * t) / 2) / 2 for t in _WRONG_SHARES)


def stable_error(
    n_rows: int, n_hypotheses: int, noise: StageNoise, growth: Growth, beta: float, *, share: float = 1.0
) -> float:
    """Bound how often a sparse vector over votes declines, or differs from the concept that labelled the rows.

    As :func:`voting_error`: a lead of :math:`r(1 - 2t)` votes is a distance of half as many, less one, and what passes
    is the right label. A stage that has answered before has no higher threshold than a fresh one, for which this is.
    """
    error_of_one = share * consistent_error(n_rows // n_hypotheses, growth, beta / n_hypotheses)
    leads = ((t, ceil(n_hypotheses * (1 - 2 * t)) - 1) for t in _WRONG_SHARES)
    return min(error_of_one / t + exp(noise.log_decline(max(lead, 0) // 2)) for t, lead in leads)


def stage_noise_of(price: AgnosticPrice, cutoff: int) -> StageNoise:
    """Return noise of a stage by closed forms, with which T of them cost at most the learner's part: for a search.

    Half of δ_A is for a query that passes from a tie, and the other for the composition of the T pure stages.
    """
    epsilon = least_epsilon_of_each(replace(price, learner_delta=price.learner_delta / 2), cutoff)
    threshold_scale, query_scale = 1 / (_OF_THRESHOLD * epsilon), 2 / ((1 - _OF_THRESHOLD) * epsilon)
    at_zero = StageNoise(threshold=0, threshold_scale=threshold_scale, query_scale=query_scale, one_sided=True)
    over = max(0.0, log(2 * at_zero.tail(cutoff) / price.learner_delta))  # a tail falls by e in each scale
    return replace(at_zero, threshold=ceil(over * threshold_scale))


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
    cutoff: int | None = None,
    wanted: float = 0.0,
    fits: Callable[[int], bool] = lambda _: True,
) -> PredictionPlan:
    """Split (ε, δ), for all predictions, on labelled rows so that the proven error is least; by public figures.

    Where so few rows prove nothing that was `wanted` (an error beyond the best concept's that is good enough; 1: what
    can be), or that a coin has not, the terms that fall with the rows are divided by 4 until they would. `cutoff`: T of
    a sparse vector; None for a vote of its own on each point. `fits`: whether so many rows may be relabelled.
    """
    beta_of_one = beta / EVENTS

    def voting(
        price: AgnosticPrice, share: float, exact: PrivatePrediction | StableSparseVector | None = None
    ) -> tuple[float, int]:
        """Return the error with the best number of hypotheses, and that number."""
        if cutoff is None:
            one = exact or PrivatePrediction(least_epsilon_of_each(price, n_queries))
            assert isinstance(one, PrivatePrediction)  # noqa: S101 - as the caller has it
            wished, error_of = (
                [one.n_hypotheses(error) for error in _ERRORS],
                partial(voting_error, epsilon=one.epsilon),
            )
        else:
            stage = exact.stage_noise if isinstance(exact, StableSparseVector) else stage_noise_of(price, cutoff)
            leads = [2 * stage.passing_dist(1 - error) + 2 for error in _ERRORS]
            wished = [ceil(lead / (1 - 2 * t)) for lead in leads for t in _WRONG_SHARES]
            error_of = partial(stable_error, noise=stage)
        return min(
            (error_of(price.n_sampled, size, growth=growth, beta=beta_of_one, share=share), size)
            for size in sorted({min(size, price.n_sampled) for size in wished} | {1})
        )

    def excess(
        price: AgnosticPrice, share: float, exact: PrivatePrediction | StableSparseVector | None = None
    ) -> float:
        relabelled = disagreement(relabelling_error(price, growth, beta_of_one), price.n_sampled, growth, beta_of_one)
        return share * relabelled + voting(price, share, exact)[0]

    share = 1.0
    while True:
        split = best_split(n_rows, epsilon=epsilon, delta=delta, excess=partial(excess, share=share), fits=fits)
        if split.excess <= max(wanted, _WORTH_HAVING) or wanted >= 1 or share <= _LEAST_SHARE:
            break
        share /= 4
    exact = mechanism_at(split.price, n_queries, cutoff)  # the search has closed forms: this one takes its time
    return PredictionPlan(
        price=split.price,
        mechanism=exact,
        n_hypotheses=voting(split.price, share, exact)[1],
        excess=excess(split.price, 1.0, exact),
    )


def mechanism_at(price: AgnosticPrice, n_queries: int, cutoff: int | None) -> PrivatePrediction | StableSparseVector:
    """Return what releases answers, of which all cost at most the learner's part."""
    if cutoff is None:
        return PrivatePrediction(epsilon_of_each(price, n_queries))
    stable = StableSparseVector(price.learner_epsilon, price.learner_delta, cutoff, n_queries)
    while composed_epsilon(stable.event, price.learner_delta) > price.learner_epsilon:  # by a rounding
        stable = replace(stable, epsilon=stable.epsilon * (1 - 2**-30))
    return stable


PURPOSE = "prediction"


@stored_as("quorate.learners.agnostic.hypotheses.Hypotheses")
@dataclass(kw_only=True, slots=True)
class Hypotheses:
    """Secret concepts, and all that ``ask`` needs of a fit: nothing that is drawn or counted is a public attribute."""

    concepts: Secret[tuple[Concept, ...]] = field(repr=False)
    mechanism: PrivatePrediction | StableSparseVector
    n_queries: int
    noise: NoiseSource
    account: Account
    memo: Memo
    drawn: int = 0
    declined: int = 0
    stages: Stages | None = field(init=False)

    def __post_init__(self) -> None:
        stable = self.mechanism if isinstance(self.mechanism, StableSparseVector) else None
        self.stages = None if stable is None else Stages(stable, stable.cutoff, ahead=1)

    def ask(self, reservation: Reservation, points: Any) -> list[int]:
        """Let the hypotheses vote on new points, and release a label, or a refusal, for each: −1, and −2 if not asked.

        Drawn → its noise → stored; what an end of the process takes is drawn no second time.
        """
        self.refuse_more_than(len(points))  # whatever the ledger says
        if self.declines_left(reservation) == 0:
            self._refuse_closed()
        self.drawn += len(points)
        votes = votes_of(self.concepts.reveal(), points)
        if self.stages is not None:
            released = self.stages.release(reservation, PURPOSE, len(points), lambda _: votes, self.noise)[1]
            self.declined += released.count(DECLINED)
            return released
        assert isinstance(self.mechanism, PrivatePrediction)  # noqa: S101 - or there are stages
        one = self.mechanism

        def answers(drawn: DrawnBlock) -> list[int]:
            labels: list[int] = one.release_many(votes, drawn.noise(self.noise)).tolist()
            return labels

        return release(reservation, PURPOSE, len(points), answers)[1]

    def declines_left(self, reservation: Reservation) -> int | None:
        """Return how many points may still be declined; None where none is."""
        if self.stages is None:
            return None
        assert isinstance(self.mechanism, StableSparseVector)  # noqa: S101 - or there are no stages
        return min(self.stages.left(reservation), self.mechanism.cutoff - self.declined)

    def _refuse_closed(self) -> None:
        assert isinstance(self.mechanism, StableSparseVector)  # noqa: S101 - as the caller has it
        cutoff = self.mechanism.cutoff
        raise BudgetExhausted(
            f"all cutoff={cutoff:,} points that may be declined are used up; ask points that were asked before, "
            "which are free, or fit again with a larger cutoff",
            spent=cutoff,
            requested=1,
            limit=cutoff,
            unit="answers",
        )

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
