"""Rows drawn from noisy one-way marginals, each column by itself. They cost nothing, and are not people."""

from __future__ import annotations

import io
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.data.canonical import row_digests
from quorate.data.declared_schema import CategoryColumn, DeclaredColumn, NumberColumn, Schema
from quorate.mechanisms import Partition
from quorate.mechanisms.marginals import MISSING, THRESHOLD, estimated_counts
from quorate.run.counted_by_halves import parts_by_halves
from quorate.run.drawn_pool import SHORT_LIST, ReleasedMarginals
from quorate.run.stage_store import StageStore, pool_stage
from quorate.types import FloatArray, IntArray, Secret, derive

if TYPE_CHECKING:
    import polars as pl

EVENLY: Final = Secret(bytes(32))  #: key of rows that are drawn before anything was paid: nothing follows from them
_MOST_TIMES: Final = 10  # as many rows are drawn as are to be distinct, at most


def most_distinct(schema: Schema, n_rows: int) -> int:
    """Return how many different rows there can be, at most `n_rows`: fewer where all columns are short lists."""
    if any(isinstance(held, NumberColumn) for held in schema.columns.values()):
        return n_rows
    return min(n_rows, prod(held.missing + 1 for held in schema.columns.values()))


def draw_rows(schema: Schema, released: ReleasedMarginals | None, n_rows: int, key: Secret[bytes]) -> pl.DataFrame:
    """Draw rows from released marginals, each column by itself: ``(n_rows + added, n_columns)``, free of charge. A
    count that noise explains is 0: below σ of a list of at most 50 values, below 3 σ elsewhere, and below 1.5 σ where a
    number's count is the tail of what is beside it. Columns are drawn in proportion to their counts, and numbers evenly
    within a part of their range. Where all counts are 0, or nothing was released yet, every listed value, and every
    part of the grid, is as likely as another. For each value of a list of at most 50 that no row has, one row is added.
    Rows follow from the key and the released counts, the same on every machine.
    """
    import polars as pl

    listed = [held for held in schema.columns.values() if isinstance(held, CategoryColumn)]
    most_added = sum(len(held.values) for held in listed if len(held.values) <= SHORT_LIST)
    drawn: dict[str, IntArray | FloatArray] = {}
    for place, (name, held) in enumerate(schema.columns.items()):
        shares = _shares(derive(key, "rows drawn from marginals", place), n_rows + most_added)
        drawn[name] = _column(held, released, place, shares)
    kept = np.arange(n_rows)
    for name, held in schema.columns.items():
        if isinstance(held, CategoryColumn) and len(held.values) <= SHORT_LIST:
            lacking = np.setdiff1d(np.arange(len(held.values)), drawn[name][:n_rows])
            added = len(kept) + np.arange(len(lacking))
            drawn[name][added] = lacking
            kept = np.arange(len(kept) + len(lacking))
    return pl.DataFrame({name: _series(held, drawn[name][kept]) for name, held in schema.columns.items()})


def draw_distinct(schema: Schema, released: ReleasedMarginals | None, n_rows: int, key: Secret[bytes]) -> pl.DataFrame:
    """Draw rows as :func:`draw_rows` does, until `n_rows` of them differ; ten times as many at most."""
    most = _MOST_TIMES * n_rows
    drawn = n_rows
    while True:
        pool = draw_rows(schema, released, drawn, key)
        digests: set[bytes] = set()
        for place, digest in enumerate(row_digests(pool[:drawn])):
            digests.add(digest)
            if len(digests) == n_rows:
                return pool if place + 1 == drawn else draw_rows(schema, released, place + 1, key)
        if drawn == most:
            return pool
        drawn = min(2 * drawn, most)


def parquet_of(pool: pl.DataFrame) -> bytes:
    """Return drawn rows as they are published."""
    written = io.BytesIO()
    pool.write_parquet(written)
    return written.getvalue()


def kept_pool(stages: StageStore, key: str) -> pl.DataFrame | None:
    """Return the rows that an earlier process drew for the task of this key and kept; None where none did."""
    content = stages.load(pool_stage(key), key)
    return None if content is None else pool_from(content)


def pool_from(content: bytes) -> pl.DataFrame:
    """Return drawn rows as they were published: what is read is the pool."""
    import polars as pl

    return pl.read_parquet(io.BytesIO(content))


