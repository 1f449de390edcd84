r"""What the realizable-to-agnostic transformation costs, and its secret sample with new labels (LWY25, Algorithm 1).

LWY25's Lemma 3.1 says (O(ε), O(εδ)); its proof gives, with q = s/n and :math:`M = 4 e^{\varepsilon_e/q +
\varepsilon_A}`,

.. math:: e^{\varepsilon} = \frac{(1-q)\, e^{\varepsilon_e} + q M}{1 - q + q\, e^{\varepsilon_e}}, \qquad
          \delta = q\, \delta_A.

Proof: ``docs/theory/learner-proofs.md``, the first section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, expm1, floor, inf, log, log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, real
from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.learners.amplification import largest_count, random_arrangement, smallest_count
from quorate.learners.base.exponential import MECHANISMS, Selection, chosen, growth_of
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.mechanisms import Exponential, PermuteAndFlip
from quorate.noise import NoiseSource
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as

_LOG_4 = log(4)
_UP = 1 + 2**-40  # above the rounding of a few float operations; they never cancel, since M − 1 ≥ 3 e^{ε_e}
_LEAST_LEARNER = 1e-6  # a base learner with less says nothing
_LARGEST_DELTA = 0.5  # and one with more promises nothing
_LARGEST_LOG = 700.0  # exp() of more is no float


@stored_as("quorate.learners.agnostic_price.AgnosticPrice")
@dataclass(frozen=True, kw_only=True, slots=True)
class AgnosticPrice:
    r"""The privacy parameters of one realizable-to-agnostic transformation, and what it costs (LWY25, Lemma 3.1).

    `n`: rows, at least 2; public. `n_sampled`: s, the rows of T, from 1 to n − 1: a uniform subset in uniform order,
    which nobody learns. `choice_epsilon`: :math:`\varepsilon_e \ge 0` of the choice of a labelling, whose scores move
    by at most 1/(n − s). `learner_epsilon`, `learner_delta`: :math:`(\varepsilon_A, \delta_A)` of the base learner on
    T.
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
    """Spend on the base learner what sampling and the choice leave of (ε, δ); None where nothing is left."""
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


def check_limit(limit: int) -> None:
    """Refuse a limit on candidates that is no number from 2 to :data:`MOST_CANDIDATES`."""
    if count("limit", limit, at_least=2) > MOST_CANDIDATES:
        raise InvalidParameter(f"limit must be at most {MOST_CANDIDATES:,}, got {limit}")


def choice_at(price: AgnosticPrice, selection: Selection) -> Exponential | PermuteAndFlip:
    """Return what chooses a labelling at a price; a plan makes it too, so that a refusal comes before the charge."""
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

    The choice is by :math:`s(n-s)\,\min_f \{dis_T(h, f) + err_W(f)\}`: whole numbers, which one row of W moves by at
    most s. Returns: T in random order, as the proof has it, and its new labels; its own are never looked at. They are
    no release: what is learned from them costs what :class:`AgnosticPrice` says.
    """
    sampled = random_arrangement(price.n, price.n_sampled, noise.at("relabelled rows", 0))
    rest = np.ones(price.n, dtype=np.bool_)
    rest[sampled] = False
    T = points[sampled]
    candidates, scores = concepts.relabelling_scores(T, points[rest], labels[rest])
    new = candidates[chosen(choice_at(price, selection), -scores, noise.at("chosen labelling", 0))]
    return T, new.labels(T).astype(np.uint8)


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
    """Find the split of (ε, δ) on `n` labelled rows with the least `excess`; refused if none costs as little as ε.

    `fits`: whether so many rows may be relabelled; if so, fewer may be too.
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

    splits: dict[tuple[float, float], AgnosticSplit] = {}
    for size in np.linspace(0.0, log(most), _SIZES).tolist():
        for share in _SHARES.tolist():
            split = tried(size, share)
            if split is not None:
                splits[size, share] = split
    if not splits:  # one row in T, and next to nothing for the choice
        price = _poorest_price(n, epsilon, delta)
        if price is None:
            raise DataRefused(_too_few(epsilon))
        splits[0.0, 0.0] = AgnosticSplit(price=price, excess=excess(price))
    best = min(splits, key=lambda at: (splits[at].excess, at))
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
            if split is not None and split.excess < splits[best].excess:
                splits[at], best = split, at
                break
        else:
            step /= 2
    return splits[best]


def relabels(concepts: ConceptClass, limit: int, n_rows: int) -> Callable[[int], bool]:
    """Return whether so many of the rows can be relabelled, by their number alone: with at most `limit` candidates."""
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
    """Refuse a relabelling that the class would refuse, by the numbers of rows, before the charge."""
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
    """Say that less is proven at these rows than was asked for, without a search for the number that would do."""
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
    """Find about the least number of rows whose excess is at most `alpha`: doubling, then halving to 1 %."""
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
