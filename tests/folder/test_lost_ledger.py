"""A ledger that was deleted with its anchor, or put back with it: missed; a first start that was cut short: not."""

import os
import shutil
import signal
from contextlib import suppress
from itertools import combinations

import pytest
from tests.folder.conftest import run
from tests.preloaded import Forked

from quorate.accounting import PureDP
from quorate.errors import LedgerIntegrityError, PreconditionFailed
from quorate.folder.batch import load_run
from quorate.folder.folder import RunFolder
from quorate.folder.methods import check
from quorate.ledger import Budget, Ledger
from quorate.ledger.ledger_files import SLOT, AnchorFile
from quorate.release.keys import fingerprint_key

pytestmark = pytest.mark.mostly_heavy

BUDGET = Budget(4.0, 1e-5)
LEDGER = ("ledger.db", "ledger.db.anchor", "ledger.db-wal", "ledger.db-shm")


def delete(root, *names):
    for name in (*LEDGER, *names):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def of_ledger(root):
    return {name: (root / name).read_bytes() for name in LEDGER if (root / name).exists()}


def put_back(root, files):
    delete(root)
    for name, content in files.items():
        (root / name).write_bytes(content)


TRACES = ("ledger.db.key", "ledger.db.lock", "private", "public")


@pytest.mark.parametrize(
    "left", [left for n in (1, 4) for left in combinations(TRACES, n)], ids=lambda left: "+".join(left)
)
def test_a_ledger_deleted_with_its_anchor_is_missed_by_whatever_is_left(finished_run, left):
    root = finished_run(n=200, m=40)
    delete(root, *set(TRACES) - set(left))
    # Where the private side is gone, the run's key is missed first.
    refusal = LedgerIntegrityError if "private" in left or "public" not in left else PreconditionFailed
    for act in (run, lambda root: check(load_run(root, begin=False))):
        with pytest.raises(refusal, match=r"restore (both|it) from a backup"):
            act(root)
    assert not (root / "ledger.db").exists()


def test_the_head_of_another_ledger_and_an_altered_one_are_refused(make_run, finished_run):
    root, other = finished_run(n=200, m=40), make_run("other", n=200, m=40)
    run(other)
    shutil.copy(other / "private" / "ledger.head", root / "private" / "ledger.head")
    with pytest.raises(LedgerIntegrityError, match="of another run"):
        run(root)
    (root / "private" / "ledger.head").write_text("{}")
    with pytest.raises(LedgerIntegrityError, match="altered"):
        run(root)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_note_with_one_damaged_byte_does_not_let_an_older_ledger_pass(make_run, slot):
    """Were its slots written in turn, the older one would count where the newer is spoilt."""
    root = make_run(n=200, m=40)
    RunFolder(root).make()
    with RunFolder(root).open_ledger(BUDGET):
        pass
    older = of_ledger(root)
    with RunFolder(root).open_ledger(BUDGET) as ledger:
        ledger.set_quota("nobody", 1, "tried")
    head = root / "private" / "ledger.head"
    put_back(root, older)
    for at in (0, 20, SLOT - 1):
        whole = head.read_bytes()
        spoilt = bytearray(whole)
        spoilt[slot * SLOT + at] ^= 1
        head.write_bytes(bytes(spoilt))
        with pytest.raises(LedgerIntegrityError, match=r"a part of private/ledger\.head is damaged"):
            run(root)
        head.write_bytes(whole)
    with pytest.raises(LedgerIntegrityError, match=r"older than private/ledger\.head"):
        run(root)


@pytest.mark.parametrize("published", ["labels.csv", "guarantee.json", "facts.json"])
def test_a_missing_head_beside_what_was_published_is_refused(finished_run, cli, published):
    root = finished_run(n=200, m=40)
    head = root / "private" / "ledger.head"
    noted = AnchorFile(head, at=lambda _: None).read()
    head.unlink()
    for name in {"labels.csv", "guarantee.json", "facts.json"} - {published}:
        (root / "public" / name).unlink()
    with pytest.raises(LedgerIntegrityError, match=r"ledger\.head is missing beside what was published") as refusal:
        run(root)
    assert refusal.value.exit_code == 5
    for command in ("run", "status", "ledger verify", "ledger show", "ledger export"):
        assert cli.refused(5, *command.split(), root).count("\n") <= 2
    assert not head.exists()
    shutil.copy(root / "ledger.db.anchor", head)  # as the line says
    run(root)
    assert AnchorFile(head, at=lambda _: None).read() == noted


def test_a_run_that_was_killed_before_it_noted_or_published_anything_goes_on(finished_run):
    """As version 0.1 leaves it: entries, stages, and no note, since that was first made at the end."""
    root = finished_run(n=200, m=40)
    shutil.rmtree(root / "public")
    (root / "public").mkdir()
    (root / "private" / "ledger.head").unlink()
    run(root)
    assert _head(root).hash in (root / "private" / "ledger.head").read_text()


