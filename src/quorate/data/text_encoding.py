"""Columns of running text as weighed words, beside the other columns: fitted on the public pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.data.columns import column, families, texts
from quorate.data.encoding import public_encoder
from quorate.data.rows import Rows, is_frame
from quorate.errors import DataRefused, InvalidParameter


def text_encoder(pool: Rows, text: Sequence[str]) -> Any:
    """Fit an encoder of tables with running text on the public pool.

    Parameters
    ----------
    pool : pandas or polars frame
        Public rows; each has a text in each of the columns.
    text : sequence of str
        Names of the columns that hold running text.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        Fitted. Words as TF-IDF with logarithmic term frequencies, a block for each text column, of length one; how rare
        a word is, is read off the pool. Other columns are encoded by :func:`~quorate.data.public_encoder`. The output
        is sparse.

    Raises
    ------
    InvalidParameter
        If the pool is no frame, or a column is not one of text.
    DataRefused
        If a public row has no text, or no text has a word.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"note": ["good film", "bad film"], "stars": [5, 1]})
    >>> text_encoder(pool, ["note"]).transform(pool).toarray().round(2).tolist()
    [[1.0, 0.0, 0.58, 0.81], [-1.0, 0.81, 0.58, 0.0]]
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.frozen import FrozenEstimator

    if not is_frame(pool):
        raise InvalidParameter("text names columns of a table, and the public pool is an array; give a data frame")
    kinds = families(pool)
    for name in text:
        if kinds.get(name) != "text":
            held = "is not there" if name not in kinds else f"holds no text, but {kinds[name]}"
            raise InvalidParameter(f"text: column {name!r} of the public pool {held}; name columns of running text")
    parts: list[tuple[str, Any, Any]] = []
    rest = [name for name in kinds if name not in text]
    if rest:
        parts.append(("columns", FrozenEstimator(public_encoder(pool[rest])), rest))
    for number, name in enumerate(text):
        documents = texts(column(pool, list(kinds).index(name)))
        if any(each is None for each in documents):
            raise DataRefused(f"public: column {name!r} lacks a text in some rows; drop those rows of the pool")
        try:
            words = TfidfVectorizer(sublinear_tf=True).fit(documents)
        except ValueError:
            raise DataRefused(f"public: the texts of column {name!r} hold no words; give texts with words") from None
        parts.append((f"words{number}", FrozenEstimator(words), name))
    return ColumnTransformer(parts, sparse_threshold=1.0).fit(pool)
