"""Which columns to cut, told by public rows alone: those that say most about all the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.data.rows import spoken_name, with_text_names
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.binning import Binning
from quorate.types import IntArray


def telling_columns(
    pool: Any, n_columns: int, *, columns: Sequence[str] | None = None, levels: int = 4
) -> tuple[str, ...]:
    r"""Return the columns of public rows that together say most about all other columns; no label is looked at.

    Parameters
    ----------
    pool : pandas or polars frame
        Public rows, without their labels.
    n_columns : int
        How many are chosen, at least 1.
    columns : sequence of str, optional
        Among which; all columns of the pool by default: then those with a single value are left out, and
        those of other things than numbers or words (dates, and both mixed).
    levels : int, default 4
        Each column is cut into at most so many, as :meth:`Binning.from_pool` cuts it.

    Raises
    ------
    InvalidParameter, DataRefused
        If there are not so many columns, or an argument is out of range.

    Notes
    -----
    One after the other, the column c is taken for which :math:`\sum_j I(X_j; X_S)` is largest: S are the columns
    chosen so far and c, j goes through all others, and I is the mutual information of their levels among the rows, less
    what independent columns would show in so few of them, :math:`(|X_j| - 1)(|X_S| - 1)/2n` (Miller 1955). Of equals
    the first is taken. It is a rule for somebody who has no labels to spare: a column that says nothing about the
    others may still be the one that tells the label.

    Examples
    --------
    >>> import pandas as pd
    >>> random = np.random.default_rng(0)
    >>> size = random.integers(0, 4, 500)
    >>> pool = pd.DataFrame({"noise": random.random(500), "size": size, "weight": size * 10 + 1, "price": size // 2})
    >>> telling_columns(pool, 1)
    ('size',)
    """
    n_columns = count("n_columns", n_columns, at_least=1)
    if not hasattr(pool, "columns"):
        raise InvalidParameter(
            f"pool must be a pandas or polars frame, whose columns have names, got a {type(pool).__name__}"
        )
    pool = with_text_names(pool, "pool")
    names = [spoken_name(name) for name in (pool.columns if columns is None else columns)]
    cut: dict[str, IntArray] = {}
    for name in names:
        try:
            cut[name] = Binning.from_pool(pool, [name], levels=levels).transform(pool)[:, 0]
        except DataRefused:
            if columns is not None:
                raise
    cut = {name: values for name, values in cut.items() if values.min() < values.max()}
    if len(cut) < n_columns:
        raise InvalidParameter(
            f"n_columns must be at most {len(cut)}, the columns with several values, got {n_columns}"
        )
    chosen: list[str] = []
    together = np.zeros(len(next(iter(cut.values()))), dtype=np.int64)
    for _ in range(n_columns):
        said = {
            name: sum(
                _shared(_joined(together, values), other) for j, other in cut.items() if j != name and j not in chosen
            )
            for name, values in cut.items()
            if name not in chosen
        }
        best = max(said, key=lambda name: said[name])
        chosen.append(best)
        together = _joined(together, cut[best])
    return tuple(chosen)


def _joined(one: IntArray, other: IntArray) -> IntArray:
    """Number the pairs of two columns."""
    found: IntArray = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1].astype(np.int64)
    return found


def _shared(one: IntArray, other: IntArray) -> float:
    """Return the mutual information of two columns of levels, in nats, corrected for the number of rows."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0 / len(one))
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    seen = table > 0
    information = float((table[seen] * np.log(table[seen] / np.outer(rows, columns)[seen])).sum())
    return information - float(((rows > 0).sum() - 1) * ((columns > 0).sum() - 1)) / (2 * len(one))
