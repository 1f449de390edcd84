"""Data: reading tables and sparse files, the public pool, canonical rows, labels, encoding, bundled data sets.

Nothing here is fitted on private rows. What is wrong with a whole table is refused to its owner with
:class:`~quorate.errors.DataRefused`, before anything is fitted or charged. Models and released labels do not belong
here: see :mod:`quorate.ensemble` and :mod:`quorate.labelling`. Begin with :mod:`~quorate.data.reading`, then
:mod:`~quorate.data.identity`.
"""

from quorate.data.canonical import row_digests
from quorate.data.column_kinds import ColumnKinds, GivenKinds, column_kinds
from quorate.data.columns import check_features, families, missing_columns, refuse_infinite, refuse_missing
from quorate.data.datasets import Adult, Mushroom, load_adult, load_mushroom
from quorate.data.encoding import needs_encoding, public_encoder, public_units, refuse_unscalable
from quorate.data.fixed_types import fixed_types
from quorate.data.formats import Format, Table, TableFormat, register_format
from quorate.data.identity import fingerprint, is_same_table, public_digest
from quorate.data.labels import Label, check_classes, encode_labels
from quorate.data.overlap import PrivateRecords, refuse_private_rows
from quorate.data.pool import PublicPool
from quorate.data.reading import column_names, read_batches, read_cells, read_data, read_table
from quorate.data.rows import Kind, Rows, as_rows, columns, is_frame, kind, n_rows, take, width
from quorate.data.shared_schema import match_columns
from quorate.data.unit_ids import slot_bytes

__all__ = [
    "Kind",
    "Rows",
    "Label",
    "PublicPool",
    "Table",
    "Format",
    "TableFormat",
    "register_format",
    "read_data",
    "read_cells",
    "read_table",
    "read_batches",
    "column_names",
    "as_rows",
    "kind",
    "is_frame",
    "n_rows",
    "width",
    "columns",
    "take",
    "check_features",
    "missing_columns",
    "refuse_infinite",
    "refuse_missing",
    "families",
    "match_columns",
    "check_classes",
    "encode_labels",
    "row_digests",
    "slot_bytes",
    "fingerprint",
    "public_digest",
    "is_same_table",
    "PrivateRecords",
    "refuse_private_rows",
    "fixed_types",
    "needs_encoding",
    "public_encoder",
    "column_kinds",
    "ColumnKinds",
    "GivenKinds",
    "public_units",
    "refuse_unscalable",
    "Adult",
    "Mushroom",
    "load_adult",
    "load_mushroom",
]
