"""A table as a spreadsheet exports it goes from `init` to `check-export` without a conversion by hand."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quorate
from quorate.data.dialect import Dialect
from quorate.errors import InvalidParameter
from quorate.folder.settings import read_settings

NAMES = ["Patient", "Aufnahme", "Temperatur", "Leukozyten", "Station", "Sepsis"]


def visits(n: int, seed: int) -> pl.DataFrame:
    """Visits as a German spreadsheet writes them."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    days = np.datetime64("2023-01-01") + rng.integers(0, 365, n)
    return pl.DataFrame(
        {
            "Patient": [f"P{seed}{number // 2:04d}" for number in range(n)],
            "Aufnahme": [".".join(reversed(str(day).split("-"))) for day in days],
            "Temperatur": [
                f"{temperature:.1f}".replace(".", ",") if known else ""
                for temperature, known in zip(rng.normal(37 + 2 * ill, 0.5), rng.random(n) > 0.1, strict=True)
            ],
            "Leukozyten": [f"{number:,}".replace(",", ".") for number in rng.integers(900, 9_000, n)],
            "Station": rng.choice(["Gynäkologie", "Innere; 2"], n),
            "Sepsis": np.where(ill, "ja", "nein"),
        }
    )


def export_of(table: pl.DataFrame, path: Path, encoding: str = "cp1252") -> pl.DataFrame:
    text = table.write_csv(separator=";", line_terminator="\r\n")
    path.write_bytes(text.encode(encoding))
    return table


@pytest.mark.parametrize("method", ["direct", pytest.param("votes", marks=pytest.mark.heavy)])
def test_an_export_goes_all_the_way(tmp_path: Path, cli: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    export_of(visits(1_500, 1), tmp_path / "private.csv")
    export_of(visits(200, 2).drop("Sepsis", "Patient"), tmp_path / "public.csv")
    new = export_of(visits(300, 3), tmp_path / "evaluation.csv")
    tables = ("--from", "private.csv", "--public", "public.csv", "--evaluation", "evaluation.csv")
    facts = ("--label", "Sepsis", "--unit", "Patient", "--n-records", 750, "--n-rows", 1_500, "--epsilon", 4)
    code, out, err = cli("init", "run", *tables, *facts, "--yes")
    assert code == 0, err
    assert "date      'Aufnahme'" in out
    assert "number    'Temperatur', 'Leukozyten'" in out
    path = tmp_path / "run" / "quorate.toml"
    text = path.read_text(encoding="utf-8").replace('by = "votes"', f'by = "{method}"')
    path.write_bytes(codecs.BOM_UTF8 + text.encode())  # as Notepad saves it
    for command in (("check", "run"), ("run", "run"), ("export", "run", "--to", "out", "--format", "tre")):
        code, out, err = cli(*command)
        assert code == 0, (command, err)
    code, out, err = cli("check-export", "out")
    assert code == 0, err
    raw = new.drop("Sepsis", "Patient").with_columns(pl.col("Temperatur").replace("", None))
    read = [quorate.load(tmp_path / place).predict(raw) for place in ("run", "out")]
    assert (read[0] == read[1]).all()
    assert (read[0] == new["Sepsis"].to_numpy()).mean() > 0.8
    typed = raw.with_columns(
        pl.col("Aufnahme").str.to_date("%d.%m.%Y"),
        pl.col("Temperatur").str.replace(",", ".").cast(pl.Float64),
        pl.col("Leukozyten").str.replace(".", "", literal=True).cast(pl.Int64),
    )
    assert (quorate.load(tmp_path / "out").predict(typed) == read[0]).all()


def settings(folder: Path, **data: Any) -> Any:
    folder.mkdir(exist_ok=True)
    lines = {"private": "a.csv", "public": "b.csv", "label": "ill", "classes": ["no", "yes"], **data}
    text = "\n".join(f"{key} = {value!r}" for key, value in lines.items())
    (folder / "quorate.toml").write_text(f"[data]\n{text}\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n", encoding="utf-8")
    return read_settings(folder / "quorate.toml").data


def test_what_is_declared_of_a_table_is_read(tmp_path: Path) -> None:
    declared = {"separator": ";", "encoding": "latin1", "decimal": ",", "date_format": "DD.MM.YYYY", "missing": "k.A."}
    expected = Dialect(separator=";", encoding="iso8859-1", decimal=",", date_format="dd.mm.yyyy", missing=("k.A.",))
    assert settings(tmp_path, **declared).dialect == expected
    assert settings(tmp_path).dialect == Dialect()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"separator": "::"}, r"^\[data\] separator must be one of"),
        ({"decimal": 1}, r"^\[data\] decimal must be a text in quotes, got 1"),
        ({"missing": 9}, r"^\[data\] missing must list"),
        ({"missing": ["no"]}, r"^\[data\] missing names 'no', which is one of the classes"),
        ({"encoding": "utf-16"}, r"^\[data\] encoding must be one of"),
        ({"private": "a.parquet", "public": "b.parquet", "quote": "'"}, r"^\[data\] quote says how text tables"),
        ({"date_formt": "dd.mm.yyyy"}, 'did you mean "date_format"'),
    ],
)
def test_what_cannot_be_declared_of_a_table_is_one_line(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        settings(tmp_path, **wrong)
