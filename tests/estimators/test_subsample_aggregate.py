"""SubsampleAggregate: exact answers, one vote a unit, one charge, a memo, and nothing private on any surface."""

import copy
import importlib
import pickle
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from quorate import Ledger, SubsampleAggregate
from quorate.accounting import epsilon
from quorate.audit import Forbidden, Surfaces, find_leaks
from quorate.ensemble.functions import function_values, portable
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, LedgerMismatch, QuorateError, SecretRefused
from quorate.estimators.sharded_rows import question_of
from quorate.labelling.stable import QUERY, STAGE
from quorate.ledger import Budget
from quorate.mechanisms import StableSparseVector

pytestmark = pytest.mark.mostly_heavy
N = 120
ROWS = np.random.default_rng(7).normal(40, 3, (N, 2))
NAMES = [("ann", "bob", "cleo")[row % 3] for row in range(N)]


def aggregate(**changes):
    fields = {"epsilon": 20.0, "delta": 1e-3, "n_shards": 16, "cutoff": 2, "n_queries": 12, "n_jobs": 1, **changes}
    return SubsampleAggregate(**fields)


def fitted(**changes):
    """With as few shards as answer as surely at a larger ε: each question to each is a process."""
    return aggregate(**{"epsilon": 40.0, "n_shards": 9, "unsafe_noise_seed": 3, **changes}).fit(ROWS, NAMES)


def decade(X, y):
    return round(float(np.median(X)) / 10) * 10


def rows_here(X, y):
    return hash(X.tobytes())  # every shard has a value of its own: dist 0


def constant(X, y, value="same"):
    return value


@pytest.mark.parametrize(
    "value",
    ["same", -3, 0, True, False, ("a", 1, (True,)), frozenset({"x", "y"}), "", 10**40],
    ids=lambda value: type(value).__name__,
)
def test_a_unanimous_value_is_answered_exactly(value):
    answer = fitted().ask(constant, value)
    assert (answer, type(answer)) == (value, type(value))


def test_a_stable_statistic_is_answered_and_an_unstable_one_declined():
    private = fitted()
    assert private.ask(decade) == 40
    assert private.ask(rows_here) is None
    left = private.answers_left_
    assert (left.declines, left.queries) == (1, 10)


@pytest.mark.parametrize("calibration", ["tight", "lzcw21", "btt18"])
def test_every_calibration_answers_what_nearly_all_shards_agree_on(calibration):
    private = aggregate(
        calibration=calibration, epsilon=50.0, delta=1e-2, cutoff=1, n_shards=24, unsafe_noise_seed=1
    ).fit(ROWS)
    assert private.ask(decade) == 40
    assert private.mechanism_.calibration == calibration


def votes_of(private, function):
    [values] = function_values([portable(function)], private._kept.shards).reveal()
    return values


@pytest.mark.parametrize("grouped", [False, True])
def test_to_replace_add_or_remove_one_unit_changes_one_vote(grouped):
    def everything(X, y):
        return repr((X.tolist(), y.tolist()))

    groups = [f"person {row // 3}" for row in range(N)] if grouped else None
    mine = [row for row in range(N) if groups is not None and groups[row] == "person 11"] or [N - 1]
    before = votes_of(aggregate(unsafe_noise_seed=3).fit(ROWS, NAMES, groups=groups), everything)
    changed = ROWS.copy()
    changed[mine] += 100
    kept = [row for row in range(N) if row not in mine]
    removed = {"X": ROWS[kept], "y": [NAMES[row] for row in kept], "groups": groups and [groups[row] for row in kept]}
    added = {"X": np.vstack([ROWS, [[0, 0]]]), "y": [*NAMES, "dan"], "groups": groups and [*groups, "person 999"]}
    for other in ({"X": changed, "y": NAMES, "groups": groups}, removed, added):
        after = votes_of(aggregate(unsafe_noise_seed=3).fit(**other), everything)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


@pytest.mark.quick
def test_the_rows_of_one_person_are_in_one_shard():
    people = [row % 40 for row in range(N)]
    private = aggregate(unsafe_noise_seed=3).fit(np.array(people)[:, None], groups=people)
    seen = [frozenset(shard.X[:, 0].tolist()) for shard in private._kept.shards.reveal()]
    assert sum(map(len, seen)) == len(frozenset().union(*seen)) == 40
    assert private.guarantee_.unit == "person"
    assert private.guarantee_.neighbours == "add, remove or replace one person"


