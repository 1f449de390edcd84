"""Sparse rows: ``.npz`` archives, as :func:`scipy.sparse.save_npz` writes them, and svmlight text, also compressed.

An archive holds labels and ids beside its rows. Text has one row a line, ``label index:value …``, indices from 1.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import nearest
from quorate.data.file_reading import existing_file, read_bytes
from quorate.data.formats.format import Table
from quorate.deferred import sparse
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import FloatArray

_COMPRESSED_ROWS = ("data", "indices", "indptr", "shape")
_LABELS = "y"
_BLOCK = 1 << 12  # lines that are read together
_COPIES, _UNPACKED = 3, 5  # what a byte of text takes, and a byte of packed text unpacks to
#: What a file may be that came here by its name alone.
_OTHERS = (
    'tables end in .csv or the like (.txt with tabs: separator = "\\t" under [data]), databases begin with sqlite:///'
)


def check_n_features(n_features: object) -> None:
    """Refuse a number of columns that is none."""
    if n_features is not None and (isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 1):
        raise InvalidParameter(f"n_features: got {n_features!r}; expected a whole number of at least 1")


def short_indices(X: Any) -> Any:
    """Index by int32 where that is enough: it is all that some compiled learners take."""
    if max(*X.shape, X.nnz) > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False))
    return sparse.csr_array(parts, shape=X.shape)


def of_width(X: Any, width: int) -> Any:
    """Bring sparse rows to a public number of columns; a row that holds something beyond them gets a missing value."""
    beyond = np.flatnonzero(X[:, width:].count_nonzero(axis=1)) if X.shape[1] > width else np.empty(0, dtype=np.int64)
    rows: Any = sparse.csr_array(X[:, :width])
    rows.resize((X.shape[0], width))
    marks = sparse.csr_array((np.full(len(beyond), np.nan), (beyond, np.zeros_like(beyond))), shape=rows.shape)
    return sparse.csr_array(rows + marks) if len(beyond) else rows


class SparseArchive:
    """Sparse rows of float64 (integers widened); labels and ids are arrays named `label`, or ``y``, and `unit`."""

    suffixes = (".npz",)

    def read(
        self, path: Path, *, label: str | None, unit: str | None, drop: Sequence[str], n_features: int | None
    ) -> Table:
        """Return features, and labels and unit ids where there are such arrays."""
        check_n_features(n_features)
        damaged = DataRefused(f"{path}: not a .npz of sparse rows (arrays data, indices, indptr and shape)")
        try:
            with np.load(existing_file(path), allow_pickle=False) as archive:
                names = list(archive.files)
                if not set(_COMPRESSED_ROWS) <= set(names):
                    raise damaged
                parts = {name: archive[name] for name in _COMPRESSED_ROWS}
                layout = archive["format"].item() if "format" in names else b"csr"
                columns = {name: _named(archive, names, name, path) for name in (label, unit) if name is not None}
                y = columns[label] if label is not None else (archive[_LABELS] if _LABELS in names else None)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            if isinstance(error, DataRefused):
                raise
            raise damaged from None
        X = _compressed(parts, layout, damaged)
        if n_features is not None and X.shape[1] != n_features:
            raise DataRefused(f"{path}: the rows have {X.shape[1]} columns, but n_features={n_features}")
        owner = columns[unit] if unit is not None else None
        for name, values in ((label or _LABELS, y), (unit, owner)):
            if values is not None and values.shape != (X.shape[0],):
                raise DataRefused(f"{path}: the array {name!r} does not have one entry per row")
        return Table(X=X, y=y, unit=None if owner is None else owner.tolist())

    def bytes_held(self, path: Path) -> int:
        """Guess from above what reading it takes in memory, from the sizes that the archive tells; it has no parts."""
        try:
            with zipfile.ZipFile(path) as archive:
                return _COPIES * sum(entry.file_size for entry in archive.infolist())
        except (OSError, zipfile.BadZipFile):
            return 0  # damaged, which is said by who reads it

    def read_each(self, path: Path, *, label: str | None, unit: str | None, n_features: int) -> Table:
        """Return rows of so many columns: the archive holds numbers, and none of them is read off another."""
        table = self.read(path, label=label, unit=unit, drop=(), n_features=None)
        return Table(X=of_width(table.X, n_features), y=table.y, unit=table.unit)


def _named(archive: Any, names: list[str], name: str, path: str | Path) -> NDArray[Any]:
    if name not in names or name in _COMPRESSED_ROWS:
        others = [other for other in names if other not in (*_COMPRESSED_ROWS, "format", "_is_array")]
        raise DataRefused(f"{path}: there is no array {name!r}{nearest(name, others)}")
    values: NDArray[Any] = archive[name]
    return values


def _compressed(parts: dict[str, NDArray[Any]], layout: bytes | str, damaged: DataRefused) -> Any:
    if layout not in (b"csr", "csr", b"csc", "csc"):
        raise damaged
    kind = sparse.csr_array if layout in (b"csr", "csr") else sparse.csc_array
    try:
        shape = (int(parts["shape"][0]), int(parts["shape"][1]))
        indices = parts["indices"].astype(np.int64)  # uint16 would overflow
        stored = (parts["data"].astype(np.float64), indices, parts["indptr"].astype(np.int64))
        X = kind(stored, shape=shape)
        X.check_format(full_check=True)
    except (TypeError, ValueError, IndexError):
        raise damaged from None
    return short_indices(X.tocsr())


class Svmlight:
    """Sparse rows of float64 with labels, which have no name, and no ids. Declare the number of columns, a public fact;
    else the largest index is taken, which a single row decides.
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
