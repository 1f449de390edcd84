"""What a command prints reaches whoever reads it, or nobody; and an error that nobody foresaw, of a library or of
memory.

A stream that cannot hold a sign (latin-1, a locale of C) gets it escaped, as JSON escapes it; a name of a file that is
no text shows U+FFFD. A reader that leaves (``| head -1``) is written to no more, and the work goes on to its end.

An unforeseen error is one line for the person, and the rest goes to a private file: what a library says of an error may
quote a private cell, so it is neither printed nor logged.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from quorate.errors import PreconditionFailed, QuorateError, Unforeseen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


NAME = "last-error.txt"
WARNING = "This file may hold private cells: it must not be sent to anybody."

# The folder of the run that the command is about, once its arguments were read.
run_in_question: ContextVar[Path | None] = ContextVar("run_in_question", default=None)


def may_hold_charges(root: Path | None) -> bool:
    """Tell whether the ledger of a run holds a charge of an earlier command, or cannot be asked."""
    if root is None:
        return False
    from quorate.folder.folder import RunFolder

    try:
        folder = RunFolder(root)
        if not folder.may_have_begun:
            return folder.has_ledger
        with folder.look_into_ledger() as ledger:
            return bool(ledger.reservations())
    except (QuorateError, OSError):
        return True


def refusal_of(error: BaseException) -> QuorateError:
    """Return what is said of an error that was not raised on purpose, and keep its traceback on the private side."""
    import traceback  # here: --help is quick

    from quorate.arguments import shown

    kept = _keep("".join(traceback.format_exception(error)))
    where = "Its traceback could not be written" if kept is None else f"Its traceback is in {shown(kept)}"
    if isinstance(error, MemoryError):
        return PreconditionFailed(
            "the machine has too little memory for this. What is stored stays; free some memory, or give smaller "
            f"tables, then the same command goes on. {where}, for you alone"
        )
    return Unforeseen(
        f"an error that was not foreseen ({type(error).__name__}) ended this command; what it says is not printed, "
        f"since it may quote private cells. {where}, for you alone. Look there for what to mend; what is stored stays, "
        "and the same command goes on"
    )


def _keep(text: str) -> Path | None:
    """Write to ``private/last-error.txt`` of the run, else to the temporary folder; readable by its owner alone."""
    import tempfile
    from pathlib import Path

    content = f"{WARNING}\n\n{text}".encode("utf-8", "backslashreplace")
    run = run_in_question.get()
    with suppress(OSError):
        if run is not None and (run / "private").is_dir():
            path = run / "private" / NAME
            path.unlink(missing_ok=True)  # never into what somebody else has put there
            return _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path, content)
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="quorate-last-error-", suffix=".txt")
        return _write(descriptor, Path(name), content)
    return None


def _write(descriptor: int, path: Path, content: bytes) -> Path:
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
    return path


_ESCAPED = "quorate.escaped"


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """Escape what an encoding lacks; a byte of a file's name that is no UTF-8 stands in a text as a surrogate."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    escaped = b""
    for sign in error.object[error.start : error.end]:
        if "\udc80" <= sign <= "\udcff":
            escaped += "\ufffd".encode("utf-8" if error.encoding == "utf-8" else "ascii", "backslashreplace")
        else:
            units = sign.encode("utf-16-be", "surrogatepass")
            escaped += b"".join(
                b"\\u%04x" % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)
            )
    return escaped, error.end


codecs.register_error(_ESCAPED, _escape)


@contextmanager
def forgiving_streams() -> Iterator[None]:
    """Have the process's two streams, which are the command's own, take whatever it prints until the block ends."""
    _occupy_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (None if stream is None else _Forgiving(stream) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Have no file, which a library may print into, get the number of a standard stream that the caller closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free


class _Forgiving:
    """A text stream whose writes do not fail."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        with suppress(AttributeError, TypeError, ValueError, OSError):  # a stream of another kind, or a closed one
            ascii_alone = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if ascii_alone else None, errors=_ESCAPED)  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        with self._unfailing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._unfailing():
            self._stream.flush()

    @contextmanager
    def _unfailing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # let what is still buffered go nowhere, now and when the interpreter ends
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
        except ValueError as error:
            if "closed" not in str(error):
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
