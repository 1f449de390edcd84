"""The noisy means of teachers' numbers, attacked: one answer, and all of them together; and counts of targets before.

The attacker knows all teachers but one, at one end of the range or at the other, on made-up queries; and all targets
but one. Contributions, cells and noise are made by the functions that a run makes them with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.accounting import Composed, Event, Repeated
from quorate.audit.plans import PlannedAttack, share_of
from quorate.audit.rounds import as_many_as_fit
from quorate.audit.sampled import ByStream
from quorate.audit.schedules import Charge, ScheduleAudit
from quorate.data.labels import STEPS
from quorate.mechanisms import NoisyMean
from quorate.mechanisms.noisy_mean import TargetCounts
from quorate.noise import NoiseSource
from quorate.run.located import COUNTING
from quorate.stored_names import stored_as
from quorate.types import IntArray, Watch

_BLOCK = 4_000_000  # at once
_OTHERS = 2  # teachers that stay as they are: of the sum their number changes nothing
SEES = (
    "a teacher that moves a sum by so much more than the range that the claim of one answer or of all is broken",
    "noise so small that the same claim is broken",
)
DOES_NOT_SEE = (
    "a teacher that is trained on rows of another",
    "noise that is wrong in some runs alone, or on one machine",
)


@dataclass(frozen=True, slots=True)
class _Answers(ByStream):
    """Tables of places ``(n_tables, n_teachers)`` in; sums over `queries` noisy sums of what they add out."""

    mechanism: Any
    queries: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each table."""
        tables, which = np.unique(counts, axis=0, return_inverse=True)
        on_each = np.repeat(tables[..., None], self.queries, axis=-1)  # of a teacher, whose numbers may be one vector
        sums = self.mechanism.steps(on_each)[..., 0].sum(axis=1)[which.ravel()]
        step = max(1, _BLOCK // self.queries)
        parts = [sums[start : start + step] for start in range(0, len(sums), step)]
        noisy = [self.mechanism.release_many(np.repeat(part, self.queries)[:, None], noise) for part in parts]
        return np.concatenate([part.reshape(-1, self.queries).sum(axis=1) for part in noisy])


@dataclass(frozen=True, slots=True)
class _Counts(ByStream):
    """Tables of targets ``(n_tables, n_units)`` in; by how much `times` noisy counts of the outer cells differ out."""

    mechanism: Any
    times: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each table."""
        exact = np.array([self.mechanism.counts_of(targets, 0, STEPS) for targets in counts])
        noisy = self.mechanism.release_many(np.repeat(exact, self.times, axis=0), noise)
        return np.asarray((noisy[:, 0] - noisy[:, -1]).reshape(-1, self.times).sum(axis=1))


@stored_as("quorate.audit.noisy_means.audit_means")
def audit_means(
    mechanism: NoisyMean,
    event: Event,
    *,
    queries: int,
    counts: TargetCounts | None = None,
    delta: float,
    confidence: float = 0.95,
    runs: int = 100_000,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
) -> ScheduleAudit:
    """Attack one noisy mean, and all of them together, and compare what was charged with what is released.

    `mechanism`: of the run. `event`: what was charged for all answers. `queries`: how many answers there are, at least
    1. `counts`: of the targets, released before; then `event` composes what they cost with what the answers cost.
    `delta`, `confidence`, `runs`, `seed`, `n_jobs`, `watch`: as for :func:`~quorate.audit.audit_rounds`.

    Privacy: made of public settings alone.
    """
    before, means = event.events if counts is not None and isinstance(event, Composed) else (None, event)
    one = means.event if isinstance(means, Repeated) else means
    middle = np.full(_OTHERS, mechanism.grid)
    tables = np.append(middle, 2 * mechanism.grid), np.append(middle, 0)
    planned: list[tuple[str, Any, tuple[IntArray, IntArray], Event, int]] = [
        ("one noisy mean: a teacher at either end of the range", _Answers(mechanism, 1), tables, one, 1)
    ]
    if queries > 1:
        every = f"all {queries:,} noisy means: likewise, on each"
        planned.append((every, _Answers(mechanism, queries), tables, means, queries))
    if counts is not None and before is not None:
        times = before.times if isinstance(before, Repeated) else 1
        targets = np.append(middle, STEPS), np.append(middle, 0)
        name = f"{times:,} noisy counts of targets: a unit's at either end of the range"
        planned.append((name, _Counts(counts, times), targets, before, times * counts.cells))
    share, attacks = share_of(confidence, len(planned)), []
    for name, attacked, pair, charged, numbers in planned:
        attack = PlannedAttack(name=name, neighbours=pair, event=charged, runs=as_many_as_fit(runs, numbers))
        attacks.append(attack.audit(attacked, share, delta=delta, seed=seed, n_jobs=n_jobs, watch=watch))
    released = mechanism.schedule(queries)
    if counts is not None:
        released = Composed((counts.schedule(COUNTING), released))
    return ScheduleAudit(
        attacks=tuple(attacks),
        comparisons=(),
        stage=None,
        confidence=confidence,
        charge=Charge(charged=event, released=released, delta=delta),
        sees=SEES,
        does_not_see=DOES_NOT_SEE,
    )
