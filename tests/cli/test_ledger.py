"""The owner's acts on a ledger: changed data, a larger budget, the end; each with its reason, and for ever."""

import json
import sqlite3
from contextlib import closing

import polars as pl
import pytest
from tests.folder.conftest import edit

from quorate.accounting import PureDP
from quorate.folder.batch import load_run
from quorate.ledger import Budget, Ledger, Part
from quorate.report import Facts, render_html

REASON = "two visits were entered twice"


@pytest.fixture
def finished(finished_run):
    return finished_run(**{"mechanism.queries": 20, "mechanism.online_answers": 5, "mechanism.sigma": 60})


def correct_the_data(root):
    pl.read_csv(root / "private.csv").head(390).write_csv(root / "private.csv")


def ask_for(root, epsilon):
    edit(root, "epsilon = 4.0", f"epsilon = {epsilon}")


def kinds(root):
    with Ledger(root / "ledger.db") as ledger:
        return [entry.kind for entry in ledger.entries() if entry.kind != "started"]


@pytest.mark.heavy
def test_corrected_data_are_charged_to_the_same_budget_once_their_owner_says_so(make_run, cli):
    finished = make_run(**{"mechanism.queries": 20, "mechanism.sigma": 60, "budget.composition": "zcdp"})
    assert cli("run", finished)[0] == 0
    correct_the_data(finished)
    said = cli.refused(4, "run", finished)
    assert f"quorate ledger open {finished} --same-release REASON" in said
    assert "new folder" not in said
    with Ledger(finished / "ledger.db") as ledger:
        spent = ledger.spent.rho

    code, out, said = cli("ledger", "open", finished, "--same-release", REASON)
    assert (code, said) == (0, "")
    assert "same release" in out
    assert REASON in cli("ledger", "show", finished)[1]
    assert cli("run", finished)[0] == 0, "20 more answers with much noise fit the budget"
    with Ledger(finished / "ledger.db") as ledger:
        assert ledger.spent.rho == pytest.approx(2 * spent), "a new charge to the old budget"
        assert len(ledger.fingerprints) == 2


@pytest.mark.heavy
def test_changed_data_of_a_run_that_nothing_was_charged_for_may_begin_anew(make_run, cli):
    root = make_run(**{"mechanism.queries": 20})
    with load_run(root).open_ledger(bind=True):
        pass  # bound, as a run does first
    correct_the_data(root)
    for verb in ("check", "run"):
        said = cli.refused(4, verb, root)
        assert f"quorate ledger open {root} --same-release REASON. Nothing was charged to it yet, so that" in said


@pytest.mark.heavy
def test_saying_it_twice_or_of_unchanged_data_is_refused(finished, cli):
    before = kinds(finished)
    assert "the same release already" in cli.refused(4, "ledger", "open", finished, "--same-release", REASON)
    assert kinds(finished) == before


@pytest.mark.heavy
def test_a_raise_that_is_needed_is_told_whole_and_taken_with_its_reason(finished_run, cli):
    """Both amounts, the reason and the way on, in the first refusal; then nothing else is missing."""
    finished = finished_run(**{"mechanism.queries": 20})
    said = cli.refused(2, "ledger", "open", finished, "--raise-budget", REASON)
    assert "says what the ledger has already (epsilon = 4 and delta = 1e-5), so nothing would be raised" in said
    assert "type this again" in said
    settings = finished / "quorate.toml"
    settings.write_text(settings.read_text() + "epsilon = 3.0\ndelta = 2e-6\n")  # its last section is [run]
    said = cli.refused(3, "check", finished)
    assert "another release, of ε=3 and δ=2e-06, and ε=" in said
    assert "epsilon of at least 7 and delta of at least 1.2e-5" in said
    assert "--raise-budget REASON" in said
    settings.write_text(settings.read_text().replace("epsilon = 4.0", "epsilon = 7.0").replace("1e-05", "1.2e-5"))
    told = cli.json("ledger", "open", finished, "--raise-budget", REASON)
    assert told["budget"] == {"epsilon": 7.0, "delta": 1.2e-5, "composition": "sum"}
    assert (told["entry"]["kind"], told["entry"]["reason"]) == ("budget raised", REASON)
    assert cli("check", finished)[0] == 0


@pytest.mark.heavy
def test_every_later_report_shows_the_raise_and_its_reason(finished, cli):
    page, card = finished / "public" / "report.html", finished / "public" / "model_card.md"
    assert "never raised" in page.read_text()
    assert "never raised" in card.read_text()
    ask_for(finished, "5.0")
    said = cli("ledger", "open", finished, "--raise-budget", "approved by the board")[1]
    assert "every later report shows the raise and its reason" in said
    raised = "to ε 5, δ 1e-5; reason: approved by the board"

    assert cli("report", finished)[0] == 0
    assert raised in page.read_text()
    assert "budget ε 4; raised once" in page.read_text()
    [told] = cli.json("report", finished)["spending"]["raises"]
    assert (told["epsilon"], told["reason"]) == (5.0, "approved by the board")
    assert raised in cli("status", finished)[1]
    assert cli.json("status", finished)["raises"] == [told]
    assert "to ε 5.0, δ 1e-05, reason approved by the board" in cli("ledger", "show", finished)[1]

    done = cli("run", finished)[1]
    assert "raised      on 2" in done
    assert "approved by the board" in done.words
    assert raised in card.read_text().replace("\\", "")
    assert Facts.from_json((finished / "public" / "facts.json").read_text()).spending.raises is not None


