"""What the public rows tell of a set-up before the budget is spent: too few of them, columns that say nothing.

Functions of the public pool alone. What they say of it, they would say whatever the private rows are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quorate.data import PrivateRecords, is_frame
from quorate.data.column_kinds import ALL_DIFFERENT, MISSING_MARKS, ColumnKinds
from quorate.data.columns import column, families, in_words, texts
from quorate.data.encoding import without_frequent_texts
from quorate.data.images import image_columns
from quorate.data.notation import comma_number, date_like, has_thousands, written_number
from quorate.data.rows import Rows
from quorate.data.unit_ids import likely_units
from quorate.findings import Finding, Severity, caution

COLUMNS_OF_DATES = "columns-of-dates"
COLUMNS_OF_DISTINCT_TEXTS = "columns-of-distinct-texts"
LIKELY_UNIT = "column-that-may-be-the-unit"
DECIMAL_COMMAS = "columns-with-decimal-commas"
MARKS_IN_NUMBERS = "columns-of-numbers-with-marks"
FEW_PUBLIC_ROWS = "few-public-rows"
CALIBRATES_TWICE = "calibration-rows-used-twice"
COARSE_MARGINALS = "coarse-marginals"
BEGUN_WITHOUT_MARGINALS = "begun-without-marginals"
LEAST_RESOLUTION = 2.0  # below, not even the halves of a range can be told apart
FEWEST_ANSWERS, FEWEST_OF_A_CLASS = 25, 5  # of which a student may tell classes apart, were there no noise
FEWEST_ROWS = 20  # in a smaller pool few texts occur twice, whatever the column holds
MOSTLY_NUMBERS = "columns-of-mostly-numbers"
ENTRIES_LOST = "columns-with-entries-that-are-no-numbers"
FEW_NUMBERS, FEW_OTHERS = 20, 5  # different entries: as few numbers may be codes, and as few others marks
MOST, NEARLY_ALL = 0.5, 0.9  # share of the entries
QUOTED = 3  # entries in a sentence
_PERCENT, _MONEY = "a percent sign", "a currency"  # numbers with which a column named numeric is refused
_CENSORED = re.compile(r"[<>\u2264\u2265~=]+\s*[+-]?\d")
_CURRENCY = re.compile(r"[$\u20ac\u00a3\u00a5]|\b(?:USD|EUR|GBP|CHF)\b")


def pool_cautions(pool: Rows, name: str, *, kinds: ColumnKinds | None = None) -> tuple[Finding, ...]:
    """Look for text columns of public rows that are dates, numbers with marks, or of nearly as many texts as rows.

    `pool`: the public rows, which the public encoder turns into numbers. `name`: what they are called. `kinds`: what
    each column is read as; None where each text column is one of categories.
    """
    if not is_frame(pool):
        return tuple(caution_of([], name) for caution_of in (_dates, _distinct, _commas, _marks, _mostly, _unread))
    kinds = kinds or ColumnKinds()
    looked = {name for name, as_kind in kinds.kinds.items() if as_kind not in ("category", "dropped")} | kinds.asked
    dates = [name for name in date_like(pool) if name not in looked]
    marks = [name for name in numbers_with_marks(pool) if name not in looked]
    rare = [*without_frequent_texts(pool), *kinds.of("dropped")] if len(pool) >= FEWEST_ROWS else []
    ids = likely_units(pool)  # asked about by another caution, where nobody is the unit
    mostly = [entries for entries in mostly_numbers(pool) if entries.column not in looked | {*dates, *marks}]
    unread = [entries for entries in not_numbers(pool, kinds) if entries.column in kinds.asked]
    rare = [
        name
        for name in dict.fromkeys(rare)
        if name not in looked | {*dates, *marks, *ids, *(of.column for of in mostly)}
    ]
    commas = [name for name in kinds.kinds if name in kinds.commas - kinds.asked]
    images = [name for name in image_columns(pool) if name in rare]
    return (
        _dates(dates, name),
        _distinct(
            rare, name, images, repeating=[name for name, apart in tell_rows_apart(pool, rare).items() if not apart]
        ),
        _commas(commas, name),
        _marks(marks, name),
        _mostly(mostly, name),
        _unread(unread, name),
    )


def unit_caution(pool: Rows, *, left_out: Sequence[str] = ()) -> Finding:
    """Look for columns that may say whose row it is, where the guarantee is for one row.

    `pool`: the public rows. `left_out`: columns that are no features, and that the public rows do not have.
    """
    names = list(likely_units(pool, left_out))
    words = (
        f"is {in_words(names)} [data] unit (groups= in Python)? One person may have several rows, and the guarantee is "
        "for one row: named there, it is for a person with all rows. Where each person has one row, all is well"
    )
    return caution(LIKELY_UNIT, Severity.WARNING, words if names else None)


def tell_rows_apart(pool: Rows, names: Iterable[str]) -> dict[str, bool]:
    """Tell of each column whether almost every row has a text of its own in it.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"id": ["a", "b", "c"], "room": ["x", "x", "y"]})
    >>> tell_rows_apart(pool, ["id", "room"])
    {'id': True, 'room': False}
    """
    places = {name: place for place, name in enumerate(families(pool))}
    apart = {}
    for name in names:
        entries = [text for text in texts(column(pool, places[name])) if text and text.strip()]
        apart[name] = len(set(entries)) >= ALL_DIFFERENT * len(entries)
    return apart


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
        quoted = ", ".join(repr(entry) for entry in self.some)
        said = f" (numbers with {' and '.join(self.written)})" if self.written else ""
        return f"column {self.column!r}, {100 * self.numbers:.0f} % numbers: {quoted}{said}"


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
    mixed = []
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
            mixed.append(OtherEntries(name, share, _some(counts, marked), written))
        elif others and len(numbers) > FEW_NUMBERS and share >= MOST:
            censored = sum(counts[text] for text in others if _CENSORED.match(text.strip()))
            if share >= NEARLY_ALL or len(others) <= FEW_OTHERS or share + censored / counts.total() >= NEARLY_ALL:
                mixed.append(OtherEntries(name, share, _some(counts, others)))
    return mixed


def not_numbers(pool: Rows, kinds: ColumnKinds) -> list[OtherEntries]:
    """Return the columns of a public frame that are read as numbers and hold other entries, which count as missing.

    Examples
    --------
    >>> import polars
    >>> pool = polars.DataFrame({"crp": ["1.5", "trace", "n/a", "2"]})
    >>> not_numbers(pool, ColumnKinds({"crp": "number"}, asked=frozenset({"crp"})))
    [OtherEntries(column='crp', numbers=0.5, some=('trace',), written=())]
    """
    mixed = []
    for place, (name, family) in enumerate(families(pool).items()):
        if family != "text" or kinds.kinds.get(name) != "number":
            continue
        counts = Counter(text for text in texts(column(pool, place)) if text and text.strip())
        unread = {text for text in counts if math.isnan(kinds.number(name, text))}
        numbers = sum(times for text, times in counts.items() if text not in unread)
        others = [text for text in counts if text in unread and text.strip().lower() not in MISSING_MARKS]
        if others:
            mixed.append(OtherEntries(name, numbers / counts.total(), _some(counts, others)))
    return mixed


def _plain(text: str) -> float:
    number = written_number(text)
    return comma_number(text) if math.isnan(number) else number


def _marked_how(text: str) -> str | None:
    """Say what keeps a number from being read as one, where something does that a person reads over."""
    bare = text.strip()
    if math.isnan(_plain(bare)):
        for how, without in (
            ("a minus sign that is no hyphen (U+2212)", bare.replace("\N{MINUS SIGN}", "-")),
            (_PERCENT, bare.removesuffix("%").rstrip()),
            (_MONEY, _CURRENCY.sub("", bare).strip()),
        ):
            if without != bare and not math.isnan(_plain(without)):
                return how
        return None
    return "blanks around them" if bare != text else None


def _some(counts: Counter[str], chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the most frequent of some entries, to be quoted."""
    return tuple(sorted(chosen, key=lambda text: (-counts[text], text))[:QUOTED])


