"""What is a number where a table is text."""

from __future__ import annotations

import re

_WRITTEN = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)


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