@pytest.mark.quick
def test_a_process_that_was_killed_has_noted_all_that_it_wrote(make_run):
    """Whoever puts back the ledger and the anchor of the process's start, or of any later moment, is found out."""
    root = make_run(n=200, m=40)
    folder = RunFolder(root)
    folder.make()
    saved = []
    with suppress(BaseException), folder.open_ledger(BUDGET) as ledger:
        saved.append(of_ledger(root))
        for number in range(3):
            ledger.set_quota(f"client {number}", 1, "tried")
            saved.append(of_ledger(root))
        ledger._journal._stopped = LedgerIntegrityError("killed")  # nothing is noted when it ends
    torn = folder.head.read_bytes()
    for number, files in enumerate(saved):
        put_back(root, files)
        if number + 1 == len(saved):
            with folder.open_ledger():
                pass
            continue
        with pytest.raises(LedgerIntegrityError, match="older than"), folder.open_ledger():
            pass
    # A power cut tears a note whose entry is in the ledger already; a ledger put back to the other one is seen.
    for slot in (0, 1):
        folder.head.write_bytes(torn[: slot * SLOT] + b"\0" * SLOT + torn[(slot + 1) * SLOT :])
        newest = AnchorFile(folder.head, at=lambda _: None).read()
        if newest == _head(root):
            with pytest.raises(LedgerIntegrityError, match="damaged"), folder.open_ledger():
                pass
        else:
            with folder.open_ledger():
                pass
            assert AnchorFile(folder.head, at=lambda _: None).read() == _head(root)


def test_the_owners_acts_are_noted_and_an_older_ledger_is_told_of_by_every_verb(finished_run, cli):
    root = finished_run(n=200, m=40)
    older = of_ledger(root)
    assert cli("ledger", "close", root, "--reason", "published")[0] == 0
    assert _head(root).hash in (root / "private" / "ledger.head").read_text()
    put_back(root, older)  # so that the release is open again
    for verb in ("verify", "show", "export"):
        assert cli("ledger", verb, root)[0] == 5


def _head(root):
    with Ledger(root / "ledger.db") as ledger:
        return ledger.head


def test_a_run_after_the_head_was_noted_goes_on(finished_run):
    root = finished_run(n=200, m=40)
    with Ledger(root / "ledger.db") as ledger:
        ledger.raise_budget(Budget(9.0, 1e-5), "approved")
        ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 1}, key="beside the run")
    folder = RunFolder(root)
    with folder.open_ledger() as ledger:
        newest = ledger.head
    assert newest.hash in (root / "private" / "ledger.head").read_text()


KILLED = """
import os, signal, sys
from pathlib import Path
from quorate.ledger import Budget, Ledger
from quorate.ledger.ledger_files import SLOT, AnchorFile, LedgerFiles
from quorate.release.keys import fingerprint_key
from quorate.folder.folder import RunFolder
import quorate.ledger.sqlite as sqlite

root, point = Path(sys.argv[1]), sys.argv[2]
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
folder = RunFolder(root)
folder.make()
fingerprint_key(folder.ledger)
if point == "key":
    die()
if point == "lock":
    AnchorFile.read = lambda self: die()
if point == "first entry":
    LedgerFiles.leave_traces = lambda self: die()

def at(step):
    seen.append(step)
    if f"{step} {seen.count(step)}" == point:
        die()

seen = []
with Ledger(store=sqlite.SqliteStore(folder.ledger, create=True, at=at), budget=Budget(4.0, 1e-5)):
    pass
die()
"""
POINTS = ["key", "lock", "anchor written 1", "anchor renamed 1", "anchored 1", "begun 1", "inserted 1", "committed 1",
          "anchor written 2", "anchored 2", "first entry", "end"]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_first_start_that_was_killed_anywhere_can_be_started_again(make_run, point):
    root = make_run(n=200, m=40)
    said = root / "said.txt"
    assert Forked(KILLED, root, point, said=said).wait(60) == -signal.SIGKILL, said.read_text()
    drawn = fingerprint_key(root / "ledger.db").reveal()
    if point in ("key", "lock", "first entry"):
        check(load_run(root))
        run(root)
    else:
        with RunFolder(root).open_ledger(BUDGET):
            pass
    assert (root / "ledger.db.key").read_bytes() == drawn
    assert not (root / "ledger.db.key.new").exists()
    delete(root)
    with pytest.raises(LedgerIntegrityError), RunFolder(root).open_ledger(BUDGET):
        pass


@pytest.mark.quick
@pytest.mark.parametrize("left", ["ledger.db.key", "ledger.db.lock"])
def test_a_bare_ledger_is_missed_by_its_key_or_its_lock(tmp_path, left):
    path = tmp_path / "ledger.db"
    fingerprint_key(path)
    with Ledger(path, budget=BUDGET) as ledger:
        ledger.bind("a" * 64)
    for file in tmp_path.iterdir():
        if file.name != left:
            file.unlink()
    for budget in (None, BUDGET):
        with pytest.raises(LedgerIntegrityError, match="but were there"):
            Ledger(path, budget=budget)
    assert {file.name for file in tmp_path.iterdir()} <= {left, "ledger.db.lock"}


@pytest.mark.quick
def test_a_lock_that_was_taken_and_no_ledger_made_is_no_trace(tmp_path):
    path = tmp_path / "ledger.db"
    os.close(os.open(tmp_path / "ledger.db.lock", os.O_CREAT | os.O_RDWR, 0o600))
    fingerprint_key(path)
    Ledger(path, budget=BUDGET).close()
    assert (tmp_path / "ledger.db.lock").stat().st_size
    assert (tmp_path / "ledger.db.key").exists()


@pytest.mark.quick
def test_a_ledger_from_before_gets_its_traces_when_it_is_opened(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path, budget=BUDGET).close()
    (tmp_path / "ledger.db.lock").unlink()
    Ledger(path).close()
    for name in LEDGER:
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(LedgerIntegrityError, match="but were there"):
        Ledger(path, budget=BUDGET)
