"""Fits without public rows: one charge for marginals and rounds, a pool that is drawn, resume, and what is refused."""

import datetime as dt
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from tests.direct.conftest import dies
from tests.labelling.conftest import Killed

from quorate import (
    Budget,
    Ledger,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateRegressor,
    PublicPool,
    QuorateWarning,
    check,
)
from quorate.accounting import Composed, epsilon
from quorate.data.declared_schema import Schema
from quorate.direct import descend
from quorate.direct import task as task_module
from quorate.direct.before_pool import before_pool, feature_map_of
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.mechanisms import NoisyMarginals
from quorate.release import release as released
from quorate.release.charge import COORDINATES, GRADIENT_ROUND, MARGINAL_LEVEL
from quorate.run import drawn_pool
from quorate.students.scores import SCORINGS

N = 2_000
LISTS = Schema({"ward": ["north", "south", "west"], "smokes": [True, False], "grade": ["0", "1", "2"], "note": "drop"})
NUMBERS = {"age": (0, 120), "income": "number", "seen": (dt.date(2000, 1, 1), dt.date(2040, 1, 1)), "ward": ["n", "s"]}


def wards(n, seed):
    rng = np.random.default_rng(seed)
    cells = {"grade": rng.integers(0, 3, n), "note": ["-"] * n}
    cells |= {"ward": rng.choice(["north", "south", "west"], n), "smokes": rng.random(n) < 0.3}
    frame = pl.DataFrame(cells)
    truth = frame["smokes"].cast(int) * 2 + (frame["ward"] == "north").cast(int) + frame["grade"] > 1.9
    return frame, truth.cast(int).to_list()


ROWS, LABELS = wards(N, 1)


def patients(n, seed):
    rng = np.random.default_rng(seed)
    age, income = rng.normal(45, 15, n).round().clip(0, 100), np.exp(rng.normal(8, 1, n))
    days = rng.integers(0, 300, n)
    seen, ward = [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in days], rng.choice(["n", "s"], n)
    truth = (age - 45) / 15 + (np.log(income) - 8) + (days - 150) / 200 + (ward == "n") - 0.5 > 0
    return pl.DataFrame({"age": age, "income": income, "seen": seen, "ward": ward}), truth.astype(int).tolist()


def estimator(**changes):
    """A fit in linear features, unless a test asks for others: kernels of 1,200 drawn rows take most of its time."""
    given = {"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 4, **changes}
    return PrivateLogisticRegression(**{"feature_map": "linear", **given})


def _fitted(feature_map):
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    return estimator(ledger=ledger, feature_map=feature_map).fit(ROWS, LABELS, schema=LISTS), ledger


@pytest.fixture(scope="module")
def fitted():
    return _fitted("linear")


@pytest.fixture(scope="module", params=["linear", pytest.param("auto", marks=pytest.mark.heavy)])
def fitted_by(request):
    return _fitted(request.param)


def test_marginals_and_rounds_are_one_charge_of_the_whole_budget(fitted_by):
    clf, ledger = fitted_by
    [reservation] = ledger.reservations()
    assert 2.0 - 1e-6 < ledger.spent.epsilon <= 2.0
    assert isinstance(reservation.event, Composed)
    marginals = NoisyMarginals(clf._kept.task.drawn.before.marginals.partitions, 1.0, "add-or-remove")
    assert set(reservation.purposes) == {MARGINAL_LEVEL, COORDINATES, GRADIENT_ROUND}
    assert reservation.purposes[MARGINAL_LEVEL] == marginals.n_levels == 1
    assert reservation.remaining(GRADIENT_ROUND) == 0
    assert clf.guarantee_.also[0].epsilon > clf.guarantee_.epsilon


def test_the_model_learns_and_reads_rows_by_the_schema(fitted_by):
    clf, _ = fitted_by
    new, truth = wards(500, 2)
    predicted = clf.predict(new)
    assert (predicted == np.array(truth)).mean() > 0.85
    as_text = new.with_columns(pl.col("grade").cast(float).cast(str), pl.col("smokes").cast(str)).drop("note")
    assert (clf.predict(as_text) == predicted).all()
    assert (clf.predict(new.to_pandas()) == predicted).all()
    assert clf.pool_.columns == ["ward", "smokes", "grade"]
    assert len(clf.pool_) >= 1_200


@pytest.mark.heavy
def test_the_same_fit_goes_on_without_a_charge_and_gives_the_same_model(fitted):
    clf, ledger = fitted
    again = estimator(ledger=ledger).fit(ROWS, LABELS, schema=dict(LISTS.declared))
    assert len(ledger.reservations()) == 1
    assert (again.coef_ == clf.coef_).all()
    assert again.pool_.equals(clf.pool_)


@pytest.mark.heavy
def test_a_fit_that_goes_on_with_one_of_other_marginals_says_so_and_a_share_begins_another():
    rows, schema = ROWS.select("ward", "grade"), {name: LISTS.declared[name] for name in ("ward", "grade")}
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    begun = estimator(ledger=ledger, marginals=0).fit(rows, LABELS, schema=schema)
    with pytest.warns(QuorateWarning, match=r"^begun-without-marginals: .* marginals = 0\.1"):
        again = estimator(ledger=ledger).fit(rows, LABELS, schema=schema)
    assert (again.coef_ == begun.coef_).all()
    assert len(ledger.reservations()) == 1
    for same in (estimator(ledger=ledger, marginals=0), estimator(ledger=ledger, marginals=0.1)):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "begun-without", QuorateWarning)
            same.fit(rows, LABELS, schema=schema)
    assert len(ledger.reservations()) == 2


