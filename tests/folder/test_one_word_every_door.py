"""One word, every door: what stands for the same public entry is predicted the same, wherever it comes in."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.folder.conftest import DIRECT, write_run

import quorate
from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.errors import DataRefused, InvalidParameter
from quorate.export.package import export_files
from quorate.folder.methods import execute, read_run
from quorate.folder.settings import settings_of
from quorate.folder.student_rows import public_table, reader_of
from quorate.service.features import Features
from quorate.service.problems import Problem


class Ward(str, Enum):  # noqa: UP042 - members that are texts too
    NORTH = "north"


COLUMNS = ("age", "ward", "code", "sure")
# For a column, the entry that is meant (or what stands for none), and the cells that say the same.
SAME: list[tuple[str, Any, list[Any]]] = [
    ("ward", "north", [" north ", "north\t", "north\N{NO-BREAK SPACE}", np.str_("north"), Ward.NORTH, b"north"]),
    ("ward", "Z\u00fcrich", ["Zu\u0308rich", " Zu\u0308rich"]),
    ("ward", "zebra", ["NORTH", "nor th", "", "  ", "north."]),
    ("ward", None, [float("nan"), pd.NA, pd.NaT, np.nan]),
    ("code", "7", ["7.0", " 7", 7, 7.0, np.int8(7), np.float32(7)]),
    ("code", "1", ["1.00", 1, 1.0]),
    ("code", "zebra", ["007", "7.5", 8, "1e0"]),
    ("sure", "True", ["true", " TRUE ", True, np.True_]),
    ("sure", "False", ["false", False]),
]
ENTRIES = {entry for _, entry, _ in SAME} - {"zebra", None}
REFUSALS = (DataRefused, InvalidParameter, Problem)


def drawn(n: int, seed: int) -> pl.DataFrame:
    """Rows whose class hangs on every column, so that a word that is lost is seen."""
    chance = np.random.default_rng(seed)
    age, ward = chance.normal(size=n), chance.choice(["north", "Z\u00fcrich"], n)
    code, sure = chance.choice(["7", "1"], n), chance.choice(["True", "False"], n)
    ill = 0.3 * age + (ward == "north") + (code == "7") + (sure == "True") + chance.normal(0, 0.2, n) > 1.5
    return pl.DataFrame(
        {"age": age, "ward": ward, "code": code, "sure": sure, "ill": np.where(ill, "yes", "no")}
    )  # fmt: skip


def one_row(column: str, cell: Any) -> dict[str, list[Any]]:
    row: dict[str, Any] = {"age": 0.5, "ward": "north", "code": "1", "sure": "True", column: cell}
    return {name: [row[name]] for name in COLUMNS}


def of_pandas(cells: dict[str, list[Any]]) -> Any:
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})


FRAMES = {
    "pandas objects": of_pandas,
    "pandas": pd.DataFrame,
    "polars": lambda cells: pl.DataFrame({name: pl.Series(name, column) for name, column in cells.items()}),
    "pandas categories": lambda cells: of_pandas(cells).astype({"ward": "category"}),
    "Arrow": lambda cells: pl.from_arrow(pa.table({name: pa.array(column) for name, column in cells.items()})),
}
MEMORY = {"epsilon": 8.0, "delta": 1e-5, "classes": ["no", "yes"]}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """From the name of a door to what gives the probabilities of the rows of a frame."""
    by: dict[str, Any] = {}
    private, public = drawn(400, 1), drawn(150, 2).drop("ill")
    for method in ("votes", "direct"):
        changes = DIRECT if method == "direct" else {"mechanism.online_answers": 60}
        root = write_run(
            tmp_path_factory.mktemp(method) / "run",
            **{"data.categorical": ["code", "sure"], "budget.epsilon": 8.0, **changes},
        )
        private.write_csv(root / "private.csv", quote_style="non_numeric")
        public.write_csv(root / "public.csv", quote_style="non_numeric")
        execute(read_run(root), command="quorate run")
        if method == "votes":
            by["ask"] = quorate.load(root).ask
        export_files(root, root / "exported", unverified=True)
        run = quorate.load(root)
        by[f"load, {method}"] = run.predict_proba
        by[f"exported, {method}"] = quorate.load(root / "exported").predict_proba
        settings = settings_of(root)
        pool = public_table(settings)
        reader = reader_of(settings, run.student_, pool)
        features = Features.of(pool, reader=reader)
        by[f"HTTP, {method}"] = lambda frame, features=features, reader=reader, run=run: run.student_.predict_proba(
            reader.kinds(features.table(features.parse(json_of(frame))))
        )
        for library in ("polars", "pandas"):
            rows = [each if library == "polars" else each.to_pandas() for each in (private.drop("ill"), public)]
            kept = {**MEMORY, "ledger": root / f"{library}.db"}
            made = (
                PrivateLogisticRegression(**kept, n_records=400, rounds=4)
                if method == "direct"
                else PrivateClassifier(**kept, n_teachers=10, n_jobs=1)
            )
            fitted = made.fit(
                rows[0], private["ill"].to_list(), public=PublicPool(rows[1], categorical=["code", "sure"])
            )
            by[f"{library}, {method}"] = fitted.predict_proba
    return by


def json_of(frame: Any) -> list[dict[str, Any]]:
    rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return [{name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in rows]


@pytest.mark.heavy
@pytest.mark.heavy_cases(2)  # a frame of pandas, and polars, which all doors take
@pytest.mark.parametrize("container", FRAMES)
def test_what_stands_for_one_entry_is_predicted_the_same_at_every_door(container: str, doors: dict[str, Any]) -> None:
    """A door may refuse a cell in one line, as of numbers where the pool has words; it may not read another word."""
    make, seen, other = FRAMES[container], dict.fromkeys(doors, 0), []
    library = "pandas" if container.startswith("pandas") else "polars"
    for column, entry, cells in SAME:
        for name, predict in doors.items():
            if name == "ask" and (library != "polars" or entry not in ENTRIES):
                continue  # it takes the pool's kind alone, and answers to other words are noisy by themselves
            if name.startswith(("polars", "pandas")) and not name.startswith(library):
                continue
            expected = np.asarray(predict(make(one_row(column, entry)))).tolist()
            for cell in cells:
                try:
                    frame = make(one_row(column, cell))
                except Exception:  # noqa: BLE001, S112 - a library that builds no such table
                    continue
                try:
                    found = np.asarray(predict(frame)).tolist()
                except REFUSALS:
                    continue
                seen[name] += 1
                if found != expected:
                    other.append((name, column, entry, cell))
    assert not other
    looked = {name: times for name, times in seen.items() if not name.startswith(("polars", "pandas"))}
    assert min(looked.values()) >= (12 if library == "polars" else 0), seen
    assert min(times for name, times in seen.items() if name.startswith(library)) >= 12, seen


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("method", ["votes", "direct"])
@pytest.mark.parametrize("library", ["polars", pytest.param("pandas", marks=pytest.mark.heavy)])
def test_a_private_table_in_other_blanks_and_forms_of_unicode_teaches_the_same(method: str, library: str) -> None:
    """Half of the words are written in another way: what is released is the same, to the last bit."""
    private, public = drawn(400, 1), drawn(150, 2).drop("ill")
    other = pl.col("ward").str.replace("\u00fc", "u\u0308", literal=True)
    padded = private.with_columns(
        ward=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.format("{}  ", other)).otherwise("ward"),
        code=pl.format("{}.0", "code"),
        sure=pl.col("sure").str.to_lowercase(),
    )
    models = []
    for rows in (private, padded):
        tables = [rows.drop("ill"), public]
        X, pool = tables if library == "polars" else [each.to_pandas() for each in tables]
        seeded = {**MEMORY, "unsafe_noise_seed": 7, "n_records": 400}
        made = (
            PrivateLogisticRegression(**seeded, rounds=4)
            if method == "direct"
            else PrivateClassifier(**seeded, n_teachers=10, n_jobs=1)
        )
        pool = PublicPool(pool, categorical=["code", "sure"])
        models.append(made.fit(X, private["ill"].to_list(), public=pool).predict_proba(pool.rows()))
    assert models[0].tolist() == models[1].tolist()
