"""svmlight / LIBSVM text: one row a line, ``label index:value …``, indices from 1; also compressed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quorate.data.files import read_bytes
from quorate.data.formats.format import Table
from quorate.data.formats.sparse_rows import check_n_features, of_width, short_indices
from quorate.deferred import sparse
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import FloatArray

_BLOCK = 1 << 12  # lines that are read together
_COPIES, _UNPACKED = 3, 5  # what a byte of text takes, and a byte of packed text unpacks to


class Svmlight:
    """Sparse rows of float64 with their labels, which have no name; there is no column of ids.

    The number of columns is part of the public schema: declare it. Where it is None, the largest index in the file is
    taken, which a single row decides.
    """

    suffixes = (".svm", ".svmlight", ".libsvm", ".txt", "")

    def read(
        self, path: Path, *, label: str | None, unit: str | None, drop: Sequence[str], n_features: int | None
    ) -> Table:
        """Return features and labels, whole labels as int64."""
        from sklearn.datasets import load_svmlight_file

        check_n_features(n_features)
        _refuse_unit(unit, path)
        content = read_bytes(path)
        try:
            X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)
        except (ValueError, OverflowError, UnicodeDecodeError):  # its message may quote a row
            width = "" if n_features is None else f", or with an index above n_features={n_features}"
            raise DataRefused(
                f"{path}: not svmlight text (label index:value …, indices from 1){width}; {_OTHERS}"
            ) from None
        with np.errstate(invalid="ignore"):
            whole = y.astype(np.int64)
        return Table(X=short_indices(sparse.csr_array(X)), y=whole if np.array_equal(whole, y) else y)

    def bytes_held(self, path: Path) -> int:
        """Guess from above what reading it takes in memory: its text, its lines and their numbers."""
        return _COPIES * path.stat().st_size * (_UNPACKED if path.suffix in (".gz", ".xz") else 1)

    def read_each(self, path: Path, *, label: str | None, unit: str | None, n_features: int) -> Table:
        """Return features and labels, each line read by itself; of one that is no row both are missing."""
        _refuse_unit(unit, path)
        lines = [line for line in read_bytes(path).split(b"\n") if line.partition(b"#")[0].strip()]
        blocks = [_block(lines[start : start + _BLOCK], n_features) for start in range(0, len(lines), _BLOCK)]
        if not blocks:
            return Table(X=sparse.csr_array((0, n_features)), y=np.empty(0))
        rows, labels = zip(*blocks, strict=True)
        return Table(X=short_indices(sparse.csr_array(sparse.vstack(rows))), y=np.concatenate(labels))


#: What a file may be that came here by its name alone.
_OTHERS = (
    'tables end in .csv or the like (.txt with tabs: separator = "\\t" under [data]), databases begin with sqlite:///'
)


def _refuse_unit(unit: str | None, path: Path) -> None:
    if unit is not None:
        raise InvalidParameter(
            f"unit: got {unit!r}, but {path} is read as svmlight text, which has no column of ids; {_OTHERS}"
        )


def _block(lines: list[bytes], n_features: int) -> tuple[Any, FloatArray]:
    """Read lines together where all are rows, else in halves: the same rows, whatever stands beside them."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(b"\n".join(lines)), zero_based=False)
    except (ValueError, OverflowError, MemoryError):
        y = np.empty(0)
    if len(y) == len(lines):
        return of_width(X, n_features), y
    if len(lines) == 1:
        return sparse.csr_array(([np.nan], ([0], [0])), shape=(1, n_features)), np.full(1, np.nan)
    half = len(lines) // 2
    parts = _block(lines[:half], n_features), _block(lines[half:], n_features)
    return sparse.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
