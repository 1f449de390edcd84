"""The public pool: unlabelled rows that anyone may see."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.columns import check_features
from quorate.data.rows import Kind, Rows, columns, image_shape, kind, n_rows, width
from quorate.errors import DataRefused


class PublicPool:
    """Public unlabelled rows, handed to ``fit`` beside the private data.

    The pool has no length, no shape, no items and no array protocol. Model selection slices whatever looks as
    long as `X` among the parameters of ``fit``; a pool with as many rows as the private table would be cut along
    private folds without a word. Nothing can slice this one.

    Parameters
    ----------
    X : (n_points, n_features) array-like, sparse matrix, pandas or polars DataFrame; or (n_points,) texts
        Features only. An array of images, ``(n_points, h, w)`` or ``(n_points, h, w, c)``, is one of their pixels.
        NaN may stand in arrays, infinity may not.
    text, categorical, numeric, dates, drop : sequence of str, optional
        Names of columns that are to be read as running text, categories, numbers or dates and times, or left out,
        whatever the rule makes of the pool (:func:`quorate.data.column_kinds`). They hold for the private rows as well.

    Raises
    ------
    DataRefused
        If `X` is not a table of features.
    InvalidParameter
        If a column is named that is not there, or twice.

    Notes
    -----
    Privacy: rows in the pool are published, in effect. A private row must not be among them.

    Examples
    --------
    >>> pool = PublicPool([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> pool
    PublicPool(3 rows, 2 columns)
    >>> pool.n_rows
    3
    """

    __slots__ = ("_given", "_rows", "_shape")

    def __init__(
        self,
        X: Any,
        *,
        text: Sequence[str] = (),
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        dates: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> None:
        self._rows: Rows = X.rows() if isinstance(X, PublicPool) else check_features(X, "public", allow_missing=True)
        self._shape: tuple[int, ...] | None = X.image_shape if isinstance(X, PublicPool) else image_shape(X)
        named = GivenKinds.of(text=text, categorical=categorical, numeric=numeric, dates=dates, drop=drop)
        self._given: GivenKinds = X.given if isinstance(X, PublicPool) and not named.named else named
        if named.named:
            column_kinds(self._rows, named)  # refuses what cannot be

    @classmethod
    def described(cls, X: Any, given: GivenKinds) -> PublicPool:
        """Return public rows with all that their owner says of them; also how numbers and dates are written."""
        pool = cls(X)
        pool._given = given
        column_kinds(pool.rows(), given)  # refuses what cannot be
        return pool

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of one image, where the rows came as an array of images."""
        return self._shape

    def refuse_images(self, X: Any) -> None:
        """Refuse an array of images beside rows that came as a table, for which its pixels would be columns."""
        shape = None if self._shape else image_shape(X)
        if shape is not None:
            raise DataRefused(
                f"X: got an array of {len(shape) + 1} dimensions, as images are, and the public pool is a 2-D table; "
                "give X one row of numbers for each record, or images to PublicPool too"
            )

    @property
    def given(self) -> GivenKinds:
        """What the owner says of columns."""
        return self._given

    def rows(self) -> Rows:
        """Return the rows, in the container they came in.

        Examples
        --------
        >>> PublicPool([[1.0, 2.0]]).rows().tolist()
        [[1.0, 2.0]]
        """
        return self._rows

    @property
    def n_rows(self) -> int:
        """Number of public points."""
        return n_rows(self._rows)

    @property
    def width(self) -> int:
        """Number of features."""
        return width(self._rows)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the features, where the rows came in a frame."""
        return columns(self._rows)

    @property
    def kind(self) -> Kind:
        """Container of the rows: ``numpy``, ``sparse``, ``pandas`` or ``polars``."""
        return kind(self._rows)

    def __repr__(self) -> str:
        return f"PublicPool({self.n_rows} rows, {self.width} columns)"

    def _repr_html_(self) -> str:
        names = "" if self.columns is None else ": " + escape(", ".join(self.columns))
        return f"<p><b>PublicPool</b>, {self.kind}: {self.n_rows} public rows, {self.width} columns{names}</p>"
