"""Medians: a line is split at a private median, and each half again; ε-DP, or (ε, δ) at next to no price of the grid.

A median is a point where a score is high that first rises and then falls (*quasi-concave*), in whole numbers, which
each step to a neighbour moves by at most 1 everywhere, the largest at least 0, cut off at −B for a public B
(:class:`Steps`). It is chosen at once, or first at which scale. Steps, privacy, agreement and what is lost:
``docs/theory/private-learners.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log, log2, sqrt
from typing import ClassVar, Self

import numpy as np

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification import smallest_count
from quorate.learners.base.exponential import growth_of
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.concepts.line import Thresholds
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.protocol import AgreeingSanitizer, bits_and_intervals, checked_rows, share
from quorate.learners.sanitizers.tree import TreePlan, interval_error, noisy_prefix_counts, quantile_points
from quorate.mechanisms import DistanceToInstability
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray

_EACH = 1 + 1e-9  # errors are rounded up, far above what floats do to them


@stored_as("quorate.learners.sanitizers.quasi_concave.Steps")
@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A quasi-concave score on 0 … size − 1, as runs of one value each; private.

    `starts`: where each run begins: increasing, from 0. `scores`: its score. `size`: points of the domain, 1 to 2^62;
    public. `floor`: b: no score is below −B; public.
    """

    starts: IntArray
    scores: IntArray
    size: int
    floor: int

    def at(self, points: IntArray) -> IntArray:
        """Return the scores of points; −B outside the domain."""
        inside = self.scores[np.clip(np.searchsorted(self.starts, points, side="right") - 1, 0, None)]
        scores: IntArray = np.where((points >= 0) & (points < self.size), inside, -self.floor)
        return scores

    def sizes(self) -> IntArray:
        """Return how many points each run has."""
        sizes: IntArray = np.diff(self.starts, append=self.size).astype(np.int64)
        return sizes

    def levels(self) -> IntArray:
        """Return L(0), …, L(top): up to the least scale that covers the domain; −B where no cell of it fits inside."""
        top, peak = (self.size - 1).bit_length(), int(np.argmax(self.scores))
        values = np.unique(self.scores)[::-1]
        ends = np.append(self.starts[1:], self.size)
        low = self.starts[np.searchsorted(self.scores[: peak + 1], values, side="left")]
        high = ends[::-1][np.searchsorted(self.scores[peak:][::-1], values, side="left")]
        levels = np.full(top + 1, -self.floor, dtype=np.int64)
        for i in range(top + 1):
            first = (low + ((1 << i) - 1) >> i) << i
            fits = high - first >= 1 << i
            if fits.any():
                levels[i] = values[np.argmax(fits)]
        return levels

    def leading_cell(self, width: int, offset: int) -> tuple[int, int]:
        """Return where the cell with the highest score begins, and its lead over all others.

        The cells are ``[offset + k width, offset + (k + 1) width)``, for every whole number k.
        """
        peak = int(np.argmax(self.scores))
        first = offset + (int(self.starts[peak]) - offset) // width * width
        beside = np.array([first - 1, min(first + width, self.size)], dtype=np.int64)
        return first, int(self.scores[peak] - self.at(beside).max())


