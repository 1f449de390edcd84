"""Whether private cells say anything to who knows the public ones: told to the owner, and to nobody else.

A private cell that cannot be read is missing, and refuses nothing. Where that is so of a whole column, or where a
column holds other words than the public one does, teachers learn from nothing, and all of a budget would be spent.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from quorate.data.column_kinds import ColumnKind, ColumnKinds, words_of
from quorate.data.columns import column, families, texts
from quorate.data.public_words import PublicWords
from quorate.data.rows import Rows, columns, is_frame, kind, n_rows
from quorate.data.streamed import StreamedFrame
from quorate.types import Secret

FEWEST = 20  # cells on either side; fewer may happen to have nothing in common
LOOKED_AT = 5_000  # entries of a column of texts
SLIPS = 0.01  # share of cells that may be written in another way now and then


@dataclass(frozen=True, slots=True)
class UnlikeCells:
    """What private cells lack.

    `empty`: columns whose private cells are all missing, though public ones are not. `foreign`: columns whose private
    cells say nothing that the public ones say: no entry where an entry is what counts, no word in running text.
    `respelled`: columns of which private entries are those of public ones but for case, or for blanks or the form of
    Unicode where these count, and are other entries to who learns from them. `blank`: rows of an array that hold 0
    alone, where no public row does: images that could not be read are such rows.
    """

    empty: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    respelled: tuple[str, ...] = ()
    blank: int = 0


def unlike_cells(private: Rows, public: Rows, kinds: ColumnKinds | None = None) -> Secret[UnlikeCells]:
    """Compare the cells of two tables of one schema.

    `private`, `public`: feature tables, the columns in the same order. Sparse ones, and tables that stay in their
    files, are not looked at. `kinds`: what each column is read as: of dates, and of columns that are left out, no words
    are compared. Privacy: depends on the private table and is covered by no guarantee. Reveal it to the owner alone.
    """
    if kind(private) == "sparse" or isinstance(private, StreamedFrame) or min(n_rows(private), n_rows(public)) < FEWEST:
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
        if _n_present(theirs) < FEWEST or of_kind.get(name) == "dropped":
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
    words, known = ({word for entry in each for word in words_of(entry)} for each in (entries, others))
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
