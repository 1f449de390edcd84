"""Keys and files of a release: written whole, drawn once, never replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from quorate.errors import LedgerMismatch, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.release.keys import fingerprint_key, read_or_create_key, with_key, write_atomically
from quorate.types import Secret


def test_a_file_is_written_whole_with_its_mode_and_nothing_beside_it(tmp_path):
    for mode in (0o600, 0o644):
        write_atomically(tmp_path / "file", b"new", mode=mode)
        assert (tmp_path / "file").read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


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
