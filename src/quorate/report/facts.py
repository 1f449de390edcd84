"""The facts of a report: what the public edition may say, as one frozen tree of plain values.

Every value in the tree is released, public, or independent of the private data; whoever builds it answers for
that. The rest of the room turns the tree into words and pictures and sees nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from json import JSONDecodeError, dumps, loads
from typing import Any, ClassVar

from quorate.accounting import Guarantee
from quorate.errors import InvalidParameter
from quorate.findings import Finding
from quorate.plugins import METHODS
from quorate.report.findings import AttackCurve, Audit, Choice, Fitted
from quorate.report.notation import escaped
from quorate.report.plain import Plain, as_json, read, require
from quorate.report.spending import AnswerCounts, Spending
from quorate.report.student_file import StudentFile
from quorate.report.utility import Utility
from quorate.stored_names import stored_name


def name_of(function: Callable[..., Any]) -> str:
    """Return the name that facts have for the function that ran a check, wherever its file moves."""
    return stored_name(function)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds(Plain):
    """The settings of noisy gradient rounds, all of them public facts, and what became of the rounds.

    `feature_map`: what the model is linear in, in words.
    `n_coordinates`: numbers that a row has in public coordinates.
    `effective_dimension`, `ridge`: d(κ) and κ.
    `clip`: B: the length that the gradient of one unit is cut off at.
    `noise`: standard deviation on each number of a round, in the unit of the gradient.
    `rounds`, `stored`, `interrupted`: T, the rounds that the model rests on, and those that were drawn and lost when a
    process ended.
    `rate`, `momentum`: η, and the share of a step that is kept for the next.
    `n_units`: n₀, the number of units that a step is divided by.
    `residual_ridge`: κ of what kernels add to linear features, which is whitened by itself; None where there is one
    whitening.
    `averaged`: the share of the rounds, the last ones, whose weights were averaged; None for half of them.
    `shrunk`: whether weights were shrunk by their known error afterwards; None for no.
    `counts`, `counts_noise`: how many of the stored rounds counted units in cells, and the standard deviation on each
    count; None for none.
    """

    feature_map: str
    n_coordinates: int
    effective_dimension: float
    ridge: float
    clip: float
    noise: float
    rounds: int
    stored: int
    interrupted: int
    rate: float
    momentum: float
    n_units: int
    residual_ridge: float | None = None
    averaged: float | None = None
    shrunk: bool | None = None
    counts: int | None = None
    counts_noise: float | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("residual_ridge", "averaged", "shrunk", "counts", "counts_noise")

    def _check(self) -> None:
        require(min(self.rounds, self.n_coordinates, self.n_units) >= 1, "rounds, n_coordinates and n_units are >= 1")
        require(min(self.stored, self.interrupted) >= 0, "stored and interrupted are counts, expected >= 0")
        require(self.stored + self.interrupted <= self.rounds, "a round is stored or lost, once")
        require(self.clip > 0 and self.noise > 0, "clip and noise are > 0")


FORMAT = 2  #: version of the JSON form; others are refused

TRUST_MODEL = (
    "The owner of the private rows runs quorate on a machine of their own and is trusted with the rows. "
    "Whoever reads what was published is not trusted, and may know everything else."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup(Plain):
    """What was decided before the private rows were looked at.

    `n_teachers`: K; 0 in the direct method, which has none.
    `partition` ("hash", "balanced", "unit", "declared", "sites", "none"): how units were given to teachers;
    ``"declared"`` for votes made elsewhere, ``"sites"`` for those of several sites, ``"none"`` without teachers.
    `unit`: what one unit is: ``"record"``, ``"patient"``, ...
    `classes`: the class list.
    `n_public`: m, the public rows without labels.
    `n_queries`: ℓ, the public rows whose labels were asked for.
    `teacher`, `student`, `mechanism`: class names.
    `online_answers`: answers kept back for later.
    `n_records`: number of private units, only where it may be published.
    `n_records_from` ("declared", "read", "public"): where it is from: its owner declared it, it was read off the data
    and is treated as public, or whose labels there are is public.
    `n_rows`: number of private rows, where units have several and it was declared or is public.
    `classes_declared`: false where the list was read off private labels, and is therefore treated as public.
    `recipe`: one sentence for each default that was chosen, with its reason.
    `trust_model`: who is trusted with what.
    `data_collection`: how the private rows were collected, in the owner's words.
    `strategy`: what chose the queries from released answers, up to `n_queries`; None where they were fixed beforehand.
    `target_range`: where a number is predicted: the ends of its range, as declared. There are no classes then.
    """

    n_teachers: int
    partition: str
    unit: str
    classes: tuple[str, ...]
    n_public: int
    n_queries: int
    teacher: str
    student: str
    mechanism: str
    online_answers: int = 0
    n_records: int | None = None
    classes_declared: bool = True
    recipe: tuple[str, ...] = ()
    trust_model: str = TRUST_MODEL
    data_collection: str | None = None
    strategy: str | None = None
    n_records_from: str = "declared"
    n_rows: int | None = None
    target_range: tuple[float, float] | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("target_range",)

    def _check(self) -> None:
        least = 0 if self.partition == "none" else 1
        require(self.n_teachers >= least, f"n_teachers must be >= {least}, got {self.n_teachers}")
        kinds = ("hash", "balanced", "unit", "declared", "sites", "none")
        require(self.partition in kinds, f"partition must be one of {', '.join(kinds)}, got {self.partition!r}")
        require(self.unit.strip() != "", "unit must be named: 'record', 'patient', ...")
        of_classes = self.target_range is None
        require(bool(self.classes) == of_classes, "classes must name at least one class, or target_range two numbers")
        sources = ("declared", "read", "public")
        require(
            self.n_records_from in sources,
            f"n_records_from must be one of {', '.join(sources)}, got {self.n_records_from!r}",
        )
        fewest = min(self.n_public, self.n_queries, self.online_answers, self.n_records or 0, self.n_rows or 0)
        require(fewest >= 0, "n_public, n_queries, online_answers, n_records and n_rows are counts, expected >= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance(Plain):
    """Where the report comes from. All of it is printed: no paths of the private side, no plain hash of private rows.

    How long a run took is not among it: that depends on the private rows, and nobody paid for it.

    `run`: a title.
    `started`: date and time, ISO 8601.
    `command`: what was typed.
    `seeded`: whether the noise came from a given seed: then there is no guarantee, and every output says so.
    `noise`: the source of noise, in words.
    `ledger_head`: hash of the last entry.
    `ledger_entries`: number of entries.
    `versions`, `hashes`, `public_digests`, `registry`: names and values; `registry` holds what a public register of
    releases asks for.
    """

    run: str
    started: str
    command: str
    seeded: bool
    noise: str
    ledger_head: str
    ledger_entries: int
    versions: tuple[tuple[str, str], ...] = ()
    hashes: tuple[tuple[str, str], ...] = ()
    public_digests: tuple[tuple[str, str], ...] = ()
    registry: tuple[tuple[str, str], ...] = ()

    def _check(self) -> None:
        require(self.ledger_entries >= 0, f"ledger_entries must be >= 0, got {self.ledger_entries}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts(Plain):
    """Everything that the public edition of a report is made from.

    `guarantee`: what was promised.
    `setup`, `spending`, `answers`, `provenance`, `utility`: the parts.
    `choices`: what other values of ε would have bought.
    `checks`: how the run was made.
    `audit`: what an audit measured.
    `audit_command`: how to make one, printed where there is none yet; without either, the section is left out.
    `fitted`: what came of the student; None where version 0.1 wrote the facts.
    `rounds`: what the direct method was fixed by, and how far it got; None where teachers voted.
    `attacker`: what the best attacker can do who sees what this run released, by its exact price; None where an earlier
    version wrote the facts.
    `student_file`: what whoever opens the student's file must know; None where an earlier version wrote the facts.
    `method`: what learned; None for votes, and for the direct method, which `rounds` tell apart.

    Raises
    ------
    InvalidParameter
        Parts do not fit together: per-class figures of another number of classes, two units, a seeded run whose
        checks say that there was no seed.
    """

    guarantee: Guarantee
    setup: Setup
    spending: Spending
    answers: AnswerCounts
    provenance: Provenance
    utility: Utility = field(default_factory=Utility)
    choices: tuple[Choice, ...] = ()
    checks: tuple[Finding, ...] = ()
    audit: Audit | None = None
    audit_command: str | None = None
    fitted: Fitted | None = None
    rounds: Rounds | None = None
    attacker: AttackCurve | None = None
    student_file: StudentFile | None = None
    method: str | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("method",)

    @property
    def by(self) -> str:
        """What learned, by its name."""
        return self.method or ("votes" if self.rounds is None else "direct")

    @property
    def seeded(self) -> bool:
        """Whether the noise can be drawn again, so that nothing is guaranteed."""
        return self.guarantee.seeded

    def _check(self) -> None:
        if self.provenance.seeded and not self.guarantee.seeded:
            object.__setattr__(self, "guarantee", replace(self.guarantee, seeded=True))  # it may be read alone
        n_classes = len(self.setup.classes)
        require(len(self.answers.per_class) == n_classes, "answers.per_class needs one count for each class")
        for score in (self.utility.student, self.utility.ensemble, self.utility.non_private):
            fits = score is None or len(score.recall) in (0, n_classes)
            require(fits, "recall needs one value for each class, or none at all")
        votes = self.setup.partition != "none"
        require(self.by in METHODS, f"method must be one of {', '.join(METHODS)}, got {self.by!r}")
        require(votes == (self.by == "votes"), "a run has teachers or rounds, and one of the two alone")
        same = self.guarantee.unit == self.setup.unit
        require(same, f"two units: the guarantee says {self.guarantee.unit!r}, the setup {self.setup.unit!r}")
        clean = any(check.code == "seed" and check.holds for check in self.checks)
        require(not (self.seeded and clean), 'a seeded run cannot pass the check "seed"')
        codes = [check.code for check in self.checks]
        require(len(set(codes)) == len(codes), "each check has a code of its own")

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, no spaces, ``"format": 2``."""
        return escaped(dumps(self._tree(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False))

    @classmethod
    def from_json(cls, text: str) -> Facts:
        """Read what :meth:`to_json` or :func:`render_json` wrote, or refuse what is not of this format."""
        try:
            tree = loads(text)
        except JSONDecodeError as error:
            raise InvalidParameter(f"facts: expected JSON, {error.msg} at line {error.lineno}") from None
        written = tree.pop("format", None) if isinstance(tree, dict) else None
        if type(written) is not int or written != FORMAT:
            raise InvalidParameter(f'facts: expected an object with "format": {FORMAT}; another version wrote this')
        facts: Facts = read(cls, tree, "facts")
        return facts

    def _tree(self) -> dict[str, Any]:
        return {"format": FORMAT, **as_json(self)}


def render_json(facts: Facts) -> str:
    """Return the machine-readable edition, indented; :meth:`Facts.from_json` reads it back.

    The order of the keys is that of the report. The text holds released, public or data-independent values only.
    The example of :mod:`quorate.report` shows one.
    """
    return escaped(dumps(facts._tree(), indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
