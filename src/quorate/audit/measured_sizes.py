r"""How small a fault an audit finds with probability 0.9, measured: the rows of the stored table.

Each registered mechanism is audited at one setting, as ``quorate audit`` audits a run of it, with a fault of one size
at a time. The attack is chosen beforehand, on audits that are not counted: the one that finds the smallest fault.

Let :math:`p(s)` be the probability that the attack finds a fault of size s. A size passes where all of n audits find
it; where :math:`p(s) < 0.9` that has probability below :math:`0.9^n`, so n is chosen to make this at most an error e.
Sizes are tried in a fixed order, from a gross fault to smaller ones, and the first that does not pass ends it; the last
that passed is the row. For the row to be wrong, the first size in this order with :math:`p(s) < 0.9` must have passed.
So the error is e for all sizes together, whether p is monotone or not. Where the first size does not pass, a grosser
one begins anew with half the error. The errors of all beginnings add up to at most :data:`ERROR`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, log
from typing import Any

from quorate.accounting import Event, PureDP
from quorate.audit.detectable import DetectableSize, Setting, setting_of
from quorate.audit.faults import FAULTS
from quorate.audit.plans import Planned, PlannedAttack, PlannedComparison, planned, share_of
from quorate.mechanisms import REGISTERED, Mechanism, StreamMechanism, required_fields
from quorate.planning.recipe import DEFAULT
from quorate.planning.schedule import mechanism_for

PROBABILITY = 0.9
ERROR = 0.05

EPSILON, DELTA = 1.0, 1e-5
N_TEACHERS, N_CLASSES = 250, 2
LONG, SHORT = 50, 10  # answers
RUNS = 100_000  # of one answer, as `quorate audit` makes by default
CONFIDENCE = 1 - 1e-5  # of an audit that a row speaks of
_MEASURED = 1 - 1e-6  # of the attacks alone, where it is measured: each is then as sure as in such an audit, or surer

_PILOTS = 6
_PILOT_SEED = 1_000_000  # from here on, so that no audit that counts is among them


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A mechanism at the setting at which it is measured.

    Attributes
    ----------
    mechanism : mechanism
        The correct one, with the noise that its budget buys.
    event : Event
        What is charged for the whole run.
    parts : tuple of PlannedAttack or PlannedComparison
        What an audit of it does.
    """

    mechanism: Mechanism
    event: Event
    parts: tuple[Planned, ...]

    def finds(self, fault: str, size: int, part: Planned, seed: int) -> bool:
        """Whether one audit finds a fault of this size by this part of it."""
        faulty = FAULTS[fault].of(self.mechanism, size)
        # A faulty sparse vector answers streams whole: asked step by step its answers would have the same law.
        asked = faulty if isinstance(part, PlannedComparison) else part.asked(faulty)
        return part.audit(asked, self.share, delta=DELTA, seed=seed).violated

    @property
    def share(self) -> float:
        """The confidence at which each part is measured."""
        return share_of(_MEASURED, len(self.attacked))

    @property
    def setting(self) -> Setting:
        """What a row is looked up by."""
        return setting_of(self.mechanism, self.event, N_TEACHERS, N_CLASSES, DELTA)

    @property
    def tried(self) -> tuple[Planned, ...]:
        """The parts that a fault may be found by: for a sparse vector the comparisons, which see its noise itself."""
        return tuple(part for part in self.parts if isinstance(part, PlannedComparison)) or self.attacked

    @property
    def attacked(self) -> tuple[Planned, ...]:
        """The attacks whose sizes are measured, and the comparisons with them."""
        return tuple(part for part in self.parts if isinstance(part, PlannedAttack | PlannedComparison))


