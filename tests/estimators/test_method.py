"""Which method a classifier's fit has by its arguments, that a fit which was begun keeps it, and what was expected."""

import io
import pickle
import sys
import warnings

import numpy as np
import pytest

from quorate import PrivateClassifier, PublicPool, check
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, PreconditionFailed
from quorate.run.progress import say

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(400, 3)), PublicPool(RNG.normal(size=(60, 3)))
Y = (X[:, 0] > 0).astype(int)
HOW = {"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_jobs": 1, "allow_hopeless": True}


@pytest.mark.parametrize(
    ("given", "grouped", "by", "why"),
    [
        ({}, False, "direct", "a record is one row"),
        ({"method": "votes"}, False, "votes", "it was asked for"),
        ({"n_teachers": 9, "batched": False}, False, "votes", "n_teachers and batched are for votes"),
        ({"online_answers": 1}, True, "votes", "online_answers is for votes"),
        ({"n_records": 100, "n_rows": 400}, True, "direct", "up to 10 rows a person"),
        ({"n_records": 9, "n_rows": 400, "unit": "visit"}, True, "votes", "a visit has 44 rows on average"),
        ({"n_records": 100}, True, "votes", "fewer than 2,000 persons are declared"),
        ({}, True, "direct", "nothing declared says that a person has more than 10 rows"),
    ],
)
def test_arguments_and_declared_numbers_choose_the_method(given, grouped, by, why):
    groups = np.arange(9) if grouped else None
    chosen = PrivateClassifier(**{**HOW, **given})._chosen(groups=groups, public=POOL)
    assert (chosen, why in chosen.why) == (by, True), chosen


def test_a_schema_alone_leaves_few_units_to_the_direct_method():
    few = PrivateClassifier(**HOW, n_records=100)
    assert few._chosen(groups=np.arange(9), schema={"age": (0, 120)}) == "direct"
    assert few._chosen(groups=np.arange(9), public=POOL, schema={"age": (0, 120)}) == "votes"


def test_what_is_for_teachers_is_refused_beside_a_direct_fit_that_was_asked_for():
    clf = PrivateClassifier(method="direct", **HOW, queries=9, mechanism="NoisyCounts")
    with pytest.raises(InvalidParameter, match=r"^queries and mechanism are for votes of teachers, and method="):
        clf.fit(X, Y, public=POOL)
    with pytest.raises(InvalidParameter, match='did you mean "direct"'):
        PrivateClassifier(method="dirct", **HOW).fit(X, Y, public=POOL)


