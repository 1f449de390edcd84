"""Keys of the service: who may ask, read or administer. The secret is shown once; its hash alone is kept.

A key is ``quorate_<id>_<secret>`` with a secret of 256 random bits. No password is stretched here: a secret of that
length cannot be guessed, so that its SHA-256 hash tells nothing of it.
"""

from __future__ import annotations

import errno
import fcntl
import hmac
import json
import os
import pwd
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeAlias

from quorate.arguments import count, for_shell
from quorate.errors import REMEDIES, InvalidParameter, PreconditionFailed
from quorate.ledger.fields import matching, optional, text, whole
from quorate.ledger.ledger_files import keep_owner
from quorate.ledger.store import reason_of
from quorate.release.keys import write_atomically

Scope: TypeAlias = Literal["ask", "read", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("ask", "read", "admin")

SECRET_BYTES: Final = 32
FILE: Final = "service-keys.json"
MOST_DAYS: Final = 1_000_000

_FORMAT = "quorate service keys 1"
_TOKEN = re.compile(r"quorate_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_LONGEST = 1 << 24  # bytes of all keys: fifty thousand of them
_NOBODY = "0" * 64  # what an unknown key's hash is compared with, so that it takes as long as a known one's


def _scopes(name: str, value: object) -> tuple[Scope, ...]:
    scopes = value if isinstance(value, list | tuple) else ()
    if not scopes or any(scope not in SCOPES for scope in scopes):
        raise InvalidParameter(parameter=name, got=value, expected=f"one or more of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in scopes)


def _moment(name: str, value: object) -> str:
    written = text(40)(name, value)
    with suppress(ValueError):
        if datetime.fromisoformat(written).tzinfo is not None:
            return written
    raise InvalidParameter(parameter=name, expected="a day and a time with its zone, such as 2027-01-01T00:00:00+00:00")


# What each field of a key must be, where a hand has changed the file; no refusal quotes the hash.
_FIELDS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "id": matching(re.compile("[0-9a-f]{12}"), "twelve hexadecimal digits"),
    "name": text(80),
    "scopes": _scopes,
    "hash": matching(re.compile("[0-9a-f]{64}"), "64 hexadecimal digits"),
    "created": _moment,
    "expires": optional(_moment),
    "revoked": optional(_moment),
    "quota": optional(whole(0)),  # as the ledger takes it
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """What is known of a key; the client of its charges in the ledger is ``key:<id>``.

    `scopes`: "ask" for answers, "read" the budget and the guarantee, "admin" the metrics too. `hash`: SHA-256 of the
    secret. `quota`: answers in its whole life; None where the cap for all is its only limit.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    hash: str
    created: str
    expires: str | None = None
    revoked: str | None = None
    quota: int | None = None

    def __post_init__(self) -> None:
        for name, check in _FIELDS.items():
            check(name, getattr(self, name))

    @property
    def client(self) -> str:
        """Who is charged, as the ledger has it."""
        return f"key:{self.id}"

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope; "admin" reads too."""
        return scope in self.scopes or (scope == "read" and "admin" in self.scopes)

    def ended(self, now: datetime) -> bool:
        """Whether it is revoked or expired."""
        return self.revoked is not None or (self.expires is not None and now >= datetime.fromisoformat(self.expires))


class KeyFile:
    """The keys of one run, in its private side; readable by their owner alone.

    A running service sees a new or a revoked key with the next request: a file that was changed is read again.
    """

    def __init__(self, private: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = private / FILE
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] = {}

    def keys(self) -> tuple[Key, ...]:
        """Return all keys, ended ones included, oldest first.

        Raises PreconditionFailed if the file is damaged, or may not be read.
        """
        self._refresh()
        return tuple(self._keys.values())

    def find(self, token: str) -> Key | None:
        """Return the key that a token is, unless it is unknown, expired or revoked.

        The comparison takes as long for a wrong secret as for a right one, and for an unknown key as for a known one.
        """
        self._refresh()
        match = _TOKEN.fullmatch(token)
        key = None if match is None else self._keys.get(match[1])
        digest = sha256((token if match is None else match[2]).encode("utf-8", "replace")).hexdigest()
        same = hmac.compare_digest(digest, _NOBODY if key is None else key.hash)
        return key if same and key is not None and not key.ended(self._clock()) else None

    def create(
        self, name: str, scopes: Sequence[str], *, days: int | None = None, quota: int | None = None
    ) -> tuple[str, Key]:
        """Make a key; return the token, which is kept nowhere, and what is known of it.

        Raises InvalidParameter if a scope is none, the name is not one short line, or a number is out of range.
        """
        now = self._clock().astimezone(UTC)
        lifetime = None if days is None else timedelta(count("days", days, at_least=1, at_most=MOST_DAYS))
        secret = secrets.token_urlsafe(SECRET_BYTES)
        key = Key(
            id=secrets.token_hex(6),
            name=name,
            scopes=_scopes("scopes", list(scopes)),
            hash=sha256(secret.encode()).hexdigest(),
            created=now.isoformat(timespec="seconds"),
            expires=None if lifetime is None else (now + lifetime).isoformat(timespec="seconds"),
            quota=quota,
        )
        with self._changing():
            self._keys[key.id] = key
        return f"quorate_{key.id}_{secret}", key

    def revoke(self, id_: str) -> Key:
        """End a key, for ever; one that was revoked stays as it was.

        Raises PreconditionFailed if there is no such key.
        """
        with self._changing():
            if id_ not in self._keys:
                raise PreconditionFailed(f"there is no key {id_!r}; quorate keys list shows which there are")
            key = self._keys[id_]
            if key.revoked is None:
                key = replace(key, revoked=self._clock().astimezone(UTC).isoformat(timespec="seconds"))
                self._keys[id_] = key
        return key

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the keys while they are changed: two commands at once lose nothing of each other."""
        self._refuse_no_folder()
        with _readable(self._path.parent):
            lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            keep_owner(lock, self._path.parent)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._seen = None
            self._refresh()
            yield
            tree = {"format": _FORMAT, "keys": [asdict(key) for key in self._keys.values()]}
            write_atomically(self._path, (json.dumps(tree, indent=2) + "\n").encode(), mode=0o600)
            self._seen = None
        finally:
            os.close(lock)

    def _refuse_no_folder(self) -> None:
        if not self._path.parent.is_dir():
            raise PreconditionFailed(
                f"there is no folder {self._path.parent}; first: quorate run {for_shell(self._path.parent.parent)}"
            )

    def _refresh(self) -> None:
        try:
            with _readable(self._path):
                status = self._path.stat()
        except FileNotFoundError:
            if self._seen is not None:
                raise PreconditionFailed(f"{self._path} was removed; restore it, or make new keys") from None
            self._refuse_no_folder()
            self._keys = {}
            return
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        if version != self._seen:
            self._keys = _read(self._path)
            self._seen = version


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what keeps a file of the keys from being opened into a line that names it, and who may open it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        words = f"{path} cannot be used ({reason_of(error)})"
        if error.errno not in (errno.EACCES, errno.EPERM):
            remedy = REMEDIES.get(error.errno or 0, "mend that")
            raise PreconditionFailed(f"{words}; {remedy}, then try again") from error
        with suppress(OSError, KeyError):
            owner = pwd.getpwuid(path.stat().st_uid).pw_name
            raise PreconditionFailed(
                f"{words}; it belongs to {owner}: run this as that user (sudo -u {owner}), or give the file to who "
                "serves the run (chown)"
            ) from error
        raise PreconditionFailed(f"{words}; run this as who owns the run's folder") from error


def _read(path: Path) -> dict[str, Key]:
    try:
        with _readable(path):
            content = _content(path)
        tree = json.loads(content)
        if tree["format"] != _FORMAT:
            raise ValueError  # noqa: TRY301
        keys = [Key(**{**key, "scopes": _scopes("scopes", key["scopes"])}) for key in tree["keys"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # What it got is not said: it may be a key that was pasted into the wrong place.
        what = f" ({error.parameter} must be {error.expected})" if isinstance(error, InvalidParameter) else ""
        raise PreconditionFailed(
            f"{path} is damaged{what}; restore it from a backup, or delete it and make new keys"
        ) from None
    return {key.id: key for key in keys}


def _content(path: Path) -> bytes:
    """Read a file that is one, and no pipe or device that would be waited for.

    Raises ValueError if it is none, or longer than all keys of a service are.
    """
    with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as file:
        content = file.read(_LONGEST + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    if content is None or len(content) > _LONGEST:
        raise ValueError
    return content