@stored_as("quorate.learners.sanitizers.quasi_concave.Search")
@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """The public side of a choice: its budget, τ and b, and the score that is lost but for a probability β.

    `nested`: how the scale is chosen; None chooses among all points. `stable_epsilon`, `stable_delta`: of either test.
    """

    size: int
    choice_epsilon: float
    nested: Search | None = None
    stable_epsilon: float = 0.0
    stable_delta: float = 0.0
    target: int = 0
    floor: int
    error: float

    @classmethod
    def for_budget(cls, *, size: int, epsilon: float, delta: float, turns: int, beta: float) -> Search:
        """Return the plan of an ε, with δ for each test of stability; a fifth of ε is for each step but the first."""
        size, epsilon, beta = count("size", size, at_least=1), real("epsilon", epsilon, above=0), real("beta", beta)
        if not turns:
            error = 2 / epsilon * log(size / beta) * _EACH
            return cls(size=size, choice_epsilon=epsilon, floor=ceil(error) + 1, error=error)
        scales = (size - 1).bit_length() + 1
        nested = cls.for_budget(
            size=scales, epsilon=share(epsilon, Fraction(5, 2)), delta=delta, turns=turns - 1, beta=beta / 3
        )
        part = share(epsilon, 5)
        target = ceil(nested.error + _lead(DistanceToInstability(part, delta), beta / 3))
        error = (target + nested.error + 2 / part * log(32 * 3 / beta)) * _EACH
        return cls(
            size=size,
            choice_epsilon=part,
            nested=nested,
            stable_epsilon=part,
            stable_delta=delta,
            target=target,
            floor=ceil(error) + 1,
            error=error,
        )

    @property
    def epsilon(self) -> Fraction:
        """ε of all steps together, exactly."""
        own = Fraction(self.choice_epsilon)
        return own if self.nested is None else own + 2 * Fraction(self.stable_epsilon) + self.nested.epsilon

    @property
    def stable_draws(self) -> int:
        """How many tests of stability there are, of δ each."""
        return 0 if self.nested is None else 2 + self.nested.stable_draws


def _lead(test: DistanceToInstability, beta: float) -> int:
    """Return a lead with which a cell is released but for probability β."""
    return 2 * (smallest_count(lambda distance: 1 - test.passes(distance) <= beta, 1) + 1)


def search(steps: Steps, plan: Search, noise: NoiseSource) -> int:
    """Choose a point of a high score; (plan.epsilon, draws · δ)-DP for a step that moves every score by at most 1."""
    if plan.nested is None:
        return GridChoice(plan.choice_epsilon).release(steps.scores, steps.sizes(), noise.at("choice", 0))
    fallen = -np.append(steps.levels(), -steps.floor)  # −L, which rises to B beyond the last scale
    scale = search(_crossing(fallen, plan.target, plan.nested.floor), plan.nested, noise.at("scale", 0))
    ends: set[int] = set()
    for k, offset in enumerate((0, 4 << scale)):
        first = _released_cell(steps, 8 << scale, offset, plan, noise.at("cell", k))
        if first is not None:
            cells = range(first, first + (8 << scale), 1 << scale)
            ends.update(point for cell in cells for point in (cell, cell + (1 << scale) - 1) if 0 <= point < steps.size)
    if not ends:  # neither partition has a stable cell: any public point
        return (steps.size - 1) // 2
    points = np.array(sorted(ends), dtype=np.int64)
    place = GridChoice(plan.choice_epsilon).release(steps.at(points), np.ones_like(points), noise.at("choice", 0))
    return int(points[place])


def _crossing(values: IntArray, target: int, floor: int) -> Steps:
    """Return the score that is highest where non-decreasing values cross a target: one entry fewer than values."""
    scores = np.minimum(target - values[:-1], values[1:] - target)
    return Steps(np.arange(len(scores)), np.maximum(scores, -floor), len(scores), floor)


def _released_cell(steps: Steps, width: int, offset: int, plan: Search, noise: NoiseSource) -> int | None:
    """Return where a stable cell begins; None where it is not stable. One that covers the domain needs no test."""
    only = offset - width if offset >= steps.size else offset
    if only <= 0 and only + width >= steps.size:
        return only
    first, lead = steps.leading_cell(width, offset)
    test = DistanceToInstability(plan.stable_epsilon, plan.stable_delta)
    passed = int(test.release_many(np.array([[lead, 0]], dtype=np.int64), noise)[0]) == 0
    return first if passed else None


#: Of ε: what the counts between the splits cost. The splits have the rest.
COUNTS = Fraction(1, 5)
MOST_LEVELS = 20
MOST_EPSILON = 500  # beyond, e^ε times a δ says nothing, and is soon no float
#: A domain is chosen from at once where it has no more points than this; else by scales, in an (ε, δ) plan.
AT_ONCE = 64
_USUAL = 1 / 3  # of the noise that is proven: what is met, and what decides how often to split
_BETA = 0.1
_DOWN = 1 - Fraction(1, 2**40)


