"""What a fit would do and cost is said before it: the same facts, refusals and cautions as in a folder, for nothing."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import quorate
from quorate import (
    LabelPrivateClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    QuorateWarning,
    SubsampleAggregate,
)
from quorate.cli import main
from quorate.errors import BudgetExhausted, InvalidParameter, LedgerMismatch, QuorateError
from quorate.findings import Severity
from quorate.learners import UNLABELLED, ExponentialLearner
from quorate.learners.concepts import Thresholds
from quorate.ledger import Budget, Ledger
from quorate.voting.method import VOTES

pytestmark = [pytest.mark.mostly_heavy, pytest.mark.several_fits]

N = 600


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(np.int64)


X, Y = rows(N, 1)
POOL = PublicPool(rows(100, 2)[0])
BUDGET = {"epsilon": 2.0, "delta": 1e-5}


def classifier(**changes):
    return PrivateClassifier(**{"method": "votes", "classes": [0, 1], **BUDGET, "n_jobs": 1, **changes})


ESTIMATORS = {
    "classifier": (classifier, {"y": Y, "public": POOL}),
    "labels": (lambda **how: LabelPrivateClassifier(**{"classes": [0, 1], **BUDGET, "n_jobs": 1, **how}), {"y": Y}),
    "direct": (lambda **how: PrivateLogisticRegression(**{"classes": [0, 1], **BUDGET, **how}),
               {"y": Y, "public": POOL}),
    "shards": (lambda **how: SubsampleAggregate(**{**BUDGET, "n_shards": 100, "cutoff": 1, "n_queries": 9, **how}), {}),
}  # fmt: skip


def checked(name, X=X, **how):
    make, takes = ESTIMATORS[name]
    return quorate.check(make(**how), X, **takes)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_check_spends_nothing_writes_nothing_and_leaves_the_estimator_as_it_was(name, tmp_path):
    make, takes = ESTIMATORS[name]
    estimator, before = make(ledger=tmp_path / "ledger.db"), vars(make(ledger=tmp_path / "ledger.db")).copy()
    quorate.check(estimator, X, **takes)
    assert list(tmp_path.iterdir()) == []
    assert vars(estimator) == before
    with Ledger(budget=Budget(**BUDGET)) as ledger:
        quorate.check(make(ledger=ledger), X, **takes)
        assert (ledger.reservations(), ledger.fingerprints, ledger.head.sequence) == ((), (), 1)


def test_after_a_fit_on_disk_a_check_adds_no_entry_and_no_file(tmp_path):
    ledger = tmp_path / "ledger.db"
    with Ledger(ledger, budget=Budget(5.0, 1e-4)):
        pass
    classifier(ledger=ledger).fit(X, Y, public=POOL)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    quorate.check(classifier(ledger=ledger), X, Y, public=POOL)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_foreseen_is_what_the_fit_then_does():
    found = checked("classifier", online_answers=5).found
    clf = classifier(online_answers=5).fit(X, Y, public=POOL)
    assert found["n_teachers"] == clf.recipe_.n_teachers
    assert (found["n_queries"], found["sigma"]) == (clf.recipe_.n_queries, clf.recipe_.mechanism.sigma)
    assert clf.guarantee_.epsilon <= found["epsilon"] < clf.guarantee_.epsilon + 1e-6
    assert found["why"] == list(clf.recipe_.why)
    direct = checked("direct").found
    fitted = PrivateLogisticRegression(classes=[0, 1], **BUDGET).fit(X, Y, public=POOL)
    assert direct["rounds"] == fitted.plan_.settings.rounds
    assert direct["price"] == pytest.approx(fitted.guarantee_.epsilon, abs=1e-6)
    shards = checked("shards").found
    aggregate = SubsampleAggregate(**BUDGET, n_shards=100, cutoff=1, n_queries=9).fit(X)
    assert shards["votes_ahead"] == aggregate.votes_ahead_


def test_the_estimator_and_the_command_say_the_same(tmp_path, capsys):
    columns = ["a", "b", "c"]
    private, public = pl.DataFrame(X, schema=columns), pl.DataFrame(POOL.rows(), schema=columns)
    private.with_columns(y=pl.Series(Y)).write_csv(tmp_path / "private.csv")
    public.write_csv(tmp_path / "public.csv")
    (tmp_path / "quorate.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\nlabel = "y"\nclasses = [0, 1]\n'
        '[method]\nby = "votes"\n[budget]\nepsilon = 12.0\ndelta = 0.01\n'
    )

    def printed_by(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path), *arguments])
        assert ended.value.code == 0
        return capsys.readouterr().out

    command = json.loads(printed_by("--json"))
    said = quorate.check(classifier(epsilon=12.0, delta=0.01), private, Y, public=PublicPool(public))
    assert json.loads(said.to_json()) == command
    printed = " ".join(printed_by().partition("\n\n")[0].split())  # lines break elsewhere: names are of other lengths
    printed = printed.replace("A run would", "A fit would").replace("private.csv", "X")
    assert printed.replace("[data] n_records", "n_records=") == " ".join(said.text().split())


WRONG = [  # of what a fit refuses: an argument, what is hopeless, a pool, labels; and of each estimator
    ("classifier", {"n_teachers": N + 1}, {}),
    ("classifier", {"queries": 10_000}, {}),
    ("classifier", {"epsilon": 0.001}, {}),  # hopeless
    ("classifier", {}, {"public": PublicPool(X)}),
    ("classifier", {}, {"y": Y[:-1]}),
    ("labels", {"classes": "all"}, {}),
    ("direct", {"feature_map": "magic"}, {}),
    ("direct", {}, {"public": POOL.rows()}),
    ("shards", {"n_shards": 10}, {}),
    ("shards", {}, {"y": Y[:-1]}),
]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("name", "how", "given"), WRONG, ids=range(len(WRONG)))
def test_what_a_fit_refuses_a_check_refuses_in_the_same_line(name, how, given):
    make, takes = ESTIMATORS[name]
    with pytest.raises((QuorateError, ValueError, TypeError)) as of_fit:
        make(**how).fit(X, **takes | given)
    with pytest.raises((QuorateError, ValueError, TypeError)) as of_check:
        quorate.check(make(**how), X, **takes | given)
    assert (type(of_check.value), str(of_check.value)) == (type(of_fit.value), str(of_fit.value))
    assert "\n" not in str(of_check.value)


def test_a_ledger_that_is_spent_or_of_other_data_refuses_the_check_as_it_would_the_fit():
    ledger = Ledger(budget=Budget(2.0, 1e-5))
    classifier(ledger=ledger).fit(X, Y, public=POOL)
    for name in ("classifier", "direct", "shards"):
        with pytest.raises((BudgetExhausted, LedgerMismatch)):
            checked(name, ledger=ledger)
    with pytest.raises(BudgetExhausted):
        quorate.check(classifier(ledger=ledger), X, Y, public=POOL)
    with pytest.raises(LedgerMismatch, match="bound to another data set"):
        quorate.check(classifier(ledger=ledger), X[1:], Y[1:], public=POOL)


@pytest.mark.quick
def test_what_is_no_estimator_of_ours_and_rows_that_are_not_taken_are_refused():
    with pytest.raises(InvalidParameter, match=r"check takes an estimator of quorate, .* got LogisticRegression"):
        quorate.check(LogisticRegression(), X, Y)
    for name in ("labels", "shards"):
        with pytest.raises(InvalidParameter, match="takes no public rows"):
            quorate.check(ESTIMATORS[name][0](), X, Y, public=POOL)


@pytest.mark.quick
def test_a_result_prints_and_what_depends_on_private_rows_is_in_no_part_of_it_but_one():
    far = quorate.check(classifier(n_records=60), X, Y, public=POOL)  # declared ten times too small
    (note,) = far.private_notes.reveal()
    assert note.code == "declared-number-is-off"
    assert "off the number" not in far.to_json()
    assert "off the number" not in repr((far.found, far.steps, far.cautions, far.private_notes))
    for printed in (repr(far), str(far), far.text()):  # on the owner's terminal, as the command prints it
        assert "off the number" in " ".join(printed.split())
    assert repr(far).startswith("Everything fits. A fit would\n  method ")
    assert repr(far).endswith("Nothing was charged.")


@pytest.mark.quick
def test_a_private_learner_is_checked_by_its_plan_and_its_numbers_of_rows():
    line = Thresholds(bits=6)
    points = np.random.default_rng(0).integers(0, 64, (500, 1))
    labels = np.where(np.arange(500) < 300, points[:, 0] < 30, UNLABELLED)
    learner = ExponentialLearner(concepts=line, epsilon=12.0)
    found = quorate.check(learner, points, labels)
    assert "epsilon-promises-little" in [each.code for each in found.cautions]
    assert (found.found["n_labelled"], found.found["n_unlabelled"]) == (300, 200)
    assert not hasattr(learner, "concept_")
    fitted = learner.fit(points, labels)
    assert (found.found["n_labels_used"], found.found["epsilon"]) == (fitted.n_labels_used_, fitted.guarantee_.epsilon)
    other = quorate.check(ExponentialLearner(concepts=line, epsilon=12.0), 63 - points, np.where(labels < 0, -1, 0))
    assert repr(other) == repr(found)
    with pytest.raises(InvalidParameter, match="groups"):
        quorate.check(learner, points, labels, groups=np.arange(500))


def test_the_direct_method_says_that_it_looks_at_no_label_in_the_words_of_the_command():
    """Labels of another type than the classes decide on no refusal, so the owner is told to look before the fit."""
    asked = {"classes": ["0", "1"], "n_records": N, **BUDGET}
    found = quorate.check(PrivateLogisticRegression(**asked), X, Y, public=POOL)
    (note,) = [each for each in found.found["notes"] if each["code"] == "private-rows-are-not-checked"]
    assert "labels and cells of X and y are NOT checked" in note["message"]
    assert "Compare classes with y" in note["message"]
    assert note["message"] in " ".join(str(found).split())
    right = quorate.check(PrivateLogisticRegression(**asked), X, Y.astype(str), public=POOL)
    assert repr(right) == repr(found)  # not a word of it depends on the labels
    persons = quorate.check(PrivateLogisticRegression(**asked), X, Y, public=POOL, groups=np.arange(N) // 2)
    assert "labels, groups and cells" in str(persons)
    assert f"n_records={N} is taken as the number of persons, and not of rows" in " ".join(str(persons).split())
    assert "is taken as the number" not in str(found)


def heard(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert all(each.filename == __file__ for each in caught if each.category is QuorateWarning)
    return [str(each.message) for each in caught if each.category is QuorateWarning]


LARGE = {"epsilon": 12.0, "delta": 0.01}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_caution_is_one_warning_of_the_fit_with_its_code_and_nobody_elses(name):
    make, takes = ESTIMATORS[name]
    expected = [
        f"{each.code}: {each.words}" for each in checked(name, **LARGE).cautions if each.severity is not Severity.NOTE
    ]
    assert any(each.startswith("epsilon-promises-little: epsilon = 12 is above 10") for each in expected)
    assert heard(lambda: make(**LARGE).fit(X, **takes)) == expected
    assert heard(lambda: checked(name, **LARGE)) == []  # a check returns them
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuorateWarning)
        warnings.filterwarnings("ignore", "fit [0-9]+ without a ledger", QuorateWarning)
        make().fit(X, **takes)  # a sound one warns of nothing


def test_text_that_is_like_an_id_and_dates_are_found_in_the_public_rows():
    def table(n, seed):
        rng = np.random.default_rng(seed)
        days = [
            f"{month:02d}/{day:02d}/2024"
            for month, day in zip(rng.integers(1, 13, n), rng.integers(1, 28, n), strict=True)
        ]
        return pl.DataFrame({"age": rng.normal(size=n), "name": [f"n{i}" for i in range(n)], "seen": days})

    private, pool = table(N, 1), PublicPool(table(100, 2))
    codes = [each.code for each in quorate.check(classifier(), private, Y, public=pool).cautions]
    assert codes == ["columns-of-dates", "columns-of-distinct-texts"]
    direct = PrivateLogisticRegression(classes=[0, 1], **BUDGET)
    assert [each.code for each in quorate.check(direct, private, Y, public=pool).cautions] == codes
    direct = PrivateLogisticRegression(classes=[0, 1], **BUDGET, text=["name"])
    assert [each.code for each in quorate.check(direct, private, Y, public=pool).cautions] == codes[:1]
    plain = PublicPool(pool.rows().drop("name", "seen"))
    private = private.drop("name", "seen")  # pool alone decides: an id among the private rows alone is refused anyway
    assert quorate.check(classifier(), private, Y, public=plain).cautions == ()


def test_with_labelled_public_rows_a_check_says_what_to_expect_and_where_that_is_nothing():
    shown, truth = rows(300, 3)
    sound = quorate.check(classifier(n_records=N), X, Y, public=POOL, evaluation=(shown, truth))
    assert 0.8 < sound.found["expected"]["accuracy"] <= 1.0
    assert sound.found["commonest_class"] == round(max(truth.mean(), 1 - truth.mean()), 4)
    said = "rehearsed on public rows with their own labels; always saying the commonest class: "
    assert said in " ".join(str(sound).split())
    assert sound.sound
    noise = (np.random.default_rng(5).random(300) < 0.4).astype(np.int64)  # nothing to learn: two in five are 1
    poor = quorate.check(classifier(n_records=N), X, Y, public=POOL, evaluation=(shown, noise))
    (caution,) = poor.cautions
    assert (caution.code, caution.severity) == ("rehearsed-at-the-commonest-class", Severity.SERIOUS)
    assert poor.found["cautions"] == [caution.tree()]
    assert str(poor).startswith("Everything fits, with caution.")


@pytest.mark.quick
def test_votes_are_not_rehearsed_on_private_rows_and_what_is_no_classifier_is_not_rehearsed():
    with pytest.raises(QuorateError, match="evaluation holds the private rows again"):
        quorate.check(classifier(), X, Y, public=POOL, evaluation=(X[:200], Y[:200]))
    shards = SubsampleAggregate(**BUDGET, n_shards=100, cutoff=1, n_queries=9)
    with pytest.raises(InvalidParameter, match="evaluation= rehearses a classifier"):
        quorate.check(shards, X, evaluation=rows(50, 3))
    with pytest.raises(InvalidParameter, match="give public="):
        quorate.check(PrivateLogisticRegression(classes=[0, 1], **BUDGET), X, Y, evaluation=rows(50, 3))


@pytest.mark.parametrize("make", [PrivateClassifier, PrivateLogisticRegression])
def test_the_direct_method_is_rehearsed_too(make):
    shown = quorate.check(make(classes=[0, 1], **BUDGET), X, Y, public=POOL, evaluation=rows(50, 3))
    expected = shown.found["expected"]
    assert expected["low"] <= expected["accuracy"] <= expected["high"]
    assert ("method     direct, since" in str(shown)) == (make is PrivateClassifier)


def test_a_rehearsal_does_not_depend_on_private_rows():
    evaluation = rows(120, 3)
    said = [
        repr(quorate.check(classifier(n_records=N), *changed(X, Y), public=POOL, evaluation=evaluation))
        for changed in (lambda X, y: (X, y), NEIGHBOURS["all rows and labels"])
    ]
    assert said[0] == said[1]


NEIGHBOURS = {
    "other rows": lambda X, y: (np.vstack([X[:-1], 50 + X[-1:]]), y),
    "other labels": lambda X, y: (X, np.zeros_like(y)),
    "all rows and labels": lambda X, y: (np.full_like(X, 7.25), np.ones_like(y)),
}


def said_of(name, changed, **how):
    make, takes = ESTIMATORS[name]
    private, labels = changed(X, Y)
    estimator = make(**how)
    found = quorate.check(estimator, private, **takes | ({"y": labels} if "y" in takes else {}))
    return "\n".join((repr(found), found.to_json(), *map(repr, found.cautions)))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("change", NEIGHBOURS)
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("classifier", {}),
        ("classifier", {**LARGE, "online_answers": 20, "teacher": DecisionTreeClassifier(min_samples_leaf=50)}),
        ("direct", LARGE),
        ("shards", LARGE),
    ],
)
def test_other_private_rows_are_told_the_same_byte_for_byte(name, how, change):
    assert said_of(name, NEIGHBOURS[change], **how) == said_of(name, lambda X, y: (X, y), **how)


def test_other_labels_of_public_features_are_told_the_same():
    changed = said_of("labels", NEIGHBOURS["other labels"], **LARGE)
    assert changed == said_of("labels", lambda X, y: (X, y), **LARGE)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", ["classifier", "direct"])
def test_where_the_number_is_declared_one_record_more_or_less_is_told_the_same(name):
    def without_one(X, y):
        return X[:-1], y[:-1]

    same = {"n_records": N, **LARGE}
    assert said_of(name, without_one, **same) == said_of(name, lambda X, y: (X, y), **same)


@pytest.mark.quick
def test_a_caution_that_looked_at_private_rows_would_be_caught(monkeypatch):
    real = VOTES.check

    def looked(task):
        found, steps = real(task)
        return {**found, "why": [f"{task.inputs.private.reveal().codes.sum()} are ill"]}, steps

    monkeypatch.setattr(VOTES, "check", looked)
    change = NEIGHBOURS["other labels"]
    assert said_of("classifier", change) != said_of("classifier", lambda X, y: (X, y))
