"""All answers of a run at once: as a few sums, and compared with each other where their votes are equal.

The comparison finds noise that any two answers of a run share, at all distances. Queries with the same votes get
answers of one law: any event has one probability p for all, and two independent answers agree about it with :math:`q =
p^2 + (1-p)^2`. One quarter of the runs chooses pairs of queries whose answers are correlated, no query in two; the
second bounds p, and with it q; the other half counts how often the pairs agree. The Clopper–Pearson bounds, each at a
quarter of the error, contradict each other with probability at most α. Runs are drawn, stored and answered in batches
on a ledger in memory: with the noise that a run's answers are handed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import PureDP
from quorate.audit.claims import proportion_lower, proportion_upper
from quorate.audit.goodness_of_fit import GoodnessOfFit
from quorate.audit.sampled import ByStream
from quorate.data.feature_maps.scale import deviations
from quorate.labelling.block_answers import answering
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import DECLINED, QueryMechanism
from quorate.noise import NoiseSource
from quorate.release.charge import LABEL
from quorate.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SumOfAnswers(ByStream):
    """A whole run of a mechanism that answers each query by itself; what is told is how often each answer came.

    Noisy counts are added up. Sums are made from released answers alone, so whatever an attack on them proves it
    proves about the run; and where every query has the same votes, they hold all that there is to know.

    `mechanism`: with ``release_many(counts, noise)``.
    """

    mechanism: QueryMechanism

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``; return sums, ``(n_runs, …)``."""
        return np.asarray(_draw_addends(self.mechanism, counts, noise).sum(axis=1))


@dataclass(frozen=True, slots=True)
class ContrastsOfAnswers(ByStream):
    """The same run, told by what a changed query and its unchanged neighbour have in common.

    Every second answer (1, 3, 5, …) is compared with the one before it. Told are how many of these pairs agree, and how
    many of the pairs (1, 2), (3, 4), …; the sums over the second answers minus those over the first; and the sums over
    all. Noise that two consecutive answers share falls out of such a difference.

    `mechanism`: with ``release_many(counts, noise)``.

    Examples
    --------
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> from quorate.noise import SeededNoise
    >>> runs = np.tile([[90, 10], [10, 90]], (1, 25, 1))  # one run of 50 queries; every second has the other class
    >>> ContrastsOfAnswers(GaussianNoisyMax(sigma=4.0)).release_many(runs, SeededNoise(0)).tolist()
    [[0, 0, 0, -25, 25, 0, 25, 25]]
    """

    mechanism: QueryMechanism

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_runs, n_queries, n_classes)``; return ``(n_runs, 2 + 2 × …)``."""
        values = _draw_addends(self.mechanism, counts, noise)
        same = (values[:, 1:] == values[:, :-1]).all(axis=2)
        agree = np.stack([same[:, ::2].sum(axis=1), same[:, 1::2].sum(axis=1)], axis=1)
        first, second = values[:, ::2].sum(axis=1), values[:, 1::2].sum(axis=1)
        return np.concatenate([agree, second - first, second + first], axis=1)


def _draw_addends(mechanism: QueryMechanism, counts: IntArray, noise: NoiseSource) -> IntArray:
    """Answer each of ``(n_runs, n_queries, n_classes)``, all queries at once."""
    n_runs, n_queries, n_classes = counts.shape
    answers = np.asarray(mechanism.release_many(counts.reshape(-1, n_classes), noise)).reshape(n_runs, n_queries, -1)
    return addends(mechanism, answers, n_classes)


def addends(mechanism: Any, answers: IntArray, n_classes: int) -> IntArray:
    """Return what each answer adds to a sum, ``(n_runs, n_queries, …)``: its values, or a 1 for its class or ⊥."""
    inner = getattr(mechanism, "mechanism", mechanism)  # of what a twin is made of
    if getattr(inner, "releases_values", False) or getattr(inner, "takes", "votes") == "sums":
        return answers
    return np.asarray(answers == np.array([DECLINED, *range(n_classes)]), dtype=np.int64)


Batch: TypeAlias = Callable[[IntArray, NoiseSource], Any]

BATCHES = 2  # a run is answered in: noise may be shared within one, and between them
_SURE = 5.0  # standard errors from which two answers are taken for correlated


def audit_equal_votes(
    mechanism: Any, votes: IntArray, n_queries: int, confidence: float, runs: int, noise: NoiseSource, *, name: str
) -> GoodnessOfFit:
    """Compare how often answers to equal votes agree with how often independent ones do, on at least 40 runs."""
    counts = np.broadcast_to(votes, (runs, n_queries, len(votes)))
    answers = _answers_of_runs(mechanism, counts, noise)
    return compared(events(answers, runs // 4), confidence, name=name)


def shared_noise_seen(runs: int, n_queries: int) -> float:
    """Return about which share of the answers at one distance must share their noise to be seen; at most 1.

    Five standard errors on the runs that choose, and on those that count, where half of the answers say one thing.
    """
    choosing, counting = (part * n_queries / 2 for part in (runs // 4, runs - runs // 2))
    return min(1.0, max(_SURE / sqrt(choosing), _SURE / sqrt(counting)))


def compared(told_by: NDArray[np.bool_], confidence: float, *, name: str, known: float | None = None) -> GoodnessOfFit:
    """Compare pairs of independent events of one probability, ``(n_runs, n_places, n_events)``; `known`: if it is."""
    runs, n_places, _ = told_by.shape
    quarter, half = runs // 4, runs // 2
    place, pairs, distance = _chosen(told_by[:quarter].astype(np.float64))
    event = told_by[:, :, place]
    agree = event[half:, pairs[:, 0]] == event[half:, pairs[:, 1]]
    alpha = (1 - confidence) / 4
    occurrences, n_seen = int(np.count_nonzero(event[quarter:half])), (half - quarter) * n_places
    least, most = (
        float(proportion_lower(occurrences, n_seen, alpha)),
        float(proportion_upper(occurrences, n_seen, alpha)),
    )
    if known is not None:
        least = most = known
    ends = [p * p + (1 - p) * (1 - p) for p in (least, most)]
    low, high = 0.5 if least <= 0.5 <= most else min(ends), max(ends)
    hits, trials = int(np.count_nonzero(agree)), agree.size
    above = float(proportion_lower(hits, trials, alpha)) - high
    below = low - float(proportion_upper(hits, trials, alpha))
    return GoodnessOfFit(
        name=name,
        event="pairs that were correlated in other runs agree" if distance is None else f"those {distance} apart agree",
        observed=hits / trials,
        expected=high if hits > high * trials else max(low, min(high, hits / trials)),
        distance=max(0.0, above, below),
        trials=trials,
        confidence=confidence,
        seconds=0.0,
    )


def _answers_of_runs(mechanism: Any, counts: IntArray, noise: NoiseSource) -> IntArray:
    """Answer each of ``(n_runs, n_queries, n_classes)`` in batches of its own; return ``(n_runs, n_queries, …)``."""
    n_runs, n_queries, n_classes = counts.shape
    answer = _batches(mechanism, n_runs * n_queries)
    borders = np.linspace(0, n_queries, BATCHES + 1).astype(np.int64)

    def of_run(run: IntArray, source: NoiseSource) -> IntArray:
        parts = [run[start:stop] for start, stop in pairwise(borders)]
        return np.concatenate([np.asarray(answer(part, source)).reshape(len(part), -1) for part in parts])

    answers = np.array([of_run(run, noise.at("run", place)) for place, run in enumerate(counts)])
    return addends(mechanism, answers, n_classes)


def events(answers: IntArray, fitted: int) -> NDArray[np.bool_]:
    """Return what is said of each answer: a class came, or a value is above the median of the first `fitted` runs."""
    middle = np.median(answers[:fitted], axis=(0, 1))
    classes = answers.min() >= 0 and answers.max() <= 1
    return np.asarray(answers > (0 if classes else middle))


def _batches(mechanism: Any, n_answers: int) -> Batch:
    """Return what answers one batch: as a run does, or by the mechanism itself where it is none of a run's."""
    if not isinstance(mechanism, QueryMechanism):
        places = iter(range(n_answers))
        return lambda counts, noise: mechanism.release_many(counts, noise.at("batch", next(places)))
    ledger = Ledger(budget=Budget(1.0, 1e-5))  # it pays for nothing: the votes are made up
    reservation = ledger.reserve(PureDP(1.0), delta=0, purposes={LABEL: n_answers}, key="made-up votes")
    answers_by = answering(mechanism, reservation)
    return lambda counts, noise: answers_by.answer(LABEL, len(counts), lambda drawn: counts, noise)[1]


