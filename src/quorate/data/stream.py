"""A table that stays in its file, read some rows at a time, and the folder for rows that memory does not hold."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.data.file_reading import polars_path, polars_source, state_of
from quorate.data.spool import Spool
from quorate.deferred import pl
from quorate.errors import DataRefused, PreconditionFailed

if TYPE_CHECKING:
    from quorate.data.digests import PackedDigests

_PREFIX, _LOCK = ".rows-", "lock"
_CELLS = 1 << 21  # that are read at the same time


class Workspace:
    """A folder in `parent` that is made when it is first asked for, and removed with this object or with the process.
    What a killed process has left the next one removes: a lock that ends with its process tells which are in use.
    """

    def __init__(self, parent: Callable[[], Path]) -> None:
        self._parent = parent
        self._end: Callable[[], object] | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """The folder, or PreconditionFailed if it cannot be made."""
        if self._path is None:
            parent = self._parent()
            try:
                _remove_abandoned(parent)
                folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # readable by its owner alone
                descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise cannot_hold(parent, error) from None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._path, self._end = folder, weakref.finalize(self, _remove, folder, descriptor, os.getpid())
        return self._path

    def close(self) -> None:
        """Remove the folder; asked for again, it is made anew."""
        if self._end is not None:
            self._end()
        self._path = self._end = None


def put_in_parts(frames: Iterable[pl.DataFrame], folder: Path) -> int:
    """Write frames of one schema as Parquet files of a new folder; return their rows, or refuse for lack of room."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_hold(folder.parent, error) from None
    height = 0
    for number, rows in enumerate(frames):
        try:
            rows.write_parquet(polars_path(folder / f"{number:08d}.parquet"))
        except OSError as error:
            raise cannot_hold(folder, error) from None
        height += rows.height
    return height


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


