"""What a method is to whoever runs it, a folder or an estimator; and what a check of it finds: what a run or a fit
would do and cost, as a value that prints, and that programs read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from quorate.accounting import Guarantee
from quorate.accounting.figures import plural
from quorate.accounting.neighbouring import Neighbouring
from quorate.findings import Finding, Severity
from quorate.ledger import Budget, Ledger
from quorate.release import Charge
from quorate.report import Facts
from quorate.report.notation import under_label
from quorate.run.cautions import rehearsal_caution
from quorate.run.expectation import BASES, Expected
from quorate.run.facts import Result, RunMetadata
from quorate.run.look import NO_LOOK, Look
from quorate.run.public_facts import ChosenMethod
from quorate.run.remarks import NAMES, Names
from quorate.students.scores import SCORE_WORDS
from quorate.types import Secret

SEEDED_LINE = "seeded noise: reproducible, therefore not private, so no promise holds. Remove unsafe_noise_seed"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class CheckResult:
    """What a fit or a run would do and cost. Printed, it is what ``quorate check`` prints.

    `found`: the same in plain values, as ``quorate check --json`` has them.
    `cautions`: what to know before the budget is spent: each has a code, a severity and an outcome.
    `private_notes`: what there is to say about the private table, for its owner alone: it depends on private rows, is
    outside the guarantee, and is in no other attribute and not in :meth:`to_json`. Printing shows it, since who
    checks is who holds the rows; ``.reveal()`` gives it.
    `look`: the owner's own look at the private rows, where it was asked for: as :attr:`private_notes`, it is printed,
    and is nowhere else.
    `steps`: the first lines: a word, and what it does.
    `names`: how things are named.

    Examples
    --------
    >>> CheckResult(found={"why": ["one shard a teacher"], "classes": ["no", "yes"]}, steps=(("train", "9 teachers"),))
    Everything fits. A fit would
      train      9 teachers
      classes    no, yes
      why        one shard a teacher
    <BLANKLINE>
    Nothing was charged.
    """

    found: Mapping[str, Any]
    steps: tuple[tuple[str, str], ...]
    cautions: tuple[Finding, ...] = ()
    private_notes: Secret[tuple[Finding, ...]] = field(default_factory=lambda: Secret(()))
    look: Secret[Look | None] = NO_LOOK
    names: Names = NAMES

    @property
    def sound(self) -> bool:
        """Whether there is nothing to be careful about: a note alone is none."""
        return _without_caution(self.cautions)

    def expecting(self, expected: Expected | None, commonest: float) -> CheckResult:
        """Return the same with what a rehearsal on labelled public rows says of the student."""
        caution = rehearsal_caution(expected, commonest)
        heard = (caution,) if caution.applies else ()
        line = "not known: a shard has more rows than half of the labelled public ones"
        beside = f"{100 * commonest:.1f} %"
        if expected is not None:
            line = f"accuracy {expected}, {BASES[expected.basis]}"
            if (scored := expected.scored) is not None:
                line = f"{expected}; accuracy {100 * expected.accuracy:.1f} %; {BASES[expected.basis]}"
                beside = f"{SCORE_WORDS[scored.scoring]} {scored.baseline:.3f}, accuracy {beside}"
        return replace(
            self,
            found={
                **self.found,
                "cautions": [*self.found.get("cautions", ()), *(finding.tree() for finding in heard)],
                "expected": None if expected is None else expected.tree(),
                "commonest_class": round(commonest, 4),
            },
            steps=(*self.steps, ("expect", f"{line}; always saying the commonest class: {beside}")),
            cautions=(*self.cautions, *heard),
        )

    def expecting_nothing(self, why: str) -> CheckResult:
        """Return the same with the reason for which nothing was rehearsed."""
        return replace(self, found={**self.found, "not_rehearsed": why}, steps=(*self.steps, ("expect", why)))

    def noting(self, more: Iterable[Finding]) -> CheckResult:
        """Return the same with more notes on what is public."""
        notes = [*self.found.get("notes", ()), *(note.tree() for note in more)]
        return replace(self, found={**self.found, "notes": notes})

    def to_json(self) -> str:
        """Return :attr:`found` as one JSON object; no private row has a part in it."""
        return json.dumps(dict(self.found), ensure_ascii=False, indent=2)

    def text(self) -> str:
        """Return what is printed on the owner's terminal, :attr:`private_notes` among it."""
        head = f"Everything fits. {self.names.act} would"
        if not (self.sound and _without_caution(self.private_notes.reveal())):
            head = f"Everything fits, with caution. {self.names.act} would"
        rows = (under_label(f"  {word}", line, room=13) for word, line in self._rows())
        return "\n".join((head, *(line for row in rows for line in row)))

    def _rows(self) -> Iterator[tuple[str, str]]:
        facts, names = self.found, self.names
        yield from self.steps
        if "classes" in facts:
            yield "classes", ", ".join(str(label) for label in facts["classes"])
        if "target_range" in facts:
            low, high = facts["target_range"]
            yield "predict", f"a number from {low:.15g} to {high:.15g}; a target beyond is taken as the nearer end"
        yield from (("why", sentence) for sentence in facts.get("why", ()))
        if facts.get("n_is_treated_as_public"):
            units = plural(facts["unit"])
            read = f"the number of {units} was read off {names.private} and is treated as public"
            yield "note", f"{read}; {names.n_records} declares it"
        if facts.get("rows_are_treated_as_public"):
            yield "note", f"the number of private rows was read and is treated as public; {names.n_rows} declares it"
        yield from map(_line_of, self.cautions)
        yield from (("note", note["message"]) for note in facts.get("notes", ()))
        yield from map(_line_of, self.private_notes.reveal())
        if (look := self.look.reveal()) is not None:
            yield from look.lines()
        if facts.get("seeded"):
            yield "WARNING", SEEDED_LINE

    def __str__(self) -> str:
        return f"{self.text()}\n\nNothing was charged."

    __repr__ = __str__