@pytest.mark.heavy
def test_a_report_of_version_0_1_says_nothing_of_raises_that_it_did_not_record(finished):
    tree = json.loads((finished / "public" / "facts.json").read_text())
    del tree["spending"]["raises"]
    assert "raised" not in render_html(Facts.from_json(json.dumps(tree)))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("epsilon", ["4.0", "3.0"])
def test_a_budget_is_raised_alone_and_not_to_itself_nor_below_nor_composed_otherwise(finished, cli, epsilon):
    ask_for(finished, epsilon)
    before = kinds(finished)
    if epsilon == "3.0":
        said = cli.refused(4, "check", finished)
        assert "put it back: a budget is never lowered" in said
        assert "raise" not in said
    said = cli.refused(2, "ledger", "open", finished, "--raise-budget", REASON)
    assert "neither may become smaller" in said
    for options in ((), ("--same-release", REASON, "--raise-budget", REASON)):
        said = cli.refused(2, "ledger", "open", finished, *options)
        assert "give one of --same-release REASON and --raise-budget REASON" in said
    edit(finished, f"epsilon = {epsilon}", 'epsilon = 9.0\ncomposition = "zcdp"')
    assert "composition is fixed" in cli.refused(4, "ledger", "open", finished, "--raise-budget", REASON)
    assert kinds(finished) == before


@pytest.mark.heavy
@pytest.mark.parametrize(
    "act", [("open", "--same-release"), ("open", "--raise-budget"), ("close", "--reason")], ids=lambda act: act[1]
)
def test_every_act_needs_a_ledger_and_a_reason(make_run, cli, act):
    root, (verb, option) = make_run(), act
    assert "no ledger at" in cli("ledger", verb, root, option, REASON)[2]
    assert not (root / "ledger.db").exists()
    assert cli("run", root)[0] == 0
    correct_the_data(root)
    ask_for(root, "5.0")
    before = kinds(root)
    code, _, said = cli("ledger", verb, root, option, "")
    assert (code, said.count("\n")) == (2, 2), said
    assert "reason" in said
    assert kinds(root) == before


def test_a_closed_release_charges_nothing_more_and_still_answers_what_was_kept_back(finished, cli):
    assert cli("ledger", "close", finished, "--reason", "published")[0] == 0
    assert kinds(finished)[-1] == "closed"
    ask_for(finished, "5.0")
    assert "the release was closed" in cli.refused(4, "ledger", "open", finished, "--raise-budget", REASON)
    with Ledger(finished / "ledger.db") as ledger:
        assert ledger.reservations()[0].remaining("online answer") == 5
        ledger.reservations()[0].draw("online answer", 1)
    assert "the release was closed" in cli.refused(4, "ledger", "close", finished, "--reason", "again")


def test_an_export_holds_every_entry_and_overwrites_nothing(finished, cli, tmp_path):
    whole = json.loads(cli.ok("ledger", "export", finished))
    shown = cli.json("ledger", "show", finished)
    assert {key: whole[key] for key in shown} == shown
    assert whole["head"] == cli.json("ledger", "verify", finished)["head"]

    file = tmp_path / "ledger.json"
    assert cli("ledger", "export", finished / "ledger.db", "--to", file)[0] == 0
    assert json.loads(file.read_text()) == whole
    for taken in (file, finished / "ledger.db"):
        assert "exists already; choose a new file" in cli.refused(4, "ledger", "export", finished, "--to", taken)
    assert cli("ledger", "verify", finished)[0] == 0


def test_a_quota_is_shown_set_and_taken_away_with_a_reason(tmp_path, cli):
    place = tmp_path / "ledger.db"
    Ledger(place, budget=Budget(1.0, 1e-5)).close()
    assert "no client has a quota" in cli("ledger", "quota", place)[1]
    code, out, _ = cli("ledger", "quota", place, "--client", "ann", "--answers", 3, "--reason", "a trial")
    assert (code, out.strip()) == (0, "ann: 0 drawn, of 3 answers, 3 left")
    assert cli.json("ledger", "quota", place) == {"quotas": [{"client": "ann", "quota": 3, "drawn": 0, "left": 3}]}
    code, out, _ = cli("ledger", "quota", place, "--client", "ann", "--remove", "--reason", "a contract")
    assert (code, out.strip()) == (0, "ann: 0 drawn, no quota")
    shown = cli("ledger", "show", place)[1]
    assert "client ann, quota 3, reason a trial" in shown
    assert "quota none, client ann, reason a contract" in shown
    for wrong in (["--answers", 3], ["--client", "a", "--answers", 3], ["--client", "a", "--remove"]):
        assert cli("ledger", "quota", place, *wrong)[0] == 2


