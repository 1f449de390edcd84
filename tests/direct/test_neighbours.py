"""For which change of one unit ε is: the noise, the price by another road, the ledger's order, the audit, a cheat."""

import io
import json
from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.accounting import Guarantee, Neighbouring, PureDP
from quorate.accounting import epsilon as price
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.accounting.guarantee import OtherRelation
from quorate.accounting.neighbouring import N_IS_PUBLIC, ROWS_ARE_PUBLIC
from quorate.audit import audit_rounds
from quorate.data.feature_maps.composed import feature_map_for
from quorate.direct.budgets import PlannedBudgets
from quorate.direct.defaults import settings_for
from quorate.direct.plan import noise_for, plan_direct, plan_without_pool
from quorate.direct.stored import dump_plan, load_plan
from quorate.errors import BudgetExhausted, InvalidParameter, LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.ledger.entries import Entry, seal
from quorate.ledger.pricing import check_prices
from quorate.ledger.state import LedgerState

POOL = np.random.default_rng(2).normal(size=(80, 4)) * [3.0, 1.0, 0.3, 0.1]
FACTS = {"n_classes": 2, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5}
ADDED, REPLACED = "add or remove one record", "replace one record"


@pytest.fixture(scope="module")
def moments():
    return PlannedBudgets(POOL, "linear").moments


def planned(moments, neighbours, **changes):
    feature_map = feature_map_for("linear", POOL)
    return plan_direct(feature_map, POOL, moments=moments, neighbours=neighbours, **{**FACTS, **changes})


def hockey_stick(mu, epsilon):
    """δ of two normal laws μ apart, as the integral of what one is above e^ε times the other."""

    def above(x):
        return float(max(norm.pdf(x, mu) - exp(epsilon) * norm.pdf(x), 0.0))

    start = epsilon / mu + mu / 2
    return float(quad(above, start, start + 12, epsabs=1e-16, epsrel=1e-10, limit=200)[0])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("delta", "shown"), [(1e-4, "2.21"), (1e-5, "2.16"), (1e-6, "2.13")])
def test_both_figures_are_prices_of_their_own_and_agree_with_another_road(delta, shown, moments):
    plan = planned(moments, "add-or-remove", delta=delta)
    for relation, lengths in (("add-or-remove", 1), ("replace", 2)):
        mu = lengths * sqrt(plan.settings.rounds) * 2.0**plan.grid.k / plan.sigma
        epsilon = price(plan.event_for(relation), delta)
        assert hockey_stick(mu, epsilon) <= delta * (1 + 1e-6)
        assert hockey_stick(mu, epsilon * (1 - 1e-5)) > delta
    both = Guarantee(
        epsilon=1.0, delta=delta, unit="record", neighbours=ADDED, mechanism="m", accounting="a",
        also=(OtherRelation(neighbours=REPLACED, epsilon=epsilon, delta=delta),),
    )  # fmt: skip
    assert both.figures == f"ε = 1 for adding or removing one record; {shown} for replacing one record by another"


@pytest.mark.parametrize("rho", [None, 0.03])
def test_noise_follows_the_relation_and_settings_what_it_leaves(rho, moments):
    """Half the noise at equal rounds, and settings as for a μ twice as large: never both in the noise."""
    k, least = noise_for(16, 640, 1.0, 1e-5, rho=rho, neighbours="add-or-remove")
    same_k, most = noise_for(16, 640, 1.0, 1e-5, rho=rho, neighbours="replace")
    assert (k, most / least) == (same_k, pytest.approx(2.0))
    mu = mu_of_gaussian(1.0, 1e-5) if rho is None else sqrt(2 * rho)
    plan = planned(moments, "add-or-remove", rho=rho)
    assert plan.settings == settings_for(moments, n_classes=2, n_units=2_000, mu=2 * mu)
    assert plan.sigma >= sqrt(plan.settings.rounds) * 2.0**plan.grid.k / mu
    earlier, asked = planned(moments, None, rho=rho), planned(moments, "replace", rho=rho)
    assert (earlier.settings, earlier.sigma, earlier.event) == (asked.settings, asked.sigma, asked.event)
    assert len({each.digest for each in (earlier, asked, plan)}) == 3


def test_the_relation_is_part_of_a_stored_plan_and_absent_from_earlier_ones(moments):
    for relation in (None, "add-or-remove", "replace"):
        plan = planned(moments, relation)
        again, _ = load_plan(dump_plan(plan, None))
        assert (again.neighbours, again.digest, again.event) == (relation, plan.digest, plan.event)
        with np.load(io.BytesIO(dump_plan(plan, None))) as archive:
            assert ("neighbours" in archive["header"].item()) == (relation is not None)


