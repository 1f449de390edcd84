"""Prices of many events and compositions, and the noise that budgets buy."""

from itertools import product

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PureDP,
    Repeated,
    answers_allowed,
    calibrate_sigma,
    delta,
    epsilon,
    explain,
    rdp,
    to_json,
    zcdp,
)
from quorate.errors import QuorateError
from quorate.mechanisms import StableSparseVector

ORDERS = (1.5, 2.0, 8.0, 64.0)

LEAVES = (
    Gaussian(1.0, 1.0),
    Gaussian(40.0, 2**0.5),
    DiscreteGaussian(0.7, 1.0),
    DiscreteGaussian(4.0, 1.0),
    DiscreteGaussian(40.0, 2**0.5),
    DiscreteGaussian(336.584856, 1.0),
    DiscreteLaplace(0.5, 1.0),
    DiscreteLaplace(20.0, 2.0),
    PureDP(0.0),
    PureDP(0.1),
    PureDP(2.0),
    ApproxDP(0.1, 1e-7),
    ApproxDP(1.0, 1e-6),
)

EVENTS = (
    *LEAVES,
    *(Repeated(leaf, times) for leaf, times in product(LEAVES, (3, 400))),
    Composed((DiscreteGaussian(150.0, 1.0), DiscreteGaussian(40.0, 2**0.5))),
    Repeated(Composed((DiscreteGaussian(150.0, 1.0), DiscreteGaussian(40.0, 1.0))), 250),
    Composed((Repeated(DiscreteLaplace(50.0, 2.0), 30), Repeated(DiscreteGaussian(90.0, 1.0), 100))),
    Composed((Repeated(PureDP(0.03), 50), ApproxDP(0.0, 4e-6))),
    Composed((PureDP(0.5), DiscreteGaussian(30.0, 1.0), ApproxDP(0.2, 1e-8))),
    Repeated(Repeated(DiscreteGaussian(60.0, 1.0), 5), 7),
    Composed(()),
    StableSparseVector(epsilon=1.0, delta=1e-6, cutoff=10, n_queries=200).event,
    StableSparseVector(epsilon=1.0, delta=1e-6, cutoff=10, n_queries=200, calibration="lzcw21").event,
)

BUDGETS = tuple(product((0.1, 1.0, 4.0), (1e-5, 1e-8), (1, 500, 8_140), (1.0, 2**0.5)))


def prices():
    """Return the prices of each event by its JSON, and the noise for each budget."""
    return {
        "events": {to_json(event): _prices_of(event) for event in EVENTS},
        "sigma": {_budget(*budget): calibrate_sigma(*budget) for budget in BUDGETS},
        "sigma of the paper": {
            _budget(*budget): calibrate_sigma(*budget, calibration="paper") for budget in BUDGETS[::5]
        },
        "answers allowed": {
            f"epsilon={e} delta={d} sigma={s}": answers_allowed(e, d, s, 1.0)
            for e, d, s in product((0.1, 1.0), (1e-5, 1e-8), (20.0, 400.0))
        },
    }


def _budget(epsilon, delta, answers, sensitivity):
    return f"epsilon={epsilon} delta={delta} answers={answers} sensitivity={sensitivity}"


def _prices_of(event):
    return {
        "epsilon": {str(d): _or_refusal(lambda d=d: epsilon(event, d)) for d in (0.0, 1e-8, 1e-5)},
        "delta": {str(e): _or_refusal(lambda e=e: delta(event, e)) for e in (0.1, 1.0, 4.0)},
        "rule": _or_refusal(lambda: explain(event, 1e-5)[1]),
        "rdp": _or_refusal(lambda: rdp(event, ORDERS).tolist()),
        "zcdp": _or_refusal(lambda: zcdp(event)),
    }


def _or_refusal(price):
    try:
        value = price()
    except QuorateError as refusal:
        return type(refusal).__name__
    return value if value != float("inf") else "infinite"
