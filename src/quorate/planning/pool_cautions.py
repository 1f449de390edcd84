"""What the public rows tell of a set-up before the budget is spent: columns of which the encoder makes nothing.

Functions of the public pool alone. What they say of it, they would say whatever the private rows are.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.data import is_frame
from quorate.data.columns import listed
from quorate.data.dates import date_like
from quorate.data.encoding import without_frequent_texts
from quorate.data.rows import Rows
from quorate.outcomes import Caution, Severity, caution

COLUMNS_OF_DATES = "columns-of-dates"
COLUMNS_OF_DISTINCT_TEXTS = "columns-of-distinct-texts"
FEWEST_ROWS = 20  # in a smaller pool few texts occur twice, whatever the column holds


def pool_cautions(pool: Rows, name: str, *, read_as_text: Sequence[str] = ()) -> tuple[Caution, Caution]:
    """Look for text columns of public rows that are dates, or that hold nearly as many texts as there are rows.

    Parameters
    ----------
    pool : Rows
        The public rows, which the public encoder turns into numbers.
    name : str
        What they are called.
    read_as_text : sequence of str
        Columns whose words are read one by one, and which the encoder does not see.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"seen": ["2024-03-01", "2024-03-02"] * 15, "note": [f"case {i}" for i in range(30)]})
    >>> [each.code for each in pool_cautions(pool, "public.csv") if each.applies]
    ['columns-of-dates', 'columns-of-distinct-texts']
    """
    if not is_frame(pool):
        return _dates([], name), _distinct([], name)
    dates = [each for each in date_like(pool) if each not in read_as_text]
    rare = without_frequent_texts(pool) if len(pool) >= FEWEST_ROWS else []
    return _dates(dates, name), _distinct([each for each in rare if each not in (*dates, *read_as_text)], name)


def _dates(names: list[str], pool: str) -> Caution:
    words = (
        f"{_some(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} dates or times as text, and "
        "each is taken as a word of its own, so that a date that is new means nothing. Turn them into numbers in all "
        "tables, such as days since a fixed date, the month or the hour, or leave them out"
    )
    return caution(COLUMNS_OF_DATES, Severity.WARNING, words if names else None)


def _distinct(names: list[str], pool: str) -> Caution:
    words = (
        f"nothing is learned from {_some(names)} of {pool}: almost every row has a text of its own there, as names, "
        "ids and running text have, and each text is one category. Turn the column into categories or numbers in all "
        "tables, use a model that reads running text, or leave the column out"
    )
    return caution(COLUMNS_OF_DISTINCT_TEXTS, Severity.WARNING, words if names else None)


def _some(names: list[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {listed(names)}"
