"""How small a fault is found: every row of the stored table can be measured again, and one that says too much fails."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.released import may_lack

from quorate.audit import answers_at_threshold, audit_answers, audit_schedule, hard_votes
from quorate.audit.detectable import DetectableSize, read_sizes, setting_of, sizes_for, stored_sizes, write_sizes
from quorate.audit.many_answers import SumOfAnswers
from quorate.audit.measured_sizes import (
    CONFIDENCE,
    DELTA,
    ERROR,
    FAULTS,
    N_CLASSES,
    N_TEACHERS,
    PROBABILITY,
    RUNS,
    BareAnswers,
    FaultyStages,
    _last,
    _passed,
    _strongest,
    audits_needed,
    bare_answers,
    less_noise,
    measure,
    noise_times,
    reference,
    rows_of,
)
from quorate.audit.plans import PlannedComparison, planned
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    DECLINED,
    REGISTERED,
    ConfidentNoisyMax,
    GaussianNoisyMax,
    NoisyCounts,
    NoisySum,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import SeededNoise

ROWS = stored_sizes()


def row_of(name: str, fault: str) -> DetectableSize:
    (row,) = [row for row in ROWS if (row.setting.mechanism, row.fault) == (name, fault)]
    return row


def found_again(row: DetectableSize, audits: int) -> bool:
    """Whether the first audits of those that were counted find the fault that a row says is found."""
    measured_at = reference(row.setting.mechanism)
    (part,) = [part for part in measured_at.parts if part.name == row.attack]
    return all(measured_at.finds(row.fault, row.size, part, seed) for seed in range(audits))


def smaller(row: DetectableSize) -> DetectableSize:
    """A row that says that half the fault is found."""
    half = row.size // 2 if row.fault == "less noise" else 2 * row.size
    return replace(row, size=half)


def test_every_registered_mechanism_and_every_kind_of_fault_has_one_row():
    measured = {row.setting.mechanism for row in ROWS}
    assert sorted((row.setting.mechanism, row.fault) for row in ROWS) == sorted(
        (name, fault) for name in REGISTERED for fault in FAULTS if name in measured
    )
    assert measured - set(REGISTERED) == set()
    may_lack(set(REGISTERED) - measured)


@pytest.mark.heavy
@pytest.mark.parametrize("name", REGISTERED)
def test_a_row_stands_at_the_setting_the_runs_and_the_confidence_of_an_audit_as_it_is_made_now(name):
    measured_at = reference(name)
    trials = {part.name: part.runs - part.runs // 2 for part in measured_at.parts}
    for row in (each for each in ROWS if each.setting.mechanism == name):
        assert row.setting.same_as(measured_at.setting)
        assert row.trials == trials[row.attack]
        assert (row.runs, row.confidence, row.share) == (RUNS, CONFIDENCE, measured_at.share)
        assert row.size in FAULTS[row.fault].sizes
        assert (row.probability, row.certainty) == (PROBABILITY, 1 - ERROR)
        assert row.proved >= row.probability if row.found else row.size == FAULTS[row.fault].sizes[0]


@pytest.mark.heavy
@pytest.mark.heavy_cases(8)
@pytest.mark.parametrize("row", [row for row in ROWS if row.found], ids=lambda row: f"{row.setting.mechanism}")
def test_every_row_is_found_again_and_half_its_fault_is_not(row):
    assert found_again(row, 12)
    assert not found_again(smaller(row), 12)


@pytest.mark.heavy
def test_a_correct_mechanism_is_not_found():
    for name in ("PrivatePrediction", "NoisySum"):
        measured_at = reference(name)
        assert not any(
            part.audit(part.audited(measured_at.mechanism), measured_at.share, delta=DELTA, seed=1).violated
            for part in measured_at.parts
        )


def test_the_table_is_read_as_it_was_written_and_something_else_is_refused():
    assert read_sizes(write_sizes(ROWS)) == ROWS
    for wrong in ("", "{}", '{"format": 2, "rows": []}', '{"format": 1, "rows": [{}]}', "[]"):
        with pytest.raises(InvalidParameter, match="sizes must be a JSON object"):
            read_sizes(wrong)


def sizes_of(mechanism: Any, n_teachers: int = N_TEACHERS, **how: Any) -> Any:
    event = mechanism.schedule(1)
    common = {"n_teachers": n_teachers, "n_classes": N_CLASSES, "delta": DELTA}
    audit = audit_schedule(mechanism, event, **common, **{"confidence": CONFIDENCE, "runs": RUNS, "seed": 0} | how)
    return sizes_for(setting_of(mechanism, event, **common), audit)


@pytest.mark.heavy
def test_rows_hold_for_an_audit_of_their_setting_with_as_many_runs_and_no_more_confidence():
    mechanism = reference("PrivatePrediction").mechanism
    rows = tuple(row for row in ROWS if row.setting.mechanism == "PrivatePrediction")
    for sizes in (sizes_of(mechanism), sizes_of(mechanism, confidence=0.95), sizes_of(mechanism, n_teachers=40)):
        assert sizes.here
        assert sizes.rows == rows
    for sizes in (
        sizes_of(mechanism, runs=RUNS - 2),
        sizes_of(mechanism, confidence=1 - 1e-7),
        sizes_of(PrivatePrediction(1.001 * mechanism.epsilon)),  # type: ignore[attr-defined]
    ):
        assert not sizes.here
        assert sizes.rows == rows


@pytest.mark.heavy
def test_of_a_mechanism_that_was_never_measured_nothing_is_said():
    class Own(PrivatePrediction):
        pass

    for name in ("Own", "PrivatePrediction"):
        Own.__name__ = name
        sizes = sizes_of(Own(1.0), runs=400)
        assert not sizes.here
        assert sizes.rows == ()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", [row.setting.mechanism for row in ROWS if row.setting.n_teachers is None][::2])
def test_where_the_number_of_teachers_is_left_out_it_changes_nothing(name):
    """Sparse vectors are compared on votes of their own; others answer from differences of votes alone."""
    mechanism: Any = reference(name).mechanism
    if getattr(mechanism, "sparse_vector", None) is not None:
        parts = (planned(mechanism, mechanism.event, n, N_CLASSES, RUNS) for n in (N_TEACHERS, 3_000))
        here, there = (next(part for part in each if isinstance(part, PlannedComparison)) for each in parts)
        assert np.array_equal(here.expected.stream, there.expected.stream)
        return
    (here,), (there,) = (hard_votes(mechanism, n_teachers, N_CLASSES) for n_teachers in (N_TEACHERS, 40))
    shift = {int(step) for a, b in zip(here.neighbours, there.neighbours, strict=True) for step in np.unique(a - b)}
    assert len(shift) == 1
    answers = [
        np.asarray(mechanism.release_many(np.tile(side, (500, 1)), SeededNoise(3)))
        for side in (here.neighbours[0], there.neighbours[0])
    ]
    assert len(np.unique(answers[0] - answers[1])) == 1


QUERIES = [name for name, kind in REGISTERED.items() if not hasattr(kind, "step")]


@pytest.mark.heavy
@pytest.mark.parametrize("name", QUERIES)
def test_a_fault_of_no_size_is_none(name):
    mechanism = reference(name).mechanism
    counts = np.tile(hard_votes(mechanism, N_TEACHERS, N_CLASSES)[-1].neighbours[0], (300, 1))
    expected = mechanism.release_many(counts, SeededNoise(5))  # type: ignore[attr-defined]
    for same in (noise_times(mechanism, 1.0), BareAnswers(mechanism, 301)):
        assert np.array_equal(same.release_many(counts, SeededNoise(5)), expected)


def one_votes(mechanism: Any, n: int) -> tuple[Any, Any]:
    """Votes of a hard pair, and their answers without noise."""
    counts = np.tile(hard_votes(mechanism, N_TEACHERS, N_CLASSES)[0].neighbours[1], (n, 1))
    return counts, noise_times(mechanism, 1e-9).release_many(counts, SeededNoise(5))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", QUERIES)
def test_with_less_noise_answers_are_nearer_to_those_without_and_one_in_so_many_is_bare(name):
    mechanism: Any = reference(name).mechanism
    counts, exact = one_votes(mechanism, 4_000)
    assert len(np.unique(exact, axis=0)) == 1
    far, near = (
        float(np.abs(each.release_many(counts, SeededNoise(6)) - exact).mean())
        for each in (mechanism, less_noise(mechanism, 80))
    )
    assert near < far - 0.01

    counts, exact = one_votes(mechanism, 40)
    answers = bare_answers(mechanism, 4).release_many(counts, SeededNoise(6))
    noisy, bare = mechanism.release_many(counts, SeededNoise(6)), np.arange(40) % 4 == 3
    assert np.array_equal(answers[bare], exact[bare])
    assert np.array_equal(answers[~bare], noisy[~bare])


def sparse(calibration: Any = "tight") -> StableSparseVector:
    return StableSparseVector(1.0, 1e-5, 3, 200, calibration)


@pytest.mark.heavy
@pytest.mark.parametrize("calibration", ["tight", "lzcw21", "btt18"])
def test_a_sparse_vector_with_a_fault_of_no_size_has_the_exact_distribution(calibration):
    mechanism = sparse(calibration)
    expected = answers_at_threshold(mechanism)
    for same in (FaultyStages(mechanism), FaultyStages(mechanism, every=10**9)):
        assert not audit_answers(same, expected, CONFIDENCE, 12_000, seed=1).violated
    for other in (FaultyStages(mechanism, 0.7), FaultyStages(mechanism, every=3)):
        assert audit_answers(other, expected, CONFIDENCE, 12_000, seed=1).violated


def test_a_sparse_vector_without_noise_compares_with_its_threshold_and_stops():
    mechanism = sparse()
    leads = [int(mechanism.threshold) + step for step in (1, 0, 1, 0, 0, 1)]
    stream = np.array([[2 * lead + 1, 0] for lead in leads])
    for bare in (FaultyStages(mechanism, 1e-9), FaultyStages(mechanism, every=1)):
        assert bare.release(stream, SeededNoise(0)).tolist() == [0, DECLINED, 0, DECLINED, DECLINED, DECLINED]


def test_a_faulty_copy_of_soft_labels_is_that_of_its_sparse_vector():
    mechanism = SoftLabel(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=50, bins=10)
    assert less_noise(mechanism, 25) == FaultyStages(mechanism.sparse_vector, 0.75)
    assert bare_answers(mechanism, 7) == FaultyStages(mechanism.sparse_vector, every=7)


def test_sums_of_the_values_that_a_copy_with_a_fault_releases_are_sums_of_values():
    runs = np.full((3, 11, 2), 50)
    noisy = NoisyCounts(9.0)
    told = SumOfAnswers(BareAnswers(noisy, 1)).release_many(runs, SeededNoise(3))  # type: ignore[arg-type]
    assert told.tolist() == [[550, 550]] * 3
    classes = SumOfAnswers(BareAnswers(GaussianNoisyMax(9.0), 1)).release_many(runs, SeededNoise(3))  # type: ignore[arg-type]
    assert classes.tolist() == [[0, 11, 0]] * 3


def test_scales_are_multiplied_and_prices_divided():
    assert noise_times(ConfidentNoisyMax(200, 150, 40), 0.5) == ConfidentNoisyMax(200, 75, 20)
    assert noise_times(PrivatePrediction(1.0), 0.5) == PrivatePrediction(2.0)


@pytest.mark.parametrize("form", ["single", "shares"])
def test_one_contribution_moves_between_the_sums_that_are_attacked(form):
    mechanism = NoisySum(scale=2.0, grid=10, form=form)
    for n_teachers in (1, 2, 250):
        (votes,) = hard_votes(mechanism, n_teachers, 2)
        zero, one = votes.neighbours
        assert zero.min() >= 0
        assert one.min() >= 0
        assert (one - zero).tolist() == ([-10] if form == "single" else [-10, 10])
        mechanism.release(zero, SeededNoise(0))


def test_so_many_audits_that_a_fault_found_too_rarely_passes_with_the_error_at_most():
    for error in (0.05, 0.025, 0.0125):
        assert PROBABILITY ** audits_needed(error) <= error < PROBABILITY ** (audits_needed(error) - 1)


def wrong_share(audits: Callable[[float], int], monkeypatch: pytest.MonkeyPatch, start: int) -> float:
    """How often the order of tries ends on a size that is found with less than probability 0.9."""
    monkeypatch.setattr("quorate.audit.measured_sizes.audits_needed", audits)
    p = [1.0, 1.0, 0.99, 0.89, 0.89, 0.5, 0.0]
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(4_000):
        place, _ = _passed(start, len(p), lambda place, n: bool((rng.random(n) < p[place]).all()))
        ends.append(place is not None and p[place] < PROBABILITY)
    return float(np.mean(ends))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("start", [1, 3, 5])
def test_a_size_is_wrong_as_rarely_as_is_said_wherever_the_search_begins(monkeypatch, start):
    assert wrong_share(audits_needed, monkeypatch, start) < ERROR + 4.9 * np.sqrt(ERROR / 4_000)


def test_with_too_few_audits_that_test_would_fail(monkeypatch):
    assert wrong_share(lambda error: audits_needed(error) // 3, monkeypatch, 3) > 2 * ERROR


def test_the_search_finds_the_last_place_or_none_and_the_attack_that_reaches_furthest():
    assert _passed(2, 9, lambda place, audits: False)[0] is None  # not even the grossest fault is found
    assert _passed(0, 9, lambda place, audits: True)[0] == 8
    assert [_last(0, 20, lambda place, border=border: place <= border) for border in (0, 7, 19)] == [0, 7, 19]
    reach = {"a": 3, "b": 11, "c": 11, "d": 2}
    assert _strongest(tuple(reach), 20, lambda place, part: place <= reach[part]) == "b"  # type: ignore[index, arg-type]


def test_rows_that_were_kept_are_not_measured_again_unless_their_setting_has_changed(monkeypatch):
    asked = []

    def fake(name: str, fault: str) -> DetectableSize:
        asked.append((name, fault))
        return row_of(name, fault)

    monkeypatch.setattr("quorate.audit.measured_sizes.measure", fake)
    names = ("NoisySum", "PrivatePrediction")
    kept = [row_of("NoisySum", "less noise"), row_of("PrivatePrediction", "less noise")]
    kept[1] = replace(kept[1], setting=replace(kept[1].setting, epsilon=2.0))
    assert list(rows_of(names, kept)) == [row_of(name, fault) for name in names for fault in FAULTS]
    assert asked == [("NoisySum", "bare answers"), ("PrivatePrediction", "less noise"),
                     ("PrivatePrediction", "bare answers")]  # fmt: skip


@pytest.mark.heavy
def test_a_row_measured_now_is_the_stored_one():
    assert measure("PrivatePrediction", "bare answers") == row_of("PrivatePrediction", "bare answers")
