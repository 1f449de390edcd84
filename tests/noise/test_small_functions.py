"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from quorate.noise.source import checked_shape


def test_source() -> None:
    assert (checked_shape(3), checked_shape((2, 5)), checked_shape(())) == (((3,), 3), ((2, 5), 10), ((), 1))
