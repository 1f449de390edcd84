"""The default recipe: how many teachers, how many queries, what is released, which student.

A pure function of public facts. It looks at no private row, so it costs nothing and can be read by anyone who wants
to know why a run was set up as it was. What each number follows from: ``docs/theory/recipe.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.accounting import Composed, Event
from quorate.accounting.figures import plural, several
from quorate.accounting.neighbouring import Relation
from quorate.arguments import count, one_of
from quorate.data.declared_schema import Schema
from quorate.errors import InvalidParameter, named
from quorate.findings import Finding
from quorate.mechanisms import Mechanism, StreamMechanism, for_runs, noise_fields
from quorate.mechanisms.schedule import DEFAULT, check_schedule, mechanism_for
from quorate.run.cautions import considered
from quorate.run.drawn_pool import PoolPlan, plan_pool
from quorate.run.public_facts import PublicFacts

ROWS_FACTOR = 0.25
WIDTH_CAP = 1_000  # columns beyond this are taken as redundant: words, pixels
QUERY_CAP = 10_000  # more answers change the run time and nothing else
ANSWERS_PER_COLUMN = 10  # where classes are released and not votes, more answers mean more noise in each
FEWEST_ROWS = 4  # two of each of two classes: with fewer, teachers are constants
UNCOUNTED = 4_000  # units, where a better number of teachers is named and nobody said how many units there are
TINY = {True: (150.0, 3), False: (300.0, 2)}  # x for each row of a tiny teacher, and its fewest rows; two classes, more
FEW_ROWS = 30  # of a tiny teacher, beyond which their number grows with the root of x
MOST_TEACHERS = 10_000  # tiny ones: more take memory and time, and tell nothing more


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What a run does: K teachers, ℓ public points to label, answers kept back, what crosses the boundary, and why.
    `considered`: what was looked for. `pool`: noisy counts from which a pool is drawn, in the same charge.
    """

    n_teachers: int
    n_queries: int
    online_answers: int
    mechanism: Mechanism
    why: tuple[str, ...]
    considered: tuple[Finding, ...] = ()
    pool: PoolPlan | None = None

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What the owner should hear: the cautions that apply."""
        return tuple(caution for caution in self.considered if caution.applies)

    def saying(self, *why: str, considered: Sequence[Finding] = ()) -> Recipe:
        """Return it with more reasons, and with more that was looked for."""
        return replace(self, why=(*self.why, *why), considered=(*self.considered, *considered))

    @property
    def event(self) -> Event:
        """The whole schedule, labels and online answers, as one event."""
        return self.event_for("replace" if self.pool is None else self.pool.marginals.neighbours)

    @property
    def answers(self) -> Event:
        """The part of the schedule that is answers: all of it, unless a pool is drawn."""
        return self.mechanism.schedule(self.n_queries + self.online_answers)

    def event_for(self, neighbours: Relation) -> Event:
        """Return the schedule for a change of one unit: noisy counts before answers, which have one price for all."""
        return self.answers if self.pool is None else Composed((self.pool.event_for(neighbours), self.answers))


def recipe(
    facts: PublicFacts,
    *,
    n_teachers: int | None = None,
    n_queries: int | None = None,
    mechanism: Mechanism | type[Mechanism] | str | None = None,
    fields: Mapping[str, Any] | None = None,
    declared: Schema | None = None,
    share: float | None = None,
) -> Recipe:
    """Fill in whatever the user left open, independent of private data, given `facts`. `mechanism`: one; or its class
    or name, whose noise is filled in. `declared`: what columns hold where rows are drawn from noisy counts, which get
    `share` of μ².
    """
    why = []
    if mechanism is None:
        mechanism = DEFAULT
        why.append("noisy vote counts cost no more privacy than the winning class alone, and carry more information")
    if isinstance(mechanism, str):
        mechanism = for_runs()[one_of("mechanism", mechanism, for_runs())]
    kind = mechanism if isinstance(mechanism, type) else type(mechanism)
    tiny = facts.tiny and kind.releases_values
    others = 0 if n_teachers is None else (facts.n_records or UNCOUNTED) // FEWEST_ROWS  # that might be asked for
    if n_teachers is None:
        n_teachers, reason = _teachers(facts, tiny=tiny)
        why.insert(0, reason)
    else:
        _refuse_too_many(n_teachers, facts, tiny=tiny)
    if n_queries is None:
        n_queries, reason = _queries(kind, facts)
        why.append(reason)
    else:
        _refuse_more_than_pool(n_queries, facts)
    answers = n_queries + facts.online_answers
    pool = None if declared is None else _drawn_pool(declared, facts, share)
    if isinstance(mechanism, type):
        mechanism = mechanism_for(
            mechanism,
            fields or {},
            n_classes=facts.n_classes,
            n_teachers=n_teachers,
            answers=answers,
            epsilon=facts.epsilon,
            delta=facts.delta,
            beside=None if pool is None else pool.event_for(pool.marginals.neighbours),
        )
        if noise_fields(kind) and not fields:
            why.append(
                f"the noise of {type(mechanism).__name__} is the least that {several(answers, 'answer')} at this "
                f"budget allow{'s' * (answers == 1)}"
            )
    else:
        check_schedule(mechanism, n_teachers=n_teachers, answers=answers)
    return Recipe(
        n_teachers=n_teachers,
        n_queries=n_queries,
        online_answers=facts.online_answers,
        mechanism=mechanism,
        why=tuple(why),
        considered=considered(facts, mechanism, n_teachers=n_teachers, n_queries=n_queries, most_teachers=others),
        pool=pool,
    )


def _refuse_more_than_pool(n_queries: int, facts: PublicFacts) -> None:
    if count("n_queries", n_queries, at_least=1) > facts.n_public:
        raise InvalidParameter(
            f"{named('n_queries', n_queries)} but there are {facts.n_public:,} distinct public points; ask at most "
            "that many",
            parameter="n_queries",
            got=n_queries,
        )


def _drawn_pool(declared: Schema, facts: PublicFacts, share: float | None) -> PoolPlan:
    """Plan the pool that is drawn where there are no public rows."""
    return plan_pool(
        declared,
        facts.mu,
        n_units=_known(facts),
        neighbours="add-or-remove" if facts.neighbours == "add-or-remove" else "replace",
        share=share,
        n_rows=facts.n_public,
        averaged=False,  # shares of votes were not tried again
    )


def _teachers(facts: PublicFacts, *, tiny: bool) -> tuple[int, str]:
    """K, and why: as many teachers as there are shards of :func:`rows_per_teacher` rows, and units to fill them."""
    units = _known(facts)
    rows, total = tiny_rows(facts) if tiny else rows_per_teacher(facts), facts.rows or units
    n_teachers = max(1, min(units, round(total / rows)))
    size = f"{several(n_teachers, 'teacher')} of about {several(round(total / n_teachers), 'row')} each"
    if total == units:
        size = f"{several(n_teachers, 'teacher')} of about {several(round(total / n_teachers), facts.unit)} each"
    elif n_teachers == units:
        return (
            n_teachers,
            f"{size}, as many as there are {plural(facts.unit)}: each {facts.unit} goes to one teacher, whole",
        )
    if tiny:
        return n_teachers, f"{size}: small ones, since what a vote adds to the noise grows faster than what it tells"
    return n_teachers, f"{size}, chosen to balance the noise against the error of small teachers"


def _refuse_too_many(n_teachers: int, facts: PublicFacts, *, tiny: bool) -> None:
    n_records = facts.n_records or n_teachers
    if count("n_teachers", n_teachers, at_least=1) > n_records:
        suggested, _ = _teachers(facts, tiny=tiny)
        raise InvalidParameter(
            parameter="n_teachers",
            got=n_teachers,
            expected=f"at most {n_records:,}, the number of {plural(facts.unit)}",
            advice=f"try {named('n_teachers', suggested)}",
        )


def _queries(mechanism: type[Mechanism], facts: PublicFacts) -> tuple[int, str]:
    if mechanism.releases_values:
        n_queries = min(facts.n_public, QUERY_CAP)
        them = "them all" if n_queries > 1 else "it"
        return n_queries, f"{several(n_queries, 'query')}: a student of noisy votes loses nothing by asking {them}"
    if issubclass(mechanism, StreamMechanism):
        return facts.n_public, f"{several(facts.n_public, 'query')}: answers are free until too many were declined"
    n_queries = min(facts.n_public, ANSWERS_PER_COLUMN * min(max(facts.width, 1), WIDTH_CAP))
    return (
        n_queries,
        f"{several(n_queries, 'query')}: about ten for each column, since more would mean more noise in each class",
    )


def rows_per_teacher(facts: PublicFacts) -> float:
    r"""Return :math:`r = \tfrac14\sqrt{\mu n \sqrt{w/(C - 1)}}` rows, at least four."""
    width = min(max(facts.width, 1), WIDTH_CAP) / (facts.n_classes - 1)
    return max(ROWS_FACTOR * math.sqrt(facts.mu * (facts.rows or _known(facts)) * math.sqrt(width)), FEWEST_ROWS)


def tiny_rows(facts: PublicFacts) -> float:
    """Return how many rows a tiny teacher gets, at least two."""
    rows = facts.rows or _known(facts)
    x = facts.mu * rows
    per_class, fewest = TINY[facts.n_classes == 2]
    wanted = x / (per_class * math.sqrt(facts.n_classes - 1))
    if wanted > FEW_ROWS:
        wanted = min(math.sqrt(FEW_ROWS * wanted), facts.most_tiny)
    return max(round(wanted), fewest, rows / MOST_TEACHERS)


def _known(facts: PublicFacts) -> int:
    if facts.n_records is None:
        raise InvalidParameter(
            f"{named('n_records')} is needed to choose the number of teachers; declare it, or give "
            f"{named('n_teachers')}"
        )
    return facts.n_records
