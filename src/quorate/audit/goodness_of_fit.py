"""Does a mechanism answer as the proof of its price assumes? A test of its answers against their exact distribution.

A threshold that is not drawn anew after a declined query, or one without noise, can stay below a bound on ε. Beside the
exact distribution of the answers it shows. One half of the runs chooses an event; the other half counts it, binomial
with a probability of at most :math:`p`, known exactly, so that the Clopper–Pearson lower bound is above :math:`p` with
probability at most α, without a correction for the number of events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, real
from quorate.audit.attacks import as_matrix
from quorate.audit.claims import proportion_lower
from quorate.audit.exact_sparse_vector import ExpectedAnswers
from quorate.audit.sampled import Releases, run_block, source_of
from quorate.errors import InvalidParameter
from quorate.types import FloatArray, IntArray

_LEAST_RUNS = 40
_ROUNDING = 1e-9  # of a sum of exact probabilities

#: Where an answer is none of the expected ones.
_REST = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit:
    """How a mechanism's answers compare with their exact distribution.

    `name`: what the stream looked at.
    `event`: the answers that were counted.
    `observed`, `expected`: their share among the runs, and the largest probability that they should have.
    `distance`: the total variation distance that this proves, at least; 0 where it proves none.
    `trials`: runs that were counted.
    `confidence`: of the distance.
    `seconds`: by the clock handed in.
    """

    name: str
    event: str
    observed: float
    expected: float
    distance: float
    trials: int
    confidence: float
    seconds: float

    @property
    def violated(self) -> bool:
        """Whether the answers provably do not have the distribution."""
        return self.distance > 0

    @property
    def verdict(self) -> str:
        """A plain sentence."""
        share = f"{self.event}: {self.observed:.4g} of {self.trials:,} runs, expected {self.expected:.4g}"
        if self.violated:
            return f"VIOLATED: the answers do not have the distribution that was priced ({share})."
        return f"The answers agree with their exact distribution ({share})."


def audit_answers(
    mechanism: Releases,
    expected: ExpectedAnswers,
    confidence: float = 0.95,
    runs: int = 4_000,
    *,
    seed: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> GoodnessOfFit:
    """Compare the answers of a mechanism to one stream with the distribution that they should have.

    `mechanism`: with ``release(counts, noise)`` for a whole stream, ``(n_queries, n_classes)``.
    `expected`: the stream, and the answers that it should get.
    `confidence`: in (0, 1): a correct mechanism is flagged with probability at most ``1 − confidence``.
    `runs`: at least 40; a quarter makes events, a quarter chooses one, and half counts it.
    `seed`: makes the test reproducible. None draws from the operating system.
    `clock`: seconds. Raises InvalidParameter if an argument is out of range.

    Examples
    --------
    >>> from quorate.audit.exact_sparse_vector import answers_at_threshold
    >>> from quorate.mechanisms import StableSparseVector
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=20)
    >>> audit_answers(mechanism, answers_at_threshold(mechanism), 1 - 1e-6, 400, seed=0).violated
    False
    """
    alpha = 1 - real("confidence", confidence, above=0, below=1)
    runs = count("runs", runs, at_least=_LEAST_RUNS)
    if not (hasattr(mechanism, "release") or hasattr(mechanism, "release_many")):
        raise InvalidParameter(f"mechanism must have release(counts, noise), got {type(mechanism).__name__}")
    source, begun = source_of(seed), clock()
    pair = np.stack([expected.stream, expected.stream])
    outcomes = run_block(mechanism, pair, np.zeros(runs, dtype=np.int64), source.at("noise", 0))
    places = _places(as_matrix([outcomes], runs), expected)
    quarter, half = runs // 4, runs // 2
    name, event = _chosen(expected, places[:quarter], places[quarter:half])
    trials = runs - half
    hits = np.count_nonzero(event[places[half:]])
    p = _probability(expected, event)
    return GoodnessOfFit(
        name=expected.name,
        event=name,
        observed=hits / trials,
        expected=p,
        distance=max(0.0, float(proportion_lower(hits, trials, alpha)) - p),
        trials=trials,
        confidence=confidence,
        seconds=clock() - begun,
    )


def _places(matrix: FloatArray, expected: ExpectedAnswers) -> IntArray:
    """Return for each run the place of its answers among the expected ones, or −1, ``(n_runs,)``."""
    if matrix.shape[1] != expected.patterns.shape[1]:
        return np.full(len(matrix), _REST, dtype=np.int64)
    place = {tuple(pattern): i for i, pattern in enumerate(expected.patterns.tolist())}
    return np.array([place.get(tuple(row), _REST) for row in matrix.astype(np.int64).tolist()], dtype=np.int64)


def _probability(expected: ExpectedAnswers, event: NDArray[np.bool_]) -> float:
    """At most the probability of an event, which is a mask over the patterns, with the rest as its last place."""
    p = float(np.sum(expected.probabilities[event[:-1]])) + (expected.rest if event[-1] else 0.0)
    return min(1.0, p * (1 + _ROUNDING) + (_ROUNDING if p else 0.0))


def _chosen(expected: ExpectedAnswers, fitted: IntArray, choosing: IntArray) -> tuple[str, NDArray[np.bool_]]:
    """Return the event that exceeds its probability by most standard errors on the runs that choose."""

    def excess(event: NDArray[np.bool_]) -> float:
        p, n = _probability(expected, event), len(choosing)
        return float((np.count_nonzero(event[choosing]) - n * p) / np.sqrt(n * p * (1 - p) + 1))

    return max(_events(expected, fitted), key=lambda named: excess(named[1]))


def _events(expected: ExpectedAnswers, fitted: IntArray) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield events and what they are called: masks ``(n_patterns + 1,)``."""
    answered = expected.patterns >= 0
    n = answered.shape[1]

    def only(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.append(mask, False)

    yield "none of the expected answers", np.append(np.zeros(len(answered), dtype=bool), True)
    for query in range(n):
        yield f"query {query + 1} answered", only(answered[:, query])
        yield f"query {query + 1} declined", only(~answered[:, query])
    times = answered.sum(axis=1)
    for number in range(n + 1):
        yield f"at least {number} answered", only(times >= number)
        yield f"at most {number} answered", only(times <= number)
    occurrences = np.bincount(fitted[fitted >= 0], minlength=len(answered))
    ratio = (occurrences + 0.5) / (len(fitted) * expected.probabilities + 0.5)
    for least in (1.0, 1.25, 1.5, 2.0, 3.0):
        yield f"patterns that came {least:g} times as often as expected in other runs", only(ratio > least)
