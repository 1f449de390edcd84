"""A plan reads the settings and the public pool alone: the private file may be one that raises when it is opened."""

import builtins
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.shell import shell

import quorate
from quorate.accounting import PureDP
from quorate.data import reading
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.folder import RunFolder
from quorate.folder.paid_estimate import HELD_OUT, estimate_for_plan
from quorate.folder.planned import plan_folder, recommended, settings_to_run
from quorate.folder.settings import read_settings, settings_of
from quorate.folder.tables import public_rows
from quorate.ledger import Budget, GuaranteeScope, Ledger
from quorate.mechanisms import NoisySum
from quorate.planning.text import render_plan
from quorate.release.charge import LABEL
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
    with pytest.raises(InvalidParameter, match=r"\[data\] public names none.* quorate check .* --look"):
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


PAID = (
    TOML.replace("5000", "1200").replace("epsilon = 1.0", "epsilon = 3.0")
    + """\
[run]
n_jobs = 1
epsilon = 1.0
[teachers]
count = 40
"""
)


@pytest.fixture
def paying(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    ill = np.where(rng.random(1300) < 0.1, X[:, 0] <= 0, X[:, 0] > 0)  # one label in ten is wrong
    rows = pl.DataFrame({"age": X[:, 0], "marker": X[:, 1], "ill": np.where(ill, "yes", "no")})
    rows[:1200].write_csv(tmp_path / "private.csv")
    rows[1200:].drop("ill").write_csv(tmp_path / "public.csv")
    (tmp_path / "quorate.toml").write_text(PAID)
    return tmp_path


def entries(folder):
    with Ledger(folder / "ledger.db") as ledger:
        return [each.event for each in ledger.reservations()]


def test_it_is_charged_once_and_read_from_the_ledger_afterwards(paying, cli):
    found = estimate_for_plan(paying, spend=1.5)
    assert entries(paying) == [NoisySum.costing(1.5).event]
    assert found.epsilon == 1.5
    assert found.left == pytest.approx(1.5, abs=1e-9)
    assert found.error < 0.4, "about one in ten, and what so few rows and the noise add"
    assert found.rows_each == pytest.approx((1 - HELD_OUT) * 30)
    assert estimate_for_plan(paying, spend=1.5) == found, "the same question is answered by the ledger"
    (paying / "quorate.toml").write_text(PAID + "[mechanism]\nqueries = 50\n")
    assert estimate_for_plan(paying, spend=1.5) == found, "nor does it matter what the teachers will be asked"
    assert len(entries(paying)) == 1
    stands = cli("status", paying)[1]  # a run that was not begun was not interrupted
    assert stands.splitlines()[0] == f"run        {paying}: not started"
    assert "budget     ε 1.5 of 3 charged, 1.5 left" in stands
    assert "\nestimate   one was released for quorate plan, and charged; the run itself has not begun\n" in stands
    assert f"\nnext       quorate check {paying}\n" in stands
    with RunFolder(paying).open_ledger() as ledger:  # killed right after its charge
        ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 3}, key="labels")
    stands = cli("status", paying)[1]
    assert ": interrupted; quorate run " in stands
    assert " goes on\n" in stands
    assert "\nestimate   one was released for quorate plan, and charged\n" in stands


def test_without_a_price_or_room_for_it_nothing_is_read_or_charged(paying):
    direct = PAID.replace("n_jobs = 1\n", "").replace("[teachers]\ncount = 40", '[method]\nby = "direct"')
    for toml, spend, said in (
        (PAID, None, r"--spend 0\.1"),
        (PAID, 2.5, r"leaves less than the estimate's 2\.5"),
        (PAID.replace("epsilon = 1.0\n", ""), 0.5, r"\[run\] epsilon"),
        (PAID.replace("count = 40", "count = 700"), 0.5, "fewer than two"),
        (PAID.replace("n_records = 1200\n", ""), 0.5, r"give \[data\] n_records"),
        (direct, 0.5, "no teachers"),
    ):
        (paying / "quorate.toml").write_text(toml)
        with pytest.raises(InvalidParameter, match=said):
            estimate_for_plan(paying, spend=spend)
    assert not (paying / "ledger.db").exists()


