"""The sampled audit: run the shipped code many times on a secret one of two neighbours, and try to guess which.

What is audited has ``release(counts, noise)`` (:class:`Releases`); a sparse vector can also be asked query by query, as
a service asks it (:class:`StepByStep`), another path through its code than a whole stream. Runs are spread over worker
processes only where all of a mechanism's randomness is the noise that it is handed.

A whole run is attacked in the same way, with a canary: a poisoned unit is planted or not, and the guess is made from
what is released. What runs is behind :class:`Target`, so that an estimator, the command line or a service is attacked
by the same code.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from numbers import Number
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.arguments import count, one_of, real
from quorate.audit.attacks import as_matrix, best_guess, scores
from quorate.audit.claims import Claim
from quorate.audit.probe import Change
from quorate.ensemble.workers.lifetime import stay_whatever_it_holds
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, StreamMechanism
from quorate.mechanisms.own import WatchedNoise
from quorate.noise import NoiseSource, OSNoise, SeededNoise
from quorate.types import IntArray


class Releases(Protocol):
    """Anything that can be audited: ``release(counts, noise)``, and ``release_many(counts, noise)`` if it has one."""

    def release(self, counts: NDArray[Any], noise: NoiseSource, /) -> Any:
        """Answer from the counts of one query, or of one stream of queries."""


class ByRow(ABC):
    """Answers one query, or one stream, as it answers a batch of one."""

    __slots__ = ()

    def release(self, counts: NDArray[Any], noise: NoiseSource) -> Any:
        """Answer one query or one stream."""
        answer = self.release_many(np.asarray(counts)[None], noise)[0]
        return answer if np.ndim(answer) else int(answer)

    @abstractmethod
    def release_many(self, counts: NDArray[Any], noise: NoiseSource) -> NDArray[Any]:
        """Answer each row, or each stream."""


class ByStream(ByRow):
    """Answers whole streams, or whole runs."""

    __slots__ = ()
    takes_streams: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit found.

    `lower_bound`: the ε (or μ) that the attack proves: the true one is smaller with probability at most ``1 −
    confidence``. `claimed`: what was claimed. `attack`: what the guess was made from. `trials`: runs that the bound
    counts (the others were learned on). `confidence`: of the bound. `seconds`: by the clock handed in.
    """

    lower_bound: float
    claimed: Claim
    attack: str
    trials: int
    confidence: float
    seconds: float

    @property
    def violated(self) -> bool:
        """Whether the bound is above the claim."""
        return self.lower_bound > self.claimed.bound

    @property
    def verdict(self) -> str:
        """A plain sentence."""
        symbol = self.claimed.quantity
        statement = (
            f"{symbol} ≥ {self.lower_bound:.4g} at confidence {self.confidence:.10g}, claimed {self.claimed.bound:.4g}"
        )
        if self.violated:
            return f"VIOLATED: {statement}."
        return f"No violation found ({statement}). That is not a proof: another attack may find more."


#: Runs are drawn in blocks, each with a noise address of its own: the result does not depend on `n_jobs`.
BLOCK = 2**16


_LEAST_RUNS = 40


