"""Which columns an estimator was fitted on, as scikit-learn names them; and pairs of rows and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data.columns import in_words
from quorate.data.rows import columns, holds_texts, with_text_names
from quorate.errors import DataRefused, InvalidParameter


def note_columns(estimator: Any, rows: Any) -> None:
    """Set ``n_features_in_``, and ``feature_names_in_`` where the columns have names, as texts.

    Examples
    --------
    >>> import polars
    >>> from types import SimpleNamespace
    >>> of_a_frame = SimpleNamespace()
    >>> note_columns(of_a_frame, polars.DataFrame({"age": [39], "sex": ["F"]}))
    >>> of_a_frame.n_features_in_, of_a_frame.feature_names_in_.tolist()
    (2, ['age', 'sex'])
    """
    estimator.n_features_in_ = int(rows.shape[1])
    if names := columns(rows):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):  # of an earlier fit
        del estimator.feature_names_in_


def in_order_of_fit(estimator: Any, X: Any) -> Any:
    """Return a frame, its columns in the order of the fit where it has the same ones; anything else as it is.

    An array is made a frame where those of the fit were called by pandas' own numbers, which are places in an array.

    Examples
    --------
    >>> import polars
    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(feature_names_in_=np.array(["age", "sex"], dtype=object))
    >>> in_order_of_fit(fitted, polars.DataFrame({"sex": ["F"], "age": [39]})).columns
    ['age', 'sex']
    """
    X, names = with_text_names(X), list(getattr(estimator, "feature_names_in_", ()))
    if _are_places(names) and isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == len(names):
        import pandas as pd

        return pd.DataFrame(X, columns=names)
    given = list(getattr(X, "columns", ()))
    if names and given != names and len(given) == len(names) and set(given) == set(names):
        return X[names]
    return X


def _are_places(names: list[str]) -> bool:
    return bool(names) and names == [str(place) for place in range(len(names))]


def refuse_other_columns(estimator: Any, X: Any) -> None:
    """Refuse what is no frame, or lacks a column, where the fit was on a frame.

    Raises DataRefused naming the columns, which are public.

    Examples
    --------
    >>> import polars
    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(feature_names_in_=np.array(["age", "sex"], dtype=object))
    >>> refuse_other_columns(fitted, polars.DataFrame({"age": [39]}))
    Traceback (most recent call last):
    quorate.errors.DataRefused: X lacks column 'sex', which the fit had; give the same columns. Nothing was charged
    >>> refuse_other_columns(fitted, [[39, "F"]])
    Traceback (most recent call last):
    quorate.errors.DataRefused: X: got list, and expected a frame with columns 'age', 'sex'. Nothing was charged
    """
    X, names = with_text_names(X), list(getattr(estimator, "feature_names_in_", ()))
    if _are_places(names) and isinstance(X, np.ndarray):
        return
    if names and not hasattr(X, "columns"):
        raise DataRefused(
            f"X: got {type(X).__name__}, and expected a frame with {in_words(names)}. Nothing was charged"
        )
    missing = [name for name in names if name not in set(X.columns)]
    if missing:
        raise DataRefused(f"X lacks {in_words(missing)}, which the fit had; give the same columns. Nothing was charged")


def refuse_one_row(X: Any, *, texts: bool) -> None:
    """Refuse one text, one row or one column where a table is expected.

    `X`: what was given as rows. `texts`: whether a row is one text, so that a list of texts is a table. Raises
    DataRefused with what to write instead.

    Examples
    --------
    >>> refuse_one_row("a good film", texts=True)
    Traceback (most recent call last):
    quorate.errors.DataRefused: X: got one text, and expected a list of texts; write [text]. Nothing was charged
    >>> refuse_one_row([5.1, 3.5], texts=False)
    Traceback (most recent call last):
    quorate.errors.DataRefused: X: got one row or one column, and expected a 2-D table. Reshape your data: [row] or ...
    """
    if isinstance(X, str):
        raise DataRefused(
            "X: got one text, and expected a list of texts; write [text]. Nothing was charged"
            if texts
            else "X: got a text, and expected a 2-D table of rows; read the file first. Nothing was charged"
        )
    if _is_flat(X) and not (texts and holds_texts(X)):
        raise DataRefused(
            "X: got one row or one column, and expected a 2-D table. Reshape your data: [row] or X.reshape(1, -1) for "
            "one row, X.reshape(-1, 1) for one column. Nothing was charged"
        )


def _is_flat(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and not any(hasattr(each, "__len__") and not isinstance(each, str) for each in X)
    return getattr(X, "ndim", 0 if isinstance(X, int | float) else 2) < 2


def rows_and_labels(evaluation: Any) -> tuple[Any, Any]:
    """Take ``evaluation=``, which is a pair of rows and labels.

    Raises InvalidParameter if it is none; a table alone has no labels.

    Examples
    --------
    >>> rows_and_labels(np.zeros((2, 3)))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: evaluation must be a pair (X, y) of public rows and their labels, got ndarray; ...
    """
    if isinstance(evaluation, tuple | list) and len(evaluation) == 2:
        return evaluation[0], evaluation[1]
    raise InvalidParameter(
        f"evaluation must be a pair (X, y) of public rows and their labels, got {type(evaluation).__name__}; write "
        "evaluation=(X_public, y_public)"
    )
