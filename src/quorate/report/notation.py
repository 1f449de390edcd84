"""How shares and names are written: percentages with their interval, and nothing invisible left in a name."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from math import sqrt
from textwrap import wrap

from quorate.ambient import plain_decimals

TERMINAL = 80  # columns of what is printed
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_JOINERS = "\u200c\u200d"  # parts of words in some scripts
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # Unicode general categories


def power_of_ten(written: str) -> str:
    """Write ``1e-5`` as people do."""
    mantissa, e, power = written.partition("e")
    if not e:
        return written
    ten = "10" + power.translate(SUPERSCRIPT)
    return ten if mantissa == "1" else f"{mantissa} × {ten}"


@plain_decimals()
def percent(share: float) -> str:
    """Write a share in [0, 1] as a percentage with one decimal, rounded half to even."""
    return f"{(Decimal(repr(float(share))) * 100).quantize(Decimal('0.1'), ROUND_HALF_EVEN)} %"


def wilson_interval(share: float, n_rows: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share counted on `n_rows` rows.

    Returns: both in [0, 1]; ``share`` lies between them.

    Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    """
    z = 1.959963984540054  # the normal quantile at 0.975
    weight = z * z / n_rows
    middle = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / n_rows + weight / (4 * n_rows)) / (1 + weight)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def visible(text: str) -> str:
    r"""Write out what a terminal would obey and a reader would not see: control, direction and unpaired characters."""
    return _written_out(text, lambda char: char.encode("unicode_escape").decode())


def escaped(json: str) -> str:
    r"""Write the same characters as :func:`visible` as the escapes of JSON, so that its value stays what it was."""
    return _written_out(json, _json_escape, but="\n")


def _written_out(text: str, how: Callable[[str], str], *, but: str = "") -> str:
    """Write each invisible character as `how` says, having looked once at each that occurs."""
    characters = set(text).difference(but, _JOINERS)
    table = {ord(char): how(char) for char in characters if unicodedata.category(char) in _INVISIBLE}
    return text.translate(table) if table else text


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be")  # a character beyond the first 65,536 is two units, and two escapes
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def shortened(text: str, limit: int) -> str:
    """Cut `text` to `limit` columns of a terminal, with an ellipsis where something was cut.

    Wide East Asian characters take two columns and combining marks none.
    """
    if columns(text) <= limit:
        return text
    kept = ""
    for char in text:
        if columns(kept + char) > limit - 1:
            break
        kept += char
    return kept + "…"


def columns(text: str) -> int:
    """Return how many columns of a terminal `text` takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def under_label(label: str, words: str, *, room: int) -> list[str]:
    r"""Break `words` at spaces into lines that start under each other, beside a label of `room` columns in 80.

    No word is cut, so that an address or a path without spaces stays whole, however long it is.

    Examples
    --------
    >>> print(*under_label("  note", "a word " * 12, room=12), sep="\n")
      note      a word a word a word a word a word a word a word a word a word a
                word a word a word
    """
    lines = wrap(words, TERMINAL - room, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{'' if at else label:<{room}}{line}" for at, line in enumerate(lines)]
