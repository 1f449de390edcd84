"""What a random sample of the rows does to a price, and how such a sample is drawn.

Neighbours are two tables with one row replaced; how many rows there are, and are sampled, is public, and a number out
of range is an InvalidParameter. A rule holds for every (ε, δ)-DP algorithm that is run on the sample; those that are
not printed in BNS15 or LWY25 are also the best that hold for every pure one, and rounded up.

The secrecy of a sample is what amplifies, so it is drawn exactly: an integer below b is the remainder of a 64-bit word
modulo b, words of the last, incomplete block drawn again. Callers address the source (``noise.at("kept rows", i)``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, log, log1p

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.noise import NoiseSource
from quorate.noise.source import words_of
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

SLACK = 2.0**-40  #: more than the rounding of any formula here; the longest has some thousand operations
LARGEST_EPSILON = 500.0  #: e^500 is a float; no larger ε is a promise


@stored_as("quorate.learners.amplification.Price")
@dataclass(frozen=True, slots=True)
class Price:
    """What an algorithm costs per replaced row: (ε, δ)-DP, with ε from 0 to 500 and δ from 0 to 1."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=0, at_most=LARGEST_EPSILON))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, at_most=1))

    @property
    def event(self) -> PureDP | ApproxDP:
        """The price as what a ledger is charged."""
        return ApproxDP(self.epsilon, self.delta) if self.delta > 0 else PureDP(self.epsilon)

    def within(self, target: Price) -> bool:
        """Whether neither figure is above that of `target`."""
        return self.epsilon <= target.epsilon and self.delta <= target.delta

    @classmethod
    def of_event(cls, event: PureDP | ApproxDP) -> Price:
        """Return the price that an event states."""
        return cls(event.epsilon, event.delta if isinstance(event, ApproxDP) else 0.0)


def rounded_up_price(epsilon: float, delta: float) -> Price:
    """Return a price from figures that were computed in floats: both a little larger, δ at most 1."""
    return Price(epsilon * (1 + SLACK), min(1.0, delta * (1 + SLACK)))


def worst_of(*prices: Price) -> Price:
    """Return what covers each of several cases: the larger ε and the larger δ."""
    return Price(max(price.epsilon for price in prices), max(price.delta for price in prices))


def largest_count(fits: Callable[[int], bool], at_most: int) -> int:
    """Return the largest whole number up to `at_most` that `fits`, 0 if none does; it fits from there down to 1."""
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def smallest_count(fits: Callable[[int], bool], at_least: int) -> int:
    """Return the smallest whole number from `at_least` on that `fits`, as all larger ones do; refused beyond 2^60."""
    high = max(at_least, 1)
    while not fits(high):
        high *= 2
        if high > 2**60:
            raise InvalidParameter(
                "no number of rows up to 2^60 is enough; raise epsilon, lower base.epsilon, or ask for a larger error"
            )
    low = max(at_least, 0)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def kept_share(n_rows: int, n_kept: int) -> float:
    """Return the share of the rows that a sample keeps."""
    n_rows, n_kept = count("n_rows", n_rows, at_least=1), count("n_kept", n_kept)
    if n_kept > n_rows:
        raise InvalidParameter(f"n_kept must be at most n_rows={n_rows}, got {n_kept}")
    return n_kept / n_rows


