"""The tables that ``[data]`` names: which are read first, and what tells the types and the form of the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorate.data import PublicPool, families, is_frame, read_cells, read_data
from quorate.data.cell_text import as_list
from quorate.data.columns import listed, names_columns, nearest
from quorate.data.formats import Table, has_named_columns, nearly, require_column
from quorate.data.images import ImageForm, ImageRows, private_images, public_images
from quorate.data.reading import BATCH_ROWS, column_names
from quorate.data.rows import Rows, columns
from quorate.data.shared_schema import other_columns
from quorate.data.stream import PartedFrame, Workspace
from quorate.data.unit_ids import only_whole_ids
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, naming
from quorate.folder.data_settings import DataSettings
from quorate.folder.table_source import Source, called, require_file

CELLS_IN_MEMORY = 1 << 28  # bytes of private cells that a direct run holds: a file of more is read part by part


class PublicRows(NamedTuple):
    """The public rows of a run, and those with labels, as X, y and perhaps whose they are; None where none are read."""

    pool: PublicPool
    labelled: tuple[Any, ...] | None


def public_rows(data: DataSettings, *, labelled: bool) -> PublicRows:
    """Read the public rows, and `labelled`: those of ``evaluation`` too, with whose they are if a column says so."""
    for key in ("public", "evaluation") if labelled and data.evaluation is not None else ("public",):
        require_file(key, data.tables[key])
    public = pool_of(data, read_pool(data))
    if not labelled or data.evaluation is None:
        return PublicRows(public, None)
    named = has_named_columns(data.evaluation, data.dialect)
    unit = data.unit if named and data.unit in column_names(data.evaluation, data.dialect) else None
    drop = [name for name in data.left_out if name not in (data.label, unit)]
    table = read_public(data, data.evaluation, public.rows(), label=data.label, unit=unit, drop=drop)
    return PublicRows(public, (table.X, table.y) if table.unit is None else (table.X, table.y, table.unit))


def read_pool(data: DataSettings, *, n_features: int | None = None) -> Table:
    """Read the public rows, without a label, an id, or what is to be left out; images as an array of images."""
    text = _as_text(data)
    with of_key(data, data.pool):
        table = read_data(data.pool, drop=data.left_out, text=text, n_features=n_features, dialect=data.dialect)
    if data.images is None:
        return table
    folder, names = _folder(data), _files(data, table.X, data.pool)
    rows, _ = public_images(folder, names, called=data.pool.name)
    return replace(table, X=rows)


def pool_of(data: DataSettings, table: Table) -> PublicPool:
    """Return the public rows as a run takes them, with what the owner says of columns."""
    if data.images is not None:
        return PublicPool(table.X)
    with naming({kind: f"[data] {kind}" for kind in ("text", "categorical", "numeric", "dates", "drop")}):
        return PublicPool.described(table.X, data.kinds)


def private_ids(data: DataSettings, table: Table) -> Any:
    """Return the unit ids of the private rows as the owner declares them."""
    return only_whole_ids(table.unit) if data.whole_ids else table.unit


def read_private(data: DataSettings, public: Table | None, *, memory: int, workspace: Workspace) -> Table:
    """Read the private rows of a run with teachers; a file that takes more than `memory` bytes stays where it is."""
    how: dict[str, Any] = {"label": data.label, "unit": data.unit, "dialect": data.dialect}
    large: dict[str, Any] = {"memory": memory, "workspace": workspace}
    if public is None or not has_named_columns(data.private, data.dialect):
        with of_key(data, data.private):
            return read_data(data.private, **how, **large)
    text = (*_as_text(data), *texts_of(public.X))
    _require(data, data.private, (data.label, data.unit), columns(public.X) or ())
    if data.images is None:
        with of_key(data, data.private):
            read = read_data(data.private, drop=data.drop, text=text, **how, **large)
        refuse_other_columns(data, read.X, data.private, public.X)
        return read
    with of_key(data, data.private):
        table = read_data(data.private, drop=data.drop, text=text, **how)
    names, form = _files(data, table.X, data.private), _form_of(public.X.shape[1:])
    return replace(table, X=private_images(_folder(data), names, form, missing=0.0))


def read_private_cells(
    data: DataSettings,
    public: PublicPool | None,
    *,
    n_features: int,
    folder: Callable[[], Path],
    declared: Sequence[str] = (),
    memory: int | None = None,
) -> Table:
    """Read the private rows of a direct run, each cell by itself. `folder`: makes the place for rows that memory does
    not hold. `declared`: the columns of the schema. `memory`: bytes that private rows may take, half of it as cells.
    """
    width = 1 if data.images is not None else n_features
    most = CELLS_IN_MEMORY if memory is None else memory // 2
    held = None if data.images is not None else most
    how: dict[str, Any] = {"label": data.label, "unit": data.unit, "drop": data.drop}
    wanted = declared if public is None else columns(public.rows()) or ()
    _require(data, data.private, (data.label, data.unit), wanted)
    with of_key(data, data.private):
        table = read_cells(data.private, **how, n_features=width, memory=held, folder=folder, dialect=data.dialect)
    if data.images is None:
        if public is not None:
            refuse_other_columns(data, table.X, data.private, public.rows())
        elif declared:
            _refuse_others(data, columns(table.X), data.private, [name for name in wanted if name not in data.drop])
        return table
    shape = () if public is None or public.image_shape is None else public.image_shape
    names, form = _files(data, table.X, data.private), _form_of(shape)
    if len(names) * form.size * np.dtype(np.float64).itemsize > most:
        return replace(table, X=ImageRows(_folder(data), names, form))
    return replace(table, X=private_images(_folder(data), names, form, missing=float("inf")))


def read_public(
    data: DataSettings,
    path: Source,
    public: Rows,
    *,
    label: str | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Read more public rows: those with labels, or questions. Images have the form of the pool."""
    text = (*_as_text(data), *texts_of(public))
    width = None if data.images else public.shape[1]
    _require(data, path, (label, unit), columns(public) or ())
    with of_key(data, path):
        table = read_data(path, label=label, unit=unit, drop=drop, text=text, n_features=width, dialect=data.dialect)
    if data.images is None:
        return table
    folder, names = _folder(data), _files(data, table.X, path)
    rows, form = public_images(folder, names, called=path.name)
    if form.size != public.shape[1]:
        raise DataRefused(
            f"{path.name}: its images are {form.height} × {form.width} pixels{' in colours' * (form.channels > 1)}, "
            "and those of the pool are not; bring all of them to one size and to grey, or to colours"
        )
    return replace(table, X=rows.reshape(len(rows), -1))


