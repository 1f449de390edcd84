"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from quorate.accounting.attacker import epsilon_caution
from quorate.accounting.figures import plural


def test_budget_cautions() -> None:
    assert (epsilon_caution(10.0, 1e-5, "record").applies, epsilon_caution(10.1, 1e-5, "record").code) == (
        False,
        "epsilon-promises-little",
    )


def test_figures() -> None:
    assert (plural("record"), plural("class"), plural("entry"), plural("day")) == (
        "records",
        "classes",
        "entries",
        "days",
    )
