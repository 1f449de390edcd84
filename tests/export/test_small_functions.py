"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from quorate.export.check import ExportCheck
from quorate.export.contents import table_script
from quorate.export.onnx_model import onnx_student
from quorate.export.onnx_parts import patch_sums
from quorate.folder.student_rows import reader_of_columns
from quorate.report.student_file import StudentFile, TableColumn, Written


def test_check() -> None:
    assert ExportCheck(()).counted == "0 passed, 0 failed, 0 not run"


def test_onnx_of_patches() -> None:
    """What is read off the published transformer is one step, and says the same of other images."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from quorate.data.feature_maps.first_maps import PatchFeatures

    images = np.random.default_rng(0).random((40, 100))
    transformer = PatchFeatures.fit(images, n_centroids=8).transformer()
    assert patch_sums(transformer.steps[1][1]).places.shape == (9, 1, 36)  # type: ignore[union-attr]
    model = make_pipeline(transformer, LogisticRegression())
    model[-1].fit(transformer.transform(images), np.arange(40) % 2)
    assert onnx_student(model, images[::-1] * 0.9).largest_difference < 1e-6


@pytest.mark.parametrize(
    ("written", "number", "day"),
    [
        (None, "38,8", "1969-12-31T12:30+01:00"),
        (
            Written(decimal=",", thousands=".", date_format="dd.mm.yyyy", missing=("k.A.",)),
            "-1.234,5",
            "1.12.2023 06:30",
        ),
    ],
    ids=["as tables write", "as declared"],
)
def test_the_program_beside_a_model_reads_a_table_as_the_run_does(
    written: Written | None, number: str, day: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"n": "number", "d": "date", "h": "time", "s": "duration", "c": "category", "t": "text"}
    how: dict[str, Any] = {"type": "text", "written": written, "comma": written is None}
    columns = tuple(TableColumn(name=name, holds="text", read_as=kind, **how) for name, kind in kinds.items())
    cells = {
        "n": [number, "n/a", "12", None],
        "d": ["2024-03-01", day, "?", None],
        "h": ["12:30", "00:00:30", "23:59:59.5", None],
        "s": ["60", "86400", "0.5", None],
        "c": ["north", "k.A.", "süd", None],
        "t": ["seen again", "k.A.", "", None],
    }
    table, reader = pl.DataFrame(cells), reader_of_columns(columns, None)
    expected = reader.kinds(reader(table)).fill_nan(None)
    file = StudentFile(rows="table", columns=columns)
    program: dict[str, Any] = {"__name__": "read_table"}
    script = table_script(SimpleNamespace(student_file=file))  # type: ignore[arg-type]
    assert script is not None
    exec(script, program)  # noqa: S102 - our own
    assert program["converted"](table)["c"].to_list() == ["north", None if written else "k.A.", "süd", None]
    read = program["converted"](table)
    assert read["t"].to_list() == ["seen again", "" if written else "k.A.", "", ""] == expected["t"].to_list()
    assert program["onnx_inputs"](read, ["t"])["t"].tolist()[2:] == [["<missing>"]] * 2
    assert program["converted"](table).drop("c").equals(expected.drop("c"))
    with pytest.raises(ValueError, match="column 'n': 'many' is no number"):
        program["converted"](table.with_columns(n=pl.lit("many")))


def test_a_table_that_is_taken_as_it_is_has_no_program_beside_it() -> None:
    number = TableColumn(name="age", holds="number", read_as="number", type="number")
    raw = TableColumn(name="day", holds="time", type="date")  # of a Pipeline of the owner's
    for columns in ((number,), (number, raw)):
        facts: Any = SimpleNamespace(student_file=StudentFile(rows="table", columns=columns))
        assert table_script(facts) is None