def _shares(key: bytes, n_rows: int) -> FloatArray:
    """Return three uniform numbers a row, ``(n_rows, 3)``, the same wherever they are drawn."""
    words = np.random.Philox(key=int.from_bytes(key[:16], "big")).random_raw(3 * n_rows)
    return np.asarray((words >> np.uint64(11)).astype(np.float64).reshape(n_rows, 3) * 2.0**-53)


def _column(
    held: DeclaredColumn, released: ReleasedMarginals | None, place: int, shares: FloatArray
) -> IntArray | FloatArray:
    """Return the places of values in their list, its length for a missing one; or numbers, NaN for a missing one."""
    if not isinstance(held, NumberColumn):
        return _chosen(_weights(held, released, place), shares[:, 0])
    first, behind, weights = _parts(held, released, place)
    chosen = _chosen(weights, shares[:, 0])
    values = held.values(first[chosen], behind[chosen], shares[:, 1:])
    return np.where(first[chosen] == held.missing, np.nan, values)


def _weights(held: DeclaredColumn, released: ReleasedMarginals | None, place: int) -> IntArray | FloatArray:
    """Return how often each cell of a list is drawn; values lost in the noise are believed together or not at all."""
    even = np.append(np.ones(held.missing, dtype=np.int64), 0)
    if released is None:
        return even
    counts = next((noisy[place] for level, noisy in released.levels if level.number == 1), None)
    if counts is None:  # it was lost
        return even
    sigma = released.marginals.sigma(released.marginals.partitions[place])
    believed = np.where(counts >= sigma * (1 if held.missing <= SHORT_LIST else THRESHOLD), counts, 0)
    small = np.append(believed[:-1] == 0, False)
    together = float(counts[small].sum())  # a count of its own, with the noise of all of them
    if small.any() and together >= THRESHOLD * sigma * np.sqrt(small.sum()):
        return np.where(small, together / small.sum(), believed)
    return believed if believed.any() else even


def _parts(held: NumberColumn, released: ReleasedMarginals | None, place: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the parts of a number's range that are drawn from: first leaf, the leaf behind the last, and how often. A
    part is believed from three standard deviations of its count, and from half of that beside a half that is.
    """
    tree, nodes, weights = Partition.tree(held.depth), np.ones(1, dtype=np.int64), np.ones(1)  # the root
    if released is not None and released.levels:
        sigma = released.marginals.sigma(tree)
        if released.by_halves:
            nodes, weights = parts_by_halves(place, sigma, released.levels)
        else:
            counted, counts, errors = estimated_counts(place, released.levels)
            least = THRESHOLD * sigma * errors
            beside = np.isin(counted ^ 1, counted[counts >= least]) & (counted > 1)
            believed = np.where(counts >= np.where(beside, least / 2, least), counts, 0.0)
            if believed.any():
                if released.tails:
                    believed += _tails(counted, np.where(believed > 0, 0.0, counts))
                nodes, weights = counted[believed > 0], believed[believed > 0]
    return *tree.cells_of(nodes), weights


def _tails(nodes: IntArray, counts: FloatArray) -> FloatArray:
    """Return how often parts are drawn that are not believed one by one: together as often as they were counted."""
    positive = np.where(nodes == MISSING, 0.0, np.maximum(counts, 0.0))
    together = max(float(counts[nodes != MISSING].sum()), 0.0)
    return positive * (together / max(float(positive.sum()), 1.0))


def _chosen(weights: IntArray | FloatArray, shares: FloatArray) -> IntArray:
    """Return a place a share in [0, 1), drawn in proportion to the weights."""
    sums = np.cumsum(weights, dtype=np.float64)
    return np.asarray(np.searchsorted(sums, shares * sums[-1], side="right"), dtype=np.int64)


def _series(held: DeclaredColumn, drawn: IntArray | FloatArray) -> pl.Series:
    """Return a column as a table holds it."""
    import polars as pl

    if isinstance(held, CategoryColumn):
        texts = [*held.texts, None]
        return pl.Series([texts[place] for place in drawn.tolist()], dtype=pl.String)
    numbers = pl.Series(drawn, dtype=pl.Float64, nan_to_null=True)
    if isinstance(held, NumberColumn) and held.grid in ("date", "time"):
        instants = (numbers * _MICROSECONDS).round().cast(pl.Int64).cast(pl.Datetime("us"))
        return instants.cast(pl.Date) if held.grid == "date" else instants
    return numbers


_MICROSECONDS: Final = 86_400_000_000  # a day has
