"""How small a fault an audit finds with probability 0.9, measured: faults of a size, and the rows of the stored table.

A fault of a size is a shipped mechanism with less noise than was charged for, or with some answers that have none, and
no other: thresholds, ties and the order of the answers stay. Each registered mechanism is audited at one setting, as
``quorate audit`` does, by an attack that was chosen on audits that are not counted.

A size passes where all of n audits find it; where :math:`p(s) < 0.9` that has probability below :math:`0.9^n`, at most
an error e. Sizes are tried in a fixed order, the smaller ones last, and the first that does not pass ends it; the last
that passed is the row. For it to be wrong, the first size with :math:`p(s) < 0.9` must have passed: the error is e for
all together, p monotone or not. A grosser beginning has half the error; all add up to at most :data:`ERROR`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, singledispatch
from math import ceil, floor, log
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from quorate.accounting import Event, PureDP
from quorate.audit.detectable import DetectableSize, Setting, setting_of
from quorate.audit.plans import Planned, PlannedAttack, PlannedComparison, planned, share_of
from quorate.mechanisms import (
    DECLINED,
    REGISTERED,
    DistanceToInstability,
    Mechanism,
    SoftLabel,
    StableSparseVector,
    StreamMechanism,
    distance_to_instability,
    noise_fields,
    required_fields,
)
from quorate.mechanisms.fields import falls_with
from quorate.mechanisms.schedule import DEFAULT, mechanism_for
from quorate.noise import NoiseSource, discrete_laplace, geometric
from quorate.types import IntArray

_VANISHING = 1e-9  # times a noise of some votes, it is below any integer


@dataclass(frozen=True, slots=True)
class FaultyTest:
    """A distance-to-instability test with its noise, but not the threshold, scaled by `factor`."""

    mechanism: DistanceToInstability
    factor: float

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)``."""
        distances = distance_to_instability(counts)
        scale = float(np.nextafter(1 / self.mechanism.epsilon, np.inf))
        passed = distances + discrete_laplace(self.factor * scale, distances.shape, noise) > self.mechanism.threshold
        return np.where(passed, counts.argmax(axis=1), DECLINED)


@dataclass(frozen=True, slots=True)
class FaultyStages:
    """A sparse vector on many streams at once, whose noise is scaled, or left out for one of `every` queries.

    Where in a stream the first one stands is drawn, as if the mechanism had answered other streams before. 0 for none.
    """

    mechanism: StableSparseVector
    factor: float = 1.0
    every: int = 0
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one stream ``(n_queries, n_classes)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``."""
        stage = self.mechanism.stage_noise
        stage = replace(
            stage, threshold_scale=self.factor * stage.threshold_scale, query_scale=self.factor * stage.query_scale
        )
        n_streams, n_queries, n_classes = counts.shape
        distances = distance_to_instability(counts.reshape(-1, n_classes)).reshape(n_streams, n_queries)
        noisy = stage.draw_noisy(distances, noise)
        draw, direction = (geometric, -1) if stage.one_sided else (discrete_laplace, 1)

        def bars() -> IntArray:
            return floor(stage.threshold) + direction * draw(stage.threshold_scale, n_streams, noise)

        bar, first = bars(), noise.words(n_streams) % np.uint64(max(1, self.every))
        answers = np.full((n_streams, n_queries), DECLINED, dtype=np.int64)
        declined = np.zeros(n_streams, dtype=np.int64)
        for query in range(n_queries):
            passed = noisy[:, query] > bar
            if self.every:
                bare = (query + first.astype(np.int64)) % self.every == 0
                passed = np.where(bare, distances[:, query] > floor(stage.threshold), passed)
            is_open = declined < self.mechanism.cutoff
            answers[is_open & passed, query] = counts[is_open & passed, query].argmax(axis=1)
            ended = is_open & ~passed
            declined += ended
            bar = np.where(ended, bars(), bar)
        return answers


@dataclass(frozen=True, slots=True)
class BareAnswers:
    """A mechanism, answering each query by itself, that answers one query in `every` without its noise."""

    mechanism: Any
    every: int

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)``."""
        answers = np.array(self.mechanism.release_many(counts, noise))
        bare = slice(self.every - 1, None, self.every)
        answers[bare] = noise_times(self.mechanism, _VANISHING).release_many(counts[bare], noise)
        return answers


@singledispatch
def noise_times(mechanism: Any, factor: float) -> Any:
    """Return a mechanism whose noise is multiplied by `factor` > 0, and nothing else changed."""
    kind = type(mechanism)
    scaled = {
        name: getattr(mechanism, name) * (factor if falls_with(kind, name) else 1 / factor)
        for name in noise_fields(kind)
    }
    return replace(mechanism, **scaled)