@pytest.mark.heavy
def test_noise_that_is_halved_twice_is_caught_by_its_price_and_by_the_audit(moments):
    """The cheat: Δ = B in the noise, and M in place of μ there as well. Its ε is 2.16 and not 1."""
    honest = planned(moments, "add-or-remove", epsilon=4.0)
    twin = replace(honest, sigma=honest.sigma / 2)
    assert price(twin.event, 1e-5) > 8.0
    scope = GuaranteeScope(unit="record", neighbours=ADDED)
    with pytest.raises(BudgetExhausted):
        Ledger(budget=Budget(4.0, 1e-5)).reserve(
            twin.event, delta=1e-5, purposes={"gradient round": 1}, key="twin", scope=scope
        )
    how = {"delta": 1e-5, "confidence": 1 - 1e-6, "runs": 20_000, "seed": 3}
    found = audit_rounds(honest, honest.event, POOL, neighbours="add-or-remove", **how)
    assert not found.violated
    assert found.attacks[1].proved > 0.5 * found.attacks[1].claimed  # it is not blind
    assert audit_rounds(twin, honest.event, POOL, neighbours="add-or-remove", **how).violated
    assert audit_rounds(honest, honest.event, POOL, neighbours="replace", **how).violated  # a claim that was not made


X = np.random.default_rng(0).normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int)
KEYED = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "rounds": 2}


def fit(ledger=None, *, read=False, **how):
    declared = {} if read else {"n_records": 300}
    ledger = Ledger(budget=Budget(1.0, 1e-5)) if ledger is None else ledger
    return PrivateLogisticRegression(**{**KEYED, **declared, **how}, ledger=ledger).fit(X, Y)


def roomy():
    return Ledger(budget=Budget(10.0, 1e-3))


def promised(fitted):
    made = fitted.guarantee_
    return made.neighbours, round(made.epsilon, 3), [(each.neighbours, round(each.epsilon, 3)) for each in made.also]


@pytest.mark.heavy
def test_by_default_a_declared_number_means_adding_and_removing_and_a_read_one_replacing():
    declared, read, asked = fit(), fit(read=True), fit(neighbours="replace")
    assert promised(declared) == (ADDED, 1.0, [(REPLACED, 2.155)])
    assert promised(read) == (REPLACED, 1.0, [])
    assert promised(asked) == (REPLACED, 1.0, [(ADDED, 0.469)])
    assert any("treated as public" in caveat for caveat in read.guarantee_.caveats)
    assert declared.plan_.sigma == pytest.approx(asked.plan_.sigma / 2)
    assert "2.16 for replacing one record" in str(declared.guarantee_)
    for said in (declared.guarantee_.for_data_subject(), declared.guarantee_.for_reviewer()):
        assert "For replacing one record by another the same holds with ε = 2.16" in said
    assert Guarantee.from_json(declared.guarantee_.to_json()) == declared.guarantee_
    assert "also" not in json.loads(read.guarantee_.to_json())
    with pytest.raises(InvalidParameter, match='neighbours must be "auto" or "replace" where the number of records'):
        fit(read=True, neighbours="add-or-remove")
    with pytest.raises(InvalidParameter, match='neighbours must be one of "auto", "add-or-remove", "replace"'):
        fit(neighbours="remove")


@pytest.mark.heavy
def test_for_persons_it_says_that_all_their_rows_come_or_go():
    groups = np.repeat(np.arange(100), 3)
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    made = PrivateLogisticRegression(**KEYED, n_records=100, ledger=ledger).fit(X, Y, groups=groups).guarantee_
    assert made.neighbours == "add or remove one person"
    assert any("is about all of their rows" in caveat for caveat in made.caveats)
    assert not any("all of their rows" in caveat for caveat in fit().guarantee_.caveats)


@pytest.mark.heavy
def test_a_ledger_has_one_relation_which_auto_takes_and_check_tells_why():
    ledger = roomy()
    fit(ledger, read=True)
    assert ledger.relation == "replace"
    found = check(PrivateLogisticRegression(**KEYED, n_records=300, ledger=ledger), X, Y)
    assert found.found["neighbours"] == REPLACED
    assert found.found["why_neighbours"] == ("the ledger's earlier charges hold for replacing one record by another")
    assert "for replacing one record by another; ε = 0.469 for adding or removing one record" in " ".join(
        str(found).split()
    )
    later = fit(ledger)
    assert promised(later) == (REPLACED, 2.0, [])  # of the first nothing is known for adding and removing
    assert later.plan_.neighbours == "replace"
    fresh = check(PrivateLogisticRegression(**KEYED, n_records=300), X, Y).found
    assert (fresh["neighbours"], fresh["why_neighbours"]) == (ADDED, "the number of records is declared")


