"""The audit of a run: what was charged is the claim, what answers is attacked, and nothing private is looked at."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.folder.conftest import edit, run

from quorate.accounting import Composed, DiscreteGaussian, PureDP, Repeated, epsilon
from quorate.accounting.gaussian import epsilon_of_gaussian
from quorate.audit import ApproxClaim, GaussianClaim, PureClaim, SumOfAnswers, claim_on, hard_votes
from quorate.audit import shards as module
from quorate.audit.detectable import Sizes, stored_sizes
from quorate.errors import PreconditionFailed
from quorate.folder import audits
from quorate.folder.audited import publish_audit, with_audit
from quorate.folder.audits import AuditOptions, audit_run, shards_of
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.folder.published import read_facts
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
    distance_to_instability,
    gaussian_noise,
)
from quorate.mechanisms.stage_noise import StageNoise
from quorate.noise import SeededNoise, discrete_gaussian
from quorate.report import Facts, render_html

CONFIDENCE = 1 - 1e-6


pytestmark = [pytest.mark.mostly_heavy, pytest.mark.usefixtures("small_shards")]


@pytest.fixture
def finished(finished_run):
    return finished_run(**{"mechanism.online_answers": 5})


def audit(root, **how):
    return audit_run(load_run(root), AuditOptions(**{"confidence": CONFIDENCE, "seed": 1, "runs": 20_000} | how))


MECHANISMS = (
    GaussianNoisyMax(sigma=40.0), NoisyCounts(sigma=40.0, form="binary"), LaplaceNoisyMax(20.0),
    ConfidentNoisyMax(200, 150.0, 40.0), InteractiveNoisyMax(200, 150.0, 40.0, 250, 0.9), Exponential(0.1),
    PermuteAndFlip(0.1), PrivatePrediction(0.1), DistanceToInstability(0.5, 1e-6),
    StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=50),
    SoftLabel(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=50, bins=10),
)  # fmt: skip


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("n_teachers", [1, 2, 3, 12, 250])
def test_hard_votes_are_votes_of_so_many_teachers_of_whom_one_changes_and_the_mechanism_takes_them(
    mechanism, n_teachers
):
    if isinstance(mechanism, InteractiveNoisyMax):
        mechanism = replace(mechanism, n_teachers=n_teachers)
    for votes in hard_votes(mechanism, n_teachers, 2):
        zero, one = votes.neighbours
        if isinstance(mechanism, SoftLabel):
            assert zero.shape == one.shape == (4, n_teachers)
            assert np.isfinite([zero, one]).all(), "the auditor takes numbers"
            changed = zero != one
            assert (changed.sum(axis=1) <= 1).all()
        else:
            for each in (zero, one):
                assert each.dtype == np.int64
                assert each.min() >= 0
                assert each.sum(axis=-1).max() <= n_teachers
            assert (np.abs(one - zero).sum(axis=-1) <= 2).all()
        assert changed.any() if isinstance(mechanism, SoftLabel) else not np.array_equal(zero, one)
        mechanism.release(zero, SeededNoise(0))
        assert zero.ndim == 1 or len(zero) <= mechanism.n_queries


@pytest.mark.quick
def test_hard_votes_stand_where_the_test_of_a_mechanism_decides():
    test = DistanceToInstability(0.5, 1e-6)
    (votes,) = hard_votes(test, 250, 3)
    assert distance_to_instability(np.stack(votes.neighbours)).tolist() == [27, 28]
    assert 27 < test.threshold < 28
    sparse = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=50)
    undecided, across, both_sides = hard_votes(sparse, 250, 3)
    (distance,) = set(distance_to_instability(undecided.neighbours[0]).tolist())
    assert 0.4 < sparse.pass_probability(distance) < 0.6
    sides = [set(distance_to_instability(side).tolist()) for side in across.neighbours]
    assert sides == [{sparse.threshold}, {sparse.threshold + 1}], "without noise one side passes and the other fails"
    before, after = (distance_to_instability(side) for side in both_sides.neighbours)
    assert set((after - before).tolist()) == {-1, 1}
    assert np.array_equal(np.sign(after - before), np.sign(distance - before))


@pytest.mark.quick
@pytest.mark.parametrize("threshold", [200.0, 200.5, 200.49, 201.0])
def test_one_of_two_neighbours_passes_a_test_without_noise(threshold):
    votes = hard_votes(ConfidentNoisyMax(threshold, 150.0, 40.0, form="binary"), 250, 2)[-1]
    assert [bool(side.max() >= threshold) for side in votes.neighbours] == [True, False]


@pytest.mark.quick
def test_more_than_two_classes_tie_in_pairs_that_leave_no_class_out_of_both():
    first, last = hard_votes(GaussianNoisyMax(sigma=40.0), 100, 5)
    assert first.neighbours[1].tolist() == [49, 51, 0, 0, 0]
    assert last.neighbours[1].tolist() == [0, 0, 0, 49, 51]


def test_claims_are_trade_off_curves_where_noise_is_gaussian_and_wide():
    many = Composed((Repeated(DiscreteGaussian(30.0, 1.0), 9), DiscreteGaussian(10.0, 2**0.5)))
    assert claim_on(many, 1e-5) == GaussianClaim((9 / 900 + 2 / 100) ** 0.5)
    assert isinstance(claim_on(Repeated(DiscreteGaussian(9.0, 1.0), 9), 1e-5), ApproxClaim)
    assert isinstance(claim_on(Composed((many, PureDP(0.1))), 1e-5), ApproxClaim)
    assert claim_on(PureDP(0.5), 1e-5) == PureClaim(0.5)


@pytest.mark.quick
def test_sums_of_answers_are_what_the_answers_of_a_run_add_up_to():
    runs = np.random.default_rng(0).integers(40, 60, (7, 11, 2))
    for mechanism in (GaussianNoisyMax(9.0), ConfidentNoisyMax(52, 4.0, 4.0)):
        answers = mechanism.release_many(runs.reshape(-1, 2), SeededNoise(3)).reshape(7, 11)
        expected = [[(row == code).sum() for code in (-1, 0, 1)] for row in answers]
        assert SumOfAnswers(mechanism).release_many(runs, SeededNoise(3)).tolist() == expected
    noisy = NoisyCounts(9.0)
    counts = noisy.release_many(runs.reshape(-1, 2), SeededNoise(3)).reshape(7, 11, 2)
    assert np.array_equal(SumOfAnswers(noisy).release_many(runs, SeededNoise(3)), counts.sum(axis=1))


def test_a_correct_run_is_not_flagged_and_its_whole_schedule_shows_most_of_its_claim(finished):
    found = audit(finished, confidence=0.95)
    assert not found.violated, found.verdict
    assert [each.name for each in found.attacks] == [
        "one answer: two classes tie",
        "all 155 answers: two classes tie",
        "every second of 154 answers: two classes tie",
        "one answer: at every lead",
        "one answer: at every number of votes cast, one more or less",
    ]
    assert [each.name for each in found.schedule.comparisons] == ["155 answers to equal votes: two classes tie"]
    whole = found.attacks[1]
    assert 3.99 < whole.claimed == epsilon(load_run(finished).task.recipe.event, 1e-5) <= 4.0
    assert whole.proved == epsilon_of_gaussian(1e-5, whole.result.lower_bound), "of the curve that is proved"
    assert 0.75 * whole.claimed < whole.proved <= whole.claimed
    assert found.shards.worst == 1
    assert {probe.change for probe in found.shards.probes} == {"add", "remove", "replace"}
    assert "not a proof" in found.verdict


def test_bounds_and_comparisons_share_the_confidence(make_run, monkeypatch):
    found = audit_mechanism_of(make_run, monkeypatch, "StableSparseVector", confidence=0.9, runs=400)
    parts = [each.result.confidence for each in found.attacks] + [
        each.confidence for each in found.schedule.comparisons
    ]
    assert len(parts) > len(found.attacks) >= 2
    assert parts == pytest.approx([1 - 0.1 / len(parts)] * len(parts))


OTHERS = {
    "GaussianNoisyMax": {},
    "LaplaceNoisyMax": {},
    "ConfidentNoisyMax": {"mechanism.threshold": 8.0},
    "DistanceToInstability": {},
    "PrivatePrediction": {},
    "StableSparseVector": {"mechanism.cutoff": 3},
    "SoftLabel": {"mechanism.cutoff": 2, "mechanism.bins": 4},
}


def audit_mechanism_of(make_run, monkeypatch, name, **how):
    """Audit a run with the mechanism of that name; the labels are not needed, and are not made."""
    monkeypatch.setattr(audits, "shards_of", lambda *args, **how: (None, "not here"))
    settings = {"mechanism.name": name, "teachers.count": 12, **OTHERS[name]}
    batch = load_run(make_run(m=40, **settings))
    monkeypatch.setattr(audits, "charged_event", lambda batch: batch.task.recipe.event)
    return audit_run(batch, AuditOptions(**{"runs": 1_000, "confidence": CONFIDENCE, "seed": 1} | how))


@pytest.mark.parametrize("name", OTHERS)
def test_a_run_of_any_mechanism_can_be_audited_and_is_not_flagged(make_run, name, monkeypatch):
    found = audit_mechanism_of(make_run, monkeypatch, name)
    assert not found.violated, found.verdict
    assert all(0 <= each.proved <= each.claimed <= 4.0 for each in found.attacks)


def test_at_the_setting_of_the_table_its_sizes_are_said_in_the_report_and_for_programs(finished, monkeypatch):
    assert audit(finished, runs=400).tree()["sizes"]["measured_at_this_setting"] is False
    rows = tuple(row for row in stored_sizes() if row.setting.mechanism == "NoisyCounts")
    monkeypatch.setattr(audits, "sizes_for", lambda setting, schedule: Sizes(rows=rows, here=True))
    found = audit(finished, runs=400)
    facts = publish_audit(load_run(finished).folder, read_facts(finished), found)
    page, tree = render_html(facts), json.loads((finished / "public" / "audit.json").read_text())["sizes"]
    assert tree["measured_at_this_setting"] is True
    for row, told in zip(rows, tree["faults"], strict=True):
        sentence = f"At these runs, {row.fault_in_words} would have been found with probability 0.9 or more"
        assert sentence in page
        assert sentence in tree["verdict"]
        assert (told["fault"], told["size"], told["probability"]) == (row.fault, row.size, 0.9)
    assert Facts.from_json(facts.to_json()) == facts


def test_a_run_that_draws_half_the_noise_it_was_charged_for_is_flagged(finished, monkeypatch):
    monkeypatch.setattr(
        gaussian_noise, "discrete_gaussian", lambda sigma, size, source: discrete_gaussian(sigma / 2, size, source)
    )
    found = audit(finished)
    assert found.violated
    assert found.attacks[1].proved > found.attacks[1].claimed
    assert found.verdict.startswith("VIOLATED: an attack on the mechanism proves more than was claimed")


def without_cutoff(monkeypatch):
    """Stages that are declined are not counted."""
    real = StableSparseVector.init
    monkeypatch.setattr(
        StableSparseVector, "init", lambda self, noise, stages_spent=0, asked=0: real(self, noise, 0, asked)
    )


def without_threshold_noise(monkeypatch):
    monkeypatch.setattr(StageNoise, "draw_bar", lambda self, noise: int(self.threshold))


@pytest.mark.parametrize(("fault", "runs"), [(without_cutoff, 1_000), (without_threshold_noise, 4_000)])
def test_a_run_of_a_faulty_mechanism_is_flagged(make_run, monkeypatch, fault, runs):
    """Each fault of a stream, told apart: tests/audit/test_goodness_of_fit.py."""
    fault(monkeypatch)
    found = audit_mechanism_of(make_run, monkeypatch, "StableSparseVector", runs=runs)
    assert found.violated
    assert found.verdict.startswith("VIOLATED")


def test_a_stage_that_was_charged_less_than_it_loses_is_flagged_by_an_exact_sum(make_run, monkeypatch):
    priced = StageNoise.event
    monkeypatch.setattr(
        StageNoise, "event",
        lambda self, cutoff: priced(replace(self, query_scale=1.01 * self.query_scale), cutoff),
    )  # fmt: skip
    found = audit_mechanism_of(make_run, monkeypatch, "StableSparseVector", runs=400)
    assert found.schedule.stage.violated
    assert "one sparse-vector stage loses more than was charged for it" in found.verdict


def test_a_run_whose_ledger_was_charged_for_more_noise_than_is_drawn_is_flagged(make_run, monkeypatch):
    root = make_run()
    priced = gaussian_noise.gaussian_event
    monkeypatch.setattr(
        "quorate.mechanisms.noisy_max.gaussian_event", lambda sigma, form: priced(2 * sigma, form)
    )  # the event says twice the σ that answers
    run(root)
    assert audit(root).violated


def test_a_teacher_that_remembers_what_other_teachers_saw_is_flagged(finished, monkeypatch):
    """Somebody scales the pooled rows before they are cut into shards."""
    task = load_run(finished).task
    real = module.train_teachers

    def pooled(teacher, X, *args, **how):
        return real(teacher, (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), *args, **how)

    assert not shards_of(task, seed=2)[0].violated
    monkeypatch.setattr(module, "train_teachers", pooled)
    found, why_not = shards_of(task, seed=2)
    assert why_not is None
    assert found.violated
    assert "fitted on the features of all rows together" in found.verdict


class Restless(ClassifierMixin, BaseEstimator):
    """Two trainings on the same rows differ."""

    def fit(self, X, y):
        import os

        self.classes_ = np.unique(y)
        self.noise_ = os.urandom(8)
        return self

    def predict(self, X):
        return np.resize(self.classes_, X.shape[0])


def test_shards_that_cannot_be_audited_are_said_not_to_have_been(finished, make_run):
    task = load_run(finished).task
    found, why_not = shards_of(replace(task, teacher=Restless()), seed=1)
    assert found is None
    assert "two trainings on the same rows gave different teachers" in (why_not or "")
    small = load_run(make_run("small", m=20)).task
    found, why_not = shards_of(small)
    assert found is None
    assert "two dozen public rows" in (why_not or "")


def test_shards_are_audited_without_a_look_at_private_rows(finished):
    """Persons of a run have several rows; a balanced partition claims replacements alone."""
    task = load_run(finished).task.without_private_rows()
    found, _ = shards_of(replace(task, unit="patient", partition="balanced"), seed=1)
    assert not found.violated
    assert {probe.change for probe in found.probes} == {"replace"}
    assert "one row" in {probe.touched for probe in found.probes}


def test_the_report_the_facts_and_a_file_of_its_own_say_what_was_found(finished):
    batch = load_run(finished)
    before = read_facts(finished)
    assert before.audit is None
    assert before.audit_command == "quorate audit run"
    found = audit(finished, runs=2_000)
    told = publish_audit(batch.folder, before, found)
    assert read_facts(finished) == told == Facts.from_json(told.to_json())
    assert (finished / "public" / "report.html").read_text() == render_html(told)
    assert [line.attack for line in told.audit.lines] == [each.name for each in found.attacks]
    assert {check.code: check.holds for check in told.checks}["audit"]
    assert {check.code: check.holds for check in told.checks}["shard audit"]
    written = json.loads((finished / "public" / "audit.json").read_text())
    assert written["violated"] is False
    assert written["ledger_head"] == before.provenance.ledger_head
    assert [each["claimed_epsilon"] for each in written["attacks"]] == [each.claimed for each in found.attacks]
    assert "not a proof" in written["verdict"]
    again = with_audit(told, found)
    assert again == told, "an earlier audit is replaced"
    attack = found.attacks[1]
    attacks = (found.attacks[0], replace(attack, proved=2 * attack.claimed))
    broken = replace(found, schedule=replace(found.schedule, attacks=attacks))
    assert broken.violated
    assert "the guarantee does not hold" in render_html(with_audit(told, broken))
    execute(batch, command="quorate run")  # written again, it has none
    assert not (finished / "public" / "audit.json").exists()
    assert read_facts(finished).audit is None


def test_what_was_not_run_is_not_audited(finished, make_run):
    with pytest.raises(PreconditionFailed, match="nothing to audit"):
        audit(make_run("never"))
    edit(finished, "count = 12", "count = 11")
    with pytest.raises(PreconditionFailed, match="holds no charge for what"):
        audit(finished)


def test_a_seeded_run_is_told_to_have_no_guarantee_whatever_is_found(make_run):
    root = make_run(**{"run.unsafe_noise_seed": 3})
    run(root)
    assert "it has no guarantee, whatever an audit finds" in audit(root, runs=400).verdict


def test_a_run_of_a_kind_that_no_attack_is_known_for_is_refused_and_not_taken_for_another_one():
    other = SimpleNamespace(settings=SimpleNamespace(method=SimpleNamespace(by="other")))
    with pytest.raises(PreconditionFailed, match="there is no audit of what other releases"):
        audit_run(other, AuditOptions())
