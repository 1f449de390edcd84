"""Bad input to a run: one clear line with what to do, the right exit code, and nothing charged."""

import json
import shutil

import polars as pl
import pytest
from tests.folder.conftest import DIRECT, charges, edit, interrupted
from tests.ledger.test_sqlite import edit as edit_rows

from quorate.accounting import PureDP
from quorate.data.formats import DelimitedText
from quorate.folder.settings import settings_of
from quorate.ledger import Budget, Ledger


def one_line(said):
    """The message, which must be one line, followed by its code and what was charged."""
    message, code, *rest = said.strip().splitlines()
    assert rest == []
    assert message.startswith("quorate: ")
    assert code.startswith("(QUO-E0")
    assert code.endswith(("; nothing was charged)", "; nothing more was charged)"))  # as its ledger says
    assert "Traceback" not in said
    return message


@pytest.mark.parametrize("key", ["public", "evaluation", "calibration"])
@pytest.mark.parametrize("by", ["votes", "auto", "direct"])
def test_the_private_table_as_a_public_one_is_refused_at_every_door_before_it_is_read(
    make_run, cli, monkeypatch, key, by
):
    """A plan, which says that it opens no private file, rehearsed on its rows and showed how a model of them scores."""
    root = make_run(**{"method.by": by, f"data.{key}": "../private.csv", "data.n_records": 400})
    (root / "private.csv").rename(root.parent / "private.csv")
    (root / "private.csv").symlink_to(root.parent / "private.csv")
    monkeypatch.setattr(DelimitedText, "frame", lambda *_, **__: pytest.fail("a table was read"))
    for command in ("plan", "check", "run", "status"):
        code, out, err = cli(command, root)
        assert (code, out) == (4, ""), command
        assert f"[data] {key} is the private file again" in one_line(err)
    assert charges(root) == 0


@pytest.mark.heavy
def test_a_share_above_the_cap_may_be_that_of_a_finished_runs_next_release(finished_run, cli):
    """What was published is still exported, and a run is refused as another release, not as a wrong file."""
    root = finished_run()
    edit(root, "[run]\n", "[run]\nepsilon = 5.0\n")
    assert settings_of(root).run.epsilon == 5.0
    before = charges(root)
    code, _, told = cli("run", root)
    assert code != 0
    assert "is above [budget]" not in told
    assert "another release" in one_line(told)
    assert charges(root) == before


def test_shares_above_the_cap_are_named_at_once_and_before_a_private_row_is_read(make_run, cli):
    root = make_run(**{"run.epsilon": 5.0, "run.delta": 1e-4, "data.n_records": 400})
    (root / "private.csv").write_text("no table,at all\n1\n")
    for verb in ("check", "plan", "run"):
        message = one_line(cli.refused(2, verb, root))
        assert "[run] epsilon = 5.0 is above [budget] epsilon = 4.0 and [run] delta = 0.0001 is above" in message
        assert f"quorate ledger open {root} --raise-budget REASON" in message
    assert charges(root) == 0


def rewrite(name, change):
    def broken(root):
        change(pl.read_csv(root / name)).write_csv(root / name)

    return broken


HUGE = "1" + "0" * 400


def put(file, column, cell):
    """Write a cell into the fourth row of a file."""
    lines = [line.split(",") for line in file.read_text().splitlines()]
    lines[4][lines[0].index(column)] = cell
    file.write_text("\n".join(map(",".join, lines)) + "\n")


def again(change):
    """Give the private rows for an evaluation, changed."""
    return lambda root: change(pl.read_csv(root / "private.csv")).write_csv(root / "evaluation.csv")


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("by", ["votes", "direct"])
@pytest.mark.parametrize("key", ["drop", "text", "categorical", "numeric", "dates", "images"])
def test_columns_that_are_named_for_a_table_without_names_are_refused(make_run, cli, key, by):
    changes = {"data.private": "private.svm", "data.public": "public.svm", "data.classes": [0, 1]}
    if by == "direct":
        changes |= DIRECT
    root = make_run(**changes, **{f"data.{key}": "scans" if key == "images" else ["1"]})
    for name, n in (("private", 400), ("public", 150)):
        rows = [f"{i % 2} 1:{i % 7} 2:{i % 5}" for i in range(n)]
        (root / f"{name}.svm").write_text("\n".join(rows) + "\n")
    message = one_line(cli.refused(2, "check", root))
    assert f"[data] {key} names columns, and those of private.svm have no names" in message


