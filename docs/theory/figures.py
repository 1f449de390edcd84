"""Draw the figures of the theory pages: ``python docs/theory/figures.py`` writes them into ``figures/``.

Every line is computed by the functions that price and release; what they do not compute is summed here, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
from rates import RATES
from scipy.stats import binom

from quorate.accounting import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    PureDP,
    Repeated,
    calibrate_sigma,
    data_dependent,
    delta,
    epsilon,
    epsilon_of_zcdp,
)
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.accounting.renyi import delta_of_curve
from quorate.accounting.spend import collect
from quorate.mechanisms import DistanceToInstability, NoisySum, PrivatePrediction, StableSparseVector
from quorate.noise import SeededNoise
from quorate.report.chart import Axis, Chart

FOLDER = Path(__file__).parent / "figures"
DELTA, DELTA_SAYS = 1e-5, "10⁻⁵"

#: Votes of 250 teachers for ten classes, as they fall where the teachers are not of one mind.
DIVIDED_VOTES = (72, 58, 40, 27, 18, 12, 9, 7, 4, 3)


def noise_on_votes() -> Chart:
    """What ℓ answers cost: the exact price of both forms, and the printed formula."""
    sigma, small_delta = 40.0, 1 / 39_073
    answers = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    chart = Chart(
        f"What ℓ answers cost at σ = {sigma:g} votes",
        Axis("answers ℓ (log scale)", 1, 10_000, log=True),
        Axis("ε at δ = 1/39,073 (log scale)", 0.1, 30, log=True),
        "Three rising lines. The exact price of the histogram form lies above the printed formula, that of the binary "
        "form below it.",
        "bottom right",
    )
    for name, style, sensitivity in (
        ("histogram form, exact (Δ = √2)", 0, sqrt(2)),
        ("binary form, exact (Δ = 1)", 2, 1.0),
    ):
        events = [Repeated(DiscreteGaussian(sigma, sensitivity), int(n)) for n in answers]
        chart.line(answers, [epsilon(event, small_delta) for event in events], name, style)
    printed = np.sqrt(2 * answers * log(1 / small_delta)) / sigma + answers / (2 * sigma**2)
    chart.line(answers, printed, "formula of LZCW21, Algorithm 1", 1)
    chart.rule(x=977)
    chart.words(977, 0.13, "ℓ = 977", anchor="end", move=(-6, 0))
    return chart


def laplace_noisy_max() -> Chart:
    """Three prices of the same Laplace noise, and Gaussian noise that is as wide."""
    scale = 100.0
    answers = np.unique(np.geomspace(1, 10_000, 40).astype(int))
    chart = Chart(
        f"One noise, priced three ways: b = {scale:g} votes",
        Axis("answers ℓ (log scale)", 1, 10_000, log=True),
        Axis(f"ε at δ = {DELTA_SAYS} (log scale)", 0.01, 100, log=True),
        "Four rising lines: the sum of 2/b is steepest; composed as pairs of rounds of 1/b the same answers cost least "
        "of the three; Gaussian noise of the same spread costs less still for many answers and more for few.",
        "top left",
    )
    sigma = sqrt(2) * scale
    lines: tuple[tuple[str, Callable[[int], float]], ...] = (
        ("sum: 2ℓ/b", lambda n: 2 * n / scale),
        ("ℓ rounds of 2/b", lambda n: epsilon(Repeated(PureDP(2 / scale), n), DELTA)),
        ("2ℓ rounds of 1/b: what is charged", lambda n: epsilon(Repeated(DiscreteLaplace(scale, 1.0), 2 * n), DELTA)),
        (
            "Gaussian noise of the same spread",
            lambda n: epsilon(Repeated(DiscreteGaussian(sigma, sqrt(2)), n), DELTA),
        ),
    )
    for style, (name, price) in zip((1, 3, 0, 4), lines, strict=True):
        chart.line(answers, [price(int(n)) for n in answers], name, style)
    return chart


def confident_and_interactive() -> Chart:
    """Which queries are answered, for three widths of the test's noise."""
    threshold = 200
    largest = np.arange(50, 251)
    chart = Chart(
        f"Which queries the noisy test lets through (threshold {threshold} votes)",
        Axis("votes for the plurality class, of 250 teachers", 50, 250),
        Axis("probability that the query is answered", 0, 1),
        "Three curves that rise with the votes and cross one half at the threshold: steep for little noise, almost "
        "flat for much.",
        "top left",
    )
    for style, sigma in enumerate((20.0, 50.0, 150.0)):
        passing = [_discrete_gaussian_tail(sigma, threshold - int(votes)) for votes in largest]
        chart.line(largest, passing, f"σ₁ = {sigma:g}: ρ = 1/{2 * sigma**2:,.0f} a test", style)
    chart.rule(x=threshold)
    chart.rule(y=0.5)
    return chart


