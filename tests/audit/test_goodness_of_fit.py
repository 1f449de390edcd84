"""Answers against their exact distribution: the sums are right, correct mechanisms agree, and each fault shows."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest

from quorate.audit import (
    DiscreteLaplaceLaw,
    SparseVectorForm,
    StepByStep,
    answers_after_cutoff,
    answers_at_threshold,
    audit_answers,
)
from quorate.audit.exact_sparse_vector import can_be_summed, form_of_stages, pattern_distribution
from quorate.audit.goodness_of_fit import _chosen, _events, _probability
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, StableSparseVector, distance_to_instability
from quorate.noise import NoiseSource
from quorate.types import IntArray

CONFIDENCE = 1 - 1e-6
CALIBRATIONS = ("tight", "lzcw21", "btt18")


def sparse(cutoff: int = 3, calibration: Any = "tight", n_queries: int = 200) -> StableSparseVector:
    return StableSparseVector(1.0, 1e-5, cutoff, n_queries, calibration)


@dataclass(frozen=True)
class Written:
    """A sparse vector written from the papers, with its faults as switches."""

    mechanism: StableSparseVector
    scale: float = 1.0
    threshold_noise: bool = True
    resets: bool = True
    cuts_off: bool = True
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        stage = self.mechanism.stage_noise
        stage = replace(
            stage, threshold_scale=self.scale * stage.threshold_scale, query_scale=self.scale * stage.query_scale
        )
        noisy = stage.draw_noisy(distance_to_instability(counts), noise)
        answers, declined = counts.argmax(axis=1), 0
        bar = stage.draw_bar(noise) if self.threshold_noise else int(stage.threshold)
        for query, value in enumerate(noisy):
            if self.cuts_off and declined == self.mechanism.cutoff:
                answers[query] = DECLINED
            elif value <= bar:
                answers[query], declined = DECLINED, declined + 1
                if self.resets and self.threshold_noise:
                    bar = stage.draw_bar(noise)
        return answers


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("cutoff", [1, 2, 4])
def test_patterns_have_the_probability_of_the_definition(calibration, cutoff):
    form = form_of_stages(sparse(cutoff, calibration))
    values = [form.threshold + step for step in (3, -2, 5, 0)]
    patterns, probabilities = pattern_distribution(form, values)
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    assert len({tuple(pattern) for pattern in patterns.tolist()}) == len(patterns)
    for pattern, p in zip(patterns.tolist(), probabilities.tolist(), strict=True):
        asked, declined = len(pattern), 0
        for place, passed in enumerate(pattern):
            declined += not passed
            if declined == cutoff:
                asked = place + 1
                break
        answers = [bool(passed) for passed in pattern[:asked]]
        assert p == pytest.approx(np.exp(form.log_probability(values[:asked], answers)), rel=1e-6, abs=1e-12)


def test_a_form_whose_stages_are_not_independent_is_refused():
    lap = DiscreteLaplaceLaw(2.0)
    for wrong in ({"costly": "above", "resets": True}, {"costly": "below", "resets": False}):
        with pytest.raises(InvalidParameter, match="stages are independent"):
            pattern_distribution(SparseVectorForm(threshold_noise=lap, query_noise=lap, **wrong), [0])  # type: ignore[arg-type]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("cutoff", [1, 2, 50])
def test_the_exact_loss_of_a_stage_is_what_is_charged_for_it_and_not_more(calibration, cutoff):
    mechanism = sparse(cutoff, calibration)
    loss = form_of_stages(mechanism).stage_loss()
    assert 0.999 * mechanism.stage_epsilon < loss <= mechanism.stage_epsilon


@pytest.mark.heavy
def test_the_quick_loss_of_a_stage_is_that_of_the_whole_family():
    form = form_of_stages(sparse(2))
    assert form.stage_loss() == pytest.approx(form.worst_loss(free=(4,)).loss / 2, rel=1e-6)


@pytest.mark.heavy
def test_noise_too_wide_for_a_sum_is_left_out():
    assert can_be_summed(sparse(50, "btt18"))
    assert not can_be_summed(StableSparseVector(1e-4, 1e-5, 50, 200))


def test_where_no_query_follows_the_cutoff_nothing_is_expected_of_one():
    assert answers_after_cutoff(sparse(3, n_queries=3)) is None
    assert answers_after_cutoff(sparse(3, n_queries=4)).stream.shape == (4, 2)  # type: ignore[union-attr]


@pytest.mark.heavy
@pytest.mark.parametrize("cutoff", [1, 5])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_the_shipped_mechanism_agrees_as_one_stream_and_step_by_step(calibration, cutoff):
    mechanism = sparse(cutoff, calibration)
    for asked in (mechanism, StepByStep(mechanism), Written(mechanism)):
        found = audit_answers(asked, answers_at_threshold(mechanism), CONFIDENCE, 700, seed=1)
        assert not found.violated, found.verdict
    for asked, spent in ((mechanism, 0), (StepByStep(mechanism, cutoff - 1), cutoff - 1)):
        expected = answers_after_cutoff(mechanism, spent)
        assert expected is not None
        assert not audit_answers(asked, expected, CONFIDENCE, 60, seed=1).violated


@pytest.mark.heavy
def test_false_alarms_are_as_rare_as_they_are_said_to_be():
    """At 90 % at most a tenth of audits flags a correct mechanism; more than 25 of 100 happen with probability 1e-5."""
    mechanism = sparse(2)
    expected = answers_at_threshold(mechanism)
    alarms = sum(audit_answers(mechanism, expected, 0.9, 80, seed=seed).violated for seed in range(100))
    assert alarms <= 25


FAULTS: list[dict[str, Any]] = [{"threshold_noise": False}, {"resets": False}, {"scale": 0.7}, {"scale": 1.4}]
# Each fault and each calibration is in the first four.
CELLS = [(at, at % len(CALIBRATIONS)) for at in range(4)]
CELLS += [cell for cell in product(range(4), range(len(CALIBRATIONS))) if cell not in CELLS]


@pytest.mark.heavy
@pytest.mark.heavy_cases(6)
@pytest.mark.parametrize(("fault", "calibration"), [(FAULTS[at], CALIBRATIONS[of]) for at, of in CELLS], ids=str)
def test_faulty_noise_is_found(fault, calibration):
    mechanism = sparse(5, calibration)
    found = audit_answers(Written(mechanism, **fault), answers_at_threshold(mechanism), CONFIDENCE, 6_000, seed=2)
    assert found.violated, found.verdict
    assert "do not have the distribution that was priced" in found.verdict
    assert 0 < found.distance <= found.observed - found.expected


def test_an_answer_after_the_cutoff_is_found_in_a_hundred_runs():
    mechanism = sparse(5)
    expected = answers_after_cutoff(mechanism)
    assert expected is not None
    assert audit_answers(Written(mechanism, cuts_off=False), expected, CONFIDENCE, 100, seed=2).violated


@pytest.mark.parametrize(
    "told",
    [lambda answers: np.where(answers == 0, 1, answers), lambda answers: answers[:-1]],
    ids=["a label that is not the plurality", "fewer answers than queries"],
)
def test_an_answer_that_nobody_expects_is_found(told, monkeypatch):
    mechanism, release = sparse(5), Written.release
    monkeypatch.setattr(Written, "release", lambda *asked: told(release(*asked)))
    found = audit_answers(Written(mechanism), answers_at_threshold(mechanism), CONFIDENCE, 400, seed=2)
    assert found.violated
    assert found.event == "none of the expected answers"


def test_an_event_is_chosen_on_the_first_half_alone():
    """The same first half gives the same event whatever follows."""
    expected = answers_at_threshold(sparse(2))
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, len(expected.patterns), 300) for _ in range(2))
    name, event = _chosen(expected, first, second)
    again, same = _chosen(expected, first.copy(), second.copy())
    assert (name, event.tolist()) == (again, same.tolist())
    assert any(name == each for each, _ in _events(expected, first))


def test_the_probability_of_an_event_is_rounded_up_and_that_of_nothing_is_nothing():
    expected = answers_at_threshold(sparse(2))
    every = np.append(np.ones(len(expected.patterns), dtype=bool), True)
    assert _probability(expected, every) == 1.0
    assert _probability(expected, ~every) == 0.0
    one = np.zeros_like(every)
    one[0] = True
    assert _probability(expected, one) > expected.probabilities[0]


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"runs": 39}, {"mechanism": object()}])
def test_wrong_arguments_are_refused(wrong):
    mechanism = sparse(2)
    given = {"mechanism": mechanism, "expected": answers_at_threshold(mechanism), "runs": 100} | wrong
    with pytest.raises(InvalidParameter):
        audit_answers(**given)  # type: ignore[arg-type]
