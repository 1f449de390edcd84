"""Delimited text some lines at a time: its parts, and one schema of all of them, as if it had been read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.data.files import opened

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 1 << 25  # bytes of text


def parts_of(path: Path, *, quote: str = '"') -> Iterator[bytes]:
    r"""Yield a file of text in parts of whole lines, each with the first line before it; .gz and .xz are unpacked.

    A line within quotation marks goes on, but for the first one. Where marks are not matched, a part is as long as it
    takes to match them. `quote`: the mark; "" where there is none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text('a,b\n1,"x\ny"\n')
    ...     list(parts_of(Path(folder, "t.csv")))
    [b'a,b\n1,"x\ny"\n']
    """
    with opened(path) as stream:
        header = stream.readline()
        rest, seen = b"", False
        while more := stream.read(AT_ONCE):
            rest += more
            end = _last_line_end(rest, quote.encode())
            if end:
                yield header + rest[:end]
                rest, seen = rest[end:], True
        if rest or not seen:
            yield header + rest


def _last_line_end(text: bytes, quote: bytes) -> int:
    """Return where the last line ends that lies outside quotation marks; 0 where there is none."""
    if not quote:
        return text.rfind(b"\n") + 1
    quotes, at = text.count(quote), len(text)
    while (end := text.rfind(b"\n", 0, at)) >= 0:
        quotes -= text.count(quote, end, at)
        if quotes % 2 == 0:
            return end + 1
        at = end
    return 0


def schema_of(parts: Iterator[bytes], read: Callable[..., pl.DataFrame], *, given: dict[str, Any]) -> dict[str, Any]:
    """Find the type of each column from all rows, a part at a time; the same that all of them together have.

    `parts`: text whose first line names the columns. `read`: makes a frame of one, with `types` of some columns.
    `given`: types of columns that are known.
    """
    import polars as pl

    found: dict[str, Any] = {}
    for part in parts:
        frame = read(part, types=given)
        for name, dtype in frame.schema.items():
            if frame[name].null_count() < frame.height:
                found[name] = _both(found.get(name), dtype)
            else:
                found.setdefault(name, None)
    return {name: given.get(name, pl.String if dtype is None else dtype) for name, dtype in found.items()}


def _both(one: Any, other: Any) -> Any:
    """Return the type of a column of which one part has one type, and another part another."""
    import polars as pl

    if one is None or one == other:
        return other
    return pl.Float64 if {one, other} == {pl.Int64, pl.Float64} else pl.String