def audit_mechanism(
    mechanism: Releases,
    neighbours: tuple[ArrayLike, ArrayLike],
    claimed: Claim,
    confidence: float = 0.95,
    runs: int = 100_000,
    *,
    seed: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> AuditResult:
    """Bound the privacy loss of a mechanism from below by attacking it.

    Raises InvalidParameter if an argument is out of range or the neighbours have different shapes.

    `mechanism`: with ``release(counts, noise)``; where there is ``release_many``, it is used.
    `neighbours`: the counts on two neighbouring data sets, of one shape: ``(n_classes,)`` for one answer a run, or
    ``(n_queries, n_classes)`` for a stream of answers a run. An interactive mechanism (one with ``step``, or with
    ``takes_streams = True``) gets a stream whole: ``release`` as ``(n_queries, n_classes)``, ``release_many`` as
    ``(n_runs, n_queries, n_classes)``. Any other is asked row by row.
    `claimed`: what one run is claimed to satisfy; for a stream, the whole stream.
    `confidence`: of the bound, in (0, 1): a correct mechanism is flagged with probability at most ``1 − confidence``.
    `runs`: at least 40; a quarter fits the attacks, a quarter chooses one, and half measures it.
    `seed`: makes the audit reproducible (secret bits and noise). None draws both from the operating system.
    `n_jobs`: worker processes. A mechanism that may keep a generator or a state of its own stays in this process, since
    its copies would repeat its noise.
    `progress`: called as ``progress(runs_done, runs)``.
    `clock`: seconds.

    Each run draws a secret bit, uniform and independent, and runs the mechanism on that neighbour. Half of the runs
    learn an event; the bound counts it on the other half alone, so that learning costs no confidence
    (Nasr et al. 2021; Steinke, Nasr, Jagielski 2023 for the secret bits; Clopper–Pearson bounds).

    Examples
    --------
    >>> from quorate.audit import PureClaim, audit_mechanism
    >>> class RandomizedResponse:  # keeps the larger count's class with odds 3 : 1, which is ln 3 ≈ 1.10
    ...     def release_many(self, counts, noise):
    ...         lies = noise.words(len(counts)) % np.uint64(4) == 0
    ...         return np.where(lies, 1 - counts.argmax(axis=1), counts.argmax(axis=1))
    >>> result = audit_mechanism(RandomizedResponse(), ([1, 0], [0, 1]), PureClaim(0.5), runs=20_000, seed=1)
    >>> result.violated, round(result.lower_bound, 1)
    (True, 1.1)
    """
    pair = _checked(neighbours)
    alpha = 1 - real("confidence", confidence, above=0, below=1)
    runs = count("runs", runs, at_least=_LEAST_RUNS)
    n_jobs = count("n_jobs", n_jobs, at_least=1)
    if not (hasattr(mechanism, "release") or hasattr(mechanism, "release_many")):
        raise InvalidParameter(f"mechanism must have release(counts, noise), got {type(mechanism).__name__}")
    if not hasattr(claimed, "lower_bound"):
        raise InvalidParameter(parameter="claimed", got=claimed, expected="a PureClaim, ApproxClaim or GaussianClaim")
    source = source_of(seed)
    begun = clock()
    bits = (source.at("secret bits", 0).words(runs) & np.uint64(1)).astype(np.int64)
    blocks = _run_all(mechanism, pair, bits, source, n_jobs, progress)
    measured = _measure(as_matrix(blocks, runs), bits, claimed, alpha, confidence)
    return replace(measured, seconds=clock() - begun)


def run_block(mechanism: Any, pair: NDArray[Any], bits: IntArray, noise: NoiseSource) -> Any:
    """Run the mechanism once for each bit; return the outcomes, the run first."""
    streams = pair.ndim == 3
    interactive = getattr(mechanism, "takes_streams", hasattr(mechanism, "step"))
    if not hasattr(mechanism, "release_many"):
        if streams and not interactive:
            return [[mechanism.release(row, noise) for row in pair[bit]] for bit in bits.tolist()]
        return [mechanism.release(pair[bit], noise) for bit in bits.tolist()]
    counts = pair[bits]
    if not streams or interactive:
        return mechanism.release_many(counts, noise)
    answers = mechanism.release_many(counts.reshape(-1, pair.shape[-1]), noise)
    if isinstance(answers, np.ndarray):
        return answers.reshape(len(bits), -1)
    queries = pair.shape[1]
    return [answers[start : start + queries] for start in range(0, len(answers), queries)]


def may_travel(mechanism: Any, pair: NDArray[Any]) -> bool:
    """Say whether copies of `mechanism` are as good as the original: a frozen dataclass that behaves like one.

    Copies of a generator or a state repeat each other's noise; it has to read the noise handed in, and nothing else.
    """
    return _is_plain(mechanism, top=True) and _depends_on_noise_alone(mechanism, pair)


def _is_plain(value: Any, *, top: bool = False) -> bool:
    if is_dataclass(value) and not isinstance(value, type):
        frozen = type(value).__dataclass_params__.frozen  # type: ignore[attr-defined]
        names = {field.name for field in fields(value)}
        return (
            frozen and set(getattr(value, "__dict__", {})) <= names and all(_is_plain(getattr(value, n)) for n in names)
        )
    if top:
        return False
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (str, bytes, Number, Enum, np.generic))


def _depends_on_noise_alone(mechanism: Any, pair: NDArray[Any]) -> bool:
    bits = np.arange(64) % 2
    answers = []
    for _ in range(2):
        noise = WatchedNoise(SeededNoise(0))
        answers.append(repr(run_block(mechanism, pair, bits, noise)))
        if not sum(noise.drawn):
            return False
    return answers[0] == answers[1]


def source_of(seed: int | None) -> NoiseSource:
    """Return the noise of an audit: reproducible where it has a seed."""
    return OSNoise() if seed is None else SeededNoise(seed)


