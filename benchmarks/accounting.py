"""How long the prices take, and how much the vectorised data-dependent bound gains over a loop.

Run: ``python benchmarks/accounting.py`` (one core; a few seconds).
"""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
from scipy.stats import norm

from quorate.accounting import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    PureDP,
    Repeated,
    answers_allowed,
    calibrate_sigma,
    explain,
)
from quorate.accounting.data_dependent import gnmax_rdp, smooth_sensitivity, threshold_rdp


def best_of(function, times=3):
    """Return (result, least seconds) of a few calls."""
    seconds = math.inf
    for _ in range(times):
        start = perf_counter()
        result = function()
        seconds = min(seconds, perf_counter() - start)
    return result, seconds


def looped_gnmax(counts, sigma, orders):
    """The bound of PATE18 Thm 6 written as a plain loop over queries, as published analyses do it."""
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


def main() -> None:
    """Print one line per measurement."""
    events = {
        "977 binary answers, sigma 40": Repeated(DiscreteGaussian(40, 1), 977),
        "100,000 histogram answers, sigma 1": Repeated(DiscreteGaussian(1, 2**0.5), 100_000),
        "100,000 histogram answers, sigma 1000": Repeated(DiscreteGaussian(1000, 2**0.5), 100_000),
        "10,000 pure rounds": Repeated(PureDP(0.01), 10_000),
        "Gaussian and 50 pure rounds": Composed((Repeated(Gaussian(40, 1), 100), Repeated(PureDP(0.1), 50))),
        "threshold tests and labels": Composed(
            (Repeated(DiscreteGaussian(150, 1), 640), Repeated(DiscreteGaussian(40, 2**0.5), 300))
        ),
    }
    for name, event in events.items():
        (value, rule), seconds = best_of(lambda event=event: explain(event, 1e-5))
        print(f"{name:42s} epsilon {value:12.6f}  {rule:20s} {1e3 * seconds:9.2f} ms")
    sigma, seconds = best_of(lambda: calibrate_sigma(1.0, 1 / 39073, 977, 1.0))
    print(f"{'calibrate_sigma':42s} sigma {sigma:14.6f}  {'':20s} {1e3 * seconds:9.2f} ms")
    count, seconds = best_of(lambda: answers_allowed(1.0, 1 / 39073, sigma, 1.0))
    print(f"{'answers_allowed':42s} answers {count:12d}  {'':20s} {1e3 * seconds:9.2f} ms")

    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(250, rng.dirichlet(np.full(10, 0.2))) for _ in range(12_000)])
    orders = np.linspace(1.5, 60.0, 50)
    fast, fast_seconds = best_of(lambda: gnmax_rdp(counts, 40.0, orders).reveal())
    slow, slow_seconds = best_of(lambda: looped_gnmax(counts, 40.0, orders), times=1)
    print(f"gnmax_rdp, 12,000 queries x 50 orders: {fast_seconds:.3f} s, a loop {slow_seconds:.3f} s: ", end="")
    print(f"{slow_seconds / fast_seconds:.0f} times; largest difference {np.max(np.abs(fast - slow)):.1e}")
    _, seconds = best_of(lambda: threshold_rdp(counts, 150, 100.0, orders, noise="discrete"))
    print(f"threshold_rdp, the same: {seconds:.3f} s")
    _, seconds = best_of(
        lambda: smooth_sensitivity(counts, 40.0, 10.0, 0.03, threshold=150, threshold_sigma=100.0), times=1
    )
    print(f"smooth_sensitivity, 12,000 queries: {seconds:.3f} s")


if __name__ == "__main__":
    main()
