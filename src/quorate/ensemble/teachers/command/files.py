"""The folder of one call of a command, and what stands in its files: rows, votes, and a model's folder.

The folder is its owner's alone, and gone afterwards, also where the caller is killed. A process that is killed removes
nothing. So a small shell waits beside it: it holds the other end of a pipe, and when the pipe breaks without a word, it
kills the command's process group and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from quorate.data.file_reading import polars_path
from quorate.data.rows import kind
from quorate.ensemble.teachers.teacher import ABSTAINED

if TYPE_CHECKING:
    from quorate.types import IntArray

FileFormat: TypeAlias = Literal["csv", "parquet"]
LABEL = "label"
MOST_MODEL_BYTES = 2**28  # of one teacher's model folder
_MOST_MODEL_FILES = 10_000


class CommandFailed(Exception):
    """A command did not do what the protocol says. On private rows nobody is told; on public rows its owner is."""

    remedy = ""  # what to do about it, where that is not to mend the command
    before_the_call = False


class CommandLate(CommandFailed):
    """Its own time was up: the one failure that no other call has a part in."""

    remedy = "Raise timeout, or have it need less time"


class RowsUnwritable(CommandFailed):
    """The rows cannot be written into a file with a cell for every value."""

    before_the_call = True
    remedy = "Give a dense table, or a Pipeline that takes sparse rows"


def write_rows(path: Path, X: Any, *, labels: Sequence[Any] | None, file_format: FileFormat) -> None:
    """Write rows and, in a last column, labels under their names (x0, x1, … of an array); missing values are empty
    cells. Sparse rows raise RowsUnwritable.
    """
    import polars as pl

    frame = _frame(X)
    if labels is not None:
        name = LABEL
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(pl.Series(name, list(labels)))
    if file_format == "csv":
        frame.write_csv(polars_path(path))
    else:
        frame.write_parquet(polars_path(path))


def _frame(X: Any) -> Any:
    """Return the rows as a polars frame, in which what is missing is null."""
    import polars as pl
    import polars.selectors as cs

    if kind(X) == "sparse":
        raise RowsUnwritable("a command is given files with a cell for every value, and these rows are sparse")
    if kind(X) == "numpy":
        frame = pl.DataFrame(X, schema=[f"x{column}" for column in range(X.shape[1])], orient="row")
    elif kind(X) == "pandas":
        frame = pl.DataFrame({str(name): _listed(X.iloc[:, place]) for place, name in enumerate(X.columns)})
    else:
        frame = X
    return frame.with_columns(cs.float().fill_nan(None))


def _listed(column: Any) -> list[Any]:
    """Return the values of a pandas column; None for each that is missing."""
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


def spellings(classes: Sequence[Any]) -> dict[str, int]:
    """Return the texts that stand for each class in a file of votes, and its code."""
    known = {}
    for code, label in enumerate(classes):
        for text in (str(label), str(label).lower(), str(label).upper()) if isinstance(label, bool) else (str(label),):
            known[text] = code
    return known


def read_votes(path: Path, n: int, known: dict[str, int] | None, *, strict: bool = False) -> IntArray:
    """Read one vote a line, perhaps in double quotes, for `n` questions; -1 for an empty line, and for what is no
    class.

    `known`: from :func:`spellings`; None: votes are class codes. `strict`: raise for what is no class, on public rows
    alone. Raises CommandFailed for another number of lines, and for a link, a folder, no UTF-8, or far too many bytes.
    """
    codes: IntArray = np.full(n, ABSTAINED, dtype=np.int64)
    lines = _lines(path, n, most=(max(map(len, known or ("0" * 20,))) * 4 + 8) * (n + 1))
    for place, line in enumerate(lines):
        text = line[1:-1].replace('""', '"') if len(line) > 1 and line[0] == line[-1] == '"' else line
        if known is not None:
            codes[place] = known.get(text, ABSTAINED)
        elif text.isascii() and text.isdigit() and len(text) < 10:
            codes[place] = int(text)
        if text and codes[place] == ABSTAINED and strict:
            expected = "a class code" if known is None else f"one of {', '.join(known)}"
            raise CommandFailed(f"line {place + 1} of its votes is {text[:60]!r}; expected {expected}")
    return codes


def _lines(path: Path, n: int, *, most: int) -> list[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise CommandFailed("it wrote no file of votes") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CommandFailed("what it left in place of the votes is no file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise CommandFailed("its file of votes is longer than so many votes can be")
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise CommandFailed("its file of votes is not UTF-8 text") from None
    if lines[-1] == "":
        lines.pop()
    if len(lines) != n:
        raise CommandFailed(f"it wrote {len(lines):,} votes for {n:,} questions; expected one a line, and no heading")
    return [line.removesuffix("\r") for line in lines]


def read_model(folder: Path) -> dict[str, bytes]:
    """Read a command's model folder; CommandFailed for what is no plain file, beyond 256 MiB or 10,000 files."""
    model: dict[str, bytes] = {}
    size = 0
    for root, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(root, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                continue
            size += path.lstat().st_size
            if not stat.S_ISREG(mode) or size > MOST_MODEL_BYTES or len(model) == _MOST_MODEL_FILES:
                raise CommandFailed("its model is no folder of plain files, at most 256 MiB and 10,000 of them")
            model[path.relative_to(folder).as_posix()] = path.read_bytes()
    return model


def write_model(folder: Path, model: dict[str, bytes]) -> None:
    """Write a model's folder anew; CommandFailed if a path leads out of it."""
    folder.mkdir(mode=0o700)
    for name, content in model.items():
        path = folder / name
        if name.startswith("/") or ".." in Path(name).parts:
            raise CommandFailed("a path of its model leads out of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


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
    """The folder of one call, mode 0700, in `parent` or the system's place for temporary files; a context manager."""

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
