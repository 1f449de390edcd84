"""The words of a public column of categories, and which of them a cell is: a public rule, the same at every door."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.cell_text import canonical_text, text_reader, truth_text
from quorate.data.columns import Family, doubles, texts


@dataclass(frozen=True, slots=True)
class PublicWords:
    """The entries of a public column of words: a cell that says the same as one of them is that entry.

    `written`: from what an entry says to the entry; the commonest where several say the same. `truths`: whether all
    entries are written truth values, so that a truth value says the same.
    """

    written: Mapping[str | None, str] = field(hash=False)
    truths: bool = False

    @classmethod
    def of(cls, entries: Iterable[str | None]) -> PublicWords:
        """Take the entries of a public column."""
        counts = Counter(entry for entry in entries if entry is not None)
        says = text_reader(counts)
        written: dict[str | None, str] = {}
        for text in sorted(counts, key=lambda text: (-counts[text], text)):
            written.setdefault(says(text), text)
        return cls(written, says is truth_text)

    def __call__(self, cell: Any) -> str | None:
        """Return the entry that says what a cell says, or what the cell says where none does."""
        said = self._says(cell)
        return said if said is None else self.written.get(said, said)

    def respelled(self, cells: Iterable[str]) -> dict[str, str]:
        """Return those of some texts that are an entry written in another way, each with that entry."""
        known = {}
        for cell in cells:
            entry = self.written.get(self._says(cell), cell)
            if entry != cell or (entry is not cell and type(cell) is not str):  # a member of an enumeration, say
                known[cell] = entry
        return known

    def of_column(self, cells: Any, family: Family) -> Any:
        """Return the cells of a column with public entries where they say the same; None where all stay as they are.

        `cells`: a series, or texts and None. `family`: what it holds. Each different text is looked at once.
        """
        if family == "number":
            return [self(value) for value in doubles(cells).tolist()]
        if family == "missing":  # of no type, as polars has one
            return [None] * len(cells)
        if family != "text":
            return None
        if isinstance(cells, list):
            respelled = self.respelled({text for text in cells if text is not None})
            return [respelled.get(text, text) for text in cells] if respelled else None
        if hasattr(cells, "cast"):  # polars
            respelled = self.respelled(text for text in texts(cells.unique()) if text is not None)
            return cells.cast(str).replace(respelled) if respelled else None
        others = cells[~cells.isin(list(self.written.values()))]  # which is quicker than to tell all of them apart
        respelled = self.respelled(text for text in others.unique().tolist() if isinstance(text, str))
        if not respelled:
            return None
        codes, different = cells.factorize()
        known = np.array([*(respelled.get(text, text) for text in different.tolist()), None], dtype=object)
        return known[codes].tolist()  # a missing one has the code -1

    def _says(self, cell: Any) -> str | None:
        return truth_text(cell) if self.truths else canonical_text(cell)
