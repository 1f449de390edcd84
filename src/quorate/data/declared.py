"""What the columns of a table hold, declared by its owner: for where there is no public row to read it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from quorate.data.column_kinds import ColumnKinds
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.feature_maps.scale import with_narrow
from quorate.data.public_words import PublicWords
from quorate.errors import InvalidParameter

Declared = Mapping[str, Sequence[Any]]

_EXPECTED = 'expected bounds of a number ([0, 120]) or the list of its values (["F", "M"])'


def declared_columns(declared: Any) -> tuple[Any, Any]:
    """Return a frame with the declared columns, and their encoder.

    `declared`: for each column two numbers that bound it, in its own unit, or the texts that occur in it. Returns:
    `frame` (polars.DataFrame, (2, n_columns)): made up of what was declared; its types are those of the columns.
    `encoder`: fitted on that. Numbers become −1 at their lower bound and 1 at their upper one and are cut off there, a
    missing one becomes the middle; texts become an indicator of each declared value, and any other text none. Raises
    InvalidParameter if a column is declared in another way, naming it. Privacy: a function of what was declared, which
    is public. Every number of a row follows from that row, entry by entry.
    """
    import polars as pl

    if not isinstance(declared, Mapping) or not declared:
        raise InvalidParameter(f"schema must name the columns of the table, got {declared!r}; {_EXPECTED}")
    columns = {_name(name): _column(name, held) for name, held in declared.items()}
    frame = pl.DataFrame({name: [held[0], held[-1]] for name, held in columns.items()})
    return frame, _encoder(columns, frame)


def declared_kinds(declared: Declared, dialect: Dialect = PLAIN) -> ColumnKinds:
    """Return how the cells of declared columns are read: numbers with a point or a comma, and the declared texts.

    `dialect`: how numbers are written, where the owner says so.
    """
    words = {name: PublicWords.of(held) for name, held in declared.items() if isinstance(held[0], str)}
    commas = frozenset() if dialect.declares_numbers else frozenset(declared.keys() - words.keys())
    return ColumnKinds(commas=commas, words=words, dialect=dialect)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidParameter(f"schema: names of columns are texts, got {name!r}")
    return name


def _column(name: Any, held: Any) -> list[Any]:
    """Return the two bounds as floats, or the texts."""
    if isinstance(held, list | tuple) and held:
        texts = [value for value in held if isinstance(value, str)]
        if len(texts) == len(held) and len(set(texts)) == len(texts):
            return texts
        if len(held) == 2 and all(isinstance(value, int | float) and isfinite(value) for value in held):
            low, high = float(held[0]), float(held[1])
            if low < high and isfinite(high - low):
                return [low, high]
    raise InvalidParameter(f"schema: column {name!r} is declared as {held!r}; {_EXPECTED}, each value once")


def _encoder(columns: Mapping[str, list[Any]], frame: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import KNNImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    numbers = [name for name, held in columns.items() if not isinstance(held[0], str)]
    texts = [name for name in columns if name not in numbers]
    parts: list[tuple[str, Any, list[str]]] = []
    if numbers:
        middle = KNNImputer(n_neighbors=1).fit(np.zeros((1, len(numbers))))  # fills zeros, and skops loads it
        scaled = MinMaxScaler(feature_range=(-1, 1), clip=True)
        parts.append(("bounded", Pipeline([("scale", scaled), ("fill", FrozenEstimator(middle))]), numbers))
    if texts:
        values = [np.array(columns[name], dtype=object) for name in texts]
        one_hot = OneHotEncoder(categories=values, handle_unknown="ignore", sparse_output=False)
        parts.append(("declared", one_hot, texts))
    fitted = ColumnTransformer(parts, sparse_threshold=0.0).fit(frame)
    if numbers:
        with_narrow(fitted.named_transformers_["bounded"].named_steps["scale"])
    return fitted
