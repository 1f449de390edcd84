"""The student of a run meets, on its way to ONNX and in its card, the public rows as the run read them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import write_run

from quorate.export.package import export_files
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import settings_of
from quorate.folder.student_rows import public_rows_of
from quorate.service.open_run import open_student

onnxruntime = pytest.importorskip("onnxruntime")


def with_columns(root: Path) -> None:
    """Add codes that look like numbers, dates, and names that are to be left out."""
    for table in ("private", "public", "evaluation"):
        rows = pl.read_csv(root / f"{table}.csv")
        places = range(len(rows))
        rows.with_columns(
            zip=pl.Series([f"{8000 + row % 5}" for row in places]),
            seen=pl.Series([f"2026-02-{1 + row % 28:02}" for row in places]),
            name=pl.Series([f"{100 + row}" for row in places]),
        ).write_csv(root / f"{table}.csv")


def with_images(root: Path) -> None:
    """Files of pixels in place of the columns."""
    rng = np.random.default_rng(4)
    (root / "images").mkdir()
    for table in ("private", "public"):
        rows = pl.read_csv(root / f"{table}.csv")
        labels = rows["ill"] if "ill" in rows.columns else ["no"] * len(rows)
        files = [f"{table}-{row}.npy" for row in range(len(rows))]
        for row, (file, label) in enumerate(zip(files, labels, strict=True)):
            bright = label == "yes" if table == "private" else row % 2
            np.save(root / "images" / file, (40 * rng.random((6, 6)) + 150 * bright).astype(np.uint8))
        named = pl.DataFrame({"file": files})
        (named.with_columns(ill=labels) if table == "private" else named).write_csv(root / f"{table}.csv")


RUNS: dict[str, tuple[Callable[[Path], None], dict[str, Any], dict[str, str]]] = {
    "votes": (
        with_columns,
        {"data.categorical": ["zip"], "data.drop": ["name"], "student.model": "logistic"},
        {"age": "number", "bmi": "number", "ward": "text", "zip": "text", "seen": "number"},
    ),
    "direct": (
        with_columns,
        {"data.categorical": ["zip"], "data.drop": ["name"], "method.by": "direct", "method.rounds": 4,
         "teachers.count": None, "mechanism.queries": None, "run.n_jobs": None},
        {"age": "number", "bmi": "number", "ward": "text", "zip": "text", "seen": "number"},
    ),
    "images": (with_images, {"data.images": "images", "student.model": "logistic"}, {"rows": "numbers"}),
}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("kind", RUNS)
def test_the_student_of_a_run_leaves_as_onnx_and_its_card_says_how_to_ask_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, settings, inputs = RUNS[kind]
    root = write_run(tmp_path / "run", n=200, m=60, **{"budget.epsilon": 8.0}, **settings)
    prepare(root)
    made = execute(read_run(root), command="quorate run")
    export_files(root, tmp_path / "out", model="both")
    model = onnxruntime.InferenceSession((tmp_path / "out" / "student.onnx").read_bytes())
    assert json.loads(model.get_modelmeta().custom_metadata_map["quorate.inputs"]) == inputs
    file = made.student_file
    assert (file.rows, file.read_as, file.trusted) == (
        ("images", (), ()) if kind == "images" else ("table", ("date",), ())
    )
    assert read_facts(root) == made
    monkeypatch.chdir(tmp_path / "out")
    monkeypatch.syspath_prepend(tmp_path / "out")
    monkeypatch.delitem(sys.modules, "read_table", raising=False)
    told: dict[str, Any] = {"rows": public_rows_of(settings_of(root), open_student(RunFolder(root)))}
    if kind != "images":  # the card reads a table by the program beside the model
        (root / "public.csv").rename(tmp_path / "out" / "new.csv")
    exec((tmp_path / "out" / "model_card.md").read_text().split("```")[1].removeprefix("python\n"), told)  # noqa: S102 - as a reader would
    assert len(told["student"].predict(told["rows"])) == 60
