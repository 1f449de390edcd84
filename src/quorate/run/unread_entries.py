"""Public columns of numbers or dates that some entries keep from being read as such; each may be quoted.

Functions of the public pool alone, for whoever says so: `init`, `check` and a fit.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from quorate.data.column_kinds import MISSING_MARKS, ColumnKinds
from quorate.data.columns import column, families, texts
from quorate.data.dialect_of_table import NEARLY_ALL, date_orders
from quorate.data.notation import are_dates, comma_number, has_thousands, text_kind, time_reader, written_number
from quorate.data.rows import Rows

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
