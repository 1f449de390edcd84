"""One release, once, for what was charged for it."""

import numpy as np
import pytest

from quorate.accounting import Repeated
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisySum
from quorate.noise import OSNoise
from quorate.release.block import release_once
from quorate.types import Secret

HALF = NoisySum.costing(0.5, grid=1)
SUMS = Secret(np.array([1_000]))
PURPOSES = {"evaluation": 1, "tuning": 1, "label": 1}


def reserve(event, epsilon, purposes):
    return Ledger(budget=Budget(epsilon, 1e-6)).reserve(event, delta=0, purposes=purposes, key="x")


def test_one_charge_is_not_drawn_for_two_purposes():
    """An event of ε = 0.5 never paid for an evaluation and for a choice."""
    reservation = reserve(HALF.event, 0.5, PURPOSES)
    for purpose in ("evaluation", "tuning"):
        with pytest.raises(InvalidParameter, match="does not pay for 3 answers"):
            release_once(SUMS, HALF, reservation, OSNoise(), purpose=purpose)
        assert reservation.remaining(purpose) == 1


def test_what_was_charged_three_times_is_drawn_three_times():
    reservation = reserve(Repeated(HALF.event, 3), 2.0, PURPOSES)
    told = [release_once(SUMS, HALF, reservation, OSNoise(), purpose=purpose) for purpose in PURPOSES]
    assert len(told) == 3
    with pytest.raises(BudgetExhausted):
        release_once(SUMS, HALF, reservation, OSNoise(), purpose="label")
