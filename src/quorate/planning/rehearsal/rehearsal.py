r"""Play the rows of a plan on public rows: all of them briefly, then the best of them at length.

The best of several rows is expected too well, and by how much can be told: ``docs/theory/rehearsals.md``.

Gradient rounds are played without private rows: labelled public rows stand for all units, each many times over. T rows
that stand for n units, with noise of :math:`\sigma T/n`, take the steps of all units with noise of σ. Rows are scored
by their integer coordinates; what a run publishes differs from that by rounding alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from quorate.deferred import special
from quorate.direct.budgets import Outline
from quorate.direct.rounds import Descent, PrivateUnits
from quorate.mechanisms import Mechanism, NoisyCounts
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE
from quorate.planning.plan_row import PlanRow, numbers_of_teachers
from quorate.planning.rehearsal.estimate import Played, estimate, estimate_value
from quorate.planning.rehearsal.material import Material
from quorate.planning.rehearsal.votes import (
    SampledVotes,
    Shards,
    released_data,
    right_alone,
    said_by_student,
    sample_votes,
    settled,
)
from quorate.release.charge import noise_and_key
from quorate.run.public_facts import PublicFacts
from quorate.students.scores import ScoredRows
from quorate.types import FloatArray, IntArray


def without_luck(rows: Sequence[PlanRow], plays: Mapping[str, Sequence[Played]]) -> list[PlanRow]:
    """Return the rows with the differences between those that `plays` holds shrunk to what is no luck."""
    expected = {row.key: row.expected for row in rows if row.expected is not None and row.key in plays}
    if not expected or len({tuple(play.fold for play in plays[key]) for key in expected}) > 1:
        return list(rows)  # a row that could not be played in every division is compared with none
    luck = 1 - kept(np.array([_in_divisions(plays[key], [play.whole for play in plays[key]]) for key in expected]))
    mean = float(np.mean([expectation.accuracy for expectation in expected.values()]))
    moved = {key: expectation.moved(luck * (mean - expectation.accuracy)) for key, expectation in expected.items()}
    scored = {key: expectation.scored for key, expectation in expected.items() if expectation.scored is not None}
    if len(scored) == len(expected):
        values = [_in_divisions(plays[key], [play.values[0] for play in plays[key]]) for key in expected]
        luck, mean = 1 - kept(np.array(values)), float(np.mean([score.value for score in scored.values()]))
        moved = {
            key: expectation.moved(0.0, scored_by=luck * (mean - scored[key].value))
            for key, expectation in moved.items()
        }
    return [replace(row, expected=moved[row.key]) if row.key in moved else row for row in rows]


def _in_divisions(played: Sequence[Played], values: Sequence[float]) -> list[float]:
    folds = np.array([play.fold for play in played])
    return [float(np.mean(np.asarray(values)[folds == fold])) for fold in np.unique(folds)]


def kept(accuracies: FloatArray) -> float:
    """Return which share of the differences between rows, by their accuracy in each division, is no luck, in [0, 1]."""
    n_rows, n_divisions = accuracies.shape
    if n_rows < 2 or n_divisions < 2:
        return 1.0
    own = accuracies - accuracies.mean(axis=0)
    of_rows = own.mean(axis=1)
    left = float(((own - of_rows[:, None]) ** 2).sum() / ((n_rows - 1) * (n_divisions - 1)))
    between = float(n_divisions * (of_rows**2).sum() / (n_rows - 1))
    return 1 - left / between if left < between else 0.0


REFINED = 4  # rows that are played at length, beside the recipe's own and the direct method
SECONDS_A_CELL = 3e-7  # of one student: measured on tables of 100 to 800 columns
SECONDS = 16.0  # that all students together may take, more or less
COSTLY = 8  # times as long as a logistic regression takes the default student, which compares models in folds
WIDEST = 1_000  # columns beyond which a student is not taken to cost more: it reads directions of the pool
FEWEST_ASKED = 400
FOLDS, REPEATS = 8, 2  # of the direct method, whose rounds take less time than students of votes do

Length: TypeAlias = Literal["first look", "another budget", "at length"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How much is played, by sizes alone: divisions, draws of noise, teachers for a shard's size, rows of the pool."""

    folds: int
    repeats: int
    teachers: int
    n_asked: int
    every_row: bool

    @classmethod
    def of(cls, n_public: int, width: int, n_classes: int, *, costly: bool = False) -> Effort:
        """Return the effort for a task of this size; a costly student compares models of the votes by itself."""
        one = (COSTLY if costly else 1) * SECONDS_A_CELL * n_public * min(max(width, 10), WIDEST) * n_classes
        one *= max(n_classes, 2) / 2  # each class has weights of its own, and takes more steps beside others
        for folds, repeats, teachers, students in (
            (4, 3, 128, 300),
            (3, 2, 128, 190),
            (2, 2, 64, 150),
            (2, 1, 64, 120),
        ):
            if one * students <= SECONDS:
                return cls(folds=folds, repeats=repeats, teachers=teachers, n_asked=n_public, every_row=True)
        n_asked = int(min(n_public, max(FEWEST_ASKED, n_public * SECONDS / (one * 24))))
        return cls(folds=2, repeats=1, teachers=64, n_asked=n_asked, every_row=False)