@stored_as("quorate.learners.sanitizers.median_plan.MedianPlan")
@dataclass(frozen=True, kw_only=True, slots=True)
class MedianPlan:
    r"""What a release of medians is made with.

    `searches`: of one node's median, level by level from the root. `counts`: of the counts between the splits. `n`:
    rows.

    With K levels, and levels of budgets :math:`E_k`, a gap has at most
    :math:`n 2^{-K} + \sum_k 2^{-(K-k+1)} e_k` rows, :math:`e_k \propto 1/E_k`. Under :math:`2\sum_k E_k = \varepsilon`
    that is least at :math:`E_k \propto 2^{k/2}`. K is the number of splits at which it is least, the noise taken at a
    third of what is proven.

    Examples
    --------
    >>> plan = MedianPlan.for_budget(bits=32, n=300_000, epsilon=1.0, delta=0.0, levels=10, beta=0.1)
    >>> len(plan.searches), round(plan.gap), plan.epsilon <= 1
    (10, 1152, True)
    """

    searches: tuple[Search, ...]
    counts: TreePlan
    n: int

    @classmethod
    def for_budget(
        cls, *, bits: int, n: int, epsilon: float, delta: float, levels: int, beta: float, turns: int | None = None
    ) -> MedianPlan:
        """Return the plan of (ε, δ) for n public rows on a line of 2^bits points, with at most so many levels.

        With δ = 0 each median is chosen at once. `beta`: of a wider gap than :attr:`gap`, for all splits together.
        `turns`: how often a median is reduced to the choice of a scale; None until a choice is from few. Raises
        InvalidParameter if an argument is out of range, or ε too small for tests of stability.
        """
        epsilon, beta = real("epsilon", epsilon, above=0), real("beta", beta, above=0, below=1)
        n, levels = count("n", n, at_least=1), min(count("levels", levels, at_least=1), bits, MOST_LEVELS)
        if delta > 0 and epsilon > MOST_EPSILON:
            raise InvalidParameter(
                f"epsilon must be at most {MOST_EPSILON} for Medians with delta > 0, got {epsilon!r}; or take delta=0"
            )
        if turns is None:
            turns = _turns(bits) if delta > 0 else 0
        try:
            tried = [cls._at(bits, n, epsilon, delta, k, _BETA, turns) for k in range(1, levels + 1)]
        except InvalidParameter:  # of a test of stability, which names a share of this ε
            raise InvalidParameter(
                f"epsilon must be larger for Medians with delta > 0, got {epsilon!r}; or take delta=0"
            ) from None
        best = min(tried, key=lambda plan: (plan.evenly + _USUAL * (plan.gap - plan.evenly), len(plan.searches)))
        return cls._at(bits, n, epsilon, delta, len(best.searches), beta, turns)

    @classmethod
    def _at(cls, bits: int, n: int, epsilon: float, delta: float, levels: int, beta: float, turns: int) -> MedianPlan:
        splits = share(epsilon, 1 / (1 - COUNTS))
        weights = [sqrt(2.0) ** k for k in range(levels)]
        budgets = [share(splits, Fraction(2 * sum(weights) / weight) / _DOWN) for weight in weights]
        each_beta = beta / ((1 << levels) - 1)
        searches = tuple(
            Search.for_budget(
                size=1 << bits,
                epsilon=budget,
                delta=delta / (levels * 2 * max(turns, 1) * (1 + exp(budget))) * float(_DOWN) if delta > 0 else 0.0,
                turns=turns,
                beta=each_beta,
            )
            for budget in budgets
        )
        return cls(
            searches=searches,
            counts=TreePlan.for_budget(bits=levels + 1, n=n, epsilon=share(epsilon, 1 / COUNTS)),
            n=n,
        )

    @property
    def evenly(self) -> float:
        """Rows in each gap if all medians were exact."""
        return self.n / float(1 << len(self.searches))

    @property
    def gap(self) -> float:
        """g: the largest number of rows strictly between neighbouring splits, but for probability β."""
        rows = float(self.n)
        for level in self.searches:
            rows = (rows + level.error) / 2
        return rows

    @property
    def epsilon(self) -> Fraction:
        """ε of the whole, exactly: a replaced record is one that leaves a node of each level, and one that comes."""
        return 2 * sum((level.epsilon for level in self.searches), Fraction(0)) + self.counts.epsilon

    @property
    def delta(self) -> float:
        r"""δ of the whole: :math:`(1 + e^{E_k})` times that of a node's median, on each level."""
        by_scales = [level for level in self.searches if level.stable_draws]
        return sum((1 + exp(level.epsilon)) * level.stable_draws * level.stable_delta for level in by_scales)


