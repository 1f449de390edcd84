"""What the public rows tell of a set-up before the budget is spent: too few of them, columns that say nothing, columns
of numbers or dates that some entries keep from being read as such; each public entry may be quoted.

Functions of the public pool alone. What they say of it, they would say whatever the private rows are.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from quorate.data import PrivateRecords, is_frame
from quorate.data.column_kinds import ALL_DIFFERENT, MISSING_MARKS, ColumnKinds
from quorate.data.columns import column, families, in_words, texts
from quorate.data.declared_schema import bounds_as_texts
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.dialect_of_table import NEARLY_ALL, date_orders
from quorate.data.encoding import without_frequent_texts
from quorate.data.images import image_columns
from quorate.data.notation import are_dates, comma_number, has_thousands, text_kind, time_reader, written_number
from quorate.data.rows import Rows
from quorate.data.unit_ids import likely_units
from quorate.errors import named
from quorate.findings import Finding, Severity, caution

COLUMNS_OF_DATES = "columns-of-dates"
COLUMNS_OF_DISTINCT_TEXTS = "columns-of-distinct-texts"
LIKELY_UNIT = "column-that-may-be-the-unit"
DECIMAL_COMMAS = "columns-with-decimal-commas"
MARKS_IN_NUMBERS = "columns-of-numbers-with-marks"
FEW_PUBLIC_ROWS = "few-public-rows"
CALIBRATES_TWICE = "calibration-rows-used-twice"
COARSE_MARGINALS = "coarse-marginals"
BOUNDS_ARE_TEXTS = "bounds-are-texts"
BEGUN_WITHOUT_MARGINALS = "begun-without-marginals"
LEAST_RESOLUTION = 2.0  # below, not even the halves of a range can be told apart
FEWEST_ANSWERS, FEWEST_OF_A_CLASS = 25, 5  # of which a student may tell classes apart, were there no noise
FEWEST_ROWS = 20  # in a smaller pool few texts occur twice, whatever the column holds
MOSTLY_NUMBERS = "columns-of-mostly-numbers"
ENTRIES_LOST = "columns-with-entries-that-are-no-numbers"
OF_WRITING = (COLUMNS_OF_DATES, MARKS_IN_NUMBERS, MOSTLY_NUMBERS)  # of how public cells are written

FEW_NUMBERS, FEW_OTHERS = 20, 5  # different entries: as few numbers may be codes, and as few others marks
MOST = 0.5  # share of the entries
_LOOKED_AT = 1_000  # different entries of a column, by which most are told to hold no dates
QUOTED = 3  # entries in a sentence
_PERCENT, _MONEY = "a percent sign", "a currency"  # numbers with which a column named numeric is refused
_NO_DAY = re.compile(r"\b0+([./-])0+\1|([./-])0+\2")  # 00.00.0000 stands for no date
_SHORT_YEAR = re.compile(r"\s*\d{1,2}([./-])\d{1,2}\1\d\d(?!\d)", re.ASCII)
_CENSORED = re.compile(r"[<>\u2264\u2265~=]+\s*[+-]?\d")
_WORDS: Final = ("category", "text", "dropped")  # kinds in which an entry is no number and no date
Counted: TypeAlias = tuple[str, Counter[str]]
_CURRENCY = re.compile(r"[$\u20ac\u00a3\u00a5]|\b(?:USD|EUR|GBP|CHF)\b")


def pool_cautions(pool: Rows, name: str, *, kinds: ColumnKinds | None = None) -> tuple[Finding, ...]:
    """Look for text columns of public rows that are dates, numbers with marks, or of nearly as many texts as rows."""
    if not is_frame(pool):
        return tuple(f([], name) for f in (_dates, _distinct, _commas, _marks, _mostly, _unread))
    kinds = kinds or ColumnKinds()
    looked = {name for name, as_kind in kinds.kinds.items() if as_kind not in ("category", "dropped")} | kinds.asked
    dates = mostly_dates(pool, kinds)
    dated = {entries.column for entries in dates}
    marks = [name for name in numbers_with_marks(pool) if name not in looked]
    rare = [*without_frequent_texts(pool), *kinds.of("dropped")] if len(pool) >= FEWEST_ROWS else []
    ids = likely_units(pool)  # asked about by another caution, where nobody is the unit
    mostly = [entries for entries in mostly_numbers(pool, kinds) if entries.column not in {*dated, *marks}]
    unread = [entries for entries in not_as_named(pool, kinds) if entries.column in kinds.asked]
    rare = [
        name
        for name in dict.fromkeys(rare)
        if name not in looked | {*dated, *marks, *ids, *(of.column for of in mostly)}
    ]
    commas = [name for name in kinds.kinds if name in kinds.commas - kinds.asked]
    images = [name for name in image_columns(pool) if name in rare]
    return (
        _dates(dates, name, kinds.dialect),
        _distinct(
            rare, name, images, repeating=[name for name, apart in tell_rows_apart(pool, rare).items() if not apart]
        ),
        _commas(commas, name),
        _marks(marks, name),
        _mostly(mostly, name),
        _unread(unread, name),
    )


def unit_caution(pool: Rows, *, left_out: Sequence[str] = ()) -> Finding:
    """Look for columns that may say whose row it is, where the guarantee is for one row."""
    names = list(likely_units(pool, left_out))
    words = (
        f"is {in_words(names)} [data] unit (groups= in Python)? One person may have several rows, and the guarantee is "
        "for one row: named there, it is for a person with all rows. Where each person has one row, all is well"
    )
    return caution(LIKELY_UNIT, Severity.WARNING, words if names else None)


def tell_rows_apart(pool: Rows, names: Iterable[str]) -> dict[str, bool]:
    """Tell of each column whether almost every row has a text of its own in it."""
    places = {name: place for place, name in enumerate(families(pool))}
    apart = {}
    for name in names:
        entries = [text for text in texts(column(pool, places[name])) if text and text.strip()]
        apart[name] = len(set(entries)) >= ALL_DIFFERENT * len(entries)
    return apart


def few_rows_caution(n_public: int, n_classes: int, *, learns: str) -> Finding:
    """Look whether there are too few different public rows for what `learns` from them; `n_classes`: 0 of a number."""
    needed = max(FEWEST_ANSWERS, FEWEST_OF_A_CLASS * n_classes)
    rows = f"are {n_public:,} different public rows" if n_public > 1 else "is one public row"
    learns = learns if n_public > 1 else learns.replace(" their ", " its ")
    target = f"{n_classes:,} classes" if n_classes else "a number"
    words = (
        f"there {rows}, and {learns}: for {target} {needed:,} are few, and hundreds are better. Give more "
        "rows that may be shown"
    )
    return caution(FEW_PUBLIC_ROWS, Severity.WARNING, words if n_public < needed else None)


def coarse_marginals_caution(resolution: float, n_columns: int) -> Finding:
    """Look whether noise hides what a pool is to be drawn from: no half of a column's range could be told from none.
    `resolution`: n₀/(3 σ) of the noisiest column.
    """
    words = (
        f"the noisy counts of {n_columns:,} columns will tell next to nothing: to be believed, a count must be "
        f"{1 / resolution:.1f} times the number of units, so that rows are drawn evenly within the bounds. Drop "
        "columns, give tighter bounds, or give public rows"
    )
    return caution(COARSE_MARGINALS, Severity.WARNING, words if resolution < LEAST_RESOLUTION else None)


def bounds_as_texts_caution(declared: Mapping[str, Any]) -> Finding:
    """Look whether a schema lists two texts that were probably meant as bounds, so that no cell is one of them."""
    return caution(BOUNDS_ARE_TEXTS, Severity.WARNING, "; ".join(bounds_as_texts(declared)) or None)


def calibrates_twice_caution(
    rows: Rows, others: Mapping[str, Rows | None], name: str, *, kinds: ColumnKinds | None = None
) -> Finding:
    """Look whether public rows that calibrate a model are used for something else, too, as one of the `others`."""
    twice = [of for of, held in others.items() if held is not None and PrivateRecords(held, kinds).are_in(rows)]
    words = (
        f"some rows of {name} are also in {' and '.join(twice)}. A model does better on rows that it was fitted to, so "
        "coverage and temperature would come out too optimistic, and a score on calibration rows is not one on new "
        "rows. Give calibration rows that are used for nothing else"
    )
    return caution(CALIBRATES_TWICE, Severity.WARNING, words if twice else None)


def begun_without_marginals_caution(*, goes_on: bool) -> Finding:
    """Look whether a run goes on that was charged without noisy marginals, where nothing is said of them now."""
    words = (
        "the ledger holds a run of these data that was begun without noisy counts of the columns (marginals = 0) and "
        "is otherwise the same: it goes on as it was charged, and nothing is charged again. Say marginals = 0 where "
        "that is meant; for another release, which is charged, a share such as marginals = 0.1"
    )
    return caution(BEGUN_WITHOUT_MARGINALS, Severity.WARNING, words if goes_on else None)


def _distinct(names: list[str], pool: str, images: Sequence[str] = (), *, repeating: Sequence[str] = ()) -> Finding:
    distinct = [name for name in names if name not in repeating]
    reasons = []
    if distinct:
        reasons.append(
            f"nothing is learned from {in_words(distinct)} of {pool}: almost every row has a text of its own there, as "
            f"names and ids have, and they share no words. {_write('drop', quoted(distinct))}, or text "
            "in place of drop where it is running text all the same"
        )
    if repeating:
        reasons.append(
            f"nothing is learned from {in_words(list(repeating))} of {pool}: entries repeat there, and none is in "
            "0.5 % of the rows and in two of them, as a category is. Join rare ones, or leave the column out"
        )
    words = ". ".join(reasons)
    if images:
        words += f". {in_words(list(images)).capitalize()} names files of images: name their folder as images"
    return caution(COLUMNS_OF_DISTINCT_TEXTS, Severity.WARNING, words if names else None)


def _commas(names: list[str], pool: str) -> Finding:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} numbers with a decimal comma (3,5), and "
        "the comma is read as a point in all tables. Where they are no numbers, name the column as categorical"
    )
    return caution(DECIMAL_COMMAS, Severity.NOTE, words if names else None)


def _marks(names: list[str], pool: str) -> Finding:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} numbers with marks between digits, as "
        "1,234 has, and each is taken as a word of its own: the mark may be a decimal one, or of thousands. In "
        "a folder say what they mean by decimal and thousands under [data]; or write plain numbers (1234 or 1.234) in "
        "all tables; or name the column as numeric, and a comma is the decimal mark"
    )
    return caution(MARKS_IN_NUMBERS, Severity.WARNING, words if names else None)


def _dates(dated: Sequence[DateEntries], pool: str, dialect: Dialect = PLAIN) -> Finding:
    names = [of.column for of in dated]
    ways: dict[str, list[DateEntries]] = {}  # by the words of the remedy, which columns
    for of in dated:
        ways.setdefault(_way_to_read(of, dialect), []).append(of)
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} dates or times as text, and each is "
        "taken as a word of its own, so that a date that is new means nothing"
    )
    for way, those in ways.items():
        if way:
            columns_ = f"{in_words([of.column for of in those])}: " * (len(ways) > 1)
            way = way.format(example=next((repr(of.example) for of in those if of.example), ""))
            words += f". {columns_}{way if columns_ else way[0].upper() + way[1:]}"
    if others := [of for of in dated if of.some and not of.short_years]:
        words += (
            f". Not every entry is a date: {'; '.join(of.words for of in others)}. "
            f"{_write('dates', quoted(of.column for of in others))}, and such an entry counts as missing"
        )
    return caution(COLUMNS_OF_DATES, Severity.WARNING, words if names else None)


def _way_to_read(of: DateEntries, dialect: Dialect) -> str:
    """Return what to write so that dates such as {example} are read; "" where they are, but for other entries."""
    plain = "write dates as ISO 8601 in all tables (2024-03-01, 2024-03-01T12:30), or leave the column out"
    if of.short_years:
        return (
            "years of two digits, such as in {example}, do not tell the century and are not read: write all four in "
            "all tables, or leave the column out"
        )
    if of.is_read or dialect.date_format in of.orders:
        return ""
    if of.orders and dialect.date_format:
        return f'they are not written as date_format = "{dialect.date_format}" says: {plain}'
    if of.orders:
        lines = " or ".join(f'date_format = "{order}"' for order in of.orders)
        open_ = "entries such as {example} do not show whether the day or the month comes first: " * (
            len(of.orders) > 1
        )
        return f"{open_}{'in a folder ' * (not _in_folder())}write {lines} under [data]; or {plain}"
    return plain


def _in_folder() -> bool:
    """Whether whoever reads this acts in a folder, where keys are of ``quorate.toml``."""
    return named("date_format").startswith("[")


def _write(key: str, names: str) -> str:
    """Say which line makes columns be read otherwise; ``quorate init`` has it in the new file behind a #."""
    line = f"{key} = [{names}]"
    if named(key).startswith("#"):
        return f"Take away the # before {line} in quorate.toml"
    return f"Write {line} {'under [data]' if _in_folder() else '(in a folder under [data])'}"


