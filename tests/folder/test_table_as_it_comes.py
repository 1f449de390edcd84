"""A table as a spreadsheet exports it goes from `init` to `check-export` without a conversion by hand."""

import codecs
import runpy

import numpy as np
import polars as pl
import pytest

import quorate
from quorate.data.dialect import Dialect
from quorate.deferred import skops
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
    onnxruntime = pytest.importorskip("onnxruntime")
    export = ("export", "run", "--to", "out", "--format", "tre", "--model", "both")
    for command in (("plan", "run", "--rehearse", "no"), ("check", "run"), ("run", "run"), export):
        code, out, err = cli(*command)
        assert code == 0, (command, err)
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
    typed = raw.with_columns(
        pl.col("Aufnahme").str.to_date("%d.%m.%Y"),
        pl.col("Temperatur").str.replace(",", ".").cast(pl.Float64),
        pl.col("Leukozyten").str.replace(".", "", literal=True).cast(pl.Int64),
    )
    assert (quorate.load(tmp_path / "out").predict(typed) == read[0]).all()
    script = runpy.run_path(str(tmp_path / "out" / "read_table.py"))
    rows = script["read_table"]("evaluation.csv")  # written as the tables of the run
    assert rows.equals(script["read_table"]("evaluation.csv", separator=";", encoding="cp1252"))
    for place in ("run", "out", "files"):
        cli.ok("predict", place, "evaluation.csv", "--out", f"{place}.csv")
        assert pl.read_csv(f"{place}.csv")["label"].to_list() == read[0].tolist()
    student = skops.io.load("out/student.skops", trusted=read_facts(tmp_path / "run").student_file.trusted)
    assert (student.predict(rows) == read[0]).all()
    session = onnxruntime.InferenceSession("out/student.onnx")
    names = [entry.name for entry in session.get_inputs()]
    assert (session.run(None, script["onnx_inputs"](rows, names))[0] == read[0]).all()


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
    code, out, err = cli("init", "run", "--from", "private.csv", "--public", f"public.{suffix}", *given, "--yes")
    assert code == 0, err
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
        ({"separator": "::"}, r"^\[data\] separator must be one of"),
        ({"decimal": 1}, r"^\[data\] decimal must be a text in quotes, got 1"),
        ({"missing": 9}, r"^\[data\] missing must list"),
        ({"missing": ["no"]}, r"^\[data\] missing names 'no', which is one of the classes"),
        ({"encoding": "utf-16"}, r"^\[data\] encoding must be one of"),
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
def test_the_same_cells_in_another_dialect_are_another_run(tmp_path, method):
    """The texts are the same, and so is the fingerprint of the table; what they say is not."""
    for name, n in (("private", 60), ("public", 40)):
        days = [f"{1 + row % 12:02d}.{1 + row % 11:02d}.2023" for row in range(n)]
        rows = pl.DataFrame({"seen": days, "age": [row + 2 * n for row in range(n)], "ill": ["no", "yes"] * (n // 2)})
        (rows if name == "private" else rows.drop("ill")).write_csv(tmp_path / f"{name}.csv")

    def key(date_format):
        (tmp_path / "quorate.toml").write_text(
            '[data]\nprivate = "private.csv"\npublic = "public.csv"\nlabel = "ill"\nclasses = ["no", "yes"]\n'
            f'n_records = 60\n{date_format}\n[method]\nby = "{method}"\n[budget]\nepsilon = 4.0\ndelta = 1e-4\n'
            f"[run]\nunsafe_noise_seed = 1\n{'allow_hopeless = true' * (method == 'votes')}\n"
        )
        if method == "direct":
            return read_run(tmp_path, begin=False).task.plan_key
        inputs = dict(load_run(tmp_path, begin=False).task.cache_inputs)
        assert inputs.pop("data")
        return inputs

    first, second, none = (
        key(f'date_format = "{order}"' if order else "") for order in ("dd.mm.yyyy", "mm.dd.yyyy", "")
    )
    assert first != second
    assert none not in (first, second)
    assert key('date_format = "dd.mm.yyyy"') == first
