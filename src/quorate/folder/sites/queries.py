"""The public rows that sites vote on, read by one rule where votes are signed and where they are added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from quorate.data import public_digest, read_data
from quorate.data.rows import Rows, n_rows


@dataclass(frozen=True, slots=True)
class Queries:
    """Public rows, in their order.

    `rows`: features alone. `digest`: by which sites and aggregator know that they mean the same rows.
    """

    rows: Rows = field(repr=False)
    digest: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return n_rows(self.rows)


def read_queries(path: Path, *, label: str | None = None) -> Queries:
    """Read public rows.

    `path`: a table, in any format that is read. `label`: a column that is no feature, left out where it is there.
    Raises DataRefused if it cannot be read, or no feature or row is left.
    """
    rows = read_data(path, drop=[] if label is None else [label]).X
    return Queries(rows, public_digest(rows))
