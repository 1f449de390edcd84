"""Which cells of a parametrized test the default selection runs, where they are slow and check the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Value = TypeVar("Value")


def some_of(values: Iterable[Value], *, first: int) -> list[Value | ParameterSet]:
    """Mark all but the first values as heavy: more draws of the same check, which any one of them makes by itself."""
    kept = list(values)
    return [*kept[:first], *(_heavy(value) for value in kept[first:])]


def _heavy(value: object) -> ParameterSet:
    several = value if isinstance(value, tuple) else (value,)
    return pytest.param(*several, marks=pytest.mark.heavy)
