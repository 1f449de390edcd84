"""A folder's probabilities are fitted on ``[data] calibration``: free, also after the run, in all that is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import visits

import quorate
from quorate.errors import DataRefused, InvalidParameter
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import settings_of
from quorate.ledger import Ledger
from quorate.service.open_run import open_student

MakeRun = Any


def spent_on(root: Path) -> tuple[Any, int]:
    with Ledger(root / "ledger.db") as ledger:
        return ledger.spent, len(ledger.reservations())


def with_calibration(root: Path, n: int = 300) -> None:
    rows, ill = visits(n, seed=9)
    rows.with_columns(pl.Series("ill", ill)).write_csv(root / "calibration.csv")
    file = root / "quorate.toml"
    text = file.read_text(encoding="utf-8").replace("[data]\n", '[data]\ncalibration = "calibration.csv"\n')
    file.write_text(text, encoding="utf-8")


def made_run(make_run: MakeRun, by: str, name: str = "run") -> Path:
    direct = {"method.by": "direct", "data.n_records": 200} if by == "direct" else {}
    dropped = dict.fromkeys(("teachers.count", "mechanism.queries", "run.n_jobs")) if direct else {}
    root: Path = make_run(name, **{**direct, **dropped, "data.evaluation": "evaluation.csv", "budget.epsilon": 8.0})
    file = root / "quorate.toml"
    if direct:
        file.write_text(file.read_text("utf-8").replace("[teachers]\n", "").replace("[mechanism]\n", ""), "utf-8")
    return root


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_calibration_after_a_run_is_free_and_reaches_all_that_is_published(make_run: MakeRun, by: str) -> None:
    root = made_run(make_run, by)
    plain = execute(read_run(root), command="quorate run")
    shown = visits(100, seed=5)[0]
    before, spent = quorate.load(root).predict_proba(shown), spent_on(root)
    assert plain.fitted.temperature is None

    with_calibration(root)
    facts = execute(read_run(root), command="quorate run")
    assert spent_on(root) == spent
    assert facts.fitted.calibration_rows == 300
    assert read_facts(root) == facts
    loaded = quorate.load(root)
    after = loaded.predict_proba(shown)
    odds, calibrated = (np.log(told[:, 1] / told[:, 0]) for told in (before, after))
    np.testing.assert_allclose(calibrated, odds / facts.fitted.temperature, rtol=1e-6, atol=1e-9)
    assert open_student(RunFolder(root)).predict_proba(loaded._read(shown)).tolist() == after.tolist()
    assert facts.utility.student.accuracy == plain.utility.student.accuracy
    for page in ("report.html", "model_card.md"):
        assert "fit 300 labelled public rows" in (root / "public" / page).read_text("utf-8")


@pytest.mark.heavy
@pytest.mark.parametrize("by", ["votes", "direct"])
def test_private_rows_for_calibration_are_noticed(make_run: MakeRun, by: str) -> None:
    root = made_run(make_run, by)
    with_calibration(root)
    (root / "calibration.csv").write_bytes((root / "private.csv").read_bytes())
    if by == "votes":
        with pytest.raises(DataRefused, match=r"\[data\] calibration holds the private rows again"):
            read_run(root)
        return
    lines: list[str] = []
    facts = execute(read_run(root), command="quorate run", tell=lines.append)
    assert facts.fitted.temperature is None
    assert [line[:63] for line in lines] == ["the temperature was left out: [data] calibration holds private "]


def test_rows_that_cannot_calibrate_are_refused_before_a_charge(make_run: MakeRun) -> None:
    for by in ("votes", "direct"):
        root = made_run(make_run, by, name=by)
        with_calibration(root, n=20)
        with pytest.raises(InvalidParameter, match=r"\[data\] calibration got 20 rows, and a temperature needs at"):
            read_run(root)
        assert not (root / "ledger.db").exists()
    (root / "calibration.csv").unlink()
    (root / "calibration.csv").hardlink_to(root / "evaluation.csv")
    with pytest.raises(InvalidParameter, match=r"\[data\] calibration is the file of \[data\] evaluation"):
        settings_of(root)


@pytest.mark.heavy
def test_a_model_without_scores_is_published_as_it_is_and_its_owner_is_told(make_run: MakeRun) -> None:
    root = make_run(**{"student.model": "forest"})
    with_calibration(root)
    lines: list[str] = []
    facts = execute(read_run(root), command="quorate run", tell=lines.append)
    assert facts.fitted.temperature is None
    assert len(lines) == 1
    assert lines[0].startswith("[data] calibration divides the scores of a logistic regression, and this model ends in")
