"""Feature maps of a direct run: a fitted transformer from a file, and columns of running text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quorate.run.direct_run import execute_direct, read_direct

DIRECT: dict[str, Any] = {
    "method.by": "direct",
    "method.rounds": 4,
    "data.n_records": 400,
    "teachers.count": None,
    "mechanism.queries": None,
    "run.n_jobs": None,
}


def transformer(root: Path, *, fit: bool = True) -> Any:
    made = ColumnTransformer([("numbers", StandardScaler(), ["age", "bmi"]), ("words", OneHotEncoder(), ["ward"])])
    return made.fit(pl.read_csv(root / "public.csv")) if fit else made


def test_a_run_takes_a_transformer_from_a_file_and_goes_on_with_it(make_run: Any, cli: Any) -> None:
    root = make_run(m=60, **DIRECT, **{"method.feature_map": "map.skops"})
    code, _, err = cli("check", root)
    assert code == 4
    assert "no such file" in err
    skops.io.dump(transformer(root, fit=False), root / "map.skops")
    code, _, err = cli("check", root)
    assert code == 2
    assert "is not fitted" in err
    assert not (root / "ledger.db").exists()
    skops.io.dump(transformer(root), root / "map.skops")
    assert cli("run", root)[0] == 0
    again = read_direct(root)
    assert again.task.stored
    model = skops.io.load(root / "public" / "student.skops")
    assert set(model.predict(pl.read_csv(root / "public.csv"))) <= {"no", "yes"}
    before = model[-1].coef_
    execute_direct(again, command="quorate run")
    assert (skops.io.load(root / "public" / "student.skops")[-1].coef_ == before).all()
    (root / "map.skops").write_bytes(b"none")
    code, _, err = cli("check", root)
    assert code == 4
    assert "skops.io.dump" in err


@pytest.fixture
def with_notes(make_run: Any) -> Any:
    def make(**changes: Any) -> Path:
        root: Path = make_run(m=60, **{**DIRECT, "data.evaluation": "evaluation.csv", **changes})
        words = {"yes": "cough fever ache", "no": "well fine healthy"}
        rng = np.random.default_rng(0)
        for name in ("private", "public", "evaluation"):
            table = pl.read_csv(root / f"{name}.csv")
            sick = table["ill"] if "ill" in table.columns else rng.choice(["yes", "no"], table.height)
            notes = [" ".join(rng.choice([*words[each].split(), "the", "patient"], 6)) for each in sick]
            table.with_columns(pl.Series("note", notes)).write_csv(root / f"{name}.csv")
        return root

    return make


def test_running_text_is_named_in_the_settings(with_notes: Any, cli: Any) -> None:
    root = with_notes(**{"method.text": ["note"]})
    code, _, err = cli("run", root)
    assert code == 0, err
    model = skops.io.load(root / "public" / "student.skops")
    rows = pl.read_csv(root / "evaluation.csv")
    assert (model.predict(rows.drop("ill")) == rows["ill"].to_numpy()).mean() > 0.9
    assert skops.io.get_untrusted_types(file=root / "public" / "student.skops") == []


@pytest.mark.parametrize(("named", "told"), [("notes", "is not there"), ("age", "holds no text"), (7, "name columns")])
def test_a_column_that_holds_no_text_is_refused_in_one_line(with_notes: Any, cli: Any, named: Any, told: str) -> None:
    code, _, err = cli("check", with_notes(**{"method.text": named}))
    assert code == 2
    assert told in " ".join(err.split())
