"""Files: what is on the disk, who may hold it, and what is refused."""

import errno
import gc
import os
import re
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest
from tests.ledger.conftest import reserved

from quorate.errors import InvalidParameter, LedgerBusy, LedgerIntegrityError, PreconditionFailed, QuorateError
from quorate.ledger import Budget, Ledger, SqliteStore, ledger_files
from quorate.ledger.ledger_files import LedgerFiles

BUDGET = Budget(1.0, 1e-5)
FILES = ("ledger.db", "ledger.db.anchor")


@pytest.fixture
def ledger(on_disk):
    return on_disk.open(BUDGET)


def saved(path, folder):
    folder.mkdir()
    for name in FILES:
        shutil.copy2(path.with_name(name), folder / name)
    return folder


def contents(path):
    places = [path.with_name(name) for name in FILES]
    return {place.name: place.read_bytes() for place in places if place.is_file()}


def refused(path):
    before = contents(path)
    for budget in (None, BUDGET, Budget(9.0, 1e-5)):
        with pytest.raises(LedgerIntegrityError) as caught:
            Ledger(path, budget=budget)
    assert contents(path) == before  # nothing was made afresh in place of what is missing
    assert caught.value.exit_code == 5
    return caught.value


NO_SPACE, NO_DISK = OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "Input/output error")


def raising(fault, *points):
    """A hook that raises it after these steps of a commit; at every call where none is named."""

    def at(name):
        if not points or name in points:
            raise fault

    return at


def edit(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_files_are_for_their_owner_alone(path):
    ledger = Ledger(path)
    reserved(ledger).draw("label")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    ledger.close()
    assert set(modes) == {"ledger.db", "ledger.db-wal", "ledger.db.anchor", "ledger.db.lock"}
    assert set(modes.values()) == {0o600}


def test_a_ledger_that_others_may_read_is_closed_to_them(path):
    path.chmod(0o644)
    Ledger(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_reading_writes_nothing(path):
    before = contents(path)
    with Ledger(path) as ledger:
        assert ledger.spent.epsilon == 0.25
        assert [block.answers for block in ledger.reservations()[0].blocks("label")] == [[1, 0], [2, 1]]
        ledger.verify()
    assert contents(path) == before


def test_a_ledger_that_is_not_there_is_not_made_without_a_budget(tmp_path):
    with pytest.raises(PreconditionFailed):
        Ledger(tmp_path / "ledger.db")
    assert not list(tmp_path.iterdir())
    for wrong in (tmp_path, tmp_path / "nowhere" / "ledger.db"):
        with pytest.raises(PreconditionFailed):
            Ledger(wrong, budget=BUDGET)


def test_the_disk_is_waited_for(on_disk):
    on_disk.open(BUDGET)
    store = on_disk.opened[0]._store
    settings = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2}  # 2 is FULL


def test_the_logs_name_is_on_the_disk_before_the_first_commit(path, monkeypatch):
    """SQLite ignores an error of its own sync of the folder (unixSync), so the ledger makes one before it."""
    log, synced = path.with_name("ledger.db-wal"), []
    honest = ledger_files.sync_folder

    def note(folder):
        synced.append((log.exists(), log.stat().st_size if log.exists() else 0))
        honest(folder)

    monkeypatch.setattr(ledger_files, "sync_folder", note)
    with Ledger(path) as ledger:
        assert synced == []  # reading needs none
        ledger.reservations()[0].draw("label")
        ledger.reservations()[0].draw("label")
    assert synced == [(True, 0)]
    monkeypatch.setattr(ledger_files, "sync_folder", raising(NO_DISK))
    with Ledger(path) as ledger, pytest.raises(LedgerIntegrityError):
        ledger.reservations()[0].draw("label")
    with Ledger(path) as ledger:
        assert ledger.reservations()[0].remaining("label") == 4


def test_an_older_ledger_is_refused(path, tmp_path):
    old = saved(path, tmp_path / "old")
    with Ledger(path) as ledger:
        reserved(ledger).draw("label")
    shutil.copy2(old / "ledger.db", path)
    assert "older" in str(refused(path))


def test_an_older_ledger_with_its_anchor_is_exposed_by_a_receipt(path, tmp_path):
    old = saved(path, tmp_path / "old")
    with Ledger(path) as ledger:
        receipt = reserved(ledger).draw("label").receipt
    for name in FILES:
        shutil.copy2(old / name, path.with_name(name))
    with Ledger(path) as ledger, pytest.raises(LedgerIntegrityError):
        ledger.check_receipt(receipt)


def test_an_older_anchor_is_brought_up_to_date(path, tmp_path):
    old = saved(path, tmp_path / "old")
    with Ledger(path) as ledger:
        reserved(ledger).draw("label")
        newest = ledger.head
    anchor = path.with_name("ledger.db.anchor")
    up_to_date = anchor.read_bytes()
    shutil.copy2(old / anchor.name, anchor)
    with Ledger(path) as ledger:
        assert ledger.head == newest
    assert anchor.read_bytes() == up_to_date


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    for content in (b"hello", b"{}", b"SQLite format 3\x00", b"SQLite format 3\x00" + b"x" * 4096):
        (tmp_path / "ledger.db").write_bytes(content)
        for budget in (None, BUDGET):
            with pytest.raises(PreconditionFailed, match="is no ledger"):
                Ledger(tmp_path / "ledger.db", budget=budget)
        assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]  # nothing was made beside it
        assert (tmp_path / "ledger.db").read_bytes() == content