@cache
def reference(name: str) -> Reference:
    """Return the setting at which a registered mechanism is measured.

    Two classes and 250 teachers, ε = 1 at δ = 1e−5; fields that a user must give have their example values. A stream,
    and the mechanism that is the default of a run, give 50 answers; any other mechanism gives 10. One answer is taken
    where it is a sum, where each is charged a pure ε, and where so many teachers could get none of 10 answered. An
    audit takes longer with more answers, and what it can see depends on the claim for all of them together more than on
    their number.

    Parameters
    ----------
    name : str
        A key of :data:`quorate.mechanisms.REGISTERED`.

    Examples
    --------
    >>> measured_at = reference("NoisyCounts")
    >>> measured_at.mechanism.form, measured_at.event.times, len(measured_at.parts)
    ('binary', 50, 6)
    >>> reference("PrivatePrediction").event.times
    1
    """
    kind = REGISTERED[name]
    given = {field: value for field, (value, _) in required_fields(kind).items()}

    def calibrated(answers: int) -> Mechanism:
        return mechanism_for(
            kind, given, n_classes=N_CLASSES, n_teachers=N_TEACHERS, answers=answers, epsilon=EPSILON, delta=DELTA
        )

    is_stream = issubclass(kind, StreamMechanism)
    answers = LONG if kind is DEFAULT or is_stream else SHORT
    mechanism = calibrated(answers)
    hopeless = not is_stream and mechanism.answerable(N_TEACHERS, N_CLASSES).hopeless
    if hopeless or mechanism.takes == "sums" or isinstance(mechanism.event, PureDP):
        answers = 1
        mechanism = calibrated(answers)
    event = mechanism.schedule(answers)
    return Reference(mechanism=mechanism, event=event, parts=planned(mechanism, event, N_TEACHERS, N_CLASSES, RUNS))


def measure(name: str, fault: str) -> DetectableSize:
    """Measure one row of the table; takes up to some minutes of CPU.

    Parameters
    ----------
    name : str
        A registered mechanism.
    fault : str
        A key of :data:`~quorate.audit.faults.FAULTS`.
    """
    measured_at, sizes = reference(name), FAULTS[fault].sizes

    def found(place: int, part: Planned, seeds: Iterable[int]) -> bool:
        return all(measured_at.finds(fault, sizes[place], part, seed) for seed in seeds)

    part = _strongest(measured_at.tried, len(sizes), lambda place, each: found(place, each, [_PILOT_SEED]))
    pilots = range(_PILOT_SEED, _PILOT_SEED + _PILOTS)
    guess = _last(0, len(sizes), lambda place: found(place, part, pilots))
    place, audits = _passed(max(0, guess - 1), len(sizes), lambda place, audits: found(place, part, range(audits)))
    hits = audits
    if place is None:
        hits = sum(found(0, part, [seed]) for seed in range(audits))
    return DetectableSize(
        setting=measured_at.setting,
        fault=fault,
        size=sizes[place or 0],
        found=place is not None,
        probability=PROBABILITY,
        certainty=1 - ERROR,
        attack=part.name,
        runs=RUNS,
        trials=part.runs - part.runs // 2,
        confidence=CONFIDENCE,
        share=measured_at.share,
        audits=audits,
        hits=hits,
    )


def rows_of(names: Iterable[str], kept: Iterable[DetectableSize] = ()) -> Iterator[DetectableSize]:
    """Yield a row for each mechanism and fault: one that was kept, if its setting is still this one, or a new one."""
    before = list(kept)
    for name in names:
        setting = reference(name).setting
        for fault in FAULTS:
            same = [row for row in before if row.fault == fault and row.setting.same_as(setting)]
            yield same[0] if same else measure(name, fault)


def audits_needed(error: float) -> int:
    """Return how many audits must all find a fault that is found with probability 0.9, but for an error.

    Examples
    --------
    >>> audits_needed(0.025)
    36
    """
    return ceil(log(error) / log(PROBABILITY))


def _passed(start: int, n: int, all_found: Callable[[int, int], bool]) -> tuple[int | None, int]:
    """Return the place of the smallest fault that passes, in the order of the head of this file, and the audits made.

    None where not even the grossest fault passes.
    """
    error = ERROR / 2
    while not all_found(start, audits_needed(error)):
        if start == 0:
            return None, audits_needed(error)
        start, error = start - 1, error / 2
    while start + 1 < n and all_found(start + 1, audits_needed(error)):
        start += 1
    return start, audits_needed(error)


def _last(low: int, n: int, holds: Callable[[int], bool]) -> int:
    """Return the last place in [low, n) where something holds that holds at the first places and not at the others.

    `low` itself is not looked at.
    """
    high = n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _strongest(parts: tuple[Planned, ...], n: int, holds: Callable[[int, Planned], bool]) -> Any:
    """Return the part that finds the smallest fault, each looked at a few times only."""
    best, reach = parts[0], _last(0, n, lambda place: holds(place, parts[0]))
    for part in parts[1:]:
        if reach + 1 < n and holds(reach + 1, part):
            best, reach = part, _last(reach + 1, n, lambda place, part=part: holds(place, part))  # type: ignore[misc]
    return best
