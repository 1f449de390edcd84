"""What a method is to whoever runs it: a folder and an estimator do the same things with either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from quorate.accounting import Guarantee
from quorate.findings import Finding
from quorate.ledger import Budget, Ledger
from quorate.release import Charge
from quorate.report import Facts
from quorate.run.check_result import CheckResult, Words
from quorate.run.chosen_method import ChosenMethod
from quorate.run.facts import RunMetadata
from quorate.run.look import NO_LOOK, Look
from quorate.types import Secret

TaskT = TypeVar("TaskT")


@dataclass(kw_only=True, slots=True)
class Method(Generic[TaskT]):
    """One way to learn from private rows; a task is what `prepare` returned.

    `prepare`: checks everything that may be refused and fills in what was left open; nothing is fitted or charged.
    `check`: what a task would do and cost, in plain values; and the first lines of a check, a word and a line each.
    `charge`: what a task asks of a ledger, or has asked; its key is the same for the same work.
    `draft`: what is known of a report before the charge, and a model of the form that will be published.
    `go`: charges and goes the whole way, or on from where it was killed, with ``stages=`` and ``watch=``. The task of
    its result has what was drawn for it.
    `promised`: what everything that was charged to the ledger guarantees together. `facts`: all that a report says.
    """

    prepare: Callable[..., TaskT]
    check: Callable[[TaskT], tuple[dict[str, Any], Sequence[tuple[str, str]]]]
    charge: Callable[[TaskT, Ledger], Charge]
    draft: Callable[[TaskT, Budget, RunMetadata], tuple[Facts, Any]]
    go: Callable[..., Any]
    promised: Callable[..., Guarantee]
    facts: Callable[[TaskT, Any, Ledger, RunMetadata], Facts]


def check_of(
    method: Method[TaskT],
    task: TaskT,
    *,
    chosen: ChosenMethod | None = None,
    notes: Sequence[Finding],
    cautions: Sequence[Finding],
    private_notes: Secret[tuple[Finding, ...]] | None = None,
    look: Secret[Look | None] = NO_LOOK,
    words: Words | None = None,
) -> CheckResult:
    """Put together what a check finds; `private_notes`, `look`: for the owner of the rows alone."""
    facts, steps = method.check(task)
    if chosen is not None:
        facts, steps = {**facts, "why_method": chosen.why}, [("method", chosen.in_words), *steps]
    listed = {"notes": [finding.tree() for finding in notes], "cautions": [finding.tree() for finding in cautions]}
    return CheckResult(
        found={**facts, **listed},
        steps=tuple(steps),
        cautions=tuple(cautions),
        private_notes=Secret(()) if private_notes is None else private_notes,
        look=look,
        words=words or Words(),
    )