def few_rows_caution(n_public: int, n_classes: int, *, learns: str) -> Finding:
    """Look whether there are too few different public rows for what learns from them.

    `n_public`: different public rows. `n_classes`: 0 where a number is predicted. `learns`: what follows from them: a
    clause.

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
    target = f"{n_classes:,} classes" if n_classes else "a number"
    words = (
        f"there {rows}, and {learns}: for {target} {needed:,} are few, and hundreds are better. Give more "
        "rows that may be shown"
    )
    return caution(FEW_PUBLIC_ROWS, Severity.WARNING, words if n_public < needed else None)


def coarse_marginals_caution(resolution: float, n_columns: int) -> Finding:
    """Look whether noise hides what a pool is to be drawn from: no half of a column's range could be told from none.

    `resolution`: n₀/(3 σ) of the noisiest column. `n_columns`: that are counted.

    Examples
    --------
    >>> coarse_marginals_caution(1.2, 40).applies, coarse_marginals_caution(6.0, 40).applies
    (True, False)
    """
    words = (
        f"the noisy counts of {n_columns:,} columns will tell next to nothing: to be believed, a count must be "
        f"{1 / resolution:.1f} times the number of units, so that rows are drawn evenly within the bounds. Drop "
        "columns, give tighter bounds, or give public rows"
    )
    return caution(COARSE_MARGINALS, Severity.WARNING, words if resolution < LEAST_RESOLUTION else None)


def calibrates_twice_caution(
    rows: Rows, others: Mapping[str, Rows | None], name: str, *, kinds: ColumnKinds | None = None
) -> Finding:
    """Look whether rows that calibrate a model are used for something else, too: all of them are public.

    `rows`: as the model takes them; `others`: by name, as `rows`; None where there are none. `name`: of the rows.

    Examples
    --------
    >>> import numpy
    >>> pool = numpy.random.default_rng(0).normal(size=(60, 2))
    >>> calibrates_twice_caution(pool[20:] + 1, {"the pool": pool}, "calibration").applies
    False
    >>> calibrates_twice_caution(pool[20:], {"the pool": pool}, "calibration").words[:45]
    'some rows of calibration are also in the pool'
    """
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


def _dates(names: list[str], pool: str) -> Finding:
    words = (
        f"{in_words(names)} of {pool} {'hold' if len(names) > 1 else 'holds'} dates or times as text, and "
        "each is taken as a word of its own, so that a date that is new means nothing. In a folder say how they are "
        'written, such as date_format = "dd.mm.yyyy" under [data]; or write them as ISO 8601 in all tables '
        "(2024-03-01, 2024-03-01T12:30), or leave them out"
    )
    return caution(COLUMNS_OF_DATES, Severity.WARNING, words if names else None)


def _distinct(names: list[str], pool: str, images: Sequence[str] = (), *, repeating: Sequence[str] = ()) -> Finding:
    distinct = [name for name in names if name not in repeating]
    reasons = []
    if distinct:
        reasons.append(
            f"nothing is learned from {in_words(distinct)} of {pool}: almost every row has a text of its own there, as "
            "names and ids have, and they share no words. Where it is running text all the same, name it as text; or "
            "leave the column out"
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


def _mostly(columns_: Sequence[OtherEntries], pool: str) -> Finding:
    readable = [item.column for item in columns_ if not {_PERCENT, _MONEY} & {*item.written}]
    numeric = ""
    if readable:
        numeric = f"; or name {in_words(readable)} as numeric, and an entry that is no number counts as missing"
    words = (
        f"most entries of {in_words([item.column for item in columns_])} of {pool} are numbers, and each is taken as a "
        f"word of its own, since not all are plain ones: {'; '.join(item.words for item in columns_)}. Write plain "
        f"numbers (12.5) in all tables{numeric}. In a folder [data] missing lists what stands for a missing value"
    )
    return caution(MOSTLY_NUMBERS, Severity.WARNING, words if columns_ else None)


def _unread(columns_: Sequence[OtherEntries], pool: str) -> Finding:
    words = (
        f"entries of {in_words([item.column for item in columns_])} of {pool} are no numbers and count as missing, "
        f"there and in the private table: {'; '.join(item.words for item in columns_)}"
    )
    return caution(ENTRIES_LOST, Severity.WARNING, words if columns_ else None)
