"""Every function of the product that releases, sabotaged in place: the audit that goes through it sees it.

A fault is put where the product draws its noise, or weighs its candidates: in the module that does it, under the name
by which it does it. Nothing else is replaced, so an audit of a copy would not see it.
"""

import ast
import importlib
from collections.abc import Callable
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quorate
from quorate.accounting import DiscreteGaussian, Repeated
from quorate.accounting.data_dependent.smooth import release_rdp, release_total
from quorate.audit import (
    ApproxClaim,
    GaussianClaim,
    PureClaim,
    ScheduleAudit,
    audit_mechanism,
    audit_rounds,
    audit_schedule,
)
from quorate.audit.cheats.faulty_noise import BareNearUnanimity, ExactAtOneLead, HalvesShareNoise, TurnedByParity
from quorate.audit.cheats.noisy_max import NoisyMax
from quorate.audit.hard_votes import PLACES, leads, votes_cast
from quorate.audit.many_answers import audit_equal_votes, compared
from quorate.audit.measured_sizes import reference
from quorate.data.feature_maps.composed import feature_map_for
from quorate.direct.plan import plan_direct
from quorate.learners.base import grid_choice
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.concepts import Thresholds
from quorate.learners.sanitizers.boxes import noisy_boxes
from quorate.learners.sanitizers.small_domains import XorQueries, multiplicative_weights
from quorate.learners.sanitizers.tree import noisy_children
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import (
    GaussianNoisyMax,
    NoisyCounts,
    NoisyMarginals,
    NoisyMean,
    NoisySum,
    Partition,
    StableSparseVector,
)
from quorate.mechanisms.noisy_max import SeveralVotesNoisyMax
from quorate.mechanisms.pair_sums import NoisyPairSums, moved_by
from quorate.noise import SeededNoise, discrete_gaussian
from quorate.release import DrawnBlock, release_once
from quorate.types import Secret

CONFIDENCE = 0.9999
DELTA = 1e-5
POOL = np.random.default_rng(2).normal(size=(60, 5)) * [3.0, 1.0, 1.0, 0.3, 0.1]


def rounds() -> Any:
    plan = plan_direct(
        feature_map_for("linear", POOL), POOL, n_classes=2, n_units=2_000, epsilon=2.0, delta=DELTA, rounds=16
    )
    return audit_rounds(plan, plan.event, POOL, delta=DELTA, confidence=CONFIDENCE, runs=2_000, seed=1)


def scheduled(mechanism: Any, answers: int, runs: int | None = None) -> Callable[[], Any]:
    """Return an audit as ``quorate audit`` makes it, of fewer runs."""
    n_teachers = 60 if mechanism.test is None else 250  # as many as can pass a test
    runs = runs or (4_000 if getattr(mechanism, "sparse_vector", None) is None else 600)
    how = {"n_teachers": n_teachers, "n_classes": 2, "delta": DELTA, "confidence": CONFIDENCE, "runs": runs, "seed": 1}
    return lambda: audit_schedule(mechanism, mechanism.schedule(answers), **how)


def of(name: str, runs: int | None = None) -> Callable[[], Any]:
    """Return the audit of a registered mechanism at the noise that ε = 1 buys; that is worked out when it is called."""

    def audit() -> Any:
        at = reference(name)
        return scheduled(at.mechanism, at.setting.answers, runs)()

    return audit


class Calls:
    """A function of neighbouring data, run many times."""

    def __init__(self, release: Callable[[Any, Any], Any]) -> None:
        self._release = release
        self.takes_streams = True

    def release(self, counts: Any, noise: Any) -> Any:
        return self._release(counts, noise)

    def release_many(self, counts: Any, noise: Any) -> Any:
        return [self._release(row, noise.at("run", place)) for place, row in enumerate(counts)]


def audited(release: Callable[[Any, Any], Any], zero: Any, one: Any, claim: Any, runs: int = 1_200) -> Any:
    return audit_mechanism(Calls(release), (zero, one), claim, CONFIDENCE, runs, seed=1)


def once(mechanism: Any, zero: Any, one: Any, epsilon: float) -> Callable[[], Any]:
    """Evaluations, paid estimates and tuning: one release from a reservation."""

    def audit() -> Any:
        runs = 600
        ledger = Ledger(budget=Budget(1_000.0, DELTA))
        whole = Repeated(mechanism.event, runs)
        reservation = ledger.reserve(whole, delta=0, purposes={"evaluation": runs}, key="made-up sums")

        def release(sums: Any, noise: Any) -> Any:
            return release_once(Secret(sums), mechanism, reservation, noise, purpose="evaluation")

        return audited(release, np.array(zero), np.array(one), PureClaim(epsilon), runs)

    return audit


