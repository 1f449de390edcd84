"""One act on a ledger, bound to its data and its keys; a charge that is made once, and found by whoever made it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from quorate.accounting import Composed, PureDP
from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerBusy,
    LedgerIntegrityError,
    LedgerMismatch,
    PreconditionFailed,
)
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.release import Account, Charge, RollbackGuard, guarantee_of, ledger_location, session
from quorate.release.charge import (
    LABEL,
    LOCAL_CLIENT,
    SEEDED_CLIENT,
    client_of,
    floor_budget,
    floor_epsilon,
    noise_and_key,
    refuse_unaffordable,
    stored_answers,
)
from quorate.release.guarantee import NOT_DURABLE
from quorate.release.keys import fingerprint_key, read_or_create_key, with_key, write_atomically, write_beside
from quorate.release.session import LedgerTerms, terms_of
from quorate.types import Secret

BUDGET = Budget(1.0, 1e-5)


def charged(ledger: Ledger, key: str) -> None:
    ledger.reserve(PureDP(0.125), delta=0, purposes={"label": 1}, key=key)


def test_a_file_is_let_go_of_after_each_act(tmp_path):
    path = tmp_path / "ledger.db"
    for key in ("one", "two"):
        with session(str(path), budget=BUDGET) as ledger:
            charged(ledger, key)
            with pytest.raises(LedgerBusy):
                Ledger(path)
    with Ledger(path) as ledger:
        assert len(ledger.reservations()) == 2


def test_a_ledger_that_was_handed_in_stays_open():
    with Ledger(budget=BUDGET) as mine:
        with session(mine, budget=Budget(9.0, 1e-5)) as ledger:
            assert ledger is mine
        assert mine.healthy


def test_without_a_ledger_the_one_that_was_made_before_goes_on():
    with session(None, budget=BUDGET) as first:
        charged(first, "one")
    with session(None, budget=BUDGET, in_memory=first) as again:
        assert again is first
        assert not again.durable


def test_a_file_that_exists_keeps_its_budget_unless_the_very_same_is_asked_for(tmp_path):
    path, other = tmp_path / "ledger.db", Budget(0.5, 1e-6)
    with session(path, budget=BUDGET):
        pass
    with session(path, budget=other) as ledger:
        assert ledger.budget == BUDGET
    with pytest.raises(LedgerMismatch), session(path, budget=other, same_budget=True):
        pass
    with session(path, budget=None) as ledger:
        assert ledger.budget == BUDGET
    with pytest.raises(PreconditionFailed, match="there is no ledger"), session(tmp_path / "no.db", budget=None):
        pass


def test_a_ledger_of_other_data_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    for _ in range(2):
        with session(path, budget=BUDGET, fingerprint="these data"):
            pass
    with pytest.raises(LedgerMismatch), session(path, budget=BUDGET, fingerprint="other data"):
        pass
    with Ledger(path) as ledger:
        assert ledger.fingerprints == ("these data",)


def test_a_ledger_that_was_put_back_is_refused_before_anything_is_bound(tmp_path):
    folder, copy, guard = tmp_path / "run", tmp_path / "copy", RollbackGuard()
    folder.mkdir()
    path = folder / "ledger.db"
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charged(ledger, "one")
    shutil.copytree(folder, copy)
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charged(ledger, "two")
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    refused = pytest.raises(LedgerIntegrityError, match="older or another")
    with refused, session(path, budget=BUDGET, guard=guard, fingerprint="data"):
        pytest.fail("it was let in")
    with Ledger(path) as ledger:
        assert ledger.fingerprints == ()


def test_what_was_seen_is_noted_also_where_the_act_fails(tmp_path):
    path, guard = tmp_path / "ledger.db", RollbackGuard()

    def fail(ledger: Ledger) -> None:
        charged(ledger, "one")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), session(path, budget=BUDGET, guard=guard) as ledger:
        fail(ledger)
    with Ledger(path) as ledger:
        guard.check(ledger)
    with Ledger(budget=BUDGET) as other, pytest.raises(LedgerIntegrityError):
        guard.check(other)


def test_a_text_is_a_path_and_nothing_else_is_changed():
    ledger = Ledger(budget=BUDGET)
    assert ledger_location("run/ledger.db") == Path("run/ledger.db")
    assert ledger_location(ledger) is ledger
    assert ledger_location(None) is None


def test_a_refused_url_is_not_quoted():
    with pytest.raises(InvalidParameter, match="a URL of postgresql;") as refusal:
        ledger_location("postgresql://user:hunter2@host/db")
    assert "hunter2" not in str(refusal.value)


def test_a_file_is_written_whole_with_its_mode_and_nothing_beside_it(tmp_path):
    for mode in (0o600, 0o644):
        write_atomically(tmp_path / "file", b"new", mode=mode)
        assert (tmp_path / "file").read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full disk", "Ctrl-C"])
def test_a_file_that_is_not_written_whole_leaves_nothing(tmp_path, monkeypatch, failure):
    monkeypatch.setattr(os, "fsync", Mock(side_effect=failure))
    for write in (write_atomically, write_beside):
        with pytest.raises(type(failure)):
            write(tmp_path / "file", b"new", mode=0o644)
    assert not list(tmp_path.iterdir())


def test_a_key_is_drawn_once_and_never_replaced(tmp_path):
    path = tmp_path / "run.key"
    first = read_or_create_key(path).reveal()
    assert len(first) == 32
    assert read_or_create_key(path).reveal() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["run.key"]
    for content in (b"", first[:-1], first + b"\n"):
        path.write_bytes(content)
        with pytest.raises(PreconditionFailed, match="not a key of 32 bytes"):
            read_or_create_key(path)


def test_of_two_processes_that_draw_a_key_at_once_the_first_wins(tmp_path, monkeypatch):
    path = tmp_path / "run.key"
    monkeypatch.setattr(Path, "exists", lambda self: False)  # both looked before either wrote
    assert read_or_create_key(path).reveal() == read_or_create_key(path).reveal()


def test_the_key_that_binds_data_is_the_ledgers_own(tmp_path):
    path = tmp_path / "ledger.db"
    key = fingerprint_key(path).reveal()
    assert fingerprint_key(path).reveal() == key
    with Ledger(path, budget=Budget(1.0, 1e-5)) as ledger:
        assert fingerprint_key(ledger).reveal() == key
        (tmp_path / "ledger.db.key").unlink()
        fingerprint_key(ledger)  # bound to nothing yet: a new key does no harm
        ledger.bind("0" * 64)
        (tmp_path / "ledger.db.key").unlink()
        with pytest.raises(LedgerMismatch, match="Restore it from a backup"):
            fingerprint_key(ledger)
    with pytest.raises(LedgerMismatch, match="Restore it from a backup"):
        fingerprint_key(path)
    assert not (tmp_path / "ledger.db.key").exists()


def test_a_ledger_in_memory_has_one_key_while_it_lives():
    first, second = (Ledger(budget=Budget(1.0, 1e-5)) for _ in range(2))
    assert fingerprint_key(first).reveal() == fingerprint_key(first).reveal()
    assert len({fingerprint_key(each).reveal() for each in (first, second, None, None)}) == 4


def test_where_another_process_was_first_its_key_is_taken(tmp_path):
    """What was made with a key that was not kept is made again, with the one that was."""
    path, made = tmp_path / "ledger.db", []

    def make(key: Secret[bytes]) -> bytes:
        if not made:
            fingerprint_key(path)  # the other one
        made.append(key.reveal())
        return made[-1]

    assert with_key(path, make) == fingerprint_key(path).reveal()
    assert len(made) == 2
    assert made[0] != made[1]
    assert with_key(path, lambda key: key.reveal(), begin=False) == made[1]
    assert with_key(tmp_path / "other.db", lambda key: key.reveal(), begin=False) != made[1]
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.db.key.new"]


SCOPE = GuaranteeScope(unit="person", neighbours="replace one person", caveats=("n is public",))
CHARGE = Charge(
    event=Composed((PureDP(0.25), PureDP(0.5))), delta=0.0, purposes={"label": 1, "evaluation": 1}, key="a run",
    scope=SCOPE, seeded=False, charged_to={"label": 0, "evaluation": 1},
)  # fmt: skip


def test_what_a_charge_says_is_what_the_ledger_holds():
    with Ledger(budget=BUDGET) as ledger:
        reservation = CHARGE.reserve(ledger)
        assert reservation.event == CHARGE.event
        assert dict(reservation.purposes) == CHARGE.purposes
        assert dict(reservation.charged_to or {}) == CHARGE.charged_to
        assert (reservation.scope, reservation.key, reservation.client) == (SCOPE, "a run", LOCAL_CLIENT)
        assert ledger.spent.epsilon == pytest.approx(0.75, abs=1e-8)


def test_a_charge_is_made_once_and_a_seeded_one_is_another():
    with Ledger(budget=Budget(2.0, 1e-5)) as ledger:
        seeded = replace(CHARGE, seeded=True)
        first, again = CHARGE.reserve(ledger), CHARGE.reserve(ledger)
        assert first.sequence == again.sequence
        assert seeded.find(ledger) is None
        assert seeded.reserve(ledger).client == SEEDED_CLIENT
        assert ledger.spent.epsilon == pytest.approx(1.5, abs=1e-8)
        assert CHARGE.find(ledger).sequence == first.sequence  # type: ignore[union-attr]


def test_another_sentence_makes_it_another_request():
    with Ledger(budget=BUDGET) as ledger:
        CHARGE.reserve(ledger)
        with pytest.raises(PreconditionFailed):
            replace(CHARGE, scope=replace(SCOPE, caveats=("n is public", "more"))).reserve(ledger)


def test_to_look_whether_it_can_be_paid_charges_nothing():
    with Ledger(budget=Budget(0.5, 1e-5)) as ledger:
        with pytest.raises(BudgetExhausted):
            CHARGE.check_affordable(ledger)
        replace(CHARGE, event=PureDP(0.5), charged_to=None).check_affordable(ledger)
        assert ledger.spent.epsilon == 0.0


def account(path: Path, charge: Charge = CHARGE) -> Account:
    guard = RollbackGuard()
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charge.reserve(ledger)
        return Account(charge=charge, ledger=ledger, budget=BUDGET, guard=guard)


def test_an_account_opens_its_ledger_for_one_question(tmp_path):
    path = tmp_path / "ledger.db"
    mine = account(path)
    for question in range(2):
        with mine.open(path) as (ledger, reservation):
            assert reservation.key == "a run"
            purpose = ("label", "evaluation")[question]
            reservation.store(reservation.draw(purpose), [question])
            assert ledger.healthy
    with mine.open(path) as (_, reservation):
        assert [reservation.remaining(each) for each in CHARGE.purposes] == [0, 0]


def test_an_account_refuses_a_ledger_that_does_not_hold_its_charge(tmp_path):
    path = tmp_path / "ledger.db"
    mine = account(path)
    other = replace(mine, charge=replace(CHARGE, key="another run"))
    with pytest.raises(PreconditionFailed, match="no reservation of this fit"), other.open(path):
        pytest.fail("it was let in")


def test_a_guarantee_is_of_everything_on_the_ledger():
    with Ledger(budget=BUDGET) as ledger:
        CHARGE.reserve(ledger)
        told = guarantee_of(
            ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False, before="the sum", caveats=("rough",)
        )
        assert (told.epsilon, told.delta) == (ledger.spent.epsilon, 0.0)
        assert (told.unit, told.neighbours) == ("person", "replace one person")
        assert told.caveats == ("n is public", NOT_DURABLE, "rough")
        assert "priced before the sum and composed by sum" in told.accounting
        ledger.reserve(PureDP(0.125), delta=0, purposes={"label": 1}, key="more")
        more = guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False)
        assert more.epsilon == ledger.spent.epsilon > told.epsilon + 0.124


def test_a_seeded_release_is_told_as_such():
    with Ledger(budget=BUDGET) as ledger:
        replace(CHARGE, seeded=True).reserve(ledger)
        assert guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=True).seeded
        assert guarantee_of(ledger, CHARGE.event, delta=0.0, mechanism="a sum", seeded=False).seeded_earlier


def test_to_look_binds_nothing():
    ledger = Ledger(budget=BUDGET)
    refuse_unaffordable(ledger, lambda _: CHARGE, budget=BUDGET, fingerprint="of the data")
    assert (ledger.reservations(), ledger.fingerprints) == ((), ())


def test_stored_answers_are_told_and_those_whose_process_ended_while_they_were_drawn(tmp_path):
    with Ledger(tmp_path / "ledger.db", budget=BUDGET) as ledger:
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 900}, key="a run")
        reservation.store(reservation.draw(LABEL, 256), [0] * 256)
        reservation.draw(LABEL, 64)
        assert stored_answers(reservation) == "256 of 900 answers are stored"
    with Ledger(tmp_path / "ledger.db") as ledger:
        (reservation,) = ledger.reservations()
        assert stored_answers(reservation) == "256 of 900 answers are stored, 64 are lost"


def test_the_terms_of_a_ledger_are_its_own_or_those_of_a_new_one():
    assert LedgerTerms().composition == "sum"
    assert terms_of(Ledger(budget=Budget(1.0, 1e-5, composition="zcdp"))).composition == "zcdp"


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in():
    assert floor_epsilon(1.0986122886681098) == 1.098612288
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)
    assert client_of(seeded=True) == "local, seeded noise: no guarantee"


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one():
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]
