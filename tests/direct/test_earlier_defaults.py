"""A run that was begun by earlier defaults goes on as it was charged, whichever they were."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from quorate import PrivateLogisticRegression, PrivateRegressor
from quorate.direct import flow, prepare
from quorate.direct.task import DirectTask
from quorate.ledger import Budget, Ledger
from quorate.release.charge import PAIR_SUMS

pytestmark = pytest.mark.filterwarnings("ignore::quorate.errors.QuorateWarning")

N = 400
NAMES = {"classes": ["low", "middle", "high"], "two classes": ["low", "high"]}
SCHEMA = {"age": (0.0, 100.0), "bmi": (10.0, 60.0), "sex": ["F", "M"]}
LISTS = {
    "age": (0.0, 100.0),
    "sex": ["F", "M"],
    "ward": list("nesw"),
    "grade": ["0", "1", "2"],
    "blood": ["A", "B", "0"],
}
OF_LISTS = {"schema": LISTS, "feature_map": "linear"}  # kernels of 1,200 drawn rows would take most of the time


def people(n=N):
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, n)
    bmi = 15 + age / 5 + rng.normal(0, 2, n)
    return pl.DataFrame({"age": age, "bmi": bmi, "sex": rng.choice(LISTS["sex"], n)}).with_columns(
        **{name: rng.choice(LISTS[name], n) for name in ("ward", "grade", "blood")}
    )


def model_of(kind, ledger, seed, **more):
    common = {"epsilon": 2.0, "delta": 1e-5, "ledger": ledger, "unsafe_noise_seed": seed, **more}
    if kind == "number":
        return PrivateRegressor(method="direct", target_range=(0, 100), **common)
    return PrivateLogisticRegression(classes=NAMES[kind], **common)


def fit(kind, ledger, seed, n=N, schema=None, **more):
    schema = SCHEMA if schema is None else schema
    X = people(n).select(list(schema))
    age = X["age"].to_numpy()
    y = age if kind == "number" else np.array(NAMES[kind])[(age * len(NAMES[kind]) // 101).astype(int)]
    return model_of(kind, ledger, seed, n_records=n, **more).fit(X, y, schema=schema)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("kind", "earlier", "seed"),
    [
        ("classes", {"averaged": False}, 3),
        ("number", {"averaged": False}, None),
        ("classes", {"averaged": False, "rate_of_drawn": 4.0}, 3),
        ("two classes", {"averaged": False, "paired": False}, 3),
        ("two classes", {"marginals": 0}, None),
        ("classes", {"averaged": False, "rate_of_drawn": 4.0, "paired": False}, None),
        ("number", {"averaged": False, "located": 1}, 3),
        ("number", {"averaged": False, "located": 0}, None),
        ("classes", {"marginals": 0}, 3),
        ("number", {"marginals": 0}, None),
        ("number", {"marginals": 0, "located": 1}, 3),
    ],
)
def test_a_fit_that_was_begun_by_earlier_defaults_goes_on_with_its_charge_and_rounds(monkeypatch, kind, earlier, seed):
    ledger = Ledger(budget=Budget(10.0, 1e-4))
    with monkeypatch.context() as before:
        asked = prepare.as_asked
        before.setattr(prepare, "as_asked", lambda config, public: replace(asked(config, public), **earlier))
        begun = fit(kind, ledger, seed)
    (charged,) = ledger.reservations()
    assert (PAIR_SUMS in charged.purposes) == (kind != "number" and earlier.keys() <= {"averaged", "rate_of_drawn"})
    if "located" in earlier:
        assert (begun.plan_.settings.counting, begun.plan_.settings.nearest) == (2 * earlier["located"], False)
    entries = ledger.head.sequence
    again = fit(kind, ledger, seed)
    assert [reservation.key for reservation in ledger.reservations()] == [charged.key]
    assert ledger.head.sequence == entries  # nothing was drawn
    X = people().select(list(SCHEMA))
    assert (begun.predict(X) == again.predict(X)).all()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("kind", "earlier", "seed"),
    [
        ("classes", {"listed": False, "averaged": False}, 3),
        ("number", {"listed": False, "averaged": False}, 3),
        ("two classes", {"listed": False, "averaged": False}, None),
        ("number", {"listed": False, "averaged": False, "located": 1}, None),
        ("classes", {"marginals": 0}, None),
    ],
)
def test_a_fit_of_lists_that_was_begun_by_earlier_defaults_goes_on_with_its_share(monkeypatch, kind, earlier, seed):
    ledger, other = (Ledger(budget=Budget(10.0, 1e-4)) for _ in range(2))
    with monkeypatch.context() as before:
        asked = prepare.as_asked
        before.setattr(prepare, "as_asked", lambda config, public: replace(asked(config, public), **earlier))
        begun = fit(kind, ledger, seed, **OF_LISTS)
    (charged,) = ledger.reservations()
    entries = ledger.head.sequence
    again = fit(kind, ledger, seed, **OF_LISTS)
    assert [reservation.key for reservation in ledger.reservations()] == [charged.key]
    assert ledger.head.sequence == entries  # nothing was drawn
    X = people().select(list(LISTS))
    assert (begun.predict(X) == again.predict(X)).all()
    assert share_of(again) == share_of(begun) == (None if "marginals" in earlier else 0.3)
    assert share_of(fit(kind, other, seed, **OF_LISTS)) == 0.1


def share_of(model):
    drawn = model._kept.task.drawn
    return None if drawn is None else drawn.before.share


@pytest.mark.parametrize("marginals", [0.1, 0.3])
def test_a_share_that_was_asked_for_is_the_same_release_by_every_default(monkeypatch, marginals):
    ledger = Ledger(budget=Budget(10.0, 1e-4))
    with monkeypatch.context() as before:
        asked = prepare.as_asked
        before.setattr(prepare, "as_asked", lambda config, public: replace(asked(config, public), listed=False))
        fit("classes", ledger, 3, **OF_LISTS, marginals=marginals)
    monkeypatch.setattr(prepare, "_earlier", lambda *given: [])
    fit("classes", ledger, 3, **OF_LISTS, marginals=marginals)
    assert len(ledger.reservations()) == 1


@pytest.mark.parametrize("earlier", [{}, {"averaged": False}, {"averaged": False, "paired": False}])
def test_a_fit_that_was_begun_without_a_share_goes_on_where_a_rare_one_is_declared(monkeypatch, tmp_path, earlier):
    """Two classes of which none is declared to be rare have sums over pairs today, and had none then."""
    with monkeypatch.context() as before:
        asked = prepare.as_asked
        before.setattr(prepare, "as_asked", lambda config, public: replace(asked(config, public), **earlier))
        fit("two classes", tmp_path / "ledger.db", 3)
    fit("two classes", tmp_path / "ledger.db", 3, class_shares={"high": 0.1})
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert len(ledger.reservations()) == 1


@pytest.mark.parametrize("kind", ["classes", "two classes"])
def test_a_fit_whose_sums_were_shrunk_by_the_earlier_rule_goes_on_in_its_coordinates(monkeypatch, kind):
    ledger, other = (Ledger(budget=Budget(10.0, 1e-4)) for _ in range(2))
    with monkeypatch.context() as before:
        before.setattr(flow, "SHRINKAGES", ("spikes",))
        begun = fit(kind, ledger, 3)
    entries, X = ledger.head.sequence, people().select(list(SCHEMA))
    assert (begun.predict_proba(X) == fit(kind, ledger, 3).predict_proba(X)).all()
    assert ledger.head.sequence == entries
    assert not (begun.predict_proba(X) == fit(kind, other, 3).predict_proba(X)).all()


@pytest.mark.parametrize(
    ("kind", "rate", "more"),
    [("classes", 6, {}), ("two classes", 4, {}), ("number", 4, {}), ("classes", 4, {"feature_map": "linear"})],
)
def test_steps_are_longer_on_a_drawn_pool_beside_kernels_where_pairs_are_compared(kind, rate, more):
    model = fit(kind, Ledger(budget=Budget(10.0, 1e-4)), 3, **more)
    assert model._kept.task.plan.settings.rate == rate
    assert f"times the rate {rate}" in " ".join(model._kept.task.why)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [3, None])
def test_units_that_were_held_out_by_earlier_defaults_stay_held_out(monkeypatch, seed):
    ledger = Ledger(budget=Budget(10.0, 1e-4))
    held = []
    of = DirectTask.charge_on
    monkeypatch.setattr(
        DirectTask,
        "charge_on",
        lambda task, ledger: (held.append(task.held.held.reveal().tolist()), of(task, ledger))[1],
    )
    with monkeypatch.context() as before:
        asked = prepare.as_asked
        earlier = {"averaged": False, "rate_of_drawn": 4.0}
        before.setattr(prepare, "as_asked", lambda config, public: replace(asked(config, public), **earlier))
        fit("classes", ledger, seed, n=2_500, calibration_share=0.3)
    fit("classes", ledger, seed, n=2_500, calibration_share=0.3)
    assert len(ledger.reservations()) == 1
    assert held[0] == held[-1]


def test_what_is_refused_is_refused_whatever_the_ledger_holds():
    ledger = Ledger(budget=Budget(10.0, 1e-4))
    fit("classes", ledger, 3)
    entries = ledger.head.sequence
    with pytest.raises(ValueError, match="rounds must be"):
        fit("classes", ledger, 3, rounds=0)
    assert ledger.head.sequence == entries


def test_a_tiny_budget_is_refused_by_its_own_name_or_taken():
    for epsilon in (1e-3, 3e-5):
        fit("classes", Ledger(budget=Budget(1.0, 1e-5)), 3, epsilon=epsilon, delta=1e-9)
    with pytest.raises(ValueError, match="epsilon") as refusal:
        fit("classes", Ledger(budget=Budget(1.0, 1e-5)), 3, epsilon=1e-9, delta=1e-9)
    assert "mu" not in str(refusal.value)
