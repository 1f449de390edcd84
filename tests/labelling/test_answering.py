"""A stream's stages are counted before their thresholds exist, and no restart makes more of them than were paid for."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2_contingency
from tests.labelling.conftest import ask as ask_online
from tests.labelling.conftest import vector

from quorate.accounting import Repeated
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling import answering, label, stages_of
from quorate.labelling.online import OnlineAnswers
from quorate.labelling.questions import Memo
from quorate.ledger import Budget, Ledger, MemoryStore
from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, InteractiveNoisyMax, SoftLabel
from quorate.noise import OSNoise, SeededNoise
from quorate.release import NEVER_ASKED
from quorate.release.charge import ONLINE_ANSWER, STAGE
from quorate.types import Secret

FALSE_ALARM = 1e-6
DELTA = 1e-5
SURE, SPLIT = [100_000, 0], [50, 50]
SURE_SCORES, SPLIT_SCORES = [0.99] * 5000, [0.05, 0.35, 0.65, 0.95] * 25


def soft(cutoff=3, n_queries=1000):
    return SoftLabel(epsilon=1.0, delta=DELTA, cutoff=cutoff, n_queries=n_queries, bins=10)


def reserved(mechanism, purposes, store=None):
    """A ledger that may be left and opened again, and its one reservation."""
    ledger = Ledger(budget=Budget(6.0, 1e-4), store=store or MemoryStore())
    whole = {**purposes, **stages_of(mechanism)}
    return ledger, ledger.reserve(mechanism.event, delta=DELTA, purposes=whole, key="run")


def ask(stream, rows, noise, predictions=None):
    return stream.answer("label", len(rows), lambda _: rows, noise, predictions=predictions)[1]


@dataclass
class Recorder:
    """A stream and its reservation, both writing down what they do. Thresholds are numbered as they are drawn."""

    tests: Any
    total: int
    diary: list[str] = field(default_factory=list)
    marked: int = 0
    labels: int = 100

    def install(self, monkeypatch):
        noise = type(self.tests.stage_noise)
        real = noise.draw_bar

        def draw_bar(stage, source):
            self.diary.append("threshold")
            return real(stage, source)

        monkeypatch.setattr(noise, "draw_bar", draw_bar)

    @property
    def purposes(self):
        return {STAGE: self.total, "label": self.labels}

    def remaining(self, purpose):
        return self.total - self.marked

    def draw(self, purpose, count=1, *, stage=None, after=None, parts=None):
        first = self.marked
        if purpose == STAGE:
            assert self.marked + count <= self.total
            self.marked += count
            self.diary += ["mark"] * count
        return SimpleNamespace(purpose=purpose, first=first, count=count, stage=stage)

    def goes_on(self, stage, after):
        return True

    def store(self, block, answers):
        pass


def thresholds_without_a_mark(diary, total):
    """How many thresholds that could still answer were drawn before they were counted."""
    marks = thresholds = early = 0
    for act in diary:
        marks += act == "mark"
        thresholds += act == "threshold"
        early += act == "threshold" and min(thresholds, total) > marks
    return early


@pytest.mark.parametrize(
    ("mechanism", "rows"),
    [(vector(), [SURE, SPLIT] * 8), (soft(), [SURE_SCORES[:1000], SPLIT_SCORES] * 8)],
    ids=["sparse vector", "soft label"],
)
def test_every_stage_is_counted_before_its_threshold_exists(monkeypatch, mechanism, rows):
    tests = mechanism.sparse_vector
    recorder = Recorder(tests, tests.cutoff)
    recorder.install(monkeypatch)
    stream = answering(mechanism, recorder)
    for row in rows:
        ask(stream, [np.array(row)], OSNoise())
        assert thresholds_without_a_mark(recorder.diary, tests.cutoff) == 0
    assert recorder.marked == tests.cutoff


def test_that_test_catches_a_stream_that_draws_first():
    assert thresholds_without_a_mark(["threshold", "mark"], 4) == 1
    assert thresholds_without_a_mark(["mark", "threshold", "threshold", "mark"], 4) == 1


def test_when_no_stage_is_left_nothing_more_is_drawn(monkeypatch):
    mechanism = vector(cutoff=2)
    _, reservation = reserved(mechanism, {"label": 100})
    reservation.draw(STAGE, 2)  # by processes that ended
    recorder = Recorder(mechanism, 2)
    recorder.install(monkeypatch)
    noise = SimpleNamespace(words=lambda n: pytest.fail("noise was drawn"), seeded=False, at=lambda *_: noise)
    stream = answering(mechanism, reservation)
    assert ask(stream, [np.array(SURE)] * 5, noise) == [NEVER_ASKED] * 5
    assert recorder.diary == []


@pytest.mark.heavy
def test_a_soft_label_counts_two_stages_more_than_the_open_one_at_first():
    """One query may end the open stage and the next one, and so opens two."""
    mechanism = soft(cutoff=4)
    _, reservation = reserved(mechanism, {"label": 100})
    stream = answering(mechanism, reservation)
    ask(stream, [np.array(SURE_SCORES)], OSNoise())
    assert 8 - reservation.remaining(STAGE) == 3
    ask(stream, [np.array(SURE_SCORES)] * 5, OSNoise())
    assert 8 - reservation.remaining(STAGE) == 3  # nothing was ended
    ask(stream, [np.array(SPLIT_SCORES)], OSNoise())
    ask(stream, [np.array(SURE_SCORES)], OSNoise())
    assert 8 - reservation.remaining(STAGE) == 5


def test_after_a_restart_the_open_stage_is_spent():
    mechanism, store = vector(cutoff=6), MemoryStore()
    for counted in (2, 4, 6):  # the open stage, and the one that the next query may open
        ledger, reservation = reserved(mechanism, {"label": 100}, store)
        assert ask(answering(mechanism, reservation), [np.array(SURE)] * 3, OSNoise()) == [0] * 3
        assert 6 - reservation.remaining(STAGE) == counted
        ledger.close()
    ledger, reservation = reserved(mechanism, {"label": 100}, store)
    assert ask(answering(mechanism, reservation), [np.array(SURE)] * 3, OSNoise()) == [NEVER_ASKED] * 3
    ledger.close()


def test_a_run_of_labels_and_then_online_answers_share_the_stages():
    mechanism = vector(cutoff=4)
    _, reservation = reserved(mechanism, {"label": 3, ONLINE_ANSWER: 3})
    votes = Secret(np.array([SURE, SPLIT, SURE]))
    released = label(votes, mechanism, reservation, OSNoise())
    assert released.codes.tolist() == [0, -1, 0]
    assert reservation.remaining(STAGE) == 1
    online = OnlineAnswers(
        lambda rows: Secret(np.array([SPLIT, SURE, SURE])[rows]), mechanism, reservation, OSNoise(), Memo(), 2
    )
    answers = ask_online(online, [b"a", b"b", b"c"])
    assert answers.tolist() == [-1, NEVER_ASKED, NEVER_ASKED]  # the first ended the last stage
    with pytest.raises(BudgetExhausted, match="is closed: all 4 of its stages are used up"):
        ask_online(online, [b"d"])
    assert ask_online(online, [b"a"]).tolist() == [-1]  # what was declined is still free to ask


def patterns(answer_stream, rows, runs):
    found: dict[tuple[int, ...], int] = {}
    for seed in range(runs):
        pattern = tuple(answer_stream(rows, seed))
        found[pattern] = found.get(pattern, 0) + 1
    return found


def by_steps(mechanism, offset):
    def run(rows, seed):
        noise = SeededNoise(seed + offset)
        state, answers = mechanism.init(noise), []
        for row in rows:
            if not state.open:
                answers.append(NEVER_ASKED)
                continue
            state, answer = mechanism.step(state, row, noise)
            answers.append(-1 if answer is None else answer)
        return answers

    return run


def by_stream(mechanism, offset):
    total = mechanism.sparse_vector.cutoff
    return lambda rows, seed: ask(
        answering(mechanism, Recorder(None, total, labels=10)), rows, SeededNoise(seed + offset)
    )


def p_value(one, other, rows, runs=3000):
    first, second = patterns(one, rows, runs), patterns(other, rows, runs)
    table = np.array([[each.get(pattern, 0) for pattern in {*first, *second}] for each in (first, second)])
    common = table[:, table.sum(axis=0) >= 20]
    rest = table.sum(axis=1) - common.sum(axis=1)
    if rest.any():
        common = np.column_stack([common, rest])
    assert common.shape[1] > 2  # a law of some spread, or nothing was tested
    return chi2_contingency(common).pvalue


def close_rows():
    at = vector(2, 10).passing_dist(0.5)
    return [np.array([2 * at + 1 + shift, 0]) for shift in (0, 40, -40, 20)]


@pytest.mark.heavy
def test_a_streams_answers_have_the_law_of_the_mechanisms_own_steps():
    mechanism = vector(2, 10)
    assert p_value(by_stream(mechanism, 0), by_steps(mechanism, 10**6), close_rows()) > FALSE_ALARM


@pytest.mark.heavy
def test_that_test_catches_a_stream_with_a_stage_too_many():
    assert p_value(by_stream(vector(1, 10), 0), by_steps(vector(2, 10), 10**6), close_rows()) < FALSE_ALARM


@pytest.mark.heavy
def test_soft_labels_have_the_law_of_the_mechanisms_own_steps():
    mechanism = soft(1, 10)
    at = mechanism.sparse_vector.passing_dist(0.5)
    rows = [np.repeat([0.55, 0.21], [at * 2 + 20, 20]), np.repeat([0.29, 0.31], [at, at + 30])] * 2
    assert p_value(by_stream(mechanism, 0), by_steps(mechanism, 10**6), rows, runs=1500) > FALSE_ALARM


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("mechanism", "purposes"),
    [
        (soft(3), {"label": 5, STAGE: 3}),
        (vector(4, 10), {"label": 10}),
        (vector(4, 10), {"label": 10, STAGE: 3}),
        (vector(4, 10), {"label": 10, STAGE: 5}),
        (vector(4, 10), {"label": 11, STAGE: 4}),
        (vector(4, 10), {"label": 6, "online answer": 5, STAGE: 4}),
    ],
    ids=["half the stages", "no stages", "too few", "too many", "too many queries", "too many queries together"],
)
def test_a_reservation_that_does_not_fit_a_stream_is_refused(mechanism, purposes):
    ledger = Ledger(budget=Budget(2.0, 1e-4))
    reservation = ledger.reserve(mechanism.event, delta=DELTA, purposes=purposes, key="run")
    with pytest.raises(InvalidParameter, match=f"does not fit a run of {type(mechanism).__name__}"):
        answering(mechanism, reservation)
    assert all(reservation.remaining(purpose) == count for purpose, count in purposes.items())


def test_a_soft_label_has_two_stages_for_each_query_it_may_decline_and_labels_have_none():
    assert stages_of(soft(3)) == {STAGE: 6}
    assert stages_of(GaussianNoisyMax(sigma=5.0)) == {}


INTERACTIVE = InteractiveNoisyMax(
    threshold=60.0, sigma_threshold=15.0, sigma_answer=8.0, n_teachers=100, confidence=0.9, form="binary"
)
N = 60


class Student:
    """Predicts from what was released; remembers how much it was shown each time."""

    def __init__(self):
        self.shown = []

    def __call__(self, released):
        self.shown.append(int((~released.interrupted).sum()))
        p = 0.5 + 0.4 * np.tanh((released.codes == 1).sum() - (released.codes == 0).sum())
        return np.tile([1 - p, p], (N, 1))


def interactive_run(votes, student, *, die_after=None, store=None, mechanism=INTERACTIVE, block=4):
    store = store or MemoryStore()
    with Ledger(budget=Budget(80.0, 1e-3), store=store) as ledger:
        reservation = ledger.reserve(Repeated(mechanism.event, N), delta=DELTA, purposes={"label": N}, key="run")

        def progress(done, total):
            if done == die_after:
                raise KeyboardInterrupt

        how = {"block": block, "predict": student, "progress": progress}
        return label(Secret(votes(N, n_teachers=100, seed=3)), mechanism, reservation, SeededNoise(5), **how)


@pytest.mark.heavy
def test_a_student_is_fitted_anew_after_each_fifth(votes):
    student = Student()
    interactive_run(votes, student)
    assert student.shown == [12, 24, 36, 48]


@pytest.mark.heavy
def test_the_first_fifth_is_answered_as_by_a_confident_mechanism(votes):
    confident = ConfidentNoisyMax(threshold=60.0, sigma_threshold=15.0, sigma_answer=8.0, form="binary")
    first = interactive_run(votes, Student()).codes[:12]
    assert first.tolist() == interactive_run(votes, None, mechanism=confident).codes[:12].tolist()
    never = interactive_run(votes, lambda released: None).codes  # no answer yet, no student
    assert never.tolist() == interactive_run(votes, None, mechanism=confident).codes.tolist()
    assert never.tolist() != interactive_run(votes, Student()).codes.tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("die_after", [4, 12, 16, 28, 48, 56])
def test_a_resumed_interactive_run_repeats_an_unbroken_one(votes, die_after):
    whole = interactive_run(votes, Student())
    store, before, after = MemoryStore(), Student(), Student()
    with pytest.raises(KeyboardInterrupt):
        interactive_run(votes, before, die_after=die_after, store=store)
    resumed = interactive_run(votes, after, store=store)
    assert resumed.codes.tolist() == whole.codes.tolist()
    assert not resumed.interrupted.any()
    assert after.shown[:1] == ([12] if die_after < 12 else [die_after - die_after % 12])


def test_other_mechanisms_are_never_shown_a_prediction():
    ledger = Ledger(budget=Budget(20.0, 1e-4))
    mechanism = GaussianNoisyMax(sigma=5.0, form="binary")
    event = Repeated(mechanism.event, 2)
    reservation = ledger.reserve(event, delta=DELTA, purposes={"label": 2}, key="run")
    rows = np.array([[0, 90], [90, 0]])
    assert ask(answering(mechanism, reservation), rows, SeededNoise(0), np.full((2, 2), 0.5)) == [1, 0]


def test_soft_labels_are_read_as_scores_and_classes():
    mechanism = SoftLabel(epsilon=5.0, delta=DELTA, cutoff=1, n_queries=10, bins=4)
    _, reservation = reserved(mechanism, {"label": 4})
    scores = np.array([[0.9] * 400, [0.1] * 400, [0.05, 0.3, 0.6, 0.9] * 100, [0.9] * 400])
    released = label(Secret(scores), mechanism, reservation, SeededNoise(1))
    assert released.declined.tolist() == [False, False, True, False]
    assert released.never_asked.tolist() == [False, False, False, True]  # the run ended with the third query
    assert released.answers.tolist() == [7, 1, 0, 0]
    assert released.codes.tolist() == [1, 0, -1, -1]
    assert released.holds_values
    np.testing.assert_array_equal(
        released.vote_shares(400), [[0.125, 0.875], [0.875, 0.125], [np.nan] * 2, [np.nan] * 2]
    )
    assert released.share_noise(400) == pytest.approx(np.std(np.linspace(0, 1 / 4, 100_001)), rel=1e-4)


@given(code=st.integers(1, 19))
def test_a_score_of_exactly_one_half_is_the_first_class(code):
    mechanism = soft()
    expected = 1 if code / 20 > 0.5 else 0
    assert mechanism.answers.codes(np.array([code, -1])).tolist() == [expected, -1]


@pytest.mark.heavy
def test_a_fresh_stage_answers_as_often_as_the_stream_says():
    mechanism = vector(1, 10)
    at = mechanism.passing_dist(0.5)
    row, run = np.array([2 * at + 1, 0]), by_stream(mechanism, 5)
    answered = sum(run([row], seed)[0] == 0 for seed in range(2000))
    assert binomtest(answered, 2000, mechanism.pass_probability(at)).pvalue > FALSE_ALARM
