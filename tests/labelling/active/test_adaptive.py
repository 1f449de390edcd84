"""The loop: the order that the guarantee rests on, what a killed run becomes, and what a strategy can see."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.labelling.conftest import Killed, Mortal, ask, faults, reserved, watched

from quorate.accounting import Repeated
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import (
    CoreSet,
    Disagreement,
    History,
    KMeans,
    Margin,
    Memo,
    OnlineAnswers,
    OracularCAL,
    Pool,
    Random,
    Strategy,
    VersionSpace,
    label_adaptively,
    stored_adaptively,
)
from quorate.labelling.adaptive import strategy_rng
from quorate.mechanisms import (
    ConfidentNoisyMax,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret

SIGMA = 6.0
MECHANISM = NoisyCounts(sigma=SIGMA, form="binary")
KEY = Secret(bytes(32))
N_POINTS, CAP = 120, 40
EVERY = [
    Random(CAP),
    Margin(CAP, batch=8),
    KMeans(CAP),
    CoreSet(CAP),
    OracularCAL(CAP),
    Disagreement(CAP, learner=GaussianNB(), c0=2.0),
    VersionSpace(CAP),
]


def make_pool(seed=0, n=N_POINTS, n_classes=2):
    """A pool whose rows are not numbered in the order of the stream."""
    points = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return Pool(rows=np.random.default_rng(seed + 1).permutation(3 * n)[:n], points=points, n_classes=n_classes)


def votes_on(pool, *, n_teachers=100, seed=0):
    """Votes that follow the first column, no two points with the same counts for class 1."""
    rng = np.random.default_rng(seed)
    for_1 = rng.permutation(len(pool.rows)) * n_teachers // len(pool.rows)
    for_1[np.argsort(pool.points[:, 0])] = np.sort(for_1)
    return np.column_stack([n_teachers - for_1, for_1]).astype(np.int64)


def go(strategy, reservation, *, pool=None, counts=None, noise=None, mechanism=MECHANISM, **more):
    pool = make_pool() if pool is None else pool
    counts = votes_on(pool) if counts is None else counts
    noise = SeededNoise(5) if noise is None else noise
    return label_adaptively(Secret(counts), pool, strategy, mechanism, reservation, noise, key=KEY, **more)


@dataclass(frozen=True)
class Asks(Strategy):
    batches: Any = ()

    def next_batch(self, pool, history, rng):
        done = 0
        for batch in self.batches:
            if done == len(history.rows):
                return np.array(batch)
            done += len(batch)
        return np.empty(0, dtype=np.int64)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_rows_are_chosen_then_charged_then_drawn_then_stored_and_only_then_seen(strategy):
    reservation, noise, seen = watched("label", CAP)
    found = go(Watching(strategy, reservation, seen), reservation, noise=noise, block=5)
    assert seen
    assert faults(reservation, seen) == []
    stored = [block.answers for block in reservation.blocks("label")]
    assert [row for told in stored for row in told["rows"]] == found.rows.tolist()
    assert [each for told in stored for each in told["answers"]] == found.released.answers.tolist()


class Watching(Strategy):
    """Notes what a strategy chooses while a block is drawn and not stored, from answers that nothing durable holds."""

    def __init__(self, strategy, reservation, seen):
        for name, value in {"n": strategy.n, "inner": strategy, "reservation": reservation, "seen": seen}.items():
            object.__setattr__(self, name, value)

    def next_batch(self, pool, history, rng):
        if any(block.status != "stored" for block in self.reservation.blocks("label")):
            self.seen.append("chosen too early")
        return self.inner.next_batch(pool, history, rng)


NOTHING = History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
CHEATS = {
    "noise before the draw": ("choose", "noise", "draw", "store"),
    "a choice before the store": ("choose", "draw", "noise", "choose", "store"),
    "never stored": ("choose", "draw", "noise"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_that_test_catches_a_loop_that_does_not_keep_the_order(cheat):
    reservation, noise, seen = watched("label", CAP)
    pool, chosen = make_pool(), []
    counts, strategy = votes_on(pool), Watching(Margin(CAP, batch=8), reservation, seen)
    for act in CHEATS[cheat]:
        match act:
            case "choose":
                chosen.append(strategy.next_batch(pool.points, NOTHING, strategy_rng(KEY, len(chosen))))
            case "draw":
                block = reservation.draw("label", len(chosen[0]))
            case "noise":
                answers = MECHANISM.release_many(counts[chosen[0]], noise.at("label", 0)).tolist()
            case "store":
                reservation.store(block, {"rows": chosen[0].tolist(), "answers": answers, "batch": 0})
    assert faults(reservation, seen)


def seen_through(strategy, sessions_in_memory):
    """Whether votes on rows that nobody asked for change what is asked: what a run with other such votes asks."""
    pool = make_pool()
    counts = votes_on(pool)
    asked = go(strategy, sessions_in_memory().reserve({"label": CAP}), pool=pool, counts=counts).rows
    others = ~np.isin(pool.rows, asked)
    assert others.any()
    counts[others] = counts[others][:, ::-1]
    if isinstance(strategy, Peeking):
        strategy.counts[:] = counts
    again = go(strategy, sessions_in_memory().reserve({"label": CAP}), pool=pool, counts=counts)
    return again.rows.tolist() != asked.tolist()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_votes_that_were_not_released_change_nothing(strategy, sessions_in_memory):
    assert not seen_through(strategy, sessions_in_memory)


class Peeking(Strategy):
    """A strategy that was handed the votes, and asks where teachers are most divided: what must not be."""

    def __init__(self, counts, n):
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "counts", counts)

    def next_batch(self, pool, history, rng):
        open_ = history.not_asked(len(self.counts))
        wide = np.where(open_ % 2 == len(history.rows) % 2, self.counts[open_, 1], 0)
        return open_[np.argsort(-wide, kind="stable")[:5]]


def test_that_test_catches_a_strategy_that_was_handed_the_votes(sessions_in_memory):
    counts = votes_on(make_pool())
    assert seen_through(Peeking(counts.copy(), CAP), sessions_in_memory)


def test_a_strategy_gets_points_past_and_chance_and_nothing_else(sessions_in_memory):
    """By type: floats of the pool, rows, released classes, a generator. No reservation, no noise, no counts."""
    seen = []

    class Looking(Strategy):
        def next_batch(self, pool, history, rng):
            seen.append((pool, history, rng))
            return history.not_asked(len(pool))[:10]

    pool = make_pool()
    go(Looking(CAP), sessions_in_memory().reserve({"label": CAP}), pool=pool)
    for points, history, rng in seen:
        assert points is pool.points
        assert {name: type(getattr(history, name)) for name in ("rows", "codes", "n_classes")} == {
            "rows": np.ndarray, "codes": np.ndarray, "n_classes": int,
        }  # fmt: skip
        assert set(history.codes.tolist()) <= {-1, 0, 1}
        assert isinstance(rng, np.random.Generator)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
@pytest.mark.parametrize("block", [1, 3, 64])
def test_no_more_is_drawn_than_the_cap_and_each_row_once(strategy, block, sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": CAP})
    pool = make_pool()
    found = go(strategy, reservation, pool=pool, block=block)
    assert reservation.remaining("label") == CAP - len(found.rows) >= 0
    assert len(set(found.rows.tolist())) == len(found.rows)
    assert set(found.rows.tolist()) <= set(pool.rows.tolist())
    assert max(each.count for each in reservation.blocks("label")) <= block


@pytest.mark.parametrize(
    ("cap", "batches", "n"),
    [(5, [range(3), range(3, 20)], 5), (30, [range(3), range(3, 7)], 7), (30, (), 0)],
    ids=["more than the cap", "fewer", "nothing"],
)
def test_as_many_are_drawn_as_a_strategy_asks_for_up_to_its_cap(cap, batches, n, sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": cap})
    found = go(Asks(cap, batches), reservation)
    assert found.rows.tolist() == make_pool().rows[:n].tolist()
    assert len(found.released.codes) == n
    assert reservation.remaining("label") == cap - n


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "batch",
    [[N_POINTS], [-1], [2, 2], [0], [[5]], [0.5], ["a"], [True]],
    ids=["beyond", "negative", "twice", "again", "a table", "no whole number", "a word", "a truth value"],
)
def test_rows_that_cannot_be_asked_are_refused(batch, sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": 10})
    with pytest.raises(InvalidParameter, match="next_batch must return rows of the pool") as refusal:
        go(Asks(10, [[0], batch]), reservation)
    assert "charged" in refusal.value.charged
    assert reservation.remaining("label") == 9


@pytest.mark.parametrize(
    ("cap", "sigma", "said"), [(39, SIGMA, "may ask 40"), (41, SIGMA, "may ask 40"), (CAP, 5.9, "does not pay")]
)
def test_a_reservation_of_another_cap_or_for_another_mechanism_answers_nothing(cap, sigma, said, sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": cap})
    with pytest.raises(InvalidParameter, match=said):
        go(Random(CAP), reservation, mechanism=NoisyCounts(sigma=sigma, form="binary"))
    assert reservation.remaining("label") == cap


def test_votes_points_and_rows_belong_together(sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": CAP})
    with pytest.raises(InvalidParameter, match="one row per point"):
        go(Random(CAP), reservation, counts=votes_on(make_pool())[1:])
    with pytest.raises(InvalidParameter, match="one row for each"):
        Pool(rows=np.arange(3), points=np.zeros((4, 1)), n_classes=2)
    with pytest.raises(InvalidParameter, match="distinct"):
        Pool(rows=np.array([1, 1]), points=np.zeros((2, 1)), n_classes=2)


@pytest.mark.heavy
def test_a_mechanism_that_needs_its_queries_beforehand_is_refused(sessions_in_memory):
    mechanism = InteractiveNoisyMax(60.0, 60.0, SIGMA, 100, 0.9, "binary")
    reservation = sessions_in_memory().reserve({"label": CAP}, mechanism)
    with pytest.raises(InvalidParameter, match="fixed beforehand"):
        go(Random(CAP), reservation, mechanism=mechanism)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        MECHANISM,
        NoisyCounts(sigma=SIGMA),
        GaussianNoisyMax(sigma=SIGMA),
        LaplaceNoisyMax(laplace_scale=SIGMA),
        ConfidentNoisyMax(60.0, 40.0, SIGMA, "binary"),
    ],
    ids=lambda mechanism: type(mechanism).__name__ + getattr(mechanism, "form", ""),
)
@pytest.mark.parametrize("strategy", [Margin(CAP, batch=8), OracularCAL(CAP)], ids=repr)
def test_every_mechanism_answers_a_strategy_values_included(mechanism, strategy, sessions_in_memory):
    reservation = sessions_in_memory().reserve({"label": CAP}, mechanism)
    found = go(strategy, reservation, mechanism=mechanism, noise=OSNoise())
    assert len(found.released.codes) == len(found.rows) > 0
    assert found.released.holds_values == isinstance(mechanism, NoisyCounts)
    assert not found.released.interrupted.any()
    again = stored_adaptively(mechanism, reservation, n_classes=2)
    assert again.rows.tolist() == found.rows.tolist()
    assert again.released.answers.tolist() == found.released.answers.tolist()
    assert again.released.codes.tolist() == found.released.codes.tolist()


def test_what_a_strategy_hears_of_noisy_votes_is_the_class_they_stand_for(sessions_in_memory):
    heard = []

    class Hearing(Strategy):
        def next_batch(self, pool, history, rng):
            heard.append(history.codes.copy())
            return history.not_asked(len(pool))[:10]

    found = go(Hearing(CAP), sessions_in_memory().reserve({"label": CAP}))
    assert heard[-1].tolist() == found.released.codes[:-10].tolist()
    assert (found.released.codes == (found.released.answers > 0)).all()


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [StableSparseVector, SoftLabel])
def test_a_stream_answers_a_strategy(kind):
    bins = {"bins": 10} if kind is SoftLabel else {}
    mechanism = kind(epsilon=4.0, delta=1e-5, cutoff=8, n_queries=CAP, **bins)
    reservation, pool = reserved(mechanism, CAP), make_pool()
    counts = votes_on(pool, n_teachers=4_000)
    if kind is SoftLabel:
        counts = np.random.default_rng(0).random((N_POINTS, 4_000)) * 0.01 + (pool.points[:, [0]] > 0) * 0.9
    found = go(Margin(CAP, batch=8), reservation, mechanism=mechanism, pool=pool, counts=counts)
    assert len(found.rows) == CAP
    assert found.released.answered.any()


class Spied(NoisyCounts):
    """Noisy counts that write down on whose votes they drew noise: the votes of no two points are alike."""

    def release_many(self, counts, noise):
        self.drawn.extend(counts[:, 1].tolist())
        return NoisyCounts.release_many(self, counts, noise)


def promises_broken(deaths, strategy, sessions, resume=go, seed=5):
    """Kill a run at each of `deaths` acts, then let it end; say what it broke."""
    mechanism, pool = Spied(SIGMA, "binary"), make_pool()
    Spied.drawn, counts, found = [], votes_on(pool), None
    counts[:, 1], counts[:, 0] = np.arange(N_POINTS) + 40, 160 - np.arange(N_POINTS)  # every point has its own
    counts = counts[np.argsort(np.argsort(pool.points[:, 0]))]
    before, broken = {}, set()
    for death in [*deaths, 10**6]:
        reservation = Mortal(sessions.reserve({"label": CAP}), death)
        try:
            found = resume(
                strategy, reservation, pool=pool, counts=counts, mechanism=mechanism, noise=SeededNoise(seed), block=3
            )
        except Killed:
            pass
        except BudgetExhausted:
            broken.add("ran out of answers")
        blocks = reservation.blocks("label")
        stored = {each.first: each.answers for each in blocks if each.answers is not None}
        if any(stored.get(first) != answers for first, answers in before.items()):
            broken.add("a stored answer changed")
        before = stored
    if len(mechanism.drawn) != len(set(mechanism.drawn)):
        broken.add("noise was drawn twice for one point")
    if sum(each.count for each in blocks) > CAP or len(mechanism.drawn) > CAP:
        broken.add("more was drawn than charged")
    if found is None:
        return sorted({*broken, "did not end"}), None
    if len(set(found.rows.tolist())) != len(found.rows):
        broken.add("a row was asked twice")
    told = [row for answers in stored.values() for row in answers["rows"]]
    if found.rows[~found.released.interrupted].tolist() != [row for row in told if row in set(found.rows.tolist())]:
        broken.add("what is returned is not what is stored")
    return sorted(broken), found


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(9)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
@pytest.mark.parametrize("seed", range(2))
def test_a_run_killed_again_and_again_draws_nothing_twice_and_changes_no_answer(strategy, seed, sessions):
    deaths = np.random.default_rng([seed, 1]).integers(0, 14, size=4).tolist()
    broken, found = promises_broken(deaths, strategy, sessions)
    assert broken == []
    assert len(found.rows) <= CAP


class Forgetful:
    """A reservation of whose blocks only those are read back that `keeps` says."""

    def __init__(self, inner, keeps):
        self.inner, self.keeps = inner, keeps

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def blocks(self, purpose):
        return tuple(block for block in self.inner.blocks(purpose) if self.keeps(block))


def _forgets_the_block_in_flight(strategy, reservation, **rest):
    """Goes on as if a block that was never stored had never been drawn: its rows are asked again."""
    return go(strategy, Forgetful(reservation, lambda block: block.answers is not None), **rest)


def _begins_again(strategy, reservation, **rest):
    """Reads nothing back: every batch is chosen and drawn afresh."""
    return go(strategy, Forgetful(reservation, lambda block: False), **rest)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("resume", [_forgets_the_block_in_flight, _begins_again])
def test_that_test_catches_a_loop_that_resumes_wrongly(resume, sessions):
    broken, _ = promises_broken([6], Margin(CAP, batch=8), sessions, resume)
    assert "noise was drawn twice for one point" in broken


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(5)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_a_run_killed_between_blocks_goes_on_as_if_it_had_not_been(strategy, sessions, sessions_in_memory):
    """With seeded noise: the same rows, the same answers, in the same order."""
    whole = go(strategy, sessions_in_memory().reserve({"label": CAP}), block=3)
    for death in (4, 8, 20):  # just after a block was stored: nothing is in flight
        with suppress(Killed):
            go(strategy, Mortal(sessions.reserve({"label": CAP}), death), block=3)
    resumed = go(strategy, sessions.reserve({"label": CAP}), block=3)
    assert resumed.rows.tolist() == whole.rows.tolist()
    assert resumed.released.answers.tolist() == whole.released.answers.tolist()
    assert not resumed.released.interrupted.any()


def test_the_block_in_flight_comes_out_interrupted_with_its_own_rows(sessions, sessions_in_memory):
    whole = go(Random(CAP), sessions_in_memory().reserve({"label": CAP}), block=8)
    with suppress(Killed):
        go(Random(CAP), Mortal(sessions.reserve({"label": CAP}), 6), block=8)  # drawn, and not stored
    resumed = go(Random(CAP), sessions.reserve({"label": CAP}), block=8)
    assert resumed.rows.tolist() == whole.rows.tolist()
    assert np.flatnonzero(resumed.released.interrupted).tolist() == list(range(8, 16))
    kept = ~resumed.released.interrupted
    assert resumed.released.answers[kept].tolist() == whole.released.answers[kept].tolist()
    stored = stored_adaptively(MECHANISM, sessions.reserve({"label": CAP}), n_classes=2)
    assert stored.rows.tolist() == resumed.rows[kept].tolist()


@pytest.mark.heavy
def test_a_strategy_that_cannot_repeat_itself_still_draws_no_more_than_its_cap(sessions):
    """Its lost rows cannot be worked out again; what the ledger stored stays, and the cap holds."""

    class Fickle(Strategy):
        def next_batch(self, pool, history, rng):
            return np.random.default_rng().permutation(history.not_asked(len(pool)))[:7]

    for death in (2, 5, 6, 9):
        with suppress(Killed):
            go(Fickle(CAP), Mortal(sessions.reserve({"label": CAP}), death), block=3)
    reservation = sessions.reserve({"label": CAP})
    found = go(Fickle(CAP), reservation, block=3)
    assert reservation.remaining("label") == 0
    assert len(set(found.rows.tolist())) == len(found.rows) <= CAP


def online(reservation, purposes, memo=None):
    return OnlineAnswers(
        count_votes=lambda rows: Secret(np.tile([[10, 90]], (len(rows), 1))),
        mechanism=MECHANISM,
        reservation=reservation,
        noise=SeededNoise(9),
        memo=Memo() if memo is None else memo,
        n_classes=2,
        purposes=purposes,
    )


def test_what_a_strategy_left_answers_later_questions_and_no_more(sessions):
    reservation = sessions.reserve({"label": 10, "online answer": 2})
    found = go(Asks(10, [range(6)]), reservation)
    answers = online(reservation, ("online answer", "label"))
    assert ask(answers, [b"a", b"b", b"c"]).tolist() == [1, 1, 1]  # two kept back, one left
    assert (reservation.remaining("online answer"), reservation.remaining("label")) == (0, 3)
    with pytest.raises(BudgetExhausted, match="3 answers left") as refusal:
        ask(answers, [b"d", b"e", b"f", b"g"])
    assert (refusal.value.spent, refusal.value.requested, refusal.value.limit) == (9, 4, 12)
    assert reservation.remaining("label") == 3
    assert ask(answers, [b"a", b"d", b"e", b"f"]).tolist() == [1, 1, 1, 1]
    with pytest.raises(BudgetExhausted, match="the student"):
        ask(answers, [b"z"])
    # Reading the run again finds the labels and no later answer among them, and the later answers are known again.
    again = go(Asks(10, [range(6)]), sessions.reserve({"label": 10, "online answer": 2}))
    assert again.rows.tolist() == found.rows.tolist()
    assert again.released.answers.tolist() == found.released.answers.tolist()
    memo = Memo()
    restarted = online(sessions.reserve({"label": 10, "online answer": 2}), ("online answer", "label"), memo)
    restarted.recall_stored()
    assert len(memo) == 6
    assert ask(restarted, [b"f", b"a"]).tolist() == [1, 1]


def test_a_later_answer_that_was_lost_is_no_query_of_the_strategy(sessions):
    reservation = Mortal(sessions.reserve({"label": 10}), 10**6)
    found = go(Asks(10, [range(6)]), reservation)
    reservation.left = 1
    with suppress(Killed):
        ask(online(reservation, ("label",)), [b"a", b"b"])
    reservation = sessions.reserve({"label": 10})
    assert reservation.remaining("label") == 2
    assert go(Asks(10, [range(6)]), reservation).rows.tolist() == found.rows.tolist()
    assert reservation.remaining("label") == 2


def test_all_answers_of_a_run_together_are_its_schedule(sessions):
    """Independent look: the event that was charged holds one release for every answer that can ever be drawn."""
    reservation = sessions.reserve({"label": 10, "online answer": 2})
    assert reservation.event == Repeated(MECHANISM.event, 12)
    go(Asks(10, [range(6)]), reservation)
    answers = online(reservation, ("online answer", "label"))
    drawn = 6
    for number in range(20):
        with suppress(BudgetExhausted):
            ask(answers, [bytes([number])])
            drawn += 1
    assert drawn == 12
