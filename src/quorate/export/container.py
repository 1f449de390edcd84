"""A package as it lies on a disk, a zip file or a folder, read so that it cannot do harm.

Whoever checks a package has it from somebody else. Nothing is unpacked to a disk, no link is followed, and no more is
read than :data:`MOST_BYTES`, whatever the file says of its own size.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: Of one package, unpacked.
MOST_BYTES: Final = 1 << 30
#: In one package.
MOST_FILES: Final = 1000
#: Inside one model file: each array of each tree is one.
MOST_MODEL_FILES: Final = 200_000
#: A model file inside a package may not unpack to more.
MOST_MODEL_BYTES: Final = 1 << 30

_CHUNK: Final = 1 << 20
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class UnsafePackageError(Exception):
    """A package that is not read any further; its message is a sentence without a full stop."""


def read_package(path: Path, *, most_bytes: int = MOST_BYTES) -> dict[str, bytes]:
    """Read every file of a package, a zip file or a folder, by its name; `most_bytes`: that all may have together.
    Raises UnsafePackageError for links, folders, names that lead elsewhere or stand twice, and for more; OSError.
    """
    if path.is_dir():
        return dict(_of_folder(path, most_bytes))
    return dict(_of_zip(_of_disk(path, most_bytes), most_bytes, flat=True))


def _of_disk(path: Path, most_bytes: int) -> bytes:
    """Read a file that is no pipe and no device, which might never end, and no larger than may be read."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePackageError("it is no regular file")
    content = None
    if status.st_size <= most_bytes:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") if _is_file(opened) else _closed(opened, path.name) as file:
            content = file.read(most_bytes + 1)
    if content is None or len(content) > most_bytes:
        raise UnsafePackageError(f"it has more than {most_bytes:,} bytes")
    return content


def unpacked(content: bytes, *, most_bytes: int = MOST_MODEL_BYTES) -> dict[str, bytes]:
    """Read all files of a zip in memory, such as a model of skops, as :func:`read_package`; folders are allowed."""
    return dict(_of_zip(content, most_bytes, flat=False))


def _of_folder(path: Path, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    left = most_bytes
    names = sorted(entry.name for entry in path.iterdir())
    _check_number(len(names), MOST_FILES)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names:
            try:
                opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            except OSError:
                raise UnsafePackageError(f"{name!r} is a link or cannot be read") from None
            with os.fdopen(opened, "rb") if _is_file(opened) else _closed(opened, name) as file:
                content = file.read(left + 1)
            left = _take(content, left, name, most_bytes)
            yield name, content
    finally:
        os.close(folder)


def _is_file(opened: int) -> bool:
    return stat.S_ISREG(os.fstat(opened).st_mode)


def _closed(opened: int, name: str) -> io.BytesIO:
    os.close(opened)
    raise UnsafePackageError(f"{name!r} is a folder or no regular file; a package is flat")


def _of_zip(content: bytes, most_bytes: int, *, flat: bool) -> Iterator[tuple[str, bytes]]:
    left, names = most_bytes, set()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_number(len(members), MOST_FILES if flat else MOST_MODEL_FILES)
            for member in members:
                _check_member(member, flat=flat)
                if member.filename in names:
                    raise UnsafePackageError(
                        f"{member.filename!r} stands there twice, so that readers may differ in it"
                    )
                names.add(member.filename)
                if member.is_dir():
                    continue
                with archive.open(member) as file:
                    read = _bounded(file, left + 1)
                left = _take(read, left, member.filename, most_bytes)
                yield member.filename, read
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
        struct.error,
    ) as error:
        raise UnsafePackageError(f"it is no zip file that can be read ({type(error).__name__})") from None


def _bounded(file: object, most: int) -> bytes:
    """Read to the end or to `most` bytes, whichever is first; the size that the archive states decides nothing."""
    parts, size = [], 0
    while size < most:
        part = file.read(min(_CHUNK, most - size))  # type: ignore[attr-defined]
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _take(content: bytes, left: int, name: str, most_bytes: int) -> int:
    if len(content) > left:
        raise UnsafePackageError(f"it unpacks to more than {most_bytes:,} bytes; {name!r} was not read to its end")
    return left - len(content)


def _check_number(files: int, most: int) -> None:
    if files > most:
        raise UnsafePackageError(f"it holds {files:,} files, and at most {most:,} are read")


def _check_member(member: zipfile.ZipInfo, *, flat: bool) -> None:
    name, mode = member.filename, member.external_attr >> 16
    parts = name.split("/")
    if name.startswith(("/", "\\")) or "\\" in name or ":" in name or ".." in parts or "\0" in member.orig_filename:
        raise UnsafePackageError(f"the name {name!r} leads out of the package")
    if flat and len(parts) > 1:
        raise UnsafePackageError(f"{name!r} lies in a folder; a package is flat")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UnsafePackageError(f"{name!r} is a link or no regular file")
    if member.flag_bits & _ENCRYPTED:
        raise UnsafePackageError(f"{name!r} is encrypted, and cannot be checked")
    if member.compress_type not in _METHODS:
        raise UnsafePackageError(f"{name!r} is compressed in a way that is not read here")
