"""Whoever holds a copy of a threshold: no more queries are declined than stages were paid for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.release.stage_users import snapshot

from quorate.errors import BudgetExhausted, LedgerIntegrityError, MechanismClosed
from quorate.labelling import answering, stages_of
from quorate.labelling.stable import QUERY, StableAnswers, stable_purposes
from quorate.ledger import Budget, Head, Ledger, MemoryStore, journal
from quorate.ledger.chain import extend, verify
from quorate.ledger.entries import Entry
from quorate.mechanisms import SoftLabel, StableSparseVector
from quorate.noise import OSNoise
from quorate.release import stages
from quorate.release.charge import STAGE
from quorate.types import Secret

DELTA = 1e-3
MECHANISM = StableSparseVector(20.0, DELTA, cutoff=3, n_queries=60)
FAR, TIED = Secret(["a"] * 30), Secret(["a", "b"] * 15)


def reserved(store: MemoryStore) -> Any:
    """One more process's handle on the same ledger."""
    ledger = Ledger(budget=Budget(20.0, DELTA), store=store)
    return ledger.reserve(MECHANISM.event, delta=DELTA, purposes=stable_purposes(MECHANISM), key="questions")


def played(*how: str) -> list[dict[str, int]]:
    script = Path(__file__).with_name("stage_users.py")
    done = subprocess.run([sys.executable, str(script), *how], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("n", "spawned"), [pytest.param(8, 1, marks=pytest.mark.heavy), pytest.param(200, 2, marks=pytest.mark.faults)]
)
def test_forked_threaded_copied_and_spawned_users_decline_no_more_than_was_paid_for(n, spawned):
    *honest, cheat = played("and cheats", "0", str(n), str(spawned))
    assert len(honest) == n
    assert all(each["declined"] <= each["counted"] <= each["paid"] for each in honest)
    assert sum(each["declined"] == each["paid"] > 1 for each in honest) > n // 9  # they came to the end
    assert cheat["declined"] > cheat["counted"]  # without the two defences the same schedules decline more


def test_another_process_does_not_use_the_threshold_that_it_inherited(monkeypatch):
    """A store that several processes share, and a ledger that would not notice."""
    store = MemoryStore()
    answers = StableAnswers(MECHANISM, OSNoise())
    assert answers.answer(reserved(store), "before", FAR) == "a"
    monkeypatch.setattr(journal, "_token", object())  # as after a fork
    child = reserved(store)
    monkeypatch.setattr(type(child), "goes_on", lambda *_: True)
    assert answers.declines_left(child) == 2
    assert answers.answer(child, "tied", TIED) is None
    assert child.blocks(QUERY)[-1].stage == 1


def test_a_copy_of_the_whole_machine_shares_no_stage():
    """Copies with the same process identity: the ledger alone tells them apart."""
    store = MemoryStore()
    first = StableAnswers(MECHANISM, OSNoise())
    reservation = reserved(store)
    assert first.answer(reservation, "before", FAR) == "a"
    copies = [first, *(snapshot(first) for _ in range(5))]
    other = reserved(store)  # a handle that has not seen what the first one draws
    declined = refused = 0
    for number, each in enumerate(copies):
        try:
            declined += each.answer(reservation if number % 2 else other, f"tied {number}", TIED) is None
        except BudgetExhausted as refusal:
            refused += "all 3 declined answers" in str(refusal)
    assert (declined, refused) == (MECHANISM.cutoff, 3)
    assert [block.stage for block in reservation.blocks(QUERY)] == [0, 0, 1, 2]


def test_a_threshold_whose_answer_was_lost_is_used_no_more():
    store = MemoryStore()
    answers, reservation = StableAnswers(MECHANISM, OSNoise()), reserved(store)
    answers.answer(reservation, "before", FAR)
    copied = snapshot(answers)
    [before] = reservation.blocks(QUERY)
    reservation.draw(QUERY, stage=0, after=before)  # by the other holder, whose process dies
    assert copied.declines_left(reservation) == 2
    assert copied.answer(reservation, "after", FAR) == "a"
    assert reservation.blocks(QUERY)[-1].stage == 1


@pytest.mark.parametrize("stored", [True, False])
def test_the_ledger_refuses_a_stage_that_went_on_elsewhere_and_counts_nothing(stored):
    reservation = reserved(MemoryStore())
    first = reservation.draw(QUERY, stage=0)
    second = None
    if stored:
        reservation.store(first, ["x"])
        second = reservation.draw(QUERY, stage=0, after=first)
        reservation.store(second, ["y"])
    left = reservation.remaining(QUERY)
    with pytest.raises(MechanismClosed, match="stage of the sparse vector is over"):
        reservation.draw(QUERY, stage=0, after=first)
    with pytest.raises(MechanismClosed):
        reservation.draw(QUERY, stage=0)
    assert reservation.remaining(QUERY) == left
    assert reservation.draw(QUERY, stage=1).stage == 1
    if second is not None:
        assert reservation.draw(QUERY, stage=0, after=second).stage == 0