def test_another_ledger_is_refused(path, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "ledger.db"
    with Ledger(other, budget=BUDGET) as ledger:
        reservation = reserved(ledger, count=100)
        for _ in range(20):
            reservation.draw("label")
    shutil.copy2(other, path)
    refused(path)


def test_a_log_without_its_ledger_is_refused(tmp_path):
    (tmp_path / "ledger.db-wal").write_bytes(b"something")
    refused(tmp_path / "ledger.db")


IN_PLACE = {
    "ledger.db": [None, b"", b"hello", b"SQLite format 3\x00"],
    "ledger.db.anchor": [None, b"", b"\n", b"{}", b"null", b"[]", *(
        b'{"hash":"%s","sequence":1}\n' % digits for digits in (b"", b"0" * 64)
    )],
}  # fmt: skip


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("name", "content"), [(name, content) for name in IN_PLACE for content in IN_PLACE[name]])
def test_a_file_that_was_deleted_or_replaced_is_refused_and_not_made_afresh(path, name, content):
    path.with_name(name).unlink()
    if content is not None:
        path.with_name(name).write_bytes(content)
    refused(path)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE entry SET line = replace(line, '250000000', '150000000')"],
        ["UPDATE entry SET line = line || ' ' WHERE sequence = 3"],
        ["UPDATE entry SET line = CAST(line AS BLOB)"],
        ["DELETE FROM entry WHERE sequence = 4"],
        ["DELETE FROM entry WHERE sequence = (SELECT max(sequence) FROM entry)"],
        ["DELETE FROM entry"],
        [
            "UPDATE entry SET sequence = -4 WHERE sequence = 4",
            "UPDATE entry SET sequence = 4 WHERE sequence = 5",
            "UPDATE entry SET sequence = 5 WHERE sequence = -4",
        ],
        ["UPDATE entry SET sequence = sequence - 10"],
        ["INSERT INTO entry SELECT max(sequence) + 1, line FROM entry"],
        ["INSERT INTO entry VALUES (99, '{}')"],
        ["CREATE TRIGGER quiet BEFORE INSERT ON entry BEGIN SELECT RAISE(IGNORE); END"],
        ["CREATE TABLE other (x)"],
        ["DROP TABLE entry"],
        ["ALTER TABLE entry RENAME TO entries"],
        ["PRAGMA application_id = 1"],
    ],
)
def test_an_edited_row_or_table_is_refused(path, statements):
    edit(path, *statements)
    refused(path)


def test_damage_that_no_row_shows_is_noticed_before_anything_is_written_onto_it(path):
    with path.open("r+b") as file:
        file.seek(36)  # the number of free pages, of which there are none
        file.write((5).to_bytes(4, "big"))
    assert "damaged" in str(refused(path))


