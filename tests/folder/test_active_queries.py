"""Runs whose queries are chosen: in memory and in a folder, priced, and told to the reader."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from tests.folder.conftest import labels

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import epsilon
from quorate.accounting.figures import at_most
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed
from quorate.folder.batch import ask, load_run
from quorate.folder.methods import check, execute
from quorate.folder.status import read_status
from quorate.labelling import CoreSet, Disagreement, KMeans, Margin, OracularCAL, Random, Strategy, VersionSpace
from quorate.labelling.active.strategy import GAIN_IS_UNCERTAIN
from quorate.labelling.data_dependent import ex_post_delta
from quorate.ledger import Budget, Ledger
from quorate.report import Facts, render_html, render_text
from quorate.run.cautions import LABELS_ARE_COINS

pytestmark = pytest.mark.mostly_heavy

N_PRIVATE = 2_000
EASY = [OracularCAL(120), Disagreement(120), Margin(120), KMeans(120), CoreSet(120), Random(120), VersionSpace(120)]


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(3_500, n_features=4, n_informative=3, n_redundant=0, class_sep=2.0, random_state=1)
    return X - X.mean(axis=0), y


def classifier(queries, **more):
    given = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_records": N_PRIVATE, "n_teachers": 40, "n_jobs": 1}
    return PrivateClassifier(queries=queries, **{**given, **more})


def fitted(rows, queries, **more):
    X, y = rows
    return classifier(queries, **more).fit(X[:N_PRIVATE], y[:N_PRIVATE], public=PublicPool(X[N_PRIVATE:2_400]))


@dataclass(frozen=True)
class Few(Strategy):
    """Asks thirty and stops."""

    most: int = 30

    def next_batch(self, pool, history, rng):
        return history.not_asked(pool.shape[0])[: max(0, min(5, self.most - len(history.rows)))]


@pytest.mark.parametrize(
    ("strategy", "mechanism"),
    [
        *((strategy, "auto") for strategy in EASY),
        (EASY[0], "GaussianNoisyMax"),
        pytest.param(EASY[1], "GaussianNoisyMax", marks=pytest.mark.faults),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_a_classifier_learns_from_what_a_strategy_asked(rows, strategy, mechanism):
    X, y = rows
    clf = fitted(rows, strategy, mechanism=mechanism, unsafe_noise_seed=2)
    assert clf.score(X[2_400:], y[2_400:]) > 0.75
    assert 0 < len(clf.queries_) <= 120
    assert len(set(clf.queries_.tolist())) == len(clf.queries_) == len(clf.released_.codes)
    assert clf.queries_.max() < 400
    assert 3.9 < clf.guarantee_.epsilon <= 4.0


@pytest.mark.several_fits
def test_price_and_noise_are_those_of_the_cap_whatever_is_asked(rows):
    """The control: a strategy that stops, a random subset and a plain number of the cap's size cost the same."""
    fits = [fitted(rows, queries, unsafe_noise_seed=3) for queries in (Few(100), Random(100), 100)]
    assert len({each.recipe_.mechanism.sigma for each in fits}) == 1
    assert len({each.guarantee_.epsilon for each in fits}) == 1
    assert [len(each.queries_) for each in fits] == [30, 100, 100]
    assert sorted(fits[1].queries_.tolist()) == fits[2].queries_.tolist()


@pytest.fixture(scope="module")
def stopped(rows):
    """A fit whose strategy stops after thirty of a hundred, which tests only read."""
    return fitted(rows, Few(100))


@pytest.mark.several_fits
def test_what_was_read_after_the_fact_stands_apart_from_the_guarantee(rows, stopped):
    clf, found = stopped, stopped.ex_post_epsilon_
    assert found is not None
    assert 0 < found < 0.75 * clf.guarantee_.epsilon
    assert clf.guarantee_.epsilon == fitted(rows, 100).guarantee_.epsilon
    # An independent look: the price of 3 of 8 parts of the cap at an eighth of δ.
    event = clf.recipe_.event.event
    assert found == epsilon(type(clf.recipe_.event)(event, 38), 1e-5 / 8)
    facts = clf.facts()
    assert facts.spending.ex_post.epsilon == found
    assert facts.guarantee == clf.guarantee_
    assert Facts.from_json(facts.to_json()) == facts


