"""Values that pass between this machine and workers elsewhere: files that their owner alone reads, checked before use.

A file is named for nothing, holds 32 random bytes before its content, and is told of by its name and its digest. The
digest tells nothing about the content to who does not have the file, since the random bytes are under it too. What is
read is a pickle, and a pickle that is read runs code; so it is read only where the digest is the one that came with the
task, or with its result, from the process that wrote it.

The digest is SHA-256, for which processors have instructions: it is computed over all rows that are written, and again
where they are read.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from quorate.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SALT = 32
_SIZE = 8  # bytes of a number that says how long something is
# A file system of several machines may show a new file a little later on another one.
_PATIENCE_SECONDS = 20.0


class Stored(NamedTuple):
    """Where a value lies, and how it is known again; tells nothing about it."""

    name: str
    digest: str


def put(folder: Path, value: Any) -> Stored:
    """Write a value into a file of its own, readable by its owner alone."""
    from cloudpickle import dumps  # type: ignore[import-untyped]

    return _write(folder, [dumps(value)])


def put_each(folder: Path, pieces: Iterable[Any]) -> Stored:
    """Write bytes one after the other into one file, piece by piece; what is no bytes is kept with their lengths. One
    pickle of a list would be copied twice each way.
    """
    return _write(folder, _pieces_and_lengths(pieces))


def _pieces_and_lengths(pieces: Iterable[Any]) -> Iterator[bytes]:
    from cloudpickle import dumps

    kept: list[Any] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            kept.append(len(piece))
        else:
            kept.append((piece,))
    lengths: bytes = dumps(kept)
    yield lengths
    yield len(lengths).to_bytes(_SIZE, "big")


def _write(folder: Path, parts: Iterable[bytes]) -> Stored:
    salt = os.urandom(_SALT)  # not from `secrets`, which tests pin: names must not meet
    name = os.urandom(16).hex()
    hashed = sha256(salt)
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(salt)
            for part in parts:
                hashed.update(part)
                file.write(part)
    except BaseException:
        (folder / name).unlink(missing_ok=True)
        raise
    return Stored(name, hashed.hexdigest())


def take(folder: Path, stored: Stored) -> Any:
    """Read a value that :func:`put` wrote here or elsewhere; PreconditionFailed, nothing read, if the file was altered,
    FileNotFoundError if it is not there after a while.
    """
    from cloudpickle import loads

    return loads(_read(folder, stored))


def take_each(folder: Path, stored: Stored) -> list[Any]:
    """Read what :func:`put_each` wrote, as :func:`take` does; the bytes come as they are, and none is unpacked."""
    from cloudpickle import loads

    content = _read(folder, stored)
    end = len(content) - _SIZE
    start = end - int.from_bytes(content[end:], "big")
    pieces: list[Any] = []
    at = 0
    for kept in loads(content[start:end]):
        if isinstance(kept, tuple):
            pieces.extend(kept)
        else:
            pieces.append(bytes(content[at : at + kept]))
            at += kept
    return pieces


def _read(folder: Path, stored: Stored) -> memoryview:
    """Return the content of a file whose digest is the one that was told; this process has its own copy of it."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            content = (folder / stored.name).read_bytes()
            break
        except OSError as error:
            gone = error.errno not in (errno.ENOENT, errno.ESTALE) or not folder.is_dir()
            if gone or time.monotonic() > until:
                raise
            time.sleep(0.1)
    if sha256(content).hexdigest() != stored.digest:
        raise PreconditionFailed(
            f"{folder}: a file there was altered on its way; find out by whom. Nothing of it is read"
        )
    return memoryview(content)[_SALT:]


def pack(item: Any) -> bytes:
    """Return an item as bytes; none where it does not travel, which nobody can unpack: so it is lost, as on one
    machine, and what it holds is said to nobody.
    """
    from cloudpickle import dumps

    try:
        packed: bytes = dumps(item)
    except Exception:  # noqa: BLE001 - whatever it is
        return b""
    return packed


def unpack(packed: bytes) -> Any:
    """Return the item of :func:`pack`. It may raise anything, and end the process: for a worker's process alone."""
    from cloudpickle import loads

    return loads(packed)


def remove(folder: Path, stored: Stored) -> None:
    """Remove what is no longer needed."""
    (folder / stored.name).unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Refuse, in one line, a folder that is not there, or that others than its owner may look into."""
    try:
        state = folder.stat()
        mine = os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    except OSError:
        raise PreconditionFailed(
            f"{folder} is not there on {os.uname().nodename}; the folder of a run must lie on storage that every "
            "worker reaches by the same path"
        ) from None
    if not mine:
        raise PreconditionFailed(
            f"{folder} may not be read on {os.uname().nodename}; start the workers as the user whose run it is"
        )
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise PreconditionFailed(
            f"{folder}: others than its owner may look into it ({stat.filemode(state.st_mode)}), and it holds private "
            "rows; take storage that keeps the mode 0700"
        )
