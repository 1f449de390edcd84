"""What a file holds: its bytes, and everything packed inside them, without running any of it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickletools
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from quorate.types import FloatArray

Content: TypeAlias = "str | bytes | FloatArray"

#: Packages inside packages are opened this deep.
MAX_DEPTH = 8

_SQLITE = b"SQLite format 3\x00"


def unpack(name: str, data: bytes, *, depth: int = 0, wal: bytes = b"") -> Iterator[tuple[str, Content]]:
    """Yield ``(name, content)`` for `data` itself and for everything that is packed in it.

    Opened are zip (hence skops, npz, xlsx), gzip, bzip2, xz, zlib, tar, npy, SQLite (with its write-ahead log),
    Parquet, and pickles, whose instructions are read but never obeyed. What cannot be opened is still there as bytes.

    Examples
    --------
    >>> packed = gzip.compress(b"votes: 180 40 30")
    >>> [name for name, _ in unpack("votes.gz", packed)]
    ['votes.gz', 'votes.gz!gunzip']
    """
    yield name, data
    if depth >= MAX_DEPTH:
        return
    for magic, how, opener in _OPENERS:
        if data.startswith(magic):
            try:
                inside = list(opener(data))
            except (OSError, ValueError, EOFError, KeyError, RuntimeError, lzma.LZMAError, zlib.error,
                    zipfile.BadZipFile, tarfile.TarError):  # fmt: skip
                inside = []  # not what its first bytes promise: it stays as bytes
            for part, content in inside:
                inner = f"{name}!{part or how}"
                if isinstance(content, bytes):
                    yield from unpack(inner, content, depth=depth + 1)
                else:
                    yield inner, content
    if data.startswith(_SQLITE):
        for part, content in _sqlite(data, wal):
            if isinstance(content, bytes):
                yield from unpack(f"{name}!{part}", content, depth=depth + 1)
            else:
                yield f"{name}!{part}", content


def _zip(data: bytes) -> Iterator[tuple[str, Content]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield "names", "\n".join(f"{each.filename} {each.comment!r}" for each in archive.infolist())
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, archive.read(member)


def _tar(data: bytes) -> Iterator[tuple[str, Content]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive.getmembers():
            yield "names", f"{member.name} {member.linkname} {member.uname} {member.pax_headers}"
            file = archive.extractfile(member)
            if file is not None:
                yield member.name, file.read()


def _npy(data: bytes) -> Iterator[tuple[str, Content]]:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype.kind in "biuf":
        yield "values", np.asarray(array, dtype=np.float64).ravel()
    elif array.dtype.kind in "US":
        yield "values", "\n".join(str(each) for each in array.ravel().tolist())


def _pickle(data: bytes) -> Iterator[tuple[str, Content]]:
    """List the constants of a pickle; its instructions are not run."""
    numbers: list[float] = []
    for _, argument, _ in pickletools.genops(data):
        if isinstance(argument, bytearray):
            argument = bytes(argument)
        if isinstance(argument, (str, bytes)):
            yield "constant", argument
        elif isinstance(argument, (int, float)):
            numbers.append(float(argument))
    yield "numbers", np.array(numbers, dtype=np.float64)


def _parquet(data: bytes) -> Iterator[tuple[str, Content]]:
    import polars as pl  # slow to import, and needed for Parquet alone

    yield "table", pl.read_parquet(io.BytesIO(data)).write_csv()


def _sqlite(data: bytes, wal: bytes) -> Iterator[tuple[str, Content]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        path.write_bytes(data)
        if wal:
            path.with_name("copy.db-wal").write_bytes(wal)
        try:
            connection = sqlite3.connect(path)
            try:
                connection.text_factory = bytes
                schema = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
                yield "schema", "\n".join(str(each) for row in schema for each in row)
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                for (raw,) in tables:
                    table = raw.decode()
                    quoted = table.replace('"', '""')
                    for row in connection.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  (quoted above)
                        yield from ((table, cell) for cell in row if isinstance(cell, bytes))
                        yield table, ", ".join(str(cell) for cell in row if isinstance(cell, (int, float)))
            finally:
                connection.close()
        except sqlite3.Error:
            return


_Opener: TypeAlias = Callable[[bytes], "Iterator[tuple[str, Content]]"]


def _one(how: Callable[[bytes], bytes]) -> _Opener:
    def opener(data: bytes) -> Iterator[tuple[str, Content]]:
        yield "", how(data)

    return opener


def _if_tar(data: bytes) -> Iterator[tuple[str, Content]]:
    return _tar(data) if data[257:262] == b"ustar" else iter(())


_OPENERS: tuple[tuple[bytes, str, _Opener], ...] = (
    (b"PK\x03\x04", "unzip", _zip),
    (b"\x1f\x8b", "gunzip", _one(gzip.decompress)),
    (b"BZh", "bunzip2", _one(bz2.decompress)),
    (b"\xfd7zXZ\x00", "unxz", _one(lzma.decompress)),
    (b"\x78\x01", "inflate", _one(zlib.decompress)),
    (b"\x78\x5e", "inflate", _one(zlib.decompress)),
    (b"\x78\x9c", "inflate", _one(zlib.decompress)),
    (b"\x78\xda", "inflate", _one(zlib.decompress)),
    (b"\x93NUMPY", "npy", _npy),
    (b"\x80", "pickle", _pickle),
    (b"PAR1", "parquet", _parquet),
    (b"", "tar", _if_tar),
)
