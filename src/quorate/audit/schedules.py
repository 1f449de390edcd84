"""Everything that one run of a mechanism may answer, attacked from several sides at one confidence.

A mechanism that answers each query by itself is attacked on one answer, on all answers, and on all answers of which
every second one changes. A sparse vector is attacked on short streams; its answers are compared with their exact
distribution, both as a whole stream and step by step; and the exact loss of a stage is compared with what was charged
for it.

False alarms
------------
Each attack and each comparison holds by itself with confidence :math:`1 - α/n`, where :math:`n` is their number, which
depends on public settings alone. So with probability at most :math:`α` one of them flags a correct mechanism (union
bound). Within one of them nothing has to be divided: whatever is learned (weights, means, which attack, which event) is
learned on one half of the runs, and the other half, which is independent of it, is counted once. There the event is
fixed, its counts are binomial, and the Clopper–Pearson bounds hold at :math:`α/n`. The exact sum has no false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from quorate.accounting import Composed, Event, PureDP, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.gaussian import epsilon_of_gaussian
from quorate.arguments import count, real
from quorate.audit.claims import GaussianClaim
from quorate.audit.expected_answers import (
    ExpectedAnswers,
    answers_after_cutoff,
    answers_at_threshold,
    can_be_summed,
    form_of_stages,
)
from quorate.audit.goodness_of_fit import GoodnessOfFit, audit_answers
from quorate.audit.hard_votes import HardVotes, claim_on, every_second, hard_votes
from quorate.audit.many_answers import ContrastsOfAnswers, SumOfAnswers
from quorate.audit.sampled import AuditResult, audit_mechanism
from quorate.audit.step_by_step import StepByStep
from quorate.mechanisms import StableSparseVector

#: Told what is done, and how much of it: ``watch(stage, done, total)``.
Watch: TypeAlias = Callable[[str, int, int], None]

FEWEST = 400
_CELLS = 100_000_000  # noisy counts that all runs of a whole schedule draw together
_CELLS_BESIDE = 20_000_000  # the same, of each further attack on it
_STREAMS = 4_000  # runs of a mechanism that is a Python loop over queries
_STREAMS_COMPARED = 20_000  # runs whose answers are compared with their distribution
_STEPS_COMPARED = 8_000
_ENDS_COMPARED = 100  # what comes after the cut-off is the same in every run
_LONGEST = 10_000  # declined queries in one run


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """One attack on a mechanism, in terms of ε at the run's δ.

    Attributes
    ----------
    name : str
        What was attacked, and on which votes.
    claimed, proved : float
        The ε that was charged for it, and the one that the attack proves from below. Where a Gaussian trade-off curve
        is claimed, the proved ε is that of the curve the attack proves.
    result : AuditResult
        As measured.
    """

    name: str
    claimed: float
    proved: float
    result: AuditResult

    @property
    def violated(self) -> bool:
        """Whether the attack proves more than was charged."""
        return self.proved > self.claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class StageLoss:
    """The privacy loss of one sparse-vector stage, summed exactly, beside what was charged for it.

    Attributes
    ----------
    claimed : float
        The ε that was charged for one stage.
    exact : float
        The largest loss found; it is reached, not estimated.
    """

    claimed: float
    exact: float

    @property
    def violated(self) -> bool:
        """Whether a stage loses more than was charged for it."""
        return self.exact > self.claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleAudit:
    """What attacks on a whole run of a mechanism found.

    Attributes
    ----------
    attacks : tuple of Attack
        Each with a bound on ε.
    comparisons : tuple of GoodnessOfFit
        Of a sparse vector's answers with their exact distribution; none for other mechanisms.
    stage : StageLoss or None
        The exact loss of a sparse-vector stage.
    confidence : float
        With which all of it holds together.
    """

    attacks: tuple[Attack, ...]
    comparisons: tuple[GoodnessOfFit, ...]
    stage: StageLoss | None
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether anything contradicts what was charged."""
        return (
            any(attack.violated for attack in self.attacks)
            or any(comparison.violated for comparison in self.comparisons)
            or (self.stage is not None and self.stage.violated)
        )


