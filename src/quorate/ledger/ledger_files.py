"""The files of a ledger in a file, held by one process, and the head anchor beside it in one of two slots.

A new head is written over the older slot, and one sync puts it on the disk: no file is made, no name is changed. Each
slot has a checksum, and the newest sound one counts. A write that a power cut tore spoils the slot that it was to fill,
never the other one; and since the ledger's own entries are on the disk before a slot is written, they then go on beyond
what the other slot names. Where they do not, the anchor was damaged or the ledger cut (see :class:`Slots`).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from quorate.errors import LedgerBusy, LedgerIntegrityError, PreconditionFailed
from quorate.ledger.fields import canonical
from quorate.ledger.state import GENESIS, Epoch, Head

APPLICATION_ID: Final = 0x71756F72  # "quor"
_ENDINGS: Final = ("", ".anchor", ".anchor.tmp", ".lock", ".key", ".key.new", "-wal", "-shm")  # all files of a ledger
#: Bytes of a slot: a block of its own on the disk, so that a torn write cannot reach the other one.
SLOT: Final = 4096
NO_ANCHOR: Final = "the ledger's anchor was deleted: whether this is the newest ledger is unknown; restore the anchor"
BUSY: Final = "another process holds the ledger {}; wait until it ends, or ask the service that runs on it"
_GONE: Final = (
    "{} was removed or replaced while the ledger was open: whether the ledger is the newest is unknown; restore the "
    "newest ledger and anchor together"
)


def beside(path: Path, ending: str) -> Path:
    """Return the file of the ledger at `path` that has this ending."""
    return path.with_name(path.name + ending)


def refuse_name(path: Path) -> None:
    """Refuse a ledger, or a file beside it, that goes by several names, or whose name is too long."""
    most = os.pathconf(path.parent, "PC_NAME_MAX") - max(map(len, _ENDINGS)) if path.parent.is_dir() else 0
    if 0 < most < len(os.fsencode(path.name)):  # where there is a limit
        raise PreconditionFailed(f"the ledger's name may have {most} bytes at most, got {path.name}")
    for end in _ENDINGS:
        file = beside(path, end)
        if file.is_symlink():
            what = "the ledger" if not end else "a file beside the ledger"
            raise PreconditionFailed(
                f"{what}, {file}, is a symbolic link: a ledger has one name, by which its anchor, lock and key are "
                "found; give the path of the file itself, with those files beside it"
            )
    if path.is_file() and path.stat().st_nlink > 1:
        raise PreconditionFailed(
            f"the ledger {path} has a second name (a hard link), under which its anchor and lock would not be found; "
            "delete that name, or copy the file if it was meant as a backup"
        )


def stands(path: Path, known: os.stat_result, *, whole: bool = False) -> bool:
    """Whether a file still stands under its name, and under no other one; `whole`: and nobody has written into it."""
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    same = (status.st_dev, status.st_ino, status.st_nlink) == (known.st_dev, known.st_ino, 1)
    return same and not (whole and (status.st_size, status.st_mtime_ns) != (known.st_size, known.st_mtime_ns))


def keep_owner(descriptor: int, path: Path) -> None:
    """Give a file that is to have the name `path` the owner of the one that has it, or else of its folder.

    Whoever runs a command as root would otherwise take a file away from the user who serves or resumes the run.
    Anybody else may give no file away, and keeps what it made.
    """
    try:
        owner = path.stat()
    except FileNotFoundError:
        owner = path.parent.stat()
    status = os.fstat(descriptor)
    if os.geteuid() == 0 and (status.st_uid, status.st_gid) != (owner.st_uid, owner.st_gid):
        with suppress(PermissionError):  # a root that may give nothing away, as in some containers
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def opened(path: Path) -> int:
    """Open a file to read and write it, and no link; make it for the owner of its folder where there is none."""
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    keep_owner(descriptor, path.parent)
    return descriptor


def refuse_other_files(path: Path) -> None:
    """Refuse a file that never was a ledger, before anything is made beside it."""
    if not path.is_file() or any(beside(path, end).exists() for end in _ENDINGS[1:]):
        return  # whether it is whole is seen when it is opened
    with path.open("rb") as file:
        begin = file.read(72)
    if begin and not (begin.startswith(b"SQLite format 3\0") and begin[68:] == APPLICATION_ID.to_bytes(4, "big")):
        raise PreconditionFailed(
            f"{path} is no ledger; give a run's folder, the ledger file itself (ledger.db), or the URL of a ledger"
        )


def key_file(path: Path, *, new: bool = False) -> Path:
    """Where the key of the ledger at `path` lies; a new one, until the ledger has its first entry."""
    return beside(path, ".key.new" if new else ".key")


def name_key(path: Path) -> None:
    """Give the key that was drawn for a new ledger its name, once there is an entry."""
    key, drawn = key_file(path), key_file(path, new=True)
    if drawn.exists() and not key.exists():
        drawn.rename(key)
        sync_folder(path.parent)


def had_ledger(path: Path) -> bool:
    """Tell from what lies beside `path` whether a ledger with an entry was ever there."""
    lock = beside(path, ".lock")
    return key_file(path).exists() or (lock.exists() and lock.stat().st_size > 0)


def both_missing(path: Path) -> str:
    """Word the refusal of a ledger that was deleted together with its anchor."""
    return (
        f"the ledger {path.name} and its anchor are missing, but were there; restore both from a backup, or start in a "
        "new folder, whose cost adds to what was spent here and is the owner's to account for"
    )


@dataclass(frozen=True, slots=True)
class Slots:
    """What the slots of an anchor name, in order; None where one is not, byte for byte, what was ever written there."""

    heads: tuple[Head | None, ...]

    @property
    def newest(self) -> Head | None:
        """The head that counts; None where no slot is sound, or two of them contradict each other."""
        sound = {head for head in self.heads if head is not None}
        newest = max((head.sequence for head in sound), default=0)
        named = [head for head in sound if head.sequence == newest]
        return named[0] if len(named) == 1 else None

    @property
    def torn(self) -> bool:
        """Whether a slot is not sound.

        A crash explains it only where the ledger goes on beyond :attr:`newest`: its entries are on the disk before a
        slot is written.
        """
        return None in self.heads

    @property
    def next(self) -> int:
        """Number of the slot to write over: the torn one, or the older one."""
        sequences = [-1 if head is None else head.sequence for head in self.heads]
        return sequences.index(min(sequences))


class AnchorFile:
    """Reads the anchor at `path`, and puts a newer head into it. `at`: told each step just after it, for tests."""

    def __init__(self, path: Path, *, at: Callable[[str], None]) -> None:
        self.path = path
        self._at = at
        self._held: int | None = None  # kept open: a commit must not need a descriptor that may not be had

    def read(self) -> Head | None:
        """Return the anchored head, or None where there is no file.

        Raises LedgerIntegrityError if the file is no anchor, or a link to one.
        """
        slots = self.slots()
        return None if slots is None else slots.newest

    def slots(self) -> Slots | None:
        """Return what the slots hold, one of them sound; None where there is no file.

        Raises LedgerIntegrityError if the file is no anchor, or a link to one.
        """
        try:
            descriptor = self._opened(os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return self._sound(file.read(2 * SLOT + 1))

    def _sound(self, content: bytes) -> Slots:
        slots = _slots_of(content)
        if slots.newest is None:
            raise LedgerIntegrityError(
                f"the anchor {self.path.name} was altered; restore it, nothing is released without it"
            )
        return slots

    def hold(self) -> int:
        """Return the descriptor of the file that stands under its name, which is kept open.

        Raises LedgerIntegrityError if there is none, or it was replaced since it was opened.
        """
        if self._held is None:
            try:
                self._held = self._opened(os.O_RDWR)
            except FileNotFoundError:
                raise LedgerIntegrityError(_GONE.format(self.path.name)) from None
        if not stands(self.path, os.fstat(self._held)):
            raise LedgerIntegrityError(_GONE.format(self.path.name))
        return self._held

    @property
    def in_place(self) -> bool:
        """Whether the file that is kept open, if one is, stands under its name."""
        return self._held is None or stands(self.path, os.fstat(self._held))

    def write(self, head: Head, *, wait: bool = True) -> None:
        """Put a head into the anchor that there is; when this returns, it is on stable storage, or `wait` was False.

        What was not waited for outlives the process, and not a power cut. Raises LedgerIntegrityError if the file is
        missing, was replaced, or is no anchor.
        """
        descriptor = self.hold()
        slots = self._sound(os.pread(descriptor, 2 * SLOT + 1, 0))
        _write_all(descriptor, _slot(head), slots.next * SLOT)
        self._at("anchor written")
        if wait:
            os.fdatasync(descriptor)
        self._at("anchored")

    def close(self) -> None:
        """Let go of the file. May be called again."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def __del__(self) -> None:
        self.close()

    def replace(self, head: Head) -> None:
        """Make the file anew with the head in both slots, in place of the one that there is: no crash tears that."""
        self.close()
        temporary = self.path.with_name(self.path.name + ".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            keep_owner(descriptor, self.path)
            _write_all(descriptor, 2 * _slot(head), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._at("anchor written")
        temporary.replace(self.path)
        self._at("anchor renamed")
        sync_folder(self.path.parent)
        self._at("anchored")

    def _opened(self, how: int) -> int:
        try:
            descriptor = os.open(self.path, how | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would be waited for
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise LedgerIntegrityError(
                f"{self.path.name} is a symbolic link; put the file itself in its place, nothing is released until then"
            ) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LedgerIntegrityError(
                f"{self.path.name} is no file; put the file itself in its place, nothing is released until then"
            )
        return descriptor


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on stable storage."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _slots_of(content: bytes) -> Slots:
    whole = len(content) == 2 * SLOT
    return Slots(tuple(_head_of(content[at : at + SLOT]) if whole else None for at in (0, SLOT)))


def _head_of(content: bytes) -> Head | None:
    """Return the head that was written as this slot; None where there is none, down to the last byte."""
    try:
        value = json.loads(content)
        epoch = Epoch(**value["epoch"]) if "epoch" in value else None
        head = Head(sequence=value["sequence"], hash=value["hash"], epoch=epoch)
        numbers = (head.sequence, 0 if epoch is None else epoch.timeline)
        sound = all(type(number) is int for number in numbers) and len(head.hash) == 64 and _slot(head) == content
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return head if sound else None


def _slot(head: Head) -> bytes:
    content: dict[str, object] = {"hash": head.hash, "sequence": head.sequence}
    if head.epoch is not None:
        content["epoch"] = asdict(head.epoch)
    text = canonical({**content, "sha256": sha256(canonical(content).encode()).hexdigest()}).encode()
    return text.ljust(SLOT - 1) + b"\n"


def _write_all(descriptor: int, content: bytes, at: int) -> None:
    while content:
        written = os.pwrite(descriptor, content, at)
        content, at = content[written:], at + written


class LedgerFiles:
    """The database, log, lock, key and anchor of the ledger at `path`, as the process that holds them left them."""

    def __init__(self, path: Path, *, at: Callable[[str], None], create: bool) -> None:
        """Raise PreconditionFailed if there is no ledger and `create` is False, or the path cannot hold one."""
        self._path = path
        self.anchor = AnchorFile(beside(path, ".anchor"), at=at)
        self.noted = False  # whether the held files are as noted: not in a write, nor after one that failed
        self._lock: int | None = None
        self._log_named = False
        self._held: dict[Path, os.stat_result] = {}  # the database and its log, as they were left here
        refuse_name(path)
        if path.is_dir() or not path.parent.is_dir():
            raise PreconditionFailed(f"the ledger must be a file in a folder that exists, got {path}")
        refuse_other_files(path)
        traces = any(beside(path, end).exists() for end in ("", ".anchor", "-wal")) or had_ledger(path)
        if not create and not traces:
            raise PreconditionFailed(f"there is no ledger at {path}; give a budget to open a new one")

    @contextmanager
    def opening(self) -> Iterator[bool]:
        """Lock them, refuse what is missing, and yield whether the ledger has no entry yet; inside, the database is
        opened: a new one is made before, for the owner of its folder, and one that was replaced meanwhile is refused.
        """
        self._take_lock()
        anchor = self.anchor.read()
        self._refuse_what_is_missing(anchor)
        if anchor is None:
            self.anchor.replace(GENESIS)  # first, so that from now on a missing file is noticed
        new = anchor is None or anchor == GENESIS
        if new:
            os.close(opened(self._path))
        self._path.chmod(0o600)
        known = self._held[self._path] = self._path.stat()
        yield new
        if not stands(self._path, known):
            raise LedgerIntegrityError(f"{self._path.name} was replaced while it was opened; open it again")
        if new:
            self.name_log()
        self.note(written=False)
        self.anchor.hold()

    def _take_lock(self) -> None:
        descriptor = opened(beside(self._path, ".lock"))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise LedgerBusy(BUSY.format(self._path)) from None
            raise
        self._lock = descriptor

    def _refuse_what_is_missing(self, anchor: Head | None) -> None:
        path, had = self._path, had_ledger(self._path)
        exists, log = path.exists(), beside(path, "-wal").exists()
        if anchor is None and (exists or log):
            raise LedgerIntegrityError(NO_ANCHOR)
        if anchor is None and had:
            raise LedgerIntegrityError(both_missing(path))
        if anchor == GENESIS and had:  # no process of ours leaves these two together
            raise LedgerIntegrityError(
                f"the anchor of {path.name} says that nothing was ever written, but its lock file or its key says "
                "that something was: the anchor was replaced; restore the newest ledger and anchor together"
            )
        if anchor not in (None, GENESIS) and not (exists and path.stat().st_size):
            raise LedgerIntegrityError(
                f"the ledger {path.name} was deleted or emptied, but not its anchor; restore the newest ledger"
            )

    def note(self, *, written: bool) -> None:
        """Note the database as it is now, and its log where this process has `written` into it."""
        log = beside(self._path, "-wal")
        self._held |= {file: file.stat() for file in (self._path, log) if file in self._held or written}
        self.noted = True

    @property
    def in_place(self) -> bool:
        """Whether database, log and anchor stand under their names."""
        return all(stands(file, known) for file, known in tuple(self._held.items())) and self.anchor.in_place

    def refuse_replaced(self) -> None:
        """Refuse to write into a file that has another name by now, or none: whoever opens the ledger misses that. So
        is one that somebody else has written into: what is committed behind that may not be found again.
        """
        for file, known in tuple(self._held.items()):
            if not stands(file, known):
                raise LedgerIntegrityError(
                    f"{file.name} was removed or replaced, or got a second name, while the ledger was open; restore "
                    "the newest ledger and anchor together"
                )
            if self.noted and not stands(file, known, whole=True):
                raise LedgerIntegrityError(
                    f"{file.name} was written into by somebody else while the ledger was open; see what, and restore "
                    "the newest ledger and anchor together"
                )
        self.anchor.hold()

    def name_log(self) -> None:
        """Put the log's name on the disk before the first commit of this process. SQLite does so with that commit, and
        goes on where the disk reports an error: a power cut could take the log away, with all that was waited for.
        """
        if not self._log_named:
            sync_folder(self._path.parent)
            self._log_named = True

    def leave_traces(self) -> None:
        """Let what lies beside the ledger tell, from now on, that there is one."""
        name_key(self._path)
        if self._lock is not None and not os.fstat(self._lock).st_size:
            os.write(self._lock, b"a ledger is here\n")
            os.fsync(self._lock)

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """Close the anchor, then the lock, once the database was closed inside; from here on the lock is nobody's."""
        lock, self._lock = self._lock, None
        try:
            yield
        finally:
            if lock is not None:
                self.anchor.close()
                os.close(lock)

    def forget_lock(self) -> None:
        """Close the lock's descriptor in a forked child, which inherited it; the parent's still locks."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)
