"""A folder's probabilities are fitted on ``[data] calibration``: free, also after the run, in all that is published."""

import json

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import charges, edit, run, spent_on, visits

import quorate
from quorate.direct.task import DirectTask
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.estimators.predicted_table import predict_table
from quorate.export.package import export_files
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import _teachers
from quorate.folder.methods import check, execute, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import settings_of
from quorate.service.open_run import open_student
from quorate.students.decision_threshold import decides_from
from quorate.students.prediction_sets import apart
from quorate.voting.shard_rows import shards_to_train

pytestmark = pytest.mark.mostly_heavy


def with_calibration(root, n=300):
    rows, ill = visits(n, seed=9)
    rows.with_columns(pl.Series("ill", ill)).write_csv(root / "calibration.csv")
    edit(root, "[data]\n", '[data]\ncalibration = "calibration.csv"\n')


def made_run(make_run, by, name="run"):
    direct = {"method.by": "direct", "data.n_records": 200} if by == "direct" else {}
    return make_run(name, **{**direct, "data.evaluation": "evaluation.csv", "budget.epsilon": 8.0})


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_calibration_after_a_run_is_free_and_reaches_all_that_is_published(make_run, by):
    root = made_run(make_run, by)
    plain = run(root)
    shown = visits(100, seed=5)[0]
    before, spent = quorate.load(root).predict_proba(shown), spent_on(root)
    assert plain.fitted.temperature is None
    with pytest.raises(PreconditionFailed, match=r"Write calibration = .* under \[data\], .* again, which is free"):
        quorate.load(root).predict_set(shown)

    with_calibration(root)
    facts = run(root)
    assert spent_on(root) == spent
    assert facts.fitted.calibration_rows == 150
    assert read_facts(root) == facts
    loaded = quorate.load(root)
    after = loaded.predict_proba(shown)
    odds, calibrated = (np.log(told[:, 1] / told[:, 0]) for told in (before, after))
    np.testing.assert_allclose(calibrated, odds / facts.fitted.temperature, rtol=1e-6, atol=1e-9)
    sets = loaded.predict_set(shown, coverage=0.8)
    np.testing.assert_array_equal(sets, 1 - after <= facts.fitted.prediction_sets.limits.limit(0.8))
    notes = [note["message"] for note in check(read_run(root)).found["notes"]]
    assert f"[data] calibration: {loaded.coverage_promise()}" in notes
    export_files(root, root.parent / "outbox")
    np.testing.assert_array_equal(quorate.load(root.parent / "outbox").predict_set(shown, coverage=0.8), sets)
    predicted_with_sets(root, shown, sets)
    assert open_student(RunFolder(root)).predict_proba(loaded._read(shown)).tolist() == after.tolist()
    assert facts.utility.student.accuracy == plain.utility.student.accuracy
    for page in ("report.html", "model_card.md"):
        assert "hold the true class of at least" in (root / "public" / page).read_text("utf-8")
        assert "fit 150 labelled public rows" in (root / "public" / page).read_text("utf-8")


def predicted_with_sets(root, shown, sets):
    shown.write_csv(root.parent / "rows.csv")
    predict_table(quorate.load(root), root.parent / "rows.csv", root.parent / "out.csv", coverage=0.8)
    table = pl.read_csv(root.parent / "out.csv")
    names = quorate.load(root).classes_.tolist()
    assert table.columns[-2:] == [f"in_set_{name}" for name in names]
    np.testing.assert_array_equal(table.select(table.columns[-2:]).to_numpy(), sets)


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_private_rows_for_calibration_are_noticed(make_run, by):
    root = made_run(make_run, by)
    with_calibration(root)
    (root / "calibration.csv").write_bytes((root / "private.csv").read_bytes())
    if by == "votes":
        with pytest.raises(DataRefused, match=r"\[data\] calibration holds the private rows again"):
            read_run(root)
        return
    lines = []
    facts = execute(read_run(root), command="quorate run", tell=lines.append)
    assert facts.fitted.temperature is None
    assert [line[:63] for line in lines] == ["the calibration was left out: [data] calibration holds private "]


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_rows_that_are_used_for_something_else_are_cautioned_of(make_run, by):
    root, code = made_run(make_run, by), "calibration-rows-used-twice"
    with_calibration(root)
    assert code not in [caution.code for caution in check(read_run(root)).cautions]
    rows = pl.read_csv(root / "calibration.csv")
    evaluation = pl.concat([pl.read_csv(root / "evaluation.csv"), rows.head(60)], how="vertical_relaxed")
    evaluation.write_csv(root / "evaluation.csv")
    pool = pl.read_csv(root / "public.csv")
    pl.concat([pool, rows.tail(60).select(pool.columns)], how="vertical_relaxed").write_csv(root / "public.csv")
    [said] = [caution.words for caution in check(read_run(root)).cautions if caution.code == code]
    assert said.startswith("some rows of [data] calibration are also in [data] public and [data] evaluation. ")