def distance_to_instability() -> Chart:
    """The probability of a label, at every distance."""
    distances = np.arange(0, 41)
    chart = Chart(
        "Where one query is answered: distance to instability",
        Axis("distance to instability, in teachers", 0, 40),
        Axis("probability that a label is released (log scale)", 1e-8, 1, log=True),
        "Three rising lines that all start just below δ at distance 0 and approach 1: the larger ε, the sooner.",
        "bottom right",
    )
    for style, eps in enumerate((2.0, 1.0, 0.5)):
        mechanism = DistanceToInstability(eps, DELTA)
        ratio = exp(-eps)
        passing = []
        for distance in distances:
            need = int(mechanism.threshold // 1) + 1 - int(distance)  # noise ≥ need passes
            tail = ratio ** abs(need) / (1 + ratio)
            passing.append(tail if need > 0 else 1 - tail * ratio)
        chart.line(distances, passing, f"ε = {eps:g}, Γ = {mechanism.threshold:.1f}", style, marks=8)
    chart.rule(y=DELTA)
    chart.words(39, DELTA, f"δ = {DELTA_SAYS}: distance 0 stays below", anchor="end", move=(0, -6))
    return chart


def sparse_vector() -> Chart:
    """The distance that a query needs, against the number of queries."""
    cutoff = 50
    asked = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    chart = Chart(
        f"Distance answered with probability 0.95 (ε = 1, δ = {DELTA_SAYS}, T = {cutoff})",
        Axis("queries m (log scale)", 100, 1_000_000, log=True),
        Axis("distance needed, in teachers (log scale)", 30, 20_000, log=True,
             ticks=(30, 100, 300, 1_000, 3_000, 10_000)),
        "The tight calibration is a flat line at 1,018. The two papers' calibrations lie four to eight times higher "
        "and rise. Gaussian answers rise with the square root of m and cross the tight line at about 27,500 queries.",
        "bottom right",
    )  # fmt: skip
    for style, name in ((1, "btt18"), (2, "lzcw21"), (0, "tight")):
        needed = [StableSparseVector(1.0, DELTA, cutoff, m, name).passing_dist() for m in asked]
        chart.line(asked, needed, f'"{name}"', style, marks=5)
    gaussian = [_gaussian_distance(calibrate_sigma(1.0, DELTA, m, 1.0)) for m in asked]
    chart.line(asked, gaussian, "m Gaussian answers, binary form", 3, marks=5)
    return chart


def sparse_vector_stage() -> Chart:
    """Stages as they run: noisy distances, a noisy bar, and a new bar after each failure."""
    noise = StableSparseVector(1.0, DELTA, 50, 1_000).stage_noise
    source = SeededNoise(8)
    true = np.clip(np.random.default_rng(3).normal(1_050, 230, 48), 0, None).astype(np.int64)
    true[17], true[38] = 560, 0
    noisy = noise.draw_noisy(true, source)
    bar, bars = noise.draw_bar(source), []
    for value in noisy:
        bars.append(bar)
        if value <= bar:
            bar = noise.draw_bar(source)
    passed = noisy > np.array(bars)
    places = np.arange(1, noisy.size + 1)
    chart = Chart(
        "Stages of a run: above the noisy bar is free, below it costs a stage",
        Axis("query, in the order asked", 0, noisy.size + 1),
        Axis("distance to instability, in teachers", -400, 2_400),
        "Dots above a stepped line are answered; squares below it are declined, and after each the line jumps.",
        "top left",
    )
    chart.line(np.arange(noisy.size + 1) + 0.5, [*bars, bars[-1]], "noisy bar w − ρ (secret)", 4, marks=0, stairs=True)
    chart.points(places[passed], noisy[passed], "noisy distance, answered", 0)
    chart.points(places[~passed], noisy[~passed], "noisy distance, declined (⊥): a stage is spent", 1)
    chart.rule(y=noise.threshold, dash="1 3")
    chart.words(1, noise.threshold, f"w = {noise.threshold:g}", move=(0, -6))
    chart.words(39, float(noisy[38]), "a query of distance 0", anchor="end", move=(-10, 5))
    return chart


def soft_label() -> Chart:
    """Scores on a border of the first partition, inside a bin of the second."""
    rng = np.random.default_rng(5)
    scores = np.clip(rng.normal(0.502, 0.016, 1_000), 0, 1)
    bins = 10
    first, _ = np.histogram(scores, np.arange(bins + 1) / bins)
    second, _ = np.histogram(scores, np.arange(bins) / bins + 0.5 / bins)
    chart = Chart(
        "1,000 scores near 0.5, counted in two partitions (B = 10)",
        Axis("score", 0.2, 0.8),
        Axis("scores in the bin", 0, 1_100),
        "In the first partition two bins hold about half each. In the second, shifted by half a bin, one bin holds "
        "nearly all.",
        "top right",
    )
    chart.bars(np.arange(bins + 1) / bins, first)
    chart.line((np.arange(bins) + 0.5) / bins, [*second, 0], "second partition: stable", 1, marks=0, stairs=True)
    chart.words(0.45, first[4], f"{first[4]}", anchor="middle", move=(-20, -8))
    chart.words(0.55, first[5], f"{first[5]}", anchor="middle", move=(20, -8))
    chart.words(0.5, second[4], f"{second[4]}", anchor="middle", move=(0, -8))
    chart.words(0.39, 250, "bars, the first partition:", anchor="end")
    chart.words(0.39, 190, "a near tie", anchor="end")
    return chart


def choice() -> Chart:
    """How far below the best class the chosen one is, on average."""
    scores = np.array(DIVIDED_VOTES, dtype=float)
    prices = np.geomspace(0.01, 1, 40)
    chart = Chart(
        "How far below the best class the chosen one is",
        Axis("ε of one choice (log scale)", 0.01, 1, log=True, ticks=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)),
        Axis("expected shortfall, in votes (log scale)", 0.01, 100, log=True),
        "Two falling lines; permute-and-flip is everywhere below the exponential mechanism, up to a factor of two.",
        "bottom left",
    )
    gaps = scores.max() - scores
    for style, (name, law) in enumerate((("exponential mechanism", exponential_law), ("permute-and-flip", flip_law))):
        chart.line(prices, [float(law(scores, eps) @ gaps) for eps in prices], name, style)
    return chart