def _turns(bits: int) -> int:
    """How often the logarithm is taken until a choice is from no more than :data:`AT_ONCE`."""
    size, turns = 1 << bits, 0
    while size > AT_ONCE:
        size, turns = (size - 1).bit_length() + 1, turns + 1
    return turns


_PLANS = 4096
_LEVELS = 10
_FINER = 3  # exact medians would make gaps so many times smaller than those asked for


@stored_as("quorate.learners.sanitizers.medians.Medians")
@dataclass(frozen=True, slots=True)
class Medians(AgreeingSanitizer):
    r"""Sanitize points on a line by medians of medians: thresholds, intervals and points of a grid of :math:`2^{bits}`.

    `delta`: δ of the release. With 0 a median is chosen from all points of the grid, at a price that grows with its
    bits; with δ > 0 by scales, at one that grows as :math:`2^{O(\log^* |X|)}`, which is more on every grid up to 2^62.
    `levels`: at most so many levels of splits, K: at most 2^K − 1 values are released, and there are no more
    dichotomies than on those. Fewer where there are few rows. None takes 10, and inside a learner what its α asks for.

    Only a class on a line is taken (Thresholds, Intervals, PointFunctions), and at least one point. Privacy: ε-DP, or
    (ε, δ)-DP, for one replaced record, n public. Proofs and bounds: ``docs/theory/private-learners.md``.

    BNS15, Corollary 3.4, cites an (ε, δ)-sanitizer for thresholds (Beimel, Nissim and Stemmer 2013), whose reduction of
    a quasi-concave choice to that of a scale this is. Splitting at medians: Kaplan, Schnapp and Stemmer (2022),
    "Differentially private approximate quantiles".

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> rows = np.arange(20_000)[:, np.newaxis] * 1000  # far down on the left of the grid
    >>> released = Medians(levels=3).sanitize(rows, Thresholds(32), 1.0, SeededNoise(0))
    >>> np.unique(released).tolist()[:7]
    [2518014, 5002769, 7502816, 10006525, 12510609, 15023115, 17511402]
    >>> Medians().rows_to_agree(Thresholds(32), alpha=0.005, beta=0.1, epsilon=1.0)
    213535
    """

    delta: float = 0.0
    levels: int | None = None

    remedy: ClassVar[str] = "raise levels, or take Tree"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, below=1))
        if self.levels is not None:
            object.__setattr__(self, "levels", count("levels", self.levels, at_least=1))

    def made_for(self, share: float, delta: float) -> Self:
        """Return it for gaps of so small a share of the rows, where it leaves the levels open, and at another δ."""
        levels = self.levels or min(MOST_LEVELS, max(1, ceil(log2(_FINER / share))))
        return replace(self, levels=levels, delta=delta)

    def event(self, epsilon: float) -> PureDP | ApproxDP:
        """Price of one call of :meth:`sanitize`."""
        return ApproxDP(epsilon, self.delta) if self.delta > 0 else PureDP(epsilon)

    def most_dichotomies(self, concept_class: ConceptClass) -> int:
        """Return how many concepts differ on the released points at most; public."""
        bits, _ = bits_and_intervals(concept_class)
        return growth_of(concept_class)((1 << min(self.levels or _LEVELS, bits, MOST_LEVELS)) - 1)

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(n_synthetic, 1)`` synthetic grid points, in increasing order, each split among them."""
        bits, _ = bits_and_intervals(concept_class)
        points = checked_rows(points, concept_class)
        plan = self._plan(len(points), concept_class, epsilon)
        values = np.sort(points[:, 0].astype(np.int64))
        splits = noisy_splits(values, 1 << bits, plan.searches, noise.at("splits", 0))
        # Cell 2i is the gap before split i, and cell 2i + 1 the split itself.
        after = np.searchsorted(splits, values, side="left")
        at = np.append(splits, -1)[after] == values
        tree = noisy_prefix_counts(2 * after + at, plan.counts, noise.at("counts", 0))
        # From here on only what was released, and n.
        cells = quantile_points(tree, len(values))
        copies = np.append(splits, splits[-1])[np.minimum(cells // 2, len(splits))]
        return np.sort(np.append(splits, copies))[:, np.newaxis].astype(points.dtype)

    def agreement_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α: on any `n` rows, concepts that agree on the released points differ by more but with prob. β."""
        return min(1.0, _gaps(concept_class) * self._plan(n, concept_class, epsilon, beta).gap / n)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: no :math:`c \in C^\oplus` is off by more but for β, half of it for splits, half for counts."""
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        plan = self._plan(n, concept_class, epsilon, beta / 2)
        _, intervals = bits_and_intervals(concept_class)
        splits = (1 << len(plan.searches)) - 1
        rounding = 1 / n + splits / (n + splits)  # quantiles, and each split once more
        return min(1.0, intervals * ((interval_error(plan.counts, n, beta / 2) + 2 * plan.gap) / n + rounding))

    def _plan(self, n: int, concept_class: ConceptClass, epsilon: float, beta: float = 0.1) -> MedianPlan:
        bits, _ = bits_and_intervals(concept_class)
        return _planned(bits, n, epsilon, self.delta, self.levels or _LEVELS, beta)


@lru_cache(maxsize=_PLANS)
def _planned(bits: int, n: int, epsilon: float, delta: float, levels: int, beta: float) -> MedianPlan:
    return MedianPlan.for_budget(bits=bits, n=n, epsilon=epsilon, delta=delta, levels=levels, beta=beta)


def _gaps(concept_class: ConceptClass) -> int:
    """In how many gaps between released points two concepts that agree on them may differ."""
    bits_and_intervals(concept_class)
    return 1 if isinstance(concept_class, Thresholds) else 2


def noisy_splits(values: IntArray, size: int, searches: tuple[Search, ...], noise: NoiseSource) -> IntArray:
    """Release the splits of a line, level by level: distinct grid points, increasing; one at least.

    `values`: the private grid points, sorted. `searches`: of one node's median, by level.
    """
    nodes: list[tuple[int, int]] = [(0, size)]  # ranges of grid points, their ends left out
    splits: list[int] = []
    for plan in searches:
        below: list[tuple[int, int]] = []
        for low, high in nodes:
            split = low + _median(values, low, high, plan, noise.at("node", len(splits)))
            splits.append(split)
            below += [side for side in ((low, split), (split + 1, high)) if side[0] < side[1]]
        nodes = below
    return np.array(sorted(splits), dtype=np.int64)


def _median(values: IntArray, low: int, high: int, plan: Search, noise: NoiseSource) -> int:
    """Choose in one node, counted from its first point; where there is only one point nothing is chosen."""
    if high - low == 1:
        return 0
    first, last = np.searchsorted(values, (low, high), side="left").tolist()
    return search(median_score(values[first:last] - low, high - low, plan.floor), plan, noise)


def median_score(values: IntArray, size: int, floor: int) -> Steps:
    r"""Return :math:`2\min(\#\{\le x\}, \#\{\ge x\}) - m` of every x, cut off at −B: what one row moves by 1."""
    m = len(values)
    # Of the other rows the score is −B or less, and they are left out.
    low, high = max(0, (m - floor) // 2 - 2), min(m, (m + floor) // 2 + 3)
    distinct = np.unique(values[low:high])
    below = np.searchsorted(values, distinct, side="left").astype(np.int64)
    at_most = np.searchsorted(values, distinct, side="right").astype(np.int64)
    before = np.append(
        below, at_most[-1] if m else 0
    )  # rows up to a point of the gap before each value, and at the end
    starts, scores = np.empty((2, 2 * len(distinct) + 1), dtype=np.int64)
    starts[1::2], scores[1::2] = distinct, 2 * np.minimum(at_most, m - below) - m
    starts[0], starts[2::2], scores[0::2] = 0, distinct + 1, 2 * np.minimum(before, m - before) - m
    some = np.diff(starts, append=size) > 0
    return Steps(starts[some], np.maximum(scores[some], -floor), size, floor)