@pytest.mark.heavy
def test_a_relation_that_was_asked_for_is_charged_at_the_ledgers_price():
    ledger = roomy()
    fit(ledger, neighbours="replace")
    asked = fit(ledger, neighbours="add-or-remove")
    assert asked.plan_.neighbours == "add-or-remove"
    assert promised(asked) == (REPLACED, 3.155, [(ADDED, 1.469)])
    assert ledger.spent.epsilon == pytest.approx(3.155, abs=1e-3)
    assert fit(ledger, neighbours="add-or-remove").guarantee_ == asked.guarantee_  # found again, and not charged again
    other = roomy()
    fit(other)
    assert promised(fit(other, neighbours="replace")) == (ADDED, 1.469, [(REPLACED, 3.155)])
    for each in (ledger, other):
        each.verify(prices=True)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:columns-on-other-scales")  # of a pool that is small on purpose
def test_what_cannot_be_claimed_beside_the_rest_is_refused_before_anything_is_charged():
    ledger = roomy()
    fit(ledger)
    head = ledger.head
    with pytest.raises(PreconditionFailed, match="Declare n_records, or open another ledger"):
        fit(ledger, read=True, epsilon=0.5)
    votes = PrivateClassifier(method="votes", classes=[0, 1], epsilon=1.0, delta=1e-5, ledger=ledger)
    with pytest.raises(PreconditionFailed, match="another kind of change"):
        votes.fit(X, Y, public=PublicPool(POOL))
    assert ledger.head == head
    scope = GuaranteeScope(unit="record", neighbours="add, remove or replace one record")
    ledger.reserve(PureDP(0.25), delta=0, purposes={"label": 1}, key="votes", scope=scope)
    assert ledger.relation == "add-or-remove"
    relation, spent = ledger.spent_otherwise or (None, None)
    assert (relation.stated, spent.epsilon) == (REPLACED, pytest.approx(2.405, abs=1e-3))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("budget", [Budget(10.0, 1e-3), Budget(10.0, 1e-3, composition="zcdp")])
def test_both_events_are_chained_and_priced_again(budget):
    ledger = Ledger(budget=budget)
    fit(ledger)
    [reservation] = ledger.reservations()
    also = reservation.also
    assert also.neighbours == REPLACED
    assert also.event.value["event"]["l2_sensitivity"] == 2 * reservation.event.event.l2_sensitivity
    ledger.verify(prices=True)
    [at] = [number for number, entry in enumerate(ledger.entries()) if entry.kind == "reserved"]
    entry = ledger.entries()[at]
    assert Entry.from_object(entry.to_object()) == entry
    cheaper = replace(also, amounts=reservation._reserved.amounts)  # what the first relation costs
    forged = replace(entry.content, also=cheaper)
    state = LedgerState()
    for each in [*ledger.entries()[:at], seal(forged, sequence=entry.sequence, time=entry.time, session=entry.session,
                                              previous=entry.previous)]:  # fmt: skip
        state.take(each)
    with pytest.raises(LedgerIntegrityError, match="charged less than its event costs"):
        check_prices(state)


def test_a_reservation_has_no_other_relation_than_the_two():
    other = (Neighbouring.of("replace", "record"), PureDP(1.0))
    for scope in (
        None,
        GuaranteeScope(unit="record", neighbours="add, remove or replace one record"),
        GuaranteeScope(unit="record", neighbours=REPLACED, caveats=(N_IS_PUBLIC,)),
    ):
        with pytest.raises(InvalidParameter, match="also must be about the other of the two"):
            roomy().reserve(PureDP(0.5), delta=0, purposes={"a": 1}, key="k", scope=scope, also=other)


@pytest.mark.parametrize("caveat", [N_IS_PUBLIC, ROWS_ARE_PUBLIC])
def test_nothing_is_guaranteed_for_adding_and_removing_where_a_number_was_read(caveat):
    made = {"epsilon": 1.0, "delta": 0.0, "unit": "record", "mechanism": "m", "accounting": "a"}
    whole = "add, remove or replace one record"
    for neighbours in (ADDED, whole, f"{whole}, as the owner states"):
        with pytest.raises(InvalidParameter, match="must be a replacement where a number was read off"):
            Guarantee(**made, neighbours=neighbours, caveats=(caveat,))
    with pytest.raises(InvalidParameter, match="must be a replacement where a number was read off"):
        GuaranteeScope(unit="record", neighbours=ADDED, caveats=(caveat,))
    also = (OtherRelation(neighbours=ADDED, epsilon=0.5, delta=0.0),)
    with pytest.raises(InvalidParameter, match="must be a replacement where a number was read off"):
        Guarantee(**made, neighbours=REPLACED, caveats=(caveat,), also=also)
    with pytest.raises(InvalidParameter, match="also must be about the other of the two relations"):
        Guarantee(**made, neighbours=ADDED, also=also)
    assert Guarantee(**made, neighbours=REPLACED, also=also).also == also


def test_without_a_pool_noise_follows_the_relation_too():
    plans = [plan_without_pool(5, **FACTS, neighbours=each) for each in ("add-or-remove", "replace")]
    assert plans[1].sigma / plans[0].sigma == pytest.approx(2.0)
    assert plans[0].settings == plans[1].settings
