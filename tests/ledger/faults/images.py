"""What a disk may hold after a crash: a recorded ledger whose log is cut, torn, or dropped in parts, or flipped."""

import random
import shutil
import struct
from dataclasses import dataclass, field
from itertools import islice

from quorate.accounting import PureDP
from quorate.errors import LedgerIntegrityError
from quorate.ledger import Budget, Ledger, SqliteStore

BUDGET = Budget(1.0, 1e-5)
SECTOR, BLOCK, HEADER, FRAME = 512, 4096, 32, 24


@dataclass
class Recording:
    """A ledger as it lay on the disk while it was written, commit by commit."""

    database: bytes = b""  # before the log
    checkpointed: bytes = b""  # after all of the log was put into it
    log: bytes = b""
    ends: list[int] = field(default_factory=list)  # of each commit in the log; first 0, for what the database holds
    anchors: list[bytes] = field(default_factory=list)  # after each of them
    heads: list[int] = field(default_factory=list)  # how many entries there are after each of them
    hashes: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def kept(self, log):
        """How many commits of the log are fully kept, by its first byte that is another: none of ours reads the log."""
        wrong = next((at for at, (one, two) in enumerate(zip(log, self.log, strict=False)) if one != two), len(log))
        if wrong < HEADER:
            return 0
        return max(number for number, end in enumerate(self.ends) if end <= wrong)


def recorded(folder, commits=24):
    """Write a ledger, and keep what lay on the disk after each commit."""
    folder.mkdir(parents=True)
    path = folder / "ledger.db"
    log, anchor, recording = path.with_name("ledger.db-wal"), path.with_name("ledger.db.anchor"), Recording()

    def note(entries):
        recording.ends.append(log.stat().st_size if log.exists() else 0)
        recording.anchors.append(anchor.read_bytes())
        recording.heads.append(entries)

    with Ledger(path, budget=BUDGET) as ledger:
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 500}, key="labels")
        reservation.store(reservation.draw("label", 2), [1, 0])
        newest = ledger.head.sequence
    recording.database = path.read_bytes()
    note(newest)
    ledger = Ledger(store=SqliteStore(path, create=False))
    [reservation] = ledger.reservations()
    while len(recording.ends) <= commits:
        block = reservation.draw("label", 3, client="ann")
        note(ledger.head.sequence)
        reservation.store(block, [1, 0, 1])
        note(ledger.head.sequence)
    recording.log = log.read_bytes()
    recording.hashes = [entry.hash for entry in ledger.entries()]
    recording.lines = [entry.to_json().encode() for entry in ledger.entries()]
    ledger.close()
    recording.checkpointed = path.read_bytes()
    return recording


def commit_ends(log):
    """Where commits end in a log, by SQLite's own description of its format: a check of what was noted."""
    size, ends, at = struct.unpack(">I", log[8:12])[0], [0], HEADER
    while at + FRAME + size <= len(log):
        pages_after_commit = struct.unpack(">I", log[at + 4 : at + 8])[0]
        at += FRAME + size
        if pages_after_commit:
            ends.append(at)
    return ends


class Disk:
    """A folder that is laid out anew for each case."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        self.path = folder / "ledger.db"

    def lay(self, database, log, anchor):
        for file in self.path.parent.iterdir():
            file.unlink()
        self.path.write_bytes(database)
        self.path.with_name("ledger.db.anchor").write_bytes(anchor)
        self.path.with_name("ledger.db.lock").write_bytes(b"a ledger is here\n")
        if log:
            self.path.with_name("ledger.db-wal").write_bytes(log)

    def opens(self):
        """The hashes of the entries that it holds when it is opened; None where it is refused."""
        try:
            with Ledger(self.path) as ledger:
                return [entry.hash for entry in ledger.entries()]
        except LedgerIntegrityError:
            return None


def cut(recording, chance):
    """The database, and the log up to a byte."""
    return recording.database, recording.log[: chance.randrange(len(recording.log) + 1)]


def lost(size):
    """Of what was not synced, some blocks of a size are on the disk and some hold what lay there before."""

    def lose(recording, chance):
        synced = chance.randrange(len(recording.ends) - 1)
        last = min(len(recording.ends) - 1, synced + chance.randint(1, 3))
        start, end = recording.ends[synced], recording.ends[last]
        log, before = bytearray(recording.log[:end]), chance.choice([b"\0", b"\xff", b"\x51"])
        for at in range(start - start % size, end, size):
            if chance.random() < 0.5:
                low, high = max(at, start), min(at + size, end)  # what was synced in that block stays what it was
                log[low:high] = before * (high - low)
        return recording.database, bytes(log)

    return lose


def half_checkpointed(recording, chance):
    """The log is whole; of the database's pages some are on the disk as the checkpoint wrote them, some are not."""
    after = recording.checkpointed
    before = recording.database.ljust(len(after), b"\0")
    pages = (chance.choice([before, after])[at : at + BLOCK] for at in range(0, len(after), BLOCK))
    return b"".join(pages), recording.log


