"""A run as a folder: what lies where, who may read it, and how a file is written so that a crash leaves no half of it.

::

    quorate.toml      what was asked
    ledger.db         what was spent, with its anchor and its key beside it
    private/  (0700)  run key, votes, teachers, newest ledger entry; never leaves
    public/           labels, student, guarantee.json, report.html; may leave
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from quorate.errors import LedgerIntegrityError, LedgerMismatch, PreconditionFailed
from quorate.ledger import Budget, Ledger, Receipt
from quorate.ledger.anchor import AnchorFile
from quorate.ledger.sqlite import both_missing, had_ledger, key_file
from quorate.types import Secret

KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of one run."""

    root: Path

    @property
    def settings(self) -> Path:
        """``quorate.toml``."""
        return self.root / "quorate.toml"

    @property
    def ledger(self) -> Path:
        """The durable record of what was spent."""
        return self.root / "ledger.db"

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or a trace of one that was deleted: then it is refused, never opened anew."""
        return self._ledger_stands or had_ledger(self.ledger) or self._has_results

    @property
    def _ledger_stands(self) -> bool:
        return self.ledger.exists() or self.ledger.with_name(f"{self.ledger.name}.anchor").exists()

    @property
    def _has_results(self) -> bool:
        """Whether there is anything that is only made while a ledger with an entry is open."""
        return self.head.exists() or any(self.private.glob("*.stage")) or self._has_published

    @property
    def _has_published(self) -> bool:
        """Whether there is anything that is only written once the ledger's newest entry was noted."""
        return any((self.public / name).exists() for name in ("labels.csv", "guarantee.json", "facts.json"))

    @property
    def head(self) -> Path:
        """The newest entry of the ledger when it was last let go of, kept away from the ledger and its anchor."""
        return self.private / "ledger.head"

    @contextmanager
    def open_ledger(self, budget: Budget | None = None) -> Iterator[Ledger]:
        """Open the run's ledger for one act, which keeps every other process out until it is over.

        Its newest entry is noted on the private side, when it is opened and when it is let go of, so that an older
        ledger is missed even where its anchor was put back together with it.

        Parameters
        ----------
        budget : Budget, optional
            Needed where there is no ledger yet, and never was.

        Raises
        ------
        LedgerIntegrityError
            If ledger and anchor are gone from a folder that holds what was made with them; if the ledger is older
            than the private side; if that note is gone, and something was published; or for any reason of
            :class:`~quorate.ledger.Ledger`.
        """
        if self.has_ledger and not self._ledger_stands:
            raise LedgerIntegrityError(both_missing(self.ledger))
        noted = AnchorFile(self.head, at=lambda _: None)
        with Ledger(self.ledger, budget=budget) as ledger:
            self._note(ledger, noted)
            try:
                yield ledger
            finally:
                if ledger.healthy:
                    self._note(ledger, noted)

    def _note(self, ledger: Ledger, noted: AnchorFile) -> None:
        """Hold the ledger against the entry noted last, then note its newest one, where there is a private side."""
        if not self.private.is_dir():
            return
        newest = noted.read()
        if newest is None and self._has_published:
            raise LedgerIntegrityError(
                f"private/{self.head.name} is missing beside what was published: whether {self.ledger.name} is the "
                f"newest ledger is unknown; restore it, or copy {self.ledger.name}.anchor there if you know that it is"
            )
        if newest is not None:
            try:
                ledger.check_receipt(Receipt(newest.sequence, newest.hash))
            except LedgerIntegrityError:
                raise LedgerIntegrityError(
                    f"{self.ledger.name} and its anchor are older than private/{self.head.name}, or of another "
                    "run; restore the newest ones, nothing is released until then"
                ) from None
        if newest != ledger.head:
            noted.write(ledger.head)

    @property
    def private(self) -> Path:
        """What never leaves; created readable by its owner alone."""
        return self.root / "private"

    @property
    def public(self) -> Path:
        """What may leave the building, and nothing else."""
        return self.root / "public"

    def make(self) -> None:
        """Create the two sides of the boundary."""
        self.private.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.private.chmod(0o700)  # mkdir's mode is subject to the umask, and to nothing where it existed already
        self.public.mkdir(parents=True, exist_ok=True)


