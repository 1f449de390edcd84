"""Sparse vector: the proof's claims by exact summation, the papers' numbers, and the runs themselves."""

import copy
import pickle
from math import exp, log, sqrt

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import ApproxDP, Composed, PureDP, Repeated, delta, epsilon
from quorate.errors import InvalidParameter, MechanismClosed, SecretRefused
from quorate.mechanisms import DECLINED, StableSparseVector
from quorate.mechanisms.stage_noise import StageNoise, btt18, lzcw21, tight
from quorate.noise import OSNoise, SeededNoise

CALIBRATIONS = ["tight", "lzcw21", "btt18"]


def sparse_vector(cutoff=3, n_queries=200, calibration="tight", epsilon=1.0, delta=1e-5):
    return StableSparseVector(epsilon, delta, cutoff, n_queries, calibration)


class Stage:
    """A stage as the papers define it: laws of the two noises, and P(pattern) summed over the threshold's."""

    def __init__(self, exact, noise, *, query_factor=1.0):
        self.w = int(np.floor(noise.threshold))
        law = exact.geometric if noise.one_sided else exact.laplace
        (rho, self.p), (nu, q) = law(noise.threshold_scale), law(noise.query_scale * query_factor)
        self.bars = self.w - rho
        if noise.one_sided:
            nu = -nu
        order = np.argsort(nu)
        self.nu, self.above = nu[order], np.concatenate([np.cumsum(q[order][::-1])[::-1], [0.0]])

    def passes(self, distance):
        """P(this query passes), for every value of the threshold noise."""
        return self.above[np.searchsorted(self.nu, self.bars - distance, side="right")]

    def patterns(self, distances):
        """P(the first failure is query 1, 2, …), and P(none)."""
        alive, result = self.p, []
        for d in distances:
            passed = self.passes(d)
            result.append((alive * (1 - passed)).sum())
            alive = alive * passed
        return np.array([*result, alive.sum()])


def worst_log_ratio(stage, n_streams, rng, length=12):
    worst = 0.0
    for k in range(n_streams):
        first = rng.integers(0, stage.w + 60, rng.integers(1, length + 1))
        if k % 2:  # all pass on one side for as long as it takes, then one fails
            first[:] = stage.w + 50
            first[-1] = 0 if k % 4 == 1 else 3
        moves = rng.integers(-1, 2, first.size)
        if k % 3 == 0:
            moves[:], moves[-1] = -1, 1
        second = np.maximum(0, first + moves)
        a, b = stage.patterns(first), stage.patterns(second)
        kept = (a > 1e-13) & (b > 1e-13)  # below, float sums of cut tails say nothing
        worst = max(worst, np.abs(np.log(a[kept] / b[kept])).max())
    return worst


@pytest.mark.heavy
def test_over_three_thousand_streams_a_tight_stage_never_loses_more_than_epsilon_zero_and_reaches_it(exact):
    mechanism = sparse_vector(cutoff=4, epsilon=6.0, delta=1e-3)
    worst = worst_log_ratio(Stage(exact, mechanism.stage_noise), 3000, np.random.default_rng(1))

    assert worst <= mechanism.stage_epsilon * (1 + 1e-6)
    assert worst >= 0.999 * mechanism.stage_epsilon


@pytest.mark.heavy
@pytest.mark.parametrize("paper", [btt18, lzcw21])
def test_a_paper_stage_never_loses_more_than_epsilon_zero(exact, paper):
    noise = paper(20.0, 1e-2, 2, 10)
    worst = worst_log_ratio(Stage(exact, noise), 600, np.random.default_rng(2))

    assert 0.9 * noise.epsilon < worst <= noise.epsilon * (1 + 1e-6)


@pytest.mark.heavy
def test_that_summation_catches_query_noise_of_half_the_scale(exact):
    noise = sparse_vector(cutoff=4, epsilon=6.0, delta=1e-3).stage_noise
    worst = worst_log_ratio(Stage(exact, noise, query_factor=0.5), 400, np.random.default_rng(3))

    assert worst > 1.2 * noise.epsilon