def _mostly(columns_: Sequence[OtherEntries], pool: str) -> Finding:
    numeric = quoted(of.column for of in columns_ if is_read_as_numeric(of))
    line = f"{_write('numeric', numeric)}, and such an entry counts as missing; or w" if numeric else "W"
    words = (
        f"most entries of {in_words([of.column for of in columns_])} of {pool} are numbers, and each is taken as a "
        f"word of its own, since some are no plain numbers: {'; '.join(of.words for of in columns_)}. "
        f"{line}rite plain numbers (12.5) in all tables. {_missing()}"
    )
    return caution(MOSTLY_NUMBERS, Severity.WARNING, words if columns_ else None)


def _unread(columns_: Sequence[OtherEntries], pool: str) -> Finding:
    words = (
        f"some entries of {in_words([of.column for of in columns_])} of {pool} are no numbers, or no dates, and count "
        f"as missing, there and in the private table: {'; '.join(of.words for of in columns_)}. {_missing()}"
    )
    return caution(ENTRIES_LOST, Severity.WARNING, words if columns_ else None)


def _missing() -> str:
    """Say where such entries are declared, so that nothing is said of them."""
    return f"{'[data] missing' if _in_folder() else 'In a folder [data] missing'} lists what stands for a missing value"


def numbers_with_marks(pool: Rows) -> list[str]:
    """Name the text columns of a public frame whose entries are numbers with thousands, so that none is read as one."""
    marked = []
    for place, (name, family) in enumerate(families(pool).items()):
        different = {text for text in texts(column(pool, place)) if text and text.strip()} if family == "text" else ()
        unread = {text for text in different if math.isnan(written_number(text))}
        if unread and all(has_thousands(text) for text in unread):
            marked.append(name)
    return marked


