"""Classes that cheat a little: the checks of this room must catch every one."""

from dataclasses import replace

import numpy as np
import pytest
from tests.learners.concepts.tiny_worlds import (
    check_dichotomies,
    check_erm,
    check_mistakes,
    check_scores,
    check_set_function,
    interval_world,
    rectangle_world,
    stump_world,
    threshold_world,
)

from quorate.learners.concepts import Intervals, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.line import IntervalConcepts, ThresholdConcepts
from quorate.learners.concepts.protocol import gaps, over_gaps, prefix_sums, signed_weights


class InOrderOfArrival(Thresholds):
    """Enumerates in the order of the rows: the same dichotomies, in an order that tells it."""

    def dichotomies(self, points, **limit):
        _, first = np.unique(points[:, 0], return_index=True)
        return ThresholdConcepts(np.append(0, points[np.sort(first), 0] + 1))


class WithMultiplicity(Thresholds):
    """Forgets that a point may occur twice."""

    def dichotomies(self, points, **limit):
        return ThresholdConcepts(np.append(0, np.sort(points[:, 0]) + 1))


class MedianRepresentative(Thresholds):
    """Chooses the representative by how often points occur: the same dichotomies on the points."""

    def dichotomies(self, points, **limit):
        cuts = super().dichotomies(points).cuts.copy()
        cuts[-1] = min(2**self.bits, cuts[-1] + len(points) - len(cuts) + 1)
        return ThresholdConcepts(cuts)


class WithoutTheEmptyOne(Intervals):
    """Forgets the empty interval."""

    def dichotomies(self, points, **limit):
        concepts = super().dichotomies(points)
        return IntervalConcepts(concepts.low[1:], concepts.high[1:])


class AllOfThem(Rectangles):
    """Enumerates index boxes instead of dichotomies."""

    def dichotomies(self, points, **limit):
        concepts = super().dichotomies(points)
        return type(concepts)(np.repeat(concepts.low, 2, axis=0), np.repeat(concepts.high, 2, axis=0))


class OneColumn(Stumps):
    """Looks at the first column alone."""

    def dichotomies(self, points, **limit):
        concepts = super().dichotomies(points)
        here = concepts.columns == 0
        return replace(
            concepts, columns=concepts.columns[here], thresholds=concepts.thresholds[here], above=concepts.above[here]
        )


class OffByOne(ThresholdConcepts):
    """Counts the point at the cut as below it."""

    def mistakes(self, points, labels, weights=None):
        ones, signed = signed_weights(len(points), labels, weights)
        distinct, sums = prefix_sums(points[:, 0], signed)
        return ones - sums[np.searchsorted(distinct, self.cuts, side="right")]


class MistakesOffByOne(Thresholds):
    def dichotomies(self, points, **limit):
        return OffByOne(super().dichotomies(points).cuts)


class HighestPoint(Intervals):
    """Minimises over intervals of one point."""

    def erm(self, points, labels, weights=None):
        concepts = self.dichotomies(points)
        narrow = IntervalConcepts(concepts.low, np.minimum(concepts.low, concepts.high))
        return narrow[int(np.argmin(narrow.mistakes(points, labels, weights)))]


class PrefixMinimaOffByOne(Thresholds):
    """Lets a gap look at those strictly below it, and at those above."""

    def relabelling_scores(self, T, W, labels_of_W):
        concepts = self.dichotomies(T)
        ones, signed = signed_weights(len(W), labels_of_W)
        borders, below = prefix_sums(T[:, 0], np.ones(len(T), dtype=np.int64))
        distinct, sums = prefix_sums(W[:, 0], signed)
        own = len(T) * (ones - over_gaps(np.maximum, sums, *gaps(borders, distinct)))
        rows = len(W) * below
        from_below = np.append(own[0], np.minimum.accumulate(own - rows)[:-1] + rows[1:])
        from_above = np.minimum.accumulate((own + rows)[:0:-1])[::-1] - rows[:-1]
        return concepts, np.minimum(from_below, np.append(from_above, from_below[-1]))


class RowsOfTUnweighted(Thresholds):
    """Adds the two errors without bringing them to one denominator."""

    def relabelling_scores(self, T, W, labels_of_W):
        concepts = self.dichotomies(T)
        everything = self.dichotomies(np.concatenate([T, W]))
        errors = everything.mistakes(W, labels_of_W)
        differ = (concepts.labels(T)[:, np.newaxis] != everything.labels(T)).sum(axis=2)
        return concepts, (differ + errors).min(axis=1).astype(np.int64)


class NeverMoves(Rectangles):
    """Scores each dichotomy by the errors of its representative on W."""

    def relabelling_scores(self, T, W, labels_of_W):
        concepts = self.dichotomies(T)
        return concepts, len(T) * concepts.mistakes(W, labels_of_W)


def cheating(world, cheat):
    return replace(world, concept_class=cheat)


def caught(check, world, n_trials=60):
    """Tell whether some random case makes the check fail."""
    rng = np.random.default_rng(7)
    for _ in range(n_trials):
        n = int(rng.integers(2, 7))
        first, second = rng.integers(0, len(world.points), (2, n)).tolist()
        labels, weights = rng.integers(0, 2, n).tolist(), rng.integers(0, 4, n).tolist()
        arguments = {
            check_dichotomies: (first,),
            check_set_function: (first, rng.permutation(first + first[:2]).tolist()),
            check_mistakes: (first, second, labels, weights),
            check_erm: (first, labels, weights),
            check_scores: (first, second, labels),
        }[check]
        try:
            check(world, *arguments)
        except AssertionError:
            return True
    return False


CHEATS = [
    (check_set_function, threshold_world(3), InOrderOfArrival(3)),
    (check_dichotomies, threshold_world(3), WithMultiplicity(3)),
    (check_set_function, threshold_world(3), WithMultiplicity(3)),
    (check_set_function, threshold_world(3), MedianRepresentative(3)),
    (check_dichotomies, interval_world(3), WithoutTheEmptyOne(3)),
    (check_dichotomies, rectangle_world(2, 2), AllOfThem(2, 2)),
    (check_dichotomies, stump_world(3, 3), OneColumn(2)),
    (check_mistakes, threshold_world(3), MistakesOffByOne(3)),
    (check_erm, interval_world(3), HighestPoint(3)),
    (check_scores, threshold_world(3), PrefixMinimaOffByOne(3)),
    (check_scores, threshold_world(3), RowsOfTUnweighted(3)),
    (check_scores, rectangle_world(2, 2), NeverMoves(2, 2)),
]


@pytest.mark.parametrize(
    ("check", "world", "cheat"), CHEATS, ids=lambda value: getattr(value, "__name__", None) or str(value)
)
def test_a_class_that_cheats_is_caught_and_the_honest_class_is_not(check, world, cheat):
    assert caught(check, cheating(world, cheat))
    assert not caught(check, world)


def test_a_representative_that_depends_on_multiplicity_passes_every_other_check():
    assert not caught(check_dichotomies, cheating(threshold_world(3), MedianRepresentative(3)))
