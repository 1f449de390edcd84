"""A folder for rows that memory does not hold: its owner's alone, and gone when it is no longer needed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quorate.errors import PreconditionFailed

_PREFIX, _LOCK = ".rows-", "lock"


class Workspace:
    """A folder that is made when it is first asked for, and removed with this object or with the process.

    What a killed process has left is removed by the next one that asks for a workspace in the same place: a lock that
    ends with its process tells which are in use.

    `parent`: where it is to be made.
    """

    def __init__(self, parent: Callable[[], Path]) -> None:
        self._parent = parent
        self._end: Callable[[], object] | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """The folder.

        Raises PreconditionFailed if it cannot be made.
        """
        if self._path is None:
            parent = self._parent()
            try:
                _remove_abandoned(parent)
                made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # readable by its owner alone
                descriptor = os.open(made / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise cannot_hold(parent, error) from None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._path, self._end = made, weakref.finalize(self, _remove, made, descriptor, os.getpid())
        return self._path

    def close(self) -> None:
        """Remove the folder; asked for again, it is made anew."""
        if self._end is not None:
            self._end()
        self._path = self._end = None


def cannot_hold(place: Path, error: OSError) -> PreconditionFailed:
    """Return what is said where rows cannot be put aside."""
    return PreconditionFailed(
        f"{place}: rows that memory does not hold cannot be kept there ({os.strerror(error.errno or 0)}); make room, "
        "or allow more [run] memory"
    )


def _remove(path: Path, descriptor: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked child has no hand on it
        return
    shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # no lock yet, or somebody holds it
            descriptor = os.open(left / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)