@dataclass(frozen=True, slots=True)
class OtherEntries:
    """The entries of a public column that are not what most of them are: how many of how many, and some of them."""

    column: str
    others: int
    entries: int
    some: tuple[str, ...]
    written: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """How many rows have them, public entries quoted."""
        quoted = ", ".join(repr(entry) for entry in self.some)
        said = f" (numbers with {' and '.join(self.written)})" if self.written else ""
        return f"{self.others:,} of {self.entries:,} in {self.column!r}, such as {quoted}{said}"


@dataclass(frozen=True, slots=True)
class DateEntries(OtherEntries):
    """Those of a column of dates. `orders`: of day and month that fit its dates. `example`: a date of two readings, or
    with a year of two digits. `is_read`: whether the dates are read as they are.
    """

    orders: tuple[str, ...] = ()
    example: str = ""
    short_years: bool = False
    is_read: bool = False


def mostly_dates(pool: Rows, kinds: ColumnKinds) -> list[DateEntries]:
    """Return the text columns of a public frame of which nearly all entries are dates, and that are read otherwise."""
    dated = []
    for name, counts in _text_columns(pool, kinds):
        first = [text.strip() for text in list(counts)[:_LOOKED_AT]]
        if sum(are_dates([text]) for text in first) < MOST * len(first):
            continue
        looks = [text for text in counts if are_dates([text.strip()]) and not _NO_DAY.search(text)]
        said = [text for text in looks if text_kind([text.strip()], kinds.dialect.date)]
        nearly = NEARLY_ALL * counts.total()
        is_read = bool(said) and sum(counts[text] for text in said) >= nearly
        dates = said if is_read else looks  # the 31st of February looks like a date
        n_dates = sum(counts[text] for text in dates)
        if dates and n_dates >= nearly:
            orders, short = date_orders(dates), all(_SHORT_YEAR.match(text) for text in dates)
            example = dates[0] if short or len(orders) > 1 else ""
            others = _some(counts, counts.keys() - set(dates))
            lost = counts.total() - n_dates
            dated.append(DateEntries(name, lost, counts.total(), others, (), orders, example, short, is_read))
    return dated


