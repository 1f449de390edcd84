"""What is a number: a text as tables write it, or one cell of any kind."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from quorate.data.cell_text import without_imaginary

_WRITTEN = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)

_NUMBERS = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
TRUTH = {"true": 1.0, "false": 0.0}


def written_number(text: str) -> float:
    """Read a text as a number as tables write it; NaN for anything else.

    Python takes more for a number: ``1_2``, which is a code, and digits of other scripts.

    Examples
    --------
    >>> written_number(" 12.5"), written_number("1e3"), written_number("1_2"), written_number("\N{ARABIC-INDIC DIGIT ONE}")
    (12.5, 1000.0, nan, nan)
    """  # noqa: E501
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
