"""One table and one word, every door: what a run scored, a loaded run, a question and the service read is the same."""

import datetime as dt
import json
import runpy
import shutil
import sys
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, run, write_run

import quorate
from quorate.data import row_digests
from quorate.errors import DataRefused, PreconditionFailed
from quorate.export.contents import metadata, table_script
from quorate.export.package import export_files
from quorate.folder.batch import ask, load_run
from quorate.folder.labelled_rows import of_votes
from quorate.folder.published import read_facts
from quorate.labelling import Memo
from quorate.report import model_card
from quorate.service.open_run import features_of
from quorate.service.problems import Problem
from quorate.voting.ask import question_keys, question_rows

BERLIN = ZoneInfo("Europe/Berlin")
DAY, MOMENT = dt.date(2023, 8, 23), dt.datetime.fromisoformat("2023-08-23T10:00")
TYPED = {
    "number": pl.Float64, "whole": pl.Int64, "comma": pl.String, "percent": pl.String, "word": pl.String,
    "truth": pl.Boolean, "day": pl.Date, "moment": pl.Datetime("us"), "zoned": pl.Datetime("us", "Europe/Berlin"),
    "clock": pl.Time, "lasting": pl.Duration("us"), "note": pl.String, "written": pl.String, "hour": pl.String,
    "level": pl.String, "code": pl.String,
}  # fmt: skip

# Of each kind of column: one cell in all the ways in which it may be written, and what no such cell says.
WRITINGS = {
    "number": ([38.5, "38.5"], ["high", DAY]),
    "whole": ([40, 40.0, "40"], ["old"]),
    "comma": (["38,8", 38.8, "38.8"], ["hot"]),
    "percent": (["45 %"], []),
    "word": (["north", "  north\t"], []),
    "code": (["01", " 01"], []),  # named categorical: these are words
    "truth": ([True, "true"], []),
    "day": ([DAY, MOMENT.replace(hour=0), "2023-08-23", "2023-08-23T00:00"], [dt.time(7, 30), "07:30", "soon", 19592]),
    "moment": ([MOMENT, MOMENT.replace(tzinfo=dt.UTC), "2023-08-23T10:00", "2023-08-23 12:00:00+02:00"], ["10:00"]),
    "zoned": ([MOMENT.replace(tzinfo=BERLIN), "2023-08-23T08:00Z", MOMENT.replace(hour=8)], ["23.8.2023"]),
    "clock": ([dt.time(7, 30), "07:30", "07:30:00.0"], [DAY, "2023-08-23", "25:00", 7.5]),
    "lasting": ([dt.timedelta(minutes=2), 120, 120.0, "120"], ["long", dt.time(7, 30)]),
    "note": (["seen with a cough on day 3"], []),
    "written": (["2023-08-23", "2023-08-23T00:00Z", DAY, MOMENT.replace(hour=0)], [dt.time(7, 30), "07:30", 5]),
    "hour": (["07:30", dt.time(7, 30), "07:30:00"], ["2023-08-23", MOMENT]),
    "level": (["38,8", 38.8, "38.8"], []),
}


def every_kind(n, seed):
    """A table with a column of each kind."""
    chance = np.random.default_rng(seed)
    days, minutes = chance.integers(0, 60, n).tolist(), chance.integers(0, 1_400, n).tolist()
    heat = chance.uniform(35, 41, n).round(1).tolist()
    start = dt.datetime.fromisoformat("2023-07-01")
    moments = [start + dt.timedelta(days=day, minutes=minute) for day, minute in zip(days, minutes, strict=True)]
    return pl.DataFrame({
        "number": heat,
        "whole": days,
        "comma": [None if row % 9 == 4 else str(value).replace(".", ",") for row, value in enumerate(heat)],
        "percent": [f"{day % 4 * 15} %" for day in days],
        "word": chance.choice(["north", "south"], n).tolist(),
        "truth": chance.choice([True, False], n).tolist(),
        "day": [moment.date() for moment in moments],
        "moment": moments,
        "zoned": [moment.replace(tzinfo=BERLIN) for moment in moments],
        "clock": [moment.time() for moment in moments],
        "lasting": [dt.timedelta(minutes=minute) for minute in minutes],
        "note": [f"seen with {'a cough' if value > 38 else 'no fever'} after lunch" for value in heat],
        "written": [str(moment.date()) for moment in moments],
        "hour": [moment.strftime("%H:%M") for moment in moments],
        "level": ["<35,5" if row % 7 == 3 else str(value).replace(".", ",") for row, value in enumerate(heat)],
        "code": chance.choice(["01", "02"], n).tolist(),
        "ill": ["yes" if value > 38 else "no" for value in heat],
    }, schema_overrides=TYPED)  # fmt: skip


