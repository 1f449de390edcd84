"""Direct runs whose rows are read part by part and whose coordinates lie in a file: a full disk, a kill, a check."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tests.folder.conftest import DIRECT
from tests.folder.test_resume import perform_killed

from quorate.data import spool
from quorate.direct import descend, prepare, task
from quorate.direct.spool import units_of
from quorate.folder import direct_run, table_source
from quorate.folder.direct_run import read_direct
from quorate.folder.methods import execute
from quorate.ledger import Ledger
from quorate.run import progress, usable_rows


def no_room(*_: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def make_spooled(make_run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Folders of direct runs whose rows are read part by part and whose coordinates lie in a file."""
    monkeypatch.setattr(usable_rows, "CELLS", 500)
    settings = {**DIRECT, "method.feature_map": "linear", "run.memory": 1e-9}
    return lambda name="run", **changes: make_run(name, m=60, **{**settings, **changes})


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("call", "hashes"), [("posix_fallocate", False), ("pwrite", False), ("pwrite", True)])
def test_a_full_disk_is_exit_code_4_and_nothing_is_charged(
    make_spooled: Any, cli: Any, call: str, hashes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_spooled()
    with monkeypatch.context() as patch:
        if not hashes:  # of rows, which are written first: it is the coordinates that have no room
            patch.setattr(prepare, "most_held", lambda _: 1 << 20)
            patch.setattr(task, "units_of", lambda *given, **how: units_of(*given, **{**how, "most": 0}))
        patch.setattr(spool, "os", SimpleNamespace(**{**vars(os), call: no_room}))  # of the spool alone
        code, _, said = cli("run", root)
    assert code == 4
    assert "private: what is made of the private rows cannot be kept there (No space left on device)" in said
    if (root / "ledger.db").exists():  # opened once the rows are read
        assert not hashes
        with Ledger(root / "ledger.db") as ledger:
            assert ledger.reservations() == ()
    assert cli("run", root)[0] == 0


@pytest.mark.heavy
def test_a_run_that_was_killed_goes_on_from_its_rounds_with_a_spool_of_its_own(
    make_spooled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeded = {"run.unsafe_noise_seed": 5, "data.unit": "patient_id", "data.drop": [], "data.n_records": 200}
    killed, whole = make_spooled("killed", **seeded), make_spooled("whole", **seeded, **{"run.memory": 0.5})
    perform_killed(killed, after=2, in_flight=False, read=read_direct)
    assert not [each for each in (killed / "private").iterdir() if each.name.startswith((".", "tmp"))]
    execute(read_direct(killed), command="quorate run")
    monkeypatch.setattr(usable_rows, "CELLS", 1 << 22)
    execute(read_direct(whole), command="quorate run")
    assert released(killed) == released(whole)


@pytest.mark.heavy
def test_each_pass_over_a_large_file_is_told_from_its_first_row_on_and_where_a_killed_run_goes_on(
    make_spooled: Any, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_spooled(**{"method.rounds": 6})
    monkeypatch.setattr(table_source, "LARGE_FILE", 100)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(descend, "release", killed_after(3, descend.release))
        code, _, said = cli("run", root)
    first, *later = said.splitlines()
    assert code == 6
    assert first == "reading private rows (100)"
    assert re.fullmatch(r"reading private rows: \d+ of 100, about \d+ s left", later[0])
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 60.0)
    resumed = cli("run", root)[2]
    assert resumed.startswith("reading private rows (100)\nreading them as at first (100)\n")
    assert "gradient rounds (6, 3 of them done before)" in resumed
    monkeypatch.setattr(table_source, "LARGE_FILE", 1 << 24)
    assert "private rows" not in cli("run", root)[2]


def killed_after(rounds: int, release: Any) -> Any:
    left = [rounds]

    def released(*given: Any, **how: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return release(*given, **how)

    return released


@pytest.mark.heavy
def test_a_check_says_what_a_large_file_takes_and_no_json_does(
    make_spooled: Any, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_spooled()
    small = cli("check", root)[1]
    monkeypatch.setattr(table_source, "LARGE_FILE", 100)
    said, told = " ".join(cli("check", root)[1].split()), cli("check", root, "--json")[1]
    assert "private.csv has 0 MB: expect about" in said
    assert "of one core" in said
    assert "private.csv has" not in small
    assert "one core" not in told
    monkeypatch.setattr(direct_run, "disk_usage", lambda _: type("Usage", (), {"free": 3})())
    monkeypatch.setattr(direct_run, "allowed_memory", lambda _: 1)
    monkeypatch.setattr(direct_run, "bytes_held", lambda _: 10**10)
    said = " ".join(cli("check", root)[1].split())
    assert "where 0 MB are free: make room, or the run is refused before its charge" in said
    assert "10 GB of memory" in said
    assert "This machine allows 0 MB of memory: take one with more, or save the table as Parquet" in said


def released(root: Path) -> list[Any]:
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        return [block.answers for block in reservation.blocks("gradient round")]


@pytest.mark.faults
def test_a_process_that_is_killed_in_a_round_leaves_no_row_behind(make_run: Any) -> None:
    """SIGKILL, twice: nothing is left in the folder, and the run goes on to its end with every round once."""
    root = make_run("run", m=60, **{**DIRECT, "method.rounds": 30})
    child = (
        "import os, signal, sys\n"
        "from quorate.data import spool\n"
        "from quorate.direct import descend\n"
        "from quorate.folder import tables\n"
        "spool.IN_MEMORY = tables.CELLS_IN_MEMORY = 0\n"
        "real, left = descend.release, [int(sys.argv[1])]\n"
        "def release(*args, **how):\n"
        "    left[0] -= 1\n"
        "    if left[0] < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(*args, **how)\n"
        "descend.release = release\n"
        "from quorate.cli import main\n"
        "main(['run', sys.argv[2]])\n"
    )
    before = {each.name for each in (root / "private").glob("*")} if (root / "private").exists() else set()
    for rounds in (4, 7):
        ended = subprocess.run([sys.executable, "-c", child, str(rounds), str(root)], capture_output=True)
        assert ended.returncode == -9, ended.stderr
        left = {each.name for each in (root / "private").iterdir()} - before
        assert not [name for name in left if not name.endswith((".stage", ".head", ".key"))], left
    assert subprocess.run([sys.executable, "-c", child, "99", str(root)], capture_output=True).returncode == 0
    assert len(released(root)) == 30
    assert all(answers is not None for answers in released(root))