def private_prediction() -> Chart:
    """The error of one private label, at the number of hypotheses that the lemma asks for."""
    eps = 1.0
    targets = np.geomspace(0.01, 0.4, 40)
    chart = Chart(
        f"One label from r = ⌈6 log(4/α)/ε⌉ hypotheses (ε = {eps:g}, two classes)",
        Axis("α (log scale); each hypothesis errs with probability α/4", 0.01, 0.5, log=True,
             ticks=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5)),
        Axis("probability of a wrong label (log scale)", 1e-10, 1, log=True),
        "The lemma's bound is the diagonal. The exact error for independent hypotheses is far below it, lower for "
        "permute-and-flip than for the exponential mechanism.",
        "bottom right",
    )  # fmt: skip
    chart.line(targets, targets, "bound of the lemma: α", 4, marks=0)
    for style, (name, law) in enumerate((("exponential mechanism", exponential_law), ("permute-and-flip", flip_law))):
        wrong = []
        for alpha in targets:
            r = PrivatePrediction(eps).n_hypotheses(float(alpha))
            votes = np.arange(r + 1)
            errs = [law(np.array([r - k, k], dtype=float), eps)[1] for k in votes]
            wrong.append(float(binom.pmf(votes, r, alpha / 4) @ errs))
        chart.line(targets, wrong, name, style)
    return chart