def read_or_create_key(path: Path) -> Secret[bytes]:
    """Read the secret key at `path`, or draw a fresh one there, readable by its owner alone.

    The file appears whole or not at all, and an existing one is never overwritten, not even by a process that starts
    at the same moment: answers under a new key would come from a new partition of the same people.

    Raises
    ------
    PreconditionFailed
        If the folder is missing, or the file is not a key: an empty one would be no secret.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, again = (read_or_create_key(Path(folder, "run.key")) for _ in range(2))
    >>> first, first.reveal() == again.reveal()
    (Secret(…), True)
    """
    if not path.parent.is_dir():
        raise PreconditionFailed(f"there is no folder {path.parent}; create it first")
    if not path.exists():
        beside = _write_beside(path, secrets.token_bytes(KEY_BYTES), mode=0o600)
        with suppress(FileExistsError):
            os.link(beside, path)  # unlike a rename, it never takes the place of a key that is there
        beside.unlink()
        _sync(path.parent)
    try:
        key = path.read_bytes()
    except PermissionError:
        raise PreconditionFailed(f"no permission to read {path}; ask its owner for it") from None
    if len(key) != KEY_BYTES:
        raise PreconditionFailed(f"{path} is not a key of {KEY_BYTES} bytes; restore it from a backup")
    return Secret(key)


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to a file beside `path`, make it durable, and only then give it the name `path`."""
    _write_beside(path, content, mode=mode).replace(path)
    _sync(path.parent)


def _write_beside(path: Path, content: bytes, *, mode: int) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return beside


def _sync(folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def fingerprint_key(ledger: Path | Ledger | None) -> Secret[bytes]:
    """Return the key that binds private data to a ledger; it lies beside the ledger, readable by its owner alone.

    An unkeyed hash of private rows could be guessed at. A ledger in memory has a key of its own while it lives; None
    stands for a ledger that is yet to be made in memory.

    Raises
    ------
    LedgerMismatch
        If a ledger is bound to data but its key is gone: whether these are the data can then no longer be told.
    """
    fresh: Secret[bytes] = Secret(secrets.token_bytes(KEY_BYTES))
    if isinstance(ledger, Ledger) and ledger.path is None:
        return _KEYS_IN_MEMORY.setdefault(ledger, fresh)
    place = ledger.path if isinstance(ledger, Ledger) else ledger
    if place is None:
        return fresh
    path, drawn = key_file(place), key_file(place, new=True)
    for written in (path, drawn):
        if written.exists():
            return read_or_create_key(written)
    fingerprints = _fingerprints(ledger)
    if fingerprints:
        raise LedgerMismatch(
            f"{path.name} is missing beside {place.name}: without it nobody can tell whether these are the data that "
            "the ledger was opened for. Restore it from a backup"
        )
    # A key that has its name tells that there was a ledger, so until the first entry it has another.
    return read_or_create_key(drawn if fingerprints is None else path)


_KEYS_IN_MEMORY: WeakKeyDictionary[Ledger, Secret[bytes]] = WeakKeyDictionary()


def _fingerprints(ledger: Path | Ledger | None) -> Sequence[str] | None:
    """The data that a ledger is bound to; None where there is no ledger with an entry."""
    if isinstance(ledger, Ledger):
        return ledger.fingerprints
    if ledger is None or not ledger.exists():
        return None
    try:
        with Ledger(ledger) as found:
            return found.fingerprints
    except PreconditionFailed as refusal:
        if type(refusal) is PreconditionFailed:  # no entry yet: its opening was interrupted
            return None
        raise
