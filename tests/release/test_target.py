"""The target of a release, in the units that a ledger counts in."""

from __future__ import annotations

import numpy as np

from quorate.release.target import floor_budget


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in() -> None:
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)
