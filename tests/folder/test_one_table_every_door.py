"""One table, every door: what a run scored, a loaded run, a question and the service read of a row is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quorate
from quorate.errors import DataRefused, PreconditionFailed
from quorate.export.package import export_files
from quorate.folder.batch import load_run
from quorate.folder.direct_run import read_direct
from quorate.folder.online import ask
from quorate.folder.settings import settings_of
from quorate.folder.student_rows import public_table, reader_of
from quorate.service.features import Features
from quorate.service.problems import Problem

DIRECT: dict[str, Any] = {
    "method.by": "direct", "method.rounds": 4, "data.n_records": 300, "teachers.count": None,
    "mechanism.queries": None, "run.n_jobs": None, "mechanism.online_answers": None,
}  # fmt: skip


def visits(n: int, seed: int) -> pl.DataFrame:
    """Dates, decimal commas, categories, missing cells, whole numbers, running text, and what is left out."""
    chance = np.random.default_rng(seed)
    heat = chance.uniform(35, 41, n).round(1)
    days = chance.integers(1, 28, n)
    return pl.DataFrame({
        "key": [f"K{seed}{row:05d}" for row in range(n)],
        "came": [f"2024-03-{day:02d}" for day in days],
        "heat": [None if row % 9 == 4 else str(value).replace(".", ",") for row, value in enumerate(heat)],
        "ward": chance.choice(["north", "south"], n),
        "code": chance.choice(["01", "02"], n),
        "age": chance.integers(20, 90, n),
        "note": [f"seen with {'a cough' if heat[row] > 38 else 'no fever'} on day {days[row]}" for row in range(n)],
        "ill": np.where(heat > 38, "yes", "no"),
    })  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from tests.folder.conftest import write_run

    from quorate.folder.batch import execute
    from quorate.folder.direct_run import execute_direct

    made = {}
    for name, how in (("votes", {"mechanism.online_answers": 8, "budget.epsilon": 40.0}), ("direct", DIRECT)):
        root = write_run(
            tmp_path_factory.mktemp(name) / "run",
            **{"data.evaluation": "evaluation.csv", "data.drop": ["key"], "data.categorical": ["code"], **how},
        )
        for table, n, seed in (("private", 300, 1), ("public", 80, 2), ("evaluation", 60, 3)):
            rows = visits(n, seed)
            (rows.drop("ill") if table == "public" else rows).write_csv(root / f"{table}.csv")
        if name == "votes":
            execute(load_run(root), command="quorate run")
        else:
            execute_direct(read_direct(root), command="quorate run")
        made[name] = root
    return made


def as_typed(table: pl.DataFrame) -> pl.DataFrame:
    """The same rows as somebody makes them who minds types: other columns' order, dates and numbers as such."""
    return table.select(reversed(table.columns)).with_columns(
        pl.col("came").str.to_date(), pl.col("heat").str.replace(",", ".").cast(pl.Float64)
    )


def respelled(table: pl.DataFrame) -> pl.DataFrame:
    """The same rows with blanks around their words."""
    return table.with_columns(ward=pl.format(" {}  ", pl.col("ward")), code=pl.format("{}\t", pl.col("code")))


@pytest.mark.parametrize("name", ["votes", "direct"])
def test_a_table_reads_the_same_at_every_door(name: str, folders: dict[str, Path]) -> None:
    root = folders[name]
    table, run = pl.read_csv(root / "evaluation.csv", schema_overrides={"code": pl.String}), quorate.load(root)
    expected = run.predict_proba(table)
    accuracy = np.mean(run.predict(table) == table["ill"].to_numpy())
    assert run.facts().utility.student.accuracy == pytest.approx(accuracy)  # as the run itself scored it

    for same in (as_typed(table), table.drop("key", "ill"), table.to_pandas(), respelled(table)):
        assert run.predict_proba(same).tolist() == expected.tolist()
    export_files(root, root / "exported", unverified=True)
    exported = quorate.load(root / "exported")
    features_alone = respelled(table).drop("key", "ill")
    assert exported.predict_proba(features_alone.to_pandas()).tolist() == expected.tolist()

    settings = settings_of(root)
    pool = public_table(settings)
    reader = reader_of(settings, run.student_, pool)
    features = Features.of(pool, reader=reader)
    cells = table.select(pool.columns)
    numbers = cells.with_columns(pl.col("heat").str.replace(",", ".").cast(pl.Float64))
    written = cells.with_columns(pl.col("age").cast(pl.String))
    for rows in (cells, numbers, written, respelled(cells)):
        told = features.table(features.parse(rows.to_dicts()))
        assert run.student_.predict_proba(reader.kinds(told)).tolist() == expected.tolist()


def test_a_question_reads_the_same_and_is_charged_once(folders: dict[str, Path]) -> None:
    root = folders["votes"]
    table = pl.read_csv(root / "evaluation.csv", schema_overrides={"code": pl.String})[:3]
    table.write_csv(root / "questions.csv")
    first = ask(load_run(root), root / "questions.csv")
    run = quorate.load(root)
    assert run.ask(table) == first.answers
    assert run.ask(as_typed(table)) == first.answers
    assert run.ask(respelled(table)) == first.answers
    assert ask(load_run(root), root / "questions.csv").left == first.left == 5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table.drop("ward"), "'ward'"),
        (lambda table: table.with_columns(more=1), "'more'"),
        (lambda table: table.with_columns(age=pl.lit("ancient")), "'age'"),
        (lambda table: table.to_numpy(), "a frame with columns"),
    ],
    ids=["missing", "additional", "no number", "no frame"],
)
def test_another_table_is_one_line(change: Any, told: str, folders: dict[str, Path]) -> None:
    table = change(visits(5, 4))
    with pytest.raises(DataRefused, match=told) as refused:
        quorate.load(folders["votes"]).predict(table)
    assert "ancient" not in str(refused.value)


def test_what_is_no_number_is_refused_by_its_column(folders: dict[str, Path]) -> None:
    settings = settings_of(folders["votes"])
    pool = public_table(settings)
    features = Features.of(pool, reader=reader_of(settings, quorate.load(folders["votes"]).student_, pool))
    row = visits(1, 4).select(pool.columns).to_dicts()[0]
    for column, value in (("heat", "hot"), ("heat", True), ("heat", 1e200), ("age", "old"), ("age", "3,5")):
        with pytest.raises(Problem) as refused:
            features.parse([{**row, column: value}])
        assert refused.value.field == f"/rows/0/{column}"


def test_where_the_public_table_is_gone_a_table_is_not_read_in_another_way(folders: dict[str, Path]) -> None:
    root = folders["direct"]
    table, public = pl.read_csv(root / "evaluation.csv"), root / "public.csv"
    public.rename(root / "elsewhere.csv")
    try:
        with pytest.raises(PreconditionFailed, match=r"public\.csv.*put it back there"):
            quorate.load(root).predict(table)
    finally:
        (root / "elsewhere.csv").rename(public)
