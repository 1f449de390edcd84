"""What a first-time user's tables are like: commas in numbers, few or repeated public rows, a column too many."""

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, charges, edit
from tests.folder.test_refusals import one_line
from tests.used_rows import used

from quorate.folder.methods import read_run
from quorate.run.pool_cautions import FEW_PUBLIC_ROWS
from quorate.run.schema import Schema

WAYS = {"votes": {}, "direct": DIRECT}


def with_commas(root, *names):
    for name in names:
        table = pl.read_csv(root / name)
        table.with_columns(pl.col("bmi").cast(pl.String).str.replace(".", ",", literal=True)).write_csv(root / name)


def numbers_of(root, by):
    """The private rows and the labelled public ones, as numbers."""
    run = read_run(root, begin=False)
    if by == "direct":
        return used(run.task)[0], run.task.schema.numbers(run.evaluation.X)
    see = run.task.views
    return see.teacher(run.task.inputs.private.reveal().X), see.student(run.evaluation.X)


@pytest.mark.heavy
@pytest.mark.parametrize("by", WAYS)
def test_a_table_with_decimal_commas_is_that_with_points(make_run, cli, by):
    points, commas = (make_run(each, **{**WAYS[by], "data.evaluation": "evaluation.csv"}) for each in ("one", "two"))
    with_commas(commas, "private.csv", "public.csv", "evaluation.csv")
    assert "column 'bmi' of public.csv holds numbers with a decimal comma (3,5)" in cli("check", commas)[1].words
    for one, two in zip(numbers_of(points, by), numbers_of(commas, by), strict=True):
        assert np.array_equal(one, two)
    codes = [each["code"] for each in cli.json("check", commas)["cautions"]]
    assert "columns-with-decimal-commas" in codes


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
    private = pl.read_csv(root / "private.csv").with_columns(name=pl.lit("x"), street=pl.lit("y"))
    private.write_csv(root / "private.csv")
    pl.read_csv(root / "public.csv").with_columns(hue=pl.lit(1)).write_csv(root / "public.csv")
    err = cli.refused(4, "check", root)
    assert err.startswith(
        "quorate: public.csv lacks the columns 'name', 'street' of private.csv; private.csv lacks the column 'hue' of "
        "public.csv. Give all tables the same feature columns, or leave out the others by a line under [data]: "
    )
    line = err.split("under [data]: ")[1].split("\n")[0]
    assert line == 'drop = ["name", "street", "hue"]'
    edit(root, "[data]\n", f"[data]\n{line}\n")
    assert cli("check", root)[0] == 0
    pl.read_csv(root / "evaluation.csv").with_columns(id=pl.lit(1)).write_csv(root / "evaluation.csv")
    assert "public.csv lacks the column 'id' of evaluation.csv" in cli("check", root)[2]
    assert 'drop = ["name", "street", "hue", "id"]' in cli("check", root)[2]


def with_ids(root, *names):
    for name in names:
        table = pl.read_csv(root / name)
        table.with_columns(id=pl.int_range(table.height)).write_csv(root / name)


AUTO = {"method.by": "auto", "teachers.count": None, "mechanism.queries": None, "data.n_records": 400}


@pytest.mark.parametrize("how", [*WAYS.values(), AUTO], ids=[*WAYS, "auto"])
def test_a_column_to_leave_out_that_no_table_has_is_refused(make_run, cli, how):
    root = make_run(**how, **{"data.drop": ["idd"]})
    with_ids(root, "private.csv", "public.csv")
    for verb in ("check", "run"):
        err = cli.refused(2, verb, root)
        assert err.startswith("quorate: [data] drop names 'idd', and no table has such a column; did you mean 'id'?\n")
    assert not (root / "private").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("by", WAYS)
def test_a_column_to_leave_out_may_be_in_any_one_table(make_run, cli, by):
    for name in ("private.csv", "public.csv", "evaluation.csv"):
        root = make_run(name, **{**WAYS[by], "data.drop": ["id"], "data.evaluation": "evaluation.csv"})
        with_ids(root, name)
        assert cli("check", root)[0] == 0


@pytest.mark.heavy
def test_a_plan_notes_a_column_to_leave_out_that_no_public_table_has(make_run, cli):
    root = make_run(**{"data.drop": ["idd", "surname"], "data.n_records": 400})
    with_ids(root, "private.csv", "public.csv")
    notes = cli.json("plan", root, "--rehearse", "no")["notes"]
    [note] = [each for each in notes if "drop" in each]
    assert note.startswith("[data] drop names 'idd', which no public table has; did you mean 'id'? The private file")


def test_keys_of_data_that_would_be_passed_over_are_refused(make_run, cli):
    declared = {"data.public": None, "schema.age": [0, 120], "schema.bmi": [0, 60], "schema.ward": ["north", "south"]}
    wrong = [
        ({**WAYS["direct"], **declared, "data.categorical": ["wart"]}, "[data] categorical says what columns of the"),
        ({"data.image_column": "scan"}, "[data] image_column names the column of image files, and [data] images,"),
        ({"data.evaluation_query": "select 1"}, "[data] evaluation_query is put to a database, and [data] evaluation,"),
        ({**WAYS["direct"], **declared, "data.public_query": "select 1"}, "[data] public_query is put to a database,"),
    ]
    for number, (changes, told) in enumerate(wrong):
        err = cli.refused(2, "check", make_run(str(number), **changes))
        assert err.startswith(f"quorate: {told}"), err


@pytest.mark.parametrize("by", WAYS)
def test_a_first_line_that_may_be_a_row_is_not_quoted(make_run, cli, by):
    root = make_run(**WAYS[by])
    text = (root / "private.csv").read_text().replace("age,bmi,ward,ill", "47,secret,17.5,ill", 1)
    (root / "private.csv").write_text(text)
    err = cli("check", root)[2]
    assert "its own names are not quoted, since they may be a row" in err
    assert "secret" not in err


HUGE = "1" + "0" * 400
SMALL = {"n": 80, "m": 30, "teachers.count": 4, "mechanism.queries": 10}


def put(file, column, cell):
    """Write a cell into the fourth row of a file."""
    lines = [line.split(",") for line in file.read_text().splitlines()]
    lines[4][lines[0].index(column)] = cell
    file.write_text("\n".join(map(",".join, lines)) + "\n")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("cell", [HUGE, "1e400", "inf", "-inf"])
@pytest.mark.parametrize(
    ("table", "called"), [("private", "X"), ("public", "public"), ("evaluation", "evaluation.csv")]
)
def test_a_cell_that_no_model_can_be_given_is_refused(make_run, cli, table, called, cell):
    root = make_run(**SMALL, **{"data.evaluation": "evaluation.csv"})
    put(root / f"{table}.csv", "bmi", cell)
    for verb in ("check", "run"):
        told = one_line(cli.refused(4, verb, root)).replace(str(root), "")  # whose path pytest numbers
        assert f"{called}: Input contains infinity in column 'bmi'" in told
        assert HUGE[:9] not in told
        assert "308" not in told
    assert charges(root) == 0


@pytest.mark.heavy
def test_a_question_with_such_a_cell_costs_nothing(finished_run, cli):
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
