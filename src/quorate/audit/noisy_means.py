"""The noisy means of teachers' numbers, attacked: one answer, and all of them together.

The attacker knows all teachers but one, which is at one end of the range or at the other, on made-up queries. What
teachers add to a sum, and the noise, are made by the functions that a run makes them with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quorate.accounting import Event, GridGaussian, Repeated
from quorate.audit.plans import FEWEST, share_of
from quorate.audit.rounds import attack_gaussian
from quorate.audit.schedules import Charge, ScheduleAudit
from quorate.mechanisms import NoisyMean
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray, Watch

_NUMBERS = 40_000_000  # noisy sums that the runs of one attack draw together
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
class _Answers:
    """Tables of places ``(n_tables, n_teachers)`` in; sums over `queries` noisy sums of what they add out."""

    mechanism: Any
    queries: int
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one table."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each table."""
        sums, step = self.mechanism.steps(counts).sum(axis=1), max(1, _BLOCK // self.queries)
        parts = [sums[start : start + step] for start in range(0, len(sums), step)]
        noisy = [self.mechanism.release_many(np.repeat(part, self.queries)[:, None], noise) for part in parts]
        return np.concatenate([part.reshape(-1, self.queries).sum(axis=1) for part in noisy])


@stored_as("quorate.audit.noisy_means.audit_means")
def audit_means(
    mechanism: NoisyMean,
    event: Event,
    *,
    queries: int,
    delta: float,
    confidence: float = 0.95,
    runs: int = 100_000,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
) -> ScheduleAudit:
    """Attack one noisy mean, and all of them together, and compare what was charged with what is released.

    Parameters
    ----------
    mechanism : NoisyMean
        Of the run.
    event : Event
        What was charged for all answers.
    queries : int
        How many answers there are, at least 1.
    delta, confidence, runs, seed, n_jobs, watch
        As for :func:`~quorate.audit.audit_rounds`.

    Notes
    -----
    Privacy: made of public settings alone.

    Examples
    --------
    >>> mechanism = NoisyMean(sigma=20.0)
    >>> how = {"queries": 10, "delta": 1e-5, "runs": 2_000, "seed": 0}
    >>> audit = audit_means(mechanism, Repeated(mechanism.event, 10), **how)
    >>> audit.violated, len(audit.attacks)
    (False, 2)
    """
    see = watch or (lambda stage, done, total: None)
    one = event.event if isinstance(event, Repeated) else event
    assert isinstance(one, GridGaussian)  # noqa: S101 - what a noisy mean is charged as
    planned: list[tuple[str, int, Event]] = [("one noisy mean: a teacher at either end of the range", 1, one)]
    planned += [(f"all {queries:,} noisy means: likewise, on each", queries, event)] if queries > 1 else []
    share, attacks = share_of(confidence, len(planned)), []
    middle = np.full(_OTHERS, mechanism.grid)
    tables = np.append(middle, 2 * mechanism.grid), np.append(middle, 0)
    for name, answers, charged in planned:
        most = min(runs, max(FEWEST, _NUMBERS // answers))
        how: dict[str, Any] = {
            "delta": delta,
            "confidence": share,
            "runs": most,
            "seed": seed,
            "n_jobs": n_jobs,
            "watch": see,
        }
        attacks.append(attack_gaussian(name, _Answers(mechanism, answers), tables, charged, answers, **how))
    return ScheduleAudit(
        attacks=tuple(attacks),
        comparisons=(),
        stage=None,
        confidence=confidence,
        charge=Charge(charged=event, released=mechanism.schedule(queries), delta=delta),
        sees=SEES,
        does_not_see=DOES_NOT_SEE,
    )
