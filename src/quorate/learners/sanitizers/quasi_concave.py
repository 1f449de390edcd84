"""One point where a quasi-concave score is high, chosen privately: at once, or first at which scale (ε, δ).

A score is *quasi-concave* where it first rises and then falls; here whole numbers, which each step to a neighbour moves
by at most 1 everywhere, the largest at least 0, cut off at −B for a public B (:class:`Steps`). The steps of a choice by
scales, its privacy and what it loses: ``docs/theory/private-learners.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

import numpy as np

from quorate.arguments import count, real
from quorate.learners.amplification import smallest_count
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.sanitizers.protocol import share
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
