"""A plan: what a budget can buy, row by row, best first; made of public facts, before anything is spent.

The way of the first row is told at other ε, too: what a smaller or larger budget would buy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.accounting import delta, worlds_told_apart
from quorate.accounting.attacker import worlds_told_apart_by
from quorate.accounting.figures import several
from quorate.ambient import own_switches
from quorate.planning.margins import AGREEMENTS, Crossing, sparse_vector_from
from quorate.planning.plan_row import Grid, PlanRow, numbers_of_teachers, vote_rows
from quorate.plugins import PLAN_ROWS, every
from quorate.run.expectation import Expected
from quorate.run.public_facts import ChosenMethod, PublicFacts, choose_method
from quorate.students.scores import SCORE_WORDS

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

#: From rows, and the facts that they are for (of another ε than the plan's, perhaps), to rows with what is expected.
Expectation = Callable[[PublicFacts, Sequence[PlanRow]], Sequence[PlanRow]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AtEpsilon:
    """What one ε would buy. `worlds`: in how many of 1,000 pairs of worlds the best observer is right, at most; a coin
    is in 500.
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
    """Return what the first row's way would have at each of :data:`EPSILONS`; played less, told is the difference."""
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
        moved = row.expected and row.expected.moved(luck, scored_by=scored_luck)
        ways.append((epsilon, replace(row, expected=moved)))
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
    """Return what is told with accuracies that do not fall as ε rises; what is expected at the plan's own ε stands."""
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


