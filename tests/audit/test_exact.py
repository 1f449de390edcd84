"""The exact audit: against brute force, against the reference points of the literature, and against the accountant."""

from dataclasses import dataclass
from itertools import pairwise, product
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.slow_prices import approx_pair, laplace_pair

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
from quorate.accounting import delta as accounted_delta
from quorate.audit import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GaussianClaim,
    GeometricLaw,
    Law,
    Negated,
    NoNoise,
    PriceFault,
    PureClaim,
    SparseVectorForm,
    claim_on,
    exact_delta,
    failure_probability,
    hockey_stick,
    price_faults,
    stability_test_delta,
    threshold_test_delta,
)
from quorate.audit.exact_sparse_vector import form_of_stages
from quorate.errors import InvalidParameter
from quorate.mechanisms import StableSparseVector

LAWS = [
    DiscreteLaplaceLaw(0.3), DiscreteLaplaceLaw(2.5), GeometricLaw(0.4), GeometricLaw(3.0),
    DiscreteGaussianLaw(0.4), DiscreteGaussianLaw(3.0), NoNoise(), Negated(GeometricLaw(3.0)),
]  # fmt: skip


def weight(law: Law, x: int) -> float:
    """The definition, not normalised."""
    if isinstance(law, Negated):
        return weight(law.law, -x)
    if isinstance(law, DiscreteLaplaceLaw):
        return exp(-abs(x) / law.scale)
    if isinstance(law, GeometricLaw):
        return exp(-x / law.scale) if x >= 0 else 0.0
    if isinstance(law, DiscreteGaussianLaw):
        return exp(-x * x / (2 * law.sigma**2))
    return float(x == 0)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_law_agrees_with_its_definition_summed_by_hand(law):
    xs = np.arange(-150, 151)
    weights = np.array([weight(law, int(x)) for x in xs])
    p = weights / weights.sum()
    at = np.arange(-20, 21)
    # Beyond some laws' range a probability is 0, whose logarithm is minus infinity: compared as probabilities.
    assert np.allclose(np.exp(law.log_pmf(at)), [p[xs == x].sum() for x in at], rtol=1e-12, atol=1e-300)
    assert np.allclose(np.exp(law.log_above(at)), [p[xs > x].sum() for x in at], rtol=1e-9, atol=1e-300)
    assert np.allclose(np.exp(law.log_at_most(at)), [p[xs <= x].sum() for x in at], rtol=1e-9, atol=1e-300)
    assert np.exp(law.log_pmf(law.support())).sum() == pytest.approx(1, abs=1e-12)


def test_tails_are_exact_where_floats_would_be_zero():
    assert DiscreteLaplaceLaw(2.0).log_above(3_000) == pytest.approx(-3_001 / 2 - log(1 + exp(-0.5)), rel=1e-12)
    assert GeometricLaw(2.0).log_above(3_000) == pytest.approx(-3_001 / 2, rel=1e-12)


def brute_force(form: SparseVectorForm, values: list[int], answers: list[bool]) -> float:
    """Sum over the threshold noise and every query noise, one by one; no reset, no tails in closed form."""
    noise = range(-60, 61)
    rho = {r: weight(form.threshold_noise, r) for r in noise}
    nu = {n: weight(form.query_noise, n) for n in noise}
    norm_r, norm_n = sum(rho.values()), sum(nu.values())
    total = 0.0
    for r, p in rho.items():
        for value, answer in zip(values, answers, strict=True):
            p *= sum(q for n, q in nu.items() if (value + n > form.threshold + r) == answer) / norm_n
        total += p / norm_r
    return total


@pytest.mark.heavy
@settings(max_examples=40, deadline=None)
@given(
    stream=st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=4),
    threshold=st.integers(-2, 2),
    laws=st.sampled_from(list(product(LAWS[1:3], LAWS[1:4]))),
)
def test_the_sum_over_the_threshold_noise_agrees_with_brute_force(stream, threshold, laws):
    form = SparseVectorForm(
        threshold_noise=laws[0], query_noise=laws[1], costly="above", threshold=threshold, cutoff=None
    )
    values, answers = [v for v, _ in stream], [a for _, a in stream]
    # Geometric and Laplace tails beyond 60 are cut by the brute force: below e^-20.
    assert np.exp(form.log_probability(values, answers)) == pytest.approx(brute_force(form, values, answers), abs=1e-8)


