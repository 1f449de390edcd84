"""Where noise comes from: a seed fixes it, and the key."""

from __future__ import annotations

from quorate.release.target import noise_and_key


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one() -> None:
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]
