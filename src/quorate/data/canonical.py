"""Canonical bytes of a row: the same features give the same digest, whatever container holds them.

A row is written down as a list of cells, and hashed with BLAKE2b (RFC 7693) to 16 bytes::

    header   (number of columns, number of number cells)       12 bytes
    numbers  (column, IEEE 754 double, little-endian)           12 bytes for every number that is not zero
    text     (column, digest of the value)                      20 bytes for every text or time column

- Numbers of every dtype, and truth values, are doubles; −0.0 is 0.0, and every NaN is the same NaN. A missing
  number is NaN.
- Zeros are left out, so a dense row, a sparse row and a sparse row with stored zeros agree.
- A text value stands by the digest of its UTF-8 bytes, a category by its text, a date or time by its ISO form; a
  missing one has a digest of its own, which no text has.
- Columns count by position; their names do not enter.

The header makes the encoding one to one: two different rows have different bytes. Whole numbers beyond 2**53 are
told apart only as far as doubles tell them apart, as in the models they go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import column, doubles, families, texts
from quorate.data.digests import AT_ONCE, DIGEST_BYTES, PackedDigests, pack
from quorate.data.rows import Rows, as_rows, blocks, is_frame, n_rows, width
from quorate.data.stream import StreamedFrame
from quorate.deferred import sparse
from quorate.types import Watching

_NUMBER = np.dtype([("column", "<u4"), ("value", "<f8")])
_TEXT = np.dtype([("column", "<u4"), ("digest", f"V{DIGEST_BYTES}")])
_BLOCK_CELLS = 1 << 19
_MISSING_TEXT = blake2b(b"\x00", digest_size=DIGEST_BYTES).digest()

# The numbers of a block of rows that are not zero: how many per row, their columns, their values.
_Numbers = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]


def row_digests(X: Rows, *, watch: Watching | None = None) -> Sequence[bytes]:
    """Digest every row of an array, sparse matrix or frame ``(n_rows, n_features)``: 16 bytes each.

    Equal for equal features, different otherwise, up to a collision of BLAKE2b-128; not keyed, so that the digest of a
    private row is as private as the row. A list, or one array for a table of many rows or that stays in its file.
    `watch`: called with (rows digested, rows in all) after each block. DataRefused if `X` is no table, or a column of a
    frame holds neither numbers, text nor times.
    """
    rows = as_rows(X)
    if isinstance(rows, StreamedFrame):
        return _packed(rows, watch)
    hashed = _each_told((_hash_rows(width(rows), *block) for block in _blocks(rows)), n_rows(rows), watch)
    if n_rows(rows) <= AT_ONCE:
        return [digest for digests in hashed for digest in digests]
    return PackedDigests(np.concatenate([pack(digests).array for digests in hashed]))


def _each_told(hashed: Iterable[list[bytes]], total: int, watch: Watching | None) -> Iterator[list[bytes]]:
    done = 0
    for digests in hashed:
        done += len(digests)
        if watch is not None:
            watch(done, total)
        yield digests


def _packed(rows: StreamedFrame, watch: Watching | None) -> PackedDigests:
    """Digest a table block by block; once, however often it is asked for."""
    if rows.digests is None:
        kinds = tuple(families(rows).values())
        array = np.empty((len(rows), DIGEST_BYTES), dtype=np.uint8)
        start = 0
        hashed = (_hash_rows(width(rows), *_frame_cells(block, kinds)) for block in rows.blocks())
        for digests in _each_told(hashed, len(rows), watch):
            array[start : start + len(digests)] = pack(digests).array
            start += len(digests)
        rows.digests = PackedDigests(array)
    return rows.digests


def _hash_rows(n_columns: int, numbers: _Numbers, text: NDArray[Any] | None) -> list[bytes]:
    counts, positions, values = numbers
    starts = np.concatenate([[0], np.cumsum(counts + 1)])
    cells = np.empty(int(starts[-1]), dtype=_NUMBER)
    body = np.ones(len(cells), dtype=np.bool_)
    body[starts[:-1]] = False
    cells["column"][starts[:-1]], cells["value"][starts[:-1]] = n_columns, counts
    cells["column"][body], cells["value"][body] = positions, values
    buffer = cells.view(np.uint8).data  # without a copy
    cuts = (starts * _NUMBER.itemsize).tolist()
    ends = pairwise(cuts)
    if text is None:
        return [blake2b(buffer[begin:end], digest_size=DIGEST_BYTES).digest() for begin, end in ends]
    step = text.shape[1] * _TEXT.itemsize
    tail = text.tobytes()
    return [
        blake2b(bytes(buffer[begin:end]) + tail[row * step : (row + 1) * step], digest_size=DIGEST_BYTES).digest()
        for row, (begin, end) in enumerate(ends)
    ]


def _blocks(X: Rows) -> Iterator[tuple[_Numbers, NDArray[Any] | None]]:
    """Cut the rows into blocks of bounded size, each as its number cells and its text cells."""
    if sparse.issparse(X):
        yield from _sparse_blocks(X)
    elif is_frame(X):
        kinds = tuple(families(X).values())  # of the whole table: a block may happen to hold nothing
        yield from (_frame_cells(block, kinds) for block in blocks(X, _BLOCK_CELLS))
    else:
        yield from ((_dense_numbers(block.astype(np.float64)), None) for block in blocks(X, _BLOCK_CELLS))


def _dense_numbers(block: NDArray[np.float64]) -> _Numbers:
    filled = block != 0  # NaN is; −0.0 is not
    if filled.all():  # the common case of measurements
        counts = np.full(len(block), block.shape[1], dtype=np.int64)
        positions, values = np.tile(np.arange(block.shape[1]), len(block)), block.ravel()
    else:
        rows, positions = np.nonzero(filled)
        counts = np.bincount(rows, minlength=len(block)).astype(np.int64)
        values = block[rows, positions]
    values[np.isnan(values)] = np.nan
    return counts, positions, values


def _sparse_blocks(X: Rows) -> Iterator[tuple[_Numbers, None]]:
    step = max(1, _BLOCK_CELLS // max(1, X.nnz // n_rows(X)))
    for start in range(0, n_rows(X), step):
        pointers = X.indptr[start : start + step + 1].astype(np.int64)
        inside = slice(pointers[0], pointers[-1])
        values = X.data[inside].astype(np.float64)
        counts, positions = np.diff(pointers), X.indices[inside]
        kept = values != 0
        if not kept.all():  # seldom: zeros that are stored
            before = np.concatenate([[0], np.cumsum(kept)])
            counts = np.diff(before[pointers - pointers[0]])
            positions, values = positions[kept], values[kept]
        values[np.isnan(values)] = np.nan
        yield (counts, positions, values), None


def _frame_cells(block: Rows, kinds: tuple[str, ...]) -> tuple[_Numbers, NDArray[Any] | None]:
    numbers = np.zeros((n_rows(block), width(block)))
    text = [position for position, family in enumerate(kinds) if family in ("text", "time")]
    for position in range(width(block)):
        if position not in text:
            numbers[:, position] = doubles(column(block, position))
    if not text:
        return _dense_numbers(numbers), None
    cells = np.empty((n_rows(block), len(text)), dtype=_TEXT)
    for place, position in enumerate(text):
        cells["column"][:, place] = position
        cells["digest"][:, place] = _text_digests(texts(column(block, position)))
    return _dense_numbers(numbers), cells


def _text_digests(values: list[str | None]) -> NDArray[Any]:
    known = {None: _MISSING_TEXT} | {
        text: blake2b(b"\x01" + text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
        for text in set(values)
        if text is not None
    }
    return np.frombuffer(b"".join([known[value] for value in values]), dtype=f"V{DIGEST_BYTES}")
