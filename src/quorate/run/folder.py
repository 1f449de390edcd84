"""A run as a folder: what lies where, who may read it, and how a file is written so that a crash leaves no half of it.

::

    quorate.toml      what was asked
    ledger.db         what was spent, with its anchor beside it
    private/  (0700)  run key, votes, teachers; never leaves
    public/           labels, student, guarantee.json, report.html; may leave
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from quorate.errors import LedgerMismatch
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

    The file appears whole or not at all, and an existing one is never overwritten: answers under a new key would
    come from a new partition of the same people.
    """
    if not path.exists():
        write_atomically(path, secrets.token_bytes(KEY_BYTES), mode=0o600)
    return Secret(path.read_bytes())


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to a file beside `path`, make it durable, and only then give it the name `path`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def fingerprint_key(ledger: Path | None) -> Secret[bytes]:
    """Return the key that binds private data to a ledger; it lies beside the ledger, readable by its owner alone.

    An unkeyed hash of private rows could be guessed at. A ledger in memory gets a fresh key.

    Raises
    ------
    LedgerMismatch
        If there is a ledger but its key is gone: whether the data are the same can then no longer be told.
    """
    if ledger is None:
        return Secret(secrets.token_bytes(KEY_BYTES))
    path = ledger.with_name(f"{ledger.name}.key")
    if ledger.exists() and not path.exists():
        raise LedgerMismatch(
            f"{path.name} is missing beside {ledger.name}: without it nobody can tell whether these are the data that "
            "the ledger was opened for. Restore it from a backup"
        )
    return read_or_create_key(path)
