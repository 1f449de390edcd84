"""One door to every file: features, labels and unit ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate.data.rows import Rows, columns, kind, width
from quorate.data.sparse_files import read_sparse
from quorate.data.tables import existing_file, is_table, read_table, require_column
from quorate.errors import DataRefused, InvalidParameter


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """What a file holds. The repr tells the schema, and neither rows nor how many there are.

    Parameters
    ----------
    X : polars.DataFrame or csr_array of float64
        Features only.
    y : (n_rows,) array or None
        Labels as they stand in the file.
    unit : list of n_rows ids or None
        Unit ids; of a CSV file always as text.

    Examples
    --------
    >>> import numpy as np
    >>> Table(X=np.zeros((3, 2)), y=None, unit=None)
    Table(numpy, 2 features, without labels, without unit ids)
    """

    X: Rows = field(repr=False)
    y: Any | None = field(default=None, repr=False)
    unit: Any | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the features, where the file has them."""
        return columns(self.X)

    def __repr__(self) -> str:
        labels, units = ("without" if part is None else "with" for part in (self.y, self.unit))
        return f"Table({kind(self.X)}, {width(self.X)} features, {labels} labels, {units} unit ids)"


def read_data(
    path: str | Path,
    *,
    label: str | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
    n_features: int | None = None,
) -> Table:
    r"""Read features, labels and unit ids from a file of any known format.

    Parameters
    ----------
    path : path
        CSV, TSV or Parquet (:func:`read_table`); a ``.npz`` or svmlight text of sparse rows (:func:`read_sparse`).
        What a name does not tell is taken as svmlight text.
    label : str or None
        Column of the label. It is no feature. A svmlight file carries its labels without a name.
    unit : str or None
        Column of the unit id. It is no feature.
    drop : sequence of str
        Columns of a table to leave out where they are there: the label and the unit in a public file.
    n_features : int or None
        Number of columns of sparse rows.

    Returns
    -------
    Table

    Raises
    ------
    DataRefused
        If the file cannot be read, a column is not there (naming the nearest one), or no feature or row
        is left.
    InvalidParameter
        If `label` and `unit` name one column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("person,age,ill\n007,39,no\n008,50,yes\n")
    ...     table = read_data(Path(folder, "visits.csv"), label="ill", unit="person")
    >>> table
    Table(polars, 1 features, with labels, with unit ids)
    >>> table.y.tolist(), table.unit
    (['no', 'yes'], ['007', '008'])
    """
    if label is not None and label == unit:
        raise InvalidParameter(f"label and unit both name {label!r}; they must be two columns")
    existing_file(path)
    if not is_table(path):
        X, y, owner = read_sparse(path, n_features=n_features, label=label if _names_arrays(path) else None, unit=unit)
        return Table(X=X, y=y, unit=None if owner is None else owner.tolist())
    frame = read_table(path, text_columns=() if unit is None else (unit,))
    for name in (label, unit):
        if name is not None:
            require_column(name, frame.columns, path)
    gone = {label, unit, *drop}
    features = frame.select([name for name in frame.columns if name not in gone])
    if frame.height == 0:
        raise DataRefused(f"{path}: the file names its columns and holds no row; at least one is needed")
    if features.width == 0:
        raise DataRefused(f"{path}: no feature is left beside the label and the unit")
    return Table(
        X=features,
        y=None if label is None else frame[label].to_numpy(),
        unit=None if unit is None else frame[unit].to_list(),
    )


def _names_arrays(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".npz"
