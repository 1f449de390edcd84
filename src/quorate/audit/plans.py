"""Which attacks are made on one run of a mechanism: what is asked, on which votes, how often, and what it claims.

A plan is made of public settings alone; whatever answers can be put to it (:mod:`quorate.audit.measured_sizes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import Event, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.gaussian import epsilon_of_gaussian
from quorate.audit.claims import GaussianClaim
from quorate.audit.exact_sparse_vector import ExpectedAnswers, answers_after_cutoff, answers_at_threshold, can_be_summed
from quorate.audit.goodness_of_fit import GoodnessOfFit, audit_answers
from quorate.audit.hard_votes import (
    PLACES,
    HardVotes,
    Neighbours,
    claim_on,
    every_second,
    hard_votes,
    leads,
    pair_that_differs,
    votes_cast,
)
from quorate.audit.many_answers import ContrastsOfAnswers, SumOfAnswers, audit_equal_votes, shared_noise_seen
from quorate.audit.sampled import AuditResult, StepByStep, audit_mechanism, source_of
from quorate.mechanisms import PrivateQuantile, StableSparseVector
from quorate.types import Watch

#: Told what is done, and how much of it: ``watch(stage, done, total)``.

FEWEST = 400
_CELLS = 100_000_000  # noisy counts that all runs of a whole schedule draw together
_CELLS_BESIDE = 20_000_000  # the same, of each further attack on it
_STREAMS = 4_000  # runs of a mechanism that is a Python loop over queries
_STREAMS_COMPARED = 20_000  # runs whose answers are compared with their distribution
_STEPS_COMPARED = 8_000
_SCANNED = 10_000  # runs on the neighbours that a scan chooses
_LEAST_PAIRED = 50  # so that noise that is the same in every run shows against that of other places
_PAIRED = 256  # answers of a run that are compared with each other,
_PAIRED_RUNS = 300  # in so many runs, each a few blocks on a ledger in memory
_ENDS_COMPARED = 100  # what comes after the cut-off is the same in every run
_LONGEST = 10_000  # declined queries in one run
_CHOICES = 20_000  # of a limit


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """One attack on a mechanism, in terms of ε at the run's δ.

    `name`: what was attacked, and on which votes. `claimed`, `proved`: the ε that was charged for it, and the one that
    the attack proves from below. Where a Gaussian trade-off curve is claimed, the proved ε is that of the curve the
    attack proves. `result`: as measured.
    """

    name: str
    claimed: float
    proved: float
    result: AuditResult

    @property
    def violated(self) -> bool:
        """Whether the attack proves more than was charged."""
        return self.proved > self.claimed

    @property
    def trials(self) -> int:
        """Runs that were counted."""
        return self.result.trials

    @property
    def confidence(self) -> float:
        """Of the proved ε."""
        return self.result.confidence


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedAttack:
    """An attack that is still to be made, on made-up votes; `event`: what it may at most prove.

    `audited`: makes of a mechanism what is attacked: itself, or what tells its answers as a few sums.
    """

    name: str
    neighbours: tuple[NDArray[Any], NDArray[Any]] = field(repr=False)
    event: Event
    runs: int
    audited: Callable[[Any], Any] = field(default=lambda mechanism: mechanism, repr=False)
    sees: ClassVar[str] = "noise that is too small, or missing on some answers, where votes tie or stand at a threshold"

    def audit(
        self,
        audited: Any,
        confidence: float,
        *,
        delta: float,
        seed: int | None = None,
        n_jobs: int = 1,
        watch: Watch | None = None,
    ) -> Attack:
        """Make the attack on what :attr:`audited` made; ε is told at `delta`."""
        see = watch or (lambda stage, done, total: None)
        claim = claim_on(self.event, delta)
        result = audit_mechanism(
            audited,
            self.neighbours,
            claim,
            confidence,
            self.runs,
            seed=seed,
            n_jobs=n_jobs,
            progress=lambda done, total: see(self.name, done, total),
        )
        proved = result.lower_bound
        if isinstance(claim, GaussianClaim):
            proved = epsilon_of_gaussian(delta, proved) if proved > 0 else 0.0
        return Attack(name=self.name, claimed=price(self.event, delta), proved=proved, result=result)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedScan:
    """An attack on one answer, its neighbours chosen on draws of their own; `sees`: which faults show, how large."""

    name: str
    sees: str
    pairs: tuple[Neighbours, ...] = field(repr=False)
    event: Event
    runs: int
    audited: Callable[[Any], Any] = field(default=lambda mechanism: mechanism, repr=False)

    def audit(self, audited: Any, confidence: float, *, seed: int | None = None, **how: Any) -> Attack:
        """Choose the neighbours, and attack :attr:`audited` on them."""
        source = source_of(seed)
        chosen = pair_that_differs(audited, self.pairs, source.at("scan", 0))
        on_them = PlannedAttack(name=self.name, neighbours=chosen, event=self.event, runs=self.runs)
        return on_them.audit(audited, confidence, seed=seed, **how)


class _Comparison(ABC):
    """How answers are compared: not one by one, so that an attack's `delta` and `n_jobs` change nothing."""

    __slots__ = ()
    name: str

    @abstractmethod
    def compared(self, audited: Any, confidence: float, seed: int | None) -> GoodnessOfFit: ...

    def audit(
        self, audited: Any, confidence: float, *, seed: int | None = None, watch: Watch | None = None, **how: Any
    ) -> GoodnessOfFit:
        """Compare the answers of what :attr:`audited` made."""
        see = watch or (lambda stage, done, total: None)
        see(self.name, 0, 1)
        result = self.compared(audited, confidence, seed)
        see(self.name, 1, 1)
        return replace(result, name=self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedPairs(_Comparison):
    """A comparison of a run's answers to equal votes with each other; on a tie some mechanisms need no noise."""

    name: str
    votes: HardVotes = field(repr=False)
    answers: int
    runs: int
    audited: Callable[[Any], Any] = field(default=lambda mechanism: mechanism, repr=False)

    @property
    def sees(self) -> str:
        """Which faults show, and how large."""
        share = shared_noise_seen(self.runs, self.answers)
        return (
            f"noise that answers share, within a batch or between batches, at every distance up to {self.answers - 1}: "
            f"two answers of a run that always share it, or about {share:.0%} of those at one distance"
        )

    def compared(self, audited: Any, confidence: float, seed: int | None) -> GoodnessOfFit:
        """Compare the answers with each other."""
        noise, votes = source_of(seed).at("equal votes", 0), self.votes.neighbours[1]
        return audit_equal_votes(audited, votes, self.answers, confidence, self.runs, noise, name=self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedComparison(_Comparison):
    """A comparison of a sparse vector's answers with their exact distribution that is still to be made.

    `stages_spent`: None where the stream is handed over whole; else it is asked query by query, after these.
    """

    expected: ExpectedAnswers = field(repr=False)
    runs: int
    stages_spent: int | None
    sees: ClassVar[str] = "answers about the threshold, or after the cut-off, that come too often"

    @property
    def name(self) -> str:  # type: ignore[override]
        """What the stream looks at, and how it is asked."""
        return f"{self.expected.name}, {'as one stream' if self.stages_spent is None else 'step by step'}"

    def audited(self, mechanism: Any) -> Any:
        """Return what answers the stream: the sparse vector of a mechanism, whole or step by step."""
        sparse = sparse_vector_of(mechanism)
        return sparse if self.stages_spent is None else StepByStep(sparse, self.stages_spent)  # type: ignore[arg-type]

    def compared(self, audited: Any, confidence: float, seed: int | None) -> GoodnessOfFit:
        """Compare the answers with their distribution."""
        return audit_answers(audited, self.expected, confidence, self.runs, seed=seed)


Planned: TypeAlias = PlannedAttack | PlannedScan | PlannedPairs | PlannedComparison


def sparse_vector_of(mechanism: Any) -> StableSparseVector | None:
    """Return the sparse vector that a stream mechanism tests its queries with; None for any other."""
    sparse: StableSparseVector | None = getattr(mechanism, "sparse_vector", None)
    return sparse


def planned(mechanism: Any, event: Event, n_teachers: int, n_classes: int, runs: int) -> tuple[Planned, ...]:
    """Return the attacks on a run of `mechanism` that was charged `event`, and then the comparisons.

    `runs`: of the attack on one answer; whole schedules, which draw more noise, get as many as fit.
    """
    hard = hard_votes(mechanism, n_teachers, n_classes)
    sparse = sparse_vector_of(mechanism)
    if sparse is None:
        return (*_on_answers(event, hard, runs), *_everywhere(mechanism, event, hard, n_teachers, n_classes, runs))
    compared = _compared(mechanism, sparse, runs) if can_be_summed(sparse) else ()
    return (*_on_streams(event, hard, runs), *compared)


def planned_limit(quantile: PrivateQuantile, runs: int, *, of: str = "prediction sets") -> PlannedAttack:
    """Return the attack on the choice of a limit: of so many units that one tips the share, one is moved."""
    units, all_units = quantile.as_fraction.as_integer_ratio()
    least, fewer = np.array([units, 0, all_units - units, 0]), np.array([units - 1, 0, all_units - units + 1, 0])
    return PlannedAttack(
        name=f"limit of {of}: one unit is moved, which tips the share",
        neighbours=(least, fewer),
        event=quantile.event,
        runs=min(runs, _CHOICES),
    )


def share_of(confidence: float, parts: int) -> float:
    """Return the confidence that each of so many parts needs for all of them to hold together with `confidence`."""
    return 1 - (1 - confidence) / parts


def _on_streams(event: Event, hard: tuple[HardVotes, ...], runs: int) -> Iterator[PlannedAttack]:
    for votes in hard:
        yield PlannedAttack(
            name=f"the whole run: {votes.name}", neighbours=votes.neighbours, event=event, runs=min(runs, _STREAMS)
        )


def _on_answers(event: Event, hard: tuple[HardVotes, ...], runs: int) -> Iterator[PlannedAttack]:
    one, answers = (event.event, event.times) if isinstance(event, Repeated) else (event, 1)
    n_classes = len(hard[0].neighbours[0])

    def fitting(queries: int, cells: int) -> int:
        return min(runs, max(FEWEST, cells // (queries * n_classes)))

    for votes in hard:
        yield PlannedAttack(name=f"one answer: {votes.name}", neighbours=votes.neighbours, event=one, runs=runs)
    if answers == 1:
        return
    for place, votes in enumerate(hard):
        zero, one_ = (np.broadcast_to(side, (answers, side.size)) for side in votes.neighbours)
        yield PlannedAttack(
            name=f"all {answers:,} answers: {votes.name}",
            neighbours=(zero, one_),
            event=event,
            runs=fitting(answers, _CELLS_BESIDE if place else _CELLS),
            audited=SumOfAnswers,
        )
    changed = answers // 2
    for votes in (hard[0], *hard[1:][-1:]):  # a tie, and the threshold where there is one
        yield PlannedAttack(
            name=f"every second of {2 * changed:,} answers: {votes.name}",
            neighbours=every_second(votes, 2 * changed),
            event=Repeated(one, changed),  # an answer whose votes do not change tells nothing of the change
            runs=fitting(2 * changed, _CELLS_BESIDE),
            audited=ContrastsOfAnswers,
        )


def _everywhere(
    mechanism: Any, event: Event, hard: tuple[HardVotes, ...], n_teachers: int, n_classes: int, runs: int
) -> Iterator[PlannedScan | PlannedPairs]:
    """Attacks that are fixed to no place: on all pairs of a run's answers, at all leads, and at all numbers cast."""
    one, answers = (event.event, event.times) if isinstance(event, Repeated) else (event, 1)
    together = min(max(answers, _LEAST_PAIRED), _PAIRED)
    for votes in (hard[0], *hard[1:][-1:]):
        name = f"{together:,} answers to equal votes: {votes.name}"
        yield PlannedPairs(name=name, votes=votes, answers=together, runs=min(runs, _PAIRED_RUNS))
    looked_at = f"{min(n_teachers, PLACES):,} of {n_teachers:,}" if n_teachers > PLACES else f"all {n_teachers:,}"
    scans = [
        (
            "at every lead",
            f"an answer that has no noise at one lead, or near unanimity, where noise turns one in ten ({looked_at})",
            leads(mechanism, n_teachers, n_classes),
        )
    ]
    if getattr(mechanism, "takes", "votes") != "sums":
        scans.append(
            (
                "at every number of votes cast, one more or less",
                f"an answer that depends on how many votes were cast ({looked_at} numbers): where it turns one in ten",
                votes_cast(n_teachers, n_classes),
            )
        )
    for name, sees, pairs in scans:
        if pairs:
            yield PlannedScan(name=f"one answer: {name}", sees=sees, pairs=pairs, event=one, runs=min(runs, _SCANNED))


def _compared(mechanism: Any, sparse: StableSparseVector, runs: int) -> Iterator[PlannedComparison]:
    at_threshold = answers_at_threshold(sparse)
    if mechanism is sparse:
        yield PlannedComparison(expected=at_threshold, runs=min(runs, _STREAMS_COMPARED), stages_spent=None)
        if sparse.cutoff <= _LONGEST and (ended := answers_after_cutoff(sparse)):
            yield PlannedComparison(expected=ended, runs=min(runs, _ENDS_COMPARED), stages_spent=None)
    yield PlannedComparison(expected=at_threshold, runs=min(runs, _STEPS_COMPARED), stages_spent=0)
    if ended := answers_after_cutoff(sparse, sparse.cutoff - 1):
        yield PlannedComparison(expected=ended, runs=min(runs, _ENDS_COMPARED), stages_spent=sparse.cutoff - 1)
