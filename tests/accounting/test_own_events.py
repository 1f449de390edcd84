"""Events of a user's own: priced by their rule and never below it, stored and read back, refused where unknown."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    Repeated,
    delta,
    epsilon,
    explain,
    from_json,
    own_kinds,
    rdp,
    register_event,
    to_json,
    zcdp,
)
from quorate.accounting.event import KINDS, OWN_KINDS
from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.release.guarantee import ledger_scope

ORDERS = [1.5, 2.0, 8.0, 64.0]


@register_event("tests.two_coins", priced_as=lambda event: Repeated(PureDP(event.epsilon), 2))
@dataclass(frozen=True, slots=True)
class TwoCoins(Event):
    """Two rounds of randomized response."""

    epsilon: float
    note: str = "fair"


@register_event("tests.curve", rdp=lambda event, orders: orders * event.rho, zcdp=lambda event: event.rho)
@dataclass(frozen=True, slots=True)
class Curved(Event):
    """Anything of which a Rényi curve is known: here that of Gaussian noise."""

    rho: float


@register_event("tests.curve_alone", rdp=lambda event, orders: orders * event.rho)
@dataclass(frozen=True, slots=True)
class CurvedAlone(Event):
    rho: float


@pytest.mark.parametrize("times", [1, 40])
def test_an_event_priced_as_another_costs_what_that_costs_by_every_rule(times):
    own, known = Repeated(TwoCoins(0.1), times), Repeated(PureDP(0.1), 2 * times)
    assert epsilon(own, 1e-5) == epsilon(known, 1e-5)
    assert delta(own, 0.3) == delta(known, 0.3)
    assert explain(own, 1e-5)[1] == explain(known, 1e-5)[1]
    assert zcdp(own) == pytest.approx(zcdp(known), rel=1e-12)
    assert_allclose(rdp(own, ORDERS), rdp(known, ORDERS), rtol=1e-12)


def test_it_composes_exactly_with_quorates_events():
    mixed = Composed((TwoCoins(0.2), DiscreteLaplace(5.0, 1.0), ApproxDP(0.0, 1e-6)))
    known = Composed((Repeated(PureDP(0.2), 2), DiscreteLaplace(5.0, 1.0), ApproxDP(0.0, 1e-6)))
    assert explain(mixed, 1e-5) == explain(known, 1e-5)


def test_a_curve_gives_the_price_of_its_conversion_and_never_less_than_the_truth():
    own, truth = Repeated(Curved(0.01), 30), Repeated(Gaussian(50**0.5, 1.0), 30)
    assert zcdp(own) == pytest.approx(0.3)
    assert epsilon(own, 1e-5) >= epsilon(truth, 1e-5)
    assert epsilon(own, 1e-5) == pytest.approx(explain(own, 1e-5)[0]) == pytest.approx(3.534, abs=0.001)
    assert explain(own, 1e-5)[1] == "renyi"
    assert delta(own, 1.0) >= delta(truth, 1.0) > 0


def test_without_a_rule_of_its_own_there_is_no_rho():
    assert epsilon(CurvedAlone(0.01), 1e-5) > 0
    with pytest.raises(UnsupportedEvent, match="no zCDP rule"):
        zcdp(CurvedAlone(0.01))


def ruled(kind: str, **rules: Any) -> Event:
    @register_event(f"tests.{kind}", **rules)
    @dataclass(frozen=True)
    class Wrong(Event):
        pass

    return Wrong()


def curved(kind: str, rule: Any, rho: Any = None) -> Event:
    return ruled(kind, rdp=rule, zcdp=rho)


def priced(kind: str, rule: Any) -> Event:
    return ruled(kind, priced_as=rule)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("event", "said"),
    [
        (curved("zero", lambda event, orders: 0 * orders), "never free"),
        (curved("below", lambda event, orders: -orders), "never free"),
        (curved("nan", lambda event, orders: orders * float("nan")), "never free"),
        (curved("falling", lambda event, orders: 1 / orders), "falls"),
        (curved("one_number", lambda event, orders: 0.5), "one number for each order"),
        (curved("words", lambda event, orders: ["1"] * len(orders)), "one number for each order"),
        (priced("nothing", lambda event: PureDP(0.0)), "priced as nothing"),
        (priced("composed", lambda event: Composed(())), "priced as nothing"),
        (priced("never", lambda event: Repeated(PureDP(1.0), 0)), "priced as nothing"),
        (priced("number", lambda event: 0.5), "must return an event"),
        (priced("another", lambda event: TwoCoins(0.5)), "quorate's own kinds"),
    ],
)
def test_a_rule_that_no_release_can_have_is_refused_and_never_a_price(event, said):
    for price, *at in ((epsilon, 1e-5), (delta, 0.1), (zcdp,), (rdp, ORDERS)):
        with pytest.raises((InvalidParameter, UnsupportedEvent)) as refusal:
            price(event, *at)
        assert said in str(refusal.value) or "zCDP" in str(refusal.value)
    with Ledger(budget=Budget(9.0, 1e-5)) as ledger:
        with pytest.raises(InvalidParameter, match=said):
            ledger.reserve(event, delta=1e-6, purposes={"label": 1}, key="free")
        assert ledger.spent.epsilon == 0


def test_a_rho_below_the_events_own_curve_is_refused():
    with pytest.raises(InvalidParameter, match="below its own Rényi curve"):
        zcdp(curved("cheap", lambda event, orders: 0.5 * orders, lambda event: 0.4))
    assert zcdp(curved("fair", lambda event, orders: 0.5 * orders, lambda event: 0.5)) == pytest.approx(0.5)


def test_it_round_trips_through_json_inside_others_unless_a_field_is_no_finite_number():
    event = Composed((Repeated(TwoCoins(0.5), 3), Curved(0.25), PureDP(1.0)))
    assert from_json(to_json(event)) == event
    assert own_kinds(event) == ("tests.curve", "tests.two_coins")
    assert to_json(TwoCoins(1)) == to_json(TwoCoins(1.0)) == '{"epsilon":1.0,"kind":"tests.two_coins","note":"fair"}'
    with pytest.raises(InvalidParameter, match="finite float"):
        to_json(TwoCoins(float("nan")))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "text",
    [
        '{"epsilon":"1","kind":"tests.two_coins","note":"fair"}',
        '{"epsilon":true,"kind":"tests.two_coins","note":"fair"}',
        '{"epsilon":1.0,"kind":"tests.two_coins"}',
        '{"epsilon":1.0,"kind":"tests.two_coins","note":"fair","more":1}',
        '{"epsilon":1.0,"kind":"tests.two_coins","note":3}',
    ],
)
def test_json_that_is_not_its_own_is_refused(text):
    with pytest.raises(InvalidParameter):
        from_json(text)


def test_an_event_that_nobody_registered_is_refused_and_the_package_asked_for():
    with pytest.raises(UnsupportedEvent, match="import the package"):
        from_json('{"epsilon":1.0,"kind":"tests.nobody"}')

    @dataclass(frozen=True)
    class Stranger(Event):
        epsilon: float

    for price in (lambda: epsilon(Stranger(1.0), 1e-5), lambda: zcdp(Stranger(1.0)), lambda: to_json(Stranger(1.0))):
        with pytest.raises(UnsupportedEvent):
            price()


READ = """
from quorate.ledger import Ledger
import sys
with Ledger(sys.argv[1]) as ledger:
    print(ledger.spent.epsilon)
    ledger.verify(prices=True)
