"""The public encoder: columns to numbers, by statistics of the public pool alone.

It is put together from scikit-learn's own parts, and from parts that skops loads without being asked to trust
anything: a student saved behind it opens wherever scikit-learn and skops are installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import own_switches
from quorate.data.column_cells import PublicWords
from quorate.data.column_kinds import MAX_VALUES, RARE_ROWS, RARE_SHARE
from quorate.data.columns import (
    column,
    doubles,
    families,
    feature_families,
    listed,
    missing_columns,
    refuse_infinite,
    texts,
)
from quorate.data.columns import named as named_columns
from quorate.data.rows import Rows, as_rows, columns, is_frame, kind, n_rows, width
from quorate.deferred import compose, frozen, pipeline, preprocessing
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.types import FloatArray

WIDE = 256  # encoded columns from which the output is sparse


def needs_encoding(X: Rows) -> bool:
    """Tell whether a frame has columns that are not numbers."""
    return is_frame(X) and any(family != "number" for family in families(X).values())


@own_switches()
def public_encoder(X_public: Rows, text: Sequence[str] = ()) -> Any:
    """Fit the encoder on the public pool.

    Parameters
    ----------
    X_public : Rows
        Public features.
    text : sequence of str
        Columns of running text, without a missing one.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        Fitted. ``transform`` takes rows of the same columns and kind and gives float64: dense, or CSR where text
        columns make more than 256 columns. In this order:

        - numbers and truth values, about the public mean in units of the public standard deviation; a missing
          one becomes the mean;
        - for each number column with missing values in public, an indicator of a missing one;
        - for each text column, an indicator of each value that is frequent in public (at least 0.5 % of the rows
          and two rows, at most 100 values), and one of a missing value. Rare and unseen values have zeros alone;
        - for each column of running text its words as TF-IDF with logarithmic term frequencies, a block of length one;
          how rare a word is, is read off the pool. The output is sparse then.

        A column without any value in public is left out. For sparse rows, a Pipeline that passes them through as
        they are.

    Raises
    ------
    InvalidParameter
        If a column holds dates or times, categories that are not text, or missing values marked by ``pandas.NA``
        among Python objects.
    DataRefused
        If a number is infinite, or so large that there is no mean or spread of its column.

    Notes
    -----
    Privacy: a function of public rows alone, fitted once for all teachers and the student. Nothing private
    decides on it, so it costs nothing.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"age": [30, 50, None, 40], "sex": ["F", "M", "M", "F"]})
    >>> encoder = public_encoder(pool)
    >>> encoder.get_feature_names_out().tolist()
    ['number__age', 'missing__missingindicator_age', 'text__sex_F', 'text__sex_M', 'text__sex_None']
    >>> encoder.transform(polars.DataFrame({"age": [40, None], "sex": ["X", None]})).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0]]
    """
    rows = as_rows(X_public, "public")
    if kind(rows) == "sparse":
        return pipeline.Pipeline([("unchanged", "passthrough")]).fit(rows)
    names: list[Any] = list(range(width(rows)))
    if is_frame(rows) and all(isinstance(name, str) for name in rows.columns):
        names = list(columns(rows) or ())  # so that a table with its columns in another order is read right
    kinds = _encodable(rows)
    refuse_infinite(rows, "public")
    missing = missing_columns(rows)
    numbers = [position for position, family in enumerate(kinds) if family == "number"]
    words = [position for position, family in enumerate(kinds) if family == "text" and names[position] not in text]
    gaps = [position for position in numbers if missing[position]]
    values = [_frequent_values(rows, position) for position in words]
    wide = len(numbers) + len(gaps) + sum(map(len, values)) > WIDE
    parts: list[tuple[str, Any, Any]] = []
    if numbers:
        parts.append(("number", scaler(len(numbers)), [names[i] for i in numbers]))
    if gaps:
        parts.append(("missing", missing_indicator(), [names[i] for i in gaps]))
    if words:
        one_hot = preprocessing.OneHotEncoder(categories=values, handle_unknown="ignore", sparse_output=wide)
        parts.append(("text", one_hot, [names[i] for i in words]))
    parts += [(f"words{at}", _weighed_words(rows, names, name), name) for at, name in enumerate(text)]
    encoder = compose.ColumnTransformer(parts, sparse_threshold=1.0 if text or (wide and words) else 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        encoder.fit(rows)
    if numbers:
        _take_constants(encoder.named_transformers_["number"].named_steps["scale"], rows, numbers)
    refuse_unscalable(encoder, rows, "public")
    return encoder


def _take_constants(scaler: Any, X: Rows, numbers: list[int]) -> None:
    """Give a column of one large number itself as its mean, and no spread: the rounding of its mean overflows."""
    with np.errstate(over="ignore"):
        unknown = ~(np.isfinite(scaler.mean_) & np.isfinite(scaler.var_))
    for at in np.flatnonzero(unknown).tolist():
        values = _doubles(X, numbers[at])
        if np.nanmin(values) == np.nanmax(values):
            scaler.mean_[at], scaler.var_[at], scaler.scale_[at] = np.nanmax(values), 0.0, 1.0


def _doubles(X: Rows, position: int) -> FloatArray:
    return doubles(column(X, position)) if is_frame(X) else np.asarray(X[:, position], dtype=np.float64)


def _weighed_words(X: Rows, names: list[Any], name: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents = texts(column(X, names.index(name)))
    if any(document is None for document in documents):
        raise lacks_text(name)
    try:
        return frozen.FrozenEstimator(TfidfVectorizer(sublinear_tf=True).fit(documents))
    except ValueError:
        raise DataRefused(f"public: the texts of column {name!r} hold no words; give texts with words") from None


def without_frequent_texts(X_public: Rows) -> list[str]:
    """Name the text columns of a public frame in which texts are, but none is frequent: the encoder makes nothing of
    them.
    """
    return [
        str(name)
        for position, (name, family) in enumerate(families(X_public).items())
        if family == "text" and not _often(counts := _counted(X_public, position), n_rows(X_public)) and counts
    ]


@own_switches()
def refuse_unscalable(encoder: Any, X: Rows, name: str, *, largest: float = inf) -> None:
    """Refuse numbers that are infinite, or become so, or larger than what is to take them, in the public pool's units.

    `encoder`: from :func:`public_encoder`. `name`: what the message calls the table. `largest`: the largest number, in
    those units, that is taken. DataRefused names the columns; not the rows, nor how many.
    """
    units = public_units(encoder, X)
    if not units:
        return
    frame = is_frame(X)
    if frame:
        refuse_infinite(X, name)
    far = np.zeros(width(X), dtype=np.bool_)
    kinds = feature_families(X)
    for at, (mean, scale) in units.items():
        if kinds[at] not in ("number", "missing"):  # dates, read as numbers of a few digits
            continue
        values = _doubles(X, at)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.abs((values - mean) / scale)
            far[at] = np.isnan(scale) or (np.isinf(scaled) | (scaled > largest)).any()
    if far.any():
        one = np.count_nonzero(far) == 1
        raise DataRefused(
            f"{name}: {named_columns(X, far)} {'holds' if one else 'hold'} a number too large to be scaled by the "
            f"public pool; mend it, or drop the {'column' if one else 'columns'}"
        )


def public_units(encoder: Any, X: Rows) -> dict[int, tuple[float, float]]:
    """Return mean and spread of each number column, by its place in `X`; a spread that is not known is NaN.

    `encoder`: from :func:`public_encoder`; None, and what has no number columns, give no entry.
    """
    parts = {part: places for part, _, places in getattr(encoder, "transformers_", [])}
    if "columns" in parts:  # an encoder of tables with running text, as earlier runs have stored it
        inner = encoder.named_transformers_["columns"]
        return public_units(getattr(inner, "estimator", inner), X)
    chosen = parts.get("number")
    if chosen is None:
        return {}
    scaler = encoder.named_transformers_["number"].named_steps["scale"]
    known = {name: place for place, name in enumerate(columns(X) or ())}
    known_spread = np.isfinite(scaler.mean_) & np.isfinite(scaler.var_)  # for others a scale of 1 stands in
    spreads = np.where(known_spread, scaler.scale_, np.nan)
    places = [known[place] if isinstance(place, str) else place for place in chosen]
    return dict(zip(places, zip(scaler.mean_, spreads, strict=True), strict=True))


def indicator_blocks(encoder: Any) -> tuple[tuple[int, int], ...]:
    """Return where each column's indicators stand: the first, and one past the last, encoded column."""
    blocks = []
    for part, fitted, _ in getattr(encoder, "transformers_", []):
        if part in ("text", "declared") and hasattr(fitted, "categories_"):
            ends = encoder.output_indices_[part].start + np.cumsum([0, *map(len, fitted.categories_)])
            blocks += [(int(first), int(end)) for first, end in pairwise(ends)]
    return tuple(blocks)


