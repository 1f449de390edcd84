"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import errno
from pathlib import Path

from quorate.ledger.budget import Budget
from quorate.ledger.ledger_files import beside, both_missing, had_ledger, key_file, stands
from quorate.ledger.rules import may_be_raised
from quorate.ledger.store import is_shortage, reason_of
from quorate.ledger.stores import is_url


def test_failures() -> None:
    assert reason_of(OSError(errno.ENOSPC, "no room for '1234'", "/a/file")) == "ENOSPC: No space left on device"
    assert reason_of(MemoryError("1234")) == "MemoryError: no memory is left"
    assert (is_shortage(OSError(errno.EMFILE, "")), is_shortage(OSError(errno.ENOSPC, ""))) == (True, False)


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


def test_rules() -> None:
    assert (
        may_be_raised(Budget(1.0, 1e-5), Budget(2.0, 1e-5)),
        may_be_raised(Budget(1.0, 1e-5), Budget(2.0, 1e-6)),
    ) == (True, False)


def test_stores() -> None:
    assert (is_url("shelf://study"), is_url("run/ledger.db")) == (True, False)
