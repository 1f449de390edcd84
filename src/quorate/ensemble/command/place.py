"""A folder for one call of a command: its owner's alone, and gone afterwards, also where the caller is killed.

A process that is killed removes nothing. So a small shell waits beside it: it holds the other end of a pipe, and when
the pipe breaks without a word, it kills the command's process group and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_GUARD = """
trap '' HUP INT TERM
group=
while read -r word; do
  case $word in
    done) exit 0 ;;
    none) group= ;;
    *) group=$word ;;
  esac
done
times=0
while [ -e "$1" ] && [ "$times" -lt 100 ]; do
  [ -n "$group" ] && kill -9 "-$group"
  chmod -R u+rwx "$1"
  rm -rf "$1"
  [ -e "$1" ] && sleep 0.1
  times=$((times + 1))
done
"""


class CallFolder:
    """The folder of one call, mode 0700; a context manager.

    `parent`: where it is made; the system's place for temporary files by default.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent if parent is not None and parent.is_dir() else None

    def __enter__(self) -> CallFolder:
        """Make it."""
        self.path = Path(tempfile.mkdtemp(prefix=".call-", dir=self._parent)).resolve()
        self._guard = subprocess.Popen(  # noqa: S603 - a fixed program; the path is an argument, not a word of a shell
            ["/bin/sh", "-c", _GUARD, "sh", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},  # no mark: it outlives, for a moment, whoever is ended by one
            start_new_session=True,
            cwd="/",
        )
        return self

    def watch(self, group: int | None) -> None:
        """Tell the guard which process group is at work; None where none is."""
        self._say("none" if group is None else str(group))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        remove(self.path)
        if not self.path.exists():
            self._say("done")
        with suppress(OSError):
            assert self._guard.stdin is not None  # noqa: S101 - it was opened above
            self._guard.stdin.close()
        self._guard.wait()

    def _say(self, word: str) -> None:
        assert self._guard.stdin is not None  # noqa: S101 - as above
        with suppress(OSError):  # somebody has ended the guard
            self._guard.stdin.write(f"{word}\n".encode())
            self._guard.stdin.flush()


def remove(folder: Path) -> None:
    """Remove a folder, also parts of it that somebody has made unreadable."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for root, names, _ in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    Path(root, name).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
