"""Active student queries: each batch of queries is chosen from the answers released so far (LZCW21 Alg. 5).

The order that the guarantee rests on is that of every answer: choose from what is released → mark as drawn → durable →
draw the noise → store, rows and answers together → go on. A block that was marked but not stored when the process died
counts as answered and comes out interrupted: its rows are worked out again, from the same history and with the same
random numbers, and never asked again.

**Why stopping early is covered.** The reservation pays for ℓ answers of one mechanism to queries chosen adaptively, and
what is released is a function of such a run: a strategy that stops throws the rest of it away. How many were asked is
an output, so the charge stays that of ℓ. See :func:`ex_post_epsilon` for what can be said afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.errors import InvalidParameter, named
from quorate.labelling.active import History, Strategy
from quorate.labelling.block_answers import answering
from quorate.labelling.passive import BLOCK, Progress
from quorate.labelling.release_log import ReleaseBuilder, Released
from quorate.ledger import Block, Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.release import check_covered
from quorate.release.charge import LABEL
from quorate.types import FloatArray, IntArray, Secret, derive


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class AdaptiveLabels:
    """What was asked, and what was released for it. All of it may be published.

    `rows`: ``(n_asked,)`` of the public pool, in the order in which they were asked. `released`: their answers.
    """

    rows: IntArray
    released: Released


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pool:
    """The points that may be asked, in the order of the stream.

    `rows`: ``(n_points,)`` of the public pool: one for each distinct point, in a random order. `points`: the same as
    numbers ``(n_points, n_features)``, an array or a CSR matrix. `n_classes`: how many classes are declared.
    """

    rows: IntArray
    points: Any = field(repr=False)
    n_classes: int

    def __post_init__(self) -> None:
        if len(self.rows) != self.points.shape[0]:
            raise InvalidParameter("points must hold one row for each of the pool's rows")
        if len(np.unique(self.rows)) != len(self.rows):
            raise InvalidParameter("rows must be distinct; a point that stands twice in a pool is one query")


def label_adaptively(
    counts: Secret[IntArray] | Secret[FloatArray],
    pool: Pool,
    strategy: Strategy,
    mechanism: Mechanism,
    reservation: Reservation,
    noise: NoiseSource,
    *,
    key: Secret[bytes],
    block: int = BLOCK,
    progress: Progress | None = None,
) -> AdaptiveLabels:
    """Answer what a strategy asks, until it stops or its cap is reached.

    `counts`: votes ``(n_points, n_classes)`` on every point that may be asked, for soft labels the teachers' scores;
    the strategy never sees them. `reservation`: holds as many answers of `mechanism` under the purpose "label" as the
    strategy may ask. `noise`: addressed by purpose and by a block's first answer. `key`: the run's, from which the
    strategy's random numbers are derived; no privacy rests on them. `block`: queries a block at most, ≥ 1. `progress`:
    called as ``progress(done, cap)`` before each block and at the end.

    Raises InvalidParameter if arguments do not fit together, and then nothing is drawn; or if the strategy asks for a
    row that the pool does not have, or for one twice, and then what was drawn before stays charged. Privacy: the head
    of :mod:`quorate.labelling.adaptive` says why the reservation covers queries that a strategy chooses.
    """
    count("block", block, at_least=1)
    if mechanism.takes == "votes and predictions":
        raise InvalidParameter(
            f"{type(mechanism).__name__} asks a student about queries that are fixed beforehand; "
            f"give a number of {named('queries')}, or take ConfidentNoisyMax"
        )
    if counts.reveal().ndim != 2 or len(counts.reveal()) != len(pool.rows):
        raise InvalidParameter("counts must be votes (n_points, n_classes); pass one row per point of the pool")
    cap = check_covered(reservation, LABEL, mechanism)
    if cap != strategy.n:
        raise InvalidParameter(f"the reservation holds {cap:,} labels, but the strategy may ask {strategy.n:,}")
    asking = _Asking(strategy, pool, mechanism, key)
    earlier = {drawn.first: drawn for drawn in reservation.blocks(LABEL)}
    answers_by = answering(mechanism, reservation)

    def ask(asked: IntArray) -> list[Any]:
        batch = {"batch": asking.batch, "rows": pool.rows[asked].tolist()}
        _, answers = answers_by.answer(
            LABEL,
            len(asked),
            lambda _: counts.reveal()[asked],
            noise,
            record=lambda answers: {**batch, "answers": answers},
        )
        return answers

    while asking.done < cap:
        stored = earlier.get(asking.done)
        if stored is not None and stored.answers is not None:
            if not asking.recall(stored):
                break
            continue
        questions = asking.next_questions(cap)
        if not len(questions):
            break
        if stored is not None:  # drawn, perhaps, by a process that died
            asking.put(questions[: stored.count], None, count=stored.count)
            continue
        if progress:
            progress(asking.done, cap)
        asking.put(questions[:block], ask(questions[:block]))
    if progress:
        progress(asking.done, cap)
    return asking.labelled()


def stored_adaptively(mechanism: Mechanism, reservation: Reservation, *, n_classes: int) -> AdaptiveLabels:
    """Read what was asked and answered off a ledger, after a restart.

    Without the blocks that were lost with a process: their rows are not known here, and nothing was released.
    """
    check_covered(reservation, LABEL, mechanism)
    rows: list[int] = []
    answers: list[Any] = []
    for block in reservation.blocks(LABEL):
        if block.answers is not None and "rows" in block.answers:
            rows += block.answers["rows"]
            answers += block.answers["answers"]
    return AdaptiveLabels(
        rows=np.array(rows, dtype=np.int64), released=_released(mechanism, answers, n_classes, lost=[False] * len(rows))
    )


class _Asking:
    """The past of one run, and the questions of the batch that is being asked."""

    def __init__(self, strategy: Strategy, pool: Pool, mechanism: Mechanism, key: Secret[bytes]) -> None:
        self.strategy, self.pool, self.mechanism, self.key = strategy, pool, mechanism, key
        self.place = {row: place for place, row in enumerate(pool.rows.tolist())}
        self.done = 0  # answers that count as given
        self.batch = -1
        self._before = 0  # questions of earlier batches
        self._left: IntArray | None = np.empty(0, dtype=np.int64)  # of this batch; None where it must be worked out
        self._asked: list[int] = []  # places in the pool
        self._answers: list[Any] = []
        self._lost: list[bool] = []

    def next_questions(self, cap: int) -> IntArray:
        """What is still to be asked of this batch, or the next one; nothing where the strategy stops."""
        if self._left is None:
            self._left = self._choose(self.batch, self._before)
            self._left = self._left[~np.isin(self._left, self._asked)]
        if not len(self._left):
            self.batch, self._before = self.batch + 1, len(self._asked)
            self._left = self._choose(self.batch, self._before)
        self._left = self._left[: cap - self.done]
        return self._left

    def put(self, asked: IntArray, answers: Sequence[Any] | None, *, count: int | None = None) -> None:
        """Take the answers to these questions; None where they were lost."""
        assert self._left is not None  # noqa: S101 - they were just chosen
        self._left = self._left[len(asked) :]
        self.done += len(asked) if count is None else count
        self._asked += asked.tolist()
        self._answers += [0] * len(asked) if answers is None else list(answers)
        self._lost += [answers is None] * len(asked)

    def recall(self, block: Block) -> bool:
        """Take a block that was stored before; False where it answered a later question, and no query of ours."""
        answers = block.answers
        if "rows" not in answers:
            return False
        if answers["batch"] != self.batch:
            self.batch, self._before = answers["batch"], len(self._asked)
        self._left = None
        self.done += block.count
        self._asked += [self.place[row] for row in answers["rows"]]
        self._answers += answers["answers"]
        self._lost += [False] * block.count
        return True

    def labelled(self) -> AdaptiveLabels:
        places, lost = np.array(self._asked, dtype=np.int64), np.array(self._lost, dtype=np.bool_)
        # Lost rows of a strategy that does not repeat itself are a guess: what was stored later for one, stands.
        kept = np.flatnonzero(~(lost & np.isin(places, places[~lost]))).astype(np.int64)
        return AdaptiveLabels(rows=self.pool.rows[places[kept]], released=self._released(len(places)).rows(kept))

    def _released(self, first: int) -> Released:
        return _released(self.mechanism, self._answers[:first], self.pool.n_classes, lost=self._lost[:first])

    def _choose(self, batch: int, before: int) -> IntArray:
        """Ask the strategy for a batch, from the questions before it; refuse what cannot be asked."""
        if before >= len(self.pool.rows):  # a drawn pool may have fewer rows than may be asked
            return np.empty(0, dtype=np.int64)
        past = History(
            np.array(self._asked[:before], dtype=np.int64), self._released(before).codes, self.pool.n_classes
        )
        rows = np.asarray(self.strategy.next_batch(self.pool.points, past, strategy_rng(self.key, batch)))
        n_points = len(self.pool.rows)
        whole = rows.ndim == 1 and (rows.dtype.kind in "iu" or not len(rows))
        rows = rows.astype(np.int64) if whole else rows
        if (
            not whole
            or np.any((rows < 0) | (rows >= n_points))
            or len(np.unique(rows)) < len(rows)
            or np.isin(rows, past.rows).any()
        ):
            raise InvalidParameter(
                f"{type(self.strategy).__name__}.next_batch must return rows of the pool, 0 to {n_points - 1:,}, that "
                "were not asked yet, each once",
                charged="the labels were charged, once",
            )
        return rows


def strategy_rng(key: Secret[bytes], batch: int) -> np.random.Generator:
    """The random numbers of one batch of a run's strategy."""
    return np.random.default_rng(int.from_bytes(derive(key, "strategy", batch), "big"))


def _released(mechanism: Mechanism, answers: Sequence[Any], n_classes: int, *, lost: Sequence[bool]) -> Released:
    builder = ReleaseBuilder(mechanism, n_queries=len(answers), n_classes=n_classes)
    for place, (answer, gone) in enumerate(zip(answers, lost, strict=True)):
        builder.put(place, 1, None if gone else [answer])
    return builder.released()
