"""The anchor's two slots: one is written over while the other one stands, and whatever tears is made out or refused."""

import os
import shutil
from pathlib import Path

import pytest

from quorate.errors import LedgerIntegrityError
from quorate.ledger import Ledger, SqliteStore
from quorate.ledger import ledger_files as anchors
from quorate.ledger.ledger_files import SLOT, AnchorFile, beside
from quorate.ledger.state import Head


def head(sequence):
    return Head(sequence=sequence, hash=f"{sequence:064x}")


def file_at(path):
    return AnchorFile(path, at=lambda _: None)


@pytest.fixture
def anchor(tmp_path):
    """An anchor in which 5 was written after 4."""
    file = file_at(tmp_path / "a.anchor")
    file.replace(head(3))
    for sequence in (4, 5):
        file.write(head(sequence))
    return file


def test_a_head_is_written_over_the_older_slot(anchor):
    for sequence in range(6, 20):
        before = anchor.path.read_bytes()
        slots = anchor.slots()
        kept = 1 - slots.next
        anchor.write(head(sequence))
        after = anchor.path.read_bytes()
        assert after[kept * SLOT : (kept + 1) * SLOT] == before[kept * SLOT : (kept + 1) * SLOT]
        assert anchor.read() == head(sequence)
        assert len(after) == 2 * SLOT


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b" " * 2 * SLOT, b"\0" * 2 * SLOT, b"x" * (2 * SLOT + 1)])
def test_what_is_no_anchor_is_refused_and_not_written_over(anchor, content):
    anchor.path.write_bytes(content)
    for act in (anchor.read, lambda: anchor.write(head(9))):
        with pytest.raises(LedgerIntegrityError, match="altered"):
            act()
    assert anchor.path.read_bytes() == content


def test_slots_that_contradict_each_other_are_refused(anchor):
    other = Head(sequence=5, hash="f" * 64)
    anchor.path.write_bytes(anchors._slot(head(5)) + anchors._slot(other))
    with pytest.raises(LedgerIntegrityError, match="altered"):
        anchor.read()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("flip", range(0, 2 * SLOT, 701))
def test_a_spoilt_slot_is_a_crash_where_the_ledger_goes_on_beyond_the_other_one_and_refused_elsewhere(path, flip):
    slots = file_at(beside(path, ".anchor")).slots()
    content = bytearray(beside(path, ".anchor").read_bytes())
    content[flip] ^= 1
    beside(path, ".anchor").write_bytes(content)
    if flip // SLOT == slots.next:  # the older one: the newest names the ledger's last entry
        with pytest.raises(LedgerIntegrityError, match="damaged"):
            Ledger(path)
        assert beside(path, ".anchor").read_bytes() == content
        return
    with Ledger(path) as ledger:
        assert ledger.head == slots.newest
        ledger.verify()
    repaired = file_at(beside(path, ".anchor")).slots()
    assert (repaired.newest, repaired.torn) == (slots.newest, False)


def test_an_older_ledger_is_seen_with_a_spoilt_slot_too(path, tmp_path):
    """Whoever spoils the newest slot hides its head; the ledger then goes on beyond the other one, or was put back."""
    old = tmp_path / "old.db"
    shutil.copy2(path, old)
    with Ledger(path) as ledger:
        ledger.reservations()[0].draw("label")  # two entries in one commit: the session's first, and the block
    slots = file_at(beside(path, ".anchor")).slots()
    newest = 1 - slots.next
    content = bytearray(beside(path, ".anchor").read_bytes())
    content[newest * SLOT + 20] ^= 1
    beside(path, ".anchor").write_bytes(content)
    shutil.copy2(old, path)
    with pytest.raises(LedgerIntegrityError, match="damaged"):
        Ledger(path)


def test_a_commit_writes_its_anchor_in_place_and_syncs_it_once_before_it_counts(path, monkeypatch):
    order = []

    def noted(name, real):
        def call(*arguments, **named):
            order.append(name)
            return real(*arguments, **named)

        return call

    for name in ("fsync", "fdatasync", "pwrite"):
        monkeypatch.setattr(anchors.os, name, noted(name, getattr(os, name)))
    monkeypatch.setattr(Path, "replace", noted("rename", Path.replace))
    with Ledger(store=SqliteStore(path, create=False, at=order.append)) as ledger:
        [reservation] = ledger.reservations()
        reservation.draw("label")  # with the sync of the log's name, once a process
        for _ in range(3):
            order.clear()
            reservation.draw("label")
            assert order == ["begun", "inserted", "committed", "pwrite", "anchor written", "fdatasync", "anchored"]