def noisy_sum() -> Chart:
    """How well a mean is known from its noisy sum."""
    contributors = np.geomspace(30, 100_000, 30)
    chart = Chart(
        "How well a mean is known from its noisy sum",
        Axis("contributors: teachers or units (log scale)", 30, 100_000, log=True),
        Axis("half-width of a 95 % interval of the mean (log scale)", 1e-5, 1, log=True),
        "Three falling lines, one for each price: ten times as many contributors, or ten times the price, is a tenth "
        "of the width.",
        "bottom left",
    )
    for style, eps in enumerate((0.05, 0.2, 1.0)):
        width = NoisySum.costing(eps).reach(0.05) / 1_000
        chart.line(contributors, width / contributors, f"ε = {eps:g}", style)
    return chart


def data_dependent_prices() -> Chart:
    """What one query costs on these votes, beside what it costs on the worst."""
    order, sigma, threshold, wide = 16.0, 40.0, 200, 150.0
    top = np.arange(60, 251, 2)
    votes = np.stack([_spread(int(n), 250, 10) for n in top])
    chart = Chart(
        f"What one query costs: Rényi divergence at order {order:g}",
        Axis("votes for the plurality class, of 250 teachers (the rest spread over 9)", 60, 250),
        Axis("divergence, in nats (log scale)", 1e-7, 0.1, log=True),
        "The cost of the answer falls from its worst case by many orders of magnitude as the teachers agree; that of "
        "the threshold test stays near its worst case.",
        "bottom left",
    )
    answer = data_dependent.gnmax_rdp(votes, sigma, [order], noise="discrete").reveal()[:, 0]
    test = data_dependent.threshold_rdp(votes, threshold, wide, [order], noise="discrete").reveal()[:, 0]
    chart.line(top, np.full(top.size, order / sigma**2), "answer, σ₂ = 40: worst case", 4, marks=0)
    chart.line(top, answer, "answer, on these votes", 0)
    chart.line(top, np.full(top.size, order / (2 * wide**2)), "test, σ₁ = 150: worst case", 3, marks=3)
    chart.line(top, test, "test, on these votes", 1)
    return chart


def composition() -> Chart:
    """One mixed ledger, read by two rules and by the sum of its parts."""
    parts = mixed_ledger()
    whole = Composed(parts)
    grid = np.linspace(0.0, 2.0, 41)
    taken_apart = collect(whole)
    chart = Chart(
        "One mixed ledger, priced as a whole and part by part",
        Axis("ε", 0, 2),
        Axis("δ (log scale)", 1e-7, 1, log=True),
        "Two falling lines, the loss distribution below the Rényi curve; the sum of the parts is a point to the right "
        "of both. Both lines end level, at the probability that the sparse vector's tail adds.",
        "top right",
    )
    renyi = [min(1.0, delta_of_curve(taken_apart.curve, float(e))[0] + taken_apart.infinite) for e in grid]
    chart.line(grid, renyi, "Rényi curve", 1)
    chart.line(grid, [delta(whole, float(e)) for e in grid], "loss distribution: what is charged", 0)
    share = DELTA / len(parts)
    chart.points([sum(epsilon(part, share) for part in parts)], [DELTA], "sum of four parts at δ/4 each", 3)
    chart.rule(y=DELTA)
    chart.words(0.03, DELTA, f"δ = {DELTA_SAYS}", move=(0, -6))
    chart.words(1.97, 1e-6, "the sparse vector's δ_tail stays, at any ε", anchor="end", move=(0, 22))
    return chart


