"""Count the teachers' votes, the one array that mechanisms look at, and no larger one; or gather their scores.

A score is how sure a teacher is of class 1, for mechanisms that release soft labels.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quorate.ambient import unwarned
from quorate.arguments import count, real
from quorate.data.rows import is_plain_float_matrix, n_rows
from quorate.ensemble.linear.voters import GROUP, LinearVoters, blas
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.prompted import ChatVoter
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, ConstantVoter, by_halves
from quorate.ensemble.workers.isolation import on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from quorate.ensemble.ensemble import Ensemble
    from quorate.ensemble.teachers.teacher import Voter
    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
    from quorate.types import FloatArray, IntArray

Progress: TypeAlias = "Callable[[int, int], None]"

BLOCK = 65_536
# Tasks per worker and block: a few, so that the end of a block does not wait for one of them. One worker alone waits
# for no other; and each task costs the start of a process, in which dozens of voters vote.
_TASKS_PER_JOB, _FEWEST_ALONE = 4, 64
PROMPTS = 64  # queries put to one prompting voter at a time
_TOGETHER = 64  # voters whose votes are counted in one go: 4 MiB of codes for a block of queries
# Up to so many classes, one comparison a class over bytes is quicker than one bincount over 64-bit indices (measured:
# .4 against 2.4 ns a vote at 2 classes, 1.7 against 2.7 at 10, 6 against 3 at 32).
_MOST_COMPARED = 14
_COMPARED_ROWS = 8_192  # at a time, so that a block of bytes stays near the processor
_CELLS = 32_768  # counters that one bincount adds to, for the same reason
_NONE_LINEAR = LinearVoters({})


def count_votes(
    ensemble: Ensemble,
    X: Any,
    *,
    block: int = BLOCK,
    n_jobs: int = 1,
    voter_cpu_seconds: float | None = None,
    progress: Progress | None = None,
    scheduler: DaskScheduler | None = None,
) -> Secret[IntArray]:
    """Count, for every query and class, the teachers that vote for it: ``(n_queries, n_classes)``.

    `ensemble`: K voters. `X`: the queries, in the kind of container the teachers were trained on. `block`: queries
    voted on at a time. Memory grows with it and with C, never with K. `n_jobs`: worker processes. `voter_cpu_seconds`:
    CPU time after which a voter abstains from a block. `progress`: called with (voters × blocks done, in all).
    `scheduler`: whose workers ask the voters that are asked in processes of their own. A row's sum is K less the
    abstentions.

    Privacy: one changed teacher moves one vote per query, so counts move by at most 2 in L1, √2 in L2, 1 in L∞. A
    voter that crashes, or gives back anything but codes of the classes, abstains, without a word. One that raises is
    asked again about fewer rows, and abstains where it raises on a row alone, so that no row turns on its fellows.

    Linear classifiers on dense or CSR floats are counted by one matrix product for all of them, wherever rounding
    cannot matter (:mod:`quorate.ensemble.linear.voters`); the counts are those of the voters' own ``predict``.
    """
    block, n_jobs = count("block", block, at_least=1), count("n_jobs", n_jobs, at_least=1)
    if voter_cpu_seconds is not None:
        voter_cpu_seconds = real("voter_cpu_seconds", voter_cpu_seconds, above=0)
    voters, n_queries = ensemble.voters.reveal(), n_rows(X)
    counts = np.zeros((n_queries, ensemble.n_classes), dtype=np.int64)
    starts = range(0, n_queries, block)
    for n_blocks, start in enumerate(starts, start=1):
        rows = X[start : start + block]
        linear = ensemble.linear(rows.shape[1]).reveal() if is_plain_float_matrix(rows) else _NONE_LINEAR
        _count_block(voters, linear, rows, counts[start : start + block], n_jobs, voter_cpu_seconds, scheduler)
        if progress is not None:  # for all voters at once: how many had to be asked depends on private rows
            progress(n_blocks * len(voters), len(starts) * len(voters))
    return Secret(counts)


def _count_block(
    voters: tuple[Voter, ...],
    linear: LinearVoters,
    X: Any,
    counts: IntArray,
    n_jobs: int,
    cpu_seconds: float | None,
    scheduler: DaskScheduler | None,
) -> None:
    """Add the votes of all voters on one block of queries to `counts`, in place."""
    n_classes = counts.shape[1]
    # Where the matrix product counted for a voter, the rows it left open; every row for all other voters.
    open_rows = linear.count(X, counts, n_jobs)
    numbers, group = [], _Group(counts)
    for number, voter in enumerate(voters):
        if number in open_rows:
            if not open_rows[number].size:
                continue
            with blas().limit(limits=1):  # as in a worker, so that rounding is the same
                codes = _votes_here(X, n_classes, voter) if cpu_seconds is None else None
            if codes is None:
                numbers.append(number)
            else:
                group.add(_only(codes, open_rows[number]))
        elif isinstance(voter, ConstantVoter):
            if 0 <= voter.code < n_classes:
                counts[:, voter.code] += 1
        elif isinstance(voter, AbstainingVoter):
            pass
        elif isinstance(voter, ChatVoter):  # it only asks, and waits: no process of its own is needed for that
            group.add(votes_of_prompt(voter, X, n_classes))
        elif cpu_seconds is None and _is_single_tree(voter):
            codes = _votes_here(X, n_classes, voter)
            if codes is None:
                numbers.append(number)
            else:
                group.add(codes)
        else:
            numbers.append(number)
    if not numbers:
        group.count()
        return
    together = all(bool(getattr(voters[number], "keeps_no_global_state", False)) for number in numbers)
    work = partial(on_one_thread_each, partial(_vote, X, n_classes), together, cpu_seconds)
    batch = voters_a_task(len(numbers), n_jobs)
    results = isolated_map(work, voters.__getitem__, numbers, n_jobs=n_jobs, batch=batch, scheduler=scheduler)
    for number, result in results:
        if result is not None:
            codes = np.frombuffer(result, dtype=code_type(n_classes))
            if number in open_rows:  # the others are counted already
                codes = _only(codes, open_rows[number])
            group.add(codes)
    group.count()


def votes_of_each(
    voters: Mapping[int, Voter],
    X: Any,
    n_classes: int,
    *,
    n_jobs: int = 1,
    scheduler: DaskScheduler | None = None,
    together: bool = False,
) -> Iterator[tuple[int, IntArray]]:
    """Ask voters about all of `X` in processes of their own, and yield each one's number and codes ``(n_queries,)``
    when done. `scheduler`: whose workers ask instead. `together`: whether many are asked in a task, as they keep
    nothing in it.
    """
    n_queries, kept = n_rows(X), code_type(n_classes)
    numbers = [number for number, voter in voters.items() if not isinstance(voter, AbstainingVoter)]
    work = partial(on_one_thread_each, partial(_vote, X, n_classes), together, None)
    batch = voters_a_task(len(numbers), n_jobs) if together else 1
    nothing = np.full(n_queries, ABSTAINED, dtype=kept)
    at = scheduler if numbers else None
    for number, result in isolated_map(work, voters.__getitem__, numbers, n_jobs=n_jobs, batch=batch, scheduler=at):
        yield number, nothing if result is None else np.frombuffer(result, dtype=kept)
    for number in sorted(set(voters) - set(numbers)):  # last, so that the first to come tell of no empty shard
        yield number, nothing


def voters_a_task(n_voters: int, n_jobs: int) -> int:
    """Return how many voters one task asks: a matter of speed, which no voter can tell."""
    batch = -(-n_voters // (_TASKS_PER_JOB * n_jobs))
    return max(batch, _FEWEST_ALONE) if n_jobs == 1 else max(batch, 1)


def _only(codes: Any, rows: IntArray) -> Any:
    """Return the votes on these rows, and abstentions elsewhere."""
    kept = np.full_like(codes, ABSTAINED)
    kept[rows] = codes[rows]
    return kept


class _Group:
    """Votes that wait to be counted, some voters' together."""

    def __init__(self, counts: IntArray) -> None:
        self._counts, self._codes = counts, list[Any]()

    def add(self, codes: Any) -> None:
        """Take one voter's votes."""
        self._codes.append(codes)
        if len(self._codes) == _TOGETHER:
            self.count()

    def count(self) -> None:
        """Count what waits."""
        if self._codes:
            add_votes(np.stack(self._codes), self._counts)
            self._codes.clear()