def refuse_unknown_drop(data: DataSettings) -> None:
    """Refuse a column to leave out that no table has: the one that is meant would be learned from."""
    unknown = dropped_from_no_public_table(data)
    named = bool(unknown) and has_named_columns(data.private, data.dialect)
    names = column_names(data.private, data.dialect) if named else []
    if lost := [name for name in unknown if name not in names]:
        name = lost[0]
        public = [] if data.public is None else column_names(data.public, data.dialect)
        near = nearly(name, names) if names_columns(names, public) else ""
        hint = near or (nearest(name, public) if public else "")
        raise InvalidParameter(
            f"[data] drop names {name!r}, and no table has such a column{hint or '; correct it, or leave it out'}"
        )


def dropped_from_no_public_table(data: DataSettings) -> list[str]:
    """Name the columns to leave out that stand in no public table; they may be in the private one alone."""
    names: set[str] = set()
    for path in (data.public, data.evaluation):
        if data.drop and path is not None and has_named_columns(path, data.dialect):
            names.update(column_names(path, data.dialect))
    return [name for name in data.drop if name not in names]


def refuse_other_columns(data: DataSettings, table: Rows, path: Source, pool: Rows) -> None:
    """Refuse a table that has not the columns of the public one, with the line of settings that leaves out the rest."""
    _refuse_others(data, columns(table), path, columns(pool))


