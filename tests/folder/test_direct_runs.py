"""A run of the direct method in a folder: the same ledger, report and export, and no word about private rows."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, charges, edit, run
from tests.used_rows import used

from quorate.accounting import PureDP
from quorate.data.feature_maps.coordinates import Spectrum
from quorate.deferred import skops
from quorate.direct import method, prepare
from quorate.folder import status
from quorate.folder.cell_run import DirectRun
from quorate.folder.methods import check, execute, read_run
from quorate.folder.prepared import budget_of
from quorate.folder.published import read_facts
from quorate.folder.settings import read_settings
from quorate.folder.status import State, read_status
from quorate.ledger import Ledger
from quorate.plugins import METHODS, located
from quorate.release.charge import GRADIENT_ROUND, LABEL

pytestmark = pytest.mark.mostly_heavy


def keys_of(tree):
    """The form of a JSON value: its keys and the lengths of its lists, and no value."""
    if isinstance(tree, dict):
        return {key: keys_of(tree[key]) for key in tree}
    return [keys_of(each) for each in tree] if isinstance(tree, list) else type(tree).__name__


def test_a_score_on_private_rows_is_left_out_and_the_owner_alone_is_told(make_direct, cli):
    """What is published has the form of a run without labelled rows, and nothing was refused before the rounds."""
    plain, root, said_json = make_direct("plain"), make_direct("run"), make_direct("json")
    for each in (root, said_json):
        edit(each, "[data]", '[data]\nevaluation = "evaluation.csv"')
        pl.read_csv(each / "private.csv").head(100).write_csv(each / "evaluation.csv")
        assert "score was left out" not in "".join(map(str, cli("check", each)))
    code, out, err = cli("run", root)
    assert (code, out.count("score was left out"), err.count("score was left out")) == (0, 0, 1)
    code, out, err = cli("run", said_json, "--json")
    assert (code, "score was left out" in out + err) == (0, False)
    run(plain)
    for each in (root, said_json):
        names, plain_names = ({file.name for file in (one / "public").iterdir()} for one in (each, plain))
        assert names == plain_names
        found, wanted = (json.loads((one / "public" / "facts.json").read_text()) for one in (each, plain))
        assert found["utility"] == wanted["utility"]
        for published in (each / "public").glob("*.json"):
            trees = [json.loads((one / "public" / published.name).read_text()) for one in (each, plain)]
            assert keys_of(trees[0]) == keys_of(trees[1]), published.name
        for file in (each / "public").glob("*.*"):
            assert b"score was left out" not in file.read_bytes()


def test_the_whole_way(make_direct, cli, tmp_path):
    root = make_direct(**{"data.evaluation": "evaluation.csv"})
    out = cli.ok("check", root)
    assert "4 noisy rounds" in out
    assert "every prediction is free" in out
    assert not (root / "private").exists()
    code, out, err = cli("run", root)
    assert code == 0
    assert "4 rounds: 4 stored" in out
    assert "gradient rounds (4)" in err
    facts = read_facts(root)
    assert (facts.rounds.rounds, facts.rounds.stored) == (4, 4)
    assert facts.utility.student is not None
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        (reservation,) = ledger.reservations()
        assert dict(reservation.purposes) == {"gradient round": 4}
    status = read_status(root)
    assert status.state is State.FINISHED
    assert status.stages == {"coordinates": True, "rounds": True, "model and report": True}
    assert cli("report", root)[0] == 0
    assert cli("export", root, "--to", tmp_path / "out")[0] == 0
    model = tmp_path / "out" / "student.skops"
    assert skops.io.get_untrusted_types(file=model) == []
    guessed = skops.io.load(model).predict(pl.read_csv(root / "public.csv"))
    assert set(guessed) <= {"no", "yes"}


def test_what_check_says_is_what_the_run_does_and_tells_by_rounds(make_direct):
    root, seen = make_direct(), []
    told = check(read_run(root, begin=False)).found
    rounds = execute(read_run(root), command="", watch=lambda *step: seen.append(step)).rounds
    assert rounds is not None
    for name in ("n_coordinates", "effective_dimension", "ridge", "rounds", "clip", "noise", "n_units"):
        assert told[name] == getattr(rounds, name), name
    assert told["price"] <= read_facts(root).guarantee.epsilon + 1e-9 <= 4.0 + 2e-9
    assert json.dumps(told)
    assert [step for step in seen if step[0] == "rounds"] == [("rounds", done, 4) for done in range(5)]


def test_coordinates_are_read_back_and_never_computed_again(make_direct, monkeypatch):
    root = make_direct()
    first = read_run(root).task.plan
    run(root)
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "plan_direct", lambda *args, **how: pytest.fail("computed again"))
        again = read_run(root).task
    assert again.stored
    assert again.plan.digest == first.digest
    rows, _ = used(again)
    assert (again.plan.coordinates(rows) == first.coordinates(rows)).all()
    (stage,) = (root / "private").glob("coordinates-*.stage")
    stage.unlink()
    assert not read_run(root).task.stored


def test_coordinates_of_other_settings_take_no_place_of_these(finished_run):
    root = finished_run(m=60, **DIRECT, **{"budget.composition": "zcdp", "run.epsilon": 0.5})
    edit(root, "rounds = 4", "rounds = 5")
    run(root)
    edit(root, "rounds = 5", "rounds = 4")
    assert read_run(root).task.stored
    run(root)
    assert charges(root) == 2


def test_lost_coordinates_that_come_out_in_other_bits_are_refused_and_not_charged(finished_run, cli, monkeypatch):
    root = finished_run(m=60, **DIRECT, **{"budget.composition": "zcdp", "run.epsilon": 0.5})  # a second charge fits
    (stage,) = (root / "private").glob("coordinates-*.stage")
    stage.unlink()
    of = Spectrum.of

    def moved(features):  # but for the last bit of each direction the same: what another number of threads gives
        spectrum = of(features)
        return Spectrum(spectrum.values, np.nextafter(spectrum.vectors, np.inf))

    monkeypatch.setattr(Spectrum, "of", moved)
    for command in ("check", "run"):
        assert "last bits differ" in cli.refused(4, command, root).words
    assert charges(root) == 1


def test_there_is_nothing_to_ask_and_no_internal_edition(finished_run, cli):
    root = finished_run(m=60, **DIRECT)
    assert "quorate predict RUN TABLE --out PATH" in cli.refused(4, "ask", root, root / "public.csv")
    assert "no internal edition" in cli.refused(4, "report", root, "--edition", "internal")


def test_an_audit_attacks_the_rounds_and_goes_into_the_report(finished_run, cli):
    root = finished_run(m=60, **DIRECT)
    told = read_facts(root)
    assert told.audit is None
    assert told.audit_command == "quorate audit run"
    out = cli.ok("audit", root, "--runs", 2_000, "--seed", 1)
    assert "all 4 rounds" in out
    assert "Contributions: Public rows" in out
    assert "No violation found" in out
    audited = json.loads((root / "public" / "audit.json").read_text())
    assert not audited["violated"]
    after = read_facts(root)
    assert len(after.audit.lines) == 2
    (check,) = [each for each in after.checks if each.code == "audit"]
    assert check.ran == "quorate.audit.rounds.audit_rounds"
    edit(root, "rounds = 4", "rounds = 5")
    assert "holds no charge" in cli.refused(4, "audit", root)


@pytest.mark.quick
def test_every_method_names_what_is_there_and_a_purpose_of_its_own():
    assert all(callable(located(place)) for method in METHODS.values() for place in (method.read, method.told))
    purposes = [method.purpose for method in METHODS.values()]
    assert len(set(purposes)) == len(purposes)
    assert (METHODS["votes"].purpose, METHODS["direct"].purpose) == (LABEL, GRADIENT_ROUND)


@pytest.mark.quick
def test_a_method_whose_stages_nothing_names_is_told_by_its_answers(make_direct, monkeypatch):
    root = make_direct()
    settings = read_settings(root / "quorate.toml")
    other = replace(settings, method=replace(settings.method, by="other"))
    monkeypatch.setattr(status, "read_settings", lambda path: other)
    assert read_status(root).stages == {"answers": False, "model and report": False}


ODD = {
    "a missing number": ",26.0,north,no",
    "text in a number column": "old,26.0,north,no",
    "an infinite number": "40,inf,north,no",
    "a number beyond floats": f"40,1{'0' * 400},north,no",
    "a value that no public row has": "40,26.0,moon,no",
    "a label that is none": "40,26.0,north,perhaps",
    "no label": "40,26.0,north,",
    "too few fields": "40",
    "too many fields": "40,26.0,north,perhaps,8,9",
    "bytes that are no text": "40,26.0,n\udcffrth,perhaps",
    "a quotation mark that is left open": '40,"26.0,north,no',
    "text after a quotation mark": '40,"26.0"1,north,no',
}


def everything_told(root, cli):
    """All that a run shows to anybody: what commands print, and every file of the public side; seeded, to compare."""
    told = {}
    for command in (["check"], ["check", "--json"], ["run"], ["run", "--json"], ["status", "--json"], ["report"]):
        code, out, err = cli(command[0], root, *command[1:])
        told[" ".join(command)] = f"{code}\n{out}\n{err}"
    for path in sorted((root / "public").iterdir()):
        told[path.name] = path.read_text(encoding="utf-8")
    told["model"] = str(skops.io.load(root / "private" / "student.skops")[-1].coef_.tolist())
    of_the_model = r'importances(?:"|&quot;): *\[[^]]*\]|Which columns the model looks at.*?</table>'
    moving = rf"[0-9a-f]{{64}}|\d{{4}}-\d\d-\d\dT[\d:+-]+|(?s:{of_the_model})"  # the ledger's head, times, and these
    return {name: re.sub(moving, "#", text.replace("\\", "")).replace(root.name, "run") for name, text in told.items()}


def add_row(root, line):
    with (root / "private.csv").open("ab") as file:
        file.write(f"{line}\n".encode("utf-8", "surrogateescape"))


SEEDED = {"run.unsafe_noise_seed": 3}


@pytest.fixture
def without(make_direct, cli):
    return everything_told(make_direct("warda", **SEEDED), cli)


USABLE = {"a missing number", "a value that no public row has"}


@pytest.mark.parametrize("odd", sorted(ODD.keys() - USABLE))
def test_a_row_that_cannot_be_used_is_left_out(make_direct, odd):
    root = make_direct()
    before = used(read_run(root, begin=False).task)
    add_row(root, ODD[odd])
    after = used(read_run(root, begin=False).task)
    assert (after[0] == before[0]).all()
    assert (after[1] == before[1]).all()


@pytest.mark.parametrize(
    ("rows", "differs"),
    [(ODD.keys() - USABLE, []), (USABLE, ["model"]), (None, ["model"])],
    ids=["odd", "usable", "none"],
)
def test_what_private_rows_hold_changes_the_model_at_most(make_direct, cli, without, rows, differs):
    root = make_direct("wardb", **SEEDED)
    if rows is None:  # not one is left
        (root / "private.csv").write_text((root / "private.csv").read_text().splitlines()[0] + "\n")
    for odd in rows or ():
        add_row(root, ODD[odd])
    found = everything_told(root, cli)
    assert [name for name in found if found[name] != without[name]] == differs


def test_one_class_alone_and_a_person_of_many_rows_run_through(make_direct, cli):
    root = make_direct("wardc", **{**SEEDED, "data.unit": "patient_id", "data.n_records": 200})
    rows = pl.read_csv(root / "private.csv")
    rows.with_columns(pl.lit("no").alias("ill"), pl.lit("P1").alias("patient_id")).write_csv(root / "private.csv")
    shown = everything_told(root, cli)
    other = make_direct("wardd", **{**SEEDED, "data.unit": "patient_id", "data.n_records": 200})
    rest = everything_told(other, cli)
    assert [name for name in shown if shown[name] != rest[name]] == ["model"]


def test_a_report_that_counts_usable_rows_is_caught(make_direct, cli, without, monkeypatch):
    """The twin tells how many rows it used: the comparison above sees it."""
    real = method.ROUNDS.facts

    def counting(task, *rest):
        facts = real(task, *rest)
        n_used = len(used(task)[1])
        return replace(facts, setup=replace(facts.setup, recipe=(f"{n_used} rows were used",)))

    monkeypatch.setattr(DirectRun, "method", replace(method.ROUNDS, facts=counting))
    root = make_direct("wardb", **SEEDED)
    add_row(root, ODD["a missing number"])
    found = everything_told(root, cli)
    assert {"facts.json", "report.html"} <= {name for name in found if found[name] != without[name]}


def test_a_ledger_that_adds_rho_takes_the_rounds_at_their_exact_price(make_direct, cli):
    root = make_direct(**{"budget.composition": "zcdp"})
    assert "ε = 4, δ = 1e-5" in cli.ok("check", root)
    facts = run(root)
    assert facts.rounds is not None
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        (reservation,) = ledger.reservations()
        event, limit = reservation.event, ledger.budget.limit.rho_e9 * 1e-9
        rounds = event.times * (event.event.l2_sensitivity / event.event.sigma) ** 2 / 2
        assert limit * (1 - 1e-6) < rounds <= limit
        assert ledger.spent.rho is not None
        assert rounds <= ledger.spent.rho
        assert 3.999 < facts.guarantee.epsilon <= 4.0
    summed = run(make_direct("sums")).rounds
    assert facts.rounds.noise / facts.rounds.clip > summed.noise / summed.clip


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("composition", ["sum", "zcdp"])
def test_a_budget_that_is_too_small_is_said_in_words_of_rounds(make_direct, cli, composition):
    root = make_direct(**{"budget.composition": composition})
    with Ledger(root / "ledger.db", budget=budget_of(read_settings(root / "quorate.toml"))) as ledger:
        ledger.reserve(PureDP(0.5), delta=1e-6, purposes={"sum": 1}, key="earlier")
    err = cli.refused(3, "check", root)
    said = err.words
    assert "give a smaller [budget] epsilon, for which the rounds take more noise" in said
    assert "nothing more was charged" in said
    assert "sigma" not in said
    assert "queries" not in said


@pytest.mark.parametrize("declared", [400, None])
def test_a_number_that_was_read_is_said_to_be_read(make_direct, cli, declared):
    root = make_direct(**{"data.n_records": declared})
    assert ("the number of records was read off private.csv" in cli("check", root)[1]) == (declared is None)
    made = run(root)
    page = (root / "public" / "report.html").read_text()
    assert made.setup.n_records_from == ("declared" if declared else "read")
    assert ("declared by the owner" in page) == (declared is not None)
    assert ("read off the data and treated as public" in page) == (declared is None)


def test_what_is_not_looked_at_is_said_where_the_owner_can_still_look(make_direct, cli):
    """Classes that no label has: nothing may refuse them, so the check says who has to compare, whatever the labels."""
    said = []
    for name, classes in (("right", ["no", "yes"]), ("wrong", ["nein", "ja"])):
        root = make_direct(name, **{"data.classes": classes})
        out = cli.ok("check", root).words.replace(str(root), "RUN")
        said.append([note for note in out.split(" note ") if "NOT checked" in note])
    line = said[0][0].partition(" Nothing was charged")[0]
    assert said[1][0].partition(" Nothing was charged")[0] == line
    assert len(said[0]) == len(said[1]) == 1
    assert "labels and cells of private.csv are NOT checked" in line
    assert "Compare classes with column 'ill' of your own file before the run" in line
    (check,) = [each for each in run(make_direct("run")).checks if each.code == "classes"]
    assert "rows with another label are left out" in check.evidence
    assert "refused" not in check.evidence


def test_a_direct_run_speaks_of_the_unit_that_its_ids_name(make_direct, cli):
    root = make_direct(**{"data.unit": "patient_id", "data.n_records": None})
    out = cli("check", root)[1]
    settings = edit(root, "[data]", '[data]\nunit_name = "spa guest"')
    assert "divided by the number of spa guests, n₀" in cli("check", root)[1].words
    for refused in ("record", "guest's labels", "<b>"):
        (root / "quorate.toml").write_text(settings.replace("[data]", f'[data]\nunit_name = "{refused}"'))
        code, _, said = cli("check", root)
        assert (code, "Traceback" in said) == (2, False)
        assert "[data] unit_name must be a word" in said
    (root / "quorate.toml").write_text(
        settings.replace("[data]", '[data]\nunit_name = "guest"').replace('unit = "patient_id"\n', "")
    )
    assert "[data] unit is missing" in cli("check", root)[2]
    out = out.words
    assert "one patient adds to the sum a vector whose length is at most" in out
    assert "divided by the number of patients, n₀" in out
    assert "the number of patients was read off private.csv" in out
    assert "labels, ids and cells of private.csv are NOT checked" in out
