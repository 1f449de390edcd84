"""LabelBoost: the printed constants, the exact price of a whole run on tiny data, its law, and its planner."""

from dataclasses import replace
from itertools import combinations
from math import ceil, e, exp, floor, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.exact import (
    best_of_class,
    exponential,
    labelled,
    mixture,
    neighbouring,
    p_value,
    thresholds,
    unlabelled,
)
from tests.learners.exact_relabelling import Rows, boosted, price

from quorate.accounting import ApproxDP, PureDP
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import UNLABELLED, ExponentialLearner, GenericLearner, LabelBoost, PrivateLearner
from quorate.learners.amplification import (
    Price,
    bns15_claim_4_3,
    bns15_claim_4_5,
    with_replacement,
    without_replacement,
)
from quorate.learners.concepts import Thresholds
from quorate.learners.label_boost.constants import PaperConstants, TightConstants
from quorate.learners.label_boost.learner import BoostPlan
from quorate.learners.label_boost.schedule import (
    BoostSchedule,
    BoostTask,
    Round,
    bns15_lemma_4_1,
    price_of,
    relabelling,
    rows_to_generalise,
)
from quorate.learners.sanitizers import Tree
from quorate.learners.transformed_learner import BaseFit
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise
from quorate.theory import bns15_algorithm_3_accuracy

FALSE_ALARM = 1e-6
RUNS = 1_200  # of a learner that is compared with its law
NEAR = 1e-7
PARTING = ((0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 1))  # see test_amplification


def iterations(
    *sizes: tuple[int, int, int, int, float], left: int, drawn: int, before: tuple[int, int] | None = None
) -> BoostSchedule:
    """`sizes`: labelled rows, kept of them, rows taken, kept of them and ε₀; `before`: rows that are sampled first."""
    rounds = tuple(Round(**dict(zip(Round.__slots__, each, strict=True))) for each in sizes)
    first = rounds[0].labelled, sum(each.taken for each in rounds)
    labelled, unlabelled = before or first
    return BoostSchedule(
        labelled=labelled, unlabelled=unlabelled, first_labelled=first[0], first_unlabelled=first[1],
        rounds=rounds, kept=left, drawn=drawn,
    )  # fmt: skip


def task(n_base: int = 1000, *, epsilon: float = 1.0, delta: float = 1e-6, vc: int = 1, base: float = 1.0) -> BoostTask:
    return BoostTask(
        base=Price(base, delta / 50 * min(1.0, epsilon)), n_base=n_base, vc=vc, alpha=0.1, beta=0.1,
        target=Price(epsilon, delta), domain_size=2**16,
    )  # fmt: skip