@dataclass(slots=True, eq=False)
class Rehearsal:
    """What is expected of a plan's rows, by playing them; its `facts` have the sizes, whatever ε is asked for."""

    material: Material
    facts: PublicFacts
    effort: Effort
    seed: int = 0
    _votes: dict[tuple[int, int, int], SampledVotes | None] = field(default_factory=dict)
    _outlines: dict[float, tuple[Outline, FloatArray]] = field(default_factory=dict)
    _plays: dict[tuple[Any, ...], tuple[Any, Played | None]] = field(default_factory=dict)
    _alone: dict[int, float] = field(default_factory=dict)

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Return the rows with what is expected of them; those that cannot be played stay as they are."""
        if len(rows) == 1:  # the way of a plan's first row, at another ε
            return [self._with_expectation(rows[0], self._played(facts, rows[0], "another budget"))]
        briefly = {
            row.key: self._with_expectation(row, self._played(facts, row, "first look"))
            for row in rows
            if self.effort.every_row or row.way == "direct" or isinstance(row.mechanism, NoisyCounts)
        }
        known = {key: row.expected.merit for key, row in briefly.items() if row.expected is not None}
        best = {*sorted(known, key=lambda key: -known[key])[:REFINED], *(key for key in known if self._kept(key))}
        plays = {row.key: self._played(facts, row, "at length") for row in rows if row.key in best}
        refined = [
            self._with_expectation(row, plays[row.key]) if row.key in plays else briefly.get(row.key, row)
            for row in rows
        ]
        return without_luck(
            refined, {row.key: plays[row.key] for row in rows if row.way == "votes" and row.key in plays}
        )

    def _kept(self, key: str) -> bool:
        """Whether a row is played at length however it did: the direct method, and the recipe's own."""
        numbers = numbers_of_teachers(self.facts)
        return key.startswith(("direct/", f"votes/NoisyCounts/{numbers[len(numbers) // 2]}/"))

    def _with_expectation(self, row: PlanRow, played: list[Played]) -> PlanRow:
        if not played:
            return row
        expected = estimate(played, self.material.basis, n_classes=self.facts.n_classes, mixed=self.mixed)
        baseline = self.material.baseline
        if baseline is not None and all(play.values for play in played):
            expected = replace(expected, scored=estimate_value(played, self.material.scoring, baseline))
        answered = row.answered if row.way != "votes" else float(np.mean([play.answered for play in played]))
        return replace(row, expected=replace(expected, rehearsals=len(played)), answered=answered)

    def _played(self, facts: PublicFacts, row: PlanRow, length: Length) -> list[Played]:
        if row.cannot or (row.way == "votes" and row.mechanism is None):
            return []
        folds, repeats = self._folds_and_repeats(row, length)
        plays = [self._once(facts, row, fold, repeat) for fold in range(folds) for repeat in range(repeats)]
        return [play for play in plays if play is not None]

    def _folds_and_repeats(self, row: PlanRow, length: Length) -> tuple[int, int]:
        """How many divisions are played, and how many draws of the noise for each."""
        effort, divided = self.effort, row.way == "direct" and self.effort.folds > 1
        if length == "first look":
            return 1, 1
        if length == "another budget":
            return (FOLDS // 2 if divided else 2 if effort.every_row else 1), 1
        return (FOLDS, REPEATS) if divided else (effort.folds, effort.repeats)

    def _once(self, facts: PublicFacts, row: PlanRow, fold: int, repeat: int) -> Played | None:
        """Play it, or recall what came of the same play: what was played briefly is part of playing at length."""
        key = (row.key, id(row.mechanism), facts.epsilon, fold, repeat)
        if key not in self._plays:  # which holds the mechanism, so that no other has its id
            votes = row.way == "votes"
            play = self._play_votes(facts, row, fold, repeat) if votes else self._play_direct(facts, fold, repeat)
            self._plays[key] = row.mechanism, play
        return self._plays[key][1]

    # --- teachers ----------------------------------------------------------------------------------------------------

    def _play_votes(self, facts: PublicFacts, row: PlanRow, fold: int, repeat: int) -> Played | None:
        assert row.mechanism is not None and row.n_teachers is not None and row.n_queries is not None  # noqa: S101, PT018
        material = self.material.of_row(row)
        sampled = self._sampled(row.n_teachers, fold, material)
        if sampled is None:
            return None
        _, held = self._divided(fold, self.effort.folds)
        queries, mechanism = self._queries(row.n_queries, row.mechanism)
        voters = Shards.of(self.facts, row.n_teachers).voters
        how: dict[str, Any] = {"n_teachers": row.n_teachers, "voters": voters, "seed": self._seed(fold, repeat)}
        answers = [released_data(material, shares, mechanism, queries, **how) for shares in sampled.ensembles]
        student = settled(material.student, answers[0])  # the halves learn as the whole does, and need not choose
        scored = [said_by_student(material, student, data, held) for data in answers]
        return Played(
            hits=np.stack([part.predicted == part.truth for part in scored]),
            values=self._values(scored),
            fold=fold,
            size=sampled.independent / voters,
            answered=float(answers[0].released.answered.mean()),
        )

    def _values(self, said: Sequence[ScoredRows]) -> tuple[float, ...]:
        """Return the chosen score of the whole and its parts; none where that is accuracy, or cannot be had."""
        if self.material.scoring == "accuracy":
            return ()
        values = [part.score(self.material.scoring) for part in said]
        known = tuple(value for value in values if value is not None)
        return known if len(known) == len(values) else ()

    def _queries(self, n_queries: int, mechanism: Mechanism) -> tuple[IntArray, Mechanism]:
        """Return the rows to ask; where fewer are asked than in the run, with as much less noise in each."""
        order = np.random.default_rng([self.seed, 5]).permutation(self.material.n_public)
        queries = np.sort(order[: min(n_queries, self.effort.n_asked)])
        noise = mechanism.answer_noise
        if len(queries) < n_queries and isinstance(mechanism, NoisyCounts) and noise is not None:
            mechanism = replace(mechanism, sigma=noise.scale * (len(queries) / n_queries) ** 0.5)
        return queries, mechanism

    def _sampled(self, n_teachers: int, fold: int, material: Material) -> SampledVotes | None:
        key = (n_teachers, fold, id(material))  # which the rehearsal's own material holds
        if key not in self._votes:
            trained_on, held = self._divided(fold, self.effort.folds)
            self._votes[key] = sample_votes(
                material,
                trained_on,
                held,
                shards=Shards.of(self.facts, n_teachers),
                n_teachers=max(2, 2 * (min(n_teachers, self.effort.teachers) // 2)),
                seed=self._seed(fold, 0),
            )
        return self._votes[key]

    def right_alone(self, n_teachers: int | None, n_rows: int) -> float | None:
        """Return how often one teacher, of `n_teachers` or `n_rows`, is right on rows that it has not seen, if any."""
        plain = self.material.plain or self.material
        if n_teachers is not None:
            sampled = self._sampled(n_teachers, 0, plain)
            return None if sampled is None else sampled.right
        if n_rows not in self._alone:
            trained_on, held = self._divided(0, self.effort.folds)
            self._alone[n_rows] = right_alone(plain, trained_on, held, n_rows, seed=self._seed(0, 0))
        return self._alone[n_rows]

    @property
    def mixed(self) -> bool:
        """Whether persons of several rows are played by rows of anybody."""
        return (self.facts.rows or 0) > (self.facts.n_records or math.inf) and self.material.groups is None

    # --- rounds ------------------------------------------------------------------------------------------------------

    def _play_direct(self, facts: PublicFacts, fold: int, repeat: int) -> Played | None:
        if self.material.schema is None:
            return None
        outline, z = self._outline(facts)
        # The fewer divisions there are, the fewer rows play all of the private ones.
        trained_on, held = self._divided(fold, FOLDS if self.effort.folds > 1 else 1)
        rng = np.random.default_rng(self._seed(fold, 0))
        halves = self.material.divided(trained_on, 2, rng)
        if not (len(held) and all(map(len, halves))):  # fewer persons than divisions, or one who is all that is left
            return None
        quarters = [quarter for half in halves for quarter in self.material.divided(half, 2, rng)]
        parts = [trained_on, *halves, *(quarters if all(map(len, quarters)) else ())]  # one person is not divided
        rows_each = (facts.rows or 1) / (facts.n_records or 1)
        codes, how = self.material.codes, dict[str, Any](rows_each=rows_each, seed=self._seed(fold, repeat))
        logits = [
            round_logits(outline, z, codes, part, held, share=len(part) / len(trained_on), **how) for part in parts
        ]
        scored = [
            self.material.scored(codes_of_logits(of_part), probabilities_of_logits(of_part), held) for of_part in logits
        ]
        return Played(
            hits=np.stack([part.predicted == part.truth for part in scored]),
            values=self._values(scored),
            fold=fold,
            size=len(trained_on) / (facts.rows or len(trained_on)),
        )

    def _outline(self, facts: PublicFacts) -> tuple[Outline, FloatArray]:
        """Return what the direct method would do, and the labelled rows in its coordinates; the last one is kept."""
        assert self.material.direct is not None  # noqa: S101 - where there is a schema
        if facts.epsilon not in self._outlines:
            outline = self.material.direct.outline_of(facts)
            self._outlines.clear()
            self._outlines[facts.epsilon] = outline, outline.integers(self.material.along)
        return self._outlines[facts.epsilon]

    # --- who plays what ----------------------------------------------------------------------------------------------

    def _divided(self, fold: int, folds: int) -> tuple[IntArray, IntArray]:
        """Return the labelled rows that play private ones, and those that are scored on."""
        every, rng = np.arange(len(self.material.codes)), np.random.default_rng([self.seed, 2])
        held = self.material.divided(every, max(2, folds), rng)[fold]
        return np.setdiff1d(every, held), np.sort(held)

    def _seed(self, fold: int, repeat: int) -> int:
        return 1 + self.seed + 1_000 * fold + 17 * repeat

    @property
    def not_rehearsed(self) -> str | None:
        """Say that shards are larger than what could be rehearsed, where that is so."""
        missing = [n_teachers for (n_teachers, _, _), votes in self._votes.items() if votes is None]
        if not missing:
            return None
        large = "is larger than half of the labelled public rows"
        if self.material.in_pool is not None:
            large = "is too large for the public rows that play it"
        return f"with {max(missing):,} teachers or fewer a shard {large}, and could not be rehearsed"

    @property
    def constant(self) -> tuple[int, ...]:
        """Numbers of teachers at which every sampled teacher says one class whatever it is asked."""
        own = [(n, votes) for (n, _, material), votes in self._votes.items() if material == id(self.material)]
        return tuple(sorted({n for n, votes in own if votes is not None and votes.one_class}))


MOST_UNITS = 40  # of several rows each
MOST_ROWS = 20_000  # that are drawn for them


def codes_of_logits(logits: FloatArray) -> IntArray:
    """Return the likeliest class of each row."""
    return np.asarray(logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(axis=1), dtype=np.int64)


def probabilities_of_logits(logits: FloatArray) -> FloatArray:
    """Return ``(n_rows, n_classes)`` probabilities."""
    both = np.column_stack([np.zeros(len(logits)), logits[:, 0]]) if logits.shape[1] == 1 else logits
    return np.asarray(special.softmax(both, axis=1))


def round_logits(
    plan: Outline,
    z: FloatArray,
    codes: IntArray,
    trained_on: IntArray,
    held: IntArray,
    *,
    rows_each: float,
    share: float,
    seed: int,
) -> FloatArray:
    """Go all rounds on rows that play the private ones; return logits ``(n_held, n_outputs)`` of the held-out rows.
    `rows_each`: of a unit, on average. `share`: of the rows that play, half of which are half as many units.
    """
    rng = np.random.default_rng(seed)
    starts, n_units, rows = None, len(trained_on), trained_on
    if rows_each >= 2:
        rows_of_one = round(rows_each)
        n_units = max(2, round(share * min(plan.n_units, MOST_UNITS, MOST_ROWS // rows_of_one)))
        rows = rng.choice(trained_on, n_units * rows_of_one)
        starts = np.arange(n_units + 1, dtype=np.int64) * rows_of_one
    with np.errstate(all="ignore"):
        summing = PrivateUnits(z[rows], codes[rows], starts).summing(plan.grid)  # of classes: one grid for all rounds
        start = np.zeros((z.shape[1], plan.n_outputs))
        descent = Descent(plan.settings, plan.grid, n_units, start)
        noise, _ = noise_and_key(seed)
        for _ in range(plan.settings.rounds):
            drawn = _drawn(plan.sigma, n_units / plan.n_units, start.shape, noise)
            descent.take(summing(descent.weights) + drawn)
        return np.asarray(np.ldexp(z[held] @ plan.shrunk(descent.result(), n_units, descent.n_rounds), -plan.grid.bits))


def _drawn(sigma: float, times: float, shape: tuple[int, ...], noise: NoiseSource) -> IntArray:
    """Return discrete Gaussian noise of `times` as much, or noise as large where that is more than can be drawn."""
    if sigma * times <= MAX_SCALE:
        return discrete_gaussian(max(sigma * times, 1.0), shape, noise)
    drawn: IntArray = np.rint(discrete_gaussian(sigma, shape, noise) * times).astype(np.int64)
    return drawn
