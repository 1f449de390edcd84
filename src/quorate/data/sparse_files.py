"""Sparse rows from files: svmlight / LIBSVM text, and ``.npz`` archives of compressed rows."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from quorate.data.columns import nearest
from quorate.data.tables import existing_file, read_bytes
from quorate.errors import DataRefused, InvalidParameter

_COMPRESSED_ROWS = ("data", "indices", "indptr", "shape")
_LABELS = "y"


def read_sparse(
    path: str | Path, *, n_features: int | None = None, label: str | None = None, unit: str | None = None
) -> tuple[Any, NDArray[Any] | None, NDArray[Any] | None]:
    r"""Read sparse rows with their labels.

    Parameters
    ----------
    path : path
        svmlight / LIBSVM text (one row a line, ``label index:value …``, indices from 1; also ``.gz`` or ``.xz``),
        or a ``.npz`` written by :func:`scipy.sparse.save_npz`, or one with the arrays ``data``, ``indices``,
        ``indptr`` and ``shape``.
    n_features : int or None
        Number of columns. It is part of the public schema: declare it for text files. Where it is None, the
        largest index in the file is taken, which a single row decides.
    label, unit : str or None
        Arrays of a ``.npz`` that hold the label and the unit id of each row; ``y`` where `label` is None and there
        is such an array. A text file carries its labels and no unit.

    Returns
    -------
    X : csr_array of float64, (n_rows, n_features)
        Small integer types are widened, so that sums cannot overflow.
    y : (n_rows,) array, or None
        Whole labels as int64.
    unit : (n_rows,) array, or None

    Raises
    ------
    DataRefused
        If the file is missing or damaged, does not fit `n_features`, or has no such array.
    InvalidParameter
        If `unit` is asked of a text file, or `n_features` is no positive whole number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.svm").write_text("+1 1:1 3:0.5\n-1 2:1\n")
    ...     X, y, _ = read_sparse(Path(folder, "rows.svm"), n_features=4)
    >>> X.toarray().tolist(), y.tolist()
    ([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]], [1, -1])
    """
    if n_features is not None and (isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 1):
        raise InvalidParameter(f"n_features: got {n_features!r}; expected a whole number of at least 1")
    if Path(path).suffix.lower() == ".npz":
        return _read_npz(path, n_features, label, unit)
    if unit is not None:
        raise InvalidParameter(f"unit: got {unit!r}, but {path} is svmlight text, which has no column of ids")
    X, y = _read_svmlight(path, n_features)
    return X, y, None


def _read_svmlight(path: str | Path, n_features: int | None) -> tuple[Any, NDArray[Any]]:
    from sklearn.datasets import load_svmlight_file

    content = read_bytes(path)
    try:
        X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)
    except (ValueError, OverflowError, UnicodeDecodeError):  # its message may quote a row
        width = "" if n_features is None else f", or with an index above n_features={n_features}"
        raise DataRefused(f"{path}: not svmlight text (label index:value …, indices from 1){width}") from None
    whole = y.astype(np.int64)
    return _short_indices(sparse.csr_array(X)), whole if np.array_equal(whole, y) else y


def _read_npz(
    path: str | Path, n_features: int | None, label: str | None, unit: str | None
) -> tuple[Any, NDArray[Any] | None, NDArray[Any] | None]:
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
    return X, y, owner


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
    return _short_indices(X.tocsr())


def _short_indices(X: Any) -> Any:
    """Index by int32 where that is enough: it is all that some compiled learners take."""
    if max(*X.shape, X.nnz) > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False))
    return sparse.csr_array(parts, shape=X.shape)