@pytest.mark.heavy
def test_coordinates_of_other_bits_are_refused_behind_the_charge(fitted, monkeypatch):
    _, ledger = fitted
    monkeypatch.setattr(task_module.DirectTask, "_plan_digest", "other bits")
    with pytest.raises(PreconditionFailed, match="last bits"):
        estimator(ledger=ledger).fit(ROWS, LABELS, schema=LISTS)
    assert len(ledger.reservations()) == 1


def test_a_check_says_what_a_fit_would_do_and_draws_nothing():
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    found = check(estimator(ledger=ledger), ROWS, LABELS, schema=LISTS)
    assert found.found["price"] == pytest.approx(2.0, abs=1e-6)
    assert ledger.reservations() == ()


def made_of_patients(make):
    rows, labels = patients(N, 1)
    given = {"epsilon": 2.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 4}
    if make == "number":
        made = PrivateRegressor(target_range=(0, 10), feature_map="linear", **given)
    elif make == "votes":
        made = PrivateClassifier(classes=[0, 1], method="votes", allow_hopeless=True, n_jobs=1, **given)
    else:
        made = estimator() if make == "direct" else PrivateClassifier(classes=[0, 1], **given)
    return made.fit(rows, labels, schema=NUMBERS)


@pytest.mark.several_fits
@pytest.mark.parametrize("make", ["direct", "number", "either", pytest.param("votes", marks=pytest.mark.heavy)])
def test_a_cell_of_rows_to_predict_that_says_nothing_is_refused_by_its_column_and_a_missing_one_is_not(make):
    fitted = made_of_patients(make)
    rows, labels = patients(40, 2)
    acts = {"predict": fitted.predict, "score": lambda X: fitted.score(X, labels)}
    if make != "number":
        acts |= {name: getattr(fitted, name) for name in ("predict_proba", "predict_log_proba", "decision_function")}
    wrong = {"age": "quite old", "income": "24,5,1", "seen": "01.02.2020"}
    for name, act in acts.items():
        for column, cell in wrong.items():
            with pytest.raises(DataRefused, match=f"column {column!r} of X: a (number|date) is expected") as refusal:
                act(rows.with_columns(pl.lit(cell).alias(column)))
            assert cell not in str(refusal.value), name
        act(rows.with_columns(pl.lit(None).alias(column) for column in wrong))
        act(rows.with_columns(pl.lit("n/a").alias(column) for column in wrong))
    with pytest.raises(DataRefused, match=r"^X lacks the column 'age' of the schema"):
        fitted.predict(rows.drop("age"))
    with_commas = rows.with_columns(pl.lit("24,5").alias("age"))
    assert (fitted.predict(with_commas) == fitted.predict(rows.with_columns(pl.lit(24.5).alias("age")))).all()


def test_a_label_that_is_no_class_is_refused_whatever_the_score(fitted):
    clf, _ = fitted
    for scoring in SCORINGS:
        with pytest.raises(DataRefused, match=r"^y: a label outside classes was found; declared: 0, 1"):
            clf.score(ROWS, [*LABELS[:-1], 2], scoring=scoring)
    as_texts = [str(label) for label in LABELS]
    assert clf.score(ROWS, as_texts) == clf.score(ROWS, LABELS) == np.mean(clf.predict(ROWS) == LABELS)


@pytest.mark.skipif(sys.platform != "linux", reason="no folder in which nobody can write")
def test_a_file_that_cannot_be_written_is_one_line_with_the_path_that_was_typed(fitted):
    clf, _ = fitted
    with pytest.raises(PreconditionFailed, match=r"^the machine refused to write /proc/x\.html: no such file"):
        clf.report("/proc/x.html")
    sound = estimator(unsafe_noise_seed=None).fit(ROWS, LABELS, schema=LISTS)
    with pytest.raises(PreconditionFailed, match=r"^the machine refused to write /proc/x\.skops: no such file"):
        sound.export("/proc/x.skops")


