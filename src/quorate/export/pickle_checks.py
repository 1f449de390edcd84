"""A check of a package for what would be read as a pickle, which runs code when it is opened."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from quorate.export.container import MOST_MODEL_BYTES, UnsafePackageError, unpacked
from quorate.export.found import Found, failed, named, passed

_PICKLED: Final = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth")
_ARRAY: Final = b"\x93NUMPY"
# A file of the package, the parts of a model, and the parts of a sparse matrix among them, which is a zip file itself.
_DEEPEST: Final = 2
_MOST_INSTRUCTIONS: Final = 1_000_000
# These look a name up in a module, and so import it. They act when they are read, whatever stands after them.
_IMPORT: Final = frozenset({"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"})
_CALL: Final = frozenset({"REDUCE", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD", "PERSID", "BINPERSID"})


def pickles(files: Mapping[str, bytes]) -> Found:
    """Look into every file, and into every file inside a zip file, for what would be read as a pickle."""
    try:
        found = sorted({name for name, content in _within(files, _Left(MOST_MODEL_BYTES)) if is_pickle(name, content)})
    except UnsafePackageError as error:
        return failed(f"A file inside it is not read: {error}.")
    if found:
        return failed(f"These hold pickles, or arrays of objects that are read as pickles: {named(found)}.")
    return passed("No file, and nothing inside a model file, begins as a pickle or is an array of objects.")


class _Left:
    """Bytes that may still be unpacked, of all inner zip files together."""

    def __init__(self, most: int) -> None:
        self.most = most

    def unpack(self, content: bytes) -> dict[str, bytes]:
        parts = unpacked(content, most_bytes=self.most)
        self.most -= sum(map(len, parts.values()))
        return parts


def _within(files: Mapping[str, bytes], left: _Left, deep: int = 0) -> Iterator[tuple[str, bytes]]:
    for name, content in files.items():
        yield name, content
        if not _is_zip(content):
            continue
        if deep == _DEEPEST:
            raise UnsafePackageError(f"{name!r} is a zip file inside others, deeper than a model needs")
        inner = {f"{name}!{part}": inside for part, inside in left.unpack(content).items()}
        yield from _within(inner, left, deep + 1)


def _is_zip(content: bytes) -> bool:
    """Whether a reader of zip files would open it: they look at the end, and take whatever stands before."""
    if content.startswith(b"PK"):
        return True
    try:
        zipfile.ZipFile(io.BytesIO(content)).close()
    except zipfile.BadZipFile:
        return False
    except Exception:  # noqa: BLE001 - a zip file, and a strange one; it is refused where it is unpacked
        return True
    return True


def is_pickle(name: str, content: bytes) -> bool:
    r"""Tell whether a file would be read as a pickle.

    `name`: of the file. `content`: all of it.
    """
    if name.lower().endswith(_PICKLED):
        return True
    if content.startswith(_ARRAY):
        return _holds_objects(content)
    if len(content) > 1 and content[0] == 0x80 and 2 <= content[1] <= 5:
        return True
    return _reads_as_pickle(content)


def _holds_objects(content: bytes) -> bool:
    """Whether the header of an array says that it holds objects; nothing beyond the header is read.

    A header that cannot be read counts as one that does: nobody knows what another reader makes of it.
    """
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            _, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif version in {(2, 0), (3, 0)}:  # the third differs in the alphabet of the fields' names alone
            _, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            return True
    except Exception:  # noqa: BLE001 - whatever a broken header breaks
        return True
    return bool(dtype.hasobject)


def _reads_as_pickle(content: bytes) -> bool:
    """Whether a reader of pickles, which begin with no mark in old protocols, would import or call something.

    It reads up to the full stop and ignores what stands after it; and what it has read it has done, even if it breaks
    off at the next byte.
    """
    seen: set[str] = set()
    try:
        for number, (code, _, _) in enumerate(pickletools.genops(content)):
            seen.add(code.name)
            if number == _MOST_INSTRUCTIONS:
                return True
    except Exception:  # noqa: BLE001 - text, which is no sequence of instructions from there on
        return bool(seen & _IMPORT)
    return bool(seen & (_IMPORT | _CALL))