@pytest.mark.usefixtures("brief_rehearsals")
def test_the_command_says_what_was_charged_how_far_its_noise_reaches_and_the_run_goes_on(paying):
    code, _, said = shell("quorate plan . --estimate", paying)
    assert (code, "--spend" in said) == (2, True)
    assert shell("quorate plan . --spend 1", paying)[0] == 2
    code, shown, said = shell("quorate plan . --estimate --spend 1", paying)
    assert code == 0, said
    assert "ε 1 was charged" in " ".join(shown.split())
    told = json.loads(shell("quorate plan . --estimate --spend 1 --json", paying)[1])
    assert told["paid_estimate"]["epsilon"] == 1.0
    expected, paid = told["rows"][0]["expected"], estimate_for_plan(paying, spend=1.0)
    assert expected["basis"] == "paid estimate"
    assert expected["high"] - expected["low"] >= 2 * paid.half_width or 1.0 in (expected["high"], expected["low"])
    assert any("which was charged" in note for note in told["notes"])
    assert shell("quorate run .", paying)[0] == 0
    assert len(entries(paying)) == 2


def test_a_plan_that_would_be_refused_is_refused_before_the_estimate_is_paid(paying):
    (paying / "quorate.toml").write_text(PAID.replace('label = "ill"', 'label = "ill"\nevaluation = "absent.csv"'))
    code, _, said = shell("quorate plan . --estimate --spend 1", paying)
    assert (code != 0, "absent.csv" in said, "nothing was charged" in said) == (True, True, True)
    assert not (paying / "ledger.db").exists()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--rehearse no", "--rehearse no does not go with --estimate"),
        ("--rehearse labels", "--rehearse labels does not go with --estimate"),
        ("--model tree", "--model compares teachers"),
        ("--commonest 2", "commonest must be"),
        ("--commonest 0.3", "at least 1/2"),
    ],
)
def test_what_does_not_go_with_an_estimate_is_refused_before_it_is_paid(paying, given, said):
    code, _, refused = shell(f"quorate plan . --estimate --spend 1 {given}", paying)
    assert (code, said in refused) == (2, True)
    assert not (paying / "ledger.db").exists()


def test_no_estimate_is_paid_for_where_there_are_too_few_public_rows_to_rehearse_with_it(paying):
    public = pl.read_csv(paying / "public.csv")
    public[:24].write_csv(paying / "public.csv")
    code, _, said = shell("quorate plan . --estimate --spend 1", paying)
    assert code == 4
    assert "there are 24 different public rows, and a plan by --estimate is rehearsed with rules on them" in said
    assert "nothing was charged" in said
    assert not (paying / "ledger.db").exists()


def test_a_plan_that_fails_after_the_charge_says_that_it_was_charged(paying, cli, monkeypatch):
    def fails(root, *, learning_curve=None, **how):
        if learning_curve is not None:
            raise InvalidParameter("something nobody thought of")
        return plan_folder(root, learning_curve=learning_curve, **how)

    monkeypatch.setattr("quorate.folder.planned.plan_folder", fails)
    said = cli.refused(2, "plan", paying, "--estimate", "--spend", "1")
    assert "the estimate was charged, once" in said
    assert "nothing was charged" not in said
    assert len(entries(paying)) == 1
    assert "nothing more was charged" in cli("plan", paying, "--curve", "20:0.7")[2]


def test_what_fails_after_the_charge_says_that_it_was_charged(paying, monkeypatch):
    def fails(*_args, **_how):
        raise InvalidParameter("a teacher is wrong")

    monkeypatch.setattr("quorate.labelling.estimate_error", fails)
    with pytest.raises(InvalidParameter) as refused:
        estimate_for_plan(paying, spend=1.0)
    assert refused.value.charged.startswith("the estimate was charged, once")
    assert len(entries(paying)) == 1
    monkeypatch.undo()
    assert estimate_for_plan(paying, spend=1.0).left == pytest.approx(2.0, abs=1e-9)


def test_an_estimate_with_seeded_noise_says_that_nothing_is_promised(paying):
    (paying / "quorate.toml").write_text(PAID.replace("[run]\n", "[run]\nunsafe_noise_seed = 1\n"))
    found = estimate_for_plan(paying, spend=1.0)
    assert (found.seeded, found.tree()["seeded"]) == (True, True)
    assert "no guarantee holds; this figure must not be published" in str(found)