def tied_neighbours(n_teachers: int, n_classes: int, n_queries: int | None = None) -> tuple[IntArray, IntArray]:
    """Return the neighbours on which a noisy max shows most: two classes tie, and one teacher changes its vote.

    `n_teachers`: K, at least 2. `n_classes`: C, at least 2. `n_queries`: repeats the query: a stream ``(n_queries,
    n_classes)`` in which the same teacher changes every vote.
    """
    half = count("n_teachers", n_teachers, at_least=2) // 2
    zero = np.zeros(count("n_classes", n_classes, at_least=2), dtype=np.int64)
    zero[:2] = half
    one = zero.copy()
    one[0] -= 1
    one[1] += 1
    if n_queries is None:
        return zero, one
    return tuple(np.tile(row, (count("n_queries", n_queries, at_least=1), 1)) for row in (zero, one))  # type: ignore[return-value]


def _measure(
    matrix: NDArray[np.float64], bits: IntArray, claimed: Claim, alpha: float, confidence: float
) -> AuditResult:
    """Learn on the first half of the runs, measure on the second."""
    runs = len(bits)
    quarter, half = runs // 4, runs // 2
    choosing, testing = slice(quarter, half), slice(half, runs)
    candidates = []
    for name, score in scores(matrix, bits, slice(0, quarter)):
        scale = (runs - half) / (half - quarter)
        guess, worth = best_guess(claimed, score[choosing], bits[choosing], alpha, scale)
        candidates.append((worth, name, guess, score))
    _, name, guess, score = max(candidates, key=lambda candidate: candidate[0])
    proven = claimed.lower_bound(guess.tally(score[testing], bits[testing]), alpha)
    return AuditResult(
        lower_bound=float(proven), claimed=claimed, attack=name, trials=runs - half, confidence=confidence, seconds=0.0
    )


def _checked(neighbours: tuple[ArrayLike, ArrayLike]) -> NDArray[Any]:
    """Return the two neighbours stacked: ``(2, n_classes)`` or ``(2, n_queries, n_classes)``."""
    if not isinstance(neighbours, (tuple, list)) or len(neighbours) != 2:
        raise InvalidParameter("neighbours must be a pair of count arrays (one for each data set)")
    zero, one = (np.asarray(counts) for counts in neighbours)
    if zero.shape != one.shape or zero.ndim not in (1, 2) or zero.size == 0:
        raise InvalidParameter(
            f"neighbours must have one shape, (n_classes,) or (n_queries, n_classes), got {zero.shape} and {one.shape}"
        )
    pair = np.stack([zero, one])
    if pair.dtype.kind not in "iuf" or not np.all(np.isfinite(pair)):
        raise InvalidParameter("neighbours must be arrays of finite numbers")
    return pair if pair.dtype.kind == "f" else pair.astype(np.int64)