def _chosen(told_by: FloatArray) -> tuple[int, IntArray, int | None]:
    """Return which event, which disjoint pairs ``(n_pairs, 2)``, and their distance, if they have one in common."""
    spread = deviations(told_by.reshape(-1, told_by.shape[2]))
    standard = (told_by - told_by.mean(axis=(0, 1))) / np.where(spread > 0, spread, np.inf)
    errors = np.einsum("rif,rjf->fij", standard, standard, optimize=True) / np.sqrt(len(told_by))
    best = [(_matched(error), place) for place, error in enumerate(errors)]
    pairs, place = max(best, key=lambda candidate: len(candidate[0]))
    if len(pairs):
        apart = np.unique(pairs[:, 1] - pairs[:, 0])
        return place, pairs, int(apart[0]) if len(apart) == 1 else None
    place, distance = _distance(errors)
    first = np.arange(errors.shape[1] - distance)
    first = first[first // distance % 2 == 0]
    return place, np.column_stack([first, first + distance]), distance


def _matched(errors: FloatArray) -> IntArray:
    """Return disjoint pairs that surely are correlated, all with one sign, the surest first."""
    first, second = np.triu_indices(len(errors), 1)
    sizes = errors[first, second]
    sizes = sizes * (1 if sizes.max() >= -sizes.min() else -1)
    free = np.ones(len(errors), dtype=bool)
    pairs = []
    for place in np.argsort(-sizes)[: np.count_nonzero(sizes > _SURE)].tolist():
        i, j = int(first[place]), int(second[place])
        if free[i] and free[j]:
            free[[i, j]] = False
            pairs.append((i, j))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _distance(errors: FloatArray) -> tuple[int, int]:
    """Return the event, and the distance at which its correlations ``(n_events, n, n)`` add up to most."""
    n = errors.shape[1]
    sums = np.array(
        [np.abs(np.diagonal(errors, d, axis1=1, axis2=2).sum(axis=1)) / np.sqrt(n - d) for d in range(1, n)]
    )
    row, place = np.unravel_index(int(np.argmax(sums)), sums.shape)
    return int(place), int(row) + 1
