"""What the URL of a ledger in PostgreSQL says: where the database is, and the parameters that are quorate's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from quorate.arguments import before_at
from quorate.errors import InvalidParameter

_OWN: Final = ("ledger", "key_file", "standby")
NOT_CLEAR: Final = (
    "the ledger's URL is not one that libpq takes; check its parameters, and write @ : / ? # and % in a user's name or "
    "password as %40 %3A %2F %3F %23 and %25"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerUrl:
    """``postgresql://user@host/database``, as libpq takes it, with three parameters of quorate's own.

    `conninfo`: the rest, for libpq. `name`: ``ledger=NAME``, for databases with several (default "ledger"). `key`: the
    place whose key ``key_file=PATH.key`` is, which binds private data to the ledger; every server needs a copy of it.
    `standby`: ``standby=required``: a commit counts only where the database waits for a standby.
    """

    conninfo: str
    name: str
    key: Path | None
    standby: bool

    @classmethod
    def read(cls, url: str) -> LedgerUrl:
        """Take a URL apart. Raises InvalidParameter where a parameter of quorate's own is wrong."""
        base, _, text = url.partition("?")
        query = parse_qsl(text.replace("+", "%2B"), keep_blank_values=True)  # to libpq + is no space
        own = {name: value for name, value in query if name in _OWN}
        name, key, standby = own.get("ledger", "ledger"), own.get("key_file"), own.get("standby")
        if not name or len(name) > 128 or not name.isprintable():
            raise InvalidParameter("ledger= in the URL must be 1 to 128 printable characters")
        if key is not None and (not key.endswith(".key") or not Path(key).parent.is_dir()):
            raise InvalidParameter("key_file= in the URL must end in .key, in a folder that exists on this server")
        if standby not in (None, "required"):
            raise InvalidParameter("standby= in the URL must be required; leave it out where none is demanded")
        rest = urlencode([(name, value) for name, value in query if name not in _OWN], quote_via=quote)
        return cls(
            conninfo=f"{base}?{rest}" if rest else base,
            name=name,
            key=None if key is None else Path(key.removesuffix(".key")).absolute(),
            standby=standby is not None,
        )


def is_clear(conninfo: str, port: object) -> bool:
    """Whether no part of a password can be taken for a host, a port or a database, which refusals name."""
    ports = [number for number in str(port or "").split(",") if number]
    return not set("@/?") & set(before_at(conninfo)) and all(number.isdigit() for number in ports)
