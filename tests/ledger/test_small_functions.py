"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from pathlib import Path

from quorate.ledger.ledger_files import beside, both_missing, had_ledger, key_file, stands


def test_files() -> None:
    assert beside(Path("run/ledger.db"), ".anchor").name == "ledger.db.anchor"
    assert not stands(Path("nowhere/ledger.db"), Path.cwd().stat())
    assert (key_file(Path("run/ledger.db")).name, key_file(Path("run/ledger.db"), new=True).name) == (
        "ledger.db.key",
        "ledger.db.key.new",
    )
    assert not had_ledger(Path("nowhere/ledger.db"))
    assert (
        both_missing(Path("ledger.db")).partition(";")[0]
        == "the ledger ledger.db and its anchor are missing, but were there"
    )
