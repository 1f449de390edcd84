"""A reservation pays for a release only where its event holds the release's own, often enough."""

import pytest

from quorate.accounting import Composed, DiscreteGaussian, DiscreteLaplace, PureDP, Repeated
from quorate.errors import InvalidParameter
from quorate.labelling.priced import check_pays
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisySum, PermuteAndFlip

LABEL = DiscreteGaussian(40.0, 1.0)
SHARES = NoisySum(10.0, 5, "shares")
ONE = DiscreteLaplace(50.0, 5.0)


def reserve(event, **purposes):
    return Ledger(budget=Budget(1_000.0, 1e-5)).reserve(event, delta=1e-6, purposes=purposes, key="k")


@pytest.mark.parametrize(
    ("event", "times"),
    [
        (SHARES.event, 1),
        (Composed((ONE, LABEL, ONE)), 1),
        (Repeated(SHARES.event, 3), 3),
        (Repeated(Composed((SHARES.event, Repeated(LABEL, 7))), 2), 2),
        (Repeated(ONE, 9), 4),
    ],
)
def test_taken_apart_it_holds_enough(event, times):
    check_pays(reserve(event, evaluation=times, label=5), SHARES, purpose="evaluation")


@pytest.mark.parametrize(
    ("event", "times"),
    [
        (ONE, 1),
        (LABEL, 1),
        (SHARES.event, 2),
        (Composed((ONE, LABEL)), 1),
        (Repeated(ONE, 9), 5),
        (Repeated(DiscreteLaplace(50.0, 4.0), 2), 1),
        (Repeated(DiscreteLaplace(51.0, 5.0), 2), 1),
        (PureDP(100.0), 1),
    ],
)
def test_anything_less_or_else_is_refused(event, times):
    with pytest.raises(InvalidParameter, match=r"^reservation must pay for NoisySum"):
        check_pays(reserve(event, evaluation=times), SHARES, purpose="evaluation")


def test_the_purpose_must_have_been_reserved():
    with pytest.raises(InvalidParameter, match=r'^reservation must be made for the purpose "tuning"'):
        check_pays(reserve(PureDP(1.0), evaluation=1), PermuteAndFlip(epsilon=1.0), purpose="tuning")