@pytest.mark.quick
def test_a_balanced_partition_is_for_replacing_alone_and_says_so():
    private = fitted(partition="balanced", n_shards=16)
    assert {len(shard.X) for shard in private._kept.shards.reveal()} == {7, 8}
    assert private.guarantee_.neighbours == "replace one record"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def test_fit_charges_the_whole_run_once_and_asking_charges_nothing(path):
    private = aggregate(ledger=path).fit(ROWS, NAMES)
    with Ledger(path) as ledger:
        spent, [reservation] = ledger.spent, ledger.reservations()
        assert reservation.event == private.mechanism_.event
        assert dict(reservation.purposes) == {STAGE: 2, QUERY: 12}
        assert ledger.durable
    assert spent.epsilon >= epsilon(private.mechanism_.event, 1e-3)
    assert (private.guarantee_.epsilon, private.guarantee_.delta) == (spent.epsilon, spent.delta)
    assert spent.epsilon <= 20
    private.ask_many([decade, constant, rows_here])
    with Ledger(path) as ledger:
        assert ledger.spent == spent
        assert ledger.verify(prices=True) == ledger.head


def test_after_t_declined_questions_it_is_silent_but_for_what_was_answered():
    private = fitted()
    assert private.ask(constant) == "same"
    assert [private.ask(rows_here, name=name) for name in ("one", "two")] == [None, None]
    with pytest.raises(BudgetExhausted, match="cutoff=2"):
        private.ask(constant, "new")
    assert private.ask(constant) == "same"
    assert private.ask(rows_here, name="one") is None
    assert private.answers_left_.declines == 0


def test_a_batch_that_meets_the_cutoff_keeps_what_was_answered_before_it():
    private = fitted()
    names = ["stable", "unstable", "unstable too", "stable too"]
    with pytest.raises(BudgetExhausted, match="cutoff=2"):
        private.ask_many([constant, rows_here, rows_here, constant], names=names)
    assert private.ask_many([constant, rows_here, rows_here], names=names[:3]) == ["same", None, None]


def test_a_batch_larger_than_what_is_left_is_refused_as_a_whole():
    private = fitted(n_queries=3)
    with pytest.raises(BudgetExhausted, match="4 new queries"):
        private.ask_many([constant] * 4, names=list("abcd"))
    assert private.answers_left_.queries == 3
    assert private.ask_many([constant] * 4, names=list("aabb")) == ["same"] * 4
    assert private.answers_left_.queries == 1


def test_a_question_that_was_asked_before_is_free_and_has_the_same_answer():
    private = fitted()
    first = [private.ask(decade), private.ask(rows_here), private.ask(constant, 3)]
    left = private.answers_left_
    assert [private.ask(decade), private.ask(rows_here), private.ask(constant, 3)] == first
    assert private.ask_many([decade, rows_here, decade]) == [first[0], first[1], first[0]]
    assert private.answers_left_ == left


@pytest.mark.quick
def test_questions_are_told_apart_by_code_arguments_and_what_they_close_over():
    def closing(value):
        return lambda X, y: value

    asked = [decade, constant, partial(constant, value=1), partial(constant, value=2), closing(1), closing(2), len]
    texts = [question_of(each) for each in asked] + [question_of(constant, (1,)), question_of(constant, ("1",))]
    assert len(set(texts)) == len(texts)
    assert texts[:7] == [question_of(each) for each in asked]
    assert question_of(closing(1)) == question_of(closing(1))
    assert question_of(decade, name="x") == question_of(constant, name="x") == "name: x"


