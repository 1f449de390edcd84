"""What the columns of a table hold, declared by its owner: for where there is no public row to read it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.data.column_cells import PublicWords
from quorate.data.column_kinds import ColumnKind, ColumnKinds
from quorate.data.declared_schema import CategoryColumn, NumberColumn, Schema, order_of_bounds
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.encoding import filled_with_zeros, missing_indicator, scaler
from quorate.data.feature_maps.scale import with_narrow
from quorate.data.notation import number
from quorate.deferred import compose, frozen, pipeline, pl, preprocessing
from quorate.errors import InvalidParameter, as_typed, named

Declared = Mapping[str, Sequence[Any]]

_EXPECTED = 'expected bounds of a number ([0, 120]), or the list of its values, texts or truth values (["F", "M"])'


def declared_columns(declared: Any) -> tuple[Any, Any]:
    """Return a polars frame ``(2, n_columns)`` made up of what was declared, in the columns' types, and the encoder
    fitted on it.

    `declared`: for each column two bounds, or its texts. Numbers become −1 … 1 between their bounds and are cut off
    there, a missing one the middle; texts become an indicator of each declared value. Privacy: a function of public
    declarations; every number of a row follows from that row, entry by entry.
    """
    if not isinstance(declared, Mapping) or not declared:
        raise InvalidParameter(f"schema must name the columns of the table, got {declared!r}; {_EXPECTED}")
    if bad := [name for name in declared if not isinstance(name, str)]:
        raise InvalidParameter(f"schema: names of columns are texts, got {bad[0]!r}")
    columns = {name: _column(name, held) for name, held in declared.items()}
    frame = pl.DataFrame({name: [held[0], held[-1]] for name, held in columns.items()})
    return frame, _encoder(columns, frame)


def declared_kinds(declared: Declared, dialect: Dialect = PLAIN) -> ColumnKinds:
    """Return how the cells of declared columns are read: numbers with a point or a comma, and the declared texts."""
    lists = {name: _listed(held) for name, held in declared.items()}
    words = {name: PublicWords.of(texts) for name, texts in lists.items() if texts is not None}
    commas = frozenset() if dialect.declares_numbers else frozenset(declared.keys() - words.keys())
    return ColumnKinds(commas=commas, words=words, dialect=dialect)


def kinds_of(schema: Schema, dialect: Dialect = PLAIN) -> ColumnKinds:
    """Return how the cells of a table are read whose columns were declared, for a pool that is drawn for it."""
    held = schema.columns.items()
    numbers = {name: column.grid for name, column in held if isinstance(column, NumberColumn)}
    read_as: dict[str, ColumnKind] = {
        name: "category" if name not in numbers else "date" if numbers[name] in ("date", "time") else "number"
        for name in schema.columns
    }
    return ColumnKinds(
        kinds=read_as,
        changed=frozenset(schema.columns),
        asked=frozenset(schema.columns),
        commas=frozenset() if dialect.declares_numbers else frozenset(numbers),
        dialect=dialect,
        words={name: PublicWords.of(column.texts) for name, column in held if isinstance(column, CategoryColumn)},
    )


def _column(name: Any, held: Any) -> list[Any]:
    """Return the two bounds as floats, or the texts."""
    if isinstance(held, list | tuple) and held:
        texts = _listed(held)
        if texts is not None and len(set(texts)) == len(texts):
            return texts
        if len(held) == 2 and all(isinstance(value, int | float) for value in held):
            low, high = map(number, held)  # NaN beyond the floats
            if low < high and isfinite(high - low):
                return [low, high]
    order = order_of_bounds(held) if isinstance(held, list | tuple) else None
    expected = order or f"{_EXPECTED}, each value once"
    raise InvalidParameter(f"{named('schema')}: column {name!r} is declared as {as_typed(held)}; {expected}")


def _listed(held: Sequence[Any]) -> list[str] | None:
    """Return the values of a list of texts or truth values as a column of texts holds them; None for anything else."""
    if all(isinstance(value, bool) for value in held):
        return [str(value) for value in held]
    return list(held) if all(isinstance(value, str) for value in held) else None


def encoded_width(schema: Schema) -> int:
    """Return how many numbers :func:`encoder_of` makes of a row: a public fact, known before there is any row."""
    return sum(2 if isinstance(held, NumberColumn) else held.missing + 1 for held in schema.columns.values())


def is_of_drawn_pool(encoder: Any) -> bool:
    """Tell whether the encoder of a declared table is of :func:`encoder_of`: what is missing has an indicator in it."""
    parts = {part: fitted for part, fitted, _ in getattr(encoder, "transformers_", [])}
    lists = getattr(parts.get("declared"), "categories_", ())
    return "missing" in parts or any(None in categories.tolist() for categories in lists)


@np.errstate(all="ignore")
@unwarned()  # of a column that is missing in every row
def encoder_of(schema: Schema, pool: Any) -> Any:
    """Return the encoder of declared columns, with the units (mean, spread) of a drawn `pool`: a ColumnTransformer for
    skops.

    A number out of its bounds becomes the bound, a missing one the mean, beside an indicator; each listed value has an
    indicator, and so has a missing one: :func:`encoded_width` outputs. Every number of a row follows from that row.
    """
    numbers = {name: held for name, held in schema.columns.items() if isinstance(held, NumberColumn)}
    free = [name for name, held in numbers.items() if held.low is None]
    lists = {name: held for name, held in schema.columns.items() if isinstance(held, CategoryColumn)}
    bounded = [name for name in numbers if name not in free]
    parts: list[tuple[str, Any, list[str]]] = []
    if bounded:
        parts.append(("bounded", _bounded({name: numbers[name] for name in bounded}, pool), bounded))
    if free:
        parts.append(("number", scaler(len(free)), free))
    if numbers:
        parts.append(("missing", missing_indicator(), list(numbers)))
    if lists:
        values = [np.array([*held.texts, None], dtype=object) for held in lists.values()]
        one_hot = preprocessing.OneHotEncoder(categories=values, handle_unknown="ignore", sparse_output=False)
        parts.append(("declared", one_hot, [*lists]))
    fitted = compose.ColumnTransformer(parts, sparse_threshold=0.0).fit(pool)
    if free:
        _known(fitted.named_transformers_["number"].named_steps["scale"])
    return fitted


def _bounded(columns: Mapping[str, NumberColumn], pool: Any) -> Any:
    """Return what cuts numbers at their declared bounds and scales them by the pool after that, fitted."""
    ends = type(pool)({name: [column.low, column.high] for name, column in columns.items()})
    cut = with_narrow(preprocessing.MinMaxScaler(feature_range=(-1, 1), clip=True).fit(ends))
    scale = _known(preprocessing.StandardScaler().fit(cut.transform(pool[list(columns)])))
    steps = [("cut", cut), ("scale", scale), ("fill", filled_with_zeros(len(columns)))]
    return frozen.FrozenEstimator(pipeline.Pipeline(steps))


def _known(scale: Any) -> Any:
    """Give a column that is missing in every row of the pool a mean of 0 and a unit of 1."""
    unknown = ~np.isfinite(scale.mean_) | ~np.isfinite(scale.var_)
    scale.mean_[unknown], scale.var_[unknown], scale.scale_[unknown] = 0.0, 0.0, 1.0
    return scale


def _encoder(columns: Mapping[str, list[Any]], frame: Any) -> Any:
    numbers = [name for name, held in columns.items() if not isinstance(held[0], str)]
    texts = [name for name in columns if name not in numbers]
    parts: list[tuple[str, Any, list[str]]] = []
    if numbers:
        scaled = preprocessing.MinMaxScaler(feature_range=(-1, 1), clip=True)
        steps = [("scale", scaled), ("fill", filled_with_zeros(len(numbers)))]
        parts.append(("bounded", pipeline.Pipeline(steps), numbers))
    if texts:
        values = [np.array(columns[name], dtype=object) for name in texts]
        one_hot = preprocessing.OneHotEncoder(categories=values, handle_unknown="ignore", sparse_output=False)
        parts.append(("declared", one_hot, texts))
    fitted = compose.ColumnTransformer(parts, sparse_threshold=0.0).fit(frame)
    if numbers:
        with_narrow(fitted.named_transformers_["bounded"].named_steps["scale"])
    return fitted
