"""The rows of a plan, each a way to spend the budget and what it would bring: by votes, and by the direct method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from quorate.accounting import Event, epsilon
from quorate.accounting.figures import at_least, at_most, several
from quorate.accounting.neighbouring import OTHER, Neighbouring
from quorate.direct.budgets import Outline
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    Mechanism,
    NoisyCounts,
    PermuteAndFlip,
    StableSparseVector,
    StreamMechanism,
)
from quorate.mechanisms.schedule import mechanism_for
from quorate.planning.margins import AnswerProbabilities, answer_probabilities
from quorate.run.cautions import reach, rounds_caution
from quorate.run.expectation import Expected
from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import QUERY_CAP, WIDTH_CAP, recipe

Way: TypeAlias = Literal["votes", "direct", "few labels"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRow:
    """A method with everything that fixes it; public in every part.

    `name`: the class of a mechanism, or of a learner.
    `event`: what the rounds of the direct method release; what teachers release follows from `mechanism`.
    `model`: name of the teachers' model where it is compared with another; empty for the one that was given.
    `rows_each`: rows of a teacher, on average; None where the number of private rows is not known.
    `noise`: in words, with its unit.
    `answered`: share of the queries: expected by a rehearsal, else of those on which all teachers agree.
    `probabilities`: of an answer, by its margin.
    `share_noise`: standard deviation with which a student of all answers knows a vote share.
    `expected`: accuracy of the student; None where nothing tells it.
    `cannot`: why this cannot answer, or is not to be had here; empty where it can.
    `priced`: ε by what is compared, where the two relations have prices of their own.
    `why`, `mind`: what speaks for it and against it, in one sentence each without a full stop.
    """

    way: Way
    name: str
    mechanism: Mechanism | None = None
    event: Event | None = None
    model: str = ""
    n_teachers: int | None = None
    n_queries: int | None = None
    rows_each: float | None = None
    noise: str = ""
    answered: float | None = None
    probabilities: AnswerProbabilities | None = None
    share_noise: float | None = None
    expected: Expected | None = None
    cannot: str = ""
    priced: str = ""
    why: str = ""
    mind: str = ""

    @property
    def key(self) -> str:
        """The row in one word, for programs: ``votes/NoisyCounts/178/1000``, or with ``/tree`` behind it."""
        parts = (self.way, self.name, self.n_teachers, self.n_queries, self.model or None)
        return "/".join(str(part) for part in parts if part is not None)

    def released(self, online_answers: int = 0) -> Event | None:
        """Return what a run of this row releases, with the answers that it keeps back; None where that is not told."""
        if self.mechanism is None or self.n_queries is None:
            return self.event
        return self.mechanism.schedule(self.n_queries + online_answers)

    def tree(self) -> dict[str, Any]:
        """Return the row as JSON has it."""
        return {
            "key": self.key,
            "method": self.way,
            "mechanism": self.name,
            "model": self.model or None,
            "n_teachers": self.n_teachers,
            "n_queries": self.n_queries,
            "rows_each": None if self.rows_each is None else round(self.rows_each, 2),
            "noise": self.noise,
            "share_noise": None if self.share_noise is None else round(self.share_noise, 6),
            "answered": None if self.answered is None else round(self.answered, 4),
            "by_margin": None if self.probabilities is None else self.probabilities.tree(),
            "expected": None if self.expected is None else self.expected.tree(),
            "cannot": self.cannot or None,
            "priced": self.priced or None,
            "why": self.why,
            "mind": self.mind or None,
        }


FACTORS = (0.5, 1.0, 2.0)  # of the recipe's number of teachers
TYPICAL = 0.2  # a margin at which an answer is worth something: teachers of few rows agree no further
MAJORITY = 0.6  # of the teachers, for a test of the largest count
DECLINED_SHARE, MOST_DECLINED = 0.02, 20  # of the queries, that a stream may decline: its cut-off

#: The mechanisms of the default grid, and what a user would have to give, from K and m.
KINDS: Mapping[type[Mechanism], Callable[[int, int], dict[str, Any]]] = {
    NoisyCounts: lambda k, m: {},
    GaussianNoisyMax: lambda k, m: {},
    LaplaceNoisyMax: lambda k, m: {},
    PermuteAndFlip: lambda k, m: {},
    ConfidentNoisyMax: lambda k, m: {"threshold": MAJORITY * k},
    DistanceToInstability: lambda k, m: {},
    StableSparseVector: lambda k, m: {"cutoff": max(1, min(MOST_DECLINED, round(DECLINED_SHARE * m)))},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """What is compared where teachers vote; None leaves a choice to the defaults. `models`: by noisy votes alone."""

    mechanisms: Sequence[type[Mechanism] | Mechanism] | None = None
    n_teachers: Sequence[int] | None = None
    queries: Sequence[int] | None = None
    models: Sequence[str] = ()


def vote_rows(facts: PublicFacts, grid: Grid | None = None) -> tuple[PlanRow, ...]:
    """Return a row for each mechanism, number of teachers and number of queries, or refuse one out of range."""
    grid, calibrated = grid or Grid(), _Calibrated(facts)

    def rows_of(facts: PublicFacts) -> tuple[PlanRow, ...]:
        return tuple(
            _row(facts, calibrated, kind, n_teachers, n_queries)
            for kind in (KINDS if grid.mechanisms is None else grid.mechanisms)
            for n_teachers in grid.n_teachers or numbers_of_teachers(facts, kind)
            for n_queries in grid.queries or _numbers_of_queries(facts, kind)
        )

    rows, of_others = rows_of(facts), rows_of(replace(facts, tiny=False)) if grid.models else ()
    compared = [row for row in of_others if row.name == NoisyCounts.__name__] or of_others
    return (*rows, *(replace(row, model=model) for model in grid.models for row in compared))


def numbers_of_teachers(facts: PublicFacts, kind: type[Mechanism] | Mechanism | None = NoisyCounts) -> tuple[int, ...]:
    """Return the recipe's number of teachers for a mechanism, half and twice as many; no more than there are units."""
    values = kind is not None and kind.releases_values
    facts = replace(facts, tiny=facts.tiny and values)
    middle = recipe(facts, n_queries=1, mechanism=NoisyCounts(sigma=1.0, form=_form(facts))).n_teachers
    most = facts.n_records or middle
    return tuple(sorted({min(most, max(1, round(factor * middle))) for factor in FACTORS}))