def laplace_form(threshold_scale: float, query_scale: float, **options: Any) -> SparseVectorForm:
    laws = {"threshold_noise": DiscreteLaplaceLaw(threshold_scale), "query_noise": DiscreteLaplaceLaw(query_scale)}
    return SparseVectorForm(**{"costly": "above", **laws, **options})


def test_all_answers_to_a_stream_sum_to_one_also_with_resets():
    for resets in (False, True):
        form = laplace_form(2.0, 4.0, cutoff=2, resets=resets)
        values = [0, 3, -2, 1]
        total = 0.0
        for answers in product([False, True], repeat=4):
            paid = [place for place, answer in enumerate(answers) if answer]
            end = paid[1] + 1 if len(paid) > 1 else 4
            if not any(answers[end:]):  # each pattern up to its end, once
                total += exp(form.log_probability(values[:end], answers[:end]))
        assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_the_correct_sparse_vector_reaches_its_claim_and_the_missing_factor_two_one_and_a_half_of_it(epsilon):
    scale = 2 / epsilon
    assert laplace_form(scale, 2 * scale).worst_loss().loss == pytest.approx(epsilon, abs=1e-6)
    assert laplace_form(scale, scale).worst_loss().loss == pytest.approx(1.5 * epsilon, abs=1e-6)


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("cutoff", [2, 1, 5])
def test_lyu_su_li_algorithm_4_costs_one_plus_six_c_over_four_times_its_claim(cutoff):
    epsilon = 1.0
    found = laplace_form(4 / epsilon, 4 / (3 * epsilon), cutoff=cutoff).worst_loss()
    assert found.loss == pytest.approx((1 + 6 * cutoff) / 4 * epsilon, abs=1e-6)


@pytest.mark.heavy
def test_lyu_su_li_algorithm_1_keeps_its_claim_at_any_cutoff():
    for cutoff in (2, 3):
        found = laplace_form(2.0, 4.0 * cutoff, cutoff=cutoff).worst_loss(free=(0, 1, 8, 40))
        assert found.loss <= 1 + 1e-9
        assert found.loss > 0.95


@pytest.mark.heavy
def test_a_reset_threshold_adds_up_its_stages():
    assert laplace_form(4.0, 8.0, cutoff=3, resets=True).worst_loss().loss == pytest.approx(1.5, abs=1e-6)
    assert laplace_form(4.0, 4.0, cutoff=3, resets=True).worst_loss().loss == pytest.approx(2.25, abs=1e-6)


def test_forms_without_a_cutoff_or_without_noise_cost_more_than_any_claim():
    losses = [
        laplace_form(2.0, 2.0, cutoff=None).loss([0] * n + [0] * n, [1] * n + [-1] * n, [False] * n + [True] * n)
        for n in (2, 8, 32)
    ]
    assert losses[0] < losses[1] < losses[2]
    assert losses[2] > 5
    no_query_noise = laplace_form(2.0, 2.0, query_noise=NoNoise(), cutoff=None)
    assert no_query_noise.loss([0, 1], [1, 0], [False, True]) == np.inf


def test_telling_the_noisy_value_costs_more_the_longer_the_stream():
    form = laplace_form(2.0, 2.0)
    losses = [form.loss([0] * n + [0], [1] * n + [-1], [False] * n + [0]) for n in (1, 4, 16, 64)]
    assert losses[0] < losses[1] < losses[2] < losses[3]
    assert losses[3] > 10


def one_sided(threshold_scale: float, query_scale: float, threshold: int) -> SparseVectorForm:
    return SparseVectorForm(
        threshold_noise=Negated(GeometricLaw(threshold_scale)), query_noise=Negated(GeometricLaw(query_scale)),
        costly="below", threshold=threshold,
    )  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("scales", [(2.0, 4.0), (1.0, 7.0), (5.0, 3.0)])
def test_the_one_sided_form_reaches_its_claim_and_never_passes_it(scales):
    claim = 1 / scales[0] + 2 / scales[1]
    found = one_sided(*scales, threshold=400).worst_loss(free=(0, 1, 2, 4))
    assert 0.999 * claim <= found.loss <= claim + 1e-9


