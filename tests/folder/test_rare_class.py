"""A rare class in a folder: what a run is judged by, and from which probability on the class is predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import edit

from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import settings_of
from quorate.ledger import Ledger
from quorate.service.open_run import open_student
from quorate.students.decision_threshold import decides_from

MakeRun = Any


def make_rare(root: Path) -> None:
    """Leave one ill visit in twelve."""
    for table in ("private", "evaluation"):
        rows = pl.read_csv(root / f"{table}.csv").with_row_index("place")
        rows.filter((pl.col("ill") == "no") | (pl.col("place") % 12 == 0)).drop("place").write_csv(
            root / f"{table}.csv"
        )


def made(root: Path) -> Any:
    return execute(read_run(root), command="quorate run")


@pytest.mark.heavy
@pytest.mark.parametrize("by", ["votes", "direct"])
def test_a_rare_class_is_judged_by_its_ranking_and_found_by_a_threshold_free_of_charge(
    make_run: MakeRun, by: str
) -> None:
    direct = {"method.by": "direct", "data.n_records": 200} if by == "direct" else {}
    root = make_run(**{**direct, "data.evaluation": "evaluation.csv", "budget.epsilon": 8.0})
    make_rare(root)
    facts = made(root)
    score = facts.utility.student
    assert score is not None
    assert score.chosen is not None
    assert score.ranking is not None
    assert (score.chosen.scoring, score.ranking.positive) == ("roc_auc", 1)
    assert score.ranking.roc_auc == score.chosen.value
    with Ledger(root / "ledger.db") as ledger:
        spent, n_charges = ledger.spent, len(ledger.reservations())

    edit(root, "[budget]", '[student]\ndecision_threshold = "balanced"\n[budget]')
    moved = made(root)
    with Ledger(root / "ledger.db") as ledger:
        assert (ledger.spent, len(ledger.reservations())) == (spent, n_charges)
    assert moved.fitted.threshold_class == "yes"
    assert moved.utility.student.ranking.roc_auc == pytest.approx(score.ranking.roc_auc)
    assert moved.utility.student.ranking.in_use.threshold == pytest.approx(moved.fitted.threshold)
    assert moved.utility.student.recall[1] >= score.recall[1]
    student = open_student(RunFolder(root))  # as the service and an export open it
    assert decides_from(student) == (moved.fitted.threshold, "yes")
    assert read_facts(root) == moved


def test_a_threshold_is_one_key_for_both_methods_and_what_cannot_be_is_refused_before_a_charge(
    make_run: MakeRun,
) -> None:
    root = make_run(**{"data.class_shares": {"yes": 0.1}, "student.decision_threshold": "share", "data.score": "f1"})
    data = settings_of(root).data
    np.testing.assert_allclose(data.class_shares, (0.9, 0.1))
    assert data.score == "f1"
    for old, new, said in (
        ('"share"', '"shares"', r"\[student\] decision_threshold must be one of .*did you mean \"share\""),
        ('"shares"', "1.5", r"\[student\] decision_threshold must be a number > 0 and < 1, got 1.5"),
        (
            "1.5",
            "{false_positive = 1}",
            r"\[student\] decision_threshold as costs must have the keys false_negative and",
        ),
        ("{false_positive = 1}", "{false_positive = 1, false_negative = 4}", None),
        ("{false_positive = 1, false_negative = 4}", '"share"', None),
        ("yes = 0.1", "maybe = 0.1", r"\[data\] class_shares names 'maybe', which is none of the classes"),
        ("maybe = 0.1", "yes = 0.1", None),
        ('"f1"', '"auc"', r"\[data\] score must be one of"),
    ):
        edit(root, old, new)
        if said is not None:
            with pytest.raises(InvalidParameter, match=said):
                settings_of(root)
    assert not (root / "ledger.db").exists()


def test_a_student_without_probabilities_is_refused_a_threshold_before_a_charge(make_run: MakeRun) -> None:
    root = make_run(**{"student.decision_threshold": 0.2, "student.model": "own:student"})
    (root / "own.py").write_text(
        "from sklearn.svm import LinearSVC\n\n\ndef student():\n    return LinearSVC()\n", encoding="utf-8"
    )
    with pytest.raises(InvalidParameter, match=r"\[student\] decision_threshold needs probabilities, and LinearSVC"):
        read_run(root)
    assert not (root / "ledger.db").exists()


def make_linear(make_run: MakeRun) -> Path:
    """Leave all but the direct method, in few dimensions."""
    direct = {"method.by": "direct", "method.feature_map": "linear", "data.n_records": 200}
    return make_run(**direct, **{"budget.composition": "zcdp", "run.epsilon": 0.5})


@pytest.mark.heavy
def test_shares_that_are_declared_later_leave_a_direct_run_as_it_was_begun_and_decide_in_a_new_one(
    make_run: MakeRun,
) -> None:
    root = make_linear(make_run)

    def dimension_and_charges() -> tuple[float, int]:
        run = read_run(root)
        execute(run, command="quorate run")
        with Ledger(root / "ledger.db") as ledger:
            return run.task.plan.dimension, len(ledger.reservations())

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


@pytest.mark.heavy
def test_shares_may_change_as_long_as_nothing_was_charged(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_linear(make_run)
    monkeypatch.setattr(DirectTask, "units", lambda self, **how: 1 / 0)  # behind what is kept, before the charge
    with pytest.raises(ZeroDivisionError):
        made(root)
    monkeypatch.undo()
    assert list((root / "private").glob("coordinates-*"))
    before = read_run(root).task.plan.dimension
    edit(root, "[budget]", "class_shares = { yes = 0.05 }\n[budget]")
    assert read_run(root).task.plan.dimension < 0.5 * before