def _is_single_tree(voter: Voter) -> bool:
    """Tell whether a voter is a plain decision tree, which votes without a process of its own: compiled code that
    draws, keeps and starts nothing, in bounded time. To start a worker costs more than sixty trees do.
    """
    trees = sys.modules.get("sklearn.tree")  # where it was not imported, there is none
    if trees is None or type(voter) is not ClassifierVoter:
        return False
    return type(voter.estimator) in (trees.DecisionTreeClassifier, trees.ExtraTreeClassifier)


def _votes_here(X: Any, n_classes: int, voter: Voter) -> Any | None:
    """Return the votes of scikit-learn's own tree or linear model; None where memory ends, for a process to try. A
    worker's start, which others do not cause, would tell whoever asks that a teacher was alone with its classes.
    """
    try:
        with unwarned():  # what is warned of may depend on private rows
            return _voted(X, n_classes, voter)
    except MemoryError:
        return None


def votes_of_prompt(voter: Voter, X: Any, n_classes: int) -> Any:
    """Ask a voter that is a prompt, 64 rows a block, since likeness is one dense table; where that fails on a row,
    whatever the reason, it abstains there. Returns codes, -1 for no vote.
    """
    blocks = []
    for start in range(0, n_rows(X), PROMPTS):
        rows = X[start : start + PROMPTS]
        with unwarned(), suppress(MemoryError):  # what is warned of may depend on private rows
            blocks.append(_voted(rows, n_classes, voter))
            continue
        blocks.append(np.full(n_rows(rows), ABSTAINED, dtype=code_type(n_classes)))
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=code_type(n_classes))


def _vote(X: Any, n_classes: int, voter: Voter) -> bytes:
    """Return one code per query, in as few bytes as hold the classes; whatever is no class is an abstention."""
    # A voter that draws while it predicts draws the same at every count, whoever voted before it.
    seed_global_generators(0)
    return bytes(_voted(X, n_classes, voter).tobytes())