@pytest.mark.heavy
def test_no_random_stream_passes_the_one_sided_claim():
    rng = np.random.default_rng(6)
    for _ in range(600):
        scales = rng.uniform(0.3, 5, 2)
        form = one_sided(*scales, threshold=int(rng.integers(0, 12)))
        n = int(rng.integers(1, 7))
        values = rng.integers(0, 16, n)
        moved = np.maximum(0, values + rng.integers(-1, 2, n))
        answers = [True] * (n - 1) + [bool(rng.integers(0, 2))]
        loss = form.loss(values.tolist(), moved.tolist(), answers)
        if np.isfinite(form.log_probability(values.tolist(), answers)):
            assert loss <= 1 / scales[0] + 2 / scales[1] + 1e-9


@pytest.mark.heavy
def test_that_test_catches_a_query_scale_that_forgets_its_factor_two():
    found = one_sided(2.0, 2.0, threshold=400).worst_loss(free=(0, 1, 4))
    assert found.loss > 1 / 2.0 + 1 / 2.0 + 0.4


@given(
    threshold_scale=st.floats(0.3, 8),
    query_scale=st.floats(0.3, 8),
    threshold=st.integers(0, 30),
    dist=st.integers(0, 60),
)
def test_the_probability_of_passing_has_the_closed_form_of_the_tight_calibration(
    threshold_scale, query_scale, threshold, dist
):
    form = one_sided(threshold_scale, query_scale, threshold)
    a, b = exp(-1 / threshold_scale), exp(-1 / query_scale)
    if dist < threshold:
        closed = a ** (threshold - dist + 1) * (1 - b) / (1 - a * b)
    else:
        closed = 1 - exp(-(dist - threshold) / query_scale) * (1 - a) / (1 - a * b)
    assert failure_probability(form, dist) == pytest.approx(closed, rel=1e-9, abs=1e-12)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("mechanism", "free"),
    [
        (StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=50), (0, 1, 2, 4)),
        (StableSparseVector(epsilon=6.0, delta=0.1, cutoff=1, n_queries=2, calibration="btt18"), (0, 4, 8)),
        (StableSparseVector(epsilon=6.0, delta=0.1, cutoff=1, n_queries=2, calibration="lzcw21"), (0, 4, 8)),
    ],
    ids=["tight", "btt18", "lzcw21"],
)
def test_the_shipped_calibrations_price_a_stage_as_the_exact_sum_does(mechanism, free):
    exact = form_of_stages(mechanism).worst_loss(free=free).loss / mechanism.cutoff
    assert 0.999 * mechanism.stage_epsilon <= exact <= mechanism.stage_epsilon + 1e-9


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("sigma", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5])
def test_the_accountant_prices_the_binary_gaussian_at_the_exact_curve_and_never_below(sigma, epsilon):
    exact = threshold_test_delta(DiscreteGaussianLaw(sigma), epsilon)
    priced = accounted_delta(DiscreteGaussian(sigma, 1.0), epsilon)
    assert priced >= exact
    assert priced <= exact * (1 + 1e-6) + 1e-13


def test_that_test_catches_a_sensitivity_that_was_forgotten():
    exact = threshold_test_delta(DiscreteGaussianLaw(4.0 / 2), 0.5)
    assert accounted_delta(DiscreteGaussian(4.0, 1.0), 0.5) < exact


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.2, 1e-3), (3.0, 1e-8)])
def test_the_stability_test_keeps_its_delta_exactly(epsilon, delta):
    found = stability_test_delta(DiscreteLaplaceLaw(1 / epsilon), log(1 / delta) / epsilon, epsilon)
    assert 0 < found <= delta


def test_the_raw_margin_does_not():
    """BTT18 prints dist as the margin minus one: it moves by 2."""
    law, line = DiscreteLaplaceLaw(1.0), int(log(1e5))
    passes = [(exp(law.log_above(line - margin)), exp(law.log_at_most(line - margin))) for margin in range(40)]
    pairs = list(zip(passes, passes[2:], strict=False))
    assert exact_delta(pairs, 1.0) > 1e-3
    assert exact_delta(pairwise(passes), 1.0) < 1e-12


