"""A target that is a number: the range that its owner declares, and what one private cell says in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, ulp
from typing import Any, Final

import numpy as np

from quorate.data.cell_text import as_list, each, one_column, refuse_another_number
from quorate.data.notation import has_thousands, number, number_with_comma
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

STEPS: Final = 2**16  #: into which a range is cut: a target is a whole number of them
_NO_TARGET: Final = -1
_EXPECTED: Final = "two finite numbers (low, high), low < high"


def without_numbers(cells: Iterable[str]) -> str | None:
    """Return one of these public cells where none of them is a number; None where one is, or there are none."""
    texts = sorted(text for text in cells if text.strip())
    any_number = any(isfinite(number_with_comma(text)) or has_thousands(text) for text in texts)
    return None if any_number or not texts else texts[0]


def finite_numbers(targets: Any, *, name: str, n_rows: int | None = None) -> FloatArray:
    """Return public targets as `n_rows` finite numbers, perhaps beyond any range, or refuse them by `name`."""
    column = one_column(targets, name, entry="target")
    if not hasattr(column, "__iter__"):
        raise DataRefused(f"{name}: got {type(column).__name__}, expected one target for every row")
    values = np.array(each(number, as_list(column)), dtype=np.float64)
    if n_rows is not None:
        refuse_another_number(len(values), n_rows, name, entry="target")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataRefused(f"{name}: row {place} holds no finite number; mend it, or drop its row")
    return values


@stored_as("quorate.data.target_range.TargetRange")
@dataclass(frozen=True, slots=True)
class TargetRange:
    """From `low` to `high`, a public statement: what is beyond it is cut off at the nearer end."""

    low: float
    high: float

    @classmethod
    def of(cls, given: Any) -> TargetRange:
        """Take a range as its owner gives it, or refuse: two finite ascending numbers between which floats hold the
        steps.
        """
        if given is None:
            raise InvalidParameter(
                f"{named('target_range')} is required. Reading it off the data can reveal an extreme value. "
                "Example: target_range=(0, 120)",
                parameter="target_range",
            )
        ends = tuple(given) if isinstance(given, tuple | list | np.ndarray) else ()
        plain = len(ends) == 2 and not any(isinstance(end, str | bytes | bool) for end in ends)
        low, high = map(number, ends) if plain else (0.0, 0.0)
        if not (low < high and isfinite(low) and isfinite(high) and isfinite(high - low)):
            raise InvalidParameter(
                parameter="target_range",
                got=given,
                expected=_EXPECTED,
                advice="give the least and the largest value that the target can have, from public knowledge",
            )
        if ulp(max(-low, high)) * STEPS > high - low:
            raise InvalidParameter(
                parameter="target_range",
                got=given,
                expected="ends that are further apart, for their size",
                advice="subtract a public number from every target, and from both ends",
            )
        return cls(low + 0.0, high + 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def width(self) -> float:
        """How long the range is, > 0."""
        return self.high - self.low

    def steps_of(self, targets: Sequence[Any]) -> IntArray:
        """Return each target's steps from `low`, 0 … 2¹⁶; −1 for no finite number. A text is read, a truth value is 0
        or 1.
        """
        values = np.array(each(number, targets), dtype=np.float64)
        finite = np.isfinite(values)
        inside = np.clip(np.where(finite, values, self.low), self.low, self.high)
        steps = np.rint((inside - self.low) / self.width * STEPS).astype(np.int64)
        return np.where(finite, np.clip(steps, 0, STEPS), _NO_TARGET)

    def public_numbers(self, targets: Any, *, name: str, n_rows: int | None = None) -> FloatArray:
        """Return public targets as numbers, cut off at the ends; refused as by :func:`finite_numbers`."""
        return self.clipped(finite_numbers(targets, name=name, n_rows=n_rows))

    def part(self, first: int, last: int) -> TargetRange:
        """Return the part from one number of steps to another."""
        return TargetRange(self.low + self.width * (first / STEPS), self.low + self.width * (last / STEPS))

    def clipped(self, predictions: FloatArray) -> FloatArray:
        """Return predictions, of any shape, cut off at the ends of the range."""
        return np.clip(predictions, self.low, self.high)
