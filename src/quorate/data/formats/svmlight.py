"""svmlight / LIBSVM text: one row a line, ``label index:value …``, indices from 1; also compressed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quorate.data.files import read_bytes
from quorate.data.formats.format import Table
from quorate.data.formats.sparse_rows import check_n_features, short_indices
from quorate.deferred import sparse
from quorate.errors import DataRefused, InvalidParameter


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
        if unit is not None:
            raise InvalidParameter(f"unit: got {unit!r}, but {path} is svmlight text, which has no column of ids")
        content = read_bytes(path)
        try:
            X, y = load_svmlight_file(io.BytesIO(content), n_features=n_features, zero_based=False)
        except (ValueError, OverflowError, UnicodeDecodeError):  # its message may quote a row
            width = "" if n_features is None else f", or with an index above n_features={n_features}"
            raise DataRefused(f"{path}: not svmlight text (label index:value …, indices from 1){width}") from None
        with np.errstate(invalid="ignore"):
            whole = y.astype(np.int64)
        return Table(X=short_indices(sparse.csr_array(X)), y=whole if np.array_equal(whole, y) else y)