def test_rows_that_cannot_calibrate_are_refused_before_a_charge(make_run):
    for by in ("votes", "direct"):
        root = made_run(make_run, by, name=by)
        with_calibration(root, n=20)
        with pytest.raises(InvalidParameter, match=r"\[data\] calibration got 20 rows, and needs at least 100"):
            read_run(root)
        assert not (root / "ledger.db").exists()
    (root / "calibration.csv").unlink()
    (root / "calibration.csv").hardlink_to(root / "evaluation.csv")
    with pytest.raises(InvalidParameter, match=r"\[data\] calibration is the file of \[data\] evaluation"):
        settings_of(root)


def test_a_model_without_scores_keeps_its_probabilities_and_gets_sets(make_run):
    root = make_run(**{"student.model": "forest"})
    with_calibration(root)
    facts = run(root)
    assert facts.fitted.temperature is None
    assert facts.fitted.prediction_sets is not None


def with_a_share(root):
    """Write more rows to score the model on, of which a share calibrates it."""
    rows, ill = visits(400, seed=9)
    rows.with_columns(pl.Series("ill", ill)).write_csv(root / "evaluation.csv")
    edit(root, "[data]\n", "[data]\ncalibration_of_evaluation = 0.75\n")


@pytest.mark.quick
@pytest.mark.parametrize("by", ["votes", pytest.param("direct", marks=pytest.mark.heavy)])
def test_a_share_of_the_evaluation_calibrates_and_does_not_score(make_run, by):
    shared, two_files = made_run(make_run, by, "shared"), made_run(make_run, by, "two_files")
    with_a_share(shared)
    with_calibration(two_files)
    rows = pl.read_csv(shared / "evaluation.csv")
    held, scored = apart(400, 300, salt=b"calibration")
    rows[held].write_csv(two_files / "calibration.csv")
    rows[scored].write_csv(two_files / "evaluation.csv")
    runs = [read_run(root) for root in (shared, two_files)]
    for one, other in zip(*((each.evaluation, each.calibration) for each in runs), strict=True):
        assert one.truth.tolist() == other.truth.tolist()
        assert np.array_equal(columns_of(one.X), columns_of(other.X))
    notes, cautions = (check(runs[0]).found["notes"], [caution.code for caution in check(runs[0]).cautions])
    assert "[data] calibration_of_evaluation: the truth is in 90 % of sets, for rows drawn as the 150 that" in str(
        notes
    )
    assert "calibration-rows-used-twice" not in cautions
    facts = execute(runs[0], command="quorate run")
    assert (facts.fitted.calibration_rows, facts.fitted.prediction_sets.n_rows) == (150, 150)
    assert facts.utility.student.n_rows == 100


def columns_of(rows):
    return rows.to_numpy() if hasattr(rows, "to_numpy") else np.asarray(rows)


