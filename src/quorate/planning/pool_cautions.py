"""What the public rows tell of a set-up before the budget is spent: too few of them, columns that say nothing.

Functions of the public pool alone. What they say of it, they would say whatever the private rows are.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.data import is_frame
from quorate.data.column_kinds import ColumnKinds
from quorate.data.columns import column, families, in_words, texts
from quorate.data.dates import date_like
from quorate.data.decimal_commas import has_thousands
from quorate.data.encoding import without_frequent_texts
from quorate.data.images import image_columns
from quorate.data.rows import Rows
from quorate.outcomes import Caution, Severity, caution

COLUMNS_OF_DATES = "columns-of-dates"
COLUMNS_OF_DISTINCT_TEXTS = "columns-of-distinct-texts"
DECIMAL_COMMAS = "columns-with-decimal-commas"
MARKS_IN_NUMBERS = "columns-of-numbers-with-marks"
FEW_PUBLIC_ROWS = "few-public-rows"
FEWEST_ANSWERS, FEWEST_OF_A_CLASS = 25, 5  # of which a student may tell classes apart, were there no noise
FEWEST_ROWS = 20  # in a smaller pool few texts occur twice, whatever the column holds


def pool_cautions(pool: Rows, name: str, *, kinds: ColumnKinds | None = None) -> tuple[Caution, ...]:
    """Look for text columns of public rows that are dates, numbers with marks, or of nearly as many texts as rows.

    Parameters
    ----------
    pool : Rows
        The public rows, which the public encoder turns into numbers.
    name : str
        What they are called.
    kinds : ColumnKinds, optional
        What each column is read as; None where each text column is one of categories.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"seen": ["2024-03-01", "2024-03-02"] * 15, "note": [f"case {i}" for i in range(30)]})
    >>> [each.code for each in pool_cautions(pool, "public.csv") if each.applies]
    ['columns-of-dates', 'columns-of-distinct-texts']
    """
    if not is_frame(pool):
        return _dates([], name), _distinct([], name), _commas([], name), _marks([], name)
    kinds = kinds or ColumnKinds()
    looked = {name for name, as_kind in kinds.kinds.items() if as_kind not in ("category", "dropped")} | kinds.asked
    dates = [each for each in date_like(pool) if each not in looked]
    marks = [each for each in numbers_with_marks(pool) if each not in looked]
    rare = [*without_frequent_texts(pool), *kinds.of("dropped")] if len(pool) >= FEWEST_ROWS else []
    rare = [each for each in dict.fromkeys(rare) if each not in looked | {*dates, *marks}]
    commas = [each for each in kinds.kinds if each in kinds.commas - kinds.asked]
    images = [each for each in image_columns(pool) if each in rare]
    return _dates(dates, name), _distinct(rare, name, images), _commas(commas, name), _marks(marks, name)


def numbers_with_marks(pool: Rows) -> list[str]:
    """Name the text columns of a public frame whose entries are numbers with thousands, so that none is read as one.

    Examples
    --------
    >>> import polars
    >>> numbers_with_marks(polars.DataFrame({"price": ["1,234", "950"], "code": ["12", "13"]}))
    ['price']
    """
    return [
        name
        for place, (name, family) in enumerate(families(pool).items())
        if family == "text" and _are_marked({text for text in texts(column(pool, place)) if text and text.strip()})
    ]


def _are_marked(different: set[str]) -> bool:
    marked = {text for text in different if has_thousands(text)}
    return bool(marked) and all(text.strip().lstrip("+-").isdigit() for text in different - marked)


def few_rows_caution(n_public: int, n_classes: int, *, learns: str) -> Caution:
    """Look whether there are too few different public rows for what learns from them.

    Parameters
    ----------
    n_public : int
        Different public rows.
    n_classes : int
    learns : str
        What follows from them: a clause.

    Examples
    --------
    >>> few_rows_caution(12, 2, learns="the student learns from their noisy answers alone").words.split(":")[0]
    'there are 12 different public rows, and the student learns from their noisy answers alone'
    >>> few_rows_caution(25, 2, learns="").applies, few_rows_caution(25, 10, learns="").applies
    (False, True)
    """
    needed = max(FEWEST_ANSWERS, FEWEST_OF_A_CLASS * n_classes)
    rows = f"are {n_public:,} different public rows" if n_public > 1 else "is one public row"
    learns = learns if n_public > 1 else learns.replace(" their ", " its ")
    words = (
        f"there {rows}, and {learns}: for {n_classes:,} classes {needed:,} are few, and hundreds are better. Give more "
        "rows that may be shown"
    )
    return caution(FEW_PUBLIC_ROWS, Severity.WARNING, words if n_public < needed else None)


def _dates(names: list[str], pool: str) -> Caution:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} dates or times as text, and "
        "each is taken as a word of its own, so that a date that is new means nothing. Write them as ISO 8601 in all "
        "tables (2024-03-01, 2024-03-01T12:30), which is read as a number, or leave them out"
    )
    return caution(COLUMNS_OF_DATES, Severity.WARNING, words if names else None)


def _distinct(names: list[str], pool: str, images: Sequence[str] = ()) -> Caution:
    words = (
        f"nothing is learned from {in_words(names)} of {pool}: almost every row has a text of its own there, as names "
        "and ids have, and they share no words. Where it is running text all the same, name it as text; or leave the "
        "column out"
    )
    if images:
        words += f". {in_words(list(images)).capitalize()} names files of images: name their folder as images"
    return caution(COLUMNS_OF_DISTINCT_TEXTS, Severity.WARNING, words if names else None)


def _commas(names: list[str], pool: str) -> Caution:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} numbers with a decimal comma (3,5), and "
        "the comma is read as a point in all tables. Where they are no numbers, name the column as categorical"
    )
    return caution(DECIMAL_COMMAS, Severity.NOTE, words if names else None)


def _marks(names: list[str], pool: str) -> Caution:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} numbers with marks between digits, as "
        "1,234 has, and each is taken as a word of its own: the mark may be a decimal one, or of thousands. Write "
        "plain numbers (1234 or 1.234) in all tables; or name the column as numeric, and a comma is the decimal mark"
    )
    return caution(MARKS_IN_NUMBERS, Severity.WARNING, words if names else None)
