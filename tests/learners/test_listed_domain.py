"""What a listed `domain` leaves out of the error bound stands wherever the bound does; what LabelBoost asks for."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest

from quorate.learners import EmpiricalLearner, ExponentialLearner, GenericLearner, LabelBoost, NoisyThreshold
from quorate.learners.agnostic.bound import disagreement
from quorate.learners.concepts import Stumps, Thresholds
from quorate.learners.label_boost.schedule import rows_to_generalise
from quorate.learners.private_learner import BOUND_OF_LISTED_POINTS
from quorate.learners.sanitizers import MWEM
from quorate.ledger import Budget, Ledger
from quorate.theory import bns15_theorem_b_5

LINE = Thresholds(bits=16)
LISTED = [(0,), (1,), (2,)]
SAID = "the bound on the error is about rows that are among the 3 listed points of domain"
rng = np.random.default_rng(0)
X = rng.integers(0, 2**16, (3_000, 1))
Y = (X[:, 0] < 30_000).astype(int)
WHOLE = {"concepts": LINE, "epsilon": 1.0, "domain": LISTED}


@pytest.mark.parametrize(
    "learner",
    [
        ExponentialLearner(**WHOLE, rows="theorem", unsafe_noise_seed=0),
        EmpiricalLearner(base=ExponentialLearner(**WHOLE), epsilon=1.0, unsafe_noise_seed=0),
    ],
    ids=["alone", "inside another"],
)
def test_the_bound_of_a_listed_domain_is_said_in_guarantee_plan_and_check(learner: Any) -> None:
    fitted = learner.fit(X, Y)
    for said in (fitted.guarantee_.caveats, fitted.plan_.caveats):
        assert any(each.startswith(SAID) for each in said)
    assert BOUND_OF_LISTED_POINTS in {each.code for each in learner.check(3_000) if each.applies}
    assert fitted.predict(X).shape == Y.shape  # a row elsewhere is taken all the same


def test_a_domain_that_is_all_the_grid_or_none_needs_no_word() -> None:
    few = Thresholds(bits=2)
    for learner in (
        ExponentialLearner(concepts=few, epsilon=1.0, domain=[(0,), (1,), (2,), (3,)]),
        ExponentialLearner(concepts=few, epsilon=1.0),
    ):
        assert BOUND_OF_LISTED_POINTS not in {each.code for each in learner.check(300) if each.applies}


def test_a_sanitizer_on_a_listed_domain_says_so_too() -> None:
    points = tuple((float(a), float(b)) for a in range(3) for b in range(3))
    learner = GenericLearner(concepts=Stumps(2), sanitizer=MWEM(domain=points), epsilon=1.0)
    assert BOUND_OF_LISTED_POINTS in {each.code for each in learner.check(300, 300) if each.applies}


def test_a_fit_is_known_by_the_key_that_it_had_before_this_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key nor the scope of the charge has the sentence: begun ledgers go on, and pay nothing again."""
    ledger = Ledger(budget=Budget(5.0, 0.0))
    with monkeypatch.context() as before:
        before.setattr(ExponentialLearner, "_listed_points", lambda _: None)
        ExponentialLearner(**WHOLE, ledger=ledger, unsafe_noise_seed=0).fit(X, Y)
    spent = ledger.spent.epsilon
    again = ExponentialLearner(**WHOLE, ledger=ledger, unsafe_noise_seed=0).fit(X, Y)
    assert ledger.spent.epsilon == spent
    assert any(each.startswith(SAID) for each in again.guarantee_.caveats)


# --- LabelBoost's two bounds on one event ----------------------------------------------------------------------------


def test_the_smaller_of_two_bounds_says_how_many_rows_generalise() -> None:
    printed, found = bns15_theorem_b_5(1, 1 / 11, 0.05), rows_to_generalise(1, 0.1 / 11, 0.05)
    assert found < printed / 30
    growth = lambda n_points: n_points + 1  # noqa: E731
    assert disagreement(0.1 / 11, found, growth, 0.05) <= 1 / 11 < disagreement(0.1 / 11, found - 1, growth, 0.05)
    assert rows_to_generalise(1, 0.9, 0.05) <= ceil(bns15_theorem_b_5(1, 9, 0.05))


def test_label_boost_asks_for_12_072_rows_where_one_bound_alone_asked_for_41_179() -> None:
    learner = LabelBoost(base=NoisyThreshold(concepts=Thresholds(32), epsilon=1.0), epsilon=1.0)
    assert learner.rows_needed().labelled == 12_072
