"""Feature maps of a direct run: a fitted transformer from a file, and columns of running text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.folder.conftest import DIRECT
from tests.used_rows import used

from quorate.deferred import skops
from quorate.folder.direct_run import read_direct
from quorate.folder.methods import execute


def transformer(root: Path, *, fit: bool = True) -> Any:
    made = ColumnTransformer([("numbers", StandardScaler(), ["age", "bmi"]), ("words", OneHotEncoder(), ["ward"])])
    return made.fit(pl.read_csv(root / "public.csv")) if fit else made


@pytest.mark.heavy
def test_a_run_takes_a_transformer_from_a_file_and_goes_on_with_it(make_run: Any, cli: Any) -> None:
    root = make_run(m=60, **DIRECT, **{"method.feature_map": "map.skops"})
    assert "there is no file" in cli.refused(4, "check", root)
    skops.io.dump(transformer(root, fit=False), root / "map.skops")
    assert "is not fitted" in cli.refused(2, "check", root)
    assert not (root / "ledger.db").exists()
    skops.io.dump(transformer(root), root / "map.skops")
    assert cli("run", root)[0] == 0
    again = read_direct(root)
    assert again.task.stored
    model = skops.io.load(root / "public" / "student.skops")
    assert set(model.predict(pl.read_csv(root / "public.csv"))) <= {"no", "yes"}
    before = model[-1].coef_
    execute(again, command="quorate run")
    assert (skops.io.load(root / "public" / "student.skops")[-1].coef_ == before).all()
    (root / "map.skops").write_bytes(b"none")
    assert "skops.io.dump" in cli.refused(4, "check", root)


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


@pytest.mark.heavy
def test_running_text_is_named_in_the_settings(with_notes: Any, cli: Any) -> None:
    root = with_notes(**{"method.text": ["note"]})
    cli.ok("run", root)
    model = skops.io.load(root / "public" / "student.skops")
    rows = pl.read_csv(root / "evaluation.csv")
    assert (model.predict(rows.drop("ill")) == rows["ill"].to_numpy()).mean() > 0.9
    assert skops.io.get_untrusted_types(file=root / "public" / "student.skops") == []


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("named", "told"), [("notes", "is not there"), ("age", "holds no text"), (7, "name columns")])
def test_a_column_that_holds_no_text_is_refused_in_one_line(with_notes: Any, cli: Any, named: Any, told: str) -> None:
    assert told in " ".join(cli.refused(2, "check", with_notes(**{"method.text": named})).split())


WITHOUT_POOL = {**DIRECT, "data.public": None, "schema.age": [0, 120], "schema.bmi": [10, 60]}
WARD = {"schema.ward": ["north", "south", "west"]}


@pytest.mark.heavy
def test_a_run_without_public_rows_goes_by_a_declared_schema(make_run: Any, cli: Any, tmp_path: Path) -> None:
    root = make_run(**WITHOUT_POOL, **WARD, **{"data.evaluation": "evaluation.csv", "method.marginals": 0})
    assert "6 features" in cli.ok("check", root)
    assert cli("run", root)[0] == 0
    assert cli("run", root)[0] == 0
    out = cli.ok("status", root)
    assert "finished" in out
    assert cli("audit", root, "--runs", 2_000, "--seed", 1)[0] == 0
    assert cli("export", root, "--to", tmp_path / "out")[0] == 0
    model = skops.io.load(tmp_path / "out" / "student.skops")
    rows = pl.read_csv(root / "evaluation.csv").drop("ill")
    assert set(model.predict(rows)) <= {"no", "yes"}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"schema.age": None, "schema.bmi": None}, "public is required, or a [schema]"),
        ({"data.public": "public.csv"}, "[schema] takes the place of public rows"),
        ({"schema.ward": ["north", 3]}, "'ward'"),
        ({"schema.height": [0, 300], **WARD}, "height"),
        ({"method.feature_map": "trees", **WARD}, "feature_map"),
        ({"method.feature_map": "kernels", "method.marginals": 0, **WARD}, "feature_map"),
        ({"method.text": ["ward"], **WARD}, "public pool"),
    ],
)
def test_what_lacks_a_schema_is_refused_in_one_line_and_nothing_is_charged(
    make_run: Any, cli: Any, changes: dict[str, Any], told: str
) -> None:
    settings = {**WITHOUT_POOL, **changes}
    for key in [key for key, value in settings.items() if value is None and key.startswith("schema")]:
        del settings[key]
    root = make_run(**settings)
    if changes.get("data.public"):
        assert (root / "public.csv").exists()
    code, _, err = cli("run", root)
    assert code in (2, 4)
    assert told in " ".join(err.split())
    assert not (root / "ledger.db").exists()


OPEN: dict[str, Any] = {"teachers.count": None, "mechanism.queries": None}


@pytest.mark.parametrize("by", ["votes", "auto"])
def test_a_schema_stands_in_the_place_of_public_rows(make_run: Any, cli: Any, by: str) -> None:
    assert "[schema]" in cli.refused(2, "check", make_run(**{"schema.age": [0, 120], "method.by": by, **OPEN}))


@pytest.mark.heavy
def test_sparse_rows_without_a_pool_need_their_number_of_columns(make_run: Any, cli: Any) -> None:
    settings = {**DIRECT, "data.public": None, "data.private": "private.svm", "data.classes": [0, 1]}
    root = make_run(**settings, **{"schema.columns": 6})
    rng = np.random.default_rng(0)
    rows = rng.random((400, 6)) < 0.4
    lines = [f"{int(row[0])} " + " ".join(f"{i + 1}:1" for i in np.flatnonzero(row)) for row in rows]
    (root / "private.svm").write_text("\n".join([*lines, "1 9:1"]) + "\n")
    assert len(used(read_direct(root, begin=False).task)[1]) == 400
    assert cli("run", root)[0] == 0
    other = make_run("other", **settings, **{"schema.age": [0, 1]})
    (other / "private.svm").write_text("\n".join(lines))
    assert "columns = 5000" in " ".join(cli.refused(2, "check", other).split())
