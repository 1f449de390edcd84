"""Sparse rows whose cells are stored in parts: each cell summed on its own, whatever the other rows look like.

SciPy sums such parts too, but sorts the columns of every row first if those of *any* row are out of order, by a sort
that may swap the parts of a cell. Three floats summed in another order differ in their last bit: one person's row would
move another's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.deferred import sparse


def summed_cells(rows: Any) -> Any:
    """Return rows as CSR, columns in order, each cell once: the sum of its parts, one after another as they are stored.

    `rows`: of any format and any type of number. Where an index is no column, its row holds what is infinite. Returns:
    of the same type, float64 where an index was no column. Each row is a function of that row alone.
    """
    if rows.format == "csr" and _is_plain(rows):
        return rows.copy()  # what follows would return no other
    if rows.format in ("csr", "csc"):
        compressed = rows.tocsr()  # sums nothing
        whose = np.repeat(np.arange(rows.shape[0]), np.diff(compressed.indptr))
        where, values = compressed.indices, compressed.data
    else:
        stored = rows.tocoo()
        whose, where, values = stored.row, stored.col, stored.data
    outside = (where < 0) | (where >= rows.shape[1])  # which nothing would look for
    if outside.any():
        where, values = np.where(outside, 0, where), np.where(outside, np.inf, values)
    order = np.lexsort((where, whose))  # stable: parts of a cell stay in the order they are stored in
    whose, where, values = whose[order], where[order], values[order]
    first = np.ones(len(values), dtype=bool)
    first[1:] = (whose[1:] != whose[:-1]) | (where[1:] != where[:-1])
    sums = values[first]
    np.add.at(sums, (np.cumsum(first) - 1)[~first], values[~first])
    starts = np.concatenate([[0], np.cumsum(np.bincount(whose[first], minlength=rows.shape[0]))])
    form = sparse.csr_array if isinstance(rows, sparse.sparray) else sparse.csr_matrix
    return form((sums, where[first], starts), shape=rows.shape)


def _is_plain(rows: Any) -> bool:
    """Tell whether every index is a column, and each row's are in order, each once."""
    where = rows.indices
    if not len(where):
        return True
    rising = where[1:] > where[:-1]
    starts = rows.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(where))] - 1] = True
    return bool(rising.all() and where.min() >= 0 and where.max() < rows.shape[1])
