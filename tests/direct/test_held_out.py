"""Units that a fit holds out for prediction sets: one charge, one draw, a price by another road, and twins."""

import threading
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from tests.gaussian import gaussian_delta
from tests.labelling.test_evaluation import ExactQuantile

from quorate import Budget, Ledger, PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.accounting import Parallel, PureDP, Repeated, delta, epsilon, from_json
from quorate.audit import audit_mechanism
from quorate.audit.claims import PureClaim
from quorate.direct import flow as flow_module
from quorate.errors import InvalidParameter, QuorateWarning
from quorate.estimators.resumable import by_fit
from quorate.mechanisms import PrivateQuantile
from quorate.release.charge import GRADIENT_ROUND, TUNING
from quorate.release.guarantee import BY_POSITION
from quorate.run.held_out import HeldOut, plan_sets
from quorate.run.method_config import MethodConfig
from quorate.students import LabelStudent
from quorate.types import Secret
from quorate.voting.shard_rows import learning, rows_by_teacher, shards_of

N, POOL = 4_000, 150
X, Y = make_classification(N + POOL + 4_000, n_features=4, flip_y=0.1, random_state=3)
PUBLIC, TEST = PublicPool(X[N : N + POOL]), slice(N + POOL, None)
HELD = MethodConfig(epsilon=1.0, delta=1e-5, calibration_share=0.3)


def estimator(kind=PrivateLogisticRegression, **changes):
    given = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": N, "calibration_share": 0.3}
    how = {"feature_map": "linear", "unsafe_noise_seed": 4} if kind is PrivateLogisticRegression else {}
    return kind(**{**given, **how, **changes})


def covered(fitted):
    sets = fitted.predict_set(X[TEST])
    return float(sets[np.arange(len(sets)), Y[TEST]].mean())


def test_a_fit_holds_units_out_in_its_own_charge_and_keeps_its_promise():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    fitted = estimator(ledger=ledger).fit(X[:N], Y[:N], public=PUBLIC)
    [reservation] = ledger.reservations()
    assert reservation.purposes[TUNING] == 1
    assert reservation.remaining(TUNING) == 0
    promise = fitted.coverage_promise()
    assert covered(fitted) > promise.least - 0.02
    assert 0 < promise.slack < 0.05
    with pytest.raises(InvalidParameter, match=r"coverage must be 0\.9, got 0\.8"):
        fitted.predict_set(X[TEST], coverage=0.8)
    facts = fitted.facts()
    assert facts.fitted.private_sets.share == 0.3
    assert facts.setup.n_records == N
    assert "one choice of a limit for prediction sets" in fitted.guarantee_.mechanism
    assert fitted.fit(X[:N], Y[:N], public=PUBLIC)
    assert len(ledger.reservations()) == 1
    assert fitted.coverage_promise() == promise


def test_the_price_of_the_whole_is_that_of_the_dearer_part_by_another_road():
    """δ(ε) of the two alone, by Gauss's and the choice's own closed forms: no unit is in both."""
    for neighbours, length in (("add-or-remove", 1), ("replace", 2)):
        ledger = Ledger(budget=Budget(1.0, 1e-5))
        fitted = estimator(neighbours=neighbours, ledger=ledger).fit(X[:N], Y[:N], public=PUBLIC)
        assert [len(fitted.guarantee_.also), fitted.guarantee_.caveats.count(BY_POSITION)] == [1, 1]
        [reservation] = ledger.reservations()
        plan, event = fitted.plan_, reservation.event
        mu = length * 2.0**plan.grid.k * np.sqrt(plan.settings.rounds) / plan.sigma
        for eps in (0.2, 0.7, 1.0):
            choice = max(0.0, (np.exp(1.0) - np.exp(eps)) / (1 + np.exp(1.0)))
            assert delta(event, eps) == pytest.approx(max(gaussian_delta(eps, mu), choice), rel=1e-3, abs=1e-9)
        assert epsilon(event, 1e-5) <= 1.0


def test_parallel_events_cost_what_the_dearest_does_and_are_read_back():
    few, many = Repeated(PureDP(0.3), 2), PureDP(0.5)
    event = Parallel((few, many))
    assert epsilon(event, 0.0) == epsilon(few, 0.0)
    assert from_json(event.to_json()) == event
    assert epsilon(Repeated(event, 2), 1e-6) >= epsilon(Repeated(few, 2), 1e-6)
    assert epsilon(Parallel(()), 0.0) == delta(Parallel(()), 0.5) == 0


