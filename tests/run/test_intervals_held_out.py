"""Intervals of a number on units held out, by both methods: coverage, price, what one unit adds, what goes on."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from quorate import Budget, Ledger, PrivateRegressor, PublicPool, check
from quorate.accounting import Parallel, delta
from quorate.data.labels import STEPS
from quorate.direct import flow as direct_flow
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateWarning
from quorate.mechanisms import PrivateQuantile
from quorate.mechanisms.noisy_mean import NoisyMeans
from quorate.release.charge import TUNING
from quorate.run.held_out import ENDS, HeldOut, plan_sets
from quorate.run.method_config import MethodConfig
from quorate.types import Secret
from quorate.voting import number_flow
from quorate.voting.numbers import NumberTask

N, POOL = 5_000, 200
_rng = np.random.default_rng(3)
X = _rng.normal(size=(N + POOL + 2_000, 3))
Y = 300 + 12 * X[:, 0] + 4 * _rng.standard_t(6, size=len(X))
PUBLIC, TEST = PublicPool(X[N : N + POOL]), slice(N + POOL, None)
METHODS = ("direct", "votes")


def estimator(method, **changes):
    given = {"target_range": (0, 1_000), "epsilon": 2.0, "delta": 1e-5, "n_records": N}
    how = {"calibration_share": 0.3, "unsafe_noise_seed": 4, "method": method}
    how |= {"feature_map": "linear"} if method == "direct" else {"n_jobs": 1}
    return PrivateRegressor(**{**given, **how, **changes})


def fitted(method, **changes):
    return estimator(method, **changes).fit(X[:N], Y[:N], public=PUBLIC)


def task_of(method, y=None, **changes):
    how = {"public": PUBLIC, "groups": None, "begin": False}
    return estimator(method, **changes)._task(X[:N], Y[:N] if y is None else y, **how)


def covered(model):
    low, high = model.predict_interval(X[TEST]).T
    return float(np.mean((low <= Y[TEST]) & (Y[TEST] <= high)))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_holds_units_out_in_its_own_charge_and_keeps_its_promise(method):
    ledger = Ledger(budget=Budget(2.0, 1e-5))
    model = fitted(method, ledger=ledger)
    [reservation] = ledger.reservations()
    assert isinstance(reservation.event, Parallel)
    assert (reservation.purposes[TUNING], reservation.remaining(TUNING)) == (1, 0)
    promise = model.coverage_promise()
    assert "90 % of intervals, for one row of each unit" in str(promise)
    assert 0 < promise.slack < 0.05
    assert promise.least - 0.02 < covered(model) < 0.97
    low, high = model.predict_interval(X[TEST]).T
    assert np.ptp(high - low) < 1e-6
    assert high[0] - low[0] < 100  # of a range of 1,000
    with pytest.raises(InvalidParameter, match=r"coverage must be 0\.9, got 0\.8"):
        model.predict_interval(X[TEST], coverage=0.8)
    facts = model.facts()
    assert facts.from_json(facts.to_json()) == facts
    assert facts.fitted.private_intervals.limit == pytest.approx((high - low)[0] / 2)
    assert facts.setup.n_records == N
    assert "one choice of a limit for intervals" in model.guarantee_.mechanism
    again = fitted(method, ledger=ledger)
    assert len(ledger.reservations()) == 1
    assert np.array_equal(again.predict_interval(X[TEST]), model.predict_interval(X[TEST]))


def test_the_price_of_the_whole_is_that_of_the_dearer_part_by_another_road():
    """Of votes: δ(ε) of counts and means, by Gauss's closed form, beside that of the choice: no unit is in both."""
    task = task_of("votes")
    assert isinstance(task, NumberTask)
    assert isinstance(task.mechanism, NoisyMeans)
    moved = 2 * task.mechanism.length  # on each query, if a teacher's vector is as long as it may be
    length = task.n_queries * (moved / task.mechanism.sigma) ** 2 + 2 * 2 / task.counts.sigma**2
    mu = float(np.sqrt(length))
    for eps in (0.5, 1.5, 1.99):
        learning = norm.cdf(mu / 2 - eps / mu) - np.exp(eps) * norm.cdf(-mu / 2 - eps / mu)
        choice = max(0.0, (np.exp(2.0) - np.exp(eps)) / (1 + np.exp(2.0)))
        assert delta(task.event, eps) == pytest.approx(max(learning, choice), rel=1e-3, abs=1e-9)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_unit_is_on_one_side_and_moves_one_place_alone(method):
    task = task_of(method)
    held = task.held.held.reveal()
    assert ((task.private.reveal().codes >= 0) == ~held).all()
    counts = _places(method, task)
    assert counts.sum() == held.sum()
    codes = task.held.codes.reveal().copy()
    first = int(np.flatnonzero(codes >= 0)[0])
    for other, most in ((-1, 1), (STEPS, 2)):  # removed, replaced
        codes[first] = other
        moved = np.abs(_places(method, with_targets(task, codes)) - counts)
        assert 0 < moved.sum() <= most
    codes = np.where(np.arange(N) % 7 == 0, task.held.codes.reveal(), -1)  # many others gone: the same places
    rest = np.where(np.arange(N) % 7 == 0, -1, task.held.codes.reveal())
    alone, others = (_places(method, with_targets(task, part)) for part in (codes, rest))
    assert (alone + others == counts).all()


