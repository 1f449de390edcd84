"""The target of a release, in the units that a ledger counts in.

Where noise comes from: a seed fixes it, and the key.
"""

from __future__ import annotations

import numpy as np

from quorate.release.charge import floor_budget, noise_and_key


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in() -> None:
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one() -> None:
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]
