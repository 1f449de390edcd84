"""Tables as they come: from a spreadsheet, with commas, few or repeated public rows, a column or a cell too much."""

import codecs

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, edit
from tests.folder.test_refusals import HUGE, put

import quorate
from quorate.data.dialect import Dialect
from quorate.folder.batch import load_run
from quorate.folder.methods import read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import read_settings
from quorate.run.pool_cautions import FEW_PUBLIC_ROWS
from quorate.run.schema import Schema


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
    assert fitted.importances is not None  # also of columns that are texts until they are read
    assert fitted.importances[0].column == "Temperatur"
    raw = new.drop("Sepsis", "Patient").with_columns(pl.col("Temperatur").replace("", None))
    read = [quorate.load(tmp_path / place).predict(raw) for place in ("run", "out")]
    assert (read[0] == read[1]).all()
    assert (read[0] == new["Sepsis"].to_numpy()).mean() > 0.8
    for place in ("run", "out", "files"):
        cli.ok("predict", place, "evaluation.csv", "--out", f"{place}.csv")
        found = pl.read_csv(f"{place}.csv", separator=";", decimal_comma=True)  # as the tables are written
        assert found["label"].to_list() == read[0].tolist()
        assert found["probability_ja"].is_between(0, 1).all()


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


WAYS = {"votes": {}, "direct": DIRECT}


def with_columns(root, *names, **columns):
    for name in names:
        pl.read_csv(root / name).with_columns(**columns).write_csv(root / name)


@pytest.mark.heavy
@pytest.mark.parametrize("by", WAYS)
def test_a_table_with_decimal_commas_is_cautioned_of(make_run, cli, by):
    root = make_run(**{**WAYS[by], "data.evaluation": "evaluation.csv"})
    commas = pl.col("bmi").cast(pl.String).str.replace(".", ",", literal=True)
    with_columns(root, "private.csv", "public.csv", "evaluation.csv", bmi=commas)
    assert "column 'bmi' of public.csv holds numbers with a decimal comma (3,5)" in cli("check", root)[1].words
    assert "columns-with-decimal-commas" in [each["code"] for each in cli.json("check", root)["cautions"]]


def test_a_declared_column_of_numbers_is_read_with_commas_that_can_be_nothing_else():
    schema = Schema.without_pool(None, {"bmi": [10, 60], "sex": ["F", "M"]})
    rows, usable = schema.parsed(pl.DataFrame({"bmi": ["27,5", "1,234", "30"], "sex": ["F", "M", "1,5"]}))
    assert rows["bmi"].to_list()[0] == 27.5
    assert rows["sex"].to_list() == ["F", "M", "1,5"]
    assert usable.tolist() == [True, False, True]


@pytest.mark.heavy
@pytest.mark.parametrize(("by", "n"), [("votes", 24), ("direct", 24), ("votes", 25)])
def test_a_pool_of_few_rows_is_said_to_be_small(make_run, cli, n, by):
    root = make_run(m=n, **WAYS[by])
    found = cli.json("check", root)
    assert (FEW_PUBLIC_ROWS in [each["code"] for each in found["cautions"]]) == (n < 25)
    assert (f"there are {n} different public rows, and " in cli.ok("check", root)) == (n < 25)


def test_public_rows_that_repeat_others_are_counted(make_run, cli):
    root = make_run()
    pool = pl.read_csv(root / "public.csv")
    pl.concat([pool, pool[:7], pool[:1]]).write_csv(root / "public.csv")
    assert "8 of 158 public rows repeat others and are left out: 150 different rows" in cli("check", root)[1].words


