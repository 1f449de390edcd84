"""Votes without public rows: one charge for counts and answers, resume at each stage, and questions."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.direct.conftest import dies
from tests.direct.test_drawn_pool_fit import LISTS, NUMBERS, patients, wards
from tests.labelling.conftest import Killed

from quorate import Budget, Ledger, PrivateClassifier, PublicPool, check
from quorate.accounting import Composed, DiscreteGaussian, Repeated, epsilon
from quorate.data.declared_schema import Schema
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, QuorateWarning
from quorate.labelling.active import Margin
from quorate.mechanisms import ConfidentNoisyMax, LaplaceNoisyMax, NoisyMarginals
from quorate.release.charge import COORDINATES, LABEL, MARGINAL_LEVEL
from quorate.run.public_facts import PublicFacts
from quorate.voting import flow, kept_votes
from quorate.voting.recipe import recipe

pytestmark = pytest.mark.mostly_heavy

N = 600


def estimator(**changes):
    given = {"method": "votes", "classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_records": N}
    return PrivateClassifier(**{**given, "n_jobs": 1, "unsafe_noise_seed": 4, **changes})


def budget():
    return Ledger(budget=Budget(5.0, 1e-4))


@pytest.fixture(scope="module")
def fitted():
    ledger = budget()
    return estimator(ledger=ledger).fit(*wards(N, 1), schema=LISTS), ledger


def shifts_of(event, times=1):
    """How many unit shifts of discrete Gaussian noise an event is, by σ."""
    if isinstance(event, Composed):
        together = {}
        for part in event.events:
            for sigma, n in shifts_of(part, times).items():
                together[sigma] = together.get(sigma, 0) + n
        return together
    if isinstance(event, Repeated):
        return shifts_of(event.event, times * event.times)
    assert isinstance(event, DiscreteGaussian)
    return {event.sigma: times * round(event.l2_sensitivity**2)}


def losses(sigma, n):
    """The privacy loss of n unit shifts and its probabilities: exact sums of integers, by one transform."""
    reach = int(12 * sigma * np.sqrt(n)) + n
    x = np.arange(-reach, reach + 1)
    one = np.exp(-(x**2) / (2 * sigma**2))
    law = np.fft.irfft(np.fft.rfft(np.roll(one / one.sum(), -reach)) ** n, n=len(x))
    return n / (2 * sigma**2) - x / sigma**2, np.maximum(np.roll(law, reach), 0.0)


def delta_by_enumeration(event, eps):
    total = (np.zeros(1), np.ones(1))
    for sigma, n in shifts_of(event).items():
        values, weights = losses(sigma, n)
        kept = weights > 1e-16
        total = (np.add.outer(total[0], values[kept]).ravel(), np.multiply.outer(total[1], weights[kept]).ravel())
    return float((total[1] * np.maximum(0.0, -np.expm1(np.minimum(eps - total[0], 0.0)))).sum())


FACTS = PublicFacts(n_records=900, n_public=48, n_classes=2, width=11, epsilon=2.0, delta=1e-5)


@pytest.mark.parametrize("neighbours", ["auto", "add-or-remove"])
@pytest.mark.parametrize("eps", [0.5, 2.0, 8.0])
def test_counts_and_answers_cost_the_budget_by_a_composition_of_its_own(eps, neighbours):
    made = recipe(replace(FACTS, epsilon=eps, neighbours=neighbours), declared=LISTS)
    assert eps - 1e-6 < epsilon(made.event, 1e-5) <= eps
    assert delta_by_enumeration(made.event, eps - 1e-5) > 1e-5 > delta_by_enumeration(made.event, eps)
    if neighbours == "auto":  # enough noise for each change: the claim stays that of votes
        assert made.event == made.event_for("replace")
    else:
        assert epsilon(made.event_for("replace"), 1e-5) > 1.02 * eps


@pytest.mark.quick
def test_a_cheat_that_leaves_the_counts_out_of_the_noise_is_caught():
    counts, alone = recipe(FACTS, declared=LISTS).pool, recipe(FACTS)
    assert delta_by_enumeration(Composed((counts.event_for("replace"), alone.answers)), 2.0) > 1.2e-5


@pytest.mark.parametrize(
    ("mechanism", "fields"), [(LaplaceNoisyMax, {}), (ConfidentNoisyMax, {"threshold": 40.0})], ids=["Laplace", "test"]
)
def test_every_mechanism_is_calibrated_beside_the_counts(mechanism, fields):
    made = recipe(replace(FACTS, epsilon=1.0), declared=LISTS, mechanism=mechanism, fields=fields)
    assert 1.0 - 1e-6 < epsilon(made.event, 1e-5) <= 1.0


def test_the_charge_is_one_and_says_which_part_pays_for_what(fitted):
    clf, ledger = fitted
    [reservation] = ledger.reservations()
    assert 2.0 - 1e-6 < ledger.spent.epsilon <= 2.0
    assert dict(reservation.purposes) == {MARGINAL_LEVEL: 1, COORDINATES: 16, LABEL: 48}
    assert reservation.charged_to[LABEL] == 1
    assert reservation.charged_to[MARGINAL_LEVEL] == 0
    assert clf.guarantee_.neighbours == "add, remove or replace one record"
    assert clf.guarantee_.also == ()


@pytest.mark.quick
def test_no_private_row_changes_what_is_asked_of_the_ledger(fitted):
    """K, ℓ, σ and the share follow from declared facts: other rows, of another number, ask for the very same event."""
    ledger = budget()
    estimator(ledger=ledger).fit(*wards(300, 2), schema=LISTS)
    assert ledger.reservations()[0].event == fitted[1].reservations()[0].event


def test_the_student_learns_and_reads_rows_by_the_schema(fitted):
    clf, _ = fitted
    new, truth = wards(500, 2)
    predicted = clf.predict(new)
    assert (predicted == np.array(truth)).mean() > 0.8
    as_text = new.with_columns(pl.col("grade").cast(float).cast(str), pl.col("smokes").cast(str)).drop("note")
    assert (clf.predict(as_text) == predicted).all()
    assert (clf.predict(new.to_pandas()) == predicted).all()
    assert clf.pool_.columns == ["ward", "smokes", "grade"]
    told = " ".join(clf.facts().setup.recipe)
    assert "not people" in told
    assert clf.facts().setup.n_public == 0


def test_answers_that_no_row_took_may_be_asked_for_and_are_given_again(fitted):
    clf = estimator(ledger=budget()).fit(*wards(N, 1), schema=LISTS)
    left = 48 - len(clf.queries_)
    assert 0 < left < 48
    assert f"{left} answers are left for questions" in " ".join(clf.facts().setup.recipe)
    missing = pl.DataFrame({"ward": [None, "north"], "smokes": [True, None], "grade": ["1", "2"], "note": ["", ""]})
    answers = clf.ask(missing)
    assert clf.ask(missing) == answers
    assert clf.facts().spending.answers_left == left - 2
    asked = wards(3, 5)[0]  # whose rows are in the pool: they were answered
    clf.ask(asked)
    assert clf.facts().spending.answers_left == left - 2


@pytest.mark.parametrize("stage", ["the votes", "a level", "the pool", "an answer"])
def test_a_fit_that_was_killed_goes_on_and_draws_nothing_again(stage, tmp_path, monkeypatch):
    rows, labels = wards(N, 1)

    places = {
        "a level": (NoisyMarginals, "release_level"),
        "the pool": (flow, "draw_distinct"),
        "the votes": (kept_votes, "count_votes"),
        "an answer": (flow, "teach"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*places[stage], dies)
        with pytest.raises(Killed):
            estimator(ledger=tmp_path / "ledger.db").fit(rows, labels, schema=LISTS)
    with Ledger(tmp_path / "ledger.db") as ledger:
        before = ledger.reservations()[0].blocks(LABEL)
    lost = "drawn-and-lost: 1 level of marginals"
    with pytest.warns(QuorateWarning, match=lost) if stage == "a level" else nullcontext():
        clf = estimator(ledger=tmp_path / "ledger.db").resume(rows, labels, schema=LISTS)
    assert clf._kept.task.released.lost == ((1,) if stage == "a level" else ())
    with Ledger(tmp_path / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert len(reservation.blocks(MARGINAL_LEVEL)) == 1
        assert len(reservation.blocks(COORDINATES)) == 1
        after = reservation.blocks(LABEL)
        assert [block.answers for block in after][: len(before)] == [block.answers for block in before]
        ledger.verify(prices=True)
    with pytest.warns(QuorateWarning, match=lost) if stage == "a level" else nullcontext():
        again = estimator(ledger=tmp_path / "ledger.db").resume(rows, labels, schema=LISTS)
    assert (again.released_.codes == clf.released_.codes).all()
    assert again.pool_.equals(clf.pool_)


def test_rows_of_other_bits_are_refused_behind_the_charge(tmp_path, monkeypatch):
    rows, labels = wards(N, 1)
    place = tmp_path / "ledger.db"
    estimator(ledger=place).fit(rows, labels, schema=LISTS)
    real = flow.draw_distinct
    monkeypatch.setattr(flow, "draw_distinct", lambda *given: real(*given)[1:])
    with pytest.raises(PreconditionFailed, match="nothing more was charged"):
        estimator(ledger=place).resume(rows, labels, schema=LISTS)


@pytest.mark.parametrize(
    ("schema", "cells"),
    [
        ({"x": ["north"]}, ["north"] * 300),
        ({"x": (0, 1)}, [None] * 100 + ["no number"] * 200),
        ({"x": "number"}, ["1e300", "-inf", "nan"] * 100),
    ],
    ids=["one value", "no numbers", "extremes"],
)
def test_no_cell_is_refused_before_the_charge_nor_behind_it(schema, cells):
    ledger = budget()
    rows = pl.DataFrame({"x": cells})
    clf = estimator(n_records=300, ledger=ledger).fit(rows, [0, 1] * 150, schema=schema)
    assert set(clf.predict(rows[:3])) <= {0, 1}
    assert len(ledger.reservations()) == 1


def test_persons_relations_and_a_strategy():
    rows, labels = wards(N, 1)
    clf = estimator(n_records=N // 2, neighbours="add-or-remove", queries=Margin(30), ledger=budget())
    clf.fit(rows, labels, schema=LISTS, groups=np.arange(N) // 2)
    assert clf.guarantee_.neighbours == "add or remove one person"
    assert clf.guarantee_.also[0].epsilon > 1.02 * clf.guarantee_.epsilon
    assert any("all of their rows" in caveat for caveat in clf.guarantee_.caveats)
    read = estimator(n_records=None, ledger=budget()).fit(rows, labels, schema=LISTS)
    assert read.guarantee_.neighbours == "replace one record"


@pytest.mark.quick
def test_a_check_says_what_a_fit_would_do_and_draws_nothing():
    ledger = budget()
    found = check(estimator(ledger=ledger), *wards(N, 1), schema=LISTS, look=True)
    assert found.found["marginals"]["rows"] == 48
    assert "No accuracy can be estimated" in " ".join(str(found).split())
    assert ledger.reservations() == ()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("changes", "given", "error", "said"),
    [
        ({}, {"schema": {**LISTS.declared, "ward": "?"}}, InvalidParameter, "still open"),
        ({}, {"schema": {"ward": ["north"]}}, DataRefused, "grade"),
        ({"marginals": 1.0}, {"schema": LISTS}, InvalidParameter, "marginals"),
        ({}, {"schema": LISTS, "public": PublicPool(wards(50, 3)[0])}, InvalidParameter, "100 or more, the schema"),
        ({"neighbours": "replace"}, {"public": PublicPool(wards(50, 3)[0])}, InvalidParameter, "neighbours"),
        ({"neighbours": "add-or-remove", "n_records": None}, {"schema": LISTS}, InvalidParameter, "n_records"),
        ({"neighbours": "add-or-remove", "partition": "balanced"}, {"schema": LISTS}, InvalidParameter, "balanced"),
        ({"decision_threshold": "balanced"}, {"schema": LISTS}, InvalidParameter, "public rows"),
        ({"queries": 49}, {"schema": LISTS}, InvalidParameter, "48"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_charge(changes, given, error, said):
    rows, labels = wards(200, 1)
    ledger = budget()
    with pytest.raises(error, match=said) as refusal:
        estimator(**{"ledger": ledger, **changes}).fit(rows, labels, **given)
    assert "\n" not in str(refusal.value)
    assert ledger.reservations() == ()


def test_votes_on_drawn_rows_are_nearly_as_good_as_on_real_ones():
    rows, labels = patients(6_800, 1)
    new, truth = patients(2_000, 2)

    def alone():
        ledger = Ledger(budget=Budget(1.0, 1e-5))
        return estimator(n_records=6_000, epsilon=1.0, unsafe_noise_seed=None, ledger=ledger)

    drawn = alone().fit(rows[:6_000], labels[:6_000], schema=Schema(NUMBERS))
    real = alone().fit(rows[:6_000], labels[:6_000], public=PublicPool(rows[6_000:]))
    assert drawn.score(new, truth) > real.score(new, truth) - 0.04
    assert drawn.score(new.to_pandas(), truth) == drawn.score(new, truth)


def test_teachers_are_tiny_in_coordinates_of_the_drawn_rows_and_the_charge_does_not_depend_on_these(fitted):
    rows, labels = wards(N, 1)
    task = estimator()._task(rows, labels, public=None, groups=None, schema=LISTS)
    assert isinstance(task.teacher, TinyTeacher)
    assert task.recipe.n_teachers == fitted[0].recipe_.n_teachers == round(N / 3)
    drawn = task.inputs.public.reverse()[:30]
    then = task.on(drawn)
    assert then.views.teacher.directions.digest != task.views.teacher.directions.digest
    assert then.content_key == task.content_key
    alike = task.on(pl.concat([drawn[:1]] * 30))  # paid for by then: what has no coordinates is seen as it is
    assert alike.views.teacher.directions is None
    assert alike.content_key == task.content_key
