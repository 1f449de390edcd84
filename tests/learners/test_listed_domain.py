"""What a listed `domain` leaves out of the error bound stands wherever the bound does; what LabelBoost asks for."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest

from quorate.errors import InvalidParameter
from quorate.learners import EmpiricalLearner, ExponentialLearner, GenericLearner, LabelBoost, NoisyThreshold
from quorate.learners.agnostic.bound import disagreement
from quorate.learners.concepts import Rectangles, Stumps, Thresholds
from quorate.learners.label_boost.schedule import rows_to_generalise
from quorate.learners.private_learner import BOUND_OF_LISTED_POINTS
from quorate.learners.sanitizers import MWEM, XorQueries
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


# --- the dichotomies that there really are, counted against every other way ------------------------------------------


FOUR = tuple(product(range(4), repeat=6))
SMALL = tuple(product(range(3), repeat=2))


def stumps_by_hand(domain):
    """Every labelling of the domain by a column, a cut and a direction."""
    table = np.array(domain, dtype=float)
    cuts = [(j, t) for j in range(table.shape[1]) for t in np.unique(table[:, j])]
    below = {(table[:, j] <= t).tobytes() for j, t in cuts}
    return below | {(~np.frombuffer(each, dtype=bool)).tobytes() for each in below}


@pytest.mark.parametrize("domain", [FOUR, SMALL, ((0.0, 1.0), (1.0, 0.0), (2.0, 5.0))])
def test_a_learner_chooses_among_the_stumps_that_there_are(domain):
    concepts = ExponentialLearner(concepts=Stumps(len(domain[0])), epsilon=1.0, domain=domain).whole_class()
    labelled = {row.astype(bool).tobytes() for row in concepts.labels(np.array(domain, dtype=float))}
    assert labelled == stumps_by_hand(domain)
    assert len(concepts) == len(labelled)


def test_six_columns_of_four_values_have_38_stumps_and_are_learned():
    assert len(stumps_by_hand(FOUR)) == 38
    assert Stumps(6).growth(len(FOUR)) == 49_142
    random = np.random.default_rng(0)
    X = random.integers(0, 4, (20_000, 6)).astype(float)
    y = (X[:, 3] > 1).astype(int)
    few = np.where(np.arange(len(X)) < 300, y, -1)
    choice = ExponentialLearner(concepts=Stumps(6), epsilon=1.0, domain=FOUR, unsafe_noise_seed=0)
    sanitized = GenericLearner(concepts=Stumps(6), sanitizer=MWEM(domain=FOUR), epsilon=1.0, unsafe_noise_seed=0)
    assert choice.fit(X, few).score(X, y) == sanitized.fit(X, few).score(X, y) == 1.0
    assert "one of all 38 concepts" in choice.guarantee_.mechanism


def test_queries_are_pairs_of_the_real_dichotomies():
    queries = XorQueries.of(Stumps(2), SMALL)
    found = stumps_by_hand(SMALL)
    pairs = {bytes(a ^ b for a, b in zip(one, other, strict=True)) for one in found for other in found}
    pairs = {min(each, bytes(1 - bit for bit in each)) for each in pairs} - {bytes(len(SMALL))}
    assert len(queries.table) == len(pairs)


def test_a_class_without_a_domain_asks_for_one_and_one_with_too_many_concepts_says_how_many():
    with pytest.raises(InvalidParameter, match="domain must be given"):
        ExponentialLearner(concepts=Stumps(2), epsilon=1.0).rows_needed()
    with pytest.raises(InvalidParameter, match="up to 10 dichotomies"):
        ExponentialLearner(concepts=Stumps(2), epsilon=1.0, domain=SMALL, limit=9).rows_needed()
    with pytest.raises(InvalidParameter, match="Boxes for Rectangles"):
        ExponentialLearner(concepts=Rectangles(16, 2), epsilon=1.0).rows_needed()


def test_a_large_grid_with_a_listed_domain_has_the_rectangles_of_that_domain():
    learner = ExponentialLearner(concepts=Rectangles(16, 2), epsilon=1.0, domain=SMALL, unsafe_noise_seed=0)
    assert len(learner.whole_class()) == 37
    X = np.array(SMALL)[np.random.default_rng(0).integers(0, 9, 600)]
    y = (X >= 1).all(axis=1).astype(int)
    assert learner.fit(X, y).score(X, y) == 1.0
    outside = np.vstack([X, [[60_000, 60_000]]])  # taken: no row decides on a refusal
    assert learner.fit(outside, np.append(y, 1)).predict(outside).shape == (601,)


def test_a_listed_domain_is_part_of_what_a_fit_is_known_by():
    plain = ExponentialLearner(concepts=Thresholds(2), epsilon=1.0)
    listed = ExponentialLearner(concepts=Thresholds(2), epsilon=1.0, domain=[[0], [3]])
    assert len(plain.whole_class()) == 5
    assert len(listed.whole_class()) == 3