def without_replacement(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return :math:`(\log(1 + r(e^\varepsilon - 1)),\ r\delta)`, r = `n_kept`/`n_rows`: every subset alike.

    The sample must come in random order if the algorithm looks at it (:func:`random_arrangement`). Tight: Balle, Barthe
    and Gaboardi (2018), arXiv:1807.01647, Theorem 9.
    """
    rate = kept_share(n_rows, n_kept)
    if rate == 1:
        return price
    return rounded_up_price(log1p(rate * expm1(price.epsilon)), rate * price.delta)


def bns15_claim_4_3(price: Price, *, epsilon: float, n_rows: int) -> tuple[int, Price]:
    r"""Return how many rows BNS15's Claim 4.3 samples `n_rows` from to bring a price to ε in (0, 1], and that price.

    :math:`t = \frac{n}{\varepsilon}(3 + e^{\varepsilon^*})` rows give
    :math:`(\varepsilon, \frac{4\varepsilon}{3 + e^{\varepsilon^*}}\delta)`.
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    share = (3 + exp(price.epsilon)) / epsilon
    delta = min(1.0, 4 * price.delta / share * (1 + SLACK))
    return rounded_up_count(count("n_rows", n_rows, at_least=1) * share), Price(epsilon, delta)


def rounded_up_count(number: float) -> int:
    """Round up a count of rows that was computed in floats: never one too few."""
    whole = int(number)
    return whole + (number * (1 + SLACK) > whole)


_LARGEST_BOUND = 2**62
_WORDS = 2**64


def random_integers(bounds: IntArray, noise: NoiseSource) -> IntArray:
    """Draw one uniform integer in ``[0, bound)`` for each of the int64 bounds from 1 to 2^62, exactly."""
    if not (isinstance(bounds, np.ndarray) and bounds.dtype == np.int64 and bounds.ndim == 1):
        raise InvalidParameter("bounds must be a one-dimensional int64 array")
    if not ((bounds >= 1) & (bounds <= _LARGEST_BOUND)).all():
        raise InvalidParameter("bounds must be whole numbers from 1 to 2^62")
    wide = bounds.astype(np.uint64)
    drawn = words_of(noise, bounds.size).copy()
    # The words from 2^64 − (2^64 mod b) on belong to no complete block of b words.
    incomplete = (np.uint64(_WORDS - 1) % wide + np.uint64(1)) % wide
    last = np.uint64(_WORDS - 1) - incomplete
    rejected: NDArray[np.intp] = np.flatnonzero(drawn > last)
    while rejected.size:
        drawn[rejected] = noise.words(rejected.size)
        rejected = rejected[drawn[rejected] > last[rejected]]
    return (drawn % wide).astype(np.int64)


def random_arrangement(n: int, size: int, noise: NoiseSource) -> IntArray:
    """Draw `size` of `n` indices without replacement, every arrangement alike (Fisher-Yates; BNS15, Remark 4.4)."""
    n = count("n", n)
    size = count("size", size)
    if size > n:
        raise InvalidParameter(f"size must be at most n={n}, got {size}; a subset has no more members than the whole")
    steps = random_integers(np.arange(n, n - size, -1, dtype=np.int64), noise)
    moved: dict[int, int] = {}  # the shuffled array where it differs from 0, 1, 2, …
    chosen = np.empty(size, dtype=np.int64)
    for i, step in enumerate(steps.tolist()):
        place = i + step
        chosen[i] = moved.get(place, place)
        moved[place] = moved.pop(i, i)
    return chosen


def random_draws(n: int, size: int, noise: NoiseSource) -> IntArray:
    """Draw `size` >= 0 independent, uniform indices below `n` >= 1: with replacement, ``(size,)``."""
    n = count("n", n, at_least=1)
    return random_integers(np.full(count("size", size), n, dtype=np.int64), noise)


_MOST_DRAWS_A_ROW = 100  # of the sum over binomial weights


def with_replacement(price: Price, *, n_rows: int, n_draws: int) -> Price:
    r"""Return the price of running an algorithm on m = `n_draws` rows, each drawn from all n with replacement.

    :math:`\varepsilon' = m \log(1 + (e^\varepsilon - 1)/n)` and :math:`\delta' = \delta\, (e^{\varepsilon'} -
    1)/(e^\varepsilon - 1)`; proof: ``docs/theory/learner-proofs.md``, the last section.
    """
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    if n_draws == 0:
        return Price(0.0)
    gain = expm1(price.epsilon)
    epsilon = n_draws * log1p(gain / n_rows)
    if not epsilon < LARGEST_EPSILON:
        raise InvalidParameter(f"n_draws must be smaller at ε={price.epsilon:.4g} and n_rows={n_rows}, got {n_draws}")
    # As ε → 0 the ratio goes to m/n.
    ratio = expm1(epsilon) / gain if gain > 0 else n_draws / n_rows
    return rounded_up_price(epsilon, price.delta * ratio)


def with_replacement_by_profile(price: Price, *, n_rows: int, n_draws: int, at: float) -> Price:
    r"""Return the price of drawing with replacement that counts how often the changed row is drawn; 0 <= m <= 100n.

    For any s > 0 (`at`): ``docs/theory/learner-proofs.md``, the last section. Of use for a δ that is not small.
    """
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    at = real("at", at, above=0, at_most=LARGEST_EPSILON)
    if n_draws > _MOST_DRAWS_A_ROW * n_rows:
        raise InvalidParameter(f"n_draws must be at most {_MOST_DRAWS_A_ROW} times n_rows={n_rows}, got {n_draws}")
    if n_draws == 0:
        return Price(0.0)
    weights, beyond = _binomial(n_draws, n_rows)
    drawn = -expm1(n_draws * log1p(-1 / n_rows)) if n_rows > 1 else 1.0
    delta = float(weights[1:] @ _group_profiles(price, len(weights) - 1, at)) + beyond
    return rounded_up_price(log1p(drawn * expm1(at)), delta)


def cheapest_with_replacement(price: Price, *, n_rows: int, n_draws: int, delta: float) -> Price:
    """Return the smallest ε' that the rules for draws with replacement prove at a δ' of at most `delta`."""
    delta = real("delta", delta, at_least=0, at_most=1)
    candidates = [with_replacement(price, n_rows=n_rows, n_draws=n_draws)]
    if _lemma_2_13_applies(price, n_rows, n_draws):
        candidates.append(lwy25_lemma_2_13(price, n_rows=n_rows, n_draws=n_draws))
    if delta > price.delta and 0 < n_draws <= _MOST_DRAWS_A_ROW * n_rows:
        low, high = 0.0, n_draws * price.epsilon  # from there on the profiles of a pure algorithm are 0
        if 0 < high <= LARGEST_EPSILON:
            for _ in range(40):
                middle = (low + high) / 2
                fits = with_replacement_by_profile(price, n_rows=n_rows, n_draws=n_draws, at=middle).delta <= delta
                low, high = (low, middle) if fits else (middle, high)
            candidates.append(with_replacement_by_profile(price, n_rows=n_rows, n_draws=n_draws, at=high))
    within = [candidate for candidate in candidates if candidate.delta <= delta]
    if not within:
        raise InvalidParameter(
            f"delta={delta:g} cannot be met by {n_draws} draws from {n_rows} rows with δ={price.delta:g} each; "
            "give a smaller δ to the learner that is resampled"
        )
    return min(within, key=lambda candidate: candidate.epsilon)


def bns15_claim_4_5(price: Price) -> Price:
    """Return BNS15's Claim 4.5, n draws with replacement from n rows, for ε <= 1: (log 244, 2467 δ)."""
    real("epsilon", price.epsilon, at_most=1, hint="Claim 4.5 is for ε <= 1")
    return rounded_up_price(log(244), 2467 * price.delta)


def lwy25_lemma_2_13(price: Price, *, n_rows: int, n_draws: int) -> Price:
    r"""Return LWY25's Lemma 2.13: :math:`(6\varepsilon m/n,\ e^{6\varepsilon m/n} \frac{4m}{n} \delta)`."""
    n_rows, n_draws = count("n_rows", n_rows, at_least=1), count("n_draws", n_draws)
    if not _lemma_2_13_applies(price, n_rows, n_draws):
        raise InvalidParameter(
            f"Lemma 2.13 needs ε <= 1, n >= 2 and 6εm/n <= 1, got ε={price.epsilon:g}, n={n_rows}, m={n_draws}; "
            "with_replacement has no such conditions"
        )
    epsilon = 6 * price.epsilon * n_draws / n_rows
    return rounded_up_price(epsilon, exp(epsilon) * 4 * n_draws / n_rows * price.delta)


def _lemma_2_13_applies(price: Price, n_rows: int, n_draws: int) -> bool:
    return price.epsilon <= 1 and n_rows >= 2 and 6 * price.epsilon * n_draws <= n_rows


@lru_cache(maxsize=32)
def _binomial(n_draws: int, n_rows: int) -> tuple[FloatArray, float]:
    """Return the probabilities that a certain row is drawn 0, 1, 2, … times, and of all larger numbers, at most."""
    if n_rows == 1:
        return np.eye(1, n_draws + 1, n_draws)[0], 0.0
    k = np.arange(min(n_draws, 10 * ceil(n_draws / n_rows) + 200), dtype=np.float64)
    ratios = (n_draws - k) / ((k + 1) * (n_rows - 1))
    first = exp(n_draws * log1p(-1 / n_rows))
    weights = first * np.concatenate([[1.0], np.cumprod(ratios)])
    # From there on each weight is below half of the one before.
    return weights, 0.0 if len(k) == n_draws else float(weights[-1])


def _group_profiles(price: Price, largest: int, at: float) -> FloatArray:
    """Return the δ at ε = `at` for groups of 1, …, `largest` rows, at most."""
    together = np.arange(1, largest + 1) * price.epsilon
    within = np.minimum(together, LARGEST_EPSILON)
    delta = np.zeros(largest)
    if price.delta > 0:
        steps = np.expm1(within) / expm1(price.epsilon) if price.epsilon > 0 else np.arange(1.0, largest + 1)
        delta = np.where(together <= LARGEST_EPSILON, np.minimum(1.0, price.delta * steps), 1.0)
    # (e^{kε} − e^s)/(e^{kε} + 1), with nothing that overflows
    apart = -np.expm1(np.minimum(at - together, 0.0)) / (1 + np.exp(-together))
    profiles: FloatArray = delta + (1 - delta) * apart
    return profiles