@pytest.fixture(scope="module")
def typed_by(tmp_path_factory):
    """Return ``typed_by(method)``: a finished run on tables with a column of each kind and one that is dropped."""

    @cache
    def run_of(method):
        tables = {f"data.{name}": f"{name}.parquet" for name in ("private", "public", "evaluation")}
        kinds = {"data.numeric": ["level"], "data.categorical": ["code"], "data.drop": ["key"]}
        votes = {"mechanism.online_answers": 8, "budget.epsilon": 60.0}
        how = {**DIRECT, "data.n_records": 300} if method == "direct" else votes
        root = write_run(tmp_path_factory.mktemp("typed") / "run", **tables, **kinds, **how)
        for table, n, seed in (("private", 300, 1), ("public", 80, 2), ("evaluation", 60, 3)):
            rows = every_kind(n, seed).with_row_index("key")
            (rows.drop("ill") if table == "public" else rows).write_parquet(root / f"{table}.parquet")
        run(root)
        export_files(root, root.parent / "outbox")
        return root

    return run_of


@pytest.fixture
def typed(typed_by):
    return typed_by("votes")


ROW = every_kind(1, 7).drop("ill").to_dicts()[0]


@cache
def loaded(root):
    """The run as an estimator, what was exported from it, its task, and what its service takes."""
    run, batch = quorate.load(root), load_run(root)
    return run, quorate.load(root.parent / "outbox"), batch, features_of(batch, run.student_)


def polars_of(row):
    return pl.DataFrame({name: pl.Series([cell]) for name, cell in row.items()})


def pandas_of(row):
    """One row of pandas: days and times of day are objects there."""
    return pd.DataFrame({name: pd.Series([cell]) for name, cell in row.items()})


def by_http(root, row):
    """What the service's student says; what JSON has not is written as Python writes it, durations in seconds."""
    run, _, batch, features = loaded(root)
    kept = (bool, int, float, type(None))
    seconds = {name: cell.total_seconds() for name, cell in row.items() if isinstance(cell, dt.timedelta)}
    cells = {name: cell if isinstance(cell, kept) else str(cell) for name, cell in row.items()} | seconds
    table = features.table(features.parse(json.loads(json.dumps([cells]))))
    return run.student_.predict_proba(batch.task.views.student.kinds(table)).tolist()


def by_evaluation(root, row):
    """What the student says of a row that the run is scored on."""
    run, _, batch, _ = loaded(root)
    path = root.parent / "scored.parquet"
    polars_of({**row, "ill": "yes"}).write_parquet(path)
    rows = of_votes(replace(batch.settings.data, evaluation=path), batch.task, "evaluation").X
    return run.student_.predict_proba(batch.task.views.student.kinds(rows)).tolist()


DOORS = {
    "polars": lambda root, row: loaded(root)[0].predict_proba(polars_of(row)).tolist(),
    "pandas": lambda root, row: loaded(root)[0].predict_proba(pandas_of(row)).tolist(),
    "Arrow": lambda root, row: loaded(root)[0].predict_proba(polars_of(row).to_arrow()).tolist(),
    "exported": lambda root, row: loaded(root)[1].predict_proba(polars_of(row)).tolist(),
    "HTTP": by_http,
    "evaluation": by_evaluation,
}