def test_a_ledger_is_held_once_in_one_process(on_disk):
    on_disk.open(BUDGET)
    with pytest.raises(LedgerBusy):
        on_disk.open(BUDGET)
    on_disk.opened[0].verify()


def test_whoever_forgets_to_close_gives_it_back_with_the_last_reference(tmp_path):
    reservation = reserved(Ledger(tmp_path / "ledger.db", budget=BUDGET))
    with pytest.raises(LedgerBusy):
        Ledger(tmp_path / "ledger.db")
    del reservation
    gc.collect()
    Ledger(tmp_path / "ledger.db").close()


@pytest.mark.parametrize("path", [3, b"ledger.db", True])
def test_a_path_is_a_string_or_a_path(path):
    with pytest.raises(InvalidParameter):
        Ledger(path, budget=BUDGET)


def attempt_elsewhere(path):
    script = (
        "import sys; from quorate.ledger import Budget, Ledger\ntry: Ledger(sys.argv[1], budget=Budget(1.0, 1e-5))\n"
    )
    script += "except Exception as error: print(type(error).__name__)\nelse: print('held')"
    return subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True).stdout


@pytest.mark.heavy
def test_the_hold_outlives_careless_neighbours(on_disk, ledger):
    """Reading the file in this process drops POSIX locks; deleting the lock file drops ours: one lock is left."""
    on_disk.path.read_bytes()
    assert attempt_elsewhere(on_disk.path) == "LedgerBusy\n"
    ledger.close()
    ledger = on_disk.open(BUDGET)
    on_disk.path.with_name("ledger.db.lock").unlink()
    assert attempt_elsewhere(on_disk.path) == "LedgerBusy\n"
    reserved(ledger)
    ledger.verify()


@pytest.mark.heavy
def test_a_forked_child_may_neither_use_a_ledger_nor_harm_it(nursery, tmp_path):
    told = nursery(do="inherit", path=str(tmp_path / "ledger.db"))
    assert told == {"told": "refused", "log_kept": True, "remaining": 38}


POINTS = ["begun", "inserted", "committed", "anchor written", "anchored"]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("point", [None, "anchor renamed", *POINTS])
def test_a_ledger_whose_making_was_cut_short_can_be_made(on_disk, point):
    on_disk.at = raising(NO_SPACE, point)
    if point is not None:
        with pytest.raises(LedgerIntegrityError):
            on_disk.open(BUDGET)
    on_disk.at = lambda _: None
    ledger = on_disk.open(BUDGET)
    assert (ledger.spent.epsilon, len(ledger.entries())) == (0.0, 1)


def test_what_a_killed_process_did_not_wait_for_is_put_on_the_disk_before_it_counts(on_disk, ledger, reservation):
    on_disk.at = raising(NO_DISK, "committed")
    with pytest.raises(LedgerIntegrityError):
        reservation.draw("label")
    copy = on_disk.path.parent / "copy"
    copy.mkdir()  # as a killed process leaves it: closing would have emptied the log
    for name in (*FILES, "ledger.db-wal"):
        shutil.copy2(on_disk.path.with_name(name), copy / name)
    log = copy / "ledger.db-wal"
    assert log.stat().st_size
    with Ledger(copy / "ledger.db") as ledger:
        assert not log.stat().st_size
        assert reserved(ledger).remaining("label") == 9


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("end", ["", "-wal", ".anchor"])
@pytest.mark.parametrize("leave", ["nothing", "a copy", "a second name", "a link"])
def test_a_file_of_an_open_ledger_that_is_removed_or_replaced_is_noticed_before_the_next_commit(path, end, leave):
    file, copy = path.with_name(path.name + end), path.with_name("copy")
    ledger = Ledger(path)
    [reservation] = ledger.reservations()
    block = reservation.draw("label", 2)
    if leave == "a second name":
        copy.hardlink_to(file)
    else:
        shutil.copy(file, copy)
        file.unlink()
        if leave == "a copy":
            copy.rename(file)
        elif leave == "a link":
            file.symlink_to(copy)
    before = sorted(each.name for each in path.parent.iterdir())
    with pytest.raises(LedgerIntegrityError, match=f"{re.escape(file.name)} was removed or replaced"):
        reservation.store(block, [1, 0])  # so that no answer leaves that a removed file was charged for
    assert sorted(each.name for each in path.parent.iterdir()) == before  # nothing is made anew
    assert not ledger.healthy
    with pytest.raises(LedgerIntegrityError, match="removed or replaced"):
        ledger.close()  # and whoever commits nothing more is told when it ends


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("write", ["an older copy", "emptied", "one byte"])
def test_a_file_of_an_open_ledger_that_somebody_writes_into_is_noticed_before_the_next_commit(path, end, write):
    """In place, under its name: what is committed behind that would not be found again."""
    file = path.with_name(path.name + end)
    older = path.read_bytes()
    ledger = Ledger(path)
    [reservation] = ledger.reservations()
    for _ in range(2):  # its own writes are none of somebody else's
        reservation.store(reservation.draw("label", 1), [1])
    before = file.read_bytes()
    file.write_bytes({"an older copy": older, "emptied": b"", "one byte": before[:-1] + b"x"}[write])
    with pytest.raises(LedgerIntegrityError, match=f"{re.escape(file.name)} was written into by somebody else"):
        reservation.draw("label", 1)
    assert not ledger.healthy
    file.write_bytes(before)
    with pytest.raises(LedgerIntegrityError, match="written into"):
        ledger.close()


