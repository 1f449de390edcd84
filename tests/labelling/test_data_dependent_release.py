"""The data-dependent total leaves only through its noisy release, charged like any other."""

import numpy as np
import pytest

from quorate.accounting import epsilon
from quorate.accounting.data_dependent import gnmax_rdp, release_rdp, smooth_sensitivity, threshold_rdp
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import DataDependentRelease, release_data_dependent_total
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, NoisyCounts
from quorate.noise import SeededNoise
from quorate.types import Secret

RNG = np.random.default_rng(3)
VOTES = RNG.multinomial(250, [0.9, 0.05, 0.05], size=40).astype(np.int64)
PLAIN = GaussianNoisyMax(sigma=40.0)
CONFIDENT = ConfidentNoisyMax(threshold=150, sigma_threshold=100.0, sigma_answer=40.0)
ANSWERED = np.arange(40) % 4 > 0
SANITISER = DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=1e-6)


def paid(sanitiser=SANITISER):
    ledger = Ledger(budget=Budget(100.0, 1e-5))
    return ledger.reserve(sanitiser.event, delta=1e-6, purposes={"evaluation": 1}, key="total")


def release(mechanism=PLAIN, reservation=None, noise=None, sanitiser=SANITISER, **options):
    return release_data_dependent_total(
        Secret(VOTES), mechanism, sanitiser, reservation=reservation or paid(), noise=noise or SeededNoise(0), **options
    )


@pytest.mark.heavy
@pytest.mark.parametrize("mechanism", [PLAIN, CONFIDENT], ids=["plain", "confident"])
def test_values_lie_about_the_total_with_noise_of_the_promised_size(mechanism):
    if mechanism is PLAIN:
        total = gnmax_rdp(VOTES, 40.0, [20.0], noise="discrete").reveal().sum()
        smooth = smooth_sensitivity(VOTES, 40.0, 20.0, 0.01).reveal()
        options = {}
    else:
        total = gnmax_rdp(VOTES[ANSWERED], 40.0, [20.0], noise="discrete").reveal().sum()
        total += threshold_rdp(VOTES, 150, 100.0, [20.0], noise="discrete").reveal().sum()
        tests = {"answered": ANSWERED, "threshold": 150, "threshold_sigma": 100.0}
        smooth = smooth_sensitivity(VOTES, 40.0, 20.0, 0.01, **tests).reveal()
        options = {"answered": ANSWERED}
    values = [release(mechanism, noise=SeededNoise(seed), **options).value for seed in range(60)]
    spread = 40.0 * (smooth + 1e-4)

    assert abs(np.mean(values) - total) < 5 * spread / np.sqrt(60)  # false alarm 6e-7
    assert 0.5 * spread < np.std(values) < 1.6 * spread  # false alarm below 1e-8


def test_the_price_is_that_of_its_renyi_divergence():
    event = SANITISER.event
    cost = release_rdp(20.0, 0.01, 40.0)

    assert epsilon(event, 1e-6) == event.epsilon
    assert event.epsilon == pytest.approx(cost + np.log(1 - 1 / 20) - np.log(1e-6 * 20) / 19)
    assert release().release_cost == cost


def test_it_is_charged_then_drawn_then_stored_then_told(diary):
    reservation, noise = diary("evaluation", 1, SANITISER)
    total = release(reservation=reservation, noise=noise)

    diary.check_single(reservation)
    assert reservation.stored == [[total.value]]


def test_nothing_is_drawn_when_something_is_wrong():
    good = paid()
    other = DataDependentRelease(order=20.0, beta=0.01, multiplier=20.0, delta=1e-6)
    for options in (
        {"mechanism": NoisyCounts(sigma=40.0)},  # the values say more than the class
        {"mechanism": GaussianNoisyMax(sigma=40.0, form="binary")},
        {"mechanism": CONFIDENT},
        {"answered": ANSWERED},
        {"mechanism": CONFIDENT, "answered": ANSWERED[:-1]},
        {"mechanism": CONFIDENT, "answered": ANSWERED.astype(int)},
        {"sanitiser": other},
    ):
        with pytest.raises(InvalidParameter):
            release(reservation=good, **options)
    assert good.remaining("evaluation") == 1
    release(reservation=good)
    with pytest.raises(BudgetExhausted):
        release(reservation=good)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "field",
    [
        {"order": 1.0},
        {"order": float("nan")},
        {"beta": 0.0},
        {"beta": 0.03},  # 20 (1 - e^-0.06) > 1
        {"beta": True},
        {"multiplier": 2.0},
        {"multiplier": "40"},
        {"delta": 0.0},
        {"delta": 1.0},
    ],
    ids=str,
)
def test_bad_fields(field):
    [name] = field
    given = {"order": 20.0, "beta": 0.01, "multiplier": 40.0, "delta": 1e-6, **field}
    with pytest.raises(InvalidParameter, match=f"^{name} must be "):
        DataDependentRelease(**given)
