"""Which columns an estimator was fitted on, as scikit-learn names them; and pairs of rows and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data.rows import columns, holds_texts
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
        return bool(X) and not any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in X)
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