def _form(facts: PublicFacts) -> Any:
    return "binary" if facts.n_classes == 2 else "histogram"


def _numbers_of_queries(facts: PublicFacts, kind: type[Mechanism] | Mechanism) -> tuple[int, ...]:
    """As many as the recipe asks; and all of them where single answers are what is wanted of more noise."""
    mechanism = kind if isinstance(kind, type) else type(kind)
    if mechanism.releases_values or issubclass(mechanism, StableSparseVector):
        return (min(facts.n_public, QUERY_CAP),)
    few = recipe(facts, n_teachers=1, mechanism=GaussianNoisyMax(sigma=1.0, form=_form(facts))).n_queries
    return (few, facts.n_public) if mechanism is GaussianNoisyMax and few < facts.n_public else (few,)


class _Calibrated:
    """Noise is found once for each kind and number of answers: it does not depend on K."""

    def __init__(self, facts: PublicFacts) -> None:
        self._facts = facts
        self._made: dict[tuple[type[Mechanism], int], Mechanism] = {}

    def __call__(self, kind: type[Mechanism], n_teachers: int, n_queries: int) -> Mechanism:
        facts = self._facts
        own = KINDS.get(kind)
        sizes = {} if own is None else own(n_teachers, n_queries)
        mechanism = self._made.get((kind, n_queries))
        if mechanism is None:
            mechanism = mechanism_for(
                kind,
                sizes,
                n_classes=facts.n_classes,
                n_teachers=n_teachers,
                answers=n_queries + facts.online_answers,
                epsilon=facts.epsilon,
                delta=facts.delta,
            )
            self._made[kind, n_queries] = mechanism
        return replace(mechanism, **sizes) if sizes else mechanism


def _row(
    facts: PublicFacts, calibrated: _Calibrated, kind: type[Mechanism] | Mechanism, n_teachers: int, n_queries: int
) -> PlanRow:
    rows_each = None if facts.rows is None else facts.rows / n_teachers
    name = kind.__name__ if isinstance(kind, type) else type(kind).__name__
    row_facts: dict[str, Any] = {"n_teachers": n_teachers, "n_queries": n_queries, "rows_each": rows_each}
    try:
        mechanism = calibrated(kind, n_teachers, n_queries) if isinstance(kind, type) else kind
    except InvalidParameter as refusal:  # no amount of noise fits, or the budget leaves no room
        return PlanRow(way="votes", name=name, **row_facts, cannot=str(refusal))
    task = {"n_teachers": n_teachers, "n_classes": facts.n_classes}
    best = mechanism.answerable(**task)
    out = reach(mechanism, **task, n_queries=n_queries)
    passed = None if mechanism.test is None else mechanism.passes(mechanism.test.largest(n_teachers))
    probabilities = answer_probabilities(mechanism, n_teachers=n_teachers, n_classes=facts.n_classes)
    return PlanRow(
        way="votes",
        name=name,
        mechanism=mechanism,
        **row_facts,
        noise=noise_in_words(mechanism),
        answered=1.0 if mechanism.test is None else passed if passed is not None else best.probability,
        probabilities=probabilities,
        share_noise=share_noise(facts, mechanism, probabilities, n_teachers=n_teachers, n_queries=n_queries),
        cannot=_cannot(mechanism, n_teachers) if out.applies else "",
    )


