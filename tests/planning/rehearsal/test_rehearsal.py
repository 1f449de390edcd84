"""A rehearsal expects what a run then has: on made-up tables of which there are as many rows as one likes."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import quorate
from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.ensemble import hash_shards
from quorate.errors import DataRefused, InvalidParameter
from quorate.mechanisms import NoisyCounts
from quorate.noise import SeededNoise
from quorate.planning.plan_row import Grid, PlanRow, vote_rows
from quorate.planning.planned import NOTHING_BY_RULES
from quorate.planning.public_side import Models, labelled_material, notes_of, public_side, rehearsals_of, synthetic_side
from quorate.planning.rehearsal import votes as rehearsed_votes
from quorate.planning.rehearsal.estimate import Played, estimate
from quorate.planning.rehearsal.made_up import RULES, MeanOf, Rule, over_rules, rule_of, ruled_labels
from quorate.planning.rehearsal.material import Material
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal, _drawn
from quorate.planning.rehearsal.votes import Shards, released_data, right_alone, sample_votes, whole_votes
from quorate.run.expectation import Expected
from quorate.run.public_facts import PublicFacts
from quorate.students import VoteShareStudent
from quorate.students.scores import Judged
from quorate.students.student import SharedCoordinates
from quorate.types import Secret

N, M, LABELLED, TEST = 3_000, 150, 1_200, 4_000
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
TASK: dict[str, Any] = {"classes": [0, 1], "n_records": N, **BUDGET}
EFFORT = Effort(folds=2, repeats=2, teachers=48, n_asked=M, every_row=True)
BRIEF = Effort(folds=2, repeats=1, teachers=8, n_asked=M, every_row=True)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of six numbers, and a class that a linear rule tells in nine of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    weights = np.array([4.0, -3.0, 2.0, 1.0, 0, 0])
    return X, (X @ weights + rng.logistic(size=n) > 0).astype(np.int64)


@pytest.fixture(scope="module")
def rows():
    sizes = {"private": N, "pool": M, "labelled": LABELLED, "test": TEST}
    return {name: drawn(n, seed) for seed, (name, n) in enumerate(sizes.items())}


@pytest.fixture(scope="module")
def facts():
    return PublicFacts(n_records=N, n_public=M, n_classes=2, width=6, **BUDGET)


def played(
    facts: PublicFacts, material: Material, *, n_teachers: list[int], effort: Effort = BRIEF
) -> tuple[Rehearsal, list[PlanRow]]:
    """Rehearse rows of noisy counts, and the direct method."""
    rehearsal = Rehearsal(material=material, facts=facts, effort=effort)
    votes = vote_rows(facts, Grid(mechanisms=[NoisyCounts], n_teachers=n_teachers))
    return rehearsal, rehearsal(facts, [*votes, PlanRow(way="direct", name="gradient rounds")])


def material_for(rows: dict[str, Any], **models: Any) -> Material:
    return labelled_material(public_side(rows["pool"][0], (0, 1), Models(**models)), evaluation=rows["labelled"])


@pytest.mark.heavy
def test_what_is_expected_is_what_runs_then_have(rows, facts):
    (X, y), public, (unseen, truth) = rows["private"], PublicPool(rows["pool"][0]), rows["test"]
    _, told = played(facts, material_for(rows), n_teachers=[50, 200], effort=EFFORT)
    for row in told:
        accuracies = []
        for seed in range(2):
            how: dict[str, Any] = {**TASK, "unsafe_noise_seed": seed}
            if row.way == "direct":
                clf: Any = PrivateLogisticRegression(**how)
            else:
                clf = PrivateClassifier(**how, n_teachers=row.n_teachers or 1, n_jobs=1)
            accuracies.append(float((clf.fit(X, y, public=public).predict(unseen) == truth).mean()))
        assert row.expected.low - 0.01 <= np.mean(accuracies) <= row.expected.high + 0.01, row.key
        assert np.mean(accuracies) == pytest.approx(row.expected.accuracy, abs=0.04), row.key


@pytest.mark.heavy
def test_a_rehearsal_without_its_noise_would_be_caught(rows, facts):
    """The twin: what is expected with hardly any noise is not what a run at ε = 0.25 has."""
    _, honest = played(replace(facts, epsilon=0.25), material_for(rows), n_teachers=[50])
    _, cheating = played(replace(facts, epsilon=8.0), material_for(rows), n_teachers=[50])
    assert cheating[0].expected.accuracy > honest[0].expected.accuracy + 0.04


@pytest.mark.heavy
def test_a_plan_has_what_was_rehearsed_and_the_commonest_class_beside(rows):
    made = quorate.plan(rows["pool"][0], evaluation=rows["labelled"], mechanisms=[NoisyCounts], n_teachers=[50], **TASK)
    share = rows["labelled"][1].mean()
    assert made.commonest == pytest.approx(max(share, 1 - share))
    assert made.tree()["rows"][0]["expected"]["basis"] == "labelled public rows"
    assert [each.expected is not None for each in made.by_epsilon] == [True] * 6
    assert made.by_epsilon[-1].expected.accuracy > made.by_epsilon[0].expected.accuracy
    assert made.nothing_changes_above is not None


@pytest.mark.heavy
def test_a_rehearsal_is_the_same_whenever_it_is_played(rows, facts):
    once, again = (played(facts, material_for(rows), n_teachers=[50])[1] for _ in range(2))
    assert [row.tree() for row in once] == [row.tree() for row in again]


@pytest.mark.heavy
def test_labels_of_the_pool_itself_serve_too(facts):
    X, y = drawn(400, 9)
    material = labelled_material(public_side(X, (0, 1)), y_public=y)
    _, (votes, _) = played(replace(facts, n_public=400), material, n_teachers=[100])
    assert 0.7 < votes.expected.accuracy < 0.95


@pytest.mark.heavy
def test_a_model_that_says_one_class_at_its_shard_size_is_found(rows, facts):
    material = material_for(rows, teacher=DecisionTreeClassifier(min_samples_leaf=30))
    rehearsal, (votes, _) = played(facts, material, n_teachers=[60])
    assert rehearsal.constant == (60,)
    assert any("every teacher says one class" in note for note in notes_of((rehearsal,)))
    assert votes.expected.accuracy < material.commonest + 0.15  # noise alone


@pytest.mark.heavy
def test_of_two_public_rows_no_more_is_expected_than_runs_have_also_below_a_guess(rows):
    """Two right labels of a pool that lies badly say of most other rows what they are not."""
    pool, (X, y), (unseen, truth) = drawn(2, 100)[0], rows["private"], rows["test"]
    made = quorate.plan(pool, evaluation=rows["labelled"], mechanisms=[NoisyCounts], n_teachers=[270], **TASK)
    (votes,) = (row for row in made.rows if row.way == "votes")
    clf = PrivateClassifier(n_teachers=270, mechanism="NoisyCounts", n_jobs=1, unsafe_noise_seed=0, **TASK)
    came = float((clf.fit(X, y, public=PublicPool(pool)).predict(unseen) == truth).mean())
    assert votes.expected.accuracy == pytest.approx(came, abs=0.03)
    assert came < 0.45
    assert any("2 different public rows" in note and "may do worse than a guess" in note for note in made.notes)


@pytest.mark.heavy
@pytest.mark.heavy_cases(3)
@pytest.mark.parametrize("n_public", [1, 2, 3, 24, 25])
@pytest.mark.parametrize(
    "how", [{"rehearse": "rules"}, {"rehearse": "synthetic"}, {"learning_curve": [(20, 0.72)]}], ids=str
)
def test_rules_on_too_few_public_rows_expect_nothing_and_say_so(n_public, how):
    """Those rows would be asked and scored on: a student of two would be right on both."""
    made = quorate.plan(drawn(n_public, 100)[0], mechanisms=[NoisyCounts], n_teachers=[100], **TASK, **how)
    expects = [row.expected is not None for row in made.rows if not row.cannot and row.way != "few labels"]
    assert any(expects) is any(each.expected is not None for each in made.by_epsilon) is (n_public == 25)
    assert (NOTHING_BY_RULES in made.notes) is (n_public < 25)
    assert any(note.startswith("rehearsed") for note in made.notes) is (n_public == 25)


@pytest.mark.heavy
def test_a_shard_that_holds_nearly_every_public_row_is_not_rehearsed_by_rules():
    """No teacher is left that has not seen a row, and noise alone would answer: 53 % where 88 % is true."""
    task = {**TASK, "n_records": 60_000, "n_teachers": [100, 600]}
    student = LogisticRegression()  # the default one compares models of the votes, which takes longer
    made = quorate.plan(drawn(60, 100)[0], mechanisms=[NoisyCounts], rehearse="rules", student=student, **task)
    assert {row.n_teachers: row.expected is None for row in made.rows if row.way == "votes"} == {100: True, 600: False}
    said = "with 100 teachers or fewer a shard is too large for the public rows that play it, and could not be"
    assert any(note.startswith(said) for note in made.notes)


@pytest.mark.heavy
@pytest.mark.parametrize("n_public", [1, 3])
def test_a_plan_of_one_or_three_public_rows_orders_its_rows(n_public):
    """A mechanism of which one answer is never wrong, at the margin that is looked at, has no noise to divide by."""
    made = quorate.plan(drawn(n_public, 1)[0], **TASK)
    assert 0.0 in [row.share_noise for row in made.rows]
    assert made.first.expected is None


@pytest.mark.heavy
def test_how_right_one_teacher_is_hangs_on_no_single_shard(rows, monkeypatch):
    """It is where a learning curve is read off: several are trained, and their mean varies less than one of them."""
    material, trained_on, held = material_for(rows), np.arange(800), np.arange(800, LABELLED)

    def spread() -> float:
        return float(np.std([right_alone(material, trained_on, held, 100, seed=seed) for seed in range(40)]))

    of_the_mean = spread()
    monkeypatch.setattr(rehearsed_votes, "ALONE", 1)
    assert of_the_mean < spread() / 2  # of eight independent ones it is 0.35 of that


@pytest.mark.heavy
def test_teachers_that_fail_abstain_as_in_a_run(rows, facts):
    class Fails(DummyClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            raise RuntimeError

    _, (votes, _) = played(facts, material_for(rows, teacher=Fails()), n_teachers=[60])
    assert votes.expected.accuracy < 0.75  # of noise alone


@pytest.mark.heavy
def test_a_guess_about_another_labelling_says_so(rows, facts):
    for how, basis in (("rules", "rules on the pool"), ("synthetic", "synthetic rows")):
        side = synthetic_side(facts, (0, 1)) if how == "synthetic" else public_side(rows["pool"][0], (0, 1))
        drawn_ones = rehearsals_of(facts, side, how=how, y_public=None, evaluation=None, judged=Judged())
        assert len(drawn_ones) > 1
        brief = MeanOf([replace(each, effort=BRIEF) for each in drawn_ones])
        (row,) = brief(facts, [PlanRow(way="direct", name="gradient rounds")])
        assert row.expected.basis == basis
        assert any("a guess about" in note for note in notes_of(drawn_ones))


@pytest.mark.heavy
def test_what_cannot_be_rehearsed_is_refused_or_told(rows, facts):
    pool, (X, y) = rows["pool"][0], rows["labelled"]
    with pytest.raises(InvalidParameter, match="none were given"):
        quorate.plan(pool, rehearse="labels", **TASK)
    with pytest.raises(InvalidParameter, match="40 labelled public rows or more, got 39"):
        quorate.plan(pool, evaluation=(X[:39], y[:39]), **TASK)
    with pytest.raises(DataRefused, match="differ in number"):
        quorate.plan(pool, evaluation=(X[:50], y[:49]), **TASK)
    few = {**rows, "labelled": (X[:60], y[:60])}
    rehearsal, (votes, direct) = played(facts, material_for(few), n_teachers=[50])
    assert (votes.expected is None, direct.expected is None) == (True, False)
    assert "larger than half of the labelled public rows" in rehearsal.not_rehearsed


@pytest.mark.heavy
def test_a_play_is_played_once(rows, facts, monkeypatch):
    """What was played briefly is part of playing at length, and of what other budgets are compared with."""
    plays: list[tuple[int, int]] = []
    original = Rehearsal._play_votes

    def counted(self: Rehearsal, facts: PublicFacts, row: PlanRow, fold: int, repeat: int) -> Played | None:
        plays.append((fold, repeat))
        return original(self, facts, row, fold, repeat)

    monkeypatch.setattr(Rehearsal, "_play_votes", counted)
    rehearsal, told = played(facts, material_for(rows), n_teachers=[50])
    assert plays == [(0, 0), (1, 0)]
    assert rehearsal(facts, told[:1])[0].expected is not None
    assert plays == [(0, 0), (1, 0)]
    rehearsal(replace(facts, epsilon=2.0), told[:1])
    assert plays[2:] == [(0, 0), (1, 0)]


@pytest.mark.heavy
def test_what_is_shared_changes_no_student(rows, facts):
    material = material_for(rows)
    (row,) = vote_rows(facts, Grid(mechanisms=[NoisyCounts], n_teachers=[50]))
    shares = np.random.default_rng(3).dirichlet(np.ones(2), size=M)
    data = released_data(material, shares, row.mechanism, np.arange(M), n_teachers=50, voters=50, seed=1)
    alone = replace(data, shared=SharedCoordinates())
    for student in (VoteShareStudent(shares="smooth"), VoteShareStudent(shares="kernel")):
        once, again = (student.fit(each).predict_proba(rows["pool"][0]) for each in (data, alone))
        assert (once == again).all()
        chosen = student.settled(data)
        assert chosen.shares in ("linear", "kernel", "gaussian-process")
        assert (chosen.fit(data).predict_proba(rows["pool"][0]) == once).all()


@pytest.mark.heavy
def test_images_are_planned_as_a_run_would_see_them():
    images = np.random.default_rng(0).random((150, 12, 12))
    side = public_side(images, (0, 1))
    assert side.direct("auto").name == "patches"
    assert isinstance(side.default_teacher, RidgeClassifier)
    named = public_side(images, (0, 1), Models(teacher="logistic"))
    assert named.views.teacher.directions is not None  # as a run of [teachers] model = "logistic" has it
    own = public_side(images, (0, 1), Models(teacher=LogisticRegression()))
    assert own.views.teacher.directions is None
    y = np.arange(150) % 2
    for teacher, kind in (("logistic", LogisticRegression), (None, RidgeClassifier)):
        material = labelled_material(public_side(images, (0, 1), Models(teacher=teacher)), y_public=y)
        assert isinstance(material.teacher.estimator, kind)  # type: ignore[attr-defined]
        assert (material.pool[1] == side.views.student(side.pool)).all()
        assert (material.points == side.views.numbers(side.pool)).all()
        assert (material.rows[1] == side.views.student(side.pool)).all()


def writers(n_persons: int, rows_each: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of persons, each of whom has a rule of their own about the common one."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_persons), rows_each)
    rules = np.array([1.5, 1.5, 0, 0]) + rng.normal(size=(n_persons, 4))
    X = rng.normal(size=(len(groups), 4))
    return X, ((X * rules[groups]).sum(axis=1) > 0).astype(np.int64), groups


@pytest.mark.heavy
def test_teachers_of_persons_get_whole_persons_where_it_is_known_whose_rows_are():
    X, y, groups = writers(60, 40, 1)
    pool = writers(100, 2, 2)[0]
    persons = PublicFacts(n_records=300, n_rows=12_000, n_public=len(pool), n_classes=2, width=4, **BUDGET)
    side, right = public_side(pool, (0, 1)), {}
    for known in (True, False):
        given = (X, y, [f"writer {each}" for each in groups]) if known else (X, y)
        material = labelled_material(side, evaluation=given)
        rehearsal, told = played(persons, material, n_teachers=[300])
        right[known] = rehearsal._votes[300, 0, id(rehearsal.material)].right  # type: ignore[union-attr]
        assert rehearsal.mixed is not known
        assert any("whose the labelled public rows are" in note for note in notes_of((rehearsal,))) is not known
        trained_on, held = rehearsal._divided(0, 2)
        assert known is not bool(np.intersect1d(groups[trained_on], groups[held]).size)
        assert all(row.expected is not None for row in told)
    assert right[True] < right[False] - 0.03


@pytest.mark.heavy
@pytest.mark.parametrize("n_persons", [1, 2, 3, 5])
def test_few_persons_are_played_as_far_as_they_go(n_persons):
    """Divisions and quarters that would have nobody are left out; one person alone is no rehearsal."""
    X, y, groups = writers(n_persons, 60, 3)
    pool = writers(100, 2, 2)[0]
    persons = PublicFacts(n_records=300, n_rows=18_000, n_public=len(pool), n_classes=2, width=4, **BUDGET)
    material = labelled_material(public_side(pool, (0, 1)), evaluation=(X, y, groups))
    rehearsal = Rehearsal(material=material, facts=persons, effort=BRIEF)
    found = rehearsal._played(persons, PlanRow(way="direct", name="gradient rounds"), "at length")
    assert len({each.fold for each in found}) == (n_persons if n_persons > 2 else 0)
    assert {len(each.hits) for each in found} <= {3, 7}
    assert all(each.n_scored == 60 for each in found)


def test_a_range_is_wider_where_persons_are_played_by_rows_of_anybody():
    one = Played(hits=hits(0.9, 0.88), fold=0, size=0.5)
    known, mixed = (estimate([one], "labelled public rows", n_classes=2, mixed=each) for each in (False, True))
    assert mixed.high - mixed.low > known.high - known.low
    assert mixed.accuracy == known.accuracy


def test_votes_of_all_teachers_have_the_shares_and_add_up():
    shares = np.random.default_rng(0).dirichlet(np.ones(5), size=300)
    votes = whole_votes(shares, 178)
    assert (votes.sum(axis=1) == 178).all()
    assert np.abs(votes / 178 - shares).max() <= 1 / 178


def shards_of(rows: int) -> Shards:
    """Return shards that all hold so many rows: those of one person each."""
    return Shards(voters=100, units_each=None, rows_each=rows)


@pytest.mark.parametrize(("n_units", "n_teachers"), [(200, 150), (400, 100), (3_000, 50)])
def test_shards_of_a_rehearsal_are_those_of_a_keyed_hash(n_units, n_teachers):
    """Against the partition itself; a mean of so many is off by four standard errors once in 10,000 times."""
    task: dict[str, Any] = {"n_public": 99, "n_classes": 2, "width": 3, **BUDGET}
    shards = Shards.of(PublicFacts(n_records=n_units, n_rows=5 * n_units, **task), n_teachers)
    keys = [number.to_bytes(4, "big") for number in range(n_units)]
    filled, sizes = [], []
    for seed in range(20):
        found = hash_shards(keys, n_teachers, Secret(seed.to_bytes(32, "big"))).reveal()
        held = np.bincount(found, minlength=n_teachers)
        filled.append(int((held > 0).sum()))
        sizes.extend((5 * held[held > 0]).tolist())
    assert shards.voters == pytest.approx(np.mean(filled), abs=0.5 + 4 * np.std(filled) / 20**0.5)
    rng = np.random.default_rng(0)
    drawn = [shards.drawn(rng) for _ in range(2_000)]
    off = 4 * np.std(sizes) * (1 / len(sizes) + 1 / 2_000) ** 0.5
    assert np.mean(drawn) == pytest.approx(np.mean(sizes), abs=off)
    assert np.std(drawn) == pytest.approx(np.std(sizes), rel=0.1)
    assert shards.rows == pytest.approx(np.mean(sizes), abs=0.5 + off)


def test_votes_are_those_of_the_teachers_that_have_rows(rows, facts):
    (row,) = vote_rows(facts, Grid(mechanisms=[NoisyCounts(sigma=1e-3, form="binary")], n_teachers=[50]))
    shares = np.tile([1.0, 0.0], (M, 1))
    how: dict[str, Any] = {"n_teachers": 50, "seed": 1}
    for voters in (50, 30):
        data = released_data(material_for(rows), shares, row.mechanism, np.arange(M), voters=voters, **how)
        assert (np.abs(data.released.answers) == voters / 2).all()  # a binary vote is half of the lead


def test_persons_are_drawn_one_after_another_and_none_is_in_two_parts(rows):
    groups = np.random.default_rng(4).integers(0, 90, LABELLED)
    material = replace(material_for(rows), groups=groups)
    rng, every = np.random.default_rng(0), np.arange(LABELLED)
    parts = material.divided(every, 3, rng)
    assert sorted(np.concatenate(parts).tolist()) == every.tolist()
    assert sum(len(np.unique(groups[part])) for part in parts) == 90
    assert max(map(len, parts)) < 1.3 * min(map(len, parts))
    for n in (5, 40):
        drawn = material.drawn(parts[0], n, rng)
        assert len(np.unique(drawn)) == n
        owners = np.unique(groups[drawn])
        whole = [each for each in owners if np.isin(parts[0][groups[parts[0]] == each], drawn).all()]
        assert len(whole) >= len(owners) - 1  # all but the last one's rows are all there


def hits(whole: float, halves: float, n: int = 10_000) -> np.ndarray:
    """Return which rows are right, by these accuracies: the first ones."""
    return np.arange(n) < np.round(np.array([[whole], [halves], [halves]]) * n)


def test_what_few_rows_cost_is_taken_out_again():
    """An accuracy of a - c/s exactly: the estimate is a - c/K."""
    a, c, size, n_teachers = 0.95, 0.4, 8.0, 40.0
    one = Played(hits=hits(a - c / size, a - 2 * c / size), fold=0, size=size / n_teachers)
    assert estimate([one], "labelled public rows", n_classes=2).accuracy == pytest.approx(a - c / n_teachers)
    plain = replace(one, size=1.0)  # without the correction it is off by what the correction is for
    assert estimate([plain], "labelled public rows", n_classes=2).accuracy == pytest.approx(a - c / size)


def simulated(rng: np.random.Generator, *, by_noise: float, by_rows: float, n: int = 200) -> list[Played]:
    """Four divisions with three draws each. Rows are right by a normal score above a threshold of the model."""
    shift, found = rng.normal(0, by_rows / 2**0.5), []  # of all labelled rows: every division has nearly all of them
    for fold in range(4):
        rows, apart = rng.normal(size=n), rng.normal(0, by_rows / 2**0.5)  # halves are drawn anew
        for _ in range(3):
            noise = rng.normal(0, by_noise)  # of the model: moves all rows
            own = rng.normal(0, 0.5, size=n)  # which rows are right changes too
            right = [rows + own + part + noise > -1.5 for part in (shift, shift + apart, shift - apart)]
            found.append(Played(hits=np.stack(right), fold=fold, size=1.0))
    return found


@pytest.mark.heavy
@pytest.mark.parametrize(("by_noise", "by_rows"), [(0.0, 0.0), (0.15, 0.0), (0.0, 0.2), (0.1, 0.1)])
def test_a_range_holds_nine_runs_in_ten_of_its_own_model(by_noise, by_rows):
    """Of 300 runs between 86 and 97 in 100: a share of 0.9 leaves these bounds once in 100 times at most."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        found = estimate(simulated(rng, by_noise=by_noise, by_rows=by_rows), "labelled public rows", n_classes=2)
        threshold = -1.5 - rng.normal(0, by_noise) - rng.normal(0, by_rows / 2**0.5)
        run = 1 - NormalDist(0, 1.25**0.5).cdf(threshold)
        held += found.low <= run <= found.high
    assert 0.86 <= held / 300 <= 0.99