def told_by_doors(root, rows):
    return {(door, at): call(root, row) for at, row in enumerate(rows) for door, call in DOORS.items()}


@pytest.mark.filterwarnings("ignore:cells-that-are-no-numbers")
@pytest.mark.parametrize("method", ["votes", pytest.param("direct", marks=pytest.mark.heavy)])
def test_a_row_says_the_same_at_every_door_however_it_is_written(method, typed_by):
    root = typed_by(method)
    first, last = ({name: cells[at] for name, (cells, _) in WRITINGS.items()} for at in (0, -1))
    told = told_by_doors(root, [first, last, dict(reversed(ROW.items())) | first])
    assert {key for key, proba in told.items() if proba != told["polars", 0]} == set()
    missing = told_by_doors(root, [dict.fromkeys(ROW)])
    assert {key for key, proba in missing.items() if proba != missing["polars", 0]} == set()
    assert missing["polars", 0] != told["polars", 0]
    table, model = pl.read_parquet(root / "evaluation.parquet"), loaded(root)[0]  # with the label and what is dropped
    accuracy = np.mean(model.predict(table) == table["ill"].to_numpy())
    assert model.facts().utility.student.accuracy == pytest.approx(accuracy)  # as the run itself scored it


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table.drop("word"), "'word'"),
        (lambda table: table.with_columns(more=1), "'more'"),
        (lambda table: table.to_numpy(), "a frame with columns"),
    ],
    ids=["missing", "additional", "no frame"],
)
def test_another_table_is_one_line(change, told, typed):
    with pytest.raises(DataRefused, match=told):
        loaded(typed)[0].predict(change(polars_of(ROW)))


def test_where_the_public_table_is_gone_a_table_is_not_read_in_another_way(typed):
    public = typed / "public.parquet"
    public.rename(typed / "elsewhere.parquet")
    try:
        with pytest.raises(PreconditionFailed, match=r"public\.parquet.*put it back there"):
            quorate.load(typed).predict(polars_of(ROW))
    finally:
        (typed / "elsewhere.parquet").rename(public)


def by_script(root, row):
    """What the exported student says of a row that the script beside it has read."""
    path = root.parent / "read_table.py"
    path.write_text(table_script(read_facts(root)) or "", encoding="utf-8")
    script = runpy.run_path(str(path))
    return loaded(root)[0].student_.predict_proba(script["converted"](polars_of(row))).tolist()


@pytest.mark.heavy
def test_what_is_no_number_in_a_column_named_numeric_is_missing_at_every_door(typed, cli, recwarn):
    """As the run counts it in its own tables; elsewhere, where the rule alone says number, it is refused."""
    doors = {**DOORS, "script": by_script}
    for door, call in doors.items():
        assert call(typed, {**ROW, "level": "<0,6"}) == call(typed, {**ROW, "level": None}), door
        assert call(typed, {**ROW, "level": "<0,6"}) != call(typed, ROW), door
    assert asked_keys(typed, polars_of({**ROW, "level": "<0,6"})) == asked_keys(
        typed, polars_of({**ROW, "level": None})
    )
    assert "cells-that-are-no-numbers: X: 1 cell of column 'level'" in str(recwarn[0].message)
    rows = pl.concat([polars_of({**ROW, "level": level}) for level in ("38,8", "<0,6", "n/a", "k.A.", None)])
    rows.write_parquet(typed.parent / "new.parquet")
    told = cli.refused(0, "predict", typed, typed.parent / "new.parquet", "--out", typed.parent / "new.csv")
    line = "note: new.parquet: 2 cells of column 'level' are no numbers; they count as missing"
    assert line in told.words
    assert line in cli("ask", typed, typed.parent / "new.parquet")[2].words


