"""What the public rows tell of a set-up before the budget is spent: too few of them, columns that say nothing.

Functions of the public pool alone. What they say of it, they would say whatever the private rows are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate.data import is_frame
from quorate.data.column_kinds import MISSING_MARKS, ColumnKinds
from quorate.data.columns import column, families, in_words, texts
from quorate.data.dates import date_like
from quorate.data.decimal_commas import comma_number, has_thousands
from quorate.data.encoding import without_frequent_texts
from quorate.data.images import image_columns
from quorate.data.rows import Rows
from quorate.data.written_numbers import written_number
from quorate.outcomes import Caution, Severity, caution

COLUMNS_OF_DATES = "columns-of-dates"
COLUMNS_OF_DISTINCT_TEXTS = "columns-of-distinct-texts"
DECIMAL_COMMAS = "columns-with-decimal-commas"
MARKS_IN_NUMBERS = "columns-of-numbers-with-marks"
FEW_PUBLIC_ROWS = "few-public-rows"
FEWEST_ANSWERS, FEWEST_OF_A_CLASS = 25, 5  # of which a student may tell classes apart, were there no noise
FEWEST_ROWS = 20  # in a smaller pool few texts occur twice, whatever the column holds
MOSTLY_NUMBERS = "columns-of-mostly-numbers"
ENTRIES_LOST = "columns-with-entries-that-are-no-numbers"
FEW_NUMBERS, FEW_OTHERS = 20, 5  # different entries: as few numbers may be codes, and as few others marks
MOST, NEARLY_ALL = 0.5, 0.9  # share of the entries
QUOTED = 3  # entries in a sentence
_CENSORED = re.compile(r"[<>\u2264\u2265~=]+\s*[+-]?\d")
_CURRENCY = re.compile(r"[$\u20ac\u00a3\u00a5]|\b(?:USD|EUR|GBP|CHF)\b")


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
        return tuple(made([], name) for made in (_dates, _distinct, _commas, _marks, _mostly, _unread))
    kinds = kinds or ColumnKinds()
    looked = {name for name, as_kind in kinds.kinds.items() if as_kind not in ("category", "dropped")} | kinds.asked
    dates = [each for each in date_like(pool) if each not in looked]
    marks = [each for each in numbers_with_marks(pool) if each not in looked]
    rare = [*without_frequent_texts(pool), *kinds.of("dropped")] if len(pool) >= FEWEST_ROWS else []
    mostly = [each for each in mostly_numbers(pool) if each.column not in looked | {*dates, *marks}]
    unread = [each for each in not_numbers(pool, kinds) if each.column in kinds.asked]
    rare = [
        each for each in dict.fromkeys(rare) if each not in looked | {*dates, *marks, *(of.column for of in mostly)}
    ]
    commas = [each for each in kinds.kinds if each in kinds.commas - kinds.asked]
    images = [each for each in image_columns(pool) if each in rare]
    return (
        _dates(dates, name),
        _distinct(rare, name, images),
        _commas(commas, name),
        _marks(marks, name),
        _mostly(mostly, name),
        _unread(unread, name),
    )


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
    unread = {text for text in different if math.isnan(written_number(text))}
    return bool(unread) and all(has_thousands(text) for text in unread)


@dataclass(frozen=True, slots=True)
class OtherEntries:
    """The entries of a public column that are no numbers: some of them, how they differ, and the share of numbers."""

    column: str
    numbers: float
    some: tuple[str, ...]
    written: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What the column holds, public entries quoted."""
        quoted = ", ".join(repr(each) for each in self.some)
        said = f" (numbers with {' and '.join(self.written)})" if self.written else ""
        return f"column {self.column!r}, {self.numbers:.0%} numbers: {quoted}{said}"