def test_a_chain_in_which_a_stage_goes_on_after_a_lost_answer_is_refused():
    """The rule is replayed: it does not rest on who appended."""
    store = MemoryStore()
    reservation = reserved(store)
    reservation.draw(QUERY, stage=0)
    lines = list(store.load().lines)
    newest = Entry.from_object(json.loads(lines[-1]))
    head = Head(sequence=newest.sequence, hash=newest.hash)
    content = replace(newest.content, first=1)  # type: ignore[type-var]
    [forged] = extend(head, [content], time=newest.time, session=newest.session)
    verify(lines)
    with pytest.raises(LedgerIntegrityError, match="stage of the sparse vector is over"):
        verify([*lines, forged.to_json()])


def test_blocks_without_a_stage_are_written_as_version_0_1_wrote_them():
    store = MemoryStore()
    reservation = reserved(store)
    reservation.draw(STAGE)
    reservation.draw(QUERY)
    reservation.draw(QUERY, stage=0)
    drawn = [json.loads(line) for line in store.load().lines if json.loads(line)["kind"] == "drawn"]  # type: ignore[arg-type]
    assert ["stage" in each for each in drawn] == [False, False, True]
    for line in store.load().lines:
        assert Entry.from_object(json.loads(line)).to_json() == line  # type: ignore[arg-type]


def test_a_forked_child_finds_every_turn_open():
    turn = journal.Turn()
    holder = threading.Thread(target=turn.__enter__)
    holder.start()
    holder.join()
    assert not turn._lock.acquire(blocking=False)
    before = journal.this_process()
    journal._begin_child()  # what runs in a child after a fork; a real one is in stage_users.py
    with turn:
        assert journal.this_process() != before


SURE, SPLIT = np.array([100_000, 0]), np.array([50, 50])
SURE_SCORES, SPLIT_SCORES = np.array([0.99] * 5000), np.array([0.05, 0.35, 0.65, 0.95] * 25)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 3), st.lists(st.booleans(), min_size=1, max_size=3)),
        st.tuples(st.just("copy"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("fork"), st.integers(0, 3)),
        st.tuples(st.just("process"), st.integers(0, 3)),
    ),
    max_size=20,
)


def stages_ended(mechanism: Any, acts: list[Any], *, defended: bool = True) -> tuple[int, int, int]:
    """Play users of one reservation over a store that they share; return stages that ended, were counted, were paid.

    Users are numbered. They copy one another, are forked (which is to have another process identity), and open the
    ledger anew. A stage whose threshold a query was compared with counts as ended.
    """
    total, store = stages_of(mechanism)[STAGE], MemoryStore()
    purposes = {"label": 500, **stages_of(mechanism)}
    rows = (SURE_SCORES, SPLIT_SCORES) if isinstance(mechanism, SoftLabel) else (SURE, SPLIT)

    def handle() -> Any:
        ledger = Ledger(budget=Budget(20.0, 1e-2), store=store)
        return ledger.reserve(mechanism.event, delta=DELTA, purposes=purposes, key="run")

    users: dict[int, Any] = {}
    ended, thresholds = 0, []
    step = StableSparseVector.step

    def counted_step(self: Any, state: Any, row: Any, noise: Any) -> Any:
        nonlocal ended
        after, answer = step(self, state, row, noise)
        ended += after.stages_spent - state.stages_spent
        thresholds.append(state.noisy_threshold)  # all of them are kept, so that no two have one identity
        return after, answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StableSparseVector, "step", counted_step)
        if not defended:
            patch.setattr(stages._Held, "goes_on", lambda self, _: bool(self.stages))
            draw = stages.draw
            patch.setattr(stages, "draw", lambda reservation, purpose, count=1, **_: draw(reservation, purpose, count))
        for act, who, *more in acts:
            if who not in users or act == "process":
                users[who] = answering(mechanism, handle())
            if act == "ask":
                asked = [rows[split] for split in more[0]]
                users[who].answer("label", len(asked), lambda _, asked=asked: asked, OSNoise())
            elif act == "copy":
                users[more[0]] = replace(users[who], stages=snapshot(users[who].stages), reservation=handle())
            elif act == "fork":
                patch.setattr(journal, "_token", object())
                users = {number: replace(user, reservation=handle()) for number, user in users.items()}
    return max(ended, len(set(map(id, thresholds)))), total - handle().remaining(STAGE), total


def soft(cutoff: int) -> SoftLabel:
    return SoftLabel(20.0, DELTA, cutoff=cutoff, n_queries=500, bins=10)


def vector(cutoff: int) -> StableSparseVector:
    return StableSparseVector(20.0, DELTA, cutoff=cutoff, n_queries=500)


@pytest.mark.heavy
@settings(max_examples=40)
@given(acts=ACTS, cutoff=st.integers(1, 4), made=st.sampled_from([vector, soft]))
def test_users_of_one_stream_end_no_more_stages_than_were_paid_for(acts, cutoff, made):
    ended, counted, paid = stages_ended(made(cutoff), acts)
    assert ended <= counted <= paid


COPIES: list[Any] = [
    ("ask", 0, [False]),
    *(("copy", 0, which) for which in (1, 2, 3)),
    *(("ask", which, [True]) for which in range(4)),
]


@pytest.mark.heavy
@pytest.mark.parametrize("made", [vector, soft])
def test_that_property_catches_streams_whose_copies_share_a_stage(made):
    assert stages_ended(made(2), COPIES, defended=False)[0] > stages_ended(made(2), COPIES, defended=False)[2]
    ended, counted, paid = stages_ended(made(2), COPIES)
    assert ended <= counted == paid