@noise_times.register
def _(mechanism: DistanceToInstability, factor: float) -> FaultyTest:
    return FaultyTest(mechanism, factor)


@noise_times.register
def _(mechanism: StableSparseVector, factor: float) -> FaultyStages:
    return FaultyStages(mechanism, factor)


@noise_times.register
def _(mechanism: SoftLabel, factor: float) -> FaultyStages:
    return FaultyStages(mechanism.sparse_vector, factor)


def less_noise(mechanism: Mechanism, percent: int) -> Any:
    """Return a mechanism whose noise is smaller by `percent`; a sparse vector, of the streams that it would get."""
    return noise_times(mechanism, (100 - percent) / 100)


def bare_answers(mechanism: Mechanism, every: int) -> Any:
    """Return a mechanism that answers one query in `every` without noise; a sparse vector, as in :func:`less_noise`."""
    sparse = getattr(mechanism, "sparse_vector", None)
    return BareAnswers(mechanism, every) if sparse is None else FaultyStages(sparse, every=every)


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: its sizes, from the grossest to the smallest, and the mechanism that has it at a size."""

    sizes: tuple[int, ...]
    of: Callable[[Any, int], Any]


_PERCENT = (*range(1, 20), *range(20, 40, 2), *range(40, 61, 4), *range(65, 96, 5), 99)
_EVERY = (
    *range(1, 20), *range(20, 50, 5), *range(50, 100, 10), *range(100, 200, 20), *range(200, 500, 50),
    *range(500, 1_001, 100),
)  # fmt: skip

#: Per cent by which all noise is smaller; and of how many answers one has none.
FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {"less noise": Fault(_PERCENT[::-1], less_noise), "bare answers": Fault(_EVERY, bare_answers)}
)


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
    """A mechanism at the setting at which it is measured, what a whole run is charged, and what an audit does."""

    mechanism: Mechanism
    event: Event
    parts: tuple[Planned, ...]

    def finds(self, fault: str, size: int, part: Planned, seed: int) -> bool:
        """Whether one audit finds a fault of this size by this part of it."""
        faulty = FAULTS[fault].of(self.mechanism, size)
        # A faulty sparse vector answers streams whole: asked step by step its answers would have the same law.
        mechanism = faulty if isinstance(part, PlannedComparison) else part.audited(faulty)
        return part.audit(mechanism, self.share, delta=DELTA, seed=seed).violated

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

    Two classes and 250 teachers, ε = 1 at δ = 1e−5, example values for what a user must give. A stream and the default
    mechanism give 50 answers, others 10; one where it is a sum, is charged a pure ε each, or could get none of 10
    answered.
    """
    kind = REGISTERED[name]
    arguments = {field: value for field, (value, _) in required_fields(kind).items()}

    def calibrated(answers: int) -> Mechanism:
        return mechanism_for(
            kind, arguments, n_classes=N_CLASSES, n_teachers=N_TEACHERS, answers=answers, epsilon=EPSILON, delta=DELTA
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
    """Measure the row of a registered mechanism and a fault of :data:`FAULTS`; up to some minutes of CPU."""
    measured_at, sizes = reference(name), FAULTS[fault].sizes

    def finds(place: int, part: Planned, seeds: Iterable[int]) -> bool:
        return all(measured_at.finds(fault, sizes[place], part, seed) for seed in seeds)

    part = _strongest(measured_at.tried, len(sizes), lambda place, size: finds(place, size, [_PILOT_SEED]))
    pilots = range(_PILOT_SEED, _PILOT_SEED + _PILOTS)
    guess = _last(0, len(sizes), lambda place: finds(place, part, pilots))
    place, audits = _passed(max(0, guess - 1), len(sizes), lambda place, audits: finds(place, part, range(audits)))
    hits = audits
    if place is None:
        hits = sum(finds(0, part, [seed]) for seed in range(audits))
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
    """Return how many audits must all find a fault that is found with probability 0.9, but for an error."""
    return ceil(log(error) / log(PROBABILITY))


def _passed(start: int, n: int, all_found: Callable[[int, int], bool]) -> tuple[int | None, int]:
    """Return the place of the smallest fault that passes, None where none does, and how many audits were made."""
    error = ERROR / 2
    while not all_found(start, audits_needed(error)):
        if start == 0:
            return None, audits_needed(error)
        start, error = start - 1, error / 2
    while start + 1 < n and all_found(start + 1, audits_needed(error)):
        start += 1
    return start, audits_needed(error)


def _last(low: int, n: int, holds: Callable[[int], bool]) -> int:
    """Return the last place in [low, n) where something holds that holds at the first places alone."""
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
