"""A plan reads the settings and the public pool alone: the private file may be one that raises when it is opened."""

import builtins
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quorate
from quorate.accounting import PureDP
from quorate.data import reading
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.planned import plan_folder, recommended, settings_to_run
from quorate.folder.settings import read_settings, settings_of
from quorate.folder.tables import public_rows
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.planning.text import render_plan
from quorate.run.expectation import Expected

pytestmark = pytest.mark.mostly_heavy

TOML = """\
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]
n_records = 5000
[budget]
epsilon = 1.0
delta = 1e-5
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    pl.DataFrame({"age": rng.normal(50, 9, 100), "sex": rng.choice(["F", "M"], 100)}).write_csv(tmp_path / "public.csv")
    (tmp_path / "private.csv").write_text("age,sex,ill\n39,F,no\n")
    (tmp_path / "quorate.toml").write_text(TOML)
    return tmp_path


@pytest.fixture
def raises_when_opened(folder, monkeypatch):
    """The private file, which nobody can open without an error."""
    private, opened = folder / "private.csv", io.open

    def guarded(file, *args, **how):
        if isinstance(file, str | Path) and Path(file) == private:
            raise AssertionError("the private file was opened")
        return opened(file, *args, **how)

    def read(path, **how):
        if Path(path) == private:
            raise AssertionError("the private file was read")
        return original(path, **how)

    original = reading.read_data
    monkeypatch.setattr(builtins, "open", guarded)
    monkeypatch.setattr(io, "open", guarded)
    monkeypatch.setattr("quorate.folder.tables.read_data", read)
    private.chmod(0)
    yield private
    private.chmod(0o600)


def test_a_plan_never_opens_the_private_file(folder, raises_when_opened):
    made = plan_folder(folder)
    assert made.facts.n_records == 5_000
    assert made.facts.n_public == 100


@pytest.mark.parametrize(
    ("declared", "held", "relation", "why"),
    [
        (True, None, "add-or-remove", "the number of records is declared"),
        (
            True,
            "replace one record",
            "replace",
            "the ledger's earlier charges hold for replacing one record by another",
        ),
        (True, "add, remove or replace one record", "add-or-remove", "the number of records is declared"),
        (False, None, "replace", "the number of records is read off the data"),
    ],
)
def test_a_plan_is_for_the_change_that_a_run_would_be_for(folder, declared, held, relation, why):
    (folder / "quorate.toml").write_text(TOML if declared else TOML.replace("n_records = 5000\n", ""))
    if held is not None:
        with Ledger(folder / "ledger.db", budget=Budget(1.0, 1e-5)) as ledger:
            scope = GuaranteeScope(unit="record", neighbours=held)
            ledger.reserve(PureDP(0.1), delta=0, purposes={"label": 1}, key="earlier", scope=scope)
    made = plan_folder(folder, n_records=None if declared else 5_000, rehearse="no")
    assert made.facts.relation == made.tree()["facts"]["neighbours"] == relation
    assert f"since {why}" in " ".join(render_plan(made).split())
    both = {"add-or-remove": ("adding or removing", "replacing"), "replace": ("replacing", "adding or removing")}
    first, second = both[relation]
    direct = next(row for row in made.rows if row.way == "direct")
    assert re.fullmatch(f"ε = 1 for {first} one record.*; (2.16|0.469) for {second} one record.*", direct.priced)


@pytest.mark.quick
def test_a_plan_does_not_promise_adding_and_removing_where_a_run_would_read_the_number(folder):
    (folder / "quorate.toml").write_text(
        TOML.replace("n_records = 5000\n", "") + '[method]\nby = "direct"\nneighbours = "add-or-remove"\n'
    )
    with pytest.raises(InvalidParameter, match=r"Write it into \[data\] n_records, or leave neighbours out"):
        plan_folder(folder, n_records=5_000)


def test_neither_does_the_choice_of_a_method(folder, raises_when_opened):
    (folder / "quorate.toml").write_text(TOML + '[method]\nby = "auto"\n')
    settings = settings_to_run(settings_of(folder))
    assert settings.method.by == "direct"
    assert read_settings(folder / "quorate.toml") == settings


@pytest.mark.quick
def test_that_test_would_see_it_opened(raises_when_opened):
    with pytest.raises(AssertionError, match="was opened"):
        raises_when_opened.read_text()


def test_the_number_of_units_has_to_be_declared(folder):
    (folder / "quorate.toml").write_text(TOML.replace("n_records = 5000\n", ""))
    with pytest.raises(InvalidParameter, match="never opens the private file"):
        plan_folder(folder)
    assert plan_folder(folder, n_records=700).facts.n_records == 700


@pytest.mark.quick
def test_without_public_rows_nothing_else_is_asked_for_first(folder):
    without = TOML.replace("n_records = 5000\n", "").replace('public = "public.csv"\n', "")
    (folder / "quorate.toml").write_text(f"{without}\n[schema]\nage = [0, 120]\n")
    with pytest.raises(InvalidParameter, match=r"\[data\] public names none.* quorate check "):
        plan_folder(folder)


@pytest.mark.quick
def test_a_private_file_that_is_not_there_is_no_reason_to_refuse_and_a_public_one_is(folder):
    (folder / "private.csv").unlink()
    assert plan_folder(folder, rehearse="no").first.key == "direct/gradient rounds"
    (folder / "public.csv").unlink()
    with pytest.raises(PreconditionFailed, match="there is no such file"):
        plan_folder(folder)


@pytest.mark.usefixtures("brief_rehearsals")
def test_python_and_a_folder_plan_the_same(folder):
    public = pl.read_csv(folder / "public.csv")
    ours = quorate.plan(public, classes=["no", "yes"], n_records=5_000, epsilon=1.0, delta=1e-5)
    assert ours.tree() == plan_folder(folder).tree()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_records": 100}, "n_public is needed"),
        ({"n_records": 100, "n_public": 50, "n_classes": 2}, "width is needed"),
    ],
)
def test_what_is_missing_is_named(given, said):
    with pytest.raises(InvalidParameter, match=said):
        quorate.plan(epsilon=1.0, delta=1e-5, **given)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("--curve 5:1.5", "--curve must be pairs of rows >= 1 and accuracy in (0, 1), got 5:1.5. Example"),
        ("--curve 0:.5", "Example: 20:0.72, 100:0.83"),
        ("--curve 5:.7 --curve 5:.8", "--curve has several accuracies for one number of rows, got 5:0.7, 5:0.8;"),
        ("--commonest .3", "--commonest is the share of the commonest of 2 classes"),
        ("--model nope", "--model must be names of logistic, tree, forest, boosting, xgboost, lightgbm, got 'nope'"),
        ("--model tree", "give [data] evaluation, and take --rehearse labels"),
        ("--records 10 --rows 5", "must be at least --records, since each record has a row, got 5 for --records 10"),
        ("--rows 5", "must be at least [data] n_records, since each record has a row, got 5 for [data] "),
        ("--rehearse labels", "give [data] evaluation, or take --rehearse synthetic"),
        ("--curve 20:.7 --rehearse no", "--rehearse no does not go with a learning curve"),
    ],
)  # fmt: skip
def test_what_a_plan_refuses_names_what_was_typed(folder, cli, typed, told):
    code, _, said = cli("plan", str(folder), *typed.split())
    message = said.replace("quorate: ", "", 1)
    assert told in message
    assert code == 2
    for name in ("learning_curve", "evaluation=", "y_public", "models must", "rehearse=", "n_rows"):
        assert name not in message


@pytest.mark.quick
def test_python_names_its_own_arguments():
    with pytest.raises(InvalidParameter, match=r'give evaluation=, and take rehearse="labels"$'):
        quorate.plan(np.zeros((50, 2)), classes=[0, 1], n_records=500, epsilon=1.0, delta=1e-5, models=["tree"])


@pytest.mark.usefixtures("brief_rehearsals")
def test_the_command_prints_a_table_of_80_columns_and_one_object(folder, cli):
    told = cli.ok("plan", str(folder), "--curve", "20:0.7", "--curve", "100:0.85", "--commonest", "0.6")
    assert max(len(line) for line in told.splitlines() if str(folder) not in line) <= 80  # a path may be longer
    assert "always the commonest class" in told
    assert "Nothing was charged, and the private file was not opened." in told
    assert "always the commonest class                                    0.600" in told
    assert "as hard" in told
    assert "learning curve says that was typed in" in told
    tree = cli.json("plan", str(folder))
    assert tree["first"] == "direct/gradient rounds"
    assert cli("plan", str(folder), "--curve", "20")[0] == 2


def test_dates_and_missing_texts_are_rehearsed_as_a_run_reads_them(tmp_path):
    rng = np.random.default_rng(3)
    day = rng.integers(0, 200, 400)
    notes = [None if at % 7 == 0 else f"{'cough' if late else 'well'} again today" for at, late in enumerate(day > 100)]
    admitted = [str(np.datetime64("2024-01-01") + int(each)) for each in day]
    rows = pl.DataFrame({"age": rng.normal(50, 9, 400), "admitted": admitted, "notes": notes})
    labels, sizes = np.where(day > 100, "yes", "no"), {"n_records": 3000, "n_teachers": [50]}
    known = {"classes": ["no", "yes"], "epsilon": 2.0, "delta": 1e-5, "mechanisms": ["NoisyCounts"]}
    made = quorate.plan(rows[:250], evaluation=(rows[250:], labels[250:]), **known, **sizes)
    expected = {row.way: row.expected for row in made.rows}
    assert expected["direct"] is not None
    assert expected["direct"].accuracy > 0.8


@pytest.mark.quick
def test_labelled_rows_say_whose_they_are_where_a_column_does(folder):
    rng = np.random.default_rng(1)
    table = {"age": rng.normal(50, 9, 200), "sex": rng.choice(["F", "M"], 200), "ill": rng.choice(["no", "yes"], 200)}
    pl.DataFrame({**table, "patient": [f"p{each // 4}" for each in range(200)]}).write_csv(folder / "labelled.csv")
    toml = TOML.replace("[budget]", 'n_rows = 20000\nunit = "patient"\nevaluation = "labelled.csv"\n[budget]')
    (folder / "quorate.toml").write_text(toml)
    data = read_settings(folder / "quorate.toml").data
    told = public_rows(data, labelled=True).labelled
    assert told is not None
    assert told[0].columns == ["age", "sex"]
    assert len(set(told[2])) == 50
    pl.DataFrame(table).write_csv(folder / "labelled.csv")
    told = public_rows(data, labelled=True).labelled
    assert told is not None
    assert len(told) == 2


@pytest.mark.parametrize(
    ("by", "line"),
    [
        (None, "Recommended: the direct method. Nothing has to be changed in quorate.toml. Next: quorate run "),
        ("direct", "Recommended: the direct method. Nothing has to be changed in quorate.toml. Next: quorate run "),
        ("votes", 'Recommended: the direct method; write by = "auto" under [method]. Next: quorate run '),
    ],
)
def test_a_plan_ends_with_one_recommendation_that_the_file_takes(folder, by, line):
    if by is not None:
        (folder / "quorate.toml").write_text(f'{TOML}[method]\nby = "{by}"\n')
    made = plan_folder(folder, rehearse="no")
    assert made.first.way == "direct"
    assert recommended(folder, made).startswith(line)
    (folder / "quorate.toml").write_text(f'{TOML}[method]\nby = "auto"\n')
    assert read_settings(folder / "quorate.toml").chosen == "direct"


def test_where_nothing_is_gained_a_plan_recommends_no_run(folder):
    made = plan_folder(folder, rehearse="no")
    poor = Expected(accuracy=0.6, low=0.5, high=0.7, basis="labelled public rows", rehearsals=6)
    nothing = replace(made, commonest=0.7, rows=(replace(made.first, expected=poor), *made.rows[1:]))
    assert "no row is expected to be better than always saying" in recommended(folder, nothing)
    assert recommended(folder, replace(nothing, commonest=0.55)).startswith("Recommended: the direct method")
    cannot = replace(made, rows=(replace(made.first, cannot="too few"), *made.rows[1:]))
    assert "no row of votes or of the direct method can answer" in recommended(folder, cannot)
