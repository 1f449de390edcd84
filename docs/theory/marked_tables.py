"""Fill in the tables of the theory pages: ``python docs/theory/marked_tables.py`` writes them between their marks.

A table stands between ``<!-- table: name -->`` and ``<!-- end of table -->``; what it says is computed here. Bounds are
rounded the safe way: ε, δ and σ up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from math import ceil, exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from figures import DELTA, DIVIDED_VOTES, exponential_law, flip_law, mixed_ledger
from scipy.special import ndtr

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    Repeated,
    calibrate,
    epsilon,
    epsilon_of_zcdp,
    explain,
)
from quorate.learners import GenericLearner
from quorate.learners.concepts import Rectangles, Thresholds
from quorate.learners.sanitizers import Boxes, Medians, Tree
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import SeededNoise

FOLDER = Path(__file__).parent
MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
CALIBRATIONS = ("tight", "lzcw21", "btt18")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Rows = list[list[str]]


def up(number: float, places: int = 2) -> str:
    """A bound, rounded up."""
    return f"{Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-places), ROUND_CEILING):,}"


def small(number: float) -> str:
    """A small number, rounded up to two digits, as 3.3 · 10⁻⁶."""
    power = Decimal(number).adjusted()
    digits = up(number / 10.0**power, 1)
    return f"{digits} · 10{str(power).translate(SUPERSCRIPTS)}"


def sparse_vector_distances() -> Rows:
    """Threshold and passing distance of the three calibrations."""
    head = ["T", "m", *(f'"{name}": w' if part == "w" else "dist" for name in CALIBRATIONS for part in ("w", "dist"))]
    rows = [head]
    for cutoff in (10, 50, 200):
        for m in (10**3, 10**6):
            row = [str(cutoff), f"{m:,}"]
            for name in CALIBRATIONS:
                mechanism = StableSparseVector(1.0, DELTA, cutoff, m, name)
                row += [f"{mechanism.threshold:,.0f}", f"{mechanism.passing_dist():,}"]
            rows.append(row)
    return rows


def sparse_vector_prices() -> Rows:
    """What a run of each calibration is charged."""
    rows = [["calibration", "λ_t", "λ_q", "ε₀ of a stage", "δ_tail", "ε charged at δ"]]
    for name in CALIBRATIONS:
        mechanism = StableSparseVector(1.0, DELTA, 50, 1_000, name)
        noise = mechanism.stage_noise
        rows.append(
            [
                f'"{name}"',
                f"{noise.threshold_scale:.1f}",
                f"{noise.query_scale:.1f}",
                up(noise.epsilon, 5),
                small(noise.tail(50)),
                up(epsilon(mechanism.event, DELTA), 3),
            ]
        )
    return rows


def stability() -> Rows:
    """Threshold, chance of a label at distance 0, and the distance that is answered."""
    rows = [["ε", "Γ", "P(label) at distance 0", "answered with probability 0.95 from distance"]]
    for eps in (0.25, 0.5, 1.0, 2.0):
        threshold = DistanceToInstability(eps, DELTA).threshold
        ratio, need = exp(-eps), int(threshold // 1) + 1
        distance = next(d for d in range(10**4) if d >= need and 1 - ratio ** (d - need + 1) / (1 + ratio) >= 0.95)
        rows.append([f"{eps:g}", up(threshold), small(ratio**need / (1 + ratio)), str(distance)])
    return rows


def laplace_prices() -> Rows:
    """One noise, three prices."""
    scale = 100.0
    rows = [["answers ℓ", "sum: 2ℓ/b", "ℓ rounds of 2/b", "2ℓ rounds of 1/b: charged", "Gaussian, same spread"]]
    for answers in (1, 10, 100, 1_000, 10_000):
        gaussian = Repeated(DiscreteGaussian(sqrt(2) * scale, sqrt(2)), answers)
        events: tuple[Event, ...] = (
            Repeated(PureDP(2 / scale), answers),
            Repeated(DiscreteLaplace(scale, 1.0), 2 * answers),
            gaussian,
        )
        rows.append([f"{answers:,}", up(2 * answers / scale, 3), *(up(epsilon(event, DELTA), 3) for event in events)])
    return rows


def confident_prices() -> Rows:
    """Tests and answers of Confident-GNMax."""
    mechanism = ConfidentNoisyMax(threshold=200, sigma_threshold=150.0, sigma_answer=40.0)
    rows = [["asked", "answered", "ρ", "ε at δ: zCDP", "ε at δ: exact"]]
    for asked, answered in ((640, 640), (640, 286), (640, 0)):
        event = Composed(
            (Repeated(mechanism.event, answered), Repeated(mechanism.declined_event, asked - answered)),
        )
        rho = asked / (2 * 150.0**2) + answered / 40.0**2
        rows.append([str(asked), str(answered), up(rho, 4), up(epsilon_of_zcdp(rho, DELTA)), up(epsilon(event, DELTA))])
    return rows


def soft_label_distances() -> Rows:
    """What the second partition costs."""
    rows = [["T", "classes: dist", "soft labels: dist", "ratio"]]
    for cutoff in (10, 50, 200):
        hard = StableSparseVector(1.0, DELTA, cutoff, 1_000).passing_dist()
        soft = SoftLabel(1.0, DELTA, cutoff, 1_000, 10).sparse_vector.passing_dist()
        rows.append([str(cutoff), f"{hard:,}", f"{soft:,}", f"{soft / hard:.2f}"])
    return rows


def choices() -> Rows:
    """Two samplers at one price."""
    scores = np.array(DIVIDED_VOTES, dtype=float)
    gaps = scores.max() - scores
    rows = [
        ["ε", "best, exponential", "best, permute-and-flip", "shortfall, exponential", "shortfall, permute-and-flip"]
    ]
    for eps in (0.05, 0.1, 0.2, 0.5, 1.0):
        laws = [law(scores, eps) for law in (exponential_law, flip_law)]
        rows.append([f"{eps:g}", *(f"{law[0]:.3f}" for law in laws), *(f"{float(law @ gaps):.2f}" for law in laws)])
    return rows


def hypotheses() -> Rows:
    """How many hypotheses one label takes."""
    rows = [["α", *(f"ε = {eps:g}" for eps in (0.1, 0.5, 1.0, 2.0))]]
    rows += [
        [f"{alpha:g}", *(f"{PrivatePrediction(eps).n_hypotheses(alpha):,}" for eps in (0.1, 0.5, 1.0, 2.0))]
        for alpha in (0.2, 0.1, 0.05, 0.01)
    ]
    return rows


def integer_ties() -> Rows:
    """How likely another class draws level or wins: the lattice, the formula, and the formula with gap − ½."""
    rows = [["σ", "gap", "P(other ≥ first), lattice", "Φᶜ(gap/√2σ)", "its error", "Φᶜ((gap − ½)/√2σ)", "its error"]]
    for sigma in (0.5, 1.0, 5.0, 40.0, 150.0):
        gap = ceil(3 * sigma)
        reach = int(20 * sigma) + 4
        z = np.arange(-reach, reach + 1, dtype=float)
        mass = np.exp(-(z * z) / (2 * sigma * sigma))
        mass /= mass.sum()
        tails = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
        truth = float(
            sum(m * tails[min(max(int(v) + gap + reach, 0), 2 * reach + 1)] for v, m in zip(z, mass, strict=True))
        )
        plain, shifted = (float(ndtr(-g / (sqrt(2) * sigma))) for g in (gap, gap - 0.5))
        errors = [f"{100 * (value / truth - 1):+.1f} %".replace("-", "−") for value in (plain, shifted)]
        rows.append([f"{sigma:g}", str(gap), f"{truth:.5f}", f"{plain:.5f}", errors[0], f"{shifted:.5f}", errors[1]])
    return rows


def rules() -> Rows:
    """Which rule prices which ledger."""
    sparse = StableSparseVector(0.5, 1e-6, 10, 10_000).event
    ledgers: tuple[tuple[str, Event], ...] = (
        ("1,000 answers, `Gaussian(300, √2)`", Repeated(Gaussian(300.0, sqrt(2)), 1_000)),
        ("1,000 answers, `DiscreteGaussian(300, √2)`", Repeated(DiscreteGaussian(300.0, sqrt(2)), 1_000)),
        ("the same and 640 tests, `DiscreteGaussian(150, 1)`",
         Composed((Repeated(DiscreteGaussian(300.0, sqrt(2)), 1_000), Repeated(DiscreteGaussian(150.0, 1.0), 640)))),
        ("100 rounds of `PureDP(0.1)`", Repeated(PureDP(0.1), 100)),
        ("one `PureDP(0.5)`", PureDP(0.5)),
        ("a sparse vector run, T = 10", sparse),
        ("`Gaussian(40, 1)` and 10 of `PureDP(0.1)`", Composed((Gaussian(40.0, 1.0), Repeated(PureDP(0.1), 10)))),
        ("the mixed ledger of the figure", Composed(mixed_ledger())),
        ("`DiscreteGaussian(40, 1.1)`: shifts not determined", DiscreteGaussian(40.0, 1.1)),
        ("`ApproxDP(0.5, 0.001)`: its δ is above 10⁻⁵", ApproxDP(0.5, 0.001)),
    )  # fmt: skip
    rows = [["ledger", "rule", "ε at δ = 10⁻⁵"]]
    for name, event in ledgers:
        value, rule = explain(event, DELTA)
        rows.append([name, f"`{rule}`", "∞" if value == float("inf") else up(value, 4)])
    return rows


def calibrations() -> Rows:
    """σ by three rules."""
    rows = [["ε", "δ", "ℓ", "Δ", "σ, exact (default)", "σ, Rényi", 'σ, "paper"', 'ε charged at "paper"']]
    for eps, delta_, answers, sensitivity in (
        (1.0, 1 / 39_073, 977, 1.0),
        (1.0, 1 / 39_073, 977, sqrt(2)),
        (0.5, DELTA, 1_000, 1.0),
        (2.0, DELTA, 1_000, 1.0),
        (8.0, DELTA, 1_000, 1.0),
    ):
        exact = calibrate(eps, delta_, answers, sensitivity)
        paper = calibrate(eps, delta_, answers, sensitivity, calibration="paper")
        low, high = 0.0, exact.sigma * 4
        for _ in range(60):
            middle = (low + high) / 2
            fits = epsilon_of_zcdp(answers * sensitivity**2 / (2 * middle**2), delta_) <= eps
            low, high = (low, middle) if fits else (middle, high)
        written = "1/39,073" if delta_ > DELTA else "10⁻⁵"
        rows.append(
            [f"{eps:g}", written, f"{answers:,}", "1" if sensitivity == 1 else "√2",
             up(exact.sigma, 3), up(high, 3), up(paper.sigma, 3), up(paper.epsilon, 3)]
        )  # fmt: skip
    return rows


def boxes() -> Rows:
    """The worst error of a sanitizer over all rectangles, beside its bound, on rows of hard shapes."""
    side, n, grid, sanitizer = 32, 20_000, Rectangles(5, 2), Boxes(candidates=100_000)
    random = np.random.default_rng(0)
    x, y = random.integers(0, side, n), random.integers(0, side, n)
    shapes = {
        "one point": np.full((n, 2), 16),
        "a diagonal": np.column_stack([x, x]),
        "both sides of a line": np.column_stack([15 + x % 2, y]),
        "four corners": np.column_stack([31 * (x % 2), 31 * (x // 2 % 2)]),
        "spread evenly": np.column_stack([x, y]),
        "a comb": np.column_stack([x, (x % 2) * 31]),
    }

    def cumulative(points: Any) -> Any:
        shares = np.zeros((side + 1, side + 1))
        np.add.at(shares, (points[:, 0] + 1, points[:, 1] + 1), 1 / len(points))
        return shares.cumsum(axis=0).cumsum(axis=1)

    rows: Rows = [["rows", "worst error, mean", "largest", "bound"]]
    for name, points in shapes.items():
        found = []
        for seed in range(6):
            off = cumulative(points) - cumulative(sanitizer.sanitize(points, grid, 2.0, SeededNoise(seed)))
            bands = off[:, np.newaxis, :] - off[np.newaxis, :, :]
            found.append(float((bands.max(axis=2) - bands.min(axis=2)).max()))
        bound = sanitizer.error_bound(n, grid, 0.1, 2.0)
        rows.append([name, f"{np.mean(found):.3f}", f"{max(found):.3f}", up(bound)])
    return rows


def medians() -> Rows:
    """The worst error over all intervals and the widest gap, beside their bounds, on rows of hard shapes."""
    bits, n, grid = 20, 20_000, Thresholds(20)
    random = np.random.default_rng(0)
    shapes = {
        "one point": np.full(n, 123_456),
        "both ends": np.where(np.arange(n) % 2, 0, 2**bits - 1),
        "spread evenly": random.integers(0, 2**bits, n),
        "halving": (2.0 ** random.uniform(0, bits, n)).astype(np.int64) - 1,
        "a comb": 4096 * random.integers(0, 2**bits // 4096, n),
        "both sides of a power of two": 2**19 + random.integers(-3, 3, n),
    }
    rows: Rows = [["rows", "δ", "widest gap", "bound", "worst interval", "bound"]]
    for name, values in shapes.items():
        for delta in (0.0, 1e-6):
            sanitizer = Medians(delta=delta, levels=5)
            gaps, worst = [], []
            for seed in range(3):
                released = sanitizer.sanitize(values[:, np.newaxis], grid, 2.0, SeededNoise(seed))[:, 0]
                splits, points = np.unique(released), np.unique(np.append(values, released))
                between = values[~np.isin(values, splits)]
                gaps.append(np.bincount(np.searchsorted(splits, between), minlength=1).max() / n)
                off = np.searchsorted(np.sort(values), points, side="right") / n
                off = np.append(0.0, off - np.searchsorted(released, points, side="right") / len(released))
                worst.append(off.max() - off.min())
            agree, bound = (f(n, grid, 0.1, 2.0) for f in (sanitizer.agreement_bound, sanitizer.error_bound))
            said = [f"{max(gaps):.3f}", up(agree), f"{max(worst):.3f}", up(bound)]
            rows.append([name, "10⁻⁶" if delta else "0", *said])
    return rows


def median_rows() -> Rows:
    """The unlabelled rows that GenericLearner's theorem asks for, by the sanitizer, at α = β = .1 and ε = 1."""
    rows: Rows = [["points", "Tree", "Medians, δ = 0", "Medians, δ = 10⁻⁶", "labels: Tree", "Medians"]]
    for bits in (8, 16, 24, 32, 48, 62):
        needed = [
            GenericLearner(concepts=Thresholds(bits), sanitizer=sanitizer, epsilon=1.0).rows_needed()
            for sanitizer in (Tree(), Medians(), Medians(delta=1e-6))
        ]
        labels = [f"{each.labelled:,}" for each in needed[:2]]
        rows.append([f"2^{bits}", *(f"{each.unlabelled:,}" for each in needed), *labels])
    return rows


TABLES: dict[str, Callable[[], Rows]] = {
    "sparse-vector-distances": sparse_vector_distances,
    "sparse-vector-prices": sparse_vector_prices,
    "stability": stability,
    "laplace-prices": laplace_prices,
    "confident-prices": confident_prices,
    "soft-label-distances": soft_label_distances,
    "choices": choices,
    "hypotheses": hypotheses,
    "integer-ties": integer_ties,
    "rules": rules,
    "calibrations": calibrations,
    "boxes": boxes,
    "medians": medians,
    "median-rows": median_rows,
}


def written(rows: Rows) -> str:
    """Rows as a Markdown table."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def refreshed(text: str) -> str:
    """A page with its tables computed anew."""
    return MARK.sub(lambda match: match[1] + written(TABLES[match[2]]()) + match[3], text)


if __name__ == "__main__":
    for page in sorted(FOLDER.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