FILES = [
    ("a pool with a renamed column", rewrite("public.csv",
     lambda t: t.rename({"age": "Age"})), "private.csv lacks the column 'Age'"),
    ("words where numbers are", rewrite("private.csv",
     lambda t: t.with_columns(age=pl.lit("old"))), "'age' holds text"),
    ("a label that is missing", rewrite("private.csv",
     lambda t: t.with_columns(ill=pl.lit(None))), "a label is missing"),
    ("the private file copied as the pool", lambda root: shutil.copy(root / "private.csv", root / "public.csv"),
     "quorate: [data] public holds the private rows again"),
    ("an empty private file", lambda root: (root / "private.csv").write_text("") and None, "the file is empty"),
    ("a private file without rows", rewrite("private.csv", lambda t: t.head(0)),
     "private.csv: the file names its columns and holds no row"),
    ("an evaluation file without rows", rewrite("evaluation.csv", lambda t: t.head(0)),
     "evaluation.csv: the file names its columns and holds no row"),
    ("a file that is no table", lambda root: (root / "private.csv").write_bytes(b"\xff\xfe\x00") and None,
     "private.csv"),
    ("an evaluation label that no class is", rewrite("evaluation.csv",
     lambda t: t.with_columns(ill=pl.lit("maybe"))), "evaluation.csv, column 'ill': a label outside"),
    ("an evaluation file that lacks a column", rewrite("evaluation.csv",
     lambda t: t.drop("bmi")), "evaluation.csv lacks the column 'bmi'"),
    *((f"the private file {how} as the evaluation", again(change), "evaluation holds the private rows again")
      for how, change in (
        ("copied", lambda t: t), ("shuffled", lambda t: t.sample(fraction=1.0, shuffle=True, seed=4)),
        ("cut and relabelled", lambda t: t.head(40).with_columns(ill=pl.lit("no"))),
    )),
    ("a label that no class is", rewrite("private.csv",
     lambda t: t.with_columns(ill=pl.lit("secretly-otherwise"))), "a label outside [data] classes was found"),
    *((f"{cell[:9]} in {table}", lambda root, table=table, cell=cell: put(root / f"{table}.csv", "bmi", cell),
       f"{called}: Input contains infinity in column 'bmi'")
      for table, called in (("private", "X"), ("public", "public"), ("evaluation", "evaluation.csv"))
      for cell in (HUGE, "1e400", "inf", "-inf")),
]  # fmt: skip


