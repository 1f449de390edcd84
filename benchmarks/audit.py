"""How much of a claim the sampled audit shows, how quickly, and whether it tells cheats from correct mechanisms.

    python benchmarks/audit.py [tightness] [cheats]

Tightness: single answers of GaussianNoisyMax on a tie, 10⁶ runs, confidence 0.95; the share of the claimed μ that is
proved, the median of five audits, and the CPU time of one. Noise of σ ≤ 2 is so near the lattice that its trade-off
curve is not the Gaussian one, and may show more than μ; what is claimed there is an (ε, δ).

Cheats: every case, once, with a confidence of 1 − 10⁻⁶.
"""

from __future__ import annotations

import statistics
import sys
import time

from quorate.audit import GaussianClaim, audit_mechanism, tied_neighbours
from quorate.audit.cheats import CHEATS, HONEST
from quorate.mechanisms import GaussianNoisyMax

RUNS = 10**6


def tightness() -> None:
    print(f"single answers of GaussianNoisyMax, {RUNS:,} runs, confidence 0.95")
    print(f"{'σ':>6}{'form':>12}{'claimed μ':>12}{'proved μ':>12}{'share':>9}{'CPU s':>8}")
    for sigma in (1.0, 2.0, 4.0, 10.0, 20.0, 40.0):
        for form, classes, moved in (("histogram", 3, 2**0.5), ("binary", 2, 1.0)):
            mechanism, claim = GaussianNoisyMax(sigma=sigma, form=form), GaussianClaim(moved / sigma)
            bounds, seconds = [], []
            for seed in range(5):
                begun = time.process_time()
                found = audit_mechanism(mechanism, tied_neighbours(250, classes), claim, runs=RUNS, seed=seed)
                seconds.append(time.process_time() - begun)
                bounds.append(found.lower_bound)
            proved = statistics.median(bounds)
            print(
                f"{sigma:>6g}{form:>12}{claim.mu:>12.4f}{proved:>12.4f}{proved / claim.mu:>9.1%}"
                f"{statistics.median(seconds):>8.2f}"
            )


def cheats() -> None:
    begun = time.process_time()
    caught = sum(case.audit(seed=0).violated for case in CHEATS)
    wrongly = sum(case.audit(seed=0).violated for case in HONEST)
    seconds = time.process_time() - begun
    print(f"{caught} of {len(CHEATS)} cheats caught, {wrongly} of {len(HONEST)} correct ones, {seconds:.1f} s of CPU")


if __name__ == "__main__":
    for part in sys.argv[1:] or ["tightness", "cheats"]:
        {"tightness": tightness, "cheats": cheats}[part]()
