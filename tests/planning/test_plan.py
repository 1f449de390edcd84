"""The plan: its noise is the recipe's, what cannot answer says so, the best comes first and nothing private is read."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import quorate
from quorate.accounting import calibrate_sigma
from quorate.accounting import epsilon as price
from quorate.errors import InvalidParameter
from quorate.learn.plan_rows import learner_rows
from quorate.mechanisms import GaussianNoisyMax, LaplaceNoisyMax, NoisyCounts, PermuteAndFlip, StableSparseVector
from quorate.planning.margins import MATTERS, answer_probabilities, sparse_vector_from
from quorate.planning.page import plan_page
from quorate.planning.plan import in_order, plan_votes
from quorate.planning.plan_row import Grid, PlanRow, noise_in_words, numbers_of_teachers, share_noise, vote_rows
from quorate.planning.text import name_of, render_plan
from quorate.run.expectation import Basis, Expected
from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import recipe

FACTS = PublicFacts(n_records=6_000, n_public=1_000, n_classes=2, width=111, epsilon=1.0, delta=1e-5)
COUNTS = Grid(mechanisms=[NoisyCounts], n_teachers=[100], queries=[1_000])


def likely(accuracy: float, half: float = 0.01, *, times: int = 1, basis: Basis = "labelled public rows") -> Expected:
    low, high = accuracy - half, accuracy + half
    return Expected(accuracy=accuracy, low=low, high=high, basis=basis, rehearsals=times)


def expecting(told: Callable[[PublicFacts, PlanRow, int], Expected]) -> Any:
    """What expects of a row, of so many that are asked about at once."""
    return lambda facts, rows: [replace(row, expected=told(facts, row, len(rows))) for row in rows]


def both(facts: PublicFacts, votes: Expected, direct: Expected) -> list[PlanRow]:
    (row,) = vote_rows(facts, COUNTS)
    return [replace(row, expected=votes), PlanRow(way="direct", name="gradient rounds", expected=direct)]


@pytest.fixture(scope="module")
def made():
    return plan_votes(FACTS)


@pytest.mark.heavy
def test_without_a_look_at_anything_the_first_row_is_the_recipe(made):
    chosen = recipe(FACTS)
    assert (made.first.n_teachers, made.first.n_queries) == (chosen.n_teachers, chosen.n_queries)
    assert made.first.mechanism == chosen.mechanism


@pytest.mark.heavy
def test_every_row_that_can_answer_costs_what_the_budget_allows_and_no_more(made):
    for row in made.answering:
        if row.mechanism is not None and row.n_queries is not None:
            spent = price(row.mechanism.schedule(row.n_queries), FACTS.delta)
            assert 0.98 <= spent <= 1.0, row.key


@pytest.mark.heavy
def test_an_out_of_reach_sparse_vector_cannot_answer_and_says_why(made):
    (row,) = [row for row in made.rows if row.key == "votes/StableSparseVector/184/1000"]
    assert row.cannot.startswith("it answers where a tie is at least")
    assert row not in made.answering
    assert made.rows.index(row) > made.rows.index(made.answering[-1])


def test_with_enough_teachers_it_can_answer():
    many = replace(FACTS, n_records=1_000_000)
    (row,) = vote_rows(many, Grid(mechanisms=[StableSparseVector], n_teachers=[5_000]))
    assert not row.cannot
    assert row.answered > 0.99


@pytest.mark.heavy
def test_what_is_expected_decides_the_order_and_the_reason_says_by_how_much():
    value = {"NoisyCounts": 0.7, "LaplaceNoisyMax": 0.9}
    expect = expecting(lambda _, row, _n: likely(value.get(row.name, 0.5) - (row.n_teachers or 0) / 1e5))
    kinds = [NoisyCounts, LaplaceNoisyMax, GaussianNoisyMax]
    found = plan_votes(FACTS, grid=Grid(mechanisms=kinds, n_teachers=[100]), expectation=expect, commonest=0.75)
    assert [row.name for row in found.rows if row.way == "votes"][:2] == ["LaplaceNoisyMax", "NoisyCounts"]
    assert found.first.why == "its expected accuracy is the highest, 20.0 points above the next row's"


@pytest.mark.heavy
def test_rows_rehearsed_once_are_marked_and_not_compared_with_those_in_full():
    in_full = likely(0.75, times=6)
    played = {"NoisyCounts": likely(0.8, times=6), "LaplaceNoisyMax": in_full, "GaussianNoisyMax": likely(0.9)}
    expect = expecting(lambda _, row, _n: played[row.name])
    grid = Grid(mechanisms=[NoisyCounts, LaplaceNoisyMax, GaussianNoisyMax], n_teachers=[100], queries=[1_000])
    found = plan_votes(FACTS, grid=grid, expectation=expect)
    assert found.first.why == (
        "of the rows that were rehearsed in full its expected accuracy is the highest, 5.0 points above the next row's"
    )
    told = render_plan(found).splitlines()
    assert [line.split()[0] for line in told if " ~0." in line] == ["GaussianNoisyMax"]
    assert any(line.startswith("  ~         rehearsed once") for line in told)
    assert max(map(len, told)) <= 80
    played["LaplaceNoisyMax"] = likely(0.75)
    assert plan_votes(FACTS, grid=grid, expectation=expect).first.why == "no other row was rehearsed in full"


def test_a_method_that_is_rehearsed_in_more_divisions_is_not_put_first_for_that():
    rows = both(FACTS, votes=likely(0.9, times=2), direct=likely(0.5, times=8))[::-1]
    assert [row.way for row in in_order(FACTS, rows)] == ["votes", "direct"]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("basis", "rows_each", "direct_behind", "first"),
    [
        ("learning curve", 1, 0.03, "direct"),
        ("rules on the pool", 1, 0.03, "direct"),
        ("learning curve", 1, 0.06, "votes"),
        ("labelled public rows", 1, 0.03, "votes"),
        ("learning curve", 60, -0.03, "votes"),
        ("learning curve", 10, -0.03, "direct"),
        ("learning curve", 60, -0.06, "direct"),
    ],
)
def test_labels_that_are_not_the_true_ones_do_not_decide_between_methods_by_a_little(
    basis, rows_each, direct_behind, first
):
    """On diamonds a learning curve expected votes .02 ahead of the direct method, which was .13 ahead."""
    facts = replace(FACTS, n_rows=FACTS.n_records and FACTS.n_records * rows_each)
    ordered = in_order(facts, both(facts, likely(0.8, basis=basis), likely(0.8 - direct_behind, basis=basis)))
    assert ordered[0].way == first
    behind = ordered[0].expected is not None and ordered[0].expected.accuracy < max(0.8, 0.8 - direct_behind)
    assert ("another is expected 3.0 points above it" in ordered[0].why) == behind


def test_of_persons_whose_rows_are_not_counted_the_rule_says_which_is_put_first():
    facts = replace(FACTS, unit="person", n_rows=None)
    rows = both(facts, likely(0.81, basis="learning curve"), likely(0.8, basis="learning curve"))[::-1]
    assert in_order(facts, rows)[0].way == "direct"
    assert in_order(replace(facts, n_records=1_999), rows)[0].way == "votes"


def test_at_its_own_epsilon_the_first_row_stands_as_it_is():
    expect = expecting(lambda _, _row, n: likely(0.7 if n == 1 else 0.8, times=6))
    found = plan_votes(FACTS, grid=Grid(mechanisms=[NoisyCounts], n_teachers=[77, 78]), expectation=expect)
    (own,) = [each for each in found.by_epsilon if each.epsilon == FACTS.epsilon]
    assert (own.n_teachers, own.expected) == (found.first.n_teachers, found.first.expected)
    assert "NoisyCounts by ε; the number of teachers is chosen for each ε" in render_plan(found)


@pytest.mark.heavy
def test_the_reason_speaks_of_vote_counts_only_where_they_are_released(made):
    assert "noisy vote counts say more" in made.first.why
    classes = plan_votes(FACTS, grid=Grid(mechanisms=[GaussianNoisyMax]))
    assert classes.first.name == "GaussianNoisyMax"
    assert "vote counts" not in classes.first.why


def test_a_row_that_learns_nothing_and_one_epsilon_that_changes_nothing_are_told():
    value = {0.25: 0.5, 0.5: 0.76, 1.0: 0.9, 2.0: 0.95, 4.0: 0.955, 8.0: 0.957}
    expect = expecting(lambda facts, _row, _n: likely(value[facts.epsilon], 0.0))
    grid = Grid(mechanisms=[NoisyCounts], n_teachers=[100])
    found = plan_votes(FACTS, grid=grid, expectation=expect, commonest=0.755)
    assert (found.nothing_is_learned_below, found.nothing_changes_above) == (1.0, 2.0)
    assert [each.worlds for each in found.by_epsilon][2] == found.worlds == 732
    silent = plan_votes(FACTS, grid=grid)
    assert (silent.nothing_is_learned_below, silent.nothing_changes_above) == (None, None)


def test_persons_with_many_rows_get_no_more_teachers_than_there_are_persons():
    persons = replace(FACTS, n_records=539, n_rows=60_000, unit="person", n_classes=10)
    assert max(numbers_of_teachers(persons)) <= 539
    (row, *_) = vote_rows(persons, Grid(mechanisms=[NoisyCounts], n_teachers=[100]))
    assert row.rows_each == 600


def test_online_answers_are_paid_out_of_the_same_budget():
    grid = Grid(mechanisms=[NoisyCounts], n_teachers=[100])
    (alone,), (kept,) = vote_rows(FACTS, grid), vote_rows(replace(FACTS, online_answers=1_000), grid)
    assert kept.mechanism.answer_noise.scale == pytest.approx(2**0.5 * alone.mechanism.answer_noise.scale, rel=1e-4)


def test_private_learners_say_how_many_rows_they_ask_for_and_are_for_records_of_two_classes():
    few, many = learner_rows(replace(FACTS, n_records=100)), learner_rows(replace(FACTS, n_records=200_000))
    assert all(row.cannot.startswith("no promise, since ") for row in few)
    assert not any(row.cannot for row in many)
    assert learner_rows(replace(FACTS, n_classes=3)) == ()
    assert learner_rows(replace(FACTS, n_rows=60_000)) == ()


def test_a_sparse_vector_wins_from_where_gaussian_noise_has_grown_past_it():
    task = {"n_teachers": 1_000, "n_classes": 2, "epsilon": 1.0, "delta": 1e-5}
    found = sparse_vector_from(**task)  # type: ignore[arg-type]
    facts, grid = replace(FACTS, n_records=60_000, n_public=10**6), {"mechanisms": [NoisyCounts], "n_teachers": [1_000]}
    asked = (found.n_queries // 2, 2 * found.n_queries)
    before, after = (vote_rows(facts, Grid(**grid, queries=[n]))[0].probabilities for n in asked)
    assert before.plurality[-1] > found.answered > after.plurality[-1]


def test_json_has_every_row_and_only_plain_values(made):
    import json

    tree = json.loads(json.dumps(made.tree()))
    assert [row["key"] for row in tree["rows"]] == [row.key for row in made.rows]
    assert tree["first"] == made.first.key
    assert tree["rows"][0]["by_margin"]["margins"][-1] == 1.0


@pytest.mark.heavy
def test_other_budgets_are_told_by_how_they_differ_and_never_fall_with_epsilon():
    """Played less, every figure is off by the same luck, which the plan's own ε shows; and noise may turn the order."""
    luck, by_noise = -0.05, {0.25: 0.70, 0.5: 0.78, 1.0: 0.77, 2.0: 0.80, 4.0: 0.79, 8.0: 0.81}

    expect = expecting(lambda facts, _row, n: likely(by_noise[facts.epsilon] + (luck if n == 1 else 0.0), 0.02))
    found = plan_votes(FACTS, expectation=expect)
    told = [each.expected for each in found.by_epsilon]
    assert [each.accuracy for each in told] == pytest.approx([0.70, 0.77, 0.77, 0.80, 0.80, 0.81])
    assert all(each.high - each.low == pytest.approx(0.04) for each in told)
    assert told[2] == found.first.expected


