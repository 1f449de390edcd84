r"""The search over how many rows to relabel and how the budget is split (LWY25, Algorithm 2 with its ε in three parts).

The paper sets all three parameters to ε: share of rows sampled, ε of the choice, and a base learner that is
(1, δ)-DP. The least proven error for the same (ε, δ) is elsewhere; it is found by a grid and then by smaller and
smaller steps around its best point. Nothing private enters: n and the bounds are public.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1, floor, log, log1p
from typing import Final

import numpy as np

from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.learners.agnostic.price import AgnosticPrice, affordable_learner
from quorate.learners.amplification.price import largest_count, smallest_count
from quorate.learners.base.choice_bound import growth_of
from quorate.learners.concepts.protocol import ConceptClass
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as

#: What is minimised: a proven bound on the error beyond the best concept's.
Excess = Callable[[AgnosticPrice], float]

#: A number of rows that nobody has: where a search for one ends.
MOST_ROWS: Final = 1 << 40

#: No larger ε is worked out: e^ε times the square of a number of rows is a float up to there, and it is no promise.
LARGEST_TARGET: Final = 300.0

_SHARES = np.linspace(0.05, 0.95, 7)  # of the exponent, that go to the choice
_SIZES = 24
_FINEST = 1 / 64


@stored_as("quorate.learners.agnostic_search.AgnosticSplit")
@dataclass(frozen=True, kw_only=True, slots=True)
class AgnosticSplit:
    """One way to spend (ε, δ), and what is proven of it.

    `price`: sizes and privacy parameters. `excess`: bound on the error beyond the best concept's; above 1 where nothing
    is proven.
    """

    price: AgnosticPrice
    excess: float


def best_split(
    n: int, *, epsilon: float, delta: float, excess: Excess, fits: Callable[[int], bool] = lambda _: True
) -> AgnosticSplit:
    """Find the split of (ε, δ) on `n` rows with the least bound on the error.

    `n`: labelled rows; public. `epsilon`, `delta`: the target: ε > 0, δ ≥ 0. `excess`: from an :class:`AgnosticPrice`
    to the bound; it may return infinity. `fits`: whether so many rows may be relabelled; if so, fewer may be too.
    Raises DataRefused if no split of so few rows costs as little as ε.
    """
    most = _most_sampled(n, epsilon)
    if most < 1:
        raise DataRefused(_too_few(epsilon))
    if not fits(most):
        most = largest_count(fits, most)
    if most < 1:
        raise InvalidParameter(
            "limit must be larger, or there must be fewer rows: not even one of them can be relabelled",
            parameter="limit",
            advice="take a coarser grid, or GenericLearner with a sanitizer",
            instead="GenericLearner",
        )

    def tried(size: float, share: float) -> AgnosticSplit | None:
        n_sampled = min(max(round(exp(size)), 1), most)
        exponent = log1p(expm1(epsilon) * n / n_sampled) - log(4)  # ε_e/q + ε_A, but for what ε_e itself costs
        if not exponent > 0:
            return None
        choice_epsilon = share * exponent * n_sampled / n
        if choice_epsilon < _least_choice(n_sampled):
            return None
        price = affordable_learner(epsilon, delta, n=n, n_sampled=n_sampled, choice_epsilon=choice_epsilon)
        return None if price is None else AgnosticSplit(price=price, excess=excess(price))

    found: dict[tuple[float, float], AgnosticSplit] = {}
    for size in np.linspace(0.0, log(most), _SIZES).tolist():
        for share in _SHARES.tolist():
            split = tried(size, share)
            if split is not None:
                found[size, share] = split
    if not found:  # one row in T, and next to nothing for the choice
        price = _poorest_price(n, epsilon, delta)
        if price is None:
            raise DataRefused(_too_few(epsilon))
        found[0.0, 0.0] = AgnosticSplit(price=price, excess=excess(price))
    best = min(found, key=lambda at: (found[at].excess, at))
    grid, step = log(most) / _SIZES, 1.0
    while step > _FINEST:
        size, share = best
        for at in (
            (size + step * grid, share),
            (size - step * grid, share),
            (size, share + step * (1 - share) / 2),
            (size, share * (1 - step / 2)),
        ):
            split = tried(*at)
            if split is not None and split.excess < found[best].excess:
                found[at], best = split, at
                break
        else:
            step /= 2
    return found[best]


def relabels(concepts: ConceptClass, limit: int, n_rows: int) -> Callable[[int], bool]:
    """Return whether so many of the rows can be relabelled, by their number alone: with at most `limit` candidates.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> fits = relabels(Thresholds(bits=16), 1_000, 50_000)
    >>> fits(999), fits(1_000)
    (True, False)
    """
    growth, refuse = growth_of(concepts), getattr(concepts, "refuse_relabelling", None)

    def fits(n_sampled: int) -> bool:
        if growth(n_sampled) > limit:
            return False
        try:
            if refuse is not None:
                refuse(n_sampled, n_rows - n_sampled)
        except QuorateError:
            return False
        return True

    return fits


def refuse_plan(concepts: ConceptClass, price: AgnosticPrice) -> None:
    """Refuse a relabelling that the class would refuse, by the numbers of rows alone; a plan asks it before the charge.

    Raises QuorateError what ``refuse_relabelling`` of the class raises, where it has one.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> refuse_plan(Thresholds(bits=8), AgnosticPrice(n=200, n_sampled=4, choice_epsilon=1.0, learner_epsilon=1.0))
    """
    refuse = getattr(concepts, "refuse_relabelling", None)
    if refuse is not None:
        refuse(price.n_sampled, price.n - price.n_sampled)


def least_rows(epsilon: float) -> int:
    r"""Return the least number of rows with a split at all: more than :math:`3/(e^\varepsilon - 1)`, and two.

    One sampled row in n, with nothing left for the choice or the learner, costs :math:`\log(1 + 3/n)`.
    """
    least = max(floor(3 / expm1(min(epsilon, LARGEST_TARGET))) + 1, 2)
    return smallest_count(lambda n: _most_sampled(n, epsilon) >= 1, least)


def short_of(alpha: float, excess: float, theorem: str) -> list[str]:
    """Say that less is proven at these rows than was asked for, without a search for the number that would do.

    Examples
    --------
    >>> short_of(0.1, 0.05, "LWY25 Theorem 3.6"), len(short_of(0.1, 0.4, "LWY25 Theorem 3.6"))
    ([], 1)
    """
    if excess <= alpha:
        return []
    proven = f"an error of {excess:.2g} beyond the best concept's" if excess < 1 else "nothing"
    said = (
        f"{theorem} proves {proven} for so many labelled rows, and alpha={alpha:g} was asked for: privacy holds, that "
        "bound on the error does not; rows_needed() says how many rows it takes"
    )
    return [said]


def _too_few(epsilon: float) -> str:
    return (
        f"too few labelled rows for epsilon={epsilon:g}: relabelling needs {least_rows(epsilon):,} at least, whatever "
        "its error; give more rows or a larger epsilon"
    )


def _most_sampled(n: int, epsilon: float) -> int:
    """Most rows that T may have: a split must exist, and the scores must be integers that a mechanism takes."""
    most = min(n - 1, floor(n * expm1(min(epsilon, LARGEST_TARGET)) / 3))
    if most * (n - most) > MAX_SCALE:
        most = int(MAX_SCALE) // n
    return most if most >= 1 and _poorest_price(n, epsilon, 0.0) is not None else 0


def _poorest_price(n: int, epsilon: float, delta: float) -> AgnosticPrice | None:
    return affordable_learner(epsilon, delta, n=n, n_sampled=1, choice_epsilon=max(1e-6 / n, _least_choice(1)))


def _least_choice(n_sampled: int) -> float:
    """Least ε of a choice by scores that a row moves by `n_sampled`: permute-and-flip's coins are exact up to there."""
    return n_sampled * 2 / MAX_SCALE * (1 + 2**-40)


def rows_for(alpha: float, excess_of: Callable[[int], float], *, start: int, limit: int = MOST_ROWS) -> int:
    """Find about the least number of rows whose bound is at most `alpha`: doubling, then halving the interval to 1 %.

    `alpha`: the error beyond the best concept's that is wanted. `excess_of`: from a number of rows to the bound on that
    error; it falls with the rows. `start`: fewest rows there may be. `limit`: where to give up. Raises InvalidParameter
    if fewer rows than `limit` are not enough.
    """
    low, high = start - 1, start
    while not excess_of(high) <= alpha:
        low, high = high, 2 * high
        if high >= limit:
            raise InvalidParameter(
                f"alpha must be larger, got {alpha:g}: no number of rows proves it for this class at these parameters; "
                "or raise epsilon, or the limit on candidates"
            )
    while high - low > max(high // 128, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if excess_of(middle) <= alpha else (middle, high)
    return high