@pytest.fixture
def told(tmp_path, cli):
    """A ledger that stands alone, put back with its anchor to what it was before its newest entry; and a receipt."""
    place, old = tmp_path / "ledger.db", tmp_path / "old"
    old.mkdir()
    with Ledger(place, budget=Budget(1.0, 1e-5)) as ledger:
        ledger.bind("a")
    for name in ("ledger.db", "ledger.db.anchor"):
        (old / name).write_bytes((tmp_path / name).read_bytes())
    with Ledger(place) as ledger:
        ledger.set_quota("ann", 3, "a trial")
    out = cli.ok("ledger", "receipt", place)
    return place, out.strip()


def test_a_receipt_is_accepted_as_json_as_a_file_and_as_an_answer_that_holds_it(told, cli):
    place, receipt = told
    kept = place.with_name("kept.jsonl")
    kept.write_text(f'{{"answers": [1], "receipt": {receipt}}}\n{{"answers": [0], "receipt": null}}\n')
    assert "2 receipts checked" in cli.ok("ledger", "verify", place, "--receipt", receipt, "--receipt", kept)
    assert cli.json("ledger", "verify", place, "--receipt", f"[{receipt}]")["receipts"] == 1


def test_a_receipt_exposes_a_ledger_and_an_anchor_that_were_put_back_together(told, cli):
    place, receipt = told
    for name in ("ledger.db", "ledger.db.anchor"):
        (place.parent / name).write_bytes((place.parent / "old" / name).read_bytes())
    assert cli("ledger", "verify", place)[0] == 0, "nothing in the folder tells"
    assert "older or another ledger" in cli.refused(5, "ledger", "verify", place, "--receipt", receipt)


def test_a_client_without_the_ledger_checks_an_export(told, cli):
    place, receipt = told
    export = place.with_name("export.json")
    assert cli("ledger", "export", place, "--to", export)[0] == 0
    assert cli("ledger", "verify", export, "--receipt", receipt)[0] == 0
    whole = json.loads(export.read_text())
    cut = {**whole, "entries": whole["entries"][:-1], "head": whole["entries"][-2]["hash"]}
    export.write_text(json.dumps(cut))
    assert cli("ledger", "verify", export)[0] == 0
    assert cli("ledger", "verify", export, "--receipt", receipt)[0] == 5
    export.write_text(json.dumps({**whole, "entries": whole["entries"][:-1]}))
    assert cli("ledger", "verify", export)[0] == 5
    for text in ("{", "{}", '{"entries": [], "head": ""}'):
        export.write_text(text)
        assert cli("ledger", "verify", export)[0] == 4


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "rubbish",
    [
        *("rubbish", "", "a\0b", "x" * 5_000, "{", "[1]", "7", "{}", "[" * 900 + "]" * 900, '{"receipt": 1}', "[]"),
        *("no such file", '{"receipt": null}', '{"sequence": 1, "head_hash": "00"}'),
        *(f'{{"sequence": {number}, "head_hash": "{"0" * 64}"}}' for number in ("true", "1e999", "0", '"1"')),
        f'{{"sequence": 1, "head_hash": "{"G" * 64}"}}',
    ],
)
def test_what_is_no_receipt_is_refused_in_one_line(told, cli, rubbish):
    place, _ = told
    code, out, said = cli("ledger", "verify", place, "--receipt", rubbish)
    assert (code, out) == (2, "")
    assert len(said.strip().splitlines()) <= 2
    assert len(said) < 500
    assert "receipt" in said


def test_a_file_that_is_no_ledger_is_said_to_be_none_and_nothing_is_made(told, cli, tmp_path):
    place, _ = told
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "notes.txt").write_text("notes")
    assert cli("ledger", "export", place, "--to", folder / "export.json")[0] == 0
    with closing(sqlite3.connect(folder / "other.db")) as connection:
        connection.execute("CREATE TABLE entry (x)")
    before = sorted(folder.iterdir())
    for file in before:
        for verb in (["show"], ["receipt"], ["quota"], ["close", "--reason", "r"]):
            code, out, said = cli("ledger", verb[0], file, *verb[1:])
            assert (code, out) == (4, ""), (file, verb)
            assert "is no ledger; give a run's folder" in said
            assert len(said.strip().splitlines()) <= 2
    assert sorted(folder.iterdir()) == before


def test_a_block_of_several_clients_names_them(tmp_path, cli):
    place = tmp_path / "ledger.db"
    with Ledger(place, budget=Budget(1.0, 1e-5)) as ledger:
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"online answer": 9}, key="kept back")
        parts = [Part(client="key:ab", count=2), Part(client="key:cd", count=1), Part(client="key:ab", count=1)]
        reservation.draw("online answer", 4, parts=parts)
        reservation.draw("online answer", 1, client="key:ef")
    shown = cli("ledger", "show", place)[1].splitlines()
    assert shown[-3].endswith("online answers 1 to 4, for 3 key:ab+1 key:cd")
    assert shown[-2].endswith("online answer 5, by client key:ef")