@pytest.mark.heavy
def test_where_both_answer_all_but_never_fail_no_sparse_vector_beats_gaussian_noise():
    """Floats near 1 differ by their rounding alone: 18 queries were enough at 5,000 teachers, and 2,588 at 3,000."""
    task: dict[str, Any] = {"n_classes": 2, "epsilon": 1.0, "delta": 1e-7}
    crossings = [sparse_vector_from(n_teachers=n, **task) for n in (3_000, 4_000, 5_000, 6_508, 20_000, 100_000)]
    queries = [each.n_queries for each in crossings]
    assert queries[-1] is None
    assert crossings[-1].difference == "does not matter"
    known = [each for each in queries if each is not None]
    assert known == sorted(known)
    assert known[0] > 2_500  # the more teachers, the later
    for n_teachers, n_queries in zip((3_000, 4_000, 5_000), known, strict=False):
        before, after = (wrong_by_sum(n_teachers, round(n_queries * factor), **task) for factor in (0.98, 1.02))
        assert after >= MATTERS
        assert before < after


def wrong_by_sum(n_teachers: int, n_queries: int, *, n_classes: int, epsilon: float, delta: float) -> float:
    """How often Gaussian noise on half the lead turns a unanimous vote of two classes: its tail, summed in mpmath."""
    from mpmath import erfc, mpf, sqrt

    del n_classes
    sigma = calibrate_sigma(epsilon, delta, n_queries, 1.0)
    return float(erfc(mpf(n_teachers // 2) / (sigma * sqrt(2))) / 2)


@pytest.fixture(scope="module")
def large():
    return quorate.plan(n_records=3_000_000, n_public=5_000, width=50, n_classes=2, epsilon=1.0, delta=1e-8)


@pytest.mark.heavy
def test_no_difference_that_matters_is_said_in_text_page_and_json(large):
    alike = tuple(replace(each, n_queries=None, difference="does not matter") for each in large.crossings)
    said = replace(large, crossings=alike)
    assert "no difference that matters" in " ".join(render_plan(said).split())
    assert "no difference that matters" in plan_page(said)
    assert {each["difference"] for each in said.tree()["sparse_vector_beats_gaussian_from"]} == {"does not matter"}


def test_a_learner_that_no_table_is_large_enough_for_does_not_cost_the_plan_its_other_rows():
    facts = PublicFacts(n_records=3000, n_public=400, n_classes=2, width=2, epsilon=1e-9, delta=1e-5)
    rows = learner_rows(facts)
    assert [row.name for row in rows] == ["NoisyThreshold"]
    assert rows[0].cannot.startswith("no promise")


def test_a_class_says_less_of_a_share_than_the_votes_behind_it():
    task = {"n_teachers": 178, "n_queries": 1_000}
    assert share_noise(FACTS, NoisyCounts(sigma=117.97, form="binary"), None, **task) == pytest.approx(0.22, abs=0.005)
    classes = GaussianNoisyMax(sigma=117.97, form="binary")
    chances = answer_probabilities(classes, n_teachers=178, n_classes=2)
    assert share_noise(FACTS, classes, chances, **task) == pytest.approx(0.28, abs=0.005)


def test_a_row_is_called_by_what_releases_and_by_its_sizes():
    votes = PlanRow(way="votes", name="NoisyCounts", model="tree", n_teachers=178, n_queries=1_000)
    assert name_of(votes) == "NoisyCounts, tree of 178 teachers on 1,000 queries"
    assert name_of(PlanRow(way="direct", name="gradient rounds")) == "direct method"
    assert noise_in_words(LaplaceNoisyMax(laplace_scale=166.76)) == "b = 166.7 votes"
    assert noise_in_words(PermuteAndFlip(epsilon=0.01)) == "ε = 0.01 an answer"


TASK: dict[str, Any] = {
    "n_records": 600, "n_public": 200, "n_classes": 2, "width": 9, "epsilon": 1.0, "delta": 1e-5,
}  # fmt: skip


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"learning_curve": [1, 2]}, r"learning_curve must be pairs .* got \[1, 2\]"),
        ({"learning_curve": 0.8}, r"learning_curve must be pairs .* got 0\.8"),
        ({"learning_curve": [(20, 0.7, 3)]}, "learning_curve must be pairs"),
        ({"learning_curve": [("many", 0.7)]}, "learning_curve must be pairs"),
        ({"learning_curve": [(float("inf"), 0.7)]}, "learning_curve must be pairs"),
        ({"n_teachers": 5}, "n_teachers must be a list of at least one, got 5"),
        ({"n_teachers": []}, r"n_teachers must be a list of at least one, got \[\]"),
        ({"n_teachers": [601]}, "n_teachers must be at most 600 here, got 601"),
        ({"queries": 50}, "queries must be a list of at least one, got 50"),
        ({"queries": [0]}, "queries must be a whole number >= 1, got 0"),
        ({"mechanisms": [int]}, "mechanisms must be mechanisms, their classes, or names"),
        ({"mechanisms": ["NoisyCount"]}, "got 'NoisyCount'; did you mean \"NoisyCounts\""),
        ({"mechanisms": "NoisyCounts"}, "mechanisms must be a list of at least one"),
        ({"mechanisms": NoisyCounts}, "mechanisms must be a list of at least one"),
        ({"mechanisms": []}, "mechanisms must be a list of at least one"),
        ({"unit": 5}, 'unit must be a word such as "person" or "record", got 5'),
        ({"unit": ""}, "unit must be a word"),
        ({"n_rows": 599}, "n_rows must be at least n_records, since each record has a row, got 599"),
        ({"width": 0}, "width must be a whole number >= 1, got 0"),
        ({"classes": ["a", "b", "c"]}, "n_classes=2, and classes has 3; leave out n_classes"),
        ({"n_classes": None}, "n_classes is needed"),
        ({"n_public": None}, "n_public is needed"),
        ({"width": None}, "width is needed"),
    ],
)
def test_a_wrong_argument_is_one_line(wrong, said):
    with pytest.raises(InvalidParameter, match=said) as refused:
        quorate.plan(**{**TASK, **wrong})
    assert "\n" not in str(refused.value)


@pytest.mark.heavy
def test_a_mechanism_may_be_named():
    named, typed = (quorate.plan(**TASK, mechanisms=[each]) for each in ("NoisyCounts", NoisyCounts))
    assert [row.key for row in named.rows] == [row.key for row in typed.rows]
