"""Labels: the order that the guarantee rests on, what a crash costs, and what becomes of a run that is killed."""

from contextlib import suppress
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.labelling.conftest import Killed, Mortal, faults, watched

from quorate.accounting import Repeated
from quorate.errors import InvalidParameter
from quorate.labelling import label
from quorate.labelling.passive import block_size
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, NoisyCounts
from quorate.mechanisms.answers import half_lead
from quorate.noise import NoiseSource, OSNoise, SeededNoise
from quorate.types import Secret

FALSE_ALARM = 1e-6
SIGMA = 6.0
MECHANISM = NoisyCounts(sigma=SIGMA, form="binary")


def test_a_block_is_charged_then_drawn_then_stored_and_only_then_returned(votes):
    reservation, noise, seen = watched("label", 10)
    released = label(Secret(votes(10)), MECHANISM, reservation, noise, block=4)
    assert faults(reservation, seen) == []
    assert len(seen) >= 3
    blocks = reservation.blocks("label")
    assert [(block.first, block.count) for block in blocks] == [(0, 4), (4, 4), (8, 2)]
    assert list(chain.from_iterable(block.answers for block in blocks)) == released.answers.tolist()


def _noise_first(counts, reservation, noise):
    answers = MECHANISM.release_many(counts, noise.at("label", 0)).tolist()
    reservation.store(reservation.draw("label", len(answers)), answers)


def _never_stored(counts, reservation, noise):
    reservation.draw("label", len(counts))
    MECHANISM.release_many(counts, noise.at("label", 0))


def _charged_for_other_queries(counts, reservation, noise):
    for first in (0, 5):
        block = reservation.draw("label", 5)
        reservation.store(block, MECHANISM.release_many(counts[:5], noise.at("label", 5 - first)).tolist())


def _drawn_again_after_storage(counts, reservation, noise):
    block = reservation.draw("label", len(counts))
    reservation.store(block, MECHANISM.release_many(counts, noise.at("label", 0)).tolist())
    MECHANISM.release_many(counts, noise.at("label", 0))


@pytest.mark.parametrize("cheat", [_noise_first, _never_stored, _charged_for_other_queries, _drawn_again_after_storage])
def test_that_test_catches_whoever_does_not_keep_the_order(cheat, votes):
    reservation, noise, seen = watched("label", 10)
    cheat(votes(10), reservation, noise)
    assert faults(reservation, seen)


