"""The audit of a mechanism by its name, before any run: the code that would answer, against what it says it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from quorate.arguments import count
from quorate.audit import audit_schedule, setting_of, sizes_for
from quorate.errors import InvalidParameter
from quorate.folder.audited import RUNS, RunAudit
from quorate.mechanisms import Mechanism, check_own, noise_fields
from quorate.mechanisms.schedule import check_mechanism, mechanism_for
from quorate.types import Watch

NO_SHARDS = "None were audited: a mechanism alone has no teachers."


def mechanism_to_audit(
    kind: type[Mechanism],
    fields: Mapping[str, Any],
    *,
    n_teachers: int,
    n_classes: int,
    answers: int,
    epsilon: float | None,
    delta: float,
) -> Mechanism:
    """Make the mechanism that is to be audited, as a run would make it.

    `kind`: its class. `fields`: those that are given. `n_teachers`, `n_classes`, `answers`: k ≥ 1, C ≥ 2 and the number
    of answers ≥ 1. `epsilon`: what all answers may cost together; None where the noise is given. `delta`: at which ε is
    told. Raises InvalidParameter if neither noise nor ε is given, or the mechanism is refused.
    """
    count("--n-teachers", n_teachers, at_least=1)
    count("--n-classes", n_classes, at_least=2)
    count("--answers", answers, at_least=1)
    noise = noise_fields(kind)
    if noise and epsilon is None and not set(noise) <= set(fields):
        wanted = " ".join(f"--set {field}=..." for field in noise)
        raise InvalidParameter(f"how much noise has {kind.__name__}? Give {wanted}, or --epsilon to have it filled in")
    mechanism = mechanism_for(
        kind,
        fields,
        n_classes=n_classes,
        n_teachers=n_teachers,
        answers=answers,
        epsilon=1.0 if epsilon is None else epsilon,
        delta=delta,
    )
    check_mechanism(mechanism, n_classes=n_classes)
    check_own(mechanism, n_teachers=n_teachers, n_classes=n_classes, answers=answers)
    return mechanism


def audit_alone(
    mechanism: Mechanism,
    *,
    n_teachers: int,
    n_classes: int,
    answers: int,
    delta: float,
    confidence: float = 0.95,
    runs: int = RUNS,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> RunAudit:
    """Attack a mechanism on made-up votes; the arguments are those of :func:`~quorate.audit.audit_schedule`.

    Privacy: made of public numbers alone. Nothing is charged.
    """
    begun, event = clock(), mechanism.schedule(answers)
    schedule = audit_schedule(
        mechanism,
        event,
        n_teachers=n_teachers,
        n_classes=n_classes,
        delta=delta,
        confidence=confidence,
        runs=runs,
        seed=seed,
        n_jobs=n_jobs,
        watch=watch,
    )
    return RunAudit(
        schedule=schedule,
        sizes=sizes_for(setting_of(mechanism, event, n_teachers, n_classes, delta), schedule),
        delta=delta,
        shards=None,
        without_shards=NO_SHARDS,
        seeded=False,
        seed=seed,
        seconds=clock() - begun,
    )
