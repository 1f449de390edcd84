"""The head anchor: a small file beside the ledger that holds the newest head, written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from quorate.errors import LedgerIntegrityError
from quorate.ledger.json_values import canonical
from quorate.ledger.state import Head


class AnchorFile:
    """Reads and atomically replaces ``<ledger>.anchor``.

    Parameters
    ----------
    path : Path
        Where the anchor is; its folder exists.
    at : callable
        Told the name of each step just after it (tests stop there).
    """

    def __init__(self, path: Path, *, at: Callable[[str], None]) -> None:
        self.path = path
        self._at = at

    def read(self) -> Head | None:
        """Return the anchored head, or None where there is no file.

        Raises
        ------
        LedgerIntegrityError
            The file is not, byte for byte, an anchor, or a link to one.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise LedgerIntegrityError(
                f"{self.path.name} is a symbolic link; put the file itself in its place, nothing is released until then"
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            content = file.read()
        try:
            value = json.loads(content)
            head = Head(sequence=value["sequence"], hash=value["hash"])
            sound = _bytes(head) == content and type(head.sequence) is int and len(head.hash) == 64
        except (ValueError, TypeError, KeyError, RecursionError):
            sound = False
        if not sound:
            raise LedgerIntegrityError(
                f"the anchor {self.path.name} was altered; restore it, nothing is released without it"
            )
        return head

    def write(self, head: Head) -> None:
        """Replace the anchor; when this returns, the file and its name are on stable storage."""
        temporary = self.path.with_name(self.path.name + ".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            _write_all(descriptor, _bytes(head))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._at("anchor written")
        temporary.replace(self.path)
        self._at("anchor renamed")
        sync_folder(self.path.parent)
        self._at("anchored")


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on stable storage."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes(head: Head) -> bytes:
    return canonical({"hash": head.hash, "sequence": head.sequence}).encode() + b"\n"


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