@pytest.mark.default_cases(9)
@pytest.mark.parametrize(("broken", "expected"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_a_wrong_file_is_one_line_that_shows_no_private_value_and_charges_nothing(make_run, cli, broken, expected):
    root = make_run(**{"data.evaluation": "evaluation.csv"})
    broken(root)
    for verb in ("check", "run"):
        message = one_line(cli.refused(4, verb, root)).replace(str(root), "")  # whose path pytest numbers
        assert expected in message
        assert not [told for told in ("secretly", HUGE[:9], "308") if told in message]
    assert charges(root) == 0


@pytest.mark.heavy
def test_a_budget_that_is_spent_says_what_was_charged_and_what_to_do(make_run, cli):
    root = make_run()
    with Ledger(root / "ledger.db", budget=Budget(4.0, 1e-5)) as ledger:
        ledger.reserve(PureDP(3.5), delta=0, purposes={"label": 1}, key="earlier")
    before = charges(root)
    for verb in ("check", "run"):
        message = one_line(cli.refused(3, verb, root))
        assert all(part in message for part in ("3.5", "4", "ask fewer queries", "raise the budget with a reason"))
    assert charges(root) == before
    code, out, said = cli("run", root, "--json")
    facts = json.loads(said)
    assert (code, out) == (3, "")
    assert facts["exit_code"] == 3
    assert facts["code"] == "QUO-E003"
    assert facts["charged"] == "nothing more was charged"


@pytest.mark.heavy
def test_noise_below_what_the_budget_allows_is_refused_by_the_budget(make_run, cli):
    root = make_run(**{"mechanism.sigma": 0.5})
    assert "raise [mechanism] sigma" in one_line(cli.refused(3, "run", root))
    assert charges(root) == 0


@pytest.mark.heavy
def test_a_ledger_of_other_data_is_refused(make_run, finished_runs, cli):
    root = make_run()
    for each in finished_runs(n=300).glob("ledger.db*"):
        shutil.copy(each, root / each.name)
    before = charges(root)
    for verb in ("check", "run"):
        assert "bound to another data set" in one_line(cli.refused(4, verb, root))
    assert charges(root) == before


@pytest.mark.heavy
def test_a_ledger_whose_key_is_gone_is_refused(finished_run, cli):
    root = finished_run()
    (root / "ledger.db.key").unlink()
    assert "ledger.db.key is missing" in one_line(cli.refused(4, "run", root))


def test_a_ledger_that_another_process_holds_is_refused(make_run, cli):
    root = make_run()
    with Ledger(root / "ledger.db", budget=Budget(4.0, 1e-5)) as held:
        code, _, said = cli("run", root)
        assert not held.reservations()
    assert "another process holds the ledger" in one_line(said)
    assert code == 4


FEWER = "UPDATE entry SET line = replace(line, '\"count\":64', '\"count\":63') WHERE sequence > 2"
TAMPERED = [
    ("an edited row", lambda root: edit_rows(root / "ledger.db", FEWER)),
    ("a deleted anchor", lambda root: (root / "ledger.db.anchor").unlink()),
    ("an edited anchor", lambda root: (root / "ledger.db.anchor").write_text("{}") and None),
    ("a deleted ledger", lambda root: (root / "ledger.db").unlink()),
    ("an emptied ledger", lambda root: (root / "ledger.db").write_bytes(b"") and None),
]


@pytest.mark.heavy
@pytest.mark.parametrize("tamper", [row[1] for row in TAMPERED], ids=[row[0] for row in TAMPERED])
def test_a_tampered_ledger_stops_every_command_that_needs_it(finished_run, cli, tamper):
    root = finished_run()
    tamper(root)
    for command in ("run", "check", "status", "ledger show", "ledger verify"):
        assert one_line(cli.refused(5, *command.split(), root))


def test_a_run_key_that_was_emptied_is_no_key(make_run, cli):
    root = make_run()
    (root / "private").mkdir()
    (root / "private" / "run.key").write_bytes(b"")
    assert "is not a key of 32 bytes" in one_line(cli.refused(4, "run", root))


@pytest.mark.parametrize("missing", [1, 40])
def test_missing_ids_name_the_file_and_the_column_and_never_how_many(make_run, cli, missing):
    root = make_run(**{"data.unit": "patient_id"})
    table = pl.read_csv(root / "private.csv")
    kept = pl.when(pl.int_range(pl.len()) >= missing).then(pl.col("patient_id"))
    table.with_columns(kept.alias("patient_id")).write_csv(root / "private.csv")
    for verb in ("check", "run"):
        line = cli.refused(4, verb, root).words
        assert "private.csv, column 'patient_id': unit ids are missing, and how many is not told" in line
        assert str(missing) not in line.replace("QUO-E005", "")
    assert not (root / "ledger.db").exists()


@pytest.mark.heavy
def test_an_edit_of_an_interrupted_run_is_to_be_undone_and_no_budget_raised(make_run, cli, monkeypatch):
    """Charged, and then killed before its report: the edit asks for another release of the same budget."""
    root = make_run()
    with monkeypatch.context() as patch:
        patch.setattr("quorate.folder.methods.publish_run", interrupted)
        assert cli("run", root)[0] == 6
    edit(root, "count = 12", "count = 13")
    for verb in ("check", "run"):
        line = cli.refused(3, verb, root).words
        assert "differ from those of the run begun here, which was charged; put them back" in line
        assert "raise" not in line
    edit(root, "count = 13", "count = 12")
    assert cli("run", root)[0] == 0