def test_the_growth_rule_and_the_keep_rates_are_the_printed_ones():
    n, labelled = 10**7, 96_000 * 3
    given_ = BoostTask(base=Price(1.0), n_base=n, vc=3, alpha=0.9, beta=0.1, target=Price(1.0), domain_size=200)
    schedule = PaperConstants(given_).schedule(labelled, 90_000 * n)
    sizes, unlabelled = labelled, 90_000 * n
    for i, each in enumerate(schedule.rounds, start=1):
        alpha, beta = 0.9 / (10 * 2**i), 0.1 / (4 * 2**i)
        v = min(30_000 * n, floor(beta * 3 * exp(min(600, alpha * sizes / (200 * 3))) - sizes))
        assert (each.labelled, each.taken, each.epsilon_0) == (sizes, v, 1.0)
        assert (each.kept_labelled, each.kept_taken) == (sizes // 100, v // 100)
        sizes, unlabelled = sizes // 100 + v // 100, unlabelled - v
    assert len(schedule.rounds) >= 2
    assert schedule.left == sizes >= 300 * n
    assert schedule.taken <= 90_000 * n  # Claim 4.8
    assert (schedule.kept, schedule.drawn) == (sizes // 300, sizes // 300)
    assert schedule.kept >= n
    assert unlabelled >= 0


def test_the_rows_of_the_paper_are_claim_4_9_and_90000n():
    assert PaperConstants(task(77)).rows_needed() == (ceil(960_000 * log(2240 / 0.01)), 90_000 * 77)


def test_for_a_small_epsilon_the_paper_samples_first():
    """Theorem 4.14 by Claim 4.3: one in (3 + e)/ε rows."""
    small = PaperConstants(task(100, epsilon=0.1))
    once = PaperConstants(task(100)).rows_needed()
    assert small.rows_needed() == tuple(pytest.approx(rows * (3 + e) / 0.1, abs=1) for rows in once)
    labelled, unlabelled = small.rows_needed()
    schedule = small.schedule(labelled, unlabelled)
    assert schedule.proven
    assert schedule.first_labelled <= labelled * 0.1 / (3 + e)
    claimed = small.price(schedule)
    assert claimed.epsilon == 0.1
    assert claimed.delta == pytest.approx(41 * small.task.base.delta * 4 * 0.1 / (3 + e))


def test_lemma_4_6_follows_from_the_claims_as_printed():
    """L₀ samples 1/300 before Claim 4.5, an iteration 1/100 before Lemma 4.1: (1, 41δ) each time."""
    resampled = bns15_claim_4_5(Price(1.0, 1e-9))
    rows, last = bns15_claim_4_3(resampled, epsilon=1.0, n_rows=10_000)
    assert rows <= 300 * 10_000
    assert last.delta <= 41e-9
    rows, iteration = bns15_claim_4_3(Price(4.0, 446e-9), epsilon=1.0, n_rows=10_000)
    assert rows <= 100 * 10_000
    assert iteration.delta <= 41e-9
    lemma = bns15_lemma_4_1(Price(1.0, 41e-9))
    assert lemma.within(Price(4.0, 446e-9))


@given(n=st.integers(1, 10**6), vc=st.integers(1, 20), labelled=st.integers(30_000, 10**7), spare=st.integers(0, 10**6))
def test_the_printed_price_covers_the_exact_one(n, vc, labelled, spare):
    for epsilon in (1.0, 0.2):
        base = Price(1.0, 1e-9)
        paper = PaperConstants(BoostTask(base=base, n_base=n, vc=vc, alpha=0.5, beta=0.5, target=Price(epsilon, 1e-6)))
        schedule = paper.schedule(labelled, 90_000 * n + spare)
        assert price_of(schedule, base).within(paper.price(schedule))


def test_the_printed_constants_refuse_a_base_learner_that_they_do_not_cover():
    with pytest.raises(InvalidParameter, match="epsilon <= 1"):
        PaperConstants(task(base=1.5))
    with pytest.raises(InvalidParameter, match="41"):
        PaperConstants(BoostTask(base=Price(1.0, 1e-7), n_base=9, vc=1, alpha=0.1, beta=0.1, target=Price(1.0, 1e-6)))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_base", [1_000, 100_000, 3_000_000])
def test_tight_constants_need_a_fifth_of_the_rows_at_most(epsilon, n_base):
    given_ = task(n_base, epsilon=epsilon)
    paper, tight = PaperConstants(given_).rows_needed(), TightConstants(given_).rows_needed()
    assert 5 * tight[1] <= paper[1]  # unlabelled: by a factor of some thousand
    assert tight[0] <= paper[0]
    schedule = TightConstants(given_).schedule(*tight)
    assert schedule.proven
    assert TightConstants(given_).price(schedule).within(given_.target)


@pytest.fixture(scope="module")
def large():
    """A task whose base learner needs many rows, how many rows it asks for, and the schedule of so many."""
    given_ = task(3_000_000)
    needed = TightConstants(given_).rows_needed()
    return given_, needed, TightConstants(given_).schedule(*needed)


def test_tight_constants_need_an_iteration_where_the_base_learner_needs_many_rows_and_the_fewest_labels(large):
    given_, (labelled, unlabelled), schedule = large
    assert schedule.rounds
    assert schedule.taken == unlabelled > 0
    assert labelled < 3_000_000 < schedule.left
    assert not TightConstants(given_).schedule(labelled - 1, 10**12).proven


def test_the_keep_rates_are_the_largest_that_give_the_target_back(large):
    given_, _, schedule = large
    for each in schedule.rounds:
        label = relabelling(given_.target, epsilon_0=each.epsilon_0)
        point = relabelling(given_.target, epsilon_0=each.epsilon_0, changed="unlabelled")
        kept = {"n_rows": each.labelled, "n_kept": each.kept_labelled}
        assert without_replacement(label, **kept).within(given_.target)
        assert not without_replacement(label, n_rows=each.labelled, n_kept=each.kept_labelled + 1).within(given_.target)
        assert without_replacement(point, n_rows=each.taken, n_kept=each.kept_taken).within(given_.target)
        assert not without_replacement(point, n_rows=each.taken - 2, n_kept=each.kept_taken).within(given_.target)
    assert not with_replacement(given_.base, n_rows=schedule.left - 1, n_draws=schedule.drawn + 3).within(given_.target)


def test_the_iterations_follow_the_papers_accounting_of_errors(large):
    given_, _, schedule = large
    for i, each in enumerate(schedule.rounds, start=1):
        alpha, beta = bns15_algorithm_3_accuracy(given_.alpha, given_.beta, i)
        assert each.kept_labelled >= rows_to_generalise(given_.vc, alpha, beta)  # Theorem B.5
        at_most = beta / e * given_.vc * exp(min(600, each.epsilon_0 * alpha * each.kept_labelled / (2 * given_.vc)))
        assert each.kept_taken + each.kept_labelled <= at_most  # Claim 4.2
    assert schedule.drawn == given_.n_base
    assert schedule.left >= rows_to_generalise(given_.vc, given_.alpha, given_.beta / 2)


def test_labels_grow_with_the_vc_dimension_and_not_with_the_base_learner():
    labels = {(n, vc): TightConstants(task(n, vc=vc)).rows_needed()[0] for n in (3 * 10**6, 10**7) for vc in (1, 2)}
    assert labels[3 * 10**6, 1] == labels[10**7, 1]
    assert 1.5 < labels[10**7, 2] / labels[10**7, 1] < 3


@settings(max_examples=60)
@given(
    labelled=st.integers(1, 5_000),
    unlabelled=st.integers(0, 50_000),
    n_base=st.integers(1, 3_000),
    epsilon=st.floats(0.05, 3),
    base=st.floats(0.05, 3),
    delta=st.sampled_from([0.0, 1e-6]),
)
def test_any_number_of_rows_is_within_the_target_or_refused(labelled, unlabelled, n_base, epsilon, base, delta):
    given_ = BoostTask(
        base=Price(base, delta / 100), n_base=n_base, vc=1, alpha=0.1, beta=0.1, target=Price(epsilon, delta)
    )
    try:
        schedule = TightConstants(given_).schedule(labelled, unlabelled)
    except InvalidParameter:
        assert labelled < 1 + (exp(base) - 1) / (exp(epsilon) - 1) or delta  # not one draw is within the target
        return
    assert price_of(schedule, given_.base).within(given_.target)
    assert schedule.taken <= unlabelled
    assert 1 <= schedule.drawn <= n_base
    assert schedule.left >= labelled or schedule.proven


Data = tuple[Rows, Rows]


def parted(rows: Rows) -> Data:
    """The rows with a label, and those without."""
    return tuple(row for row in rows if row[1] >= 0), tuple(row for row in rows if row[1] < 0)


def parting_pairs(schedule: BoostSchedule) -> list[tuple[Data, Data]]:
    """The pairs that part the class: where the price of relabelling is highest."""
    S, D = ((2, 1),) * schedule.labelled, ((2, -1),) * schedule.unlabelled
    pairs: list[tuple[Data, Data]] = [((((0, y), *S[1:]), D), (((1, z), *S[1:]), D)) for y in (0, 1) for z in (0, 1)]
    if D:
        pairs.append(((S, ((0, -1), *D[1:])), (S, ((1, -1), *D[1:]))))
    return pairs


@pytest.mark.parametrize("concepts", [PARTING, thresholds(3)], ids=["parting", "thresholds"])
def test_a_tiny_run_costs_at_most_what_is_claimed_on_all_neighbours(concepts):
    schedule = iterations((2, 1, 1, 1, 1.0), left=2, drawn=2)
    claimed = price_of(schedule, Price(1.0)).epsilon
    pairs = neighbouring(labelled(range(3), 2), unlabelled(range(3), 1))
    found = price(lambda rows: boosted(parted(rows), schedule, concepts), pairs, 1.0)
    assert 0 < found <= claimed + NEAR


FULL = iterations((5, 5, 1, 1, 1.0), left=6, drawn=10)


@pytest.mark.parametrize(
    ("schedule", "epsilon", "share"),
    [
        (iterations((3, 2, 3, 2, 1.0), left=4, drawn=3), 1.0, 0.4),
        (iterations((4, 3, 2, 1, 1.0), left=4, drawn=4), 1.0, 0.5),
        (iterations((4, 2, 2, 1, 2.0), left=3, drawn=3), 2.0, 0.6),
        (iterations((5, 4, 1, 1, 1.0), left=3, drawn=3), 2.0, 0.5),
        (iterations((5, 5, 1, 1, 1.0), left=6, drawn=6), 2.0, 0.85),
        (FULL, 1.0, 0.9),
        (iterations((2, 2, 1, 1, 1.0), left=3, drawn=4, before=(4, 2)), 1.0, 0.3),
    ],
)
def test_the_claim_is_not_idle(schedule, epsilon, share):
    claimed = price_of(schedule, Price(epsilon)).epsilon
    found = price(lambda data: boosted(data, schedule, PARTING), parting_pairs(schedule), epsilon)
    assert share * claimed < found <= claimed + NEAR


def test_two_iterations_cost_at_most_what_is_claimed():
    schedule = iterations((3, 2, 1, 1, 1.0), (3, 2, 2, 1, 0.5), left=2, drawn=3)
    claimed = price_of(schedule, Price(1.5)).epsilon
    pairs = parting_pairs(schedule)
    S, D = ((2, 1),) * 3, ((2, -1),) * 3
    pairs += [((S, (*D[:i], (0, -1), *D[i + 1 :])), (S, (*D[:i], (1, -1), *D[i + 1 :]))) for i in range(3)]
    found = price(lambda data: boosted(data, schedule, PARTING), pairs, 1.5)
    assert 0.3 * claimed < found <= claimed + NEAR


def test_a_run_priced_without_its_relabelling_is_caught():
    without = with_replacement(Price(1.0), n_rows=6, n_draws=10).epsilon + 1.0  # and ε₀, as composition would have it
    assert price(lambda data: boosted(data, FULL, PARTING), parting_pairs(FULL), 1.0) > without + 0.1


def base_learner(epsilon: float = 1.0, bits: int = 2) -> ExponentialLearner:
    return ExponentialLearner(concepts=Thresholds(bits=bits), epsilon=epsilon, selection="exponential")


def drawn_concepts(
    schedule: BoostSchedule, S: Rows, D: Rows, learner: LabelBoost, base: PrivateLearner
) -> list[tuple[int, ...]]:
    fit = BaseFit(
        plan=base._plan(schedule.drawn, 0, 1.0, 0.0), price=Price(1.0), n_labelled=schedule.drawn, n_unlabelled=0
    )
    plan = BoostPlan(event=PureDP(1.0), told="", n_labels=schedule.labelled, schedule=schedule, base=base, base_fit=fit)
    # Labelled and unlabelled rows may come in any order
    points = np.array([[x] for x, _ in (*D, *S)])
    labels = np.array([y for _, y in (*D, *S)], dtype=np.int8)
    noise = SeededNoise(20261120)
    cuts = [learner._learn(points, labels, noise.at("run", i), plan).cut for i in range(RUNS)]  # type: ignore[attr-defined]
    return [thresholds(4)[cut] for cut in cuts]


SMALL = iterations((3, 2, 2, 1, 2.0), (3, 2, 1, 1, 1.0), left=2, drawn=3, before=(4, 4))
S_SMALL: Rows = ((0, 1), (1, 1), (3, 0), (3, 0))
D_SMALL: Rows = ((2, -1), (0, -1), (3, -1), (1, -1))


class ForgetfulBoost(LabelBoost):
    """A twin that cheats: it relabels nothing."""

    def _learn(self, points, labels, noise, plan):
        schedule = replace(plan.schedule, rounds=(), first_labelled=4, kept=4)
        return super()._learn(points, labels, noise, replace(plan, schedule=schedule))


def test_what_runs_has_the_law_that_was_priced_and_a_twin_that_relabels_nothing_has_not():
    base = base_learner()  # so many runs put the twin at p = 4·10⁻¹⁵
    of_inputs = best_of_class(thresholds(4), 1.0, exponential)
    inputs = boosted((S_SMALL, D_SMALL), SMALL, thresholds(4))
    law = mixture((weight, of_inputs(rows)) for rows, weight in inputs.items())
    for kind in (LabelBoost, ForgetfulBoost):
        learner = kind(concepts=base.concepts, base=base, epsilon=1.0)
        assert (p_value(law, drawn_concepts(SMALL, S_SMALL, D_SMALL, learner, base)) > FALSE_ALARM) is (
            kind is LabelBoost
        )


def test_the_planned_price_covers_the_exact_one_on_six_rows():
    """A plan of the learner itself: five labelled rows and one without, n = 6."""
    learner = LabelBoost(
        concepts=Thresholds(bits=2), base=base_learner(0.5), epsilon=2.0, base_rows=8, alpha=0.5, beta=0.5
    )
    plan = learner._plan(2, 4, 2.0, 0.0)
    found = price(
        lambda data: boosted(data, plan.schedule, thresholds(3)),
        ((((a, (2, 1)), D), ((b, (2, 1)), D)) for D in [((0, -1), (1, -1), (1, -1), (2, -1))]
         for a, b in combinations([(x, y) for x in range(3) for y in (0, 1)], 2)),
        0.5,
    )  # fmt: skip
    assert isinstance(plan.event, PureDP)
    assert 0.3 * plan.event.epsilon < found <= plan.event.epsilon + NEAR


def rows(n_labelled: int, n_unlabelled: int, bits: int = 8, cut: int = 100) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(4).integers(0, 2**bits, (n_labelled + n_unlabelled, 1))
    y = (X[:, 0] < cut).astype(int)
    y[n_labelled:] = UNLABELLED
    return X, y


GRID = Thresholds(bits=8)


def boost(**given_: object) -> LabelBoost:
    base = ExponentialLearner(concepts=GRID, epsilon=1.0)
    own = {"concepts": GRID, "base": base, "epsilon": 1.0, "base_rows": 600, "unsafe_noise_seed": 3}
    return LabelBoost(**own | given_)  # type: ignore[arg-type]


def test_it_learns_with_fewer_labels_than_the_base_learner_is_handed():
    X, y = rows(580, 9_000)
    learner = boost(ledger=(ledger := Ledger(budget=Budget(1.0, 0.0)))).fit(X, y)
    schedule = learner.plan_.schedule
    assert len(schedule.rounds) == 1
    assert schedule.drawn == 600 > learner.n_labels_used_ == 580
    truth = (X[:, 0] < 100).astype(int)
    assert (learner.predict(X) == truth).mean() > 0.85
    assert learner.transcript_covered_
    assert learner.guarantee_.neighbours == "replace one record"
    assert learner.plan_.event == price_of(schedule, Price(1.0)).event
    assert learner.guarantee_.epsilon == pytest.approx(learner.plan_.event.epsilon, abs=1e-8)
    assert any("asks for" in caveat for caveat in learner.guarantee_.caveats)  # fewer rows than the theorem's
    again = boost(ledger=ledger).fit(X, y)
    assert again.concept_ == learner.concept_
    assert again.guarantee_.epsilon == learner.guarantee_.epsilon  # nothing is charged twice


def test_enough_labels_need_no_iteration_and_the_theorem_holds():
    X, y = rows(45_000, 0)
    learner = boost(rows="theorem").fit(X, y)
    assert learner.plan_.schedule.rounds == ()
    assert learner.plan_.schedule.proven
    assert not any("asks for" in caveat for caveat in learner.guarantee_.caveats)


def test_the_alpha_and_beta_that_are_asked_for_are_those_of_the_whole():
    learner = boost(alpha=0.22, beta=0.2, base_rows=None)
    inner = learner._inner
    assert (inner.alpha, inner.beta) == (pytest.approx(0.02), pytest.approx(0.1))  # type: ignore[attr-defined]
    assert learner.base.alpha == 0.1  # type: ignore[attr-defined]  # the given one is left alone
    needed = learner.rows_needed()
    n = inner.rows_needed().labelled
    assert needed.labelled >= rows_to_generalise(1, 0.02, 0.05)
    assert learner._plan(needed.labelled, needed.unlabelled, 1.0, 0.0).schedule.drawn == n


def test_both_sets_of_constants_are_refused_or_taken_by_the_same_planner():
    needed = {name: boost(constants=name).rows_needed() for name in ("tight", "paper")}
    assert 5 * needed["tight"].unlabelled <= needed["paper"].unlabelled
    assert "4.13" in needed["paper"].theorem
    X, y = rows(500, 900)
    with pytest.raises(DataRefused, match="asks for"):
        boost(rows="theorem").fit(X, y)
    fitted = boost(constants="paper").fit(X, y)
    assert fitted.plan_.event == PureDP(1.0)
    assert fitted.plan_.schedule.drawn == 1  # 500 // 300
    with pytest.raises(InvalidParameter, match="300 labelled rows"):
        boost(constants="paper").fit(*rows(299, 0))


def test_an_approximate_base_learner_makes_an_approximate_one():
    inner = boost(delta=1e-7, base_rows=20)
    with pytest.raises(InvalidParameter, match="delta must be > 0"):
        boost(base=inner).fit(*rows(500, 100))
    learner = boost(base=inner, delta=1e-5)
    plan = learner._plan(2_000, 0, 1.0, 1e-5)
    assert plan.event == PureDP(plan.event.epsilon) or isinstance(plan.event, ApproxDP)
    assert plan.event.epsilon <= 1.0


def test_a_base_learner_that_needs_rows_without_labels_gets_them():
    base = GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=1.0)
    learner = boost(base=base, base_rows=900).fit(*rows(900, 12_000))
    fit = learner.plan_.base_fit
    assert min(fit.n_labelled, fit.n_unlabelled) >= 400
    assert fit.n_rows == learner.plan_.schedule.drawn == 900
    assert learner.score(*rows(1_500, 0)) > 0.6


def test_more_candidates_than_fit_into_memory_are_left_out_and_that_is_said():
    many = BoostTask(base=Price(1.0), n_base=10**7, vc=6, alpha=0.1, beta=0.1, target=Price(1.0))
    needed = TightConstants(many).rows_needed()
    schedule = TightConstants(many).schedule(*needed)  # privacy does not need the theorem
    assert not schedule.proven
    assert all(many.can_score(each.relabelled) for each in schedule.rounds)
    assert price_of(schedule, many.base).within(many.target)