def test_that_summation_catches_a_threshold_without_noise(exact):
    noise = sparse_vector(cutoff=4, epsilon=6.0, delta=1e-3).stage_noise
    first, second = np.full(12, noise.threshold - 3), np.full(12, noise.threshold - 4)

    def loss(stage):
        return np.log(stage.patterns(first)[-1] / stage.patterns(second)[-1])

    stage = Stage(exact, noise)
    assert loss(stage) <= noise.epsilon
    stage.bars, stage.p = np.array([stage.w - 5]), np.array([1.0])
    assert loss(stage) > 2 * noise.epsilon


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_tail_bounds_the_answer_to_an_unstable_query_however_long_the_stage(exact, calibration):
    """P(a query of distance 0 passes in a stage), where passes before it favour the stages with a low threshold."""
    cutoff = 5
    noise = sparse_vector(cutoff=cutoff, calibration=calibration, epsilon=8.0, delta=0.05, n_queries=1000).stage_noise
    stage = Stage(exact, noise)
    allowed = noise.tail(cutoff) / cutoff
    for before in ([], [stage.w], [stage.w - 3] * 10, [stage.w // 2] * 200, [0] * 50, [1] * 300):
        alive, bad = stage.p, 0.0
        for d in before:
            if d == 0:  # passes: bad; fails: the stage is over
                bad += (alive * stage.passes(0)).sum()
                alive = alive * 0
            else:
                alive = alive * stage.passes(d)
        bad += (alive * stage.passes(0)).sum()
        assert bad <= allowed * (1 + 1e-6) + 1e-15
    fresh = (stage.p * stage.passes(0)).sum()
    assert fresh == pytest.approx(allowed, rel=1e-6)  # the bound is the fresh stage's probability itself


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("cutoff", "dist"), [(10, 343), (50, 1018), (200, 2192)])
@pytest.mark.parametrize("n_queries", [1447, 10**9])
def test_the_distance_that_passes_at_epsilon_one(cutoff, dist, n_queries):
    mechanism = sparse_vector(cutoff=cutoff, n_queries=n_queries)

    assert dist - 3 <= mechanism.passing_dist() <= dist
    assert mechanism.passing_dist() == mechanism.passing_dist(probability=0.95)


@pytest.mark.parametrize(("cutoff", "threshold"), [(10, 1864), (50, 4173), (200, 8388)])
def test_the_papers_threshold_alone(cutoff, threshold):
    assert round(sparse_vector(cutoff=cutoff, n_queries=1447, calibration="lzcw21").threshold) == threshold


def test_the_papers_formulas():
    mechanism = sparse_vector(cutoff=7, n_queries=500, calibration="btt18", epsilon=0.7, delta=1e-6)
    scale = sqrt(32 * 7 * log(2 / 1e-6)) / 0.7
    assert mechanism.stage_noise.threshold_scale == pytest.approx(scale)
    assert mechanism.stage_noise.query_scale == pytest.approx(2 * scale)
    assert mechanism.threshold == pytest.approx(2 * scale * log(2 * 500 / 1e-6))

    mechanism = sparse_vector(cutoff=7, n_queries=500, calibration="lzcw21", epsilon=0.7, delta=1e-6)
    scale = (sqrt(14 * (0.7 + log(2e6))) + sqrt(14 * log(2e6))) / 0.7
    assert mechanism.stage_noise.threshold_scale == pytest.approx(scale)
    assert mechanism.threshold == pytest.approx(3 * scale * log(2 * 507 / 1e-6))
    assert mechanism.stage_epsilon == pytest.approx(2 / scale)


@pytest.mark.heavy
@settings(max_examples=40, deadline=None)
@given(
    epsilon_=st.floats(0.05, 20),
    log_delta=st.floats(-30, -1),
    cutoff=st.integers(1, 300),
    calibration=st.sampled_from(CALIBRATIONS),
)
def test_a_run_is_within_the_epsilon_and_delta_that_were_asked_for(epsilon_, log_delta, cutoff, calibration):
    delta_ = exp(log_delta)
    mechanism = StableSparseVector(epsilon_, delta_, cutoff, max(500, cutoff), calibration)

    assert delta(mechanism.event, epsilon_) <= delta_
    assert epsilon(mechanism.event, delta_) <= epsilon_ * (1 + 1e-9)
    if calibration != "tight":
        assert mechanism.stage_noise.tail(cutoff) < delta_ / 2


def test_a_tight_run_leaves_hardly_anything_over():
    for cutoff in (1, 10, 200):
        mechanism = sparse_vector(cutoff=cutoff, n_queries=1000)
        assert epsilon(mechanism.event, 1e-5) > 0.99


def slow_passing_dist(stage, probability):
    d = 0
    while (stage.p * stage.passes(d)).sum() < probability:
        d += 1
    return d


@pytest.mark.heavy
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95, 0.999])
def test_the_passing_distance_is_that_of_a_search_through_exact_sums(exact, calibration, probability):
    mechanism = sparse_vector(cutoff=3, calibration=calibration, epsilon=8.0, delta=0.01)

    stage = Stage(exact, mechanism.stage_noise)

    assert mechanism.passing_dist(probability) == slow_passing_dist(stage, probability)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_probability_of_passing_is_the_exact_sum(exact, calibration):
    mechanism = sparse_vector(cutoff=3, calibration=calibration, epsilon=8.0, delta=0.01)
    stage = Stage(exact, mechanism.stage_noise)
    for distance in {0, 1, stage.w - 1, stage.w, stage.w + 1, 2 * stage.w}:
        assert mechanism.pass_probability(distance) == pytest.approx((stage.p * stage.passes(distance)).sum(), rel=1e-7)