def _without_caution(findings: Iterable[Finding]) -> bool:
    return all(finding.severity is Severity.NOTE for finding in findings)


def _line_of(finding: Finding) -> tuple[str, str]:
    return "note" if finding.severity is Severity.NOTE else "caution", finding.words


def unit_line(neighbouring: Neighbouring) -> list[tuple[str, str]]:
    """Return the first line of a check where the guarantee is for one row."""
    return [("unit", neighbouring.whose_rows)] if neighbouring.whose_rows else []


TaskT = TypeVar("TaskT")


@dataclass(kw_only=True, slots=True)
class Method(Generic[TaskT]):
    """One way to learn from private rows; a task is what `prepare` returned.

    `prepare`: checks everything that may be refused and fills in what was left open; nothing is fitted or charged.
    `check`: what a task would do and cost, in plain values; and the first lines of a check, a word and a line each.
    `cautions`: what its owner should hear before the budget is spent, from public facts alone: with ``pool_name=`` of
    the public rows, and ``left_out=``, columns that are no features and in no public table.
    `charge`: what a task asks of a ledger, or has asked; its key is the same for the same work.
    `nothing`: what has come of a task once it was charged, with ``charge=`` and ``reservation=``; its model has the
    form that will be published, where `form_is_known` before.
    `go`: charges and goes the whole way, or on from where it was killed, with ``stages=`` and ``watch=``. The task of
    its result has what was drawn for it.
    `promised`: what everything that was charged to the ledger guarantees together. `facts`: all that a report says.
    """

    prepare: Callable[..., TaskT]
    check: Callable[[TaskT], tuple[dict[str, Any], Sequence[tuple[str, str]]]]
    cautions: Callable[..., tuple[Finding, ...]]
    charge: Callable[[TaskT, Ledger], Charge]
    nothing: Callable[..., Result[TaskT]]
    go: Callable[..., Any]
    promised: Callable[..., Guarantee]
    facts: Callable[[TaskT, Any, Ledger, RunMetadata], Facts]
    form_is_known: bool = True

    def draft(self, task: TaskT, budget: Budget, metadata: RunMetadata) -> tuple[Facts, Any]:
        """Gather what is known of a report before the charge, on a ledger in memory: what cannot be said costs nothing;
        and the model as far as its form is known.
        """

        def gathered() -> tuple[Facts, Any]:
            with Ledger(budget=budget) as ledger:
                charge = self.charge(task, ledger)
                result = self.nothing(task, charge=charge, reservation=charge.reserve(ledger))
                return self.facts(task, result, ledger, metadata), result.model if self.form_is_known else None

        return copy_context().run(gathered)  # the act of its caller has not charged anything


def check_of(
    method: Method[TaskT],
    task: TaskT,
    *,
    chosen: ChosenMethod | None = None,
    notes: Sequence[Finding],
    cautions: Sequence[Finding] | None = None,
    private_notes: Secret[tuple[Finding, ...]] | None = None,
    look: Secret[Look | None] = NO_LOOK,
    names: Names = NAMES,
) -> CheckResult:
    """Put together what a check finds; `private_notes`, `look`: for the owner of the rows alone. `cautions`: by default
    those of the method.
    """
    facts, steps = method.check(task)
    cautions = method.cautions(task) if cautions is None else cautions
    if chosen is not None:
        facts, steps = {**facts, "why_method": chosen.why}, [("method", chosen.in_words), *steps]
    listed = {"notes": [finding.tree() for finding in notes], "cautions": [finding.tree() for finding in cautions]}
    return CheckResult(
        found={**facts, **listed},
        steps=tuple(steps),
        cautions=tuple(cautions),
        private_notes=Secret(()) if private_notes is None else private_notes,
        look=look,
        names=names,
    )