def test_a_pipe_in_the_place_of_an_anchor_is_waited_for_by_nobody(path):
    file = path.with_name("ledger.db.anchor")
    ledger = Ledger(path)
    [reservation] = ledger.reservations()
    kept = file.rename(path.with_name("kept"))
    assert not ledger.in_place
    os.mkfifo(file)
    with pytest.raises(LedgerIntegrityError, match="removed or replaced"):
        reservation.draw("label", 1)
    ledger.close()
    with pytest.raises(LedgerIntegrityError, match="is no file"):
        Ledger(path)
    kept.rename(file)
    with Ledger(path) as again:
        assert again.in_place


def test_without_descriptors_or_memory_nothing_is_written_and_the_next_request_goes_on(path, monkeypatch):
    with Ledger(path) as ledger:
        [reservation] = ledger.reservations()
        left = reservation.remaining("label")
        for shortage in (OSError(errno.EMFILE, "too many"), MemoryError(), OSError(errno.ENFILE, "too many")):
            with monkeypatch.context() as patch:
                patch.setattr(LedgerFiles, "refuse_replaced", raising(shortage))
                with pytest.raises(LedgerBusy, match="nothing was written: try again"):
                    reservation.draw("label")
            assert ledger.healthy
            assert reservation.remaining("label") == left
        reservation.draw("label")
        ledger.verify()


def test_a_ledger_in_use_needs_no_further_descriptor(path):
    with Ledger(path) as ledger:
        [reservation] = ledger.reservations()
        reservation.draw("label")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            reservation.store(reservation.draw("label"), [1])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        ledger.verify()


def test_why_it_failed_is_told_by_its_code_and_never_by_what_the_database_says(path):
    store = SqliteStore(path, create=False)
    ledger = Ledger(store=store)
    store._connection.execute("CREATE TEMP TRIGGER no BEFORE INSERT ON entry BEGIN SELECT raise(ABORT, '4711'); END")
    with pytest.raises(LedgerIntegrityError) as refused:
        ledger.reservations()[0].draw("label")
    assert "SQLITE_CONSTRAINT_TRIGGER: somebody else wrote to the table" in str(refused.value)
    assert "4711" not in str(refused.value)
    ledger.close()


def test_an_interrupt_in_a_commit_stops_the_ledger(on_disk, reservation):
    on_disk.at = raising(KeyboardInterrupt, "committed")
    with pytest.raises(KeyboardInterrupt):
        reservation.draw("label")
    with pytest.raises(QuorateError):
        reservation.draw("label")
    on_disk.close()
    on_disk.at = lambda _: None
    assert reserved(on_disk.open(BUDGET)).remaining("label") == 9


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_an_error_of_the_machine(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(QuorateError):
        Ledger(tmp_path / "closed" / "ledger.db", budget=BUDGET)
