"""Whether private and public columns look alike, in their scales and in their words: told to the owner alone.

A scaler around the classifier is fitted on all private rows before quorate gets them. It cannot be seen, but what it
leaves behind often can: columns on another scale than the public ones, or with a mean of 0 and a standard deviation of
1 to the last digit. A private cell that cannot be read is missing, and refuses nothing. Where that is so of a whole
column, or where a column holds other words than the public one does, teachers learn from nothing, and all of a budget
would be spent.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from quorate.data.column_cells import PublicWords
from quorate.data.column_kinds import ColumnKind, ColumnKinds, words_of
from quorate.data.columns import column, doubles, families, feature_families, texts
from quorate.data.rows import Rows, columns, is_frame, kind, n_rows, width
from quorate.data.stream import StreamedFrame
from quorate.types import FloatArray, Secret

FEWEST_VALUES = 50  # values of a column on either side; fewer say nothing about its scale
RATIO = 5.0  # of two spreads, beyond which they are called different
ROUNDING = 1e-9  # of a range from 0 to 1
STEP = 1e-6  # of a step, how far a whole number of them may be off
FEW_STEPS = 12  # from 0 to 1, of which nothing can be told: answers from 1 to 7, say
MANY_STEPS = 1_000  # more are a measurement
CHOSEN_STEPS = (60, 255, 256, 360, 1000)  # what people divide by; so are the divisors of these
EXACT = 1e-5  # how near to 0 and 1 a mean and a standard deviation are, where a scaler was fitted on these very rows
FEWEST_CELLS = 20  # cells on either side; fewer may happen to have nothing in common
LOOKED_AT = 5_000  # entries of a column of texts
SLIPS = 0.01  # share of cells that may be written in another way now and then


@dataclass(frozen=True, slots=True)
class Scales:
    """What the scales of two tables look like. `differing`: columns whose private values are spread out, or lie,
    elsewhere. `fitted`: those that look scaled by what was fitted on them (standardised, or stretched to 0 … 1), unlike
    public ones.
    """

    differing: tuple[str, ...]
    fitted: tuple[str, ...]


def compared_scales(private: Rows, public: Rows) -> Secret[Scales]:
    """Compare the numeric columns, in one order, of two tables that are not sparse. Privacy: depends on the private
    table, covered by no guarantee. Reveal it to the owner alone.
    """
    differing: list[str] = []
    standardised: list[str] = []
    reaches: dict[str, Reach] = {}
    if kind(private) == "sparse":
        return Secret(Scales((), ()))
    names = columns(private) or tuple(f"column {position}" for position in range(width(private)))
    numbers = [own == other == "number" for own, other in zip(*map(feature_families, (private, public)), strict=True)]
    for position in np.flatnonzero(numbers).tolist():
        mine, theirs, name = _values(private, position), _values(public, position), names[position]
        if min(len(mine), len(theirs)) < FEWEST_VALUES or not (_has_a_scale(mine) and _has_a_scale(theirs)):
            continue
        if min(_unlike_most(mine), _unlike_most(theirs)) >= FEWEST_VALUES and _differ(mine, theirs):
            differing.append(name)
        if _is_standardised(mine) and not _is_standardised(theirs):
            standardised.append(name)
        reaches[name] = _reach(mine, theirs)
    return Secret(Scales(tuple(differing), (*standardised, *_brought_to_one_range(reaches))))


def _values(X: Rows, position: int) -> FloatArray:
    """The finite numbers of one column; none where one of them is beyond the floats."""
    try:
        values = doubles(column(X, position)) if is_frame(X) else np.asarray(X[:, position], dtype=np.float64)
    except OverflowError:
        return np.empty(0)
    return values[np.isfinite(values)]


def _has_a_scale(values: FloatArray) -> bool:
    """Whether there are three different values; indicators have two."""
    low, high = values.min(), values.max()
    return bool(((values > low) & (values < high)).any())


def _unlike_most(values: FloatArray) -> int:
    """How many values are not the one in the middle: of a pixel at the edge of images, a few that are not 0."""
    return int(np.count_nonzero(values != np.median(values)))


def _differ(mine: FloatArray, theirs: FloatArray) -> bool:
    """Whether one side is spread out more than :data:`RATIO` times as far by both measures, or nine in ten values lie
    apart. A column that is nearly always 0 has a quartile of 0 on one side alone by chance.
    """
    (low, first, third, high), (their_low, their_first, their_third, their_high) = (
        np.quantile(side, [0.05, 0.25, 0.75, 0.95]) for side in (mine, theirs)
    )
    if high < their_low or their_high < low:
        return True
    spreads = [(mine.std(), theirs.std())]
    if third > first and their_third > their_first:
        spreads.append((third - first, their_third - their_first))
    return all(ours > RATIO * others for ours, others in spreads) or all(
        others > RATIO * ours for ours, others in spreads
    )


def _is_standardised(values: FloatArray) -> bool:
    """Whether these have a mean of 0 and a standard deviation of 1, to the last digits."""
    return bool(abs(values.mean()) < EXACT and abs(values.std() - 1) < EXACT)


class Reach(Enum):
    """How a private column lies between 0 and 1."""

    PART = 0  # it does not reach both, or the public one does too, or its values are pixels
    FULL = 1  # it reaches both, as shares, scores and saturated pixels do by themselves
    STRETCHED = 2  # it reaches both as what a scaler has brought there


def _reach(mine: FloatArray, theirs: FloatArray) -> Reach:
    if not _is_full(mine) or _is_full(theirs) or _are_bytes(mine):
        return Reach.PART
    steps = _steps(mine)
    if steps is None:  # a measurement: one row alone is at each end, where a share has many
        stretched = np.count_nonzero(mine < ROUNDING) == np.count_nonzero(mine > 1 - ROUNDING) == 1
    else:  # a count that was divided by what nobody would choose, such as 73: 17 to 90 years
        stretched = steps > FEW_STEPS and all(chosen % steps for chosen in CHOSEN_STEPS)
    return Reach.STRETCHED if stretched else Reach.FULL


def _is_full(values: FloatArray) -> bool:
    return bool(abs(values.min()) < ROUNDING and abs(values.max() - 1) < ROUNDING)


def _steps(values: FloatArray) -> int | None:
    """In how many equal steps, of which all values are whole numbers, the range from 0 to 1 is divided, if it is."""
    distinct = np.unique(values)
    least = float(np.diff(distinct).min())
    if least < 1 / (MANY_STEPS + 0.5):
        return None
    steps = round(1 / least)
    off = np.abs(distinct * steps - np.rint(distinct * steps))
    return steps if bool((off < STEP).all()) else None


def _brought_to_one_range(reaches: Mapping[str, Reach]) -> tuple[str, ...]:
    """Which columns a scaler has brought to the range from 0 to 1, and which are shares or pixels by themselves: some
    column must look stretched, and half of the columns of full range, or all have that range.
    """
    full = tuple(name for name, reach in reaches.items() if reach is not Reach.PART)
    stretched = sum(reach is Reach.STRETCHED for reach in reaches.values())
    return full if stretched and (2 * stretched >= len(full) or len(full) == len(reaches)) else ()


def _are_bytes(values: FloatArray) -> bool:
    """Whether these are whole numbers of 255ths: pixels that were divided by a number that everybody knows."""
    steps = values * 255
    return bool((np.abs(steps - np.rint(steps)) < 1e-4).all())  # also of float32


@dataclass(frozen=True, slots=True)
class UnlikeCells:
    """What private cells lack. `empty`: columns that are all missing, though public ones are not. `foreign`: columns
    that say nothing that the public ones say.

    `respelled`: columns of which entries are those of public ones but for case, blanks or the form of Unicode, and
    count as others. `blank`: rows of an array that hold 0 alone, as images that could not be read do, where no public
    row does.
    """

    empty: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    respelled: tuple[str, ...] = ()
    blank: int = 0


def unlike_cells(private: Rows, public: Rows, kinds: ColumnKinds | None = None) -> Secret[UnlikeCells]:
    """Compare the cells of two tables of one schema; sparse tables, and those in their files, are not looked at.
    Privacy: depends on the private table, covered by no guarantee. Reveal it to the owner alone.
    """
    if (
        kind(private) == "sparse"
        or isinstance(private, StreamedFrame)
        or min(n_rows(private), n_rows(public)) < FEWEST_CELLS
    ):
        return Secret(UnlikeCells())
    if not is_frame(private):
        blank = 0 if _blank(public) else _blank(private)
        return Secret(UnlikeCells(blank=blank))
    empty: list[str] = []
    foreign: list[str] = []
    respelled: list[str] = []
    of_kind = {} if kinds is None else kinds.kinds
    family = families(public)
    for position, name in enumerate(columns(public) or ()):
        mine, theirs = column(private, position), column(public, position)
        if _n_present(theirs) < FEWEST_CELLS or of_kind.get(name) == "dropped":
            continue
        if family[name] != "text":
            if not _n_present(mine):
                empty.append(name)
            continue
        words = None if kinds is None else kinds.words.get(name)
        entries, others = _entries(mine, words), _entries(theirs, words)
        if others and not entries:
            empty.append(name)
        elif of_kind.get(name) in (None, "category") and _are_respelled(entries, others):
            respelled.append(name)
        elif of_kind.get(name) in (None, "category", "text") and _are_foreign(entries, others, of_kind.get(name)):
            foreign.append(name)
    return Secret(UnlikeCells(tuple(empty), tuple(foreign), tuple(respelled)))


def _n_present(series: Any) -> int:
    return len(series) - int(series.isna().sum() if hasattr(series, "isna") else series.null_count())


def _are_foreign(entries: Counter[str], others: Counter[str], as_kind: ColumnKind | None) -> bool:
    """Whether two columns of text have nothing in common: no entry, and no word where entries alone do not count."""
    if not others or entries.keys() & others.keys():
        return False
    if as_kind == "category":  # as the encoder compares entries
        return True
    words, known = ({word for entry in side for word in words_of(entry)} for side in (entries, others))
    return not words & known


def _are_respelled(entries: Counter[str], others: Counter[str]) -> bool:
    """Whether more cells than a slip of the pen now and then are a public entry written in another way."""
    known = {_folded(entry) for entry in others}
    respelled = sum(times for entry, times in entries.items() if entry not in others and _folded(entry) in known)
    return respelled > SLIPS * entries.total()


def _folded(entry: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", entry).casefold().split())


def _entries(series: Any, words: PublicWords | None) -> Counter[str]:
    """Count the first different entries of a column of text, as they are compared; blanks are none."""
    written = Counter(entry for entry in texts(series) if entry is not None and entry.strip())
    counts: Counter[str] = Counter()
    for entry, times in islice(written.items(), LOOKED_AT):
        counts[entry if words is None else words(entry) or entry] += times
    return counts


def _blank(X: Any) -> int:
    values = np.asarray(X).reshape(len(X), -1)
    return int(np.count_nonzero(~np.any(values, axis=1)))
