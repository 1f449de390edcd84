"""Secret keys: of a run, and the one that binds private data to a ledger; each file is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

from quorate.errors import REMEDIES, InvalidParameter, LedgerMismatch, PreconditionFailed
from quorate.ledger import Ledger
from quorate.ledger.ledger_files import keep_owner, key_file, refuse_name, refuse_other_files, sync_folder
from quorate.release.session import unless_new
from quorate.types import Secret


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to a file beside `path`, make it durable, and only then give it the name `path`."""
    write_beside(path, content, mode=mode).replace(path)
    sync_folder(path.parent)


def write_beside(path: Path, content: bytes, *, mode: int) -> Path:
    """Write `content` to a hidden file beside `path`, durably, and return where it is.

    It has the owner of the file that it is to replace, also where root writes it. Nothing is left where that fails.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    except OSError as error:
        error.filename = str(path)  # which somebody typed, or knows
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            keep_owner(file.fileno(), path)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # a full disk gets fuller with each attempt, and `public/` holds what may leave alone
        beside.unlink(missing_ok=True)
        raise
    return beside


@contextmanager
def told_as_typed(path: Path, *, charged: str = "nothing more was charged") -> Iterator[None]:
    """Have a refusal of the machine to write a file of the block name the path that was typed, in one line: what is
    written lies beside it until it is whole, under a name that nobody knows.
    """
    try:
        yield
    except OSError as error:
        said = error.strerror or type(error).__name__
        remedy = REMEDIES.get(error.errno or 0, "mend that, or name another place")
        raise PreconditionFailed(
            f"the machine refused to write {path}: {said[:1].lower()}{said[1:]}; {remedy}", charged=charged
        ) from None


def file_to_write(path: object, example: str, *, charged: str = "nothing more was charged") -> Path:
    """Return the path of a file that is to be written, and refuse a folder, or one in a folder that is not there.

    Raises InvalidParameter, PreconditionFailed naming the path and a file to give instead.
    """
    if not isinstance(path, str | Path):
        raise InvalidParameter(f"path must be the path of a file, got {type(path).__name__}; such as {example!r}")
    page = Path(path)
    if page.is_dir():
        raise PreconditionFailed(f"{page} is a folder; name a file in it, such as {page / example}", charged=charged)
    if not page.parent.is_dir():
        raise PreconditionFailed(
            f"there is no folder {page.parent} for {page.name}; create it first, or name another place",
            charged=charged,
        )
    return page


KEY_BYTES = 32

T = TypeVar("T")


def read_or_create_key(path: Path, drawn: Secret[bytes] | None = None) -> Secret[bytes]:
    """Read the secret key at `path`, or put a fresh one there (`drawn`, if it is given), readable by its owner alone.

    The file appears whole or not at all, and an existing one is never overwritten, not even by a process that starts
    at the same moment: answers under a new key would come from a new partition of the same people.

    Raises PreconditionFailed if the folder is missing, or the file is not a key: an empty one would be no secret.
    """
    if not path.parent.is_dir():
        raise PreconditionFailed(f"there is no folder {path.parent}; create it first")
    if not path.exists():
        try:
            beside = write_beside(path, (_fresh() if drawn is None else drawn).reveal(), mode=0o600)
        except OSError as error:
            raise PreconditionFailed(
                f"no file can be written in {path.parent} ({(error.strerror or type(error).__name__).lower()}), and a "
                "ledger keeps a key beside it; name a place where you may write"
            ) from None
        with suppress(FileExistsError):
            os.link(beside, path)  # unlike a rename, it never takes the place of a key that is there
        beside.unlink()
        sync_folder(path.parent)
    try:
        key = path.read_bytes()
    except PermissionError:
        raise PreconditionFailed(f"no permission to read {path}; ask its owner for it") from None
    if len(key) != KEY_BYTES:
        raise PreconditionFailed(f"{path} is not a key of {KEY_BYTES} bytes; restore it from a backup")
    return Secret(key)


def fingerprint_key(
    ledger: Path | Ledger | None, *, begin: bool = True, made_up: Secret[bytes] | None = None
) -> Secret[bytes]:
    """Return the key that binds private data to a ledger; it lies beside the ledger, readable by its owner alone.

    An unkeyed hash of private rows could be guessed at. A ledger in memory has a key of its own while it lives; None
    stands for a ledger that is yet to be made in memory.

    `ledger`: the ledger. `begin`: whether a key that is not there yet is written; where not, nothing is, and it is made
    up. `made_up`: what is written then, if an earlier call has made it up. Raises LedgerMismatch if a ledger is bound
    to data but its key is gone: whether these are the data can then no longer be told; PreconditionFailed if what is
    there is no ledger, or goes by several names.
    """
    fresh = _fresh() if made_up is None else made_up
    if isinstance(ledger, Ledger) and ledger.path is None:
        if ledger.durable and ledger.own_store is None:
            raise PreconditionFailed(
                "a ledger in PostgreSQL needs a place for the key that binds data to it, the same key on every server: "
                "give key_file=PATH.key in its URL"
            )
        return _KEYS_IN_MEMORY.setdefault(ledger, fresh)
    place = _place(ledger)
    if place is None:
        return fresh
    refuse_name(place)
    path, drawn = key_file(place), key_file(place, new=True)
    for written in (path, drawn):
        if written.exists():
            return read_or_create_key(written)
    if not isinstance(ledger, Ledger):  # an open one is a ledger, whatever its store writes
        refuse_other_files(place)
    fingerprints = _fingerprints(ledger)
    if fingerprints:
        raise LedgerMismatch(
            f"{path.name} is missing beside {place.name}: without it nobody can tell whether these are the data that "
            "the ledger was opened for. Restore it from a backup"
        )
    if not begin:
        return fresh
    # A key that has its name tells that there was a ledger, so until the first entry it has another.
    return read_or_create_key(drawn if fingerprints is None else path, fresh)


def with_key(ledger: Path | Ledger | None, make: Callable[[Secret[bytes]], T], *, begin: bool = True) -> T:
    """Make something with the key beside a ledger, and leave no key behind where making it is refused.

    It is made again where another process has put its key there meanwhile. `begin`: as for :func:`fingerprint_key`.
    """
    while True:
        key = fingerprint_key(ledger, begin=False)
        thing = make(key)
        if not begin or _place(ledger) is None or _same(fingerprint_key(ledger, made_up=key), key):
            return thing


def _same(one: Secret[bytes], other: Secret[bytes]) -> bool:
    return secrets.compare_digest(one.reveal(), other.reveal())


def _fresh() -> Secret[bytes]:
    return Secret(secrets.token_bytes(KEY_BYTES))


def _place(ledger: Path | Ledger | None) -> Path | None:
    return ledger.path if isinstance(ledger, Ledger) else ledger


_KEYS_IN_MEMORY: WeakKeyDictionary[Ledger, Secret[bytes]] = WeakKeyDictionary()


def _fingerprints(ledger: Path | Ledger | None) -> Sequence[str] | None:
    """The data that a ledger is bound to; None where there is no ledger with an entry."""
    if isinstance(ledger, Ledger):
        return ledger.fingerprints
    if ledger is None or not ledger.exists():
        return None
    opened = unless_new(partial(Ledger, ledger))
    if opened is None:
        return None
    with opened:
        return opened.fingerprints