def test_what_a_unit_adds_follows_from_that_unit_and_each_is_on_one_side():
    plan = plan_sets(HELD, n_records=N, budget=(1.0, 1e-5), unit="record")
    keys = [b"%d" % (row // 2) for row in range(N)]
    held = HeldOut.of(plan, keys, Y[:N], Secret(bytes(32)))
    assert (held.held.reveal()[::2] == held.held.reveal()[1::2]).all()
    assert ((held.codes.reveal() >= 0).reshape(-1, 2).sum(axis=1) == held.held.reveal()[::2]).all()
    labels = Y[:N].copy()
    labels[10:12] = -1
    other = HeldOut.of(plan, keys, labels, Secret(bytes(32))).codes.reveal()
    assert (np.delete(other, [10, 11]) == np.delete(held.codes.reveal(), [10, 11])).all()


@pytest.fixture(scope="module")
def counts_of_neighbours():
    """Counts by place as a run makes them, with the unit that is held out first and without its class."""
    task, seen = None, []
    fitted = estimator()
    with pytest.MonkeyPatch.context() as patch:
        own = flow_module.held_out_places

        def look(task_, weights, grid):
            nonlocal task
            codes = task_.held.codes.reveal().copy()
            seen.append(own(task_, weights, grid).reveal())
            codes[np.flatnonzero(codes >= 0)[0]] = -1
            without = replace(task_, held=HeldOut(task_.held.plan, task_.held.held, Secret(codes)))
            seen.append(own(without, weights, grid).reveal())
            return Secret(seen[0])

        patch.setattr(flow_module, "held_out_places", look)
        fitted.fit(X[:N], Y[:N], public=PUBLIC)
    return seen[0], seen[1]


def test_an_audit_of_what_a_run_counts_passes_and_catches_the_exact_quantile(counts_of_neighbours):
    with_unit, without = counts_of_neighbours
    assert np.abs(with_unit - without).sum() == 1
    pair = np.array([9, 0, 1, 0]), np.array([8, 0, 1, 0])  # a table of one unit more or less, where it tips the share
    for kind, caught in ((PrivateQuantile, False), (ExactQuantile, True)):
        result = audit_mechanism(kind(epsilon=1.0, share=0.9), pair, PureClaim(1.0), runs=20_000, seed=1)
        assert result.violated == caught, kind


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("lost", ["before the draw", "after the draw"])
def test_a_killed_fit_goes_on_and_draws_the_limit_once(lost, tmp_path, monkeypatch):
    path = tmp_path / "fit.ledger"
    how = {"ledger": path, "feature_map": "linear", "unsafe_noise_seed": None}
    with monkeypatch.context() as patch:
        after = lost == "after the draw"
        where, name = (PrivateQuantile, "release_many") if after else (flow_module, "held_out_places")
        own = getattr(where, name)

        def ends(*arguments):
            if after:
                own(*arguments)
            raise KeyboardInterrupt

        patch.setattr(where, name, ends)
        with pytest.raises(KeyboardInterrupt):
            estimator(**how).fit(X[:N], Y[:N], public=PUBLIC)
    monkeypatch.setattr(
        PrivateQuantile, "release_many", _once(PrivateQuantile.release_many, allowed=lost == "before the draw")
    )
    told = pytest.warns(QuorateWarning, match="drawn-and-lost: 1 limit of the units held out")
    with told if lost == "after the draw" else nullcontext():
        fitted = estimator(**how).resume(X[:N], Y[:N], public=PUBLIC)
    with Ledger(path) as ledger:
        [reservation] = ledger.reservations()
        assert reservation.purposes[GRADIENT_ROUND] == fitted.n_rounds_
    if lost == "before the draw":
        assert covered(fitted) > 0.8
    else:  # paid for, lost, and never drawn again
        with pytest.raises(Exception, match="prediction sets need labelled public rows"):
            fitted.predict_set(X[TEST])
        assert [part.interrupted for part in fitted.facts().spending.parts if part.purpose == TUNING] == [1]


def _once(own, *, allowed):
    def release(*arguments):
        assert allowed, "a limit was drawn again"
        return own(*arguments)

    return release


@pytest.mark.heavy
def test_a_shuffle_of_rows_known_by_their_place_is_another_fit(tmp_path):
    """Else a row could learn before the shuffle and choose the limit after it."""
    ledger = Ledger(budget=Budget(3.0, 1e-4))
    order = np.random.default_rng(0).permutation(N)
    for rows in (np.arange(N), order):
        estimator(ledger=ledger).fit(X[:N][rows], Y[:N][rows], public=PUBLIC)
    assert len(ledger.reservations()) == 2


def test_what_cannot_be_is_refused_with_the_number_that_would_do():
    for changes, words in (
        ({"n_records": 300}, r"calibration_share=0\.3 of 300 records is too little .* \d[\d,]+ records would do"),
        ({"n_records": None}, "declare n_records"),
        ({"calibration_share": 1.5}, "calibration_share must be"),
        ({"coverage": 0.12345}, "coverage must be at most three decimals"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            estimator(**changes).fit(X[:N], Y[:N], public=PUBLIC)
    plan = plan_sets(HELD, n_records=N, budget=(1.0, 1e-5), unit="record")
    assert plan.slack < 0.05
    said = " ".join(str(check(estimator(), X[:N], Y[:N], public=PUBLIC)).split())
    assert f"30.0 % of the records for prediction sets, within the same charge: {plan.promise}" in said


@pytest.mark.heavy
def test_a_ledger_that_adds_rho_pays_no_more_for_it():
    ledger = Ledger(budget=Budget(1.0, 1e-5, composition="zcdp"))
    fitted = estimator(ledger=ledger, calibration_share=0.6).fit(X[:N], Y[:N], public=PUBLIC)
    assert covered(fitted) > 0.85
    assert fitted.facts().fitted.private_sets.epsilon < 0.5


@pytest.mark.heavy
def test_nothing_but_the_learning_units_enters_rounds_and_teachers():
    how = {"public": PUBLIC, "groups": None, "begin": False}
    rounds = estimator()._task(X[:N], Y[:N], **how)
    assert ((rounds.private.reveal().codes >= 0) == ~rounds.held.held.reveal()).all()
    assert rounds.paying_for_rounds(rounds.event) == rounds.plan.event
    votes = estimator(PrivateClassifier, method="votes", n_teachers=60)._task(X[:N], Y[:N], **how)
    shards = learning(votes, shards_of(votes)).reveal()
    assert ((shards == votes.recipe.n_teachers) == votes.held.held.reveal()).all()
    wanted = [range(votes.recipe.n_teachers)]
    taught = sum(len(part.codes) for part in rows_by_teacher(votes, Secret(shards), wanted))
    assert taught == int((~votes.held.held.reveal()).sum())
    assert (votes.n_records, votes.facts.n_records) == (N, round(0.7 * N))
    assert "more than 10 % off" not in str(
        check(estimator(PrivateClassifier, method="votes"), X[:N], Y[:N], public=PUBLIC)
    )


def test_a_fit_by_votes_that_goes_on_holds_out_the_same_units():
    """By another key than that of its charge, a unit would learn before a kill and be held out after it."""
    votes = estimator(PrivateClassifier, method="votes", n_teachers=60, ledger=Ledger(budget=Budget(1.0, 1e-5)))
    how = {"public": PUBLIC, "groups": None}
    begun, again = (votes._task(X[:N], Y[:N], **how, nonce=nonce) for nonce in ("2a", ""))
    found = next(iter(by_fit(again)("2a")))
    assert np.array_equal(shards_of(found).reveal(), shards_of(begun).reveal())
    assert np.array_equal(found.held.held.reveal(), begun.held.held.reveal())
    assert np.array_equal(found.held.codes.reveal(), begun.held.codes.reveal())
    assert not np.array_equal(again.held.held.reveal(), begun.held.held.reveal())


class Locked(LogisticRegression):
    """A model that cannot be sent to the process which is to ask it about units that are held out."""

    def fit(self, *rows, **how):
        self.lock_ = threading.Lock()
        return super().fit(*rows, **how)


@pytest.mark.heavy  # starts processes
def test_a_student_that_does_not_travel_is_refused_before_the_charge():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    votes = estimator(PrivateClassifier, method="votes", n_teachers=60, ledger=ledger, student=Locked())
    with pytest.raises(InvalidParameter, match=r"the student Locked fails on the public rows .* cannot pickle"):
        votes.fit(X[:N], Y[:N], public=PUBLIC)
    assert not ledger.reservations()


def test_a_limit_is_paid_for_one_student_and_labels_alone_for_all():
    """Sets of another student by the limit of this one would not hold what is promised."""
    for share, n_charges in ((0.3, 3), (None, 1)):
        votes = estimator(PrivateClassifier, method="votes", n_teachers=60, calibration_share=share)
        task = votes._task(X[:N], Y[:N], public=PUBLIC, groups=None, begin=False)
        others = (LabelStudent(LogisticRegression(C=c)) for c in (1.0, 2.0))
        tasks = [task, *(replace(task, student=student) for student in others)]
        assert len({of.content_key for of in tasks}) == n_charges


@pytest.mark.heavy  # trains teachers
def test_votes_hold_units_out_and_no_teacher_sees_them():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    votes = estimator(PrivateClassifier, method="votes", n_teachers=60, ledger=ledger)
    fitted = votes.fit(X[:N], Y[:N], public=PUBLIC)
    [reservation] = ledger.reservations()
    assert isinstance(reservation.event, Parallel)
    assert reservation.remaining(TUNING) == 0
    assert covered(fitted) > fitted.coverage_promise().least - 0.02