def test_no_reader_can_take_the_one_for_the_other(stopped):
    facts = stopped.facts()
    text = render_text(facts)
    lines = [line for line in text.splitlines() if "ε ≤" in line]
    assert lines[0].startswith("guarantee   ε ≤ 4,")
    assert lines[1].startswith("ex post     ε ≤ ")
    assert "not the guarantee" in text
    assert "chosen by Few, at most 100" in text
    assert "30 asked" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    page = render_html(facts)
    assert "Read after the fact, not the guarantee" in page
    assert "30 of at most 100 answers were drawn" in page
    pair = ex_post_delta(stopped.recipe_.mechanism, cap=100, delta=1e-5)
    assert 1e-5 < pair < 2e-5
    assert f"for the runs for which none is, it holds at δ = {at_most(pair)}." in page
    assert "at most 100 of the public rows, chosen by Few" in page
    ex_post = f"{facts.spending.ex_post.epsilon:.3f}"[:4]
    for promise in (facts.guarantee.for_data_subject(), facts.guarantee.for_reviewer(), facts.guarantee.to_json()):
        assert ex_post not in promise


@pytest.mark.parametrize("queries", [100, Random(100), Margin(100)])
def test_where_the_cap_was_reached_nothing_is_read_after_the_fact_and_nothing_left_to_ask(rows, queries):
    clf = fitted(rows, queries)
    assert clf.ex_post_epsilon_ is None
    assert clf.facts().spending.ex_post is None
    assert "ex post" not in clf.summary()
    said = "set online_answers before" if queries == 100 else "0 answers are left"
    with pytest.raises((BudgetExhausted, PreconditionFailed), match=said):
        clf.ask(rows[0][2_400:2_401])


def test_nothing_is_read_after_the_fact_where_the_ledger_holds_more_than_this_run(rows, tmp_path):
    path = tmp_path / "ledger.db"
    X, y = rows
    Ledger(path, budget=Budget(8.0, 2e-5)).close()
    clf = fitted(rows, Few(100), ledger=path)
    assert clf.ex_post_epsilon_ is not None
    clf.fit(X[:N_PRIVATE], y[:N_PRIVATE], public=PublicPool(X[N_PRIVATE:2_400]))
    assert clf.ex_post_epsilon_ is None


def test_what_was_left_unasked_answers_later_questions_at_the_same_noise(rows):
    X, _ = rows
    clf = fitted(rows, Few(60), online_answers=5)
    assert clf.facts().spending.answers_left == 35
    before = clf.ex_post_epsilon_
    assert len(clf.ask(X[2_400:2_420])) == 20
    assert clf.facts().spending.answers_left == 15
    assert clf.ask(X[2_400:2_420]) == clf.ask(X[2_400:2_420])  # free
    with pytest.raises(BudgetExhausted, match="15 answers left"):
        clf.ask(X[2_500:2_516])
    assert len(clf.ask(X[2_500:2_515])) == 15
    assert clf.facts().spending.answers_left == 0
    assert before is not None
    assert clf.ex_post_epsilon_ is None  # the whole cap is drawn
    assert clf.ask(X[2_500:2_502]) == clf.ask(X[2_500:2_502])


@pytest.mark.several_fits
def test_a_cluster_shares_its_centres_answer_with_the_student_where_classes_are_released(rows):
    """The student of classes is fitted on the whole pool, that of noisy votes on what was asked."""

    class Counting(LogisticRegression):
        seen: list[int] = []  # noqa: RUF012

        def fit(self, X, y, sample_weight=None):
            Counting.seen.append(len(X))
            return super().fit(X, y, sample_weight)

    Counting.seen.clear()
    fitted(rows, KMeans(50), mechanism="GaussianNoisyMax", student=Counting())
    assert Counting.seen[-1] == 400
    fitted(rows, Random(50), mechanism="GaussianNoisyMax", student=Counting())
    assert Counting.seen[-1] == 50


def test_points_that_stand_twice_in_the_pool_are_one_query(rows):
    X, y = rows
    twice = np.vstack([X[N_PRIVATE:2_100], X[N_PRIVATE:2_100]])
    clf = classifier(Random(100)).fit(X[:N_PRIVATE], y[:N_PRIVATE], public=PublicPool(twice))
    assert len({tuple(row) for row in twice[clf.queries_]}) == 100
    with pytest.raises(InvalidParameter, match="100 distinct points"):
        classifier(Random(101)).fit(X[:N_PRIVATE], y[:N_PRIVATE], public=PublicPool(twice))


