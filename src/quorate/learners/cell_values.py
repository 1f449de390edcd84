"""What one cell of a private table says to a binning step: a rule for that cell alone, whatever type its column has."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from math import inf, isnan
from typing import Any

from quorate.data.cell_text import is_missing
from quorate.data.written_numbers import number


def value_of(cell: Any) -> float | str | None:
    """Return the canonical value of a cell: a number if it reads as one, otherwise its text, or None for no value.

    How a cell is held does not count: a truth value, the whole number 1, and the texts "true", "1" and "1.0" are one
    value, since which of them a column holds may hang on one cell of another row. Spaces around a text do not count,
    an empty text and "nan" are no value, and neither is what is no single value.
    """
    found = number(cell)
    if not isnan(found):
        return found + 0.0
    if is_missing(cell):
        return None
    if isinstance(cell, (int, Fraction)):  # beyond the floats
        return inf if cell > 0 else -inf
    if not isinstance(cell, (str, dt.date, dt.time)):
        return None
    text = str(cell).strip().removesuffix(" 00:00:00")  # a day, which one time of another row makes a moment
    return None if text.lower().lstrip("+-") in ("", "nan") else text
