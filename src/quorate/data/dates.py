"""Which text columns of a public table hold dates or times; private columns are never looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quorate.data.columns import column, families
from quorate.data.rows import Rows

_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?( ?(z|utc|[+-]\d{2}:?\d{2}))?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = (
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}",
    r"\d{1,2}([-/.])\d{1,2}\1(\d{4}|\d{2})",
    rf"\d{{1,2}}[-. ]{_MONTH}[-. ]\d{{2,4}}",
    rf"{_MONTH} \d{{1,2}},? \d{{4}}",
)
_DATED = tuple(re.compile(rf"{date}([t ,]+{_TIME})?", re.IGNORECASE) for date in _DATE)
_TIMED = re.compile(_TIME, re.IGNORECASE)
_LOOKED_AT = 1_000  # different texts of a column


def date_like(public: Rows) -> list[str]:
    """Name the text columns of a public frame in which every entry that is there is a date or a time.

    Examples
    --------
    >>> import polars
    >>> date_like(polars.DataFrame({"seen": ["2024-03-01", None], "ward": ["north", "1.2"], "code": ["1-2", "3-4"]}))
    ['seen']
    """
    return [
        name
        for position, (name, family) in enumerate(families(public).items())
        if family == "text" and are_dates(_texts(public, position))
    ]


def _texts(public: Rows, position: int) -> list[str]:
    series = column(public, position)
    present = series.dropna() if hasattr(series, "dropna") else series.drop_nulls()
    return [str(each).strip() for each in list(present.unique())[:_LOOKED_AT]]


def are_dates(texts: Sequence[str]) -> bool:
    """Tell whether each of these texts is a date or a time, in any common way of writing one.

    Examples
    --------
    >>> are_dates(["01/03/2024", "1 Mar 2024"]), are_dates(["soon"])
    (True, False)
    """
    return bool(texts) and all(
        _TIMED.fullmatch(text) or any(dated.fullmatch(text) for dated in _DATED) for text in texts
    )