def test_of_an_evaluation_with_private_rows_in_one_part_neither_is_used(make_run):
    forms = []
    for part in (0, 1):
        root = made_run(make_run, "direct", f"run{part}")
        with_a_share(root)
        private, at = pl.read_csv(root / "private.csv"), apart(400, 300, salt=b"calibration")[part]
        rows = pl.read_csv(root / "evaluation.csv").select(private.columns).rows()
        for place, row in zip(at[:90], private.rows(), strict=False):
            rows[place] = row
        pl.DataFrame(rows, schema=private.schema, orient="row").write_csv(root / "evaluation.csv")
        lines = []
        facts = execute(read_run(root), command="quorate run", tell=lines.append)
        assert sorted(line.split(":")[0] for line in lines) == [
            "the calibration was left out",
            "the score was left out",
        ]
        assert facts.fitted.temperature is facts.fitted.prediction_sets is None
        forms.append(json.loads((root / "public" / "facts.json").read_text("utf-8")))
    assert [sorted(form["fitted"]) for form in forms] == [sorted(forms[0]["fitted"])] * 2
    assert [form.get("utility") for form in forms] == [forms[0].get("utility")] * 2


def test_counts_of_private_units_and_public_rows_make_one_temperature(make_run):
    root = made_run(make_run, "direct")
    edit(root, "[method]\n", "[method]\nprivate_temperature = true\n")
    paid = run(root).fitted
    assert paid.temperature == paid.paid_temperature != 1
    spent = spent_on(root)
    with_calibration(root)
    both = run(root).fitted
    assert spent_on(root) == spent
    assert (both.paid_temperature, both.calibration_rows) == (paid.temperature, 150)
    assert both.temperature != paid.temperature


@pytest.mark.quick
@pytest.mark.parametrize("by", ["votes", "auto"])
def test_a_temperature_that_is_not_asked_for_decides_nothing(make_run, by):
    root = make_run(**{"method.by": by, "method.private_temperature": False})
    assert settings_of(root).method.by == "votes"


SETS = {"data.n_records": 1_200, "data.calibration_share": 0.4, "budget.epsilon": 3.0}


@pytest.mark.parametrize("by", ["direct", pytest.param("votes", marks=pytest.mark.heavy)])
def test_a_run_holds_units_out_and_publishes_the_limit(make_run, cli, by):
    count = {"teachers.count": 40} if by == "votes" else {}
    root = make_run(n=1_200, **{"method.by": by, **SETS, **count})
    out = cli.ok("check", root)
    assert "hold out" in out
    facts = run(root)
    sets = facts.fitted.private_sets
    loaded = quorate.load(root)
    rows, _ = visits(300, 5)
    assert loaded.coverage_promise().least == pytest.approx(0.9 - sets.slack)
    assert 0 < loaded.predict_set(rows).mean() <= 1
    card = (root / "public" / "model_card.md").read_text(encoding="utf-8")
    assert "which nothing learned from" in " ".join(card.split())
    before = spent_on(root)
    assert run(root).fitted.private_sets == sets
    assert spent_on(root) == (before[0], 1)
    assert np.isfinite(sets.limit)
    if by == "votes":
        task = read_run(root).task
        taught = sum(facts.n_records for facts in _teachers(task, shards_to_train(task)))
        assert taught == int((~task.held.held.reveal()).sum())
    out = cli.ok("audit", root, "--runs", "2000")
    assert "which units were held out for prediction sets" in out.words
    attacks = json.loads((root / "public" / "audit.json").read_text(encoding="utf-8"))["attacks"]
    assert [attack["violated"] for attack in attacks if attack["attack"].startswith("limit of prediction sets")] == [
        False
    ]


