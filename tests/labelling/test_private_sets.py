"""A limit of prediction sets from private units: its price by another road, a twin that is caught, and its slack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from math import exp
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.labelling.doubles import paid

from quorate.accounting import PureDP, Repeated, epsilon
from quorate.audit import PureClaim, audit_mechanism, audit_schedule
from quorate.audit.schedules import with_limit
from quorate.ensemble import unit_places
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import private_limit, private_slack
from quorate.labelling.private_sets import PLACES
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyCounts, PrivateQuantile
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret

KEY = Secret(bytes(range(32)))


def law(scores: Any, epsilon_: float, sensitivity: float) -> Any:
    """Return the law of permute-and-flip, by all subsets of coins: the choice is uniform among heads."""
    heads = [exp(epsilon_ * (score - max(scores)) / (2 * sensitivity)) for score in scores]
    chosen = np.zeros(len(scores))
    for size in range(1, len(scores) + 1):
        for up in combinations(range(len(scores)), size):
            chance = np.prod([heads[j] if j in up else 1 - heads[j] for j in range(len(scores))])
            chosen[list(up)] += chance / size
    return chosen


def plain_scores(counts: Any, share: float) -> Any:
    """Return what each place misses of the quantile, in units, by its definition alone."""
    n, scores = sum(counts), []
    for j in range(len(counts)):
        too_few = share * n - sum(counts[: j + 1])
        too_many = sum(counts[:j]) - share * n
        scores.append(-max(0.0, too_few, too_many))
    return scores


@pytest.mark.parametrize("share", [0.9, 0.25, 0.5])
def test_the_price_of_every_change_of_one_unit_by_another_road(share: float) -> None:
    """All tables of up to five units on four places: exact laws of neighbours, by definitions, lie within ε."""
    mechanism, worst = PrivateQuantile(epsilon=1.0, share=share), 0.0
    assert mechanism.event == PureDP(1.0)
    assert epsilon(mechanism.event, 0) == 1.0
    laws = {}
    for counts in product(range(6), repeat=4):
        if sum(counts) <= 5:
            laws[counts] = law(plain_scores(counts, share), 1.0, 1.0)
            own = mechanism.scores(np.array([counts]))[0] / mechanism.as_fraction.denominator
            np.testing.assert_allclose(own, plain_scores(counts, share), atol=1e-12)
            assert max(own) == 0  # the quantile itself is always there
    for counts, one in laws.items():
        for place in range(4):
            added = tuple(n + (j == place) for j, n in enumerate(counts))
            moved = [tuple(n - (j == other) for j, n in enumerate(added)) for other in range(4)]
            for neighbour in (added, *moved):
                if neighbour in laws:
                    worst = max(worst, float(np.abs(np.log(one) - np.log(laws[neighbour])).max()))
    assert 0.6 < worst <= 1.0 + 1e-12


@dataclass(frozen=True)
class ExactQuantile(PrivateQuantile):
    """The twin: the quantile as it is, at the price of the noisy one."""

    def release_many(self, counts: Any, noise: Any) -> Any:
        return self.scores(counts).argmax(axis=1)


@dataclass(frozen=True)
class TooLittleNoise(PrivateQuantile):
    """Another: scores in q-ths of q-ths, and noise as if one unit moved them by q."""

    def release_many(self, counts: Any, noise: Any) -> Any:
        return self.choice.release_many(self.as_fraction.denominator * self.scores(counts), noise)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_audit_passes_the_release_and_catches_its_twins(seed: int) -> None:
    pair = np.array([9, 0, 1, 0]), np.array([8, 0, 2, 0])
    for kind, violated in ((PrivateQuantile, False), (ExactQuantile, True), (TooLittleNoise, True)):
        mechanism = kind(epsilon=1.0, share=0.9)
        assert audit_mechanism(mechanism, pair, PureClaim(1.0), runs=20_000, seed=seed).violated == violated, kind


def test_the_audit_of_a_run_attacks_the_choice_of_its_limit_beside_the_rest() -> None:
    votes = NoisyCounts(sigma=40.0, form="binary")
    rest = partial(audit_schedule, votes, Repeated(votes.event, 2), n_teachers=50, n_classes=2)
    for kind, violated in ((PrivateQuantile, False), (ExactQuantile, True), (TooLittleNoise, True)):
        how: dict[str, Any] = {"delta": 1e-5, "confidence": 1 - 1e-6, "runs": 2_000, "seed": 1}
        found = with_limit(rest, kind(epsilon=1.0, share=0.9), **how)
        assert [attack.name for attack in found.attacks if attack.violated] == violated * [found.attacks[-1].name]
        assert (found.attacks[-1].claimed, found.confidence) == (pytest.approx(1.0, abs=1e-4), 1 - 1e-6)


def rows_and_model(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    model = LogisticRegression()
    model.classes_, model.coef_, model.intercept_ = np.array([0, 1]), np.array([[2.0, 0.0]]), np.zeros(1)
    model.n_features_in_ = 2
    return X, y, model


def limit_of(X: Any, y: Any, model: Any, *, reservation: Any = None, mechanism: Any = None, **more: Any) -> Any:
    mechanism = mechanism or PrivateQuantile(epsilon=1.0, share=0.9)
    reservation = reservation or paid(mechanism, "tuning")
    given = {"unit_keys": [b"%d" % row for row in range(len(X))], "noise": SeededNoise(1), "key": KEY, **more}
    return private_limit(
        model, X, y, given.pop("unit_keys"), classes=[0, 1], mechanism=mechanism, reservation=reservation, **given
    )


def test_the_code_that_releases_gives_the_mechanism_one_place_a_unit_and_charges_before() -> None:
    X, y, model = rows_and_model(900)
    ledger = Ledger(budget=Budget(1.0, 1e-6))
    mechanism = PrivateQuantile(epsilon=1.0, share=0.9)
    paid = ledger.reserve(mechanism.event, delta=0, purposes={"tuning": 1}, key="limit")
    released = limit_of(X, y, model, reservation=paid, n_units=4_500, share=0.2, noise=OSNoise())
    assert ledger.spent.epsilon == pytest.approx(1.0)
    new, truth, _ = rows_and_model(20_000, seed=5)
    sets = released.sets(model.predict_proba(new))
    assert released.slack is not None
    assert 0.9 - released.slack < sets[np.arange(20_000), truth].mean() < 0.97
    assert (released.coverage, released.event, released.seeded) == (0.9, PureDP(1.0), False)
    with pytest.raises(BudgetExhausted):
        limit_of(X, y, model, reservation=paid)
    with pytest.raises(InvalidParameter, match="n_units and share make a slack together"):
        limit_of(X, y, model, n_units=900)
    cheaper = Ledger(budget=Budget(1.0, 1e-6)).reserve(PureDP(0.1), delta=0, purposes={"tuning": 1}, key="limit")
    with pytest.raises(InvalidParameter, match="tuning"):
        limit_of(X, y, model, reservation=cheaper)


class Quirky(LogisticRegression):
    """A model that fails on some rows, and says another thing where it sees more than one."""

    def predict_proba(self, X: Any) -> Any:
        if X[0, 1] > 1.5:
            raise ValueError(X)
        return np.full((len(X), 2), 0.5) if len(X) > 1 else super().predict_proba(X)


def test_a_unit_counts_once_by_itself_and_one_on_which_the_model_fails_is_the_worst() -> None:
    X, y, plain = rows_and_model(24)
    model = Quirky()
    vars(model).update(vars(plain))
    units = [b"%d" % (row // 3) for row in range(24)]
    how: dict[str, Any] = {"classes": [0, 1], "n_places": 10, "key": KEY}
    whole = unit_places(model, X, y, units, **how).reveal()
    assert whole.sum() == 8
    alone = sum(
        unit_places(model, X[at : at + 3], y[at : at + 3], units[at : at + 3], **how).reveal() for at in range(0, 24, 3)
    )
    np.testing.assert_array_equal(whole, alone)  # what one unit adds follows from its rows and public facts
    far = X.copy()
    far[:, 1] = 2.0
    np.testing.assert_array_equal(unit_places(model, far, y, units, **how).reveal(), [0] * 9 + [8])
    every = unit_places(plain, X, y, [b"%d" % row for row in range(24)], **how).reveal()
    places = np.clip(np.ceil((1 - plain.predict_proba(X)[np.arange(24), y]) * 10) - 1, 0, 9).astype(int)
    np.testing.assert_array_equal(every, np.bincount(places, minlength=10))


def test_the_slack_holds_as_often_as_it_says_and_a_twin_without_the_noise_in_it_does_not() -> None:
    """Units, key and noise are drawn 2,000 times; where a score is uniform, place j covers (j + 1)/PLACES."""
    rng, n_units, share, failure = np.random.default_rng(4), 3_000, 0.2, 0.05
    mechanism = PrivateQuantile(epsilon=0.2, share=0.9)
    slack = private_slack(mechanism, n_units, share=share, failure=failure)
    held = rng.binomial(n_units, share, size=2_000)
    counts = np.array([np.bincount(rng.integers(0, PLACES, n), minlength=PLACES) for n in held])
    covered = (mechanism.release_many(counts, SeededNoise(2)) + 1) / PLACES
    most = failure + 2 * np.sqrt(failure * (1 - failure) / 2_000)
    assert np.mean(covered < 0.9 - slack) <= most
    twin = private_slack(PrivateQuantile(epsilon=1e6, share=0.9), n_units, share=share, failure=failure)
    assert np.mean(covered < 0.9 - twin) > most
    assert private_slack(mechanism, 30_000, share=share) < private_slack(mechanism, 3_000, share=share)


def test_what_cannot_be_is_refused_in_a_line() -> None:
    with pytest.raises(InvalidParameter, match="hides more than the 20 units that are held out, and nothing would be"):
        private_slack(PrivateQuantile(epsilon=0.1, share=0.9), 100, share=0.2)
    for wrong, said in (
        ({"share": 0.91234}, "three decimals"),
        ({"share": 1.0}, "share must be a number > 0 and < 1, got 1.0"),
        ({"epsilon": 0}, "epsil"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            PrivateQuantile(**{"epsilon": 1.0, "share": 0.9, **wrong})