@pytest.mark.quick
def test_a_classifier_with_a_strategy_can_be_cloned_and_shown():
    clf = clone(classifier(Margin(30, learner=LogisticRegression(C=2.0))))
    assert repr(clf.queries) == "Margin(n=30, learner=LogisticRegression(C=2.0), batch=None)"


class Broken(Strategy):
    def next_batch(self, pool, history, rng):
        raise RuntimeError("no such column")


@pytest.mark.parametrize(
    ("queries", "more", "match"),
    [
        (Broken(10), {}, "strategy Broken fails on the public rows .*no such column"),
        (Margin(10), {"mechanism": "InteractiveNoisyMax"}, "needs threshold|fixed beforehand"),
        (OracularCAL(10), {"classes": [0, 1, 2]}, "two classes"),
        (Margin(401), {}, "400 distinct points"),
        (Margin, {}, "strategy such as Margin"),
        ("margin", {}, "strategy such as Margin"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_charged(rows, queries, more, match, tmp_path):
    with pytest.raises(InvalidParameter, match=match):
        fitted(rows, queries, ledger=tmp_path / "ledger.db", **more)
    assert not (tmp_path / "ledger.db").exists()


ACTIVE = {"mechanism.queries": 60, "mechanism.strategy": "margin"}


@pytest.mark.quick
def test_the_default_strategy_is_a_random_subset_and_says_nothing(make_run):
    found = check(load_run(make_run(**{"mechanism.queries": 60, "mechanism.strategy": "random"}))).found
    assert found["strategy"] is None
    assert GAIN_IS_UNCERTAIN not in {each["code"] for each in found["cautions"]}


def test_a_check_says_what_a_strategy_costs_and_for_programs_by_a_code_what_to_be_careful_of(make_run, cli):
    root = make_run(**ACTIVE, **{"budget.epsilon": 0.01})
    found = {each["code"]: each for each in cli.json("check", root)["cautions"]}
    assert found[GAIN_IS_UNCERTAIN]["severity"] == "note"
    assert (found[LABELS_ARE_COINS]["severity"], found[LABELS_ARE_COINS]["outcome"]) == ("serious", "failed")
    said = cli.ok("check", root).words
    assert all(each["message"] in said for each in found.values())
    assert "why Margin chooses the queries from released answers, and may stop early" in said
    assert "note whether Margin beats a random subset of the same size depends on the task" in said
    assert "60 labels" in said


def stopping(root):
    """A run whose strategy stops after 20 of 60."""
    batch = load_run(root)
    return replace(batch, task=replace(batch.task, strategy=Few(60, most=20)))


def test_a_finished_run_may_be_asked_what_its_strategy_left_and_an_unfinished_one_may_not(make_run):
    root = make_run(**ACTIVE)
    with pytest.raises(PreconditionFailed, match="not all released"):
        ask(stopping(root), root / "evaluation.csv")
    made = execute(stopping(root), command="quorate run")
    assert made.spending.answers_left == 40
    assert made.spending.ex_post is not None
    (root / "some.csv").write_text("".join((root / "evaluation.csv").read_text().splitlines(keepends=True)[:16]))
    found = ask(stopping(root), root / "some.csv")
    assert found.left == 40 - len(found.answers)
    told = read_status(root)
    assert told.stages["labels"]
    assert told.account.answers_left == found.left
    again = ask(stopping(root), root / "some.csv")
    assert (again.answers, again.left) == (found.answers, found.left)
    before = labels(root)
    later = execute(stopping(root), command="quorate run")
    assert labels(root) == before  # which are read again; later answers are not among them
    assert later.spending.answers_left == found.left
    assert later.spending.ex_post.epsilon > made.spending.ex_post.epsilon


def test_a_note_of_another_strategy_does_not_open_a_run_for_questions(make_run):
    """The note that a strategy has stopped is bound to the charge: after a change of settings it does not count."""
    root = make_run(**{**ACTIVE, "budget.epsilon": 12.0, "run.epsilon": 4.0, "budget.delta": 1e-4, "run.delta": 1e-5})
    execute(stopping(root), command="quorate run")
    with pytest.raises(PreconditionFailed, match="settings or files differ"):
        ask(load_run(root), root / "evaluation.csv")
