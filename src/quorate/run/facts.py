"""What is said about every run, whichever method it has: where it comes from, and what it was charged."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from quorate.accounting import Event
from quorate.accounting import epsilon as price
from quorate.ledger import Ledger
from quorate.release.guarantee import left_of, spent_of
from quorate.report import ExPost, Part, Provenance, Spending, Utility
from quorate.report.spending import raises_of
from quorate.students import AutoStudent, Student

SHOWN_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)  # "how sensitive is the choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMetadata:
    """When and how a run was made: what the shell around it knows."""

    title: str
    command: str
    started: str
    utility: Utility = field(default_factory=Utility)
    collection: str | None = None  # of the private rows, in the owner's words
    readers: tuple[tuple[str, str], ...] = ()  # of files, where they are of another package; and their versions


def provenance_of(
    ledger: Ledger, metadata: RunMetadata, *, seeded: bool, public_digests: tuple[tuple[str, str], ...]
) -> Provenance:
    """Say where a report comes from; `public_digests`: what public tables are called, and their digests."""
    return Provenance(
        run=metadata.title,
        started=metadata.started,
        command=metadata.command,
        seeded=seeded,
        noise="a given seed" if seeded else "the operating system's entropy",
        ledger_head=ledger.head.hash,
        ledger_entries=ledger.head.sequence,
        versions=(
            *((name, version(name)) for name in ("quorate", "numpy", "scipy", "scikit-learn")),
            ("python", platform.python_version()),
            *metadata.readers,
        ),
        public_digests=public_digests,
    )


def spending_of(
    ledger: Ledger,
    event: Event,
    delta: float,
    parts: tuple[Part, ...],
    *,
    answers_left: int | None = None,
    ex_post: ExPost | None = None,
) -> Spending:
    """Say what the budget was, what was charged and what is left; `event`, `delta`: what this run was charged for."""
    budget = ledger.budget
    (spent_epsilon, spent_delta), (left_epsilon, left_delta) = spent_of(ledger), left_of(ledger)
    return Spending(
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
        spent_epsilon=spent_epsilon,
        spent_delta=spent_delta,
        left_epsilon=left_epsilon,
        left_delta=left_delta,
        composition=budget.composition,
        answers_left=answers_left,
        durable=ledger.durable,
        parts=parts,
        ex_post=ex_post,
        raises=raises_of(ledger),
        run_epsilon=price(event, delta),
        run_delta=delta,
    )


def name_of(model: Any) -> str:
    """Name of a model, by default its class; the steps of a Pipeline in order; how a student learned in brackets."""
    if isinstance(model, Student):
        taught = name_of(model.learner)
        return taught if isinstance(model, AutoStudent) else f"{taught} ({type(model).__name__})"
    steps = getattr(model, "steps", None)
    return (
        " → ".join(type(getattr(step, "estimator", step) if _is_frozen(step) else step).__name__ for _, step in steps)
        if steps
        else getattr(type(model), "called_in_prose", type(model).__name__)
    )


def _is_frozen(step: Any) -> bool:
    """Whether a step only keeps another one from being fitted again."""
    return type(step).__name__ == "FrozenEstimator"