def mostly_numbers(pool: Rows) -> list[OtherEntries]:
    """Return the text columns of a public frame of which most entries are numbers, and the others are not.

    Different numbers have to be many, since numbers that repeat may be codes; and they have to be nine tenths of the
    entries; or the other entries few different ones, or numbers with a mark, as below a limit of detection (``<0.5``).

    Examples
    --------
    >>> import polars
    >>> crp = [f"{i / 10}" for i in range(70)] + ["<0.5"] * 30
    >>> mostly_numbers(polars.DataFrame({"crp": crp, "room": [f"{i}{'AB'[i % 2]}" for i in range(100)]}))
    [OtherEntries(column='crp', numbers=0.7, some=('<0.5',), written=())]
    """
    found = []
    for place, (name, family) in enumerate(families(pool).items()):
        if family != "text":
            continue
        counts = Counter(text for text in texts(column(pool, place)) if text and text.strip())
        numbers = [text for text in counts if not math.isnan(_plain(text))]
        others = sorted(counts.keys() - set(numbers))
        share = sum(counts[text] for text in numbers) / max(1, counts.total())
        marked = {text: how for text in counts if (how := _marked_how(text))}
        as_meant = len(numbers) + len(marked.keys() & others)
        if marked and as_meant >= NEARLY_ALL * len(counts) and as_meant > FEW_NUMBERS:
            written = tuple(sorted(set(marked.values())))
            found.append(OtherEntries(name, share, _some(counts, marked), written))
        elif others and len(numbers) > FEW_NUMBERS and share >= MOST:
            censored = sum(counts[text] for text in others if _CENSORED.match(text.strip()))
            if share >= NEARLY_ALL or len(others) <= FEW_OTHERS or share + censored / counts.total() >= NEARLY_ALL:
                found.append(OtherEntries(name, share, _some(counts, others)))
    return found


def not_numbers(pool: Rows, kinds: ColumnKinds) -> list[OtherEntries]:
    """Return the columns of a public frame that are read as numbers and hold other entries, which count as missing.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"crp": ["1.5", "trace", "n/a", "2"]})
    >>> not_numbers(pool, ColumnKinds({"crp": "number"}, asked=frozenset({"crp"})))
    [OtherEntries(column='crp', numbers=0.5, some=('trace',), written=())]
    """
    found = []
    for place, (name, family) in enumerate(families(pool).items()):
        if family != "text" or kinds.kinds.get(name) != "number":
            continue
        counts = Counter(text for text in texts(column(pool, place)) if text and text.strip())
        read = comma_number if name in kinds.commas else written_number
        numbers = sum(times for text, times in counts.items() if not math.isnan(read(text)))
        others = [text for text in counts if math.isnan(read(text)) and text.strip().lower() not in MISSING_MARKS]
        if others:
            found.append(OtherEntries(name, numbers / counts.total(), _some(counts, others)))
    return found


def _plain(text: str) -> float:
    number = written_number(text)
    return comma_number(text) if math.isnan(number) else number


def _marked_how(text: str) -> str | None:
    """Say what keeps a number from being read as one, where something does that a person reads over."""
    bare = text.strip()
    if math.isnan(_plain(bare)):
        for how, without in (
            ("a minus sign that is no hyphen (U+2212)", bare.replace("\N{MINUS SIGN}", "-")),
            ("a percent sign", bare.removesuffix("%").rstrip()),
            ("a currency", _CURRENCY.sub("", bare).strip()),
        ):
            if without != bare and not math.isnan(_plain(without)):
                return how
        return None
    return "blanks around them" if bare != text else None


def _some(counts: Counter[str], chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the most frequent of some entries, to be quoted."""
    return tuple(sorted(chosen, key=lambda text: (-counts[text], text))[:QUOTED])


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


def _mostly(columns_: Sequence[OtherEntries], pool: str) -> Caution:
    words = (
        f"most entries of {in_words([each.column for each in columns_])} of {pool} are numbers, and each is taken as a "
        f"word of its own, since not all are plain ones: {'; '.join(each.words for each in columns_)}. Write plain "
        "numbers (12.5) in all tables"
    )
    if all(each.numbers for each in columns_):  # else none could be read, and to name it so is refused
        words += "; or name such a column as numeric, and what is no number counts as missing"
    return caution(MOSTLY_NUMBERS, Severity.WARNING, words if columns_ else None)


def _unread(columns_: Sequence[OtherEntries], pool: str) -> Caution:
    words = (
        f"entries of {in_words([each.column for each in columns_])} of {pool} are no numbers and count as missing, "
        f"there and in the private table: {'; '.join(each.words for each in columns_)}"
    )
    return caution(ENTRIES_LOST, Severity.WARNING, words if columns_ else None)
