"""What the URL of a ledger in PostgreSQL says: where the database is, and the parameters that are quorate's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from quorate.arguments import before_at
from quorate.errors import InvalidParameter, PreconditionFailed

_OWN: Final = ("ledger", "key_file", "standby")
_NOT_CLEAR: Final = (
    "the ledger's URL is not one that libpq takes; check its parameters, and write @ : / ? # and % in a user's name or "
    "password as %40 %3A %2F %3F %23 and %25"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerUrl:
    """``postgresql://user@host/database``, as libpq takes it, with three parameters of quorate's own.

    `conninfo`: the rest, for libpq. `given`: what that reads in it. `name`: ``ledger=NAME``, for databases with
    several (default "ledger"). `key`: the place whose key ``key_file=PATH.key`` is, which binds private data to the
    ledger; every server needs a copy of it. `standby`: ``standby=required``: a commit counts only where the database
    waits for a standby.
    """

    conninfo: str
    given: frozenset[str]
    name: str
    key: Path | None
    standby: bool

    @classmethod
    def read(cls, url: str) -> LedgerUrl:
        """Take a URL apart. Raises InvalidParameter where a parameter of quorate's own is wrong, libpq does not take
        the rest, or a part of a password can be taken for a host, a port or a database, which refusals name.
        """
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
        conninfo, libpq = f"{base}?{rest}" if rest else base, driver()
        try:
            read = libpq.conninfo.conninfo_to_dict(conninfo)
        except libpq.ProgrammingError:  # its message may quote the URL, and so a password
            raise InvalidParameter(_NOT_CLEAR) from None
        ports = [number for number in str(read.get("port") or "").split(",") if number]
        if set("@/?") & set(before_at(conninfo)) or not all(number.isdigit() for number in ports):
            raise InvalidParameter(_NOT_CLEAR)
        return cls(
            conninfo=conninfo,
            given=frozenset(read),
            name=name,
            key=None if key is None else Path(key.removesuffix(".key")).absolute(),
            standby=standby is not None,
        )


def driver() -> Any:
    """Return psycopg, or refuse where it is not installed."""
    try:
        import psycopg
    except ImportError:
        raise PreconditionFailed('a ledger in PostgreSQL needs psycopg: pip install "quorate[postgres]"') from None
    return psycopg