@pytest.mark.parametrize(("act", "given"), [("store", 4), ("draw", 0)])
def test_nothing_comes_back_when_answers_cannot_be_stored_and_no_noise_is_drawn_where_the_charge_is_refused(
    act, given, votes, monkeypatch
):
    reservation, noise, seen = watched("label", 10)

    def broken(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(type(reservation), act, broken)
    with pytest.raises(OSError, match="disk"):
        label(Secret(votes(10)), MECHANISM, reservation, noise, block=4)
    assert reservation.remaining("label") == 10 - given  # and no further block was drawn
    assert bool(seen) == (act == "store")


def test_progress_is_told_before_each_block_and_at_the_end(votes):
    reservation, noise, _ = watched("label", 10)
    told = []
    label(Secret(votes(10)), MECHANISM, reservation, noise, block=4, progress=lambda *done: told.append(done))
    assert told == [(0, 10), (4, 10), (8, 10), (10, 10)]


@pytest.mark.parametrize(
    ("n_queries", "block", "said"),
    [
        *((10, block, "block") for block in (0, -1, 2.0, True, None, "4")),
        *((n_queries, 4, "10 labels reserved") for n_queries in (9, 11)),
        (None, 4, "n_queries, n_classes"),
    ],
)
def test_votes_are_a_table_of_just_the_reserved_queries_and_a_block_holds_at_least_one(n_queries, block, said, votes):
    reservation, noise, seen = watched("label", 10)
    counts = votes(10)[:, 0] if n_queries is None else votes(n_queries)
    with pytest.raises(InvalidParameter, match=said):
        label(Secret(counts), MECHANISM, reservation, noise, block=block)
    assert (seen, reservation.remaining("label")) == ([], 10)


@pytest.mark.parametrize(
    ("asked", "purpose", "said"),
    [
        (NoisyCounts(sigma=5.9, form="binary"), "label", "does not pay"),
        (NoisyCounts(sigma=SIGMA), "label", "does not pay"),
        (ConfidentNoisyMax(60.0, 40.0, SIGMA, "binary"), "label", "does not pay"),
        (MECHANISM, "online answer", 'no answers for "label"'),
    ],
)
def test_another_mechanism_or_purpose_than_was_paid_for_answers_nothing(asked, purpose, said, sessions, votes):
    reservation = sessions.reserve({purpose: 10})
    with pytest.raises(InvalidParameter, match=said):
        label(Secret(votes(10)), asked, reservation, SeededNoise(0))
    assert reservation.remaining(purpose) == 10


def test_a_mechanism_of_the_same_price_may_answer(sessions, votes):
    """The argmax of the noisy counts is a function of them, and has their event."""
    reservation = sessions.reserve({"label": 10})
    classes = label(Secret(votes(10)), GaussianNoisyMax(sigma=SIGMA, form="binary"), reservation, SeededNoise(0))
    assert set(classes.codes.tolist()) <= {0, 1}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        MECHANISM,
        NoisyCounts(sigma=SIGMA),
        GaussianNoisyMax(sigma=SIGMA),
        ConfidentNoisyMax(60.0, 40.0, SIGMA, "binary"),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_every_mechanism_with_a_price_a_query_labels(mechanism, sessions, votes):
    reservation = sessions.reserve({"label": 30, "online answer": 5}, mechanism)
    released = label(Secret(votes(30)), mechanism, reservation, OSNoise(), block=7)
    assert len(released.codes) == 30
    assert released.holds_values == isinstance(mechanism, NoisyCounts)
    assert not released.interrupted.any()
    assert (released.codes >= 0).tolist() == released.answered.tolist()
    assert reservation.remaining("label") == 0
    assert reservation.remaining("online answer") == 5


def test_a_block_in_flight_is_declined_as_interrupted_and_never_drawn_again(sessions, votes):
    counts = Secret(votes(10))
    first = Mortal(sessions.reserve({"label": 10}), dies_at=6)  # the second block is drawn, and its answers are known
    with pytest.raises(Killed):
        label(counts, MECHANISM, first, SeededNoise(3), block=4)

    second = Mortal(sessions.reserve({"label": 10}), dies_at=99)
    assert [block.status for block in second.blocks("label")] == ["stored", "interrupted"]
    released = label(counts, MECHANISM, second, SeededNoise(3), block=4)
    assert second.drawn == [(8, 2)]
    assert released.interrupted.tolist() == [False] * 4 + [True] * 4 + [False] * 2
    assert not released.declined.any()
    assert released.codes[4:8].tolist() == [-1] * 4
    assert (released.answers[4:8] == 0).all()
    assert np.isnan(released.vote_shares(100)[4:8]).all()

    third = Mortal(sessions.reserve({"label": 10}), dies_at=99)
    again = label(counts, MECHANISM, third, SeededNoise(4), block=4)
    assert third.drawn == []
    assert again.answers.tobytes() == released.answers.tobytes()
    assert again.interrupted.tolist() == released.interrupted.tolist()


def test_a_block_in_flight_is_not_drawn_again_by_the_same_process_either(sessions, votes):
    """An impatient user interrupts a notebook and runs the cell again."""
    reservation = sessions.reserve({"label": 10})
    with pytest.raises(Killed):
        label(Secret(votes(10)), MECHANISM, Mortal(reservation, dies_at=2), OSNoise(), block=4)
    again = Mortal(reservation, dies_at=99)
    released = label(Secret(votes(10)), MECHANISM, again, OSNoise(), block=4)
    assert again.drawn == [(4, 4), (8, 2)]
    assert released.interrupted.tolist() == [True] * 4 + [False] * 6


def test_what_another_server_draws_and_stores_meanwhile_is_told_as_the_ledger_has_it(sessions, votes):
    """Two servers label from one reservation: a block that the other one has in flight is not lost."""
    reservation, others = sessions.reserve({"label": 16}), []

    def meanwhile(done, total):
        if done < total and len(others) < 2:
            others.append(reservation.draw("label", 4))
        if done == 8:
            for block in others:
                reservation.store(block, [1_000] * block.count)

    released = label(Secret(votes(16)), MECHANISM, reservation, OSNoise(), block=4, progress=meanwhile)
    assert [block.first for block in others] == [0, 8]
    assert not released.interrupted.any()
    stored = chain.from_iterable(block.answers for block in reservation.blocks("label"))
    assert released.answers.tolist() == list(stored)


@pytest.mark.heavy
@given(
    deaths=st.lists(st.integers(0, 9), max_size=5),
    n_queries=st.integers(1, 13),
    block=st.integers(1, 5),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_however_often_a_seeded_run_is_killed_it_repeats_an_unbroken_one_but_for_blocks_in_flight(
    deaths, n_queries, block, seed, sessions_in_memory, votes
):
    counts = Secret(votes(n_queries))
    unbroken = label(
        counts, MECHANISM, sessions_in_memory().reserve({"label": n_queries}), SeededNoise(seed), block=block
    )

    sessions, drawn = sessions_in_memory(), []
    for dies_at in [*deaths, 10_000]:
        mortal = Mortal(sessions.reserve({"label": n_queries}), dies_at)
        with suppress(Killed):
            released = label(counts, MECHANISM, mortal, SeededNoise(seed), block=block)
        drawn += mortal.drawn
        spent = sessions.ledger.spent

    queries = [query for first, count in drawn for query in range(first, first + count)]
    assert sorted(queries) == list(range(n_queries))  # each exactly once
    assert released.answers[~released.interrupted].tolist() == unbroken.answers[~released.interrupted].tolist()
    assert released.interrupted.sum() <= block * len(deaths)
    fresh = sessions_in_memory()
    fresh.reserve({"label": n_queries})
    assert spent == fresh.ledger.spent  # charged once


def _noise_of(labelling, n_queries, sigma, *, block):
    """What was added to the votes, ``(n_queries,)``, by anything that is called as :func:`label` is."""
    counts = np.tile(np.array([[40, 60]]), (n_queries, 1))
    mechanism = NoisyCounts(sigma=sigma, form="binary")
    reservation, *_ = watched("label", n_queries, mechanism)
    released = labelling(Secret(counts), mechanism, reservation, SeededNoise(20260821), block=block)
    return released.answers - half_lead(counts)


def _p_value_of_variance(noise, claimed_sigma):
    """Two-sided, for normal noise; discrete Gaussian noise at this σ differs by far less than the test can see."""
    statistic = float(np.sum(noise.astype(float) ** 2) / claimed_sigma**2)
    return 2 * min(chi2.cdf(statistic, len(noise)), chi2.sf(statistic, len(noise)))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("block", [1, 7, 64, 4_000])
def test_labels_carry_the_noise_that_was_paid_for_whatever_the_block(block):
    n_queries = 600 if block == 1 else 4_000
    assert _p_value_of_variance(_noise_of(label, n_queries, 20.0, block=block), 20.0) > FALSE_ALARM


def test_that_test_catches_labels_with_a_tenth_less_noise():
    assert _p_value_of_variance(_noise_of(label, 4_000, 18.0, block=64), 20.0) < FALSE_ALARM


def _repeats(noise, block):
    """Pairs of blocks with the very same noise; for 64 draws at σ = 20 chance makes one in 10^100."""
    blocks = [tuple(noise[start : start + block].tolist()) for start in range(0, len(noise), block)]
    return len(blocks) - len(set(blocks))


def test_no_two_blocks_share_their_noise():
    assert _repeats(_noise_of(label, 4_096, 20.0, block=64), 64) == 0


def test_that_test_catches_one_address_for_all_blocks():
    class OneAddress(SeededNoise):
        def at(self, purpose, index):
            return SeededNoise(7).at(purpose, 0)

    def one_address(counts, mechanism, reservation, noise, *, block):
        return label(counts, mechanism, reservation, OneAddress(7), block=block)

    assert _repeats(_noise_of(one_address, 4_096, 20.0, block=64), 64) == 63


def test_in_a_seeded_run_the_block_size_is_part_of_the_address():
    """What holds: equal sizes repeat each other; other sizes have other noise, and the first block starts alike."""
    by_four, again, by_eight = (_noise_of(label, 64, 20.0, block=block) for block in (4, 4, 8))
    assert by_four.tolist() == again.tolist()
    assert by_four[:4].tolist() == by_eight[:4].tolist()
    assert by_four[4:8].tolist() != by_eight[4:8].tolist()


def sizes(n_queries: int, noise: NoiseSource) -> list[int]:
    mechanism = GaussianNoisyMax(sigma=500.0, form="binary")
    with Ledger(budget=Budget(100.0, 1e-5)) as ledger:
        event = Repeated(mechanism.event, n_queries)
        reservation = ledger.reserve(event, delta=1e-5, purposes={"label": n_queries}, key="labels")
        block = block_size(n_queries, noise, informed=False)
        label(Secret(np.full((n_queries, 2), 50)), mechanism, reservation, noise, block=block)
        return [block.count for block in reservation.blocks("label")]


@pytest.mark.parametrize(
    ("n_queries", "noise", "expected"),
    [
        (200, OSNoise(), [64, 64, 64, 8]),
        (8_139, OSNoise(), [255] * 31 + [234]),
        (8_139, SeededNoise(1), [64] * 127 + [11]),  # what a seed gave to a block in version 0.1, it gives to it now
    ],
)
def test_a_crash_costs_64_answers_or_one_in_32(n_queries, noise, expected):
    assert sizes(n_queries, noise) == expected