"""


@pytest.mark.heavy
def test_a_process_that_does_not_know_it_reads_a_ledgers_chain_and_prices_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger(path, budget=Budget(9.0, 1e-5)) as ledger:
        reservation = ledger.reserve(Repeated(TwoCoins(0.5), 3), delta=1e-6, purposes={"label": 3}, key="labels")
        assert reservation.event == Repeated(TwoCoins(0.5), 3)
        spent = ledger.spent.epsilon
    with Ledger(path) as ledger:
        ledger.verify(prices=True)
        assert ledger.reservations()[0].event == Repeated(TwoCoins(0.5), 3)
    done = subprocess.run([sys.executable, "-c", READ, path], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == str(spent)
    assert "errors.UnsupportedEvent: entry" in done.stderr  # refused, and the chain is not called broken
    assert "import the module that calls register_event('tests.two_coins', ...)" in done.stderr


def test_a_guarantee_says_that_the_rule_is_the_owners():
    scope = GuaranteeScope(unit="person", neighbours="replace one person")
    how: dict[str, Any] = {"delta": 1e-6, "purposes": {"label": 1}, "scope": scope}
    with Ledger(budget=Budget(9.0, 1e-5)) as ledger:
        ledger.reserve(PureDP(0.5), key="ours", **how)
        assert not any("owner's own" in caveat for caveat in ledger_scope(ledger, seeded=False).caveats)
        ledger.reserve(Composed((TwoCoins(0.5), Curved(0.1))), key="theirs", **how)
        (said,) = [each for each in ledger_scope(ledger, seeded=False).caveats if "owner's own" in each]
        assert said.startswith("the price of tests.curve, tests.two_coins follows a rule of the owner's own")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("kind", ["coins", "Tests.coins", "tests.", ".coins", "tests coins", "", None, 3])
def test_a_name_without_a_dot_is_quorates(kind):
    with pytest.raises(InvalidParameter, match="lower-case words with a dot"):
        register_event(kind, priced_as=lambda event: PureDP(1.0))


def test_one_rule_is_needed_and_not_two():
    for rules in (
        {},
        {"priced_as": lambda event: PureDP(1.0), "rdp": lambda event, orders: orders},
        {"zcdp": lambda event: 0.5},
        {"priced_as": lambda event: PureDP(1.0), "zcdp": lambda event: 0.5},
    ):
        with pytest.raises(InvalidParameter, match="one price rule"):
            register_event("tests.rules", **rules)


def test_a_class_that_cannot_be_stored_is_refused():
    register = register_event("tests.classes", priced_as=lambda event: PureDP(1.0))

    @dataclass
    class Thawed(Event):
        epsilon: float

    @dataclass(frozen=True)
    class Nested(Event):
        inner: Event

    class Bare(Event):
        pass

    @dataclass(frozen=True)
    class Alien:
        epsilon: float

    for wrong in (Thawed, Nested, Bare, Alien, 3):
        with pytest.raises(InvalidParameter, match=r"tests\.classes"):
            register(wrong)  # type: ignore[type-var]


def test_a_name_means_one_class_and_a_module_may_be_read_again():
    def again() -> type[Event]:
        @register_event("tests.again", priced_as=lambda event: PureDP(1.0))
        @dataclass(frozen=True)
        class Again(Event):
            epsilon: float

        return Again

    assert again()(1.0) != again()(1.0)  # two classes of one name and place: the module was read again
    assert type(from_json('{"epsilon":1.0,"kind":"tests.again"}')) is not PureDP
    with pytest.raises(InvalidParameter, match=r"taken by .*Again"):

        @register_event("tests.again", priced_as=lambda event: PureDP(2.0))
        @dataclass(frozen=True)
        class Other(Event):
            epsilon: float


def test_the_published_names_are_without_a_dot():
    assert not any("." in kind for kind in KINDS)
    assert all("." in kind for kind in OWN_KINDS)


def test_rules_are_asked_at_the_orders_that_are_searched():
    asked: list[np.ndarray] = []

    def rule(event: Event, orders: np.ndarray) -> np.ndarray:
        asked.append(orders)
        return np.asarray(0.01 * orders)

    epsilon(curved("asked", rule), 1e-5)
    assert (np.concatenate(asked) > 1).all()