def tree() -> Any:
    rows = np.array([0] * 30 + [3] * 30), np.array([0] * 29 + [3] * 31)

    def release(values: Any, noise: Any) -> Any:
        return noisy_children(values, np.array([0]), child=1, fanout=4, scale=4.0, noise=noise)[0]

    return audited(release, *rows, PureClaim(2 / 4.0))


def boxes() -> Any:
    rows = np.array([[0, 3]] * 30 + [[2, 1]] * 30), np.array([[0, 3]] * 29 + [[2, 1]] * 31)

    def release(points: Any, noise: Any) -> Any:
        return noisy_boxes(points, [np.array([1, 3]), np.array([3])], 4.0, noise).ravel()

    return audited(release, *rows, PureClaim(2 / 4.0))


def measured_queries() -> Any:
    queries = XorQueries.of(Thresholds(1))

    def release(counts: Any, noise: Any) -> Any:
        return [each.rows for each in multiplicative_weights(queries, counts, 100, 1, 1.0, noise)[1]]

    return audited(release, np.array([80] * len(queries.table)), np.array([81] * len(queries.table)), PureClaim(1.0))


def choice_on_a_grid() -> Any:
    grid_choice._table.cache_clear()

    def release(scores: Any, noise: Any) -> Any:
        return GridChoice(0.5).release(scores, np.array([3, 3]), noise) // 3

    try:
        return audited(release, np.array([10, 9]), np.array([9, 10]), PureClaim(0.5))
    finally:
        grid_choice._table.cache_clear()


def data_dependent_total() -> Any:
    order, beta, multiplier, step = 10.0, 0.01, 4.0, 1e-4
    cost = release_rdp(order, beta, multiplier)
    claim = ApproxClaim(cost + log(1 / DELTA) / (order - 1), DELTA)

    def release(total: Any, noise: Any) -> Any:
        told = release_total(
            Secret(total / 1000), Secret(1e-3), order=order, beta=beta, multiplier=multiplier, source=noise, step=step
        )
        return round(told.value / step)

    return audited(release, np.array([200.0]), np.array([201.0]), claim)


def marginal_level() -> Any:
    marginals = NoisyMarginals((Partition(2),), mu=1.0, neighbours="add-or-remove")

    def release(counts: Any, noise: Any) -> Any:
        return marginals.release_level(marginals.level(1), [counts], noise)[0]

    return audited(release, np.array([30, 5]), np.array([31, 5]), GaussianClaim(1.0))


def sums_over_pairs() -> Any:
    mechanism = NoisyPairSums(2, mu=1.0, neighbours="add-or-remove")
    zero = np.array([0])

    def release(sums: Any, noise: Any) -> Any:
        return (mechanism.release(sums, noise) >> 22).tolist()

    return audited(release, zero, zero + int(moved_by("add-or-remove")), GaussianClaim(1.0))