@pytest.mark.quick
def test_an_edited_function_of_a_module_is_a_new_question(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "edited_questions.py"
    module.write_text("def f(X, y):\n    return 1\n")
    edited = importlib.import_module("edited_questions")
    before = question_of(edited.f)
    module.write_text("def f(X, y):\n    return 1234567\n")
    assert question_of(importlib.reload(edited).f) != before


@pytest.mark.quick
def test_a_name_that_is_no_line_of_text_and_a_function_that_cannot_be_sent_are_refused_and_cost_nothing():
    private, lock = fitted(), threading.Lock()
    for name in ("", "two\nlines", "x" * 201, 3, b"x"):
        with pytest.raises(InvalidParameter, match="name must be"):
            private.ask(constant, name=name)
    with pytest.raises(InvalidParameter, match="must be callable"):
        private.ask(3)
    with pytest.raises(InvalidParameter, match="cannot be sent"):
        private.ask(lambda X, y: lock)
    assert private.answers_left_.queries == 12


def test_a_restart_goes_on_with_the_same_charge_and_spends_the_stage_it_broke(path):
    first = aggregate(ledger=path).fit(ROWS, NAMES)
    assert first.ask(constant, name="c") == "same"
    again = aggregate(ledger=path).fit(ROWS, NAMES)
    assert again.guarantee_ == first.guarantee_
    left = again.answers_left_
    assert (left.declines, left.queries) == (1, 11)
    assert again.ask(rows_here, name="c") == "same"  # remembered by its name, and free
    assert again.answers_left_ == left
    assert again.ask(constant, "new") == "new"
    last = aggregate(ledger=path).fit(ROWS, NAMES)
    with pytest.raises(BudgetExhausted):
        last.ask(decade)
    with Ledger(path) as ledger:
        assert len(ledger.reservations()) == 1


def test_another_run_on_the_same_ledger_needs_budget_of_its_own(path):
    aggregate(ledger=path).fit(ROWS, NAMES)
    with pytest.raises(BudgetExhausted):
        aggregate(ledger=path, cutoff=1).fit(ROWS, NAMES)
    with Ledger(budget=Budget(40.0, 2e-3)) as ledger:
        aggregate(ledger=ledger).fit(ROWS, NAMES)
        second = aggregate(ledger=ledger, cutoff=1).fit(ROWS, NAMES)
        assert second.guarantee_.epsilon > 39
        assert any("earlier runs" in caveat for caveat in second.guarantee_.caveats)
        assert second.ask(constant) == "same"


@pytest.mark.quick
def test_the_ledger_of_other_data_is_refused(path):
    aggregate(ledger=path).fit(ROWS, NAMES)
    for other in ((ROWS + 1, NAMES), (ROWS, NAMES[::-1]), (ROWS, None)):
        with pytest.raises(LedgerMismatch):
            aggregate(ledger=path).fit(*other)


def test_a_refused_fit_leaves_the_one_before_as_it_was():
    private = fitted()
    private.ask(constant)
    with pytest.raises(DataRefused):
        private.fit(ROWS[:5], NAMES[:5])
    assert private.answers_left_.queries == 11


def test_a_seeded_run_repeats_and_says_that_it_is_not_private():
    def near(X, y, row):
        return bool(X[row % len(X), 0] > 38.5)

    runs = []
    for _ in range(2):
        private = aggregate(cutoff=4, n_queries=4, unsafe_noise_seed=3).fit(ROWS)
        runs.append(private.ask_many([partial(near, row=row) for row in range(4)]))
        assert "reproducible" in private.guarantee_.caveats[0]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 2  # an answer and a declined one
    one, other = (
        [shard.X.tolist() for shard in aggregate(unsafe_noise_seed=seed).fit(ROWS)._kept.shards.reveal()]
        for seed in (3, 4)
    )
    assert one != other


@pytest.mark.quick
def test_the_guarantee_says_what_was_promised_and_what_not():
    guarantee = aggregate().fit(ROWS).guarantee_
    assert guarantee.delta == 1e-3
    assert guarantee.epsilon <= 20
    assert "at most 12 functions on 16 shards, at most 2 of them declined" in guarantee.mechanism
    assert any("position" in caveat for caveat in guarantee.caveats)
    assert any("in memory" in caveat for caveat in guarantee.caveats)
    assert not any("seeded" in caveat for caveat in guarantee.caveats)


@pytest.mark.quick
def test_a_fitted_one_is_neither_pickled_nor_copied_and_an_unfitted_one_is():
    private = fitted()
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match="private rows"):
            travel(private)
    loaded = pickle.loads(pickle.dumps(aggregate()))  # noqa: S301 - our own bytes
    for same in (loaded, clone(private), copy.deepcopy(aggregate())):
        with pytest.raises(NotFittedError):
            same.ask(constant)


def facts(private):
    sizes = [len(shard.X) for shard in private._kept.shards.reveal()]
    yield Forbidden("rows", arrays=[ROWS])
    yield Forbidden("a value", numbers=[float(ROWS[0, 0]), float(ROWS[77, 1])])
    yield Forbidden("a name", texts=["cleo"])
    yield Forbidden("shard sizes", arrays=[sizes])
    yield Forbidden("n", numbers=[N])