class StreamedFrame:
    """Parquet files as a frame that is looked at column by column or block by block: what polars tells, without its
    rows. `empty`: columns without a value, and the type that the table beside gives them. A changed file is refused.
    """

    def __init__(
        self,
        path: Path,
        *,
        called: Path,
        schema: Mapping[str, Any],
        height: int,
        workspace: Workspace,
        empty: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.called, self.height, self.workspace = path, called, height, workspace
        self._empty = dict(empty or {})
        self.schema = {**schema, **self._empty}
        self._seen = state_of(path)
        self.digests: PackedDigests | None = None  # kept by who computes them: a pass over the file each time

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema)

    @property
    def dtypes(self) -> list[Any]:
        """Types of the columns."""
        return list(self.schema.values())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.height, len(self.schema)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.schema)

    def __len__(self) -> int:
        return self.height

    def __repr__(self) -> str:
        return f"StreamedFrame({self.width} columns)"

    def to_series(self, position: int) -> pl.Series:
        """Read one column."""
        return self[[self.columns[position]]].to_series(0)

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Read all columns, some rows at once."""
        step = max(1, _CELLS // self.width)
        for start in range(0, self.height, step):
            yield self._read(self.columns, start, step)

    def collect(self) -> pl.DataFrame:
        """Read the whole table into memory."""
        return self._read(self.columns, 0, self.height)

    def only(self, names: Sequence[str]) -> StreamedFrame:
        """Leave out all other columns."""
        return self._with({name: self.schema[name] for name in names}, {})

    def retyped(self, name: str, dtype: Any) -> StreamedFrame:
        """Give a column without a value another type."""
        return self._with(self.schema, {**self._empty, name: dtype})

    def _with(self, schema: Mapping[str, Any], empty: Mapping[str, Any]) -> StreamedFrame:
        own: dict[str, Any] = {"called": self.called, "height": self.height, "workspace": self.workspace}
        return StreamedFrame(self.path, schema=schema, empty=empty, **own)

    def __getitem__(self, chosen: Any) -> pl.DataFrame:
        """Read columns by their names, a slice of rows, or rows by their positions."""
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(self.height)
            return self._read(self.columns, start, max(0, stop - start))
        if isinstance(chosen, list) and all(isinstance(name, str) for name in chosen):
            return self._read(chosen, 0, self.height)
        positions = np.asarray(chosen, dtype=np.int64)
        order = np.argsort(positions, kind="stable")
        kept, start = [], 0
        for block in self.blocks():
            here = positions[order]
            inside = here[(here >= start) & (here < start + block.height)] - start
            kept.append(block[inside])
            start += block.height
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return pl.concat(kept)[place]

    def _read(self, names: Sequence[str], start: int, n_rows: int) -> pl.DataFrame:
        state = state_of(self.path)
        if state != self._seen:
            raise PreconditionFailed(f"{self.called} was changed while it was read; start again")
        stored = [name for name in names if name not in self._empty]
        empty = [pl.lit(None, dtype=self._empty[name]).alias(name) for name in names if name in self._empty]
        try:
            rows = (
                pl.scan_parquet([polars_source(file) for file, *_ in state], glob=False)
                .select(stored or self.columns[:1])
                .slice(start, n_rows)
                .collect()
            )
        except pl.exceptions.PolarsError:  # its message may quote a row
            raise DataRefused(f"{self.called}: the file is damaged, or not Parquet as its name says") from None
        return rows.with_columns(empty).select(names)


class PartedFrame:
    """A table of cells that is read part by part, anew in every pass: what a polars frame tells of itself, no row held.
    `path`: whose change is refused; None where nobody else can change what is read.
    """

    def __init__(
        self,
        read: Callable[[Sequence[str]], Iterator[pl.DataFrame]],
        *,
        path: Path | None,
        columns: Sequence[str],
        height: int,
    ) -> None:
        self._read, self._path, self.columns, self.height = read, path, list(columns), height
        self._seen = self._now()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.height, len(self.columns)

    def __len__(self) -> int:
        return self.height

    def __repr__(self) -> str:
        return f"PartedFrame({len(self.columns)} columns)"

    def only(self, names: Sequence[str]) -> PartedFrame:
        """Leave out all other columns."""
        return PartedFrame(self._read, path=self._path, columns=names, height=self.height)

    def blocks(self, n_rows: int) -> Iterator[pl.DataFrame]:
        """Read all columns, at most so many rows at once; a table without rows is one block."""
        height = 0
        for part in self._read(self.columns):
            height += part.height
            if self._now() != self._seen or height > self.height:
                break
            yield from part.iter_slices(n_rows) if part.height else [part]
        if self._now() != self._seen or height != self.height:
            raise PreconditionFailed(f"{self._path} was changed while it was read; start again")

    def _now(self) -> Any:
        return None if self._path is None else state_of(self._path)


class PartedColumn:
    """One column of such a table, its labels, read part by part in every pass. The repr tells nothing of them."""

    def __init__(self, frame: PartedFrame) -> None:
        self._frame = frame

    def __len__(self) -> int:
        return self._frame.height

    def __iter__(self) -> Iterator[Any]:
        for cells in self.blocks(1 << 16):
            yield from cells

    def blocks(self, n_rows: int) -> Iterator[pl.Series]:
        """Read the column, at most so many cells at once."""
        for rows in self._frame.blocks(n_rows):
            yield rows.to_series(0)


def put_aside(
    blocks: Iterable[pl.DataFrame], most: int, place: Callable[[], Path] | None
) -> pl.DataFrame | PartedFrame:
    """Return blocks of rows (one at least) as one frame; above `most` bytes in a file, read part by part. `place`:
    makes the folder for it, which is its owner's alone; by default a temporary one. Refused without room.
    """
    held: list[pl.DataFrame] = []
    spool, places, size, height = None, [], 0, 0
    for block in blocks:
        held.append(block)
        size, height = size + int(block.estimated_size()), height + block.height
        if spool is None and size > most:
            spool = Spool(0, None if place is None else place(), most=most)
        while spool is not None and held:
            content = BytesIO()
            held.pop(0).write_ipc(content, compression="lz4")
            places.append((spool.append(np.frombuffer(content.getbuffer(), dtype=np.uint8)), content.tell()))
    if spool is None:
        return pl.concat(held)

    def read(names: Sequence[str], spool: Spool = spool) -> Iterator[pl.DataFrame]:
        for at, n_bytes in places:
            yield pl.read_ipc(BytesIO(spool.read(at, (n_bytes,), np.uint8)), columns=list(names))

    return PartedFrame(read, path=None, columns=block.columns, height=height)


class StreamedColumn:
    """One column of such a table: its labels, or its ids. The repr tells nothing of them."""

    def __init__(self, series: pl.Series) -> None:
        self.series = series

    def __len__(self) -> int:
        return len(self.series)