def with_targets(task, codes):
    return replace(task, held=HeldOut(task.held.plan, task.held.held, Secret(codes)))


def _places(method, task):
    rng = np.random.default_rng(0)
    if method == "votes":
        weights = rng.normal(size=1 + task.coordinates.n_directions) / 10
        return number_flow.held_out_places(task, weights, (10_000, 30_000)).reveal()
    weights = rng.normal(size=task.plan.start.shape)
    return direct_flow.held_out_places(task, weights, replace(task.plan.grid, low=10_000, high=30_000)).reveal()


def test_a_place_is_never_below_the_error_and_what_is_no_number_is_the_widest():
    budget = {"epsilon": 2.0, "delta": 1e-5}
    asked = MethodConfig(**budget, calibration_share=0.3, target_range=task_of("votes").target_range)
    plan = plan_sets(asked, n_records=N, budget=(2.0, 1e-5), unit="record")
    for error in (0.0, 1e-6, 0.0123, 0.5, 0.99999, 1.0, np.nan, np.inf):
        [place] = np.flatnonzero(plan.places_of_errors(np.array([error]), 0.0))
        assert ENDS[place] >= (error if error <= 1 else 1.0) or place == len(ENDS) - 1
        assert place == 0 or ENDS[place - 1] < min(np.nan_to_num(error, nan=1.0), 1.0) + 2e-5


@pytest.mark.heavy
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", ["before the draw", "after the draw"])
def test_a_killed_fit_goes_on_and_draws_the_limit_once(method, lost, tmp_path, monkeypatch):
    how = {"ledger": tmp_path / "fit.ledger", "unsafe_noise_seed": None}
    own, drawn = PrivateQuantile.release_many, []

    def ends(*arguments):
        if lost == "after the draw":
            drawn.append(own(*arguments))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PrivateQuantile, "release_many", ends)
        if lost == "before the draw":
            flow = direct_flow if method == "direct" else number_flow
            patch.setattr(flow, "held_out_places", ends)
        with pytest.raises(KeyboardInterrupt):
            fitted(method, **how)
    if lost == "after the draw":
        monkeypatch.setattr(PrivateQuantile, "release_many", lambda *_: pytest.fail("a limit was drawn again"))
    told = pytest.warns(QuorateWarning, match="drawn-and-lost: 1 limit of the units held out")
    with told if lost == "after the draw" else nullcontext():
        model = estimator(method, **how).resume(X[:N], Y[:N], public=PUBLIC)
    if lost == "before the draw":
        assert covered(model) > 0.85
    else:
        with pytest.raises(PreconditionFailed, match="intervals need public rows"):
            model.predict_interval(X[TEST])
        [part] = [part for part in model.facts().spending.parts if part.purpose == TUNING]
        assert part.interrupted == 1


def test_too_few_are_refused_with_the_number_that_would_do_and_a_check_says_the_promise():
    for method in METHODS:
        for changes, words in (
            ({"n_records": 300}, r"calibration_share=0\.3 of 300 records is too little for intervals: .* would do"),
            ({"n_records": None}, "declare n_records"),
            ({"coverage": 0.12345}, "coverage must be at most three decimals"),
        ):
            with pytest.raises(InvalidParameter, match=words):
                fitted(method, **changes)
        found = check(estimator(method), X[:N], Y[:N], public=PUBLIC)
        plan = task_of(method).held.plan
        assert found.found["held_out"] == plan.facts
        said = " ".join(str(found).split())
        assert f"30.0 % of the records for intervals, within the same charge: {plan.promise}" in said