def test_no_surface_tells_rows_votes_or_shards(path):
    private = aggregate(ledger=path).fit(ROWS, NAMES)
    with Surfaces() as seen:
        answers = private.ask_many([decade, rows_here, lambda X, y: X[0, 0]], names=["decade", "own", "float"])
        seen.add_object("private", private)
        seen.add_object("answers", answers)
        seen.add_object("left", private.answers_left_)
        seen.add_text("summary", private.summary())
        seen.add_json("guarantee", private.guarantee_.to_json())
        seen.add_dump("pickle", private, pickle.dumps)
        for act in (lambda: private.ask(constant), lambda: private.ask(3), lambda: private.fit(ROWS[:3])):
            with pytest.raises(QuorateError) as error:
                act()
            seen.add_error("error", error.value)
        seen.add_files(path)
    assert answers == [40, None, None]
    assert find_leaks(seen, list(facts(private))) == []


@pytest.mark.quick
def test_that_walk_catches_a_leak():
    private = fitted()
    seen = Surfaces()
    seen.add_object("shards", [shard._asdict() for shard in private._kept.shards.reveal()])
    assert {leak.fact for leak in find_leaks(seen, list(facts(private)))} >= {"a value", "a name"}


def test_the_summary_fits_a_terminal_and_says_what_is_left():
    private = fitted()
    private.ask_many([decade, rows_here])
    lines = private.summary().splitlines()
    assert lines[1] == "asked       2 of 12 · 1 answered · 1 declined"
    assert lines[2] == "left        1 of 2 declines · 10 questions"
    assert "(ε = 40, δ = 0.001)-differential privacy per record" in " ".join(private.summary().split())
    assert max(map(len, lines)) <= 80


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(  # each argument by itself: tests/estimators/test_wrong_inputs.py
    ("changes", "message"),
    [
        ({"n_queries": 1}, "cutoff must be at most"), ({"calibration": "loose"}, "calibration must be"),
        ({"partition": "hsh"}, 'did you mean "hash"'), ({"unit": "person"}, "no groups were given"),
        ({"n_shards": 3}, "at least 5 here"), ({"epsilon": 0.5, "n_shards": 60}, "Give more shards"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_before_anything_is_charged(changes, message, path):
    with pytest.raises(InvalidParameter, match=message):
        aggregate(ledger=path, **changes).fit(ROWS, NAMES)
    assert not path.exists()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "table",
    [
        {"X": ROWS, "y": NAMES[:-1]}, {"X": ROWS[:, 0]}, {"X": ROWS, "y": ROWS}, {"X": ROWS[:10]},
        {"X": ROWS, "groups": [1] * N}, {"X": ROWS, "groups": [1]},
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_before_anything_is_charged(table, path):
    with pytest.raises(DataRefused):
        aggregate(ledger=path).fit(**table)
    assert not path.exists()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_function_gets_a_frame_where_fit_got_one(frame):
    X = frame({"age": ROWS[:, 0], "word": NAMES})
    private = aggregate(unsafe_noise_seed=1).fit(X, pd.Series(NAMES, index=range(500, 500 + N)))
    assert private.ask(lambda X, y: (type(X).__name__, *X.columns, type(y).__name__)) == (
        "DataFrame", "age", "word", "ndarray",
    )  # fmt: skip


def test_the_page_on_theory_says_how_many_votes_the_leader_must_be_ahead():
    page = Path(__file__).parents[2] / "docs" / "theory" / "subsample-aggregate.md"
    rows = [line.strip("| ").split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    told = [[int(cell.replace(",", "")) for cell in row] for row in rows[2:]]
    columns = [(0.5, "tight"), (1, "tight"), (2, "tight"), (4, "tight"), (1, "lzcw21"), (1, "btt18")]

    def ahead(epsilon, calibration, cutoff):
        mechanism = StableSparseVector(epsilon, 1e-6, cutoff, 100, calibration)
        return next(gap for gap in range(20_000) if mechanism.pass_probability(max(0, -(-gap // 2) - 1)) >= 0.95)

    assert told == [[cutoff, *(ahead(*column, cutoff) for column in columns)] for cutoff in (1, 2, 5, 10, 50)]


def first_label(X, y):
    return repr(y[0])


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=lambda make: make.__module__.split(".")[0])
@pytest.mark.several_fits
def test_one_persons_fraction_does_not_turn_the_answer_into_a_fraction(make):
    sevens = [7] * 800
    answers = []
    for first in (7, 0.5):
        y = make([first, *sevens[1:]]) if make is not pl.Series else pl.Series([first, *sevens[1:]], strict=False)
        private = SubsampleAggregate(epsilon=50.0, delta=1e-5, n_shards=12, cutoff=1, n_queries=1, n_jobs=1)
        answers.append(private.fit(np.zeros((800, 1)), y).ask(first_label))
    assert answers[0] is not None
    assert answers[0] == answers[1]