#: How the log is damaged, by the name that the table prints.
LOSSES = {
    "cut at a byte": cut,
    "torn 512-byte sectors": lost(SECTOR),
    "unsynced blocks dropped": lost(BLOCK),
    "half a checkpoint": half_checkpointed,
}


def surprises(recording, folder, losses, seed):
    """For each case, open what is left; name what is not exactly the commits that are fully kept."""
    chance, disk = random.Random(seed), Disk(folder)
    for loss in losses:
        database, log = LOSSES[loss](recording, chance)
        kept = recording.kept(log)
        anchored = chance.randint(max(0, kept - 1), min(kept + 1, len(recording.anchors) - 1))
        disk.lay(database, log, recording.anchors[anchored])
        held = disk.opens()
        if anchored > kept:  # the disk lied about what it had synced: an anchored commit is gone
            if held is not None:
                yield f"{loss}: an anchored commit is gone, and nobody noticed"
        elif held is None:
            yield f"{loss}: refused, though all that was anchored is there"
        elif held != recording.hashes[: recording.heads[kept]]:
            yield f"{loss}: {len(held)} entries, where {recording.heads[kept]} are fully kept"
    shutil.rmtree(folder)


def anchor_cases(recording, chance):
    """What a crash, a disk that lied, or somebody with an old copy leaves of the anchor, for one commit after another.

    Yield what happened, the commit up to which the log is kept, the anchor's bytes, and whether to open it is right.
    """
    while True:
        commit = chance.randrange(2, len(recording.ends))
        before, after = recording.anchors[commit - 1], recording.anchors[commit]
        size = chance.choice([1, 64, SECTOR])
        torn = b"".join(chance.choice([before, after])[at : at + size] for at in range(0, len(after), size))
        [newest] = [at for at in (0, BLOCK) if before[at : at + BLOCK] != after[at : at + BLOCK]]
        spoilt = bytearray(after)
        spoilt[newest + chance.randrange(BLOCK)] ^= 1 << chance.randrange(8)
        yield "torn slot", commit, torn, True
        yield "lost slot write", commit, before, True
        yield "two lost slot writes", commit, recording.anchors[commit - 2], True
        yield "spoilt slot", commit, bytes(spoilt), True
        yield "older log", commit - 1, after, False
        yield "older log, spoilt slot", commit - 1, bytes(spoilt), False


def anchor_surprises(recording, folder, cases, seed):
    """For each case, open what is left: a crash must leave a ledger that opens, an older log one that is refused."""
    chance, disk = random.Random(seed), Disk(folder)
    for what, commit, anchor, honest in islice(anchor_cases(recording, chance), cases):
        disk.lay(recording.database, recording.log[: recording.ends[commit]], anchor)
        held = disk.opens()
        if honest and held != recording.hashes[: recording.heads[commit]]:
            yield f"{what}: refused, though all that was anchored is there"
        elif not honest and held is not None:
            yield f"{what}: an older ledger was taken"
    shutil.rmtree(folder)


def silent_changes(recording, folder, flips, seed, *, in_entries):
    """Flip a bit at a time; return how many changed what is read and were taken, and how many were refused."""
    chance, disk = random.Random(seed), Disk(folder)
    newest, silent, noticed = recording.anchors[-1], 0, 0
    for _ in range(flips):
        files = [recording.database, recording.log, newest]
        which = 0 if in_entries else chance.choices([0, 1, 2], [3, 4, 1])[0]
        at = chance.randrange(len(files[which]))
        if in_entries:
            files[:2], line = [recording.checkpointed, b""], chance.choice(recording.lines)
            digits = [place for place, byte in enumerate(line) if chr(byte).isdigit()]
            at = files[0].find(line) + chance.choice(digits)
        flipped = bytearray(files[which])
        flipped[at] ^= 1 if in_entries else 1 << chance.randrange(8)  # the lowest bit of a digit gives another digit
        files[which] = bytes(flipped)
        disk.lay(*files)
        held = lines_of(disk.path)
        noticed += held is None
        silent += held is not None and held != recording.lines
    shutil.rmtree(folder)
    return silent, noticed


def lines_of(path):
    """What the ledger tells of its entries; None where it is refused."""
    try:
        with Ledger(path) as ledger:
            return [entry.to_json().encode() for entry in ledger.entries()]
    except LedgerIntegrityError:
        return None
