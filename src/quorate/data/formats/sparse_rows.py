"""Sparse rows as scikit-learn takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.deferred import sparse
from quorate.errors import InvalidParameter


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