@pytest.mark.heavy
def test_a_range_without_the_rows_that_teachers_learn_from_would_be_caught():
    """The twin: halves that agree hide what the rows do, and the range holds too few runs."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        told = [replace(each, hits=each.hits[[0, 0, 0]]) for each in simulated(rng, by_noise=0.0, by_rows=0.3)]
        found = estimate(told, "labelled public rows", n_classes=2)
        run = 1 - NormalDist(0, 1.25**0.5).cdf(-1.5 - rng.normal(0, 0.3 / 2**0.5))
        held += found.low <= run <= found.high
    assert held / 300 < 0.8


def test_few_scored_rows_do_not_pass_for_noise_of_a_run():
    """Which rows are right changes from draw to draw, and how many in the population does not."""
    rng = np.random.default_rng(1)
    widths = [
        estimate(simulated(rng, by_noise=0.0, by_rows=0.0, n=n), "labelled public rows", n_classes=2)
        for n in (150, 15_000)
    ]
    few, many = (each.high - each.low for each in widths)
    of_scoring = 2 * 1.645 * (widths[0].accuracy * (1 - widths[0].accuracy) / 600) ** 0.5
    assert few < 1.35 * of_scoring
    assert many < 0.015  # what no rehearsal shows alone makes it 0.013


def test_all_right_on_few_rows_is_no_proof():
    sure = Played(hits=np.ones((3, 50), dtype=bool), fold=0, size=1.0)
    assert estimate([sure, sure], "labelled public rows", n_classes=2).low < 0.99


def test_rules_reach_from_hard_to_easy_and_a_guess_has_their_range():
    points = np.random.default_rng(0).normal(size=(500, 8)) * np.arange(1, 9)
    rules = [rule_of(number) for number in range(RULES)]
    assert [each.agreement for each in rules] == sorted(each.agreement for each in rules)
    right = []
    for seed, rule in enumerate(rules):
        at, codes = ruled_labels(points, 2, 3_000, rule, seed)
        assert at.max() < 500
        right.append(LogisticRegression(max_iter=1_000).fit(points[at], codes).score(points[at], codes))
    assert min(right[-2:]) > max(right[:2]) + 0.1
    told = [Expected(accuracy=a, low=a - 0.01, high=a + 0.01, basis="rules on the pool") for a in (0.7, 0.8, 0.9)]
    guess = over_rules(told, chance=0.5)
    assert guess.low == pytest.approx(0.463, abs=0.001)  # rules differ by so much that the range goes below a guess
    assert guess.high > 0.9
    alike = [replace(each, accuracy=0.8, low=0.79, high=0.81) for each in told]
    assert over_rules(alike, chance=0.5).low == 0.5  # true labels may follow nothing that the pool shows
    assert over_rules(alike, chance=0.5).high < 0.82


@pytest.mark.heavy
def test_rules_take_what_pools_there_are():
    rng = np.random.default_rng(0)
    for pool in (np.zeros((30, 2)), csr_array(rng.integers(0, 2, (60, 5)).astype(float)), rng.normal(size=(40, 900))):
        for clusters in (False, True):
            at, codes = ruled_labels(pool, 3, 100, Rule(agreement=0.8, clusters=clusters), 0)
            assert len(at) == len(codes) == 100
            assert set(codes.tolist()) <= {0, 1, 2}


def test_a_teacher_has_no_vote_on_the_rows_that_it_was_trained_on():
    """One tree to the end knows its own rows by heart; were it asked about them, it would be right there."""
    X, _ = drawn(200, 5)
    coins = np.random.default_rng(6).integers(0, 2, 200)  # nothing can be learned but by heart
    material = labelled_material(public_side(X, (0, 1), Models(teacher=DecisionTreeClassifier())), y_public=coins)
    every = np.arange(200)
    found = sample_votes(material, every[:160], every[160:], shards=shards_of(60), n_teachers=8, seed=0)
    assert (found.shares.mean(axis=0).argmax(axis=1) == coins).mean() < 0.65


def test_more_than_half_of_the_rows_is_no_shard(rows):
    every = np.arange(LABELLED)
    found = sample_votes(material_for(rows), every[:400], every[400:], shards=shards_of(201), n_teachers=4, seed=0)
    assert found is None


def test_large_tasks_are_played_less():
    efforts = [Effort.of(m, 100, 2) for m in (100, 1_000, 3_000, 50_000)]
    lengths = [each.folds * each.repeats for each in efforts]
    assert lengths == sorted(lengths, reverse=True)
    assert efforts[-1].n_asked < 50_000


def test_fewer_rows_are_asked_with_as_much_less_noise(rows, facts):
    few = Rehearsal(material=material_for(rows), facts=facts, effort=replace(BRIEF, n_asked=50))
    asked, mechanism = few._queries(200, NoisyCounts(sigma=100.0, form="binary"))
    assert len(asked) == 50
    assert mechanism == NoisyCounts(sigma=50.0, form="binary")


@pytest.mark.heavy
@pytest.mark.parametrize("how", [{"rehearse": "rules"}, {"learning_curve": [(6, 0.7)]}])
def test_few_units_are_played_by_many_rows_whose_noise_is_more_than_can_be_drawn(how):
    """With 30 units and 1,500 rows that play them, the noise of the rounds is fifty times as much."""
    pool = np.random.default_rng(0).normal(size=(100, 3))
    task: dict[str, Any] = {"classes": [0, 1], "n_records": 30, "epsilon": 1.0, "delta": 1e-5, "n_teachers": [5]}
    direct = next(row for row in quorate.plan(pool, **task, **how).rows if row.way == "direct")
    assert direct.expected.low < 0.6


def test_noise_beyond_what_can_be_drawn_is_as_large():
    drawn = [_drawn(2.0**37, times, (4_000,), SeededNoise(1)).std() for times in (4.0, 16.0)]
    assert drawn[0] / 2.0**39 == pytest.approx(1, rel=0.05)
    assert drawn[1] / 2.0**41 == pytest.approx(1, rel=0.05)