def _voted(X: Any, n_classes: int, voter: Voter) -> Any:
    """Return the codes that a voter gives, an abstention where it fails on a row by itself."""

    def codes(rows: Any) -> Any:
        votes = np.asarray(voter.vote(rows))
        if votes.shape != (n_rows(rows),) or votes.dtype.kind not in "iu":
            raise ValueError  # as other failures; nobody is told of it
        return np.where((votes >= 0) & (votes < n_classes), votes, ABSTAINED).astype(code_type(n_classes))

    return by_halves(codes, X, lambda n: np.full(n, ABSTAINED, dtype=code_type(n_classes)))


SCORED_CLASS = 1


def gather_scores(
    ensemble: Ensemble,
    X: Any,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    scheduler: DaskScheduler | None = None,
) -> Secret[FloatArray]:
    """Ask every teacher how sure it is of class 1: ``(n_queries, n_teachers)``, in [0, 1]; NaN where one abstains.

    `ensemble`: K voters of a task with two classes, or InvalidParameter. `X`: the queries ``(n_queries, n_features)``.
    `n_jobs`: worker processes. `progress`: called with (voters done, in all). `scheduler`: whose workers ask them in
    place of processes of this machine.

    Privacy: one changed teacher changes one column. A teacher that raises, crashes, has no probabilities, or gives
    back anything but numbers abstains, without a word.
    """
    if ensemble.n_classes != 2:
        raise InvalidParameter(
            f"soft labels are scores of the second of two classes, got {ensemble.n_classes}; choose another mechanism"
        )
    n_jobs, voters, n_queries = count("n_jobs", n_jobs, at_least=1), ensemble.voters.reveal(), n_rows(X)
    scores = np.full((n_queries, len(voters)), np.nan)
    numbers = []
    for number, voter in enumerate(voters):
        if isinstance(voter, ConstantVoter):
            scores[:, number] = float(voter.code == SCORED_CLASS)
        elif isinstance(voter, ClassifierVoter):
            numbers.append(number)
    together = all(voters[number].keeps_no_global_state for number in numbers)  # type: ignore[attr-defined]
    work = partial(on_one_thread_each, partial(_score, X, n_queries), together, None)
    batch = voters_a_task(len(numbers), n_jobs)
    results = isolated_map(work, voters.__getitem__, numbers, n_jobs=n_jobs, batch=batch, scheduler=scheduler)
    for number, result in results:
        if result is not None:
            scores[:, number] = np.frombuffer(result, dtype=np.float64)
    if progress is not None:  # at the end: how many voters had to be asked depends on private rows
        progress(len(voters), len(voters))
    return Secret(scores)


def _score(X: Any, n_queries: int, voter: ClassifierVoter) -> bytes:
    seed_global_generators(0)
    if SCORED_CLASS not in voter.codes:
        return np.full(n_queries, np.nan).tobytes()
    place = int(np.flatnonzero(voter.codes == SCORED_CLASS)[0])

    def scores_of(rows: Any) -> Any:
        shares = np.asarray(voter.estimator.predict_proba(rows), dtype=np.float64)
        if shares.shape != (n_rows(rows), len(voter.codes)):
            raise ValueError  # as other failures; nobody is told of it
        return shares[:, place]

    scores = by_halves(scores_of, X, lambda n: np.full(n, np.nan))
    return bytes(np.where(np.isfinite(scores), np.clip(scores, 0.0, 1.0), np.nan).tobytes())


def code_type(n_classes: int) -> np.dtype[Any]:
    """Return the smallest type that holds -1..C-1."""
    return np.min_scalar_type(-max(n_classes, 1))


def add_votes(codes: Any, counts: IntArray) -> None:
    """Add one vote for every voter and row in place; `codes` are 0 … C − 1, or ABSTAINED, which adds nothing."""
    n_classes = counts.shape[1]
    if n_classes <= _MOST_COMPARED:
        _by_comparing(codes, counts)
    else:
        _by_bincount(codes, counts, rows=max(64, _CELLS // (n_classes + 1)))


def _by_comparing(codes: Any, counts: IntArray) -> None:
    for start in range(0, len(counts), _COMPARED_ROWS):
        rows = slice(start, start + _COMPARED_ROWS)
        for first in range(0, len(codes), GROUP):
            block = codes[first : first + GROUP, rows]
            for code in range(counts.shape[1]):
                counts[rows, code] += np.add.reduce(block == code, axis=0, dtype=np.uint8)


def _by_bincount(codes: Any, counts: IntArray, *, rows: int) -> None:
    """Count in one place more than there are classes, which is for abstentions and is thrown away."""
    places = counts.shape[1] + 1
    for start in range(0, len(counts), rows):
        block = codes[:, start : start + rows]
        width = block.shape[1]
        cells = np.add(block, places * np.arange(width) - ABSTAINED, dtype=np.int64)
        counted = np.bincount(cells.ravel(), minlength=width * places).reshape(width, places)
        counts[start : start + rows] += counted[:, 1:]
