"""What a method is to whoever runs it: a folder and an estimator do the same five things with either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from quorate.findings import Finding
from quorate.ledger import Budget, Ledger
from quorate.release import Charge
from quorate.report import Facts
from quorate.run.check_result import CheckResult, Words
from quorate.run.chosen_method import ChosenMethod
from quorate.run.facts import RunMetadata
from quorate.run.look import NO_LOOK, Look
from quorate.run.stage_store import StageStore
from quorate.types import Secret, Watch

TaskT = TypeVar("TaskT")


class Method(Protocol[TaskT]):
    """One way to learn from private rows; a task is what its :meth:`prepare` returned."""

    @property
    def prepare(self) -> Callable[..., TaskT]:
        """What checks everything that may be refused and fills in what was left open; nothing is fitted or charged."""

    def check(self, task: TaskT) -> tuple[dict[str, Any], Sequence[tuple[str, str]]]:
        """Say what a task would do and cost, in plain values; and the first lines of a check, a word and a line."""

    def charge(self, task: TaskT, ledger: Ledger, key: str | None = None) -> Charge:
        """Return what a task asks of a ledger, or has asked; `key`: by default the same for the same work."""

    def draft(self, task: TaskT, budget: Budget, metadata: RunMetadata) -> tuple[Facts, Any]:
        """Gather what is known of a report before the charge, and a model of the form that will be published."""

    def go(
        self,
        task: TaskT,
        ledger: Ledger,
        *,
        stages: StageStore | None = None,
        key: str | None = None,
        watch: Watch | None = None,
    ) -> tuple[TaskT, Any]:
        """Charge and go the whole way, or on from where it was killed; the task has what was drawn for it."""

    def facts(self, task: TaskT, result: Any, ledger: Ledger, metadata: RunMetadata) -> Facts:
        """Gather everything that a report says."""


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