def noisy_mean() -> Any:
    mechanism = NoisyMean(sigma=4.0, grid=2**10)

    def release(sums: Any, noise: Any) -> Any:
        return (mechanism.release_many(sums[:, None], noise) // 2**9).tolist()

    return audited(release, np.array([0]), np.array([2**11]), GaussianClaim(2 / 4.0))


#: Each place where noise is drawn or candidates are weighed, by the module that does it, and what audits it.
RELEASING: dict[str, Callable[[], Any]] = {
    "direct.descend:discrete_gaussian": rounds,
    "mechanisms.gaussian_noise:discrete_gaussian": of("NoisyCounts"),
    "mechanisms.confident_noisy_max:discrete_gaussian": of("ConfidentNoisyMax"),
    "mechanisms.confident_noisy_max:discrete_gaussian:InteractiveNoisyMax": of("InteractiveNoisyMax"),
    "mechanisms.noisy_max:discrete_laplace": of("LaplaceNoisyMax"),
    "mechanisms.choice:exp_negative": of("Exponential"),
    "mechanisms.choice:geometric": of("PrivatePrediction"),
    "mechanisms.noisy_mean:discrete_gaussian": noisy_mean,
    "mechanisms.noisy_sum:discrete_laplace": once(NoisySum(scale=2.0, grid=1), [50], [51], 0.5),
    "mechanisms.noisy_sum:discrete_gaussian": scheduled(NoisySum(scale=12.0, grid=1, noise="gaussian"), 1),
    "mechanisms.noisy_max:discrete_gaussian": scheduled(SeveralVotesNoisyMax(20.0, 1, 2), 50),
    "mechanisms.marginals:discrete_gaussian": marginal_level,
    "mechanisms.pair_sums:discrete_gaussian": sums_over_pairs,
    "mechanisms.sparse_vector:discrete_laplace": of("DistanceToInstability"),
    "mechanisms.stage_noise:geometric": of("StableSparseVector"),
    "mechanisms.stage_noise:discrete_laplace": scheduled(StableSparseVector(1.0, DELTA, 2, 50, "lzcw21"), 50),
    "learners.sanitizers.tree:discrete_laplace": tree,
    "learners.sanitizers.boxes:discrete_laplace": boxes,
    "learners.sanitizers.small_domains:discrete_laplace": measured_queries,
    "learners.base.grid_choice:exp_negative": choice_on_a_grid,
    "accounting.data_dependent.smooth:discrete_gaussian": data_dependent_total,
}  # fmt: skip


def zeros(real: Any) -> Any:
    return lambda scale, size, source: 0 * real(scale, size, source)


def tenth(real: Any) -> Any:
    return lambda scale, size, source: real(scale / 10, size, source)


def reused(real: Any) -> Any:
    """The first draw of each shape is every later one."""
    drawn: dict[Any, Any] = {}

    def draw(scale: float, size: Any, source: Any) -> Any:
        if (scale, size) not in drawn:
            drawn[scale, size] = real(scale, size, source)
        return drawn[scale, size]

    return draw


def certain(real: Any) -> Any:
    """The best candidate has all of the weight."""
    return lambda exponent: real(exponent) if not exponent else 0


def sharper(real: Any) -> Any:
    return lambda exponent: real(10 * exponent)


#: Where only the test before an answer has too little noise, a tenth of it takes more runs to be seen than none.
MORE_RUNS = {
    "mechanisms.confident_noisy_max:discrete_gaussian": of("ConfidentNoisyMax", 20_000),
    "mechanisms.confident_noisy_max:discrete_gaussian:InteractiveNoisyMax": of("InteractiveNoisyMax", 20_000),
}
#: Audits of many noisy numbers, or of streams.
SLOW = {place for place in RELEASING if "stage_noise" in place or "confident" in place}
SAMPLERS = {"discrete_gaussian", "discrete_laplace", "geometric"}
FAULTS = [
    pytest.param(place, fault, marks=[pytest.mark.heavy] if place in SLOW or fault not in {zeros, certain} else [])
    for place in RELEASING
    for fault in ((zeros, tenth, reused) if place.split(":")[1] in SAMPLERS else (certain, sharper))
]


@pytest.mark.heavy
@pytest.mark.heavy_cases(18)
@pytest.mark.parametrize(("place", "fault"), FAULTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_releasing_function_that_is_sabotaged_in_place_is_seen(place, fault, monkeypatch):
    module, name = place.split(":")[:2]
    there = importlib.import_module(f"quorate.{module}")
    audit = MORE_RUNS.get(place, RELEASING[place]) if fault is tenth else RELEASING[place]
    monkeypatch.setattr(there, name, fault(getattr(there, name)))
    assert audit().violated


@pytest.mark.heavy
@pytest.mark.heavy_cases(6)
@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[pytest.mark.heavy] if place in SLOW else []) for place in RELEASING]
)
def test_a_releasing_function_that_is_as_it_was_is_not_flagged(place):
    assert not RELEASING[place]().violated


def test_no_other_place_of_the_product_draws_noise():
    """Rehearsals of the planner draw noise on public rows, and audits on made-up data: they release nothing."""
    root = Path(quorate.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if module.split(".")[0] in {"noise", "audit"} or module.startswith("planning.rehearsal"):
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "from quorate.noise" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module in {"quorate.noise", "quorate.noise.table"}:
                found |= {f"{module}:{each.name}" for each in node.names if each.name in {*SAMPLERS, "exp_negative"}}
    assert found == {":".join(place.split(":")[:2]) for place in RELEASING}


ONE_IN_A_MILLION = 1 - 1e-6
SIGMA, K, ANSWERS = 20.0, 60, 50
EQUAL, LEAD, CAST = "answers to equal votes", "at every lead", "at every number of votes cast"


def audited_everywhere(
    mechanism: Any, *, confidence: float = ONE_IN_A_MILLION, seed: int = 1, runs: int = 4_000
) -> ScheduleAudit:
    event = Repeated(DiscreteGaussian(SIGMA, sqrt(2)), ANSWERS)
    return audit_schedule(
        mechanism, event, n_teachers=K, n_classes=2, delta=1e-5, confidence=confidence, runs=runs, seed=seed
    )


def violated(found: ScheduleAudit) -> str:
    return "; ".join(part.name for part in (*found.attacks, *found.comparisons) if part.violated)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        (HalvesShareNoise(SIGMA), EQUAL),
        (BareNearUnanimity(SIGMA), LEAD),
        (TurnedByParity(SIGMA), CAST),
        (ExactAtOneLead(SIGMA), LEAD),
        (ExactAtOneLead(SIGMA, lead=34), LEAD),  # where noise turns one answer in nine
    ],
    ids=["halves", "unanimity", "parity", "lead 4", "lead 34"],
)
def test_a_fault_in_one_place_is_seen_by_an_audit_that_is_not_told_where(broken, seen):
    found = audited_everywhere(broken)
    assert seen in violated(found)
    assert not any(attack.violated for attack in found.attacks if attack.name.endswith("two classes tie"))


