"""What a known learning curve makes of a plan, beside runs on tasks that the rules do not draw; and its twins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import quorate
from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.errors import InvalidParameter
from quorate.mechanisms import ConfidentNoisyMax, NoisyCounts
from quorate.planning.plan_row import Grid, PlanRow, vote_rows
from quorate.planning.public_side import public_side, rehearsals_as_hard
from quorate.planning.rehearsal import made_up
from quorate.planning.rehearsal.made_up import AS_HARD, AsHard, LearningCurve, Line, MeanOf, Rule, lucky, ruled_labels
from quorate.run.expectation import Expected
from quorate.run.public_facts import PublicFacts
from quorate.voting.models import built_in

N, M, TEST, K = 4_000, 200, 3_000, 100
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
STUDENT = built_in("logistic", "student")  # the default one compares models of the votes, which takes longer
VOTES: dict[str, Any] = {"mechanisms": ["NoisyCounts"], "n_teachers": [K], "student": STUDENT}


def student(accuracy: float, half: float = 0.0) -> Expected:
    return Expected(accuracy=accuracy, low=accuracy - half, high=accuracy + half, basis="rules on the pool")


def by_line(right: Sequence[float], students: Sequence[Expected], known: float, *, doubt: float = 0.0) -> Expected:
    return Line(right, students, [1.0] * len(right), known, doubt).expected


RIGHT = (0.55, 0.6, 0.7, 0.8, 0.9)


def on_a_line(right: Sequence[float], half: float = 0.0) -> list[Expected]:
    return [student(float(expit(0.5 + 1.2 * logit(each))), half) for each in right]


@pytest.mark.parametrize("known", [0.5, 0.65, 0.95])
def test_rules_on_a_line_tell_what_lies_on_it_and_leave_nothing_open(known):
    told = by_line(RIGHT, on_a_line(RIGHT), known)
    truth = float(expit(0.5 + 1.2 * logit(known)))
    assert [told.low, told.accuracy, told.high] == pytest.approx(3 * [truth], abs=1e-9)


def test_a_range_counts_the_run_what_the_curve_leaves_open_and_how_far_rules_lie_off_the_line():
    exact = by_line(RIGHT, on_a_line(RIGHT, half=0.02), 0.7)
    assert exact.high - exact.low == pytest.approx(0.04)
    doubted = by_line(RIGHT, on_a_line(RIGHT), 0.7, doubt=0.05)
    ends = [by_line(RIGHT, on_a_line(RIGHT), known).accuracy for known in (0.65, 0.75)]
    assert [doubted.low, doubted.high] == pytest.approx(ends)
    off = [student(each.accuracy + (-1) ** at * 0.02) for at, each in enumerate(on_a_line(RIGHT))]
    near, far = by_line(RIGHT, off, 0.7), by_line(RIGHT, off, 0.97)
    assert near.low < near.accuracy < near.high
    assert np.diff(logit([far.low, far.high])) > np.diff(logit([near.low, near.high]))


@pytest.mark.heavy
def test_a_range_holds_nine_in_ten_tasks_about_a_line():
    rng, held = np.random.default_rng(0), []
    for _ in range(2_000):
        x = rng.normal(0.7, 0.7, 7)
        y = expit(0.3 + 1.1 * x + rng.normal(0, 0.2, 7))
        told = by_line(expit(x[:-1]).tolist(), [student(float(each)) for each in y[:-1]], float(expit(x[-1])))
        held.append(told.low <= y[-1] <= told.high)
    assert 0.88 < np.mean(held) < 0.93


def rows_of(rng: np.random.Generator, truths: np.ndarray, luck: np.ndarray) -> list[Line]:
    """Rows whose students lie on lines that are that far apart, with luck of their own and some that they share."""
    x = rng.normal(0.7, 0.7, 6)
    shared = rng.normal(0, 0.3, 6)
    y = expit(0.3 + truths[:, None] + 1.1 * x + shared + luck[:, None] * rng.normal(size=(len(truths), 6)))
    return [Line(expit(x).tolist(), [student(float(each)) for each in row], [1.0] * 6, float(expit(0.7))) for row in y]


@pytest.mark.heavy
def test_the_best_of_several_rows_is_not_expected_too_well():
    """The twin takes what each line says: of ten rows that are alike, the best is then too good."""
    rng, naive, kept = np.random.default_rng(0), [], []
    for _ in range(200):
        lines = rows_of(rng, np.zeros(10), np.full(10, 0.3))
        said = np.array([line.expected.accuracy for line in lines])
        naive.append(said.max() - said.mean())
        kept.append((said - lucky(lines)).max() - said.mean())
    assert np.mean(naive) > 0.03
    assert np.mean(kept) < 0.6 * np.mean(naive)


@pytest.mark.heavy
def test_rows_that_differ_are_left_apart_and_one_of_much_luck_does_not_come_first():
    rng, first, apart = np.random.default_rng(1), [], []
    for _ in range(200):
        lines = rows_of(rng, np.array([0.4, 0.0, -0.4, 0.0]), np.array([0.05, 0.05, 0.05, 1.5]))
        said = np.array([line.expected.accuracy for line in lines])
        moved = said - lucky(lines)
        first.append((said.argmax() == 3, moved.argmax() == 3))
        apart.append((moved[0] - moved[2]) / (said[0] - said[2]))
    by_line, without = np.mean(first, axis=0)
    assert by_line > 0.15
    assert without < by_line / 3
    assert np.median(apart) > 0.8


def test_the_share_that_is_answered_lies_between_the_rules_next_to_the_task():
    students = on_a_line(RIGHT)
    shares = [0.0, 0.0, 0.4, 0.9, 1.0]
    assert Line(RIGHT, students, shares, 0.75).answered == pytest.approx(0.65)
    assert Line(RIGHT, students, [None] * 5, 0.75).answered is None


def test_students_that_fall_where_teachers_are_better_tell_no_fall():
    fall = [student(each) for each in (0.8, 0.75, 0.7, 0.65)]
    told = [by_line((0.6, 0.7, 0.8, 0.9), fall, known) for known in (0.6, 0.95)]
    assert told[0].accuracy == told[1].accuracy == pytest.approx(0.73, abs=0.01)


def test_rules_that_tell_nothing_apart_expect_what_all_of_them_have():
    told = by_line([0.5] * 4, [student(each) for each in (0.5, 0.52, 0.5, 0.52)], 0.9)
    assert told.accuracy == pytest.approx(0.51, abs=1e-3)
    assert 0 <= by_line([1.0] * 4, [student(1.0)] * 4, 0.999).low <= 1


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_rule_has_the_share_of_the_commonest_class_that_is_known(n_classes, share):
    points = np.random.default_rng(0).normal(size=(300, 6))
    for number, rule in enumerate(AS_HARD):
        known = Rule(agreement=rule.agreement, clusters=rule.clusters, commonest=max(share, 1 / n_classes))
        _, codes = ruled_labels(points, n_classes, 2_000, known, number)
        assert np.bincount(codes).max() / 2_000 == pytest.approx(
            max(share, 1 / n_classes), abs=0.08 if share == 0.3 else 0.01
        )


class Task:
    """Labels that no rule draws: a product of two columns beside a slope, turned round for some rows."""

    def __init__(self, wrong: float) -> None:
        rng = np.random.default_rng(5)
        X = rng.normal(size=(N + M + TEST, 6))
        y = X[:, 0] + X[:, 1] + 0.5 * X[:, 2] * X[:, 3] > 0
        self.X, self.y = X, np.where(y ^ (rng.random(len(y)) < wrong), 1, 0)
        self.private = self.X[:N], self.y[:N]
        self.pool, self.test = self.X[N : N + M], (self.X[N + M :], self.y[N + M :])

    def curve(self) -> list[tuple[float, float]]:
        """What one linear model makes of so many rows."""
        from sklearn.linear_model import LogisticRegression

        points = []
        for rows in (20, 40, 100, 1_000):
            parts = [slice(start, start + rows) for start in range(0, N, max(rows, 400))]
            right = [
                LogisticRegression().fit(self.X[part], self.y[part]).score(self.test[0], self.test[1]) for part in parts
            ]
            points.append((rows, float(np.mean(right))))
        return points

    def measured(self) -> tuple[float, float]:
        shared: dict[str, Any] = {"classes": [0, 1], "unsafe_noise_seed": 1, **BUDGET}
        clf = PrivateClassifier(student=STUDENT, n_teachers=K, n_jobs=1, n_records=N, **shared).fit(
            *self.private, public=PublicPool(self.pool)
        )
        direct = PrivateLogisticRegression(n_records=N, **shared).fit(*self.private, public=PublicPool(self.pool))
        return tuple(float((each.predict(self.test[0]) == self.test[1]).mean()) for each in (clf, direct))  # type: ignore[return-value]


@pytest.fixture(scope="module", params=[pytest.param(0.02, marks=pytest.mark.faults), 0.3], ids=["easy", "hard"])
def task(request):
    made = Task(request.param)
    return made, made.measured()


def expected(task: Task, **how: Any) -> tuple[Expected, Expected]:
    made = quorate.plan(task.pool, classes=[0, 1], n_records=N, **BUDGET, **VOTES, **how)
    by_way = {row.way: row.expected for row in made.rows if row.expected is not None}
    return by_way["votes"], by_way["direct"]


@pytest.mark.heavy
def test_a_run_has_what_the_curve_lets_expect(task):
    made, measured = task
    for told, came in zip(expected(made, learning_curve=made.curve(), commonest=0.5), measured, strict=True):
        assert told.basis == "learning curve"
        assert abs(told.accuracy - came) < 0.07
        assert told.low - 0.02 <= came <= told.high + 0.02


@pytest.mark.faults
def test_rules_without_the_curve_miss_the_easy_and_the_hard_task(task):
    """A twin: without it, the same figure is expected of both tasks, which are more than .2 apart."""
    made, measured = task
    told = expected(made, rehearse="rules")
    assert max(abs(each.accuracy - came) for each, came in zip(told, measured, strict=True)) > 0.06


@pytest.mark.faults
def test_the_direct_method_is_told_by_a_teacher_of_many_rows(monkeypatch):
    """A twin: told by a teacher of a shard, which a steep curve does not resemble, it is far off."""
    made = Task(0.02)
    steep = [(20, 0.6), (40, 0.62), (1_000, 0.9)]
    of_many = expected(made, learning_curve=steep)[1].accuracy
    monkeypatch.setattr(made_up, "MANY", 40)
    of_few = expected(made, learning_curve=steep)[1].accuracy
    assert abs(of_many - 0.92) < 0.05 < of_many - of_few


@pytest.mark.heavy
@pytest.mark.usefixtures("brief_rehearsals")
def test_without_public_rows_made_up_ones_are_played():
    made = quorate.plan(
        n_records=N, n_public=M, width=6, classes=[0, 1], learning_curve=[(20, 0.7), (100, 0.85)], **BUDGET, **VOTES
    )
    assert 0.7 < made.first.expected.accuracy < 0.95
    assert any("made-up ones were labelled and asked" in note for note in made.notes)


@pytest.mark.parametrize("how", ["labels", "no"])
def test_what_does_not_go_with_a_curve_is_refused(how):
    with pytest.raises(InvalidParameter, match=f'rehearse="{how}" does not go with a learning curve'):
        quorate.plan(np.zeros((50, 2)), classes=[0, 1], n_records=N, learning_curve=[(20, 0.7)], rehearse=how, **BUDGET)


@pytest.mark.heavy
@pytest.mark.parametrize(("n_classes", "share"), [(2, 0.4), (10, 0.05)])
def test_a_commonest_class_that_is_rarer_than_all_are_on_average_is_refused(n_classes, share):
    how: dict[str, Any] = {"n_classes": n_classes, "n_records": N, "n_public": M, "width": 3, **BUDGET}
    with pytest.raises(InvalidParameter, match=f"at least 1/{n_classes}, got {share}"):
        quorate.plan(commonest=share, **how)
    assert quorate.plan(commonest=0.33, **{**how, "n_classes": 3}).commonest == 0.33  # 1/3, as it is typed


@pytest.mark.faults
def test_made_up_rows_in_place_of_the_public_ones_are_told():
    pool = np.random.default_rng(0).normal(size=(M, 3))
    shared: dict[str, Any] = {"classes": [0, 1], "n_records": N, "learning_curve": [(20, 0.7)], **BUDGET, **VOTES}
    said = [" ".join(quorate.plan(pool, rehearse=how, **shared).notes) for how in ("auto", "synthetic")]
    told = ["made-up rows were labelled and asked in place of the public ones" in each for each in said]
    assert told == [False, True]
    assert not any("no public rows were given" in each for each in said)


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize(("rows", "said"), [(30, False), (300, True), (4, True)])
def test_a_first_row_of_which_the_curve_says_nothing_is_told(rows, said):
    how: dict[str, Any] = {"n_classes": 2, "n_records": N, "n_public": M, "width": 3, **BUDGET, **VOTES}
    made = quorate.plan(learning_curve=[(rows, 0.7)], **how)
    assert made.first.rows_each == N / K == 40
    assert any("a teacher of about 40 rows, far from all" in note for note in made.notes) is said


@dataclass
class Ruled:
    """A rehearsal of one rule, played by nobody: what it says of every row."""

    right: float
    answered: float | None

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        return [replace(row, answered=self.answered, expected=student(self.right)) for row in rows]

    def right_alone(self, n_teachers: int | None, n_rows: int) -> float:
        return self.right


def test_a_curve_that_is_asked_far_from_its_points_leaves_more_open():
    facts = PublicFacts(n_records=N, n_public=M, n_classes=2, width=3, **BUDGET)
    (row,) = vote_rows(facts, Grid(mechanisms=[NoisyCounts], n_teachers=[K], queries=[20]))
    played: Any = [Ruled(right, None) for right in (0.6, 0.7, 0.8, 0.9)]
    ranges = []
    for rows in (40, 160, 640):
        curve = LearningCurve.of([(rows, 0.7)])
        ((told,), known) = AsHard(played, curve)(facts, [row]), curve(N / K)
        assert told.expected.low == pytest.approx(known - curve.doubt(N / K))  # the line is the diagonal
        ranges.append(told.expected.high - told.expected.low)
    assert ranges[0] < 1e-6
    assert ranges[1:] == pytest.approx([2 * 2 * 0.03, 2 * 4 * 0.03])


@pytest.mark.heavy
@pytest.mark.parametrize(("known", "share"), [(0.6, 0.3), (0.75, 0.5), (0.99, 0.8)])
def test_as_much_is_answered_as_under_rules_that_are_as_hard(known, share):
    facts = PublicFacts(n_records=N, n_public=M, n_classes=2, width=3, **BUDGET)
    (row,) = vote_rows(facts, Grid(mechanisms=[ConfidentNoisyMax], n_teachers=[K], queries=[20]))
    hardest_not_first = ((0.9, 0.8), (0.6, 0.3), (0.8, 0.6), (0.7, 0.4))
    played: Any = [Ruled(*each) for each in hardest_not_first]
    (told,) = AsHard(played, LearningCurve.of([(N // K, known)]))(facts, [row])
    assert told.answered == pytest.approx(share, abs=0.001)
    (mean,) = MeanOf(played)(facts, [row])
    assert mean.answered == pytest.approx(0.525)
    played[2] = Ruled(0.8, None)
    assert [
        each(facts, [row])[0].answered for each in (AsHard(played, LearningCurve.of([(40, known)])), MeanOf(played))
    ] == [None, None]


def test_a_row_whose_shards_are_larger_than_what_can_be_played_expects_nothing():
    pool = np.random.default_rng(0).normal(size=(M, 3))
    facts = PublicFacts(n_records=10**6, n_public=M, n_classes=2, width=3, **BUDGET)
    side = public_side(pool, (0, 1))
    played = rehearsals_as_hard(facts, side, how="auto", commonest=None, basis="learning curve")
    assert played[0].right_alone(10, 10**5) is None
    assert played[0].right_alone(None, 500) == played[0].right_alone(None, 500)


def accuracy(m: float, tau: float, rows: float, n_classes: int = 2) -> float:
    """Accuracy of one teacher by simulation: points, what so few rows add, and a guess where a point is not known."""
    t = np.random.default_rng(0).normal(m, 1, 400_000) + np.random.default_rng(1).normal(0, tau / rows**0.5, 400_000)
    known = 2 * float((t > 0).mean()) - 1
    return known + (1 - known) / n_classes


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize(("m", "tau"), [(1.0, 5.0), (2.0, 3.0)])
def test_a_curve_of_the_model_is_found_again_between_its_points_and_beyond(m, tau, n_classes):
    rows = (5.0, 20.0, 80.0, 300.0)
    curve = LearningCurve.of([(r, accuracy(m, tau, r, n_classes)) for r in rows], n_classes=n_classes)
    assert (curve.m, curve.tau) == pytest.approx((m, tau), rel=0.05)
    for asked in (10.0, 40.0, 3_000.0):
        assert curve(asked) == pytest.approx(accuracy(m, tau, asked, n_classes), abs=0.01)


def test_it_goes_through_what_was_told_whatever_that_is():
    told = [(200, 0.86), (20, 0.72), (50, 0.85)]  # no curve of the model is so bent
    curve = LearningCurve.of(told)
    assert [curve(rows) for rows, _ in told] == pytest.approx([each for _, each in told])
    assert 0.72 < curve(30) < 0.85


def test_what_is_below_a_guess_is_a_curve_too():
    curve = LearningCurve.of([(10, 0.2), (100, 0.3)], n_classes=4)
    assert curve(10) == pytest.approx(0.2)
    assert 0 < LearningCurve.of([(10, 0.01)])(10) < 0.03


def test_the_doubt_is_what_was_told_and_grows_beyond_the_rows_of_the_curve():
    curve = LearningCurve.of([(20, 0.72), (200, 0.86)], uncertain=0.02)
    assert curve.doubt(20) == curve.doubt(60) == curve.doubt(200) == 0.02
    assert curve.doubt(10) == pytest.approx(curve.doubt(400))
    assert curve.doubt(1_000) > curve.doubt(400) > 0.02


@pytest.mark.parametrize("points", [[(20, 0.6), (20, 0.8)], [(100, 0.9), (20, 0.8), (20, 0.6)]])
def test_two_accuracies_for_one_number_of_rows_are_refused_in_either_order(points):
    for each in (points, points[::-1]):
        with pytest.raises(InvalidParameter, match="several accuracies for one number of rows"):
            LearningCurve.of(each)
    assert LearningCurve.of([(20, 0.6), (20, 0.6)]) == LearningCurve.of([(20, 0.6)])


@pytest.mark.parametrize("points", [[], [(0, 0.7)], [(10, 1.0)]])
def test_a_curve_that_is_none_is_refused(points):
    with pytest.raises(InvalidParameter, match="learning_curve must be pairs"):
        LearningCurve.of(points)
