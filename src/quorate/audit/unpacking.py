"""What a file or an object holds: bytes and everything packed inside them; displays and attributes of an object.

Nothing that is unpacked is run, and nothing looks into a Secret.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import logging
import lzma
import pickletools
import sqlite3
import tarfile
import tempfile
import types
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from quorate.ambient import unwarned
from quorate.deferred import pl
from quorate.types import FloatArray, Secret

Content: TypeAlias = "str | bytes | FloatArray"

#: Packages inside packages are opened this deep.
MAX_DEPTH = 8

_SQLITE = b"SQLite format 3\x00"


def unpack(name: str, data: bytes, *, depth: int = 0, wal: bytes = b"") -> Iterator[tuple[str, Content]]:
    """Yield ``(name, content)`` for `data` itself, as bytes, and for everything that is packed in it.

    Opened are zip (skops, npz, xlsx), gzip, bzip2, xz, zlib, tar, npy, SQLite (with its write-ahead log), Parquet, and
    pickles, whose instructions are read but never obeyed.
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
        yield "names", "\n".join(f"{entry.filename} {entry.comment!r}" for entry in archive.infolist())
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
        yield "values", "\n".join(str(value) for value in array.ravel().tolist())


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
                yield "schema", "\n".join(str(item) for row in schema for item in row)
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


_DISPLAYS = ("_repr_html_", "_repr_markdown_", "_repr_latex_", "_repr_json_", "_repr_svg_", "_repr_png_", "_repr_jpeg_",
             "_repr_mimebundle_")  # fmt: skip
_CLOSED = (Secret, type, types.ModuleType, types.BuiltinFunctionType, logging.Logger, logging.Handler,
           types.TracebackType, types.FrameType, types.CodeType)  # fmt: skip


def walk(name: str, value: object, *, depth: int = 6) -> Iterator[tuple[str, Content]]:
    """Yield ``(name, content)`` for each display of `value`, and for what can be reached from it."""
    with unwarned():  # a deprecated attribute is not what is looked for here
        contents = [*_displays(name, value), *_Walk().enter(name, value, depth)]
    yield from contents


def _displays(name: str, value: object) -> Iterator[tuple[str, Content]]:
    for how, display in (("repr", repr), ("str", str), ("format", format)):
        try:
            yield f"{name}.{how}", display(value)
        except Exception as error:  # noqa: BLE001  (a display that fails shows its error)
            yield f"{name}.{how}", f"{type(error).__name__}: {error}"
    for method in _DISPLAYS:
        rich = getattr(type(value), method, None)
        text = _quietly(lambda rich=rich: rich(value)) if callable(rich) else None
        if isinstance(text, bytes):
            yield from unpack(f"{name}.{method}", text)
        elif text is not None:
            yield f"{name}.{method}", str(text)


def _quietly(call: Any) -> Any:
    try:
        return call()
    except Exception:  # noqa: BLE001  (a display or property that fails shows nothing)
        return None


class _Walk:
    """One walk; it enters each object once."""

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}  # the objects are kept, or their ids could be given to others

    def enter(self, name: str, value: Any, depth: int) -> Iterator[tuple[str, Content]]:
        if isinstance(value, (str, Number, np.generic)) or value is None:
            yield name, str(value)
            return
        if isinstance(value, (bytes, bytearray)):
            yield from unpack(name, bytes(value))
            return
        if depth < 0 or isinstance(value, _CLOSED) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            yield name, _flat(value)
            return
        table = _table(value)
        if table is not None:
            yield name, table
        numbers = _numbers(value)
        if numbers is not None:
            yield name, numbers
            return
        for part, inner in _parts(value):
            yield from self.enter(f"{name}{part}", inner, depth - 1)


def _flat(array: np.ndarray[Any, Any]) -> Content:
    if array.dtype.kind in "biuf":
        return np.asarray(array, dtype=np.float64).ravel()
    return "\n".join(str(value) for value in array.ravel().tolist())


def _numbers(value: Any) -> Content | None:
    """Return the numbers of a (nested) list or tuple of numbers, one after another."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    array = _quietly(lambda: np.asarray(value))
    return _flat(array) if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" and array.size else None


def _table(value: Any) -> str | None:
    """Return a data frame (polars, pandas) as CSV: its columns are not attributes."""
    writer = getattr(type(value), "write_csv", None) or getattr(type(value), "to_csv", None)
    text = _quietly(lambda: writer(value)) if callable(writer) else None
    return text if isinstance(text, str) else None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for place, (key, inner) in enumerate(list(value.items())):
            if isinstance(key, str):
                yield f".{key}", inner
            else:
                yield f".key[{place}]", key
                yield f".value[{place}]", inner
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from ((f"[{place}]", inner) for place, inner in enumerate(list(value)))
    elif isinstance(value, np.ndarray):
        yield from ((f"[{place}]", inner) for place, inner in enumerate(value.ravel().tolist()))
    if isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.FunctionType):
        yield ".__defaults__", value.__defaults__
        yield ".__kwdefaults__", value.__kwdefaults__
        for place, cell in enumerate(value.__closure__ or ()):
            yield f".closure[{place}]", _quietly(lambda cell=cell: cell.cell_contents)
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    names = dict.fromkeys(_quietly(lambda: list(vars(value))) or ())
    for kind in type(value).__mro__:
        unit_keys = kind.__dict__.get("__slots__", ())
        names |= dict.fromkeys([unit_keys] if isinstance(unit_keys, str) else unit_keys)
        names |= dict.fromkeys(
            attribute
            for attribute, member in kind.__dict__.items()
            if isinstance(member, (property, functools.cached_property)) and not attribute.startswith("_")
        )
    for attribute in names:
        if isinstance(attribute, str) and not attribute.startswith("__"):
            yield f".{attribute}", _quietly(lambda attribute=attribute: getattr(value, attribute))