@pytest.mark.heavy
@pytest.mark.parametrize("name", WRITINGS)
def test_a_cell_says_the_same_at_every_door_however_it_is_written(name, typed):
    other = every_kind(1, 8).drop("ill").to_dicts()[0]
    for cells in (WRITINGS[name][0], [None]):
        told = told_by_doors(typed, [{**ROW, name: cell} for cell in cells])
        assert {key for key, proba in told.items() if proba != told["polars", 0]} == set()
    if name not in ("percent", "note", "truth"):  # of which two values may weigh the same
        assert DOORS["polars"](typed, {**ROW, name: other[name]}) != told["polars", 0]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", [name for name, (_, others) in WRITINGS.items() if others])
def test_what_a_cell_cannot_say_is_refused_in_one_sentence_at_every_door(name, typed):
    reader = loaded(typed)[3].columns[list(ROW).index(name)].reader
    assert reader is not None
    for cell in WRITINGS[name][1]:
        for door in DOORS.keys() - {"evaluation"}:  # which reads rows as private ones, of which no cell is refused
            with pytest.raises((DataRefused, Problem)) as refused:
                DOORS[door](typed, {**ROW, name: cell})
            words = f"{refused.value} {getattr(refused.value, 'detail', '')} {getattr(refused.value, 'field', '')}"
            assert reader.expected(name) in words
            assert name in words
            assert str(cell) not in words.replace("hold", "").replace(reader.expected(name), "")


def asked_keys(root, table):
    batch = loaded(root)[2]
    rows, earlier = question_rows(batch.task, table, "X")
    return [key.hex() for key in question_keys(batch.task.views.teacher, Memo(), rows, earlier)]


@pytest.mark.heavy
@pytest.mark.parametrize("name", WRITINGS)
def test_one_point_has_one_key_whatever_holds_it(name, typed):
    keys = set()
    for cell in WRITINGS[name][0]:
        row = {**ROW, name: cell}
        for table in (polars_of(row), pandas_of(row), polars_of(row).to_arrow()):
            keys |= set(asked_keys(typed, table))
    assert len(keys) == 1
    assert keys != set(asked_keys(typed, polars_of({**ROW, name: None})))


def keys_of_cells(view, memo, rows, earlier=None):
    """By what an earlier version kept answers: the cells as they came, so that two writings were two points."""
    return row_digests(rows if earlier is None else earlier)


def test_that_test_catches_keys_of_cells_as_they_come(typed, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "question_keys", keys_of_cells)
    instant = ROW["zoned"]
    rows = [{**ROW, "zoned": instant.astimezone(zone)} for zone in (BERLIN, dt.UTC)]
    assert len({key for row in rows for key in asked_keys(typed, polars_of(row))}) == 2


@pytest.mark.heavy
def test_what_an_earlier_version_answered_is_found_and_charged_no_more(typed, monkeypatch):
    """In whatever zone it was asked, if it comes in that one again; and in any zone, if it came in the pool's."""
    in_berlin = {**ROW, "number": 37.75}
    in_utc = {**in_berlin, "zoned": in_berlin["zoned"].astimezone(dt.UTC)}
    by_text = {**in_utc, "zoned": in_utc["zoned"].isoformat()}
    elsewhere = {**in_utc, "number": 37.5}
    with monkeypatch.context() as before:
        before.setattr("quorate.voting.ask.question_keys", keys_of_cells)
        asked = [ask(load_run(typed), polars_of(row)) for row in (in_berlin, elsewhere)]
        assert ask(load_run(typed), polars_of(in_berlin)).left == asked[1].left == asked[0].left - 1
    for row, first in ((in_berlin, asked[0]), (in_utc, asked[0]), (by_text, asked[0]), (elsewhere, asked[1])):
        again = ask(load_run(typed), polars_of(row))
        assert (again.answers, again.left) == (first.answers, asked[1].left)