@pytest.mark.heavy
@pytest.mark.parametrize("by", WAYS)
def test_a_column_that_one_table_alone_has_leads_to_the_line_that_drops_it(make_run, cli, by):
    root = make_run(**{**WAYS[by], "data.evaluation": "evaluation.csv"})
    with_columns(root, "private.csv", name=pl.lit("x"), street=pl.lit("y"))
    with_columns(root, "public.csv", hue=pl.lit(1))
    err = cli.refused(4, "check", root)
    assert err.startswith(
        "quorate: public.csv lacks the columns 'name', 'street' of private.csv; private.csv lacks the column 'hue' of "
        "public.csv. Give all tables the same feature columns, or leave out the others by a line under [data]: "
    )
    line = err.split("under [data]: ")[1].split("\n")[0]
    assert line == 'drop = ["name", "street", "hue"]'
    edit(root, "[data]\n", f"[data]\n{line}\n")
    assert cli("check", root)[0] == 0
    with_columns(root, "evaluation.csv", id=pl.lit(1))
    assert "public.csv lacks the column 'id' of evaluation.csv" in cli("check", root)[2]
    assert 'drop = ["name", "street", "hue", "id"]' in cli("check", root)[2]


NUMBERED = {"id": pl.int_range(pl.len())}
AUTO = {"method.by": "auto", "teachers.count": None, "mechanism.queries": None, "data.n_records": 400}


@pytest.mark.parametrize("how", [*WAYS.values(), AUTO], ids=[*WAYS, "auto"])
def test_a_column_to_leave_out_that_no_table_has_is_refused(make_run, cli, how):
    root = make_run(**how, **{"data.drop": ["idd"]})
    with_columns(root, "private.csv", "public.csv", **NUMBERED)
    for verb in ("check", "run"):
        err = cli.refused(2, verb, root)
        assert err.startswith("quorate: [data] drop names 'idd', and no table has such a column; did you mean 'id'?\n")
    assert not (root / "private").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("by", WAYS)
def test_a_column_to_leave_out_may_be_in_any_one_table(make_run, cli, by):
    for name in ("private.csv", "public.csv", "evaluation.csv"):
        root = make_run(name, **{**WAYS[by], "data.drop": ["id"], "data.evaluation": "evaluation.csv"})
        with_columns(root, name, **NUMBERED)
        assert cli("check", root)[0] == 0


@pytest.mark.heavy
def test_a_plan_notes_a_column_to_leave_out_that_no_public_table_has(make_run, cli):
    root = make_run(**{"data.drop": ["idd", "surname"], "data.n_records": 400})
    with_columns(root, "private.csv", "public.csv", **NUMBERED)
    notes = cli.json("plan", root, "--rehearse", "no")["notes"]
    [note] = [each for each in notes if "drop" in each]
    assert note.startswith("[data] drop names 'idd', which no public table has; did you mean 'id'? The private file")


@pytest.mark.parametrize("by", WAYS)
def test_a_first_line_that_may_be_a_row_is_not_quoted(make_run, cli, by):
    root = make_run(**WAYS[by])
    text = (root / "private.csv").read_text().replace("age,bmi,ward,ill", "47,secret,17.5,ill", 1)
    (root / "private.csv").write_text(text)
    err = cli("check", root)[2]
    assert "its own names are not quoted, since they may be a row" in err
    assert "secret" not in err


SMALL = {"n": 80, "m": 30, "teachers.count": 4, "mechanism.queries": 10}


@pytest.mark.heavy
def test_a_question_with_a_cell_that_no_model_can_be_given_costs_nothing(finished_run, cli):
    root = finished_run(**SMALL, **{"mechanism.online_answers": 3})
    before = (root / "ledger.db.anchor").read_bytes()
    new = root / "new.csv"
    for column, cell, expected in (
        ("bmi", "1e400", "new.csv: Input contains infinity in column 'bmi'"),
        ("age", HUGE, "new.csv: column 1, counted from the left: an entry looks like a number"),
    ):
        new.write_text((root / "public.csv").read_text())
        put(new, column, cell)
        told = cli.refused(4, "ask", root, new)
        assert expected in told, told
    assert (root / "ledger.db.anchor").read_bytes() == before