@pytest.mark.heavy
def test_a_direct_fit_predicts_reports_and_says_why_there_is_nothing_to_ask(tmp_path, capsys):
    clf = PrivateClassifier(**HOW, n_records=400, verbose=True).fit(X, Y, public=POOL)
    assert capsys.readouterr().err.startswith(f"method: {clf.method_.in_words}\n")
    assert clf.method_ == "direct"
    assert "method: direct, since" in repr(clf)
    assert "method" in clf._repr_html_inner()
    assert clf.score(X, Y) > 0.8
    assert clf.predict_proba(X[:2]).shape == (2, 2)
    assert "PrivateClassifier.fit" in clf.summary()
    assert clf.ex_post_epsilon_ is None
    assert '<html lang="de"' in clf.report(tmp_path / "bericht.html", language="de").read_text(encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r'^language must be one of "en", "de", "fr", got \'it\''):
        clf.report(tmp_path / "rapporto.html", language="it")
    assert not (tmp_path / "rapporto.html").exists()
    assert clf.export(tmp_path / "model.skops").exists()
    with pytest.raises(PreconditionFailed, match=r"nothing to ask: .* give online_answers= before fit"):
        clf.ask(X[:1])
    with pytest.raises(AttributeError, match='released_ is of votes, and this fit was direct; set method="votes"'):
        _ = clf.released_
    assert not hasattr(clf, "recipe_")
    copy = pickle.loads(pickle.dumps(clf))  # noqa: S301
    assert np.array_equal(copy.predict(X), clf.predict(X))
    clf.decision_threshold = "balanced"
    assert clf.decision_threshold_ != 0.5
    assert np.array_equal(clf.predict(X), clf.predict_proba(X)[:, 1] >= clf.decision_threshold_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two fits without a ledger
        clf.set_params(method="votes", decision_threshold="accuracy", n_teachers=40).fit(X, Y, public=POOL)
    assert clf.method_ == "votes"
    assert clf.released_.asked.all()
    assert not hasattr(clf, "n_rounds_")


def test_a_line_for_a_closed_terminal_stops_nothing(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("nobody reads this")


@pytest.mark.heavy
def test_a_fit_goes_on_by_the_method_that_its_ledger_was_charged_for(tmp_path):
    how = {**HOW, "n_records": 400}
    first = PrivateClassifier(**how, ledger=tmp_path / "direct.db").fit(X, Y, public=POOL)
    again = PrivateClassifier(**how, ledger=tmp_path / "direct.db").resume(X, Y, public=POOL)
    assert again.method_ == "direct"
    assert np.array_equal(again.predict_proba(X), first.predict_proba(X))
    votes = PrivateClassifier(method="votes", **how, ledger=tmp_path / "votes.db").fit(X, Y, public=POOL)
    with pytest.raises(BudgetExhausted, match=r"charged for a fit by votes: resume\(...\) goes on with it"):
        PrivateClassifier(**how, ledger=tmp_path / "votes.db").fit(X, Y, public=POOL)
    later = PrivateClassifier(**how, ledger=tmp_path / "votes.db").resume(X, Y, public=POOL)
    assert (later.method_, later.method_.why) == ("votes", "the fit was begun so")
    assert np.array_equal(later.predict_proba(X), votes.predict_proba(X))


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ np.array([4.0, -3.0, 2.0, 0.0]) + rng.logistic(size=n) > 0).astype(np.int64)


@pytest.fixture(scope="module")
def clf():
    made = PrivateClassifier(
        classes=[0, 1], epsilon=2.0, delta=1e-5, n_records=3_000, n_teachers=100, n_jobs=1, unsafe_noise_seed=0
    )
    return made.fit(*drawn(3_000, 0), public=PublicPool(drawn(150, 1)[0]))


@pytest.mark.heavy
def test_the_row_of_the_plan_is_the_run_that_was_made(clf):
    plan = clf.plan_
    assert plan.row.mechanism == clf.recipe_.mechanism
    assert (plan.row.n_teachers, plan.row.n_queries) == (100, 150)
    assert (plan.asked, plan.answered) == (150, 150)
    assert plan.row.answered == 1.0


@pytest.mark.heavy
def test_labelled_public_rows_tell_what_was_to_be_expected_and_what_came(clf):
    X, y = drawn(800, 2)
    found = clf.plan_.compare(X, y)
    assert found.accuracy == pytest.approx(clf.score(X, y))
    assert found.as_expected == (found.expected.low <= found.accuracy <= found.expected.high)
    assert found.expected.accuracy == pytest.approx(found.accuracy, abs=0.06)
    assert found.commonest < 0.56 < found.expected.low


def test_too_few_rows_are_refused_and_too_few_for_a_shard_are_told(clf):
    X, y = drawn(39, 3)
    with pytest.raises(InvalidParameter, match="40 labelled public rows or more"):
        clf.plan_.compare(X, y)
    X, y = drawn(60, 3)
    assert clf.plan_.compare(X, y).expected is None
    assert clf.plan_.compare(X, y).as_expected is None


@pytest.mark.heavy
def test_without_a_number_of_records_nothing_is_rehearsed_and_the_plan_says_nothing_of_it():
    made = PrivateClassifier(classes=[0, 1], epsilon=2.0, delta=1e-5, n_teachers=100, n_jobs=1, unsafe_noise_seed=0)
    private, public, (X, y) = drawn(3_000, 0), PublicPool(drawn(150, 1)[0]), drawn(800, 2)
    with pytest.raises(InvalidParameter, match=r"rehearsing needs the number of records; declare n_records=$"):
        check(made, *private, public=public, evaluation=(X, y))
    plan = made.fit(*private, public=public).plan_
    assert plan.row.rows_each is None
    found = plan.compare(X, y)
    assert (found.expected, found.as_expected) == (None, None)
    assert found.commonest < 0.56 < found.accuracy


def test_private_rows_are_refused_where_public_ones_are_asked_for(clf):
    """Else accuracy on private labels would be told for nothing."""
    X, y = drawn(3_000, 0)
    with pytest.raises(DataRefused, match="private"):
        clf.plan_.compare(X[:500], y[:500])