@pytest.mark.heavy
@pytest.mark.parametrize("correct", [NoisyMax(SIGMA), NoisyCounts(SIGMA), GaussianNoisyMax(SIGMA)])
def test_what_is_right_everywhere_is_not_flagged(correct):
    assert not violated(audited_everywhere(correct))


@pytest.mark.faults
def test_a_correct_mechanism_is_flagged_no_more_often_than_is_said():
    """At 80 % for everything together: 100 audits flag more than 37 of 100 once in a hundred thousand, if 20 % do."""
    flagged = sum(
        audited_everywhere(NoisyMax(SIGMA), confidence=0.8, seed=seed, runs=1_000).violated for seed in range(100)
    )
    assert flagged <= 37


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("broken", [BareNearUnanimity(SIGMA), TurnedByParity(SIGMA), ExactAtOneLead(SIGMA, lead=34)])
def test_what_is_said_to_be_seen_is_seen_in_nine_audits_of_ten(broken):
    found = [audited_everywhere(broken, confidence=0.95, seed=seed, runs=20_000).violated for seed in range(10)]
    assert sum(found) >= 9


class Sharing:
    """Noise of a batch that is handed on to other answers."""

    def __init__(self, share: Callable[[Any], Any]) -> None:
        self._share = share

    def release_many(self, counts: Any, noise: Any) -> Any:
        drawn = discrete_gaussian(SIGMA, counts.shape, noise)
        return (counts + self._share(drawn)).argmax(axis=1)


def one_pair(noise: Any) -> Any:
    return np.concatenate([noise[:-1], noise[2:3]])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "share",
    [
        lambda noise: np.repeat(noise[::2], 2, axis=0)[: len(noise)],
        lambda noise: np.where(np.arange(len(noise))[:, None] < len(noise) // 2, noise, noise[::-1]),
        lambda noise: np.concatenate([noise[: len(noise) // 2], -noise[len(noise) // 2 - 1 :: -1]])[: len(noise)],
        one_pair,
    ],
    ids=["the next", "mirrored", "turned round", "one pair of a batch"],
)
def test_noise_that_two_answers_share_is_seen_whichever_two(share):
    counts = np.array([50, 50])
    found = audit_equal_votes(Sharing(share), counts, 48, ONE_IN_A_MILLION, 300, SeededNoise(1), name="equal votes")
    assert found.violated


@pytest.mark.heavy
def test_noise_that_blocks_share_is_seen_on_the_way_from_the_reservation(monkeypatch):
    """The mechanism is right; what it is handed is the same for the two blocks of a run."""
    how = (np.array([50, 50]), 48, ONE_IN_A_MILLION, 300)
    mechanism = GaussianNoisyMax(SIGMA, form="binary")
    assert not audit_equal_votes(mechanism, *how, SeededNoise(1), name="equal votes").violated
    monkeypatch.setattr(DrawnBlock, "noise", lambda self, source: source.at(self.block.purpose, 0))
    assert audit_equal_votes(mechanism, *how, SeededNoise(1), name="equal votes").violated


@pytest.mark.heavy
@pytest.mark.parametrize("p", [0.5, 0.05, 0.0])
def test_independent_answers_are_flagged_as_rarely_as_is_said(p):
    rng = np.random.default_rng(0)
    flagged = [compared(rng.random((80, 20, 2)) < p, 0.8, name="independent").violated for _ in range(200)]
    assert sum(flagged) <= 40 + 4.9 * sqrt(200 * 0.2 * 0.8)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n_teachers", [1, 2, 250, PLACES, PLACES + 1, 100_000])
def test_the_tie_both_ends_and_every_number_cast_are_scanned(n_teachers):
    pairs = leads(GaussianNoisyMax(SIGMA), n_teachers, 3)
    assert len(pairs) <= PLACES
    assert all(zero.sum() == one.sum() == n_teachers for zero, one in pairs)
    ahead = {int(zero[0] - zero[1]) for zero, _ in pairs}
    assert {n_teachers, n_teachers % 2} <= ahead
    cast = votes_cast(n_teachers, 3)
    assert all((zero - one).tolist() == [1, 0, 0] for zero, one in cast)
    assert all(one.min() >= 0 for _, one in cast)
    if n_teachers <= PLACES:
        assert {int(zero.sum()) for zero, _ in cast} == set(range(2, n_teachers + 1))


def test_sums_are_scanned_in_whole_contributions():
    (zero, one), *_ = leads(NoisySum(scale=2.0, grid=10, form="shares"), 4, 2)
    assert (zero.tolist(), one.tolist()) == ([40, 0], [30, 10])
