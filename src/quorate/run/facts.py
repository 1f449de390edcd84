"""What is said about every run: where it comes from, what it was charged, what the best attacker can do."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from quorate.accounting import Event, Guarantee, trade_off_of, worlds_told_apart
from quorate.accounting import delta as delta_of
from quorate.accounting import epsilon as epsilon_of
from quorate.accounting.attacker import worlds_told_apart_by
from quorate.labelling import PrivateLimit
from quorate.ledger import Ledger, Reservation
from quorate.release import Charge
from quorate.release.guarantee import left_of, spent_of
from quorate.report import AttackCurve, ExPost, Part, Provenance, Spending, Utility
from quorate.report.spending import raises_of
from quorate.students import AutoStudent, Student

T = TypeVar("T")

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


@dataclass(frozen=True, kw_only=True)
class Result(Generic[T]):
    """What came of a run; all of it may be published. `task`: with the pool that was drawn, where there were no public
    rows. `model`: what predicts for free. `limit`: of prediction sets or intervals, where units were held out and it
    was not lost.
    """

    task: T
    model: Any
    charge: Charge
    reservation: Reservation
    limit: PrivateLimit | None = None


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
        run_epsilon=epsilon_of(event, delta),
        run_delta=delta,
    )


def name_of(model: Any) -> str:
    """Name of a model, by default its class; the steps of a Pipeline in order; how a student learned in brackets."""
    if isinstance(model, Student):
        taught = name_of(model.learner)
        return taught if isinstance(model, AutoStudent) else f"{taught} ({type(model).__name__})"
    steps = getattr(model, "steps", None)
    return (
        " → ".join(
            type(getattr(step, "estimator", step) if type(step).__name__ == "FrozenEstimator" else step).__name__
            for _, step in steps
        )
        if steps
        else getattr(type(model), "called_in_prose", type(model).__name__)
    )


#: ε at which the price is asked for its curve, in parts of the ε of the run.
PARTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 1.0, 1.5, 2.5)


def attack_curve(event: Event, epsilon: float, delta: float, *, beside: Guarantee | None = None) -> AttackCurve:
    """Return the trade-off curve of everything that an event releases. Beside a guarantee that covers other charges,
    too, the pairs of worlds are not told: they would be taken for what all of it leaves.
    """
    trade_off = trade_off_of([(part * epsilon, delta_of(event, part * epsilon)) for part in PARTS])
    curve = AttackCurve(false_alarms=trade_off.false_alarms, misses=trade_off.misses)
    if beside is not None and (beside.epsilon > epsilon or beside.delta > delta):
        return curve
    return replace(
        curve, told_apart=worlds_told_apart_by(delta_of(event, 0.0)), allowed=worlds_told_apart(epsilon, delta)
    )