def _text_columns(pool: Rows, kinds: ColumnKinds, *, read_as: Container[str] = _WORDS) -> Iterator[Counted]:
    """Yield the text columns of a public frame that are read so, with how often each entry that is there occurs; those
    that are words by the public rule alone, if nothing is said.
    """
    for place, (name, family) in enumerate(families(pool).items()):
        is_asked = read_as is _WORDS and name in kinds.asked
        if family == "text" and kinds.kinds.get(name, "category") in read_as and not is_asked:
            yield name, Counter(text for text in texts(column(pool, place)) if text and text.strip())


def mostly_numbers(pool: Rows, kinds: ColumnKinds) -> list[OtherEntries]:
    """Return the text columns of a public frame of which most entries are numbers, and the others are not, so that they
    are read as words. Different numbers have to be many, since numbers that repeat may be codes; and nine tenths of the
    entries, or beside few different others, or numbers with a mark (``<0.5``).
    """
    mixed = []
    read = kinds.dialect.number if kinds.dialect.declares_numbers else _plain
    for name, counts in _text_columns(pool, kinds):
        numbers = [text for text in counts if not math.isnan(read(text))]
        others = sorted(counts.keys() - set(numbers))
        total = counts.total()
        share = sum(counts[text] for text in numbers) / max(1, total)
        marked = {text: how for text in counts if (how := _marked_how(text, read))}
        as_meant = len(numbers) + len(marked.keys() & others)
        if marked and as_meant >= NEARLY_ALL * len(counts) and as_meant > FEW_NUMBERS:
            written = tuple(sorted(set(marked.values())))
            unlike = sum(counts[text] for text in {*marked, *others})
            mixed.append(OtherEntries(name, unlike, total, _some(counts, marked), written))
        elif others and len(numbers) > FEW_NUMBERS and share >= MOST:
            censored = sum(counts[text] for text in others if _CENSORED.match(text.strip()))
            if share >= NEARLY_ALL or len(others) <= FEW_OTHERS or share + censored / total >= NEARLY_ALL:
                mixed.append(OtherEntries(name, sum(counts[text] for text in others), total, _some(counts, others)))
    return mixed


