"""A table as a spreadsheet exports it goes from `init` to `check-export` without a conversion by hand."""

import codecs

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import edit

import quorate
from quorate.data.dialect import Dialect
from quorate.errors import InvalidParameter
from quorate.folder.batch import load_run
from quorate.folder.methods import read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import read_settings


def visits(n, seed):
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
            "Station": rng.choice(["Gynäkologie", "Innere; 2\nHaus Süd"], n),
            "Sepsis": np.where(ill, "ja", "nein"),
        }
    )


def export_of(table, path, encoding="cp1252"):
    text = table.write_csv(separator=";", line_terminator="\r\n")
    path.write_bytes(text.encode(encoding))
    return table


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["direct", pytest.param("votes", marks=pytest.mark.heavy)])
def test_an_export_goes_all_the_way(tmp_path, cli, method, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_of(visits(1_500, 1), tmp_path / "private.csv")
    export_of(visits(200, 2).drop("Sepsis", "Patient"), tmp_path / "public.csv")
    new = export_of(visits(300, 3), tmp_path / "evaluation.csv")
    tables = ("--from", "private.csv", "--public", "public.csv", "--evaluation", "evaluation.csv")
    facts = ("--label", "Sepsis", "--unit", "Patient", "--n-records", 750, "--n-rows", 1_500, "--epsilon", 4)
    out = cli.ok("init", "run", *tables, *facts, "--yes")
    assert "date      'Aufnahme'" in out
    assert "number    'Temperatur', 'Leukozyten'" in out
    path = tmp_path / "run" / "quorate.toml"
    text = path.read_text(encoding="utf-8").replace('by = "auto"', f'by = "{method}"')
    assert "\nline_breaks = true" in text
    path.write_bytes(codecs.BOM_UTF8 + text.encode())  # as Notepad saves it
    pytest.importorskip("onnxruntime")
    export = ("export", "run", "--to", "out", "--format", "tre", "--model", "both")
    for command in (("plan", "run", "--rehearse", "no"), ("check", "run"), ("run", "run"), export):
        cli.ok(*command)
    out = cli.ok("check-export", "out")
    assert cli("export", "run", "--to", "files")[0] == 0
    assert (tmp_path / "files" / "read_table.py").read_bytes() == (tmp_path / "out" / "read_table.py").read_bytes()
    assert "✗" not in cli("check-export", "files")[1]
    assert (tmp_path / "run" / "public" / "labels.csv").exists() == (method == "votes")
    fitted = read_facts(tmp_path / "run").fitted
    assert fitted is not None
    assert fitted.importances is not None  # also of columns that are texts until they are read
    assert fitted.importances[0].column == "Temperatur"
    raw = new.drop("Sepsis", "Patient").with_columns(pl.col("Temperatur").replace("", None))
    read = [quorate.load(tmp_path / place).predict(raw) for place in ("run", "out")]
    assert (read[0] == read[1]).all()
    assert (read[0] == new["Sepsis"].to_numpy()).mean() > 0.8
    for place in ("run", "out", "files"):
        cli.ok("predict", place, "evaluation.csv", "--out", f"{place}.csv")
        assert pl.read_csv(f"{place}.csv")["label"].to_list() == read[0].tolist()


def test_line_breaks_in_public_cells_that_nothing_declares_are_said_before_a_charge(tmp_path):
    for name in ("private", "public"):
        export_of(visits(60, 1), tmp_path / f"{name}.csv")
    files = {"private": "private.csv", "public": "public.csv", "label": "Sepsis", "classes": ["nein", "ja"]}
    lines = [f"{key} = {value!r}" for key, value in {**files, "separator": ";", "encoding": "cp1252"}.items()]
    for declared in (False, True):
        text = "\n".join([*lines, f"line_breaks = {str(declared).lower()}"])
        (tmp_path / "quorate.toml").write_text(
            f'[data]\n{text}\n[method]\nby = "direct"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n', encoding="utf-8"
        )
        run = read_run(tmp_path, begin=False)
        said = [finding.words for finding in run.cautions if finding.code == "cells-with-line-breaks"]
        assert len(said) == (not declared)
        assert declared or "cells of column 'Station' of public.csv hold line breaks" in said[0]
        assert (run.task.plan.n_units == 60) == declared


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_how_a_text_table_is_read_is_said_where_the_public_one_has_types_of_its_own(tmp_path, cli, suffix, monkeypatch):
    """Public dates are dates, and nothing shows that the private ones are written as 23.08.2023."""
    monkeypatch.chdir(tmp_path)
    private, public = (visits(60, seed).drop("Leukozyten", "Temperatur") for seed in (1, 2))
    export_of(private, tmp_path / "private.csv")
    public = public.drop("Sepsis", "Patient")
    if suffix == "csv":
        export_of(public, tmp_path / "public.csv")
    else:
        public.with_columns(pl.col("Aufnahme").str.to_date("%d.%m.%Y")).write_parquet("public.parquet")
    given = ("--label", "Sepsis", "--classes", "ja,nein", "--unit", "Patient", "--n-records", 30, "--epsilon", 4)
    out = cli.ok("init", "run", "--from", "private.csv", "--public", f"public.{suffix}", *given, "--yes")
    line = "no public text table shows how private.csv is written"
    assert (line in out) == (suffix == "parquet")
    path = tmp_path / "run" / "quorate.toml"
    text = path.read_text(encoding="utf-8").replace('by = "auto"', 'by = "direct"')
    assert '\nseparator = ";"' in text
    path.write_text(text, encoding="utf-8")
    notes = read_run(tmp_path / "run", begin=False).notes()
    said = [each.words for each in notes if each.code == "cells-as-declared"]
    assert len(said) == (suffix == "parquet")
    assert not said or "dates of column 'Aufnahme' as ISO 8601" in said[0]
    assert not said or "words of column 'Station' as UTF-8" in said[0]
    lines = text.replace("# encoding", "encoding").replace("# date_format", "date_format").replace("# dates", "dates")
    lines = lines.replace('["admitted"]', '["Aufnahme"]').replace('by = "direct"', 'by = "votes"')
    path.write_text(lines, encoding="utf-8")
    rows = load_run(tmp_path / "run").task.inputs  # where teachers vote, dates beside words were refused
    assert rows.kinds.kinds["Aufnahme"] == "date"
    assert np.isfinite(rows.kinds(rows.private.reveal().X)["Aufnahme"].to_numpy()).all()


def settings(folder, **data):
    folder.mkdir(exist_ok=True)
    lines = {"private": "a.csv", "public": "b.csv", "label": "ill", "classes": ["no", "yes"], **data}
    text = "\n".join(f"{key} = {value!r}" for key, value in lines.items())
    (folder / "quorate.toml").write_text(f"[data]\n{text}\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n", encoding="utf-8")
    return read_settings(folder / "quorate.toml").data


def test_what_is_declared_of_a_table_is_read(tmp_path):
    declared = {"separator": ";", "encoding": "latin1", "decimal": ",", "date_format": "DD.MM.YYYY", "missing": "k.A."}
    expected = Dialect(separator=";", encoding="iso8859-1", decimal=",", date_format="dd.mm.yyyy", missing=("k.A.",))
    assert settings(tmp_path, **declared).dialect == expected
    assert settings(tmp_path).dialect == Dialect()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"missing": 9}, r"^\[data\] missing must list"),
        ({"missing": ["no"]}, r"^\[data\] missing names 'no', which is one of the classes"),
        ({"private": "a.parquet", "public": "b.parquet", "quote": "'"}, r"^\[data\] quote says how text tables"),
        ({"text": ["ill"]}, r"^\[data\] text names 'ill', which is the label"),
        ({"text": ["note"], "drop": ["note"]}, r"^\[data\] names column 'note' more than once"),
        ({"public": "b.parquet", "missing": "k.A."}, r"^\[data\] missing says .* b\.parquet is neither"),
        ({"date_formt": "dd.mm.yyyy"}, 'did you mean "date_format"'),
    ],
)
def test_what_cannot_be_declared_of_a_table_is_one_line(tmp_path, wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        settings(tmp_path, **wrong)


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["votes", "direct"])
def test_the_same_cells_in_another_dialect_are_another_run(make_run, method):
    """The texts are the same, and so is the fingerprint of the table; what they say is not."""
    root = make_run(n=60, m=40, **{"method.by": method, "data.n_records": 60, "run.unsafe_noise_seed": 1})
    for name, n in (("private", 60), ("public", 40)):
        days = pl.Series([f"{1 + row % 12:02d}.{1 + row % 11:02d}.2023" for row in range(n)])
        pl.read_csv(root / f"{name}.csv").with_columns(seen=days).write_csv(root / f"{name}.csv")
    keys, before = [], "[data]\n"
    for order in ("", "dd.mm.yyyy", "mm.dd.yyyy", "dd.mm.yyyy"):
        edit(root, before, now := f'[data]\ndate_format = "{order}"\n' if order else "[data]\n")
        task, before = read_run(root, begin=False).task, now
        keys.append(task.plan_key if method == "direct" else {**task.cache_inputs, "data": None})
    none, first, second, again = keys
    assert again == first
    assert first != second
    assert none not in (first, second)
