"""One row of a plan: a way to spend the budget, and what it would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quorate.accounting import Event
from quorate.mechanisms import Mechanism
from quorate.planning.margins import AnswerProbabilities
from quorate.run.expected import Expected

Way: TypeAlias = Literal["votes", "direct", "few labels"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRow:
    """A method with everything that fixes it; public in every part.

    `way`: teachers vote; noisy gradient rounds on the private rows themselves; a private learner of a named class.
    `name`: what releases: the class of a mechanism, or of a learner.
    `mechanism`: with its noise, where teachers vote.
    `event`: what the rounds of the direct method release; what teachers release follows from `mechanism` and
        `n_queries`.
    `model`: name of the teachers' model where it is compared with another; empty for the one that was given, or the
        default.
    `n_teachers`, `n_queries`: k, and the public points that are asked.
    `rows_each`: rows of a teacher, on average; None where the number of private rows is not known.
    `noise`: the noise in words, with its unit.
    `answered`: share of the queries that is answered: expected where there was a rehearsal, else of queries on which
        all teachers agree.
    `probabilities`: of an answer, by its margin.
    `share_noise`: how well a student of all answers knows a vote share: a standard deviation, before teachers' own
        errors.
    `expected`: accuracy of the student; None where nothing tells it.
    `cannot`: why this cannot answer, or is not to be had here; empty where it can.
    `priced`: ε by what is compared, where the two relations have prices of their own; empty where one holds for both.
    `why`: what speaks for it, in one sentence without a full stop.
    `mind`: what speaks against it, likewise; empty where nothing that was looked for does.
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
