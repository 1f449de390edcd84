"""Everything that one run of a mechanism may answer, attacked from several sides at one confidence.

A mechanism that answers each query by itself is attacked on one answer, on all, and on all of which every second one
changes; answers to equal votes are compared with each other; and the neighbours on which one answer differs most are
looked for. A sparse vector is attacked on short streams; its answers are compared with their exact distribution, as a
whole stream and step by step, and the exact loss of a stage with its charge. What was charged is compared with what is
declared.

False alarms
------------
Each attack and each comparison holds with confidence :math:`1 - α/n`, n their number, a public figure: but for α none
flags a correct mechanism (union bound). Within one nothing has to be divided: what is learned is learned on one half of
the runs, or on runs made for it, and the other half is counted once. Exact sums have no false alarms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from quorate.accounting import Composed, Event, PureDP, Repeated
from quorate.accounting import epsilon as price
from quorate.arguments import count, real
from quorate.audit.exact_sparse_vector import can_be_summed, form_of_stages
from quorate.audit.goodness_of_fit import GoodnessOfFit
from quorate.audit.plans import FEWEST, Attack, planned, planned_limit, share_of, sparse_vector_of
from quorate.mechanisms import PrivateQuantile, StableSparseVector
from quorate.stored_names import stored_as
from quorate.types import Watch


@dataclass(frozen=True, kw_only=True, slots=True)
class StageLoss:
    """The privacy loss of one sparse-vector stage, summed exactly, beside what was charged for it.

    `claimed`: the ε that was charged for one stage. `exact`: the largest loss found; it is reached, not estimated.
    """

    claimed: float
    exact: float

    @property
    def violated(self) -> bool:
        """Whether a stage loses more than was charged for it."""
        return self.exact > self.claimed


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """What a ledger was charged for, beside what the code that releases declares; each has its price at `delta`."""

    charged: Event
    released: Event
    delta: float

    @property
    def charged_epsilon(self) -> float:
        """The price of what was charged."""
        return price(self.charged, self.delta)

    @property
    def released_epsilon(self) -> float:
        """The price of what is released."""
        return price(self.released, self.delta)

    @property
    def violated(self) -> bool:
        """Whether something else was charged than is released."""
        return self.charged != self.released

    @property
    def verdict(self) -> str:
        """A plain sentence."""
        if not self.violated:
            return "What was charged is what the code that releases declares."
        return (
            f"VIOLATED: the ledger was charged for something else (ε = {self.charged_epsilon:.4g}) than the code that "
            f"releases declares (ε = {self.released_epsilon:.4g})."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleAudit:
    """What attacks on a whole run of a mechanism found.

    `attacks`: each with a bound on ε.
    `comparisons`: of a sparse vector's answers with their exact distribution; of other answers with each other; of the
    noise of rounds with its law.
    `stage`: the exact loss of a sparse-vector stage.
    `confidence`: with which all of it holds together.
    `charge`: what was charged beside what is released; None where that was not compared.
    `sees`, `does_not_see`: kinds of fault that were looked for, each with its size, and kinds that were not.
    """

    attacks: tuple[Attack, ...]
    confidence: float
    comparisons: tuple[GoodnessOfFit, ...] = ()
    stage: StageLoss | None = None
    charge: Charge | None = None
    sees: tuple[str, ...] = ()
    does_not_see: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Whether anything contradicts what was charged."""
        return (
            any(attack.violated for attack in self.attacks)
            or any(comparison.violated for comparison in self.comparisons)
            or (self.stage is not None and self.stage.violated)
            or (self.charge is not None and self.charge.violated)
        )