def refuse_unknown_columns(data: DataSettings) -> None:
    """Refuse a private table without the columns of the label and of the unit, by its first line alone."""
    with of_key(data, data.pool):
        public = column_names(data.pool, data.dialect) if has_named_columns(data.pool, data.dialect) else []
    _require(data, data.private, (data.label, data.unit), public)


def _require(data: DataSettings, path: Source, wanted: Sequence[str | None], public: Sequence[str]) -> None:
    """Refuse a file without a column that is named, before it is read; `public`: the names that tell what names are."""
    needed = [name for name in wanted if name is not None]
    with of_key(data, path):
        names = column_names(path, data.dialect) if needed and has_named_columns(path, data.dialect) else None
    if names is None:
        return
    table = key_of(data, path)
    whose = "" if table in (None, "private") else f"[data] {table} needs the column of "
    label = "label" if data.range is None else "target"
    for name in needed:
        key = label if name == data.label else "unit"
        require_column(name, names, path, public=public, key=f'{whose}[data] {key} = "{name}": ')


def _refuse_others(data: DataSettings, names: Sequence[str] | None, path: Source, wanted: Sequence[str] | None) -> None:
    if names is None or wanted is None or set(names) == set(wanted):
        return
    differ, alone = other_columns(names, wanted, called=(path.name, data.public_side))
    if not alone:
        raise DataRefused(differ)
    line = ", ".join(json.dumps(name, ensure_ascii=False) for name in (*data.drop, *alone))
    raise DataRefused(
        f"{differ}. Give all tables the same feature columns, or leave out the others by a line under [data]: "
        f"drop = [{line}]"
    )


def texts_of(pool: Rows) -> tuple[str, ...]:
    """Name the text columns of a table."""
    if not is_frame(pool):
        return ()
    return tuple(name for name, family in families(pool).items() if family == "text")


def _as_text(data: DataSettings) -> tuple[str, ...]:
    return data.as_text if data.images is None else (*data.as_text, data.image_column)


def _form_of(shape: tuple[int, ...]) -> ImageForm:
    return ImageForm(shape[0], shape[1], shape[2] if len(shape) == 3 else 1)


def _folder(data: DataSettings) -> Path:
    assert data.images is not None  # noqa: S101 - the callers' condition
    if not data.images.is_dir():
        raise PreconditionFailed(f"[data] images names {data.images}, and there is no such folder")
    if data.kinds.named:
        raise InvalidParameter(
            f"[data] images makes pixels of each row, and columns {listed(list(data.kinds.named))} are named beside "
            "them; leave one of the two out"
        )
    return data.images


def _files(data: DataSettings, table: Rows, path: Source) -> list[Any]:
    """Return the column of file names; other columns would be learned from by nobody, and are to be left out."""
    names = list(table.columns)
    require_column(data.image_column, names, path, key=f'[data] image_column = "{data.image_column}": ')
    if len(names) > 1:
        raise DataRefused(
            f"{path.name}: beside the column of images, {data.image_column!r}, there are {len(names) - 1} more, and "
            "only pixels are learned from; name them in [data] drop"
        )
    if isinstance(table, PartedFrame):
        return [cell for part in table.blocks(BATCH_ROWS) for cell in as_list(part[data.image_column])]
    return list(table[data.image_column].to_list())


def key_of(data: DataSettings, table: Source) -> str | None:
    """Return the key of ``[data]`` that names a table, of two the one that needs labels; None where none does."""
    keys = ("private", "evaluation", "calibration", "public")
    return next((key for key in keys if data.tables.get(key) == table), None)


@contextmanager
def of_key(data: DataSettings, table: Source) -> Iterator[None]:
    """Name the key of a table in whatever is refused of it inside."""
    key = key_of(data, table)
    is_said = key is None or not isinstance(table, Path)  # a query is called by its key already
    with nullcontext() if is_said else called(f"[data] {key}"):
        yield