@pytest.mark.heavy
def test_the_tight_search_finds_what_a_brute_search_finds(exact):
    """All thresholds, shares and ε₀ on a coarse grid of its own: none passes a smaller distance."""
    epsilon_, delta_, cutoff = 4.0, 1e-3, 5
    found = tight(epsilon_, delta_, cutoff)
    best = np.inf
    for stage_epsilon in np.linspace(epsilon_ / cutoff, 3 * epsilon_ / cutoff, 25):
        left = delta_ - delta(Repeated(PureDP(stage_epsilon), cutoff), epsilon_)
        if left <= 0:
            break
        for share in np.linspace(0.1, 0.9, 25):
            for w in range(120):
                noise = StageNoise(
                    threshold=w,
                    threshold_scale=1 / (share * stage_epsilon),
                    query_scale=2 / ((1 - share) * stage_epsilon),
                    one_sided=True,
                )
                if noise.tail(cutoff) <= left:
                    best = min(best, noise.passing_dist(0.95))
                    break

    assert found.passing_dist(0.95) <= best
    assert slow_passing_dist(Stage(exact, found), 0.95) == found.passing_dist(0.95)


def stream(distances):
    """Two-class counts with these distances, alternately for class 0 and class 1."""
    counts = np.array([[2 * d + 1, 0] for d in distances], dtype=np.int64)
    counts[1::2] = counts[1::2, ::-1]
    return counts


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_a_run_answers_what_is_stable_and_stops_at_the_cutoff(calibration):
    mechanism = sparse_vector(cutoff=2, n_queries=9, calibration=calibration)
    far = 10 * mechanism.passing_dist()

    answers = mechanism.release(stream([far, far, 0, far, far, 0, far, far, far]), OSNoise())

    assert answers.tolist() == [0, 1, DECLINED, 1, 0, DECLINED, DECLINED, DECLINED, DECLINED]
    assert answers.dtype == np.int64


def test_any_number_of_classes_will_do():
    mechanism = sparse_vector()
    counts = np.zeros((3, 1000), dtype=np.int64)
    counts[0, 999], counts[1, 7], counts[2, 0] = 10**6, 10**6, 10**6

    assert mechanism.release(counts, OSNoise()).tolist() == [999, 7, 0]


