"""``.npz`` archives of compressed rows: what :func:`scipy.sparse.save_npz` writes, with labels and ids beside it."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import nearest
from quorate.data.files import existing_file
from quorate.data.formats.format import Table
from quorate.data.formats.sparse_rows import check_n_features, of_width, short_indices
from quorate.deferred import sparse
from quorate.errors import DataRefused

_COMPRESSED_ROWS = ("data", "indices", "indptr", "shape")
_LABELS = "y"
_COPIES = 3  # of all arrays, at the same time


class SparseArchive:
    """Sparse rows of float64; labels and ids are arrays named by `label` and `unit`, labels else ``y``.

    Small integer types are widened, so that sums cannot overflow.
    """

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