def _run_all(
    mechanism: Releases,
    pair: NDArray[Any],
    bits: IntArray,
    source: NoiseSource,
    n_jobs: int,
    progress: Callable[[int, int], None] | None,
) -> Sequence[Any]:
    length = BLOCK if pair.ndim == 2 else max(1, BLOCK // pair.shape[1])
    work = [
        (bits[start : start + length], source.at("noise", place))
        for place, start in enumerate(range(0, len(bits), length))
    ]
    outcomes: list[Any] = []
    if n_jobs > 1 and len(work) > 1 and may_travel(mechanism, pair):
        # An executor of its own: loky's shared one is configured by whoever asked for it first.
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        with ProcessPoolExecutor(max_workers=min(n_jobs, len(work)), initializer=stay_whatever_it_holds) as workers:
            for block in workers.map(partial(run_block, mechanism, pair), *zip(*work, strict=True)):
                outcomes.append(block)
                _tell(progress, outcomes, length, len(bits))
        return outcomes
    for chosen, noise in work:
        outcomes.append(run_block(mechanism, pair, chosen, noise))
        _tell(progress, outcomes, length, len(bits))
    return outcomes


def _tell(progress: Callable[[int, int], None] | None, done: list[Any], length: int, runs: int) -> None:
    if progress is not None:
        progress(min(len(done) * length, runs), runs)


@dataclass(frozen=True, slots=True)
class StepByStep:
    """Answer a stream with ``init`` and ``step`` in place of ``release``; the answers have the same distribution.

    `mechanism`: with ``init(noise, stages_spent, asked)`` and ``step(state, counts, noise)``. `stages_spent`: how many
    stages were spent before the stream, each on one query.
    """

    mechanism: StreamMechanism
    stages_spent: int = 0
    takes_streams: ClassVar[bool] = True

    def release(self, counts: NDArray[Any], noise: NoiseSource) -> IntArray:
        """Answer the rows of `counts` in turn; rows after the end are ``DECLINED``, ``(n_queries,)``."""
        answers = np.full(len(counts), DECLINED, dtype=np.int64)
        state = self.mechanism.init(noise, self.stages_spent, self.stages_spent)
        for place, row in enumerate(counts):
            if not state.open:
                break
            state, answer = self.mechanism.step(state, row, noise)
            answers[place] = DECLINED if answer is None else answer
        return answers


class Target(Protocol):
    """A whole pipeline: private rows in, what everybody may see out."""

    def fit(self, X: Any, y: Any, public: Any) -> Any:
        """Train on private rows, and return what is released about the public ones: labels, noisy votes, answers.

        Each call is a run of its own, with fresh randomness and a fresh budget.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Canary:
    """One poisoned unit: a row that is unlike all others, with a label of its own.

    `X` ``(n_features,)``: its features; queries near it show most. `y`: its label. `change`: "add" or "replace":
    whether it is appended as a unit that was not there, or takes the place of the last row.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    change: Change = "add"

    def __post_init__(self) -> None:
        one_of("change", self.change, ("add", "replace"))


def audit_target(
    target: Target,
    X: ArrayLike,
    y: ArrayLike,
    public: Any,
    canary: Canary,
    claimed: Claim,
    confidence: float = 0.95,
    runs: int = 200,
    *,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> AuditResult:
    """Bound the privacy loss of a whole run from below, with a poisoned canary unit.

    Raises InvalidParameter if an argument is of the wrong kind or shape.

    `target`: what is attacked, from private rows to release.
    `X` ``(n_rows, n_features)``: private rows without the canary, each a unit: made-up ones, or some that may be used
    for this.
    `y` ``(n_rows,)``: their labels.
    `public`: handed to the target as it is; the queries that the attacker would choose.
    `canary`: the unit whose presence is to be told.
    `claimed`: what the whole run claims for one unit.
    `confidence`: of the bound, in (0, 1).
    `runs`: at least 40. Each is a whole training; a few hundred find a flaw that is gross, not a tenth of noise too
    little.
    `seed`: of the secret bits alone: the target draws its own noise.
    `progress`, `clock`: as for :func:`~quorate.audit.audit_mechanism`.

    A run is audited as any mechanism is: the secret bit says on which of two neighbouring tables it is made
    (Jagielski, Ullman, Oprea 2020; Nasr et al. 2021). The result speaks of everything between table and release:
    partition, training, votes, mechanism, student.

    Examples
    --------
    >>> from quorate.audit import PureClaim
    >>> class NoPrivacy:
    ...     def fit(self, X, y, public):
    ...         return [int(np.any(np.all(X == row, axis=1))) for row in public]
    >>> X, y = np.zeros((5, 2)), np.zeros(5, dtype=int)
    >>> found = audit_target(NoPrivacy(), X, y, [[9.0, 9.0]], Canary([9.0, 9.0], 1), PureClaim(1.0), runs=100, seed=0)
    >>> found.violated
    True
    """
    if not hasattr(target, "fit"):
        raise InvalidParameter(f"target must have fit(X, y, public), got {type(target).__name__}")
    tables = _neighbours(np.asarray(X), np.asarray(y), canary)
    mechanism = _WholeRun(target, tables, public)
    bit = np.array([0]), np.array([1])
    return audit_mechanism(
        mechanism, bit, claimed, confidence, runs, seed=seed, progress=progress, clock=clock, n_jobs=1
    )  # fmt: skip


class _WholeRun:
    """A mechanism whose "counts" are the number of the table that a run is made on."""

    def __init__(self, target: Target, tables: tuple[tuple[NDArray[Any], NDArray[Any]], ...], public: Any) -> None:
        self._target, self._tables, self._public = target, tables, public

    def release(self, counts: NDArray[Any], noise: NoiseSource) -> Any:
        X, y = self._tables[int(counts[0])]
        return self._target.fit(X.copy(), y.copy(), self._public)


def _neighbours(X: NDArray[Any], y: NDArray[Any], canary: Canary) -> tuple[tuple[NDArray[Any], NDArray[Any]], ...]:
    row = np.asarray(canary.X)
    if X.ndim != 2 or y.shape != X.shape[:1] or row.shape != X.shape[1:] or not len(X):
        raise InvalidParameter(
            f"X must be (n_rows, n_features), y (n_rows,) and the canary (n_features,), got {X.shape}, {y.shape} and "
            f"{row.shape}"
        )
    kept = len(X) if canary.change == "add" else len(X) - 1
    return (X, y), (np.concatenate([X[:kept], row[None]]), np.append(y[:kept], canary.y))
