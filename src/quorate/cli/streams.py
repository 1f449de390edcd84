"""What a command prints reaches whoever reads it, or nobody: it never ends the command.

A stream that cannot hold a sign (latin-1, a locale of C) gets it escaped, as JSON escapes it; a name of a file that is
no text shows U+FFFD. A reader that leaves (``| head -1``) is written to no more, and the work goes on to its end.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Have the process's two streams take whatever a command of it prints, until the end of the block.

    The process is the command's own, so nobody else prints meanwhile.
    """
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
    """Have nothing that is opened from now on get the number of a standard stream that the caller closed.

    It might be a file of the ledger, and whatever a compiled library prints would be written into it.
    """
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
