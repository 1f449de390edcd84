"""How many answers are stored together: few writes where there are many answers, and the same ones from a seed."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.accounting import Repeated
from quorate.labelling import label
from quorate.labelling.passive import block_size
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import NoiseSource, OSNoise, SeededNoise
from quorate.types import Secret


def sizes(n_queries: int, noise: NoiseSource) -> list[int]:
    mechanism = GaussianNoisyMax(sigma=500.0, form="binary")
    with Ledger(budget=Budget(100.0, 1e-5)) as ledger:
        event = Repeated(mechanism.event, n_queries)
        reservation = ledger.reserve(event, delta=1e-5, purposes={"label": n_queries}, key="labels")
        block = block_size(n_queries, noise, informed=False)
        label(Secret(np.full((n_queries, 2), 50)), mechanism, reservation, noise, block=block)
        return [block.count for block in reservation.blocks("label")]


@pytest.mark.parametrize(
    ("n_queries", "noise", "expected"),
    [
        (200, OSNoise(), [64, 64, 64, 8]),
        (8_139, OSNoise(), [255] * 31 + [234]),
        (8_139, SeededNoise(1), [64] * 127 + [11]),  # what a seed gave to a block in version 0.1, it gives to it now
    ],
)
def test_a_crash_costs_64_answers_or_one_in_32(n_queries: int, noise: NoiseSource, expected: list[int]) -> None:
    assert sizes(n_queries, noise) == expected
