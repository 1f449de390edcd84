"""An event's price against the law of a release: no rule of quorate's is below it, and a cheaper one is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    PureDP,
    Repeated,
    register_event,
)
from quorate.audit import GaussianClaim, PriceFault, PureClaim, claim_on, price_faults


def laplace(scale: float) -> list[Any]:
    z = np.arange(-60 * int(scale), 60 * int(scale) + 1)
    here, there = np.exp(-np.abs(z) / scale), np.exp(-np.abs(z - 1) / scale)
    return [(here / here.sum(), there / there.sum())]


def gaussian(sigma: float) -> list[Any]:
    z = np.arange(-int(14 * sigma), int(14 * sigma) + 2)
    here, there = np.exp(-(z**2) / (2 * sigma**2)), np.exp(-((z - 1) ** 2) / (2 * sigma**2))
    return [(here / here.sum(), there / there.sum())]


def failing(epsilon: float, delta: float) -> list[Any]:
    yes = 1 / (1 + np.exp(-epsilon))
    return [
        ([delta, (1 - delta) * yes, (1 - delta) * (1 - yes), 0], [0, (1 - delta) * (1 - yes), (1 - delta) * yes, delta])
    ]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("event", "outcomes"),
    [
        (DiscreteLaplace(3.0, 1.0), laplace(3.0)),
        (DiscreteGaussian(3.0, 1.0), gaussian(3.0)),
        (ApproxDP(0.5, 1e-3), failing(0.5, 1e-3)),
        (Composed((PureDP(0.2), DiscreteLaplace(3.0, 1.0))), laplace(3.0)),
    ],
)
def test_no_rule_of_quorates_is_below_the_sum(event: Event, outcomes: Any) -> None:
    assert price_faults(event, outcomes) == ()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("event", "outcomes", "rules"),
    [
        (DiscreteLaplace(3.1, 1.0), laplace(3.0), {"delta", "epsilon", "rdp", "zcdp"}),
        (DiscreteGaussian(3.1, 1.0), gaussian(3.0), {"delta", "epsilon", "rdp", "zcdp"}),
        (ApproxDP(0.5, 0.9e-3), failing(0.5, 1e-3), {"delta", "epsilon"}),
        (PureDP(0.5), failing(0.5, 1e-3), {"delta", "epsilon", "rdp", "zcdp"}),
    ],
)
def test_a_price_that_is_a_little_too_low_is_found(event: Event, outcomes: Any, rules: set[str]) -> None:
    faults = price_faults(event, outcomes)
    assert {fault.rule for fault in faults} == rules
    assert all(isinstance(fault, PriceFault) and fault.exact > fault.claimed for fault in faults)


@register_event("tests.audited_gaussian", priced_as=lambda event: Repeated(DiscreteGaussian(event.sigma, 1.0), 2))
@dataclass(frozen=True)
class OwnGaussian(Event):
    sigma: float


@register_event("tests.audited_coin", priced_as=lambda event: PureDP(event.epsilon))
@dataclass(frozen=True)
class OwnCoin(Event):
    epsilon: float


def test_what_an_audit_tests_of_an_owners_event_is_what_it_is_priced_as() -> None:
    """A trade-off curve, or pure privacy, which are sharper to test than their (ε, δ)."""
    known = Repeated(DiscreteGaussian(40.0, 1.0), 2)
    assert claim_on(OwnGaussian(40.0), 1e-5) == claim_on(known, 1e-5)
    assert isinstance(claim_on(OwnGaussian(40.0), 1e-5), GaussianClaim)
    assert claim_on(Repeated(OwnGaussian(40.0), 3), 1e-5) == claim_on(Repeated(known, 3), 1e-5)
    assert claim_on(OwnCoin(0.5), 1e-5) == PureClaim(0.5)


@pytest.mark.heavy
def test_two_releases_are_looked_at_beside_one() -> None:
    """A price that is right for one release and forgets the second."""
    one = price_faults(PureDP(1.0), laplace(3.0))  # ε = 1/3
    assert one == ()
    faults = price_faults(PureDP(1 / 3), [(np.outer(p, p).ravel(), np.outer(q, q).ravel()) for p, q in laplace(3.0)])
    assert faults
    assert (
        price_faults(
            Repeated(PureDP(1 / 3 + 1e-12), 2),
            [(np.outer(p, p).ravel(), np.outer(q, q).ravel()) for p, q in laplace(3.0)],
        )
        == ()
    )