def public_words(encoder: Any) -> dict[str, PublicWords]:
    """Return by column the entries of categories that an encoder of tables knows, but for columns of which two entries
    say the same: a run that was begun before told these apart.
    """
    known = {}
    for part, fitted, names in getattr(encoder, "transformers_", []):
        if part not in ("text", "declared") or not hasattr(fitted, "categories_") or not isinstance(names, list):
            continue  # one of the user's own may have parts of these names
        for name, categories in zip(names, fitted.categories_, strict=True):
            entries = [entry for entry in categories.tolist() if isinstance(entry, str)]
            words = PublicWords.of(entries)
            if isinstance(name, str) and len(words.written) == len(entries):
                known[name] = words
    return known


def _encodable(X: Rows) -> list[str]:
    kinds = list(feature_families(X))
    names = columns(X) or ()
    if times := [names[i] for i, family in enumerate(kinds) if family == "time"]:
        raise InvalidParameter(
            f"columns {listed(times)} hold dates or times, which the public encoder does not read; "
            "turn them into numbers, or give a Pipeline that takes the frame"
        )
    if marked := [names[i] for i, family in enumerate(kinds) if family == "number" and _has_marks(X, i)]:
        raise InvalidParameter(
            f"columns {listed(marked)} mark missing numbers by pandas.NA among Python objects, which scikit-learn does "
            "not read; convert them with .astype('Float64')"
        )
    kept = [family if family == "text" or _has_number(X, i) else "void" for i, family in enumerate(kinds)]
    if set(kept) == {"void"}:
        raise InvalidParameter("no column of the public rows has a value; nothing is left to encode")
    return kept