@stored_as("quorate.audit.schedules.audit_schedule")
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

    Raises InvalidParameter if an argument is out of range.

    `mechanism`: any of :mod:`quorate.mechanisms`, or one with the same methods.
    `event`: what was charged for the whole run: ``Repeated(mechanism.event, answers)``, or the event of a stream.
    `n_teachers`, `n_classes`: K and C; both public.
    `delta`: at which ε is told.
    `confidence`: of everything together.
    `runs`: of the attack on one answer; whole schedules, which draw more noise, get as many as fit. At least 400.
    `seed`: of the audit.
    `n_jobs`: processes.
    `watch`: ``watch(stage, done, total)``.

    Privacy: made of public settings alone.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> mechanism = NoisyCounts(sigma=40.0, form="binary")
    >>> how = {"n_teachers": 250, "n_classes": 2, "delta": 1e-5, "runs": 2_000, "seed": 0}
    >>> found = audit_schedule(mechanism, Repeated(mechanism.event, 100), **how)
    >>> found.violated, len(found.attacks)
    (False, 5)
    """
    confidence = real("confidence", confidence, above=0, below=1)
    runs, n_jobs = count("runs", runs, at_least=FEWEST), count("n_jobs", n_jobs, at_least=1)
    parts = planned(mechanism, event, n_teachers, n_classes, runs)
    share = share_of(confidence, len(parts))
    results = [
        part.audit(part.audited(mechanism), share, delta=delta, seed=seed, n_jobs=n_jobs, watch=watch) for part in parts
    ]
    sparse = sparse_vector_of(mechanism)
    return ScheduleAudit(
        attacks=tuple(result for result in results if isinstance(result, Attack)),
        comparisons=tuple(result for result in results if isinstance(result, GoodnessOfFit)),
        stage=_stage_loss(sparse, event) if sparse and can_be_summed(sparse) else None,
        confidence=confidence,
        charge=Charge(charged=event, released=_declared(mechanism, event), delta=delta),
        sees=tuple(dict.fromkeys(part.sees for part in parts)),
        does_not_see=NOT_SEEN_OF_STREAMS if sparse else NOT_SEEN_OF_ANSWERS,
    )


def with_limit(
    audit: Callable[..., ScheduleAudit],
    quantile: PrivateQuantile | None,
    *,
    confidence: float,
    runs: int,
    of: str = "prediction sets",
    **how: Any,
) -> ScheduleAudit:
    """Attack a run, and the choice of a limit on the units that it holds out, at one confidence.

    `audit`: attacks the rest. `quantile`: what chooses; None where nothing is held out. `of`: what the limit is of.
    """
    if quantile is None:
        return audit(confidence=confidence, runs=runs, **how)
    share = share_of(confidence, 2)
    rest = audit(confidence=share, runs=runs, **how)
    how = {name: value for name, value in how.items() if name in ("delta", "seed", "n_jobs", "watch")}
    attack = planned_limit(quantile, runs, of=of).audit(quantile, share, **how)
    return replace(
        rest,
        attacks=(*rest.attacks, attack),
        confidence=confidence,
        does_not_see=(*rest.does_not_see, NOT_WHO_IS_HELD_OUT.format(of=of)),
    )


NOT_WHO_IS_HELD_OUT = "which units were held out for {of}, and how they are counted"
NOT_SEEN_OF_ANSWERS = (
    "votes that are counted wrongly before they are answered",
    "leads at which more than two classes have votes",
    "noise that is wrong in some runs alone, or on one machine",
)
NOT_SEEN_OF_STREAMS = (
    "votes that are counted wrongly before they are answered",
    "an answer that is exact at one lead far from the threshold",
    "noise that queries of a long stream share",
    "noise that is wrong in some runs alone, or on one machine",
)


def _declared(mechanism: Any, event: Event) -> Event:
    """Return what a mechanism declares as the price of as many answers as were charged."""
    declared = getattr(mechanism, "event", event)
    if getattr(mechanism, "sparse_vector", None) is None and isinstance(event, Repeated) and event != declared:
        return Repeated(declared, event.times)
    return declared


def _stage_loss(sparse: StableSparseVector, event: Event) -> StageLoss:
    """The exact loss of the noise that the mechanism draws, beside what stands in the ledger for one stage."""
    charged = sparse.stage_epsilon
    for part in event.events if isinstance(event, Composed) else ():
        if isinstance(part, Repeated) and isinstance(part.event, PureDP):
            charged = part.event.epsilon
    return StageLoss(claimed=charged, exact=form_of_stages(sparse).stage_loss())