@pytest.mark.heavy
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_a_stream_and_its_steps_have_the_exact_law_of_a_stage(exact, calibration):
    mechanism = StableSparseVector(8.0, 0.05, 1, 4, calibration)
    stage = Stage(exact, mechanism.stage_noise)
    middle = mechanism.passing_dist(0.7)
    distances = [middle, middle + 3, middle - 1, middle]
    law, counts = stage.patterns(distances), stream(distances)

    noise, whole, by_steps = SeededNoise(5), [], []
    for _ in range(2500):
        answers = mechanism.release(counts, noise)
        whole.append(int((answers == DECLINED).argmax()) if (answers == DECLINED).any() else 4)
        state, passed = mechanism.init(noise), 0
        for row in counts:
            state, answer = mechanism.step(state, row, noise)
            if answer is None:
                break
            passed += 1
        by_steps.append(passed)

    for firsts in (whole, by_steps):
        assert exact.fit(np.array(firsts), law) > exact.FALSE_ALARM
    wrong = Stage(exact, mechanism.stage_noise, query_factor=0.5).patterns(distances)
    assert exact.fit(np.array(whole), wrong) < exact.FALSE_ALARM


@pytest.mark.heavy
def test_each_stage_draws_a_new_threshold(exact):
    """Two stages: the second's first failure has the law of a fresh one, and does not remember the first's."""
    mechanism = StableSparseVector(1.0, 0.05, 2, 2, "tight")
    middle = mechanism.passing_dist(0.5)
    noise, counts = SeededNoise(6), stream([middle, middle])
    answers = np.array([mechanism.release(counts, noise) for _ in range(12_000)]) == DECLINED
    fails = Stage(exact, mechanism.stage_noise).patterns([middle])[0]

    second_after_first = answers[answers[:, 0], 1].astype(int)
    assert exact.fit(second_after_first, np.array([1 - fails, fails])) > exact.FALSE_ALARM
    kept = Stage(exact, mechanism.stage_noise).passes(middle)
    p = Stage(exact, mechanism.stage_noise).p
    if_kept = (p * (1 - kept) ** 2).sum() / (p * (1 - kept)).sum()
    assert exact.fit(second_after_first, np.array([1 - if_kept, if_kept])) < exact.FALSE_ALARM


def test_steps_count_what_is_public_and_close_at_the_cutoff():
    mechanism, noise = sparse_vector(cutoff=2, n_queries=50), OSNoise()
    first = state = mechanism.init(noise)
    tie, far = np.array([5, 5]), np.array([0, 10**6])
    for row, told in ((far, (1, 0, 1, True)), (tie, (None, 1, 2, True)), (tie, (None, 2, 3, False))):
        before, (state, answer) = state, mechanism.step(state, row, noise)
        assert (answer, state.stages_spent, state.asked, state.open) == told
        assert state.noisy_threshold is not before.noisy_threshold or row is far
    assert (first.stages_spent, first.asked) == (0, 0)  # what a step was given stays as it was
    with pytest.raises(MechanismClosed):
        mechanism.step(state, far, noise)


def test_a_run_ends_after_its_number_of_queries():
    mechanism, noise, far = sparse_vector(cutoff=1, n_queries=2), OSNoise(), np.array([10**6, 0])
    state = mechanism.init(noise)
    for _ in range(2):
        state, answer = mechanism.step(state, far, noise)
        assert answer == 0
    with pytest.raises(MechanismClosed):
        mechanism.step(state, far, noise)
    with pytest.raises(InvalidParameter, match="at most n_queries=2 rows"):
        mechanism.release(stream([1, 2, 3]), noise)


def test_an_interruption_spends_the_stage():
    mechanism, noise = sparse_vector(cutoff=2, n_queries=10), OSNoise()
    state = mechanism.init(noise, stages_spent=1, asked=4)
    assert (state.stages_spent, state.asked, state.open) == (1, 4, True)
    state, answer = mechanism.step(state, np.array([5, 5]), noise)
    assert (answer, state.open) == (None, False)
    assert not mechanism.init(noise, stages_spent=2, asked=4).open
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(InvalidParameter):
            mechanism.init(noise, stages_spent=wrong)


def test_the_noisy_threshold_is_never_shown_stored_or_copied():
    state = sparse_vector().init(OSNoise())
    secret = str(state.noisy_threshold.reveal())

    assert repr(state) == "SparseVectorState(noisy_threshold=Secret(…), stages_spent=0, asked=0, open=True)"
    assert secret not in f"{state} {state!r}"
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused):
            copier(state) if copier is not copy.copy else copy.copy(state.noisy_threshold)