def not_as_named(pool: Rows, kinds: ColumnKinds) -> list[OtherEntries]:
    """Return the columns that are read as numbers, dates or times and hold other entries, which count as missing."""
    mixed = []
    for name, counts in _text_columns(pool, kinds, read_as=("number", "date", "time")):
        kind = kinds.kinds[name]
        read = partial(kinds.number, name) if kind == "number" else time_reader(kind, kinds.dialect.date)
        others = [text for text in counts if math.isnan(read(text)) and text.strip().lower() not in MISSING_MARKS]
        if others:
            mixed.append(
                OtherEntries(name, sum(counts[text] for text in others), counts.total(), _some(counts, others))
            )
    return mixed


def is_read_as_numeric(of: OtherEntries) -> bool:
    """Whether a column may be named numeric: one of money or percentages is refused."""
    return not {_PERCENT, _MONEY} & {*of.written}


def _plain(text: str) -> float:
    number = written_number(text)
    return comma_number(text) if math.isnan(number) else number


def _marked_how(text: str, read: Callable[[str], float]) -> str | None:
    """Say what keeps a number from being read as one, where something does that a person reads over."""
    bare = text.strip()
    if math.isnan(read(bare)):
        for how, without in (
            ("a minus sign that is no hyphen (U+2212)", bare.replace("\N{MINUS SIGN}", "-")),
            (_PERCENT, bare.removesuffix("%").rstrip()),
            (_MONEY, _CURRENCY.sub("", bare).strip()),
        ):
            if without != bare and not math.isnan(read(without)):
                return how
        return None
    return "blanks around them" if bare != text else None


def quoted(names: Iterable[str]) -> str:
    """Return names as they stand in a list of TOML and of Python."""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)


def _some(counts: Counter[str], chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the most frequent of some entries, to be quoted."""
    return tuple(sorted(chosen, key=lambda text: (-counts[text], text))[:QUOTED])


def proposed_lines(pool: Rows, kinds: ColumnKinds) -> dict[str, Any]:
    """Return what of a public frame is to be declared so that its cells are read, by the keys of ``[data]``."""
    dated = mostly_dates(pool, kinds)
    of_dates = {of.column for of in dated}
    mostly = [of for of in mostly_numbers(pool, kinds) if is_read_as_numeric(of) and of.column not in of_dates]
    lines = {
        "numeric": [of.column for of in mostly],
        "dates": [of.column for of in dated if of.some and not of.short_years],
    }
    return {key: value for key, value in lines.items() if value}