def audit_schedule(
    mechanism: Any,
    event: Event,
    *,
    n_teachers: int,
    n_classes: int,
    delta: float,
    confidence: float = 0.95,
    runs: int = 100_000,
    seed: int | None = None,
    n_jobs: int = 1,
    watch: Watch | None = None,
) -> ScheduleAudit:
    """Attack one run of a mechanism: each answer, all of them, and for a sparse vector the stream.

    Parameters
    ----------
    mechanism : mechanism
        Any of :mod:`quorate.mechanisms`, or one with the same methods.
    event : Event
        What was charged for the whole run: ``Repeated(mechanism.event, answers)``, or the event of a stream.
    n_teachers, n_classes : int
        K and C; both public.
    delta : float
        At which ε is told.
    confidence : float, default 0.95
        Of everything together.
    runs : int, default 100,000
        Of the attack on one answer; whole schedules, which draw more noise, get as many as fit. At least 400.
    seed : int, optional
        Of the audit.
    n_jobs : int, default 1
        Processes.
    watch : callable, optional
        ``watch(stage, done, total)``.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Notes
    -----
    Privacy: made of public settings alone.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> mechanism = NoisyCounts(sigma=40.0, form="binary")
    >>> how = {"n_teachers": 250, "n_classes": 2, "delta": 1e-5, "runs": 2_000, "seed": 0}
    >>> found = audit_schedule(mechanism, Repeated(mechanism.event, 100), **how)
    >>> found.violated, len(found.attacks)
    (False, 3)
    """
    confidence = real("confidence", confidence, above=0, below=1)
    runs, n_jobs = count("runs", runs, at_least=FEWEST), count("n_jobs", n_jobs, at_least=1)
    see = watch or (lambda stage, done, total: None)
    hard = hard_votes(mechanism, n_teachers, n_classes)
    sparse = _sparse_vector(mechanism)
    planned = list(_on_streams(mechanism, event, hard, runs) if sparse else _on_answers(mechanism, event, hard, runs))
    compared = list(_compared(mechanism, sparse, runs)) if sparse and can_be_summed(sparse) else []
    share = 1 - (1 - confidence) / (len(planned) + len(compared))
    return ScheduleAudit(
        attacks=tuple(_made(plan, share, delta, seed, n_jobs, see) for plan in planned),
        comparisons=tuple(_fitted(*asked, share, seed, see) for asked in compared),
        stage=_stage_loss(sparse, event) if sparse and can_be_summed(sparse) else None,
        confidence=confidence,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    mechanism: Any
    neighbours: Any
    event: Event
    runs: int


def _sparse_vector(mechanism: Any) -> StableSparseVector | None:
    """The sparse vector that a stream mechanism tests its queries with; None for any other."""
    found: StableSparseVector | None = getattr(mechanism, "sparse_vector", None)
    return found


def _on_streams(mechanism: Any, event: Event, hard: tuple[HardVotes, ...], runs: int) -> Iterator[_Plan]:
    for votes in hard:
        yield _Plan(f"the whole run: {votes.name}", mechanism, votes.neighbours, event, min(runs, _STREAMS))


def _on_answers(mechanism: Any, event: Event, hard: tuple[HardVotes, ...], runs: int) -> Iterator[_Plan]:
    one, answers = (event.event, event.times) if isinstance(event, Repeated) else (event, 1)
    n_classes = len(hard[0].neighbours[0])

    def fitting(queries: int, cells: int) -> int:
        return min(runs, max(FEWEST, cells // (queries * n_classes)))

    for votes in hard:
        yield _Plan(f"one answer: {votes.name}", mechanism, votes.neighbours, one, runs)
    if answers == 1:
        return
    for place, votes in enumerate(hard):
        repeated = tuple(np.broadcast_to(side, (answers, side.size)) for side in votes.neighbours)
        times = fitting(answers, _CELLS_BESIDE if place else _CELLS)
        yield _Plan(f"all {answers:,} answers: {votes.name}", SumOfAnswers(mechanism), repeated, event, times)
    changed = answers // 2
    for votes in (hard[0], *hard[1:][-1:]):  # a tie, and the threshold where there is one
        yield _Plan(
            f"every second of {2 * changed:,} answers: {votes.name}",
            ContrastsOfAnswers(mechanism),
            every_second(votes, 2 * changed),
            Repeated(one, changed),  # an answer whose votes do not change tells nothing of the change
            fitting(2 * changed, _CELLS_BESIDE),
        )


def _compared(mechanism: Any, sparse: StableSparseVector, runs: int) -> Iterator[tuple[Any, ExpectedAnswers, int]]:
    """What answers, what it should answer, and how often it is asked."""
    at_threshold = answers_at_threshold(sparse)
    if mechanism is sparse:
        yield sparse, at_threshold, min(runs, _STREAMS_COMPARED)
        if sparse.cutoff <= _LONGEST and (ended := answers_after_cutoff(sparse)):
            yield sparse, ended, min(runs, _ENDS_COMPARED)
    yield StepByStep(sparse), at_threshold, min(runs, _STEPS_COMPARED)
    if ended := answers_after_cutoff(sparse, sparse.cutoff - 1):
        yield StepByStep(sparse, sparse.cutoff - 1), ended, min(runs, _ENDS_COMPARED)


def _made(plan: _Plan, confidence: float, delta: float, seed: int | None, n_jobs: int, see: Watch) -> Attack:
    claim = claim_on(plan.event, delta)
    result = audit_mechanism(
        plan.mechanism,
        plan.neighbours,
        claim,
        confidence,
        plan.runs,
        seed=seed,
        n_jobs=n_jobs,
        progress=lambda done, total: see(plan.name, done, total),
    )
    proved = result.lower_bound
    if isinstance(claim, GaussianClaim):
        proved = epsilon_of_gaussian(delta, proved) if proved > 0 else 0.0
    return Attack(name=plan.name, claimed=price(plan.event, delta), proved=proved, result=result)


def _fitted(
    asked: Any, expected: ExpectedAnswers, runs: int, confidence: float, seed: int | None, see: Watch
) -> GoodnessOfFit:
    see(expected.name, 0, 1)
    comparison = audit_answers(asked, expected, confidence, runs, seed=seed)
    see(expected.name, 1, 1)
    name = f"{expected.name}, {'step by step' if isinstance(asked, StepByStep) else 'as one stream'}"
    return replace(comparison, name=name)


def _stage_loss(sparse: StableSparseVector, event: Event) -> StageLoss:
    """The exact loss of the noise that the mechanism draws, beside what stands in the ledger for one stage."""
    charged = sparse.stage_epsilon
    for part in event.events if isinstance(event, Composed) else ():
        if isinstance(part, Repeated) and isinstance(part.event, PureDP):
            charged = part.event.epsilon
    return StageLoss(claimed=charged, exact=form_of_stages(sparse).stage_loss())
