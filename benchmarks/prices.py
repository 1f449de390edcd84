"""Prices beside dp-accounting; the data-dependent bound beside a loop over queries, as published analyses have it."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from benchmarks.paired import Growth, Pair, Work

ORDERS = np.linspace(1.5, 60.0, 50)


def looped_gnmax(counts, sigma, orders):
    """The bound of PATE18 Thm 6 written as a plain loop over queries."""
    rows = []
    for row in counts:
        top = int(np.argmax(row))
        gaps = np.delete(row[top] - row, top)
        log_q = float(np.logaddexp.reduce(norm.logsf(gaps, scale=math.sqrt(2) * sigma)))
        bound = orders / sigma**2
        mu_2 = sigma * math.sqrt(max(-log_q, 0.0))
        if mu_2 > 1 and -log_q > mu_2 / sigma**2:
            mu_1, e_2 = mu_2 + 1, mu_2 / sigma**2
            if log_q <= (mu_2 - 1) * e_2 - mu_2 * math.log(mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1)):
                log_1q = math.log1p(-math.exp(log_q))
                log_a = (orders - 1) * (log_1q - math.log(-math.expm1((log_q + e_2) * (1 - 1 / mu_2))))
                log_b = (orders - 1) * (mu_1 / sigma**2 - log_q / (mu_1 - 1))
                sharper = np.logaddexp(log_1q + log_a, log_q + log_b) / (orders - 1)
                bound = np.where(orders < mu_1, np.minimum(bound, sharper), bound)
        rows.append(bound)
    return np.array(rows)


def data_dependent(quick: bool) -> Work:
    """Bound the Rényi divergence of 12,000 queries at 50 orders."""
    from quorate.accounting.data_dependent import gnmax_rdp

    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(250, rng.dirichlet(np.full(10, 0.2))) for _ in range(300 if quick else 12_000)])
    return Work(
        ours=lambda: gnmax_rdp(counts, 40.0, ORDERS).reveal(),
        theirs=lambda: looped_gnmax(counts, 40.0, ORDERS),
        same=lambda mine, other: bool(np.allclose(mine, other, rtol=1e-9)),
    )


def threshold_tests_and_labels(_quick: bool) -> Work:
    """Price 640 threshold tests and 300 labels, two deviations, at δ = 1e-5."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    from quorate.accounting import Composed, DiscreteGaussian, Repeated, epsilon

    both = Composed((Repeated(DiscreteGaussian(150, 1), 640), Repeated(DiscreteGaussian(40, 2**0.5), 300)))

    def theirs() -> float:
        # The same two Gaussian mechanisms; the discrete ones differ from them far below the tolerance.
        tests = pld.from_gaussian_mechanism(150, value_discretization_interval=1e-4).self_compose(640)
        labels = pld.from_gaussian_mechanism(40 / 2**0.5, value_discretization_interval=1e-4).self_compose(300)
        return tests.compose(labels).get_epsilon_for_delta(1e-5)

    return Work(
        ours=lambda: epsilon(both, 1e-5),
        theirs=theirs,
        same=lambda mine, other: abs(mine - other) < 0.01 * other,
    )


def many_deviations(size: int):
    """Price a composition of as many distinct deviations."""
    from quorate.accounting import Composed, DiscreteGaussian, epsilon

    events = Composed(tuple(DiscreteGaussian(40 * math.sqrt(size) + i, 1) for i in range(size)))
    return lambda: epsilon(events, 1e-5)


PAIRS = (
    Pair("data-dependent bound of 12,000 queries, 50 orders", "a loop over queries", 80, data_dependent, rounds=3),
    Pair("price of 640 threshold tests and 300 labels", "dp-accounting", 1, threshold_tests_and_labels, rounds=3),
)
CURVES = (Growth("price of distinct deviations", "deviations", (30, 100, 300, 1_000), (3, 10), many_deviations),)