def _has_marks(X: Rows, position: int) -> bool:
    """Tell whether a number column of Python objects holds what is neither a number nor a float that is missing."""
    if kind(X) != "pandas" or column(X, position).dtype.kind != "O":
        return False
    series = column(X, position)
    return any(value is not None and not isinstance(value, float) for value in series[series.isna()].tolist())


def _has_number(X: Rows, position: int) -> bool:
    """Tell whether a number column has any value; one without has neither mean nor spread, and is left out."""
    if not is_frame(X):
        return bool((~np.isnan(np.asarray(X[:, position], dtype=np.float64))).any())
    series = column(X, position)
    if kind(X) == "pandas":
        return bool(series.notna().any())
    return bool(series.drop_nulls().drop_nans().len() if series.dtype.is_float() else series.drop_nulls().len())


def scaler(n_columns: int) -> Any:
    """Scale numbers, leaving NaN, then fill NaN with zero, the public mean."""
    return pipeline.Pipeline([("scale", preprocessing.StandardScaler()), ("fill", filled_with_zeros(n_columns))])


def filled_with_zeros(n_columns: int) -> Any:
    """Fill NaN with zero, by a nearest-neighbour imputer of one row: SimpleImputer's saved form holds a ``numpy.dtype``
    that skops asks to be trusted.
    """
    from sklearn.impute import KNNImputer

    return frozen.FrozenEstimator(KNNImputer(n_neighbors=1).fit(np.zeros((1, n_columns))))


def missing_indicator() -> Any:
    """Tell which numbers are missing; None among truth values becomes NaN first."""
    from sklearn.impute import MissingIndicator

    as_floats = preprocessing.StandardScaler(with_mean=False, with_std=False)
    return pipeline.Pipeline([("floats", as_floats), ("missing", MissingIndicator(features="all"))])


def _frequent_values(X: Rows, position: int) -> NDArray[Any]:
    """Return the frequent public values of a text column in order, and last what stands for a missing one."""
    series = column(X, position)
    if kind(X) == "pandas" and hasattr(series, "cat") and any(not isinstance(v, str) for v in series.cat.categories):
        raise InvalidParameter(f"column {str(series.name)!r} has categories that are not text; convert it to text")
    counts = _counted(X, position)
    frequent = sorted(_often(counts, n_rows(X)), key=lambda v: (-counts[v], v))
    absent: list[Any] = [None]
    if kind(X) == "pandas":
        marks = [value for value in series[series.isna()].tolist() if not isinstance(value, float)]
        if any(value is not None for value in marks):
            raise InvalidParameter(
                f"column {str(series.name)!r} marks missing text by pandas.NA, which scikit-learn does not read; "
                "convert it with .astype('str')"
            )
        absent = [None, np.nan] if marks else [np.nan]
    return np.array(sorted(frequent[:MAX_VALUES]) + absent, dtype=object)


def _counted(X: Rows, position: int) -> Counter[str]:
    """Count how often each text of a column occurs."""
    return Counter(value for value in texts(column(X, position)) if value is not None)


def _often(counts: Counter[str], rows: int) -> list[str]:
    """Return the texts that are not rare among so many rows."""
    least = max(RARE_ROWS, RARE_SHARE * rows)
    return [value for value, count in counts.items() if count >= least]


def refuse_without_text(pool: Rows, text: Sequence[str]) -> None:
    """Refuse columns of the public pool that are named as running text and are none, or lack a text in some row, which
    would be taken for an empty one.
    """
    if not is_frame(pool):
        raise InvalidParameter(
            f"{named('text')} names columns of a table, and the public pool is an array; give a data frame"
        )
    kinds = families(pool)
    places = {name: place for place, name in enumerate(kinds)}
    for name in text:
        if kinds.get(name) != "text":
            held = "is not there" if name not in kinds else f"holds no text, but {kinds[name]}"
            said = f"{named('text')}: column {name!r} of the public pool {held}"
            raise InvalidParameter(f"{said}; name columns of running text")
        if any(cell is None for cell in texts(column(pool, places[name]))):
            raise lacks_text(name)


def lacks_text(name: str) -> DataRefused:
    """Return what is said of a column of running text that lacks one."""
    return DataRefused(f"public: column {name!r} lacks a text in some rows; drop those rows of the pool")