def test_a_check_says_which_figure_is_the_most_that_is_paid_for():
    found = check(estimator(), ROWS, LABELS, schema=LISTS)
    most, said = found.found["numbers"], " ".join(str(found).split())
    assert f"× at most {most:,} noisy sums: the most that there can be, which is paid for" in said
    assert f"numbers of a round (at most {most:,} are paid for)" in said


def test_a_report_has_each_noise_of_the_counts_and_says_what_statements_are(fitted, tmp_path):
    rows, labels = patients(N, 1)
    clf = estimator().fit(rows, labels, schema=NUMBERS)
    [part] = [part for part in clf.facts().spending.parts if part.purpose == MARGINAL_LEVEL]
    assert len(part.sigmas) > 1
    assert f"discrete Gaussian noise of {part.noise} on each" in clf.guarantee_.mechanism
    page = clf.report(tmp_path / "report.html").read_text()
    assert f'<td class="n">{part.noise}</td>' in page
    assert "statements of coordinates" in page


@pytest.mark.default_cases(1)
@pytest.mark.heavy_cases(3)  # by both maps where the pool is lost on the way, and so the map
@pytest.mark.parametrize(
    ("lost", "feature_map"), [("a level", "linear"), ("a round", "linear"), ("a level", "auto"), ("a round", "auto")]
)
def test_a_fit_that_was_killed_goes_on_and_draws_nothing_again(lost, feature_map, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        where, name = (NoisyMarginals, "release_level") if lost == "a level" else (descend, "noisy_sum")
        patch.setattr(where, name, dies)
        with pytest.raises(Killed):
            estimator(ledger=tmp_path / "ledger.db", feature_map=feature_map).fit(ROWS, LABELS, schema=LISTS)
    again = estimator(ledger=tmp_path / "ledger.db", feature_map=feature_map)
    told = pytest.warns(QuorateWarning, match="^drawn-and-lost: 1 level of marginals, .*: the model may be of no use$")
    with told if lost == "a level" else nullcontext():  # one round of many tells little, and is counted by n_rounds_
        clf = again.resume(ROWS, LABELS, schema=LISTS)
    assert ("lost  " in clf.summary()) == (lost == "a level")
    released = clf._kept.task.drawn.released
    assert released.lost == ((1,) if lost == "a level" else ())
    with Ledger(tmp_path / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        blocks = reservation.blocks(GRADIENT_ROUND)
        assert [block.answers is None for block in blocks].count(True) == (0 if lost == "a level" else 1)
        assert len(reservation.blocks(MARGINAL_LEVEL)) == 1


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:drawn-and-lost")
@pytest.mark.parametrize("where", ["of the levels", "before the rounds"])
def test_a_fit_that_was_begun_when_levels_counted_halves_goes_on_so(where, tmp_path, monkeypatch):
    rows, labels = patients(N, 1)
    schema = {"age": (0, 120), "income": "number", "seen": "drop", "ward": ["n", "s"]}
    with monkeypatch.context() as patch:
        patch.setattr(drawn_pool, "counted_by_halves", lambda *_: True)
        stored = []
        real = NoisyMarginals.release_level
        patch.setattr(NoisyMarginals, "release_level", lambda *given: dies() if len(stored) > 3 else real(*given))
        if where == "before the rounds":
            patch.setattr(NoisyMarginals, "release_level", real)
            patch.setattr(descend, "noisy_sum", dies)
        patch.setattr(drawn_pool, "release", lambda *given, **how: (released(*given, **how), stored.append(1))[0])
        with pytest.raises(Killed):
            estimator(ledger=tmp_path / "ledger.db").fit(rows, labels, schema=schema)
    with Ledger(tmp_path / "ledger.db") as ledger:
        [before] = [reservation.blocks(MARGINAL_LEVEL) for reservation in ledger.reservations()]
    clf = estimator(ledger=tmp_path / "ledger.db").resume(rows, labels, schema=schema)
    drawn = clf._kept.task.drawn
    assert drawn.released.by_halves
    with Ledger(tmp_path / "ledger.db") as ledger:
        [after] = [reservation.blocks(MARGINAL_LEVEL) for reservation in ledger.reservations()]
    assert [block.answers for block in after][: len(before)] == [block.answers for block in before]
    assert len(after) == len(before) or where == "of the levels"


@pytest.mark.parametrize(
    ("changes", "schema", "error", "said"),
    [
        ({}, {**LISTS.declared, "ward": "?"}, InvalidParameter, "still open"),
        ({}, {"ward": ["north"]}, DataRefused, "grade"),
        ({"feature_map": "patches"}, LISTS, InvalidParameter, "feature_map"),
        ({"marginals": 1.0}, LISTS, InvalidParameter, "marginals"),
        ({"text": "note"}, LISTS, InvalidParameter, "public"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_charge(changes, schema, error, said):
    rows, labels = wards(50, 1)
    with pytest.raises(error, match=said) as refusal:
        estimator(**changes).fit(rows, labels, schema=schema)
    assert "\n" not in str(refusal.value)


def test_no_private_row_changes_what_is_asked_of_the_ledger_before_levels_are_stored():
    """ℓ, T, σ and the key's public part follow from declared facts: other rows ask for the very same event."""
    events = set()
    for seed in (1, 2):
        ledger = Ledger(budget=Budget(5.0, 1e-4))
        rows, labels = wards(300 * seed, seed)
        estimator(ledger=ledger, epsilon=0.5).fit(rows, labels, schema=LISTS)
        events.add(ledger.reservations()[0].event)
    assert len(events) == 1


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("schema", "cells"),
    [
        ({"x": ["north"]}, ["north"] * 300),
        ({"x": [f"w{code}" for code in range(200)]}, ["w3"] * 300),
        ({"x": (0, 1)}, [None] * 100 + ["no number"] * 200),
        ({"x": "number"}, [None] * 300),
    ],
    ids=["one value", "one of many values", "no numbers", "all missing"],
)
@pytest.mark.filterwarnings("ignore:rounds-tell-nothing")  # a column of one value tells nothing
def test_nothing_is_refused_after_the_charge_whatever_the_rows_are(schema, cells):
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    rows = pl.DataFrame({"x": cells})
    clf = estimator(n_records=300, ledger=ledger).fit(rows, [0, 1] * 150, schema=schema)
    assert clf.n_rounds_ == clf.plan_.settings.rounds
    assert set(clf.predict(rows[:3])) <= {0, 1}
    assert len(ledger.reservations()) == 1


@pytest.mark.heavy
def test_persons_and_a_ledger_that_adds_rho():
    ledger = Ledger(budget=Budget(2.0, 1e-5, composition="zcdp"))
    clf = estimator(n_records=N // 2, ledger=ledger).fit(ROWS, LABELS, schema=LISTS, groups=np.arange(N) // 2)
    assert 2.0 - 1e-4 < clf.guarantee_.epsilon <= 2.0
    assert clf.guarantee_.neighbours == "add or remove one person"


@pytest.mark.heavy
@pytest.mark.heavy_cases(2)
@pytest.mark.parametrize(
    ("eps", "neighbours"), [(0.5, "add-or-remove"), (3.0, "add-or-remove"), (3.0, "replace"), (0.5, "replace")]
)
def test_the_noise_of_rounds_is_the_least_for_which_the_whole_costs_epsilon(eps, neighbours):
    schema = Schema(NUMBERS)
    given = {"n_classes": 2, "n_units": 8_000, "epsilon": eps, "delta": 1e-5}
    before = before_pool(schema, feature_map_of("auto", schema), neighbours=neighbours, **given)
    price = epsilon(before.event_for(neighbours), 1e-5)
    assert eps - 1e-6 < price <= eps
    assert before.share == 0.1
    assert before.resolution > 6
    few = before_pool(schema, "both", neighbours=neighbours, **{**given, "n_units": 400})
    assert few.share == 0.3 or few.resolution >= 6
    assert before.fixed.rounds >= 8


@pytest.mark.heavy
def test_numbers_and_dates_are_learned_from_nearly_as_with_public_rows():
    rows, labels = patients(6_800, 1)
    new, truth = patients(2_000, 2)

    def alone():
        ledger = Ledger(budget=Budget(1.0, 1e-5))
        return estimator(feature_map="auto", n_records=6_000, epsilon=1.0, unsafe_noise_seed=None, ledger=ledger)

    drawn = alone().fit(rows[:6_000], labels[:6_000], schema=NUMBERS)
    real = alone().fit(rows[:6_000], labels[:6_000], public=PublicPool(rows[6_000:]))
    assert drawn.score(new, truth) > real.score(new, truth) - 0.03
    assert drawn.score(new.to_pandas(), truth) == drawn.score(new, truth)
    assert drawn.pool_["seen"].dtype == pl.Date
    wide = alone().fit(rows[:6_000], labels[:6_000], schema={**NUMBERS, "age": (-1_000, 10_000), "income": (0.0, 1e9)})
    assert wide.score(new, truth) > real.score(new, truth) - 0.05
