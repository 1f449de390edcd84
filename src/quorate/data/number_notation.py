"""What is a number, as tables write it: with a decimal point, or with a decimal comma where the public pool shows that.

What a comma means in a column (3,5) is a public fact: the pool shows it, or the owner says that the column holds
numbers. How a cell is read then follows from that cell alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isnan
from typing import Any

import numpy as np

from quorate.data.cell_text import without_imaginary

_WRITTEN = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)

_NUMBERS = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
TRUTH = {"true": 1.0, "false": 0.0}
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # 1,234 may be a decimal, or thousands
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[.,'\u2019\u00a0\u202f ]\d{3})*(?:[.,]\d+)?", re.ASCII)
_NAN = float("nan")


def written_number(text: str) -> float:
    """Read a text as a number as tables write it; NaN for anything else.

    Python takes more for a number: ``1_2``, which is a code, and digits of other scripts.
    """
    text = text.strip()
    return float(text) if _WRITTEN.fullmatch(text) is not None else float("nan")


def number(cell: Any) -> float:
    """Return a cell as a float; NaN for what is no number. Truth values are 0 and 1, also written out.

    A complex number is its real part where it has no imaginary one, and else none.
    """
    try:
        if isinstance(cell, str):
            truth = TRUTH.get(cell.strip().lower())
            return written_number(cell) if truth is None else truth
        cell = without_imaginary(cell)
        return float(cell) if isinstance(cell, _NUMBERS) else float("nan")  # other objects may warn
    except Exception:  # noqa: BLE001 - beyond the floats, or a subclass that raises where it is asked for its value
        return float("nan")


def has_decimal_comma(text: str) -> bool:
    """Tell whether a text is a number with one comma, which may be a decimal one."""
    return _WITH_COMMA.fullmatch(text.strip()) is not None


def has_thousands(text: str) -> bool:
    """Tell whether a text is a number with marks between its digits that can be read in more than one way."""
    text = text.strip()
    grouped = _GROUPED.fullmatch(text) is not None and not text.lstrip("+-").isdigit()
    return grouped and (not has_decimal_comma(text) or _EITHER.fullmatch(text) is not None)


def are_decimal_commas(texts: Sequence[str]) -> bool:
    """Tell whether these texts, each a number with or without a comma, show that a comma is the decimal mark.

    One of them has to be no number with thousands, which have three digits after each comma.
    """
    with_comma = [text.strip() for text in texts if has_decimal_comma(text)]
    return any(_EITHER.fullmatch(text) is None for text in with_comma)


def comma_number(text: str | None) -> float:
    """Read a number whose decimal mark is a comma, or that has none; NaN for what is no number.

    Examples
    --------
    >>> comma_number("3,5"), comma_number("1,234"), comma_number("12"), comma_number("3.5"), comma_number("n/a")
    (3.5, 1.234, 12.0, 3.5, nan)
    """
    if text is None:
        return _NAN
    return written_number(text.replace(",", ".") if has_decimal_comma(text) else text)


def plain_comma_number(text: str) -> float:
    """Read a number with a decimal comma that can be nothing else; NaN for thousands, and for what has no comma.

    Examples
    --------
    >>> plain_comma_number("27,5"), plain_comma_number("0,125"), plain_comma_number("1,234"), plain_comma_number("27")
    (27.5, 0.125, nan, nan)
    """
    return comma_number(text) if are_decimal_commas([text]) else _NAN


def number_with_comma(cell: Any) -> float:
    """Return a cell as a float, also where it has a decimal comma; one that may mean thousands is no number.

    Examples
    --------
    >>> number_with_comma("27,5"), number_with_comma("27.5"), number_with_comma("1,234")
    (27.5, 27.5, nan)
    """
    value = number(cell)
    return plain_comma_number(cell) if isnan(value) and isinstance(cell, str) else value