CLOSE = 0.01  # accuracies that differ by less are told as the same
#: By which labels that are not the true ones are wrong about votes and the direct method: the root mean square on the
#: tables of benchmarks.rules, on which nothing is reported.
BETWEEN_METHODS = 0.045


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All rows of a plan, and what stands beside them.

    `facts`: what it was made from.
    `rows`: those that can answer, best first; then those that cannot.
    `commonest`: accuracy of always saying the commonest class; None where no public label tells it.
    `crossings`: from how many queries on a sparse vector beats Gaussian noise.
    `by_epsilon`: the same way at other ε.
    `notes`: what the figures rest on, in sentences without a full stop.
    `score_was_asked_for`: whether rows are in the order of a score that was asked for, not of what suits the classes.
    """

    facts: PublicFacts
    rows: tuple[PlanRow, ...]
    commonest: float | None = None
    crossings: tuple[Crossing, ...] = ()
    by_epsilon: tuple[AtEpsilon, ...] = ()
    notes: tuple[str, ...] = ()
    score_was_asked_for: bool = False

    @property
    def first(self) -> PlanRow:
        """The row that the planner would take."""
        return self.rows[0]

    @property
    def answering(self) -> tuple[PlanRow, ...]:
        """The rows that can answer, best first."""
        return tuple(row for row in self.rows if not row.cannot)

    def is_brief(self, row: PlanRow) -> bool:
        """Whether a row was rehearsed less than others were: its figure is coarse."""
        return _brief(row, self.rows)

    @property
    def worlds(self) -> int:
        """In how many of 1,000 pairs of worlds the best observer is right, at most, by ε and δ alone."""
        return worlds_told_apart(self.facts.epsilon, self.facts.delta)

    @property
    def worlds_of_first(self) -> int | None:
        """The same by the exact price of what the first row releases; None where that is not told."""
        event = self.first.released(self.facts.online_answers)
        return None if event is None else min(self.worlds, worlds_told_apart_by(delta(event, 0.0)))

    @property
    def scoring(self) -> str:
        """What rows are put in order by."""
        scored = None if self.first.expected is None else self.first.expected.scored
        return "accuracy" if scored is None else scored.scoring

    @property
    def gains_nothing(self) -> bool:
        """Whether true labels let expect no row to be better than always saying the commonest class."""
        expected = self.first.expected
        if expected is None or expected.other_labels or self.commonest is None:
            return False
        return expected.gain(self.commonest) <= 0

    @property
    def known(self) -> list[tuple[float, Expected]]:
        """Each ε of the table of which anything is known, and what is expected there."""
        return [(at.epsilon, at.expected) for at in self.by_epsilon if at.expected is not None]

    @property
    def nothing_changes_above(self) -> float | None:
        """The least ε of the table that is as good as the largest, but for :data:`CLOSE`; None where none is known."""
        if len(self.known) < 2:
            return None
        best = max(expected.merit for _, expected in self.known)
        return next(epsilon for epsilon, expected in self.known if expected.merit >= best - CLOSE)

    @property
    def nothing_is_learned_below(self) -> float | None:
        """The least ε of the table that beats the commonest class by :data:`CLOSE`; None where all do, or none."""
        if self.commonest is None:
            return None
        learns = [epsilon for epsilon, expected in self.known if expected.gain(self.commonest) > CLOSE]
        return learns[0] if learns and learns[0] > self.known[0][0] else None

    @own_switches()
    def tree(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        facts = self.facts
        return {
            "facts": {
                "unit": facts.unit, "n_records": facts.n_records, "n_rows": facts.n_rows, "n_public": facts.n_public,
                "n_classes": facts.n_classes, "width": facts.width, "epsilon": facts.epsilon, "delta": facts.delta,
                "online_answers": facts.online_answers, "neighbours": facts.relation,
            },
            "first": self.first.key,
            "commonest_class": None if self.commonest is None else round(self.commonest, 4),
            "rows": [row.tree() for row in self.rows],
            "sparse_vector_beats_gaussian_from": [crossing.tree() for crossing in self.crossings],
            "by_epsilon": [at.tree() for at in self.by_epsilon],
            "nothing_changes_above": self.nothing_changes_above,
            "nothing_is_learned_below": self.nothing_is_learned_below,
            "worlds_told_apart_of_1000": self.worlds,
            "worlds_told_apart_of_1000_by_first": self.worlds_of_first,
            "notes": list(self.notes),
        }  # fmt: skip


def plan_votes(
    facts: PublicFacts,
    *,
    grid: Grid | None = None,
    direct: PlanRow | None = None,
    expectation: Expectation | None = None,
    commonest: float | None = None,
    n_labelled: int | None = None,
) -> Plan:
    """Compare what a budget can buy; `direct`: its row, where public rows tell its coordinates. `expectation`: a
    rehearsal. `n_labelled`: private rows, by default all.
    """
    expect = expectation or (lambda _, rows: rows)  # no accuracy of any row
    votes = vote_rows(facts, grid)
    possible = (*votes, *(() if direct is None else (direct,)))
    expected = [row for row in expect(facts, possible) if not row.model or row.expected is not None]
    others = [row for rows_of in every(PLAN_ROWS) for row in rows_of(facts, n_labelled)]
    ordered = in_order(facts, [*expected, *others])
    return Plan(
        facts=facts,
        rows=ordered,
        commonest=commonest,
        crossings=_crossings(facts),
        by_epsilon=at_each_epsilon(facts, ordered[0], expect),
    )


def _crossings(facts: PublicFacts) -> tuple[Crossing, ...]:
    task: dict[str, Any] = {"n_classes": facts.n_classes, "epsilon": facts.epsilon, "delta": facts.delta}
    return tuple(
        sparse_vector_from(n_teachers=n_teachers, margin=margin, **task)
        for n_teachers in numbers_of_teachers(facts, None)[-2:]
        for margin in AGREEMENTS
    )


# --- best first ------------------------------------------------------------------------------------------------------


def in_order(facts: PublicFacts, rows: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    """Return rows best first: by what is expected of the student, else by noise and bias. On other labels than the true
    ones, the method that mostly is ahead is first unless the other is by more than :data:`BETWEEN_METHODS`.
    """
    able = [row for row in rows if not row.cannot and row.way != "few labels"]
    named = [row for row in rows if not row.cannot and row.way == "few labels"]
    unable = [row for row in rows if row.cannot]
    known = sorted(
        (row for row in able if row.expected is not None), key=lambda row: (_brief(row, able), -_standing(facts, row))
    )
    unknown = sorted((row for row in able if row.expected is None), key=lambda row: _balance(facts, row, able))
    ordered = [*known, *unknown, *named, *unable]
    return (replace(ordered[0], why=_reason(facts, ordered)), *ordered[1:]) if ordered else ()


_TOO_CLOSE = (
    f"and labels that are not the true ones do not tell the two methods apart by {100 * BETWEEN_METHODS:g} points or "
    "less: {}another is expected {:.1f} points above it"
)


def _mostly_ahead(facts: PublicFacts) -> ChosenMethod | None:
    """Return the method that the rule of public facts takes where no public row has a label."""
    return choose_method(
        grouped=facts.unit != "record" or facts.n_rows is not None,
        n_records=facts.n_records,
        n_rows=facts.n_rows,
        unit=facts.unit,
    )


def _why(facts: PublicFacts) -> str:
    """Return why that method was mostly ahead."""
    method = _mostly_ahead(facts)
    return "" if method is None else method.why


def _standing(facts: PublicFacts, row: PlanRow) -> float:
    """What is expected, with what the other method has to be ahead by."""
    favoured = row.expected is not None and row.expected.other_labels and row.way == _mostly_ahead(facts)
    return (-math.inf if row.expected is None else row.expected.merit) + BETWEEN_METHODS * favoured


def _brief(row: PlanRow, rows: Sequence[PlanRow]) -> bool:
    """Whether a row was rehearsed less than others of its method were: its figure is coarse, and comes after theirs."""
    played = [0 if other.expected is None else other.expected.rehearsals for other in rows if other.way == row.way]
    return row.expected is not None and row.expected.rehearsals < max(played, default=0)


def _balance(facts: PublicFacts, row: PlanRow, rows: Sequence[PlanRow]) -> float:
    """Noise in a vote share against the recipe's, plus the bias of so few rows; tested answers come last."""
    if row.way == "direct":
        return 10.0 if _mostly_ahead(facts) == "votes" else 0.0
    if row.share_noise is None or row.n_teachers is None or getattr(row.mechanism, "may_decline", False):
        return 100.0 - (row.answered or 0.0)
    middle = numbers_of_teachers(replace(facts, tiny=facts.tiny and not row.model), row.mechanism)
    default = middle[len(middle) // 2]
    best = min(
        (other.share_noise * other.n_teachers / default
         for other in rows if other.share_noise and other.n_teachers is not None),
        default=1.0,
    )  # fmt: skip
    return row.share_noise / best + row.n_teachers / default


def _reason(facts: PublicFacts, ordered: Sequence[PlanRow]) -> str:
    """Say in a sentence why the first row is the first."""
    first, rest = ordered[0], [row for row in ordered[1:] if not row.cannot and row.expected is not None]
    if first.cannot:
        return "nothing in this plan can answer with so small a budget and so few private rows"
    if first.expected is not None:
        in_full = [row for row in rest if not _brief(row, ordered)]
        if not in_full:
            return "no other row was rehearsed in full" if rest else "nothing else could be compared with it"
        ahead = first.expected.merit - max(row.expected.merit for row in in_full if row.expected is not None)
        of = "" if len(in_full) == len(rest) else "of the rows that were rehearsed in full "
        if ahead < 0:
            return f"{_why(facts)}, {_TOO_CLOSE.format(of, 100 * -ahead)}"
        if first.expected.scored is not None:
            word = SCORE_WORDS[first.expected.scored.scoring]
            by = f"but less than {CLOSE:g}" if ahead < CLOSE else f"{ahead:.3f}"
            return f"{of}its expected {word} is the best, {by} better than the next row's"
        if ahead < CLOSE:
            return f"{of}its expected accuracy is the highest, but the next row's is less than {CLOSE:g} below it"
        return f"{of}its expected accuracy is the highest, {100 * ahead:.1f} points above the next row's"
    if first.way == "direct":
        return f"{_why(facts)}; whether it is here, a rehearsal on labelled public rows tells"
    if first.way != "votes":
        return "no other row can answer; what accuracy it gives, public rows can tell"
    values = first.mechanism is not None and first.mechanism.releases_values
    more = "noisy vote counts say more than classes at the same price; " if values else ""
    return (
        f"its {several(first.n_teachers or 1, 'teacher')} balance the noise against the error of small teachers"
        f"{', and ' + more if more else '; '}what accuracy that gives, public rows can tell"
    )
