"""The first row of a plan at other ε: what a smaller or larger budget would buy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.accounting import worlds_told_apart
from quorate.planning.plan_row import Grid, PlanRow, numbers_of_teachers, vote_rows
from quorate.run.expected import Expected
from quorate.run.public_facts import PublicFacts

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

#: From rows, and the facts that they are for (of another ε than the plan's, perhaps), to rows with what is expected.
Expectation = Callable[[PublicFacts, Sequence[PlanRow]], Sequence[PlanRow]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AtEpsilon:
    """What one ε would buy.

    `worlds`: in how many of 1,000 pairs of worlds the best observer is right, at most; a coin is in 500. `n_teachers`:
    None where none vote. `expected`: accuracy of the student; None where nothing tells it.
    """

    epsilon: float
    worlds: int
    n_teachers: int | None
    expected: Expected | None

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        expected = None if self.expected is None else self.expected.tree()
        return {
            "epsilon": self.epsilon, "worlds_told_apart_of_1000": self.worlds, "n_teachers": self.n_teachers,
            "expected": expected,
        }  # fmt: skip


def at_each_epsilon(facts: PublicFacts, first: PlanRow, expect: Expectation) -> tuple[AtEpsilon, ...]:
    """Return what the way of a plan's first row would have at each of :data:`EPSILONS`, at its own ε what it expects.

    Other budgets are played less, on the same rows and divisions: told is how they differ from it when played as
    little.
    """
    played_less = None
    if first.expected is not None:
        played_less = expect(facts, [replace(first, expected=None)])[0].expected
    luck, scored_luck = 0.0, 0.0
    if first.expected is not None and played_less is not None:
        luck = first.expected.accuracy - played_less.accuracy
        if first.expected.scored is not None and played_less.scored is not None:
            scored_luck = first.expected.scored.value - played_less.scored.value
    ways = []
    for epsilon in EPSILONS:
        if math.isclose(epsilon, facts.epsilon):  # the first row itself, as it stands in the plan
            ways.append((epsilon, first))
            continue
        row = _at(facts, epsilon, first, expect)
        ways.append((epsilon, _moved(row, luck, scored_luck)))
    return rising(
        [
            AtEpsilon(
                epsilon=epsilon,
                worlds=worlds_told_apart(epsilon, facts.delta),
                n_teachers=row.n_teachers,
                expected=row.expected,
            )
            for epsilon, row in ways
        ],
        facts.epsilon,
        first.expected,
    )


def _moved(row: PlanRow, luck: float, scored_luck: float) -> PlanRow:
    return row if row.expected is None else replace(row, expected=row.expected.moved(luck, scored_by=scored_luck))


def _at(facts: PublicFacts, epsilon: float, first: PlanRow, expect: Expectation) -> PlanRow:
    """The way of the first row at another ε, with the teachers of the grid nearest the recipe's."""
    other, row = replace(facts, epsilon=epsilon), first
    if first.way == "votes" and first.mechanism is not None and not first.cannot:
        other, kind = replace(other, tiny=other.tiny and not first.model), first.mechanism
        middle = numbers_of_teachers(other, kind)
        wanted = middle[len(middle) // 2]
        n_teachers = min(
            numbers_of_teachers(replace(facts, tiny=other.tiny), kind), key=lambda n: abs(math.log(n / wanted))
        )
        queries = [first.n_queries or 1]
        (row,) = vote_rows(other, Grid(mechanisms=[type(first.mechanism)], n_teachers=[n_teachers], queries=queries))
        row = replace(row, model=first.model)
    (row,) = expect(other, [replace(row, expected=None)])
    return row


def rising(ways: Sequence[AtEpsilon], own: float, expected: Expected | None) -> tuple[AtEpsilon, ...]:
    """Return what is told with accuracies that do not fall as ε rises, since less noise is no worse.

    What is expected at the plan's own ε stands; a budget above it that is expected below it, or below another that is
    smaller, is as good as that one, and so downwards.

    Examples
    --------
    >>> def at(epsilon, accuracy):
    ...     told = Expected(accuracy=accuracy, low=accuracy - 0.02, high=accuracy + 0.02, basis="labelled public rows")
    ...     return AtEpsilon(epsilon=epsilon, worlds=500, n_teachers=None, expected=told)
    >>> by_luck = [at(0.25, 0.72), at(0.5, 0.74), at(1.0, 0.73), at(2.0, 0.76), at(4.0, 0.75)]
    >>> [round(each.expected.accuracy, 2) for each in rising(by_luck, 1.0, by_luck[2].expected)]
    [0.72, 0.73, 0.73, 0.76, 0.76]
    """
    if expected is None:
        return tuple(ways)
    above, below = list(ways), list(ways)
    best, worst = expected, expected
    for number, at in enumerate(above):
        if at.epsilon > own and at.expected is not None:
            above[number] = replace(at, expected=(best := _no_worse(at.expected, best, better=max)))
    for number, at in reversed(list(enumerate(below))):
        if at.epsilon < own and at.expected is not None:
            below[number] = replace(at, expected=(worst := _no_worse(at.expected, worst, better=min)))
    return tuple(high if high.epsilon > own else low for low, high in zip(below, above, strict=True))


def _no_worse(one: Expected, other: Expected, *, better: Callable[[float, float], float]) -> Expected:
    """Return what is expected at one ε, moved where another one's figure is `better`."""
    scored_by = 0.0
    if one.scored is not None and other.scored is not None and better(one.merit, other.merit) != one.merit:
        scored_by = other.scored.value - one.scored.value
    return one.moved(better(one.accuracy, other.accuracy) - one.accuracy, scored_by=scored_by)