@settings(max_examples=50, deadline=None)
@given(epsilon=st.floats(0, 3), p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99))
def test_a_hockey_stick_is_the_largest_excess_of_any_event(epsilon, p, q):
    here, there = [p, 1 - p], [q, 1 - q]
    events = [[], [0], [1], [0, 1]]
    worst = max(sum(here[o] for o in event) - exp(epsilon) * sum(there[o] for o in event) for event in events)
    assert hockey_stick(here, there, epsilon) == pytest.approx(worst, abs=1e-12)


def test_wrong_arguments_are_refused():
    form = laplace_form(2.0, 4.0)
    for act, said in (
        (lambda: form.log_probability([1, 2], [True]), "one for each"),
        (lambda: form.log_probability([1, 2], [True, True]), "must end"),
        (lambda: form.loss([1], [3], [True]), "no value more than 1"),
        (lambda: laplace_form(2.0, 4.0, costly="both"), "costly"),
        (lambda: laplace_form(2.0, 4.0, cutoff=0), "cutoff"),
        (lambda: hockey_stick([1.0], [0.5, 0.5], 1.0), "shape"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            act()
    for law in (DiscreteLaplaceLaw, GeometricLaw, DiscreteGaussianLaw):
        with pytest.raises(InvalidParameter):
            law(float("nan"))


def gaussian(sigma: float) -> tuple[Any, Any]:
    """Of one law and the law beside it, none of which is cut where the other one is not."""
    z = np.arange(-int(14 * sigma), int(14 * sigma) + 2)
    here, there = np.exp(-(z**2) / (2 * sigma**2)), np.exp(-((z - 1) ** 2) / (2 * sigma**2))
    return here / here.sum(), there / there.sum()


LAPLACE, GAUSSIAN, FAILING = ([pair] for pair in (laplace_pair(3.0), gaussian(3.0), approx_pair(0.5, 1e-3)))
NONE, ALL = set[str](), {"delta", "epsilon", "rdp", "zcdp"}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("event", "outcomes", "rules"),
    [
        (DiscreteLaplace(3.0, 1.0), LAPLACE, NONE),
        (DiscreteGaussian(3.0, 1.0), GAUSSIAN, NONE),
        (ApproxDP(0.5, 1e-3), FAILING, NONE),
        (Composed((PureDP(0.2), DiscreteLaplace(3.0, 1.0))), LAPLACE, NONE),
        (DiscreteLaplace(3.1, 1.0), LAPLACE, ALL),
        (DiscreteGaussian(3.1, 1.0), GAUSSIAN, ALL),
        (ApproxDP(0.5, 0.9e-3), FAILING, {"delta", "epsilon"}),
        (PureDP(0.5), FAILING, ALL),
    ],
)
def test_no_rule_of_quorates_is_below_the_sum_and_a_price_that_is_a_little_too_low_is_found(event, outcomes, rules):
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


def test_what_an_audit_tests_of_an_owners_event_is_what_it_is_priced_as():
    """A trade-off curve, or pure privacy, which are sharper to test than their (ε, δ)."""
    known = Repeated(DiscreteGaussian(40.0, 1.0), 2)
    assert claim_on(OwnGaussian(40.0), 1e-5) == claim_on(known, 1e-5)
    assert isinstance(claim_on(OwnGaussian(40.0), 1e-5), GaussianClaim)
    assert claim_on(Repeated(OwnGaussian(40.0), 3), 1e-5) == claim_on(Repeated(known, 3), 1e-5)
    assert claim_on(OwnCoin(0.5), 1e-5) == PureClaim(0.5)


@pytest.mark.heavy
def test_two_releases_are_looked_at_beside_one():
    """A price that is right for one release and forgets the second."""
    two = [(np.outer(p, p).ravel(), np.outer(q, q).ravel()) for p, q in LAPLACE]  # of ε = 1/3 each
    assert price_faults(PureDP(1.0), LAPLACE) == ()
    assert price_faults(PureDP(1 / 3), two)
    assert price_faults(Repeated(PureDP(1 / 3 + 1e-12), 2), two) == ()
