"""Which files a ledger in a file consists of, what they tell by being there, and what is no ledger's file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from quorate.errors import PreconditionFailed

APPLICATION_ID: Final = 0x71756F72  # "quor"
_ENDINGS: Final = ("", ".anchor", ".anchor.tmp", ".lock", ".key", ".key.new", "-wal", "-shm")  # all files of a ledger


def beside(path: Path, ending: str) -> Path:
    """Return the file of the ledger at `path` that has this ending.

    Examples
    --------
    >>> beside(Path("run/ledger.db"), ".anchor").name
    'ledger.db.anchor'
    """
    return path.with_name(path.name + ending)


def refuse_second_names(path: Path) -> None:
    """Refuse a ledger, or a file beside it, that goes by several names."""
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


def stands(path: Path, known: os.stat_result) -> bool:
    """Whether a file still stands under its name, and under no other one.

    Examples
    --------
    >>> stands(Path("nowhere/ledger.db"), Path.cwd().stat())
    False
    """
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino, status.st_nlink) == (known.st_dev, known.st_ino, 1)


def keep_owner(descriptor: int, path: Path) -> None:
    """Give a file that is to have the name `path` the owner of the one that has it, or else of its folder.

    Whoever runs a command as root would otherwise take a file away from the user who serves or resumes the run.
    Anybody else may give no file away, and keeps what it made.
    """
    try:
        owner = path.stat()
    except FileNotFoundError:
        owner = path.parent.stat()
    made = os.fstat(descriptor)
    if os.geteuid() == 0 and (made.st_uid, made.st_gid) != (owner.st_uid, owner.st_gid):
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
    """Where the key of the ledger at `path` lies; a new one, until the ledger has its first entry.

    Examples
    --------
    >>> key_file(Path("run/ledger.db")).name, key_file(Path("run/ledger.db"), new=True).name
    ('ledger.db.key', 'ledger.db.key.new')
    """
    return beside(path, ".key.new" if new else ".key")


def had_ledger(path: Path) -> bool:
    """Tell from what lies beside `path` whether a ledger with an entry was ever there.

    Examples
    --------
    >>> had_ledger(Path("nowhere/ledger.db"))
    False
    """
    lock = beside(path, ".lock")
    return key_file(path).exists() or (lock.exists() and lock.stat().st_size > 0)


def both_missing(path: Path) -> str:
    """Word the refusal of a ledger that was deleted together with its anchor.

    Examples
    --------
    >>> both_missing(Path("ledger.db")).partition(";")[0]
    'the ledger ledger.db and its anchor are missing, but were there'
    """
    return (
        f"the ledger {path.name} and its anchor are missing, but were there; restore both from a backup, or start in a "
        "new folder, whose cost adds to what was spent here and is the owner's to account for"
    )