def test_no_rows_are_no_answers():
    assert sparse_vector().release(np.zeros((0, 2), dtype=np.int64), OSNoise()).shape == (0,)


def test_a_long_stream_is_scanned_across_its_blocks():
    mechanism = sparse_vector(cutoff=3, n_queries=20_000)
    distances = np.full(20_000, 10 * mechanism.passing_dist())
    distances[[4095, 4096, 15_000]] = 0
    answers = mechanism.release(stream(distances), OSNoise())

    assert np.flatnonzero(answers == DECLINED)[:3].tolist() == [4095, 4096, 15_000]
    assert (answers[:15_000] == DECLINED).sum() == 2
    assert (answers[15_000:] == DECLINED).all()


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_event_is_all_stages_and_the_tail(calibration):
    mechanism = sparse_vector(cutoff=4, calibration=calibration)
    stages, tail = Repeated(PureDP(mechanism.stage_epsilon), 4), ApproxDP(0.0, mechanism.stage_noise.tail(4))
    assert mechanism.event == Composed((stages, tail))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("probability", [0, 1, float("nan"), True, "0.5"])
def test_a_probability_is_inside_the_unit_interval(probability):
    with pytest.raises(InvalidParameter, match=r"^probability must be "):
        sparse_vector().passing_dist(probability)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("counts", [np.zeros((3, 2)), np.zeros(2, dtype=np.int64), np.full((3, 2), -7), None, [[1, 2]]])
def test_bad_counts_are_refused_without_a_count(counts):
    with pytest.raises(InvalidParameter, match=r"^counts must ") as refusal:
        sparse_vector().release(counts, OSNoise())
    assert "7" not in str(refusal.value)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("epsilon_", "delta_", "cutoff", "stage", "tail"),
    [  # as version 0.1 wrote them; the search meets an atom of the privacy loss in each
        (0.5, 1e-9, 5, 0.09999999999990906, 9.439396499911587e-10),
        (1.0, 1e-9, 10, 0.09999999999990905, 9.826787688620018e-10),
        (8.0, 1e-6, 5, 1.5999999999985453, 6.888445626249769e-07),
        (8.0, 1e-9, 5, 1.5999999999985444, 9.999951638792308e-10),
        (8.0, 1e-9, 10, 0.7999999999992726, 9.31544284331451e-10),
    ],
)
def test_the_same_settings_find_the_same_event_as_ever(epsilon_, delta_, cutoff, stage, tail):
    """A run is charged under its event: were the last digit another one, a run of before would be charged again."""
    event = StableSparseVector(epsilon=epsilon_, delta=delta_, cutoff=cutoff, n_queries=500).event
    assert event == Composed((Repeated(PureDP(stage), cutoff), ApproxDP(0.0, tail)))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("scale", [40.0, 3.7e4, 5e6, 2.0**37])
@pytest.mark.parametrize("excess", [0.0, 3.0, 25.0])
def test_the_tail_of_the_papers_noise_is_rounded_up_however_wide_it_is(scale, excess):
    """Against the convolution's closed form in fifty digits, which needs no partial fractions."""
    noise = StageNoise(
        threshold=excess * scale, threshold_scale=scale, query_scale=2 * scale, one_sided=False
    )  # fmt: skip
    with mp.workdps(60):
        a, b = mp.exp(-1 / mp.mpf(2 * scale)), mp.exp(-1 / mp.mpf(scale))
        norm = (1 - a) / (1 + a) * (1 - b) / (1 + b)
        # P(X + Y = j) of two discrete Laplaces, j >= 0: sums over the overlap and over the two sides of it
        k = int(excess * scale) + 1

        def upper(ratio, other):  # sum over j >= k of ratio^j / ((1 - other/ratio)(1 - other·ratio)), all geometric
            return ratio**k / (1 - ratio) * (1 - other**2) / ((1 - other / ratio) * (1 - other * ratio))

        truth = norm * (upper(a, b) + upper(b, a))
        assert truth <= mp.mpf(noise.tail(1)) <= truth * (1 + mp.mpf(10) ** -8)
