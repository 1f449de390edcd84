"""The tables that ``[data]`` names: which are read first, and what tells the types and the form of the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorate.data import PublicPool, read_cells, read_data
from quorate.data.cell_text import as_list
from quorate.data.columns import listed, names_columns, nearest, text_columns
from quorate.data.formats import Table, has_named_columns, nearly, require_column
from quorate.data.images import ImageForm, ImageRows, private_images, public_images
from quorate.data.reading import BATCH_ROWS, named_columns
from quorate.data.rows import Rows, columns
from quorate.data.shared_schema import other_columns, unlike_schema
from quorate.data.stream import PartedFrame, Workspace
from quorate.data.unit_ids import only_whole_ids
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, naming
from quorate.folder.data_settings import DataSettings
from quorate.folder.table_source import Source, called

CELLS_IN_MEMORY = 1 << 28  # bytes of private cells that a direct run holds: a file of more is read part by part


class PublicRows(NamedTuple):
    """The public rows of a run, and those with labels, as X, y and perhaps whose they are; None where none are read."""

    pool: PublicPool
    labelled: tuple[Any, ...] | None


def public_rows(data: DataSettings, *, labelled: bool) -> PublicRows:
    """Read the public rows, and `labelled`: those of ``evaluation`` too, with whose they are if a column says so."""
    public = read_pool(data)
    if not labelled or data.evaluation is None:
        return PublicRows(public, None)
    unit = data.unit if data.unit in (_names(data, data.evaluation) or ()) else None
    drop = [name for name in data.left_out if name not in (data.label, unit)]
    table = read_public(data, data.evaluation, public.rows(), label=data.label, unit=unit, drop=drop)
    return PublicRows(public, (table.X, table.y) if table.unit is None else (table.X, table.y, table.unit))


def read_pool(data: DataSettings, *, n_features: int | None = None) -> PublicPool:
    """Read the public rows, without a label, an id, or what is to be left out, with what the owner says of columns;
    images as an array of images.
    """
    table, images = _read(data, data.pool, drop=data.left_out, text=_as_text(data), n_features=n_features)
    if images is not None:
        return PublicPool(public_images(images, table.X[data.image_column].to_list(), called=data.pool.name)[0])
    with naming({kind: f"[data] {kind}" for kind in ("text", "categorical", "numeric", "dates", "drop")}):
        return PublicPool.described(table.X, data.kinds)


def private_ids(data: DataSettings, table: Table) -> Any:
    """Return the unit ids of the private rows as the owner declares them."""
    return only_whole_ids(table.unit) if data.whole_ids else table.unit


def read_private(data: DataSettings, public: PublicPool | None, *, memory: int, workspace: Workspace) -> Table:
    """Read the private rows of a run with teachers; a file that takes more than `memory` bytes stays where it is."""
    how: dict[str, Any] = {"label": data.label, "unit": data.unit}
    if data.images is None:
        how |= {"memory": memory, "workspace": workspace}
    if public is None or not has_named_columns(data.private, data.dialect):
        return _read(data, data.private, **how)[0]
    how |= {"drop": data.drop, "text": (*_as_text(data), *text_columns(public.rows()))}
    table, images = _read(data, data.private, public=public.columns or (), **how)
    if images is None:
        refuse_other_columns(data, table.X, data.private, public.rows())
        return table
    form = _form_of(public.image_shape or ())
    return replace(table, X=private_images(images, _image_names(data, table), form, missing=0.0))


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
    wanted = declared if public is None else public.columns or ()
    _require(data, data.private, (data.label, data.unit), wanted)
    images = _image_folder(data, data.private, beside=(data.label, data.unit, *data.drop))
    with of_key(data, data.private):
        table = read_cells(data.private, **how, n_features=width, memory=held, folder=folder, dialect=data.dialect)
    if images is None:
        if public is not None:
            refuse_other_columns(data, table.X, data.private, public.rows())
        elif declared:
            _refuse_others(data, columns(table.X), data.private, [name for name in wanted if name not in data.drop])
        return table
    shape = () if public is None or public.image_shape is None else public.image_shape
    names, form = _image_names(data, table), _form_of(shape)
    if len(names) * form.size * np.dtype(np.float64).itemsize > most:
        return replace(table, X=ImageRows(images, names, form))
    return replace(table, X=private_images(images, names, form, missing=float("inf")))


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
    how: dict[str, Any] = {"label": label, "unit": unit, "drop": drop}
    how["n_features"] = None if data.images else public.shape[1]
    text = _as_text(data)
    table, images = _read(data, path, public=columns(public) or (), text=(*text, *text_columns(public)), **how)
    if images is None:
        return table
    rows, form = public_images(images, table.X[data.image_column].to_list(), called=path.name)
    if form.size != public.shape[1]:
        raise DataRefused(
            f"{path.name}: its images are {form.height} × {form.width} pixels{' in colours' * (form.channels > 1)}, "
            "and those of the pool are not; bring all of them to one size and to grey, or to colours"
        )
    return replace(table, X=rows.reshape(len(rows), -1))


def refuse_unknown_drop(data: DataSettings) -> None:
    """Refuse a column to leave out that no table has: the one that is meant would be learned from."""
    unknown = dropped_from_no_public_table(data)
    names = (_names(data, data.private) if unknown else None) or []
    if lost := [name for name in unknown if name not in names]:
        name = lost[0]
        public = [] if data.public is None else _names(data, data.public) or []
        near = nearly(name, names) if names_columns(names, public) else ""
        hint = near or (nearest(name, public) if public else "")
        raise InvalidParameter(
            f"[data] drop names {name!r}, and no table has such a column{hint or '; correct it, or leave it out'}"
        )


def dropped_from_no_public_table(data: DataSettings) -> list[str]:
    """Name the columns to leave out that stand in no public table; they may be in the private one alone."""
    names: set[str] = set()
    for path in (data.public, data.evaluation):
        if data.drop and path is not None:
            names.update(_names(data, path) or ())
    return [name for name in data.drop if name not in names]


def refuse_other_columns(data: DataSettings, table: Rows, path: Source, pool: Rows) -> None:
    """Refuse a table that has not the columns of the public one, with the line of settings that leaves out the rest."""
    _refuse_others(data, columns(table), path, columns(pool))


def refuse_unknown_columns(data: DataSettings) -> None:
    """Refuse a private table without the columns of the label and of the unit, by its first line alone."""
    _require(data, data.private, (data.label, data.unit), _names(data, data.pool) or ())


def _require(data: DataSettings, path: Source, wanted: Sequence[str | None], public: Sequence[str]) -> None:
    """Refuse a file without a column that is named, before it is read; `public`: the names that tell what names are."""
    needed = [name for name in wanted if name is not None]
    names = _names(data, path) if needed else None
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
    called = (path.name, data.public_side)
    differ, alone = other_columns(names, wanted, called=called)
    if not alone:
        raise DataRefused(differ)
    if data.public is None:
        alone = [name for name in alone if name in names]
    line = ", ".join(json.dumps(name, ensure_ascii=False) for name in (*data.drop, *alone))
    drop = f"by a line under [data]: drop = [{line}]"
    if data.public is None:
        differ, how = unlike_schema(names, wanted, called=called, left_out=f" {drop}")
        raise DataRefused(f"{differ}. {how}" if how else differ)
    raise DataRefused(f"{differ}. Give all tables the same feature columns, or leave out the others {drop}")


def _as_text(data: DataSettings) -> tuple[str, ...]:
    return data.as_text if data.images is None else (*data.as_text, data.image_column)


def _form_of(shape: tuple[int, ...]) -> ImageForm:
    return ImageForm(shape[0], shape[1], shape[2] if len(shape) == 3 else 1)


def _names(data: DataSettings, path: Source) -> list[str] | None:
    """Name the columns of a table, if they have names; a refusal begins with its key."""
    with of_key(data, path):
        return named_columns(path, data.dialect)


def _read(
    data: DataSettings,
    path: Source,
    *,
    label: str | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
    public: Sequence[str] = (),
    **how: Any,
) -> tuple[Table, Path | None]:
    """Read a table as :func:`~quorate.data.read_data` does, once its columns were looked at by their names; with the
    folder of its images, if it has some. A refusal begins with its key.
    """
    _require(data, path, (label, unit), public)
    images = _image_folder(data, path, beside=(label, unit, *drop))
    with of_key(data, path):
        return read_data(path, label=label, unit=unit, drop=drop, dialect=data.dialect, **how), images


def _image_names(data: DataSettings, table: Table) -> list[Any]:
    """Return the names of private images, of a table that may be read part by part."""
    if isinstance(table.X, PartedFrame):
        return [cell for part in table.X.blocks(BATCH_ROWS) for cell in as_list(part[data.image_column])]
    return list(table.X[data.image_column].to_list())


def _image_folder(data: DataSettings, path: Source, *, beside: Sequence[str | None]) -> Path | None:
    """Return where the images of a table lie; None where it has none. Columns beside that of their names, and those
    that are no features, would be learned from by nobody, and are to be left out.
    """
    if data.images is None:
        return None
    if not data.images.is_dir():
        raise PreconditionFailed(f"[data] images names {data.images}, and there is no such folder")
    if data.kinds.named:
        raise InvalidParameter(
            f"[data] images makes pixels of each row, and columns {listed(list(data.kinds.named))} are named beside "
            "them; leave one of the two out"
        )
    names = [name for name in _names(data, path) or () if name not in beside]
    require_column(data.image_column, names, path, key=f'[data] image_column = "{data.image_column}": ')
    if len(names) > 1:
        raise DataRefused(
            f"{path.name}: beside the column of images, {data.image_column!r}, there are {len(names) - 1} more, and "
            "only pixels are learned from; name them in [data] drop"
        )
    return data.images


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