def test_a_point_is_charged_once_by_whatever_door_it_comes(typed):
    row, path = {**ROW, "number": 36.25}, typed.parent / "asked"
    first = ask(load_run(typed), polars_of(row))
    written = {**row, "day": str(row["day"]), "zoned": row["zoned"].astimezone(dt.UTC).isoformat()}
    polars_of(row).write_parquet(path.with_suffix(".parquet"))
    polars_of(row).write_ipc(path.with_suffix(".arrow"))
    by_csv = {key: cell.total_seconds() if key == "lasting" else cell for key, cell in written.items()}
    polars_of(by_csv).write_csv(path.with_suffix(".csv"))
    for suffix in (".parquet", ".arrow", ".csv"):
        again = ask(load_run(typed), path.with_suffix(suffix))
        assert (again.answers, again.left) == (first.answers, first.left)
    run = quorate.load(typed)
    for table in (pandas_of(row), polars_of(row).to_arrow(), polars_of(written)):
        assert run.ask(table) == first.answers
    another = polars_of({**row, "zoned": row["zoned"] + dt.timedelta(hours=1)})
    assert ask(load_run(typed), another).left == first.left - 1


def test_what_is_published_says_what_each_column_holds_and_how_it_is_written(typed):
    facts = read_facts(typed)
    told = metadata(facts, None, (), "1")["columns"]
    kinds = {column["name"]: (column["type"], column["cells"].split(",")[0]) for column in told}
    assert list(kinds) == list(ROW)
    assert kinds["comma"] == ("text", "numbers; the decimal mark may be a comma")
    assert kinds["truth"] == ("truth value", "true or false")
    assert kinds["zoned"] == ("datetime Europe/Berlin", "dates")
    assert kinds["clock"][1] == kinds["hour"][1] == "times of day"
    assert kinds["lasting"] == ("duration", "durations")
    card = model_card(facts)
    assert all(f"| {name} | " in card for name in ROW)
    columns = tuple(replace(column, type=None) for column in facts.student_file.columns or ())
    earlier = replace(facts, student_file=replace(facts.student_file, columns=columns))
    assert "columns" not in metadata(earlier, None, (), "1")
    assert "times of day, such as" not in model_card(earlier)


@pytest.mark.heavy
def test_a_folder_that_says_nothing_of_columns_refuses_dates_in_one_line(typed, tmp_path):
    outbox = Path(shutil.copytree(typed.parent / "outbox", tmp_path / "outbox"))
    facts = json.loads((outbox / "facts.json").read_text())
    del facts["student_file"]["columns"]
    (outbox / "facts.json").write_text(json.dumps(facts))
    manifest = json.loads((outbox / "manifest.json").read_text())
    manifest["sha256"]["facts.json"] = sha256((outbox / "facts.json").read_bytes()).hexdigest()
    (outbox / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataRefused, match=r"column 'day' of X holds dates or times, and .* does not say how"):
        quorate.load(outbox).predict(polars_of(ROW))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("how", [{}, DIRECT], ids=["votes", "direct"])
def test_a_private_table_in_other_blanks_and_forms_of_unicode_teaches_the_same(make_run, how):
    """Half of the words are written in another way: what is released is the same, to the last bit."""
    models = []
    for written in (pl.col("ward"), pl.format("{}  ", pl.col("ward").str.replace("\u00fc", "u\u0308", literal=True))):
        root = make_run(f"run{len(models)}", **how, **{"run.unsafe_noise_seed": 7})
        words = pl.when(pl.int_range(pl.len()) % 2 == 0).then(written).otherwise("ward")
        for name in ("private", "public"):
            table = pl.read_csv(root / f"{name}.csv").with_columns(pl.col("ward").replace("west", "Z\u00fcrich"))
            (table.with_columns(ward=words) if name == "private" else table).write_csv(root / f"{name}.csv")
        run(root)
        models.append(quorate.load(root).predict_proba(pl.read_csv(root / "public.csv")).tolist())
    assert models[0] == models[1]
