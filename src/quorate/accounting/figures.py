"""How figures are written wherever people read them: rounded the safe way, grouped, and with their noun."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from quorate.ambient import plain_decimals


@plain_decimals()
def _significant(value: float, digits: int, rounding: str) -> str:
    number = Context(prec=digits, rounding=rounding).create_decimal(
        Decimal(value if isinstance(value, int) else repr(float(value)))
    )
    if number == 0:
        return "0"
    power = number.adjusted()
    if -4 <= power < 9:
        text = f"{number:f}"
        whole, _, part = text.partition(".")
        part = part.rstrip("0")
        return f"{int(whole):,}" + (f".{part}" if part else "")
    mantissa = number.scaleb(-power).normalize()
    return f"{mantissa:f}e{power:+d}".replace("e+", "e")


def at_most(value: float, digits: int = 4) -> str:
    """Write a bound from above (a spent ε, a δ), rounded up to `digits` significant digits."""
    return _significant(value, digits, ROUND_CEILING)


def at_least(value: float, digits: int = 4) -> str:
    """Write a bound from below (what is left, the noise there is), rounded down to `digits` significant digits."""
    return _significant(value, digits, ROUND_FLOOR)


def as_printed(bound: float) -> float:
    """Return a bound from above as the number that people read of it: 1 for an ε that was found as 0.999999998."""
    return float(at_most(bound, 6).replace(",", ""))


def several(n: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of an English noun, such as the word for a unit."""
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
