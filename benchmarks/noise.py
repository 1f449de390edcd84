"""How many exact draws a second, on one core, with the operating system's entropy included.

    python benchmarks/noise.py [--json] [--draws 4000000]

CPU time, best of five; the table is built beforehand, and what that takes is printed beside it.
"""

import argparse
import json
import time

from quorate.noise import OSNoise, discrete_gaussian, discrete_laplace, geometric

CASES = [
    *((discrete_gaussian, sigma) for sigma in (1.0, 40.0, 200.0, 1000.0, 1800.0, 10_000.0, 1e6)),
    *((discrete_laplace, scale) for scale in (20.0, 200.0, 2000.0)),
    *((geometric, scale) for scale in (20.0, 400.0, 10_000.0)),
]


def measure(draw, scale, n_draws):
    start = time.process_time()
    draw(scale, 1, OSNoise())
    build = time.process_time() - start
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        draw(scale, n_draws, OSNoise())
        best = min(best, time.process_time() - start)
    start = time.process_time()
    for _ in range(1000):
        draw(scale, 10, OSNoise())
    ten = time.process_time() - start
    return {
        "sampler": draw.__name__,
        "scale": scale,
        "draws_per_second": n_draws / best,
        "table_ms": build * 1e3,
        "ten_draws_us": ten * 1e3,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--draws", type=int, default=4_000_000)
    arguments = parser.parse_args()
    rows = [measure(draw, scale, arguments.draws) for draw, scale in CASES]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'sampler':<18}{'scale':>10}{'M draws/s':>11}{'table ms':>10}{'10 draws µs':>13}")
    for row in rows:
        print(
            f"{row['sampler']:<18}{row['scale']:>10g}{row['draws_per_second'] / 1e6:>11.1f}"
            f"{row['table_ms']:>10.1f}{row['ten_draws_us']:>13.1f}"
        )


if __name__ == "__main__":
    main()
