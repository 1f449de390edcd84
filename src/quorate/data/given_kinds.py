"""What the owner of a table says of its columns; the public rule decides on what is not said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from quorate.data.dialect import PLAIN, Dialect
from quorate.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenKinds:
    """What the owner says of columns, by their names; the rule decides on the others.

    Attributes
    ----------
    text, categorical, numeric, dates, drop : tuple of str
        Names of columns.
    dialect : Dialect
        How numbers and dates are written.
    """

    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, **given: Any) -> GivenKinds:
        """Check names: a list, or one.

        Raises
        ------
        InvalidParameter
            If they are no names, or one is given twice.

        Examples
        --------
        >>> GivenKinds.of(text="note", drop=["id"]).named
        {'note': 'text', 'id': 'drop'}
        """
        read = {key: _names(key, names) for key, names in given.items()}
        every = [name for names in read.values() for name in names]
        if twice := [name for name, times in Counter(every).items() if times > 1]:
            raise InvalidParameter(f"column {twice[0]!r} is named more than once; say one kind of each column")
        return cls(**read)  # type: ignore[arg-type]

    @property
    def arguments(self) -> dict[str, tuple[str, ...]]:
        """The named columns, as arguments of :class:`~quorate.PublicPool`."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "dialect"}

    @property
    def named(self) -> dict[str, str]:
        """Each named column, and what it was named as."""
        return {name: key for key, names in self.arguments.items() for name in names}


def _names(key: str, names: Any) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else None
    if found is None or not all(isinstance(name, str) and name for name in found):
        raise InvalidParameter(f'{key} must name columns (["notes"]), got {names!r}')
    return found
