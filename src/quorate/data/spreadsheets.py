"""CSV files that people open in a spreadsheet: no cell is taken for a formula, and what was written can be read back.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break. Class names come from
whoever owns the data, and a file of labels goes to people who do not know them. So such a text gets a quote before it,
which a spreadsheet does not show; plain numbers stay as they are, since they are no formulas.

References
----------
OWASP, *CSV Injection*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_OBEYED = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def as_cell(value: Any) -> Any:
    r"""Return `value` as it may stand in a spreadsheet: a text that would be run gets a quote before it.

    Two texts never become one: a text that has such quotes already gets another.
    """
    if isinstance(value, str) and _OBEYED.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def from_cell(text: str) -> str:
    """Return the text that :func:`as_cell` has written as `text`."""
    return text[1:] if _QUOTED.match(text) else text


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV, every cell as :func:`as_cell` has it; None is an empty cell."""
    return "".join(f"{','.join(map(_field, line))}\n" for line in (names, *rows))


def _field(value: Any) -> str:
    """One cell; :mod:`csv` would leave a bare carriage return unquoted, which ends a line for some readers."""
    text = "" if value is None else str(as_cell(value))
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\r\n') else text