def calibration() -> Chart:
    """How much more noise the other rules ask for."""
    budgets = np.geomspace(0.1, 10, 40)
    exact = np.array([1 / mu_of_gaussian(float(e), DELTA) for e in budgets])
    renyi = np.array([1 / sqrt(2 * _rho_for(float(e))) for e in budgets])
    spread = 2 * log(1 / DELTA)
    paper = (sqrt(spread) + np.sqrt(spread + 2 * budgets)) / (2 * budgets)
    chart = Chart(
        f"Noise that other rules ask for, relative to the exact one (δ = {DELTA_SAYS})",
        Axis("ε of the whole schedule (log scale)", 0.1, 10, log=True, ticks=(0.1, 0.2, 0.5, 1, 2, 5, 10)),
        Axis("σ divided by the exact σ", 0.7, 1.8, ticks=(0.8, 1.0, 1.2, 1.4, 1.6, 1.8)),
        "The printed formula asks for 56 percent more noise than needed at ε = 0.1 and for 14 percent more at ε = 10, "
        "the Rényi conversion for 11 and 6 percent more. Used unscaled for a histogram, the printed formula falls "
        "below 1, where it is not private.",
        "top right",
    )
    chart.line(budgets, paper / exact, '"paper" (LZCW21, scaled by Δ)', 1)
    chart.line(budgets, renyi / exact, "Rényi, best order", 2)
    chart.line(budgets, paper / exact / sqrt(2), "as printed (Δ = 1), used for a histogram", 3)
    chart.rule(y=1.0, dash="8 3")
    chart.words(0.12, 0.9, "below this line: not (ε, δ)-private")
    return chart


def mixed_ledger() -> tuple[Event, ...]:
    """Labels, a run of sparse vector, a noisy evaluation and a tuning step."""
    return (
        Repeated(DiscreteGaussian(300.0, sqrt(2)), 1_000),
        StableSparseVector(0.5, 1e-6, 10, 10_000).event,
        DiscreteLaplace(20.0, 1.0),
        PureDP(0.1),
    )


def exponential_law(scores: np.ndarray, eps: float) -> np.ndarray:
    """Probability of each candidate under the exponential mechanism, sensitivity 1."""
    weights = np.exp(eps * (scores - scores.max()) / 2)
    return weights / weights.sum()


def flip_law(scores: np.ndarray, eps: float) -> np.ndarray:
    """Probability of each candidate under permute-and-flip, sensitivity 1: summed over how many other coins say so."""
    coins = np.exp(eps * (scores - scores.max()) / 2)
    law = np.empty(coins.size)
    for h, coin in enumerate(coins):
        others = np.ones(1)
        for p in np.delete(coins, h):
            others = np.convolve(others, [1 - p, p])
        law[h] = coin * float(others @ (1 / np.arange(1, others.size + 1)))
    return law


def _discrete_gaussian_tail(sigma: float, least: int) -> float:
    """P(Z ≥ least)."""
    reach = int(14 * sigma) + abs(least)
    z = np.arange(-reach, reach + 1, dtype=float)
    mass = np.exp(-(z * z) / (2 * sigma * sigma))
    return float(mass[z >= least].sum() / mass.sum())


def _gaussian_distance(sigma: float) -> int:
    """The least distance to instability at which a binary answer is right with probability 0.95."""
    low, high = 0, int(3 * sigma) + 2  # a half-lead h answers 1 where Z > −h; the distance is h − 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _discrete_gaussian_tail(sigma, 1 - middle) < 0.95 else (low, middle)
    return high - 1


def _spread(top: int, teachers: int, classes: int) -> np.ndarray:
    rest, more = divmod(teachers - top, classes - 1)
    return np.array([top, *(rest + (c < more) for c in range(classes - 1))])


def _rho_for(eps: float) -> float:
    low, high = 0.0, eps
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of_zcdp(middle, DELTA) <= eps else (low, middle)
    return low


FIGURES: dict[str, Callable[[], Chart]] = {
    "noise-on-votes": noise_on_votes,
    "laplace-noisy-max": laplace_noisy_max,
    "confident-and-interactive-noisy-max": confident_and_interactive,
    "distance-to-instability": distance_to_instability,
    "sparse-vector-stage": sparse_vector_stage,
    "sparse-vector": sparse_vector,
    "soft-label": soft_label,
    "exponential-and-permute-and-flip": choice,
    "private-prediction": private_prediction,
    "noisy-sum": noisy_sum,
    "data-dependent": data_dependent_prices,
    "composition": composition,
    "calibration": calibration,
    **RATES,
}


def draw(names: Sequence[str] = tuple(FIGURES)) -> None:
    """Write the figures."""
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        (FOLDER / f"{name}.svg").write_text(FIGURES[name]().written(), encoding="utf-8")


if __name__ == "__main__":
    draw()