def make_rare(root):
    """Leave one ill visit in twelve."""
    for table in ("private", "evaluation"):
        rows = pl.read_csv(root / f"{table}.csv").with_row_index("place")
        rows.filter((pl.col("ill") == "no") | (pl.col("place") % 12 == 0)).drop("place").write_csv(
            root / f"{table}.csv"
        )


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_a_rare_class_is_judged_by_its_ranking_and_found_by_a_threshold_free_of_charge(make_run, by):
    root = made_run(make_run, by)
    make_rare(root)
    facts = run(root)
    score = facts.utility.student
    assert (score.chosen.scoring, score.ranking.positive) == ("roc_auc", 1)
    assert score.ranking.roc_auc == score.chosen.value
    spent = spent_on(root)
    edit(root, "[budget]", '[student]\ndecision_threshold = "balanced"\n[budget]')
    moved = run(root)
    assert spent_on(root) == spent
    assert moved.fitted.threshold_class == "yes"
    assert moved.utility.student.ranking.roc_auc == pytest.approx(score.ranking.roc_auc)
    assert moved.utility.student.ranking.in_use.threshold == pytest.approx(moved.fitted.threshold)
    assert moved.utility.student.recall[1] >= score.recall[1]
    student = open_student(RunFolder(root))  # as the service and an export open it
    assert decides_from(student) == (moved.fitted.threshold, "yes")
    assert read_facts(root) == moved


@pytest.mark.quick
@pytest.mark.parametrize("rule", ["share", {"false_positive": 1, "false_negative": 4}], ids=["share", "costs"])
def test_a_threshold_is_one_key_for_both_methods(make_run, rule):
    root = make_run(**{"data.class_shares": {"yes": 0.1}, "student.decision_threshold": rule, "data.score": "f1"})
    data = settings_of(root).data
    np.testing.assert_allclose(data.class_shares, (0.9, 0.1))
    assert data.score == "f1"


@pytest.mark.quick
def test_a_student_without_probabilities_is_refused_a_threshold_before_a_charge(make_run):
    root = make_run(**{"student.decision_threshold": 0.2, "student.model": "own:student"})
    (root / "own.py").write_text(
        "from sklearn.svm import LinearSVC\n\n\ndef student():\n    return LinearSVC()\n", encoding="utf-8"
    )
    with pytest.raises(InvalidParameter, match=r"\[student\] decision_threshold needs probabilities, and LinearSVC"):
        read_run(root)
    assert not (root / "ledger.db").exists()


def make_linear(make_run):
    """Leave all but the direct method, in few dimensions."""
    direct = {"method.by": "direct", "method.feature_map": "linear", "data.n_records": 200}
    return make_run(**direct, **{"budget.composition": "zcdp", "run.epsilon": 0.5})


def test_shares_that_are_declared_later_leave_a_direct_run_as_it_was_begun_and_decide_in_a_new_one(make_run):
    root = make_linear(make_run)

    def dimension_and_charges():
        run = read_run(root)
        execute(run, command="quorate run")
        return run.task.plan.dimension, charges(root)

    whole, _ = dimension_and_charges()
    edit(root, "[budget]", "class_shares = { yes = 0.05 }\n[budget]")
    assert dimension_and_charges() == (whole, 1)
    edit(root, "epsilon = 0.5", "epsilon = 0.4")
    fewer, n_charges = dimension_and_charges()
    assert n_charges == 2
    for old, new in (("yes = 0.05", "no = 0.9"), ("class_shares = { no = 0.9 }\n", "")):
        edit(root, old, new)
        assert dimension_and_charges() == (fewer, 2)
    edit(root, "epsilon = 0.4", "epsilon = 0.5")
    assert dimension_and_charges() == (whole, 2)
    edit(root, "epsilon = 0.5", "epsilon = 0.3")
    without, n_charges = dimension_and_charges()
    assert (n_charges, fewer < 0.5 * without < whole) == (3, True)


def test_shares_may_change_as_long_as_nothing_was_charged(make_run, monkeypatch):
    root = make_linear(make_run)
    monkeypatch.setattr(DirectTask, "units", lambda self, **how: 1 / 0)  # behind what is kept, before the charge
    with pytest.raises(ZeroDivisionError):
        run(root)
    monkeypatch.undo()
    assert list((root / "private").glob("coordinates-*"))
    before = read_run(root).task.plan.dimension
    edit(root, "[budget]", "class_shares = { yes = 0.05 }\n[budget]")
    assert read_run(root).task.plan.dimension < 0.5 * before