def _cannot(mechanism: Mechanism, n_teachers: int) -> str:
    """Say in a clause why nothing can be answered; the whole sentence is that of a refusal."""
    test = mechanism.test
    if test is not None and test.largest(n_teachers) < test.threshold:
        teachers = f"{several(n_teachers, 'teacher')} who all agree"
        if test.statistic == "largest count":
            return (
                f"it takes {test.threshold:,.0f} votes for one class, and {teachers} give {test.largest(n_teachers):,}"
            )
        return (
            f"it answers where a tie is at least {test.threshold:,.0f} votes away, and {teachers} are "
            f"{test.largest(n_teachers):,} away"
        )
    if test is not None:
        return f"where all of {several(n_teachers, 'teacher')} agree, their class comes out less often than not"
    return f"all answers together do not tell a unanimous vote of {n_teachers:,} from a tie"


def share_noise(
    facts: PublicFacts,
    mechanism: Mechanism,
    probabilities: AnswerProbabilities | None,
    *,
    n_teachers: int,
    n_queries: int,
) -> float | None:
    r"""Return how well a student of w weights knows a vote share from all answers; None where no law is stated.

    Noisy votes know it to :math:`\sigma/K` each, all together to :math:`\sqrt{w/\ell}` of that. A class that comes out
    with probability p at a lead of m, :data:`TYPICAL`, each other with q, is as good as a share with noise
    :math:`\tfrac m2 \sqrt{p + q - (p - q)^2}/(p - q)`.
    """
    together = math.sqrt(min(max(facts.width, 1), WIDTH_CAP, n_queries) / n_queries)
    noise = mechanism.answer_noise
    if mechanism.releases_values and noise is not None:
        return noise.scale / n_teachers * together
    if probabilities is None or isinstance(mechanism, StreamMechanism):  # which is closed by what it declines
        return None
    at = probabilities.margins.index(TYPICAL)
    p = probabilities.plurality[at]
    q = (probabilities.answered[at] - p) / (facts.n_classes - 1)
    if not p > q:
        return None
    return TYPICAL / 2 * math.sqrt(max(p + q - (p - q) ** 2, 0.0)) / (p - q) * together


def noise_in_words(mechanism: Mechanism) -> str:
    """Say how much noise there is, such as "b = 166.7 votes"."""
    noise = mechanism.answer_noise
    if noise is not None and noise.distribution == "gaussian":
        return f"σ = {at_least(noise.scale)} votes"
    if noise is not None and noise.distribution == "laplace":
        return f"b = {at_least(noise.scale)} votes"
    if mechanism.test is not None:
        return f"none in an answer; the test stands at {mechanism.test.threshold:,.0f} votes"
    epsilon = getattr(mechanism, "epsilon", None)
    return "" if epsilon is None else f"ε = {at_least(epsilon)} an answer"


NAME = "gradient rounds"


def direct_row(facts: PublicFacts, outline: Outline) -> PlanRow:
    """Return the row of a direct run that public rows have fixed."""
    settings = outline.settings
    chosen = Neighbouring.of(facts.relation, facts.unit)
    other = Neighbouring.of(OTHER[facts.relation], facts.unit)
    beside = epsilon(outline.event_for(OTHER[facts.relation]), facts.delta)
    return PlanRow(
        way="direct",
        name=NAME,
        noise=f"{at_least(outline.noise)} on each of {outline.numbers:,} numbers, in {settings.rounds} rounds",
        event=outline.event,
        why=f"a linear model of {outline.dimension:.3g} effective dimensions; one {facts.unit} moves a round by "
        f"{settings.clip:.3g} at most",
        priced=f"ε = {at_most(facts.epsilon)} for {chosen.changing}; {at_most(beside, 3)} for {other.changing}",
        mind=rounds_caution(outline.largest_share, facts.n_records or 1, facts.unit).words,
    )


def direct_row_unknown(why: str) -> PlanRow:
    """Return a row that says why nothing is known of the direct method."""
    return PlanRow(way="direct", name=NAME, cannot=f"not compared: {why}")
