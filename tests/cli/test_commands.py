"""Each verb on a small run: what it prints, its JSON, its exit code."""

import errno
import json
import os
import re
import shlex
import shutil
import stat
from zipfile import ZipFile

import pytest
from tests.folder.conftest import AGE_AND_BMI, WARD, charges, interrupted
from tests.ledger.test_forgery import edited, reserved

from quorate.accounting.figures import several
from quorate.folder.settings import read_settings
from quorate.folder.status import stored_so_far
from quorate.ledger import Budget, Ledger, Reservation
from quorate.report import Facts

pytestmark = pytest.mark.mostly_heavy

DIRECT = {"method.by": "direct"}


@pytest.fixture
def finished(finished_run):
    return finished_run(**{"mechanism.online_answers": 5, "data.evaluation": "evaluation.csv"})


@pytest.mark.quick
def test_every_line_of_the_written_settings_says_what_it_is_and_may_be_switched_on(cli, tmp_path):
    cli("init", tmp_path)
    path = tmp_path / "quorate.toml"
    lines = path.read_text().splitlines()
    keys = [line for line in lines if " = " in line]
    assert all(line.count("# ") >= (2 if line.startswith("#") else 1) for line in keys)
    # In place of a model, files, columns with numbers and texts, classes, and public labels, which are there.
    instead = (
        "# command =", "# endpoint =", "# private_query =", "# images =", "# target =", "# range =",
        "# calibration_of_evaluation =", "# calibration_share =", "# coverage =",
    )  # fmt: skip
    on = [line if line.startswith(instead) or " = " not in line else line.removeprefix("# ") for line in lines]
    path.write_text("\n".join(on))
    settings = read_settings(path)
    found = settings.data.unit, settings.mechanism.fields["sigma"], settings.run.unsafe_noise_seed
    assert found == ("person_id", 40.0, 1)


@pytest.mark.quick
def test_init_never_overwrites(cli, tmp_path):
    (tmp_path / "quorate.toml").write_text("mine")
    assert "exists already; edit it, or choose another folder" in cli.refused(4, "init", tmp_path)
    assert (tmp_path / "quorate.toml").read_text() == "mine"


def test_the_end_of_a_run_says_what_was_done_what_it_cost_and_what_comes_next(make_run, cli, monkeypatch):
    root = make_run(**{"data.evaluation": "evaluation.csv"})
    monkeypatch.chdir(root.parent)
    code, out, said = cli("run", root.name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for part in ("12 · one record → exactly one teacher; checked", "150 asked · 150 answered · 0 declined",
                 "guarantee", "left", "run/public/report.html", "export run --to outbox --format tre"):  # fmt: skip
        assert part in out, part
    assert "training teachers (12)" in said


def test_check_keeps_to_80_columns_and_warns_of_a_seed_and_of_a_number_that_becomes_public(finished, make_run, cli):
    for root in (make_run("seeded", **{"run.unsafe_noise_seed": 1, "teachers.count": "auto"}), finished):
        _, out, _ = cli("check", root)
        wide = [line for line in out.splitlines() if len(line) > 80 and str(root) not in line]
        assert wide == []
        assert "\n             " in out, "the lines that follow stand under the first one"
    out = cli.ok("check", finished.parent / "seeded")
    assert "WARNING    seeded noise: reproducible, therefore not private" in out
    assert "the number of records was read off private.csv and is treated as public" in out.words


def test_json_of_every_reading_verb_is_one_object_and_of_run_and_report_the_public_facts(finished, cli, tmp_path):
    for command in (
        ("check", finished), ("run", finished), ("status", finished), ("report", finished),
        ("ledger", "show", finished), ("ledger", "verify", finished),
        ("export", finished, "--to", tmp_path / "out"),
    ):  # fmt: skip
        code, out, said = cli(*command, "--json")
        assert (code, said) == (0, ""), command
        assert isinstance(json.loads(out), dict), command
    facts = Facts.from_json((finished / "public" / "facts.json").read_text())
    assert Facts.from_json(cli("report", finished, "--json")[1]) == facts
    again = Facts.from_json(cli("run", finished, "--json")[1])
    assert (again.guarantee, again.answers, again.setup) == (facts.guarantee, facts.answers, facts.setup)


@pytest.mark.quick
def test_an_error_under_json_is_one_object_on_stderr(make_run, cli):
    code, out, said = cli("run", make_run(**{"budget.epsilon": 0}), "--json")
    assert out == ""
    assert json.loads(said)["exit_code"] == code == 2


def test_status_tells_a_run_before_during_and_after(make_run, cli):
    root = make_run(**{"mechanism.online_answers": 5})
    before = cli.json("status", root)
    assert (before["state"], before["left"], set(before["stages"].values())) == ("not started", None, {False})
    cli("run", root)
    after = cli.json("status", root)
    assert (after["state"], after["answers_left"], set(after["stages"].values())) == ("finished", 5, {True})
    assert after["spent"]["epsilon"] + after["left"]["epsilon"] == pytest.approx(4.0)
    with Ledger(root / "ledger.db"):  # a service, for example
        held, told = cli.json("status", root), cli.ok("status", root)
    assert (held["state"], held["held"], held["left"]) == ("finished", True, None)
    assert "another process, such as a service, holds the ledger" in told
    assert "wait for" not in told
    (root / "public" / "facts.json").unlink()
    assert cli.json("status", root)["state"] == "interrupted"
    with Ledger(root / "ledger.db"):
        busy = cli.json("status", root)
    assert (busy["state"], busy["held"]) == ("running", True)
    text = cli("status", root)[1]
    assert "5 online answers" in text
    assert f"quorate run {root}" in text


@pytest.mark.parametrize(("changes", "purpose"), [({}, "label"), (DIRECT, "gradient round")], ids=["labels", "rounds"])
def test_status_tells_what_a_broken_off_block_lost(monkeypatch, make_run, cli, changes, purpose):
    root = make_run(**changes)
    assert cli.json("status", root)["lost"] is None
    with monkeypatch.context() as patch:
        patch.setattr(Reservation, "store", interrupted)
        assert cli("run", root)[0] == 6
    with Ledger(root / "ledger.db") as ledger:
        (block,) = ledger.reservations()[0].blocks(purpose)
        of = ledger.reservations()[0].purposes[purpose]
    stage = "rounds" if changes else "labels"
    drawn = f"  · {stage}: {block.count:,} of {of:,} drawn"
    assert (drawn in cli("status", root)[1].splitlines()) == (block.count < of)
    told = f"lost       {several(block.count, purpose)}, charged and never released: a process ended in between"
    assert told in cli("status", root)[1].splitlines()
    assert cli.json("status", root)["lost"] == {purpose: block.count}
    assert cli("run", root)[0] == 0
    assert told in cli("status", root)[1].splitlines(), "also once the run went on"
    assert " drawn" not in cli("status", root)[1]
    whole = make_run("whole", **changes)
    assert cli("run", whole)[0] == 0
    assert cli.json("status", whole)["lost"] == {}


def test_the_ledger_is_shown_a_line_an_entry_with_its_total_and_reading_adds_nothing(finished, cli):
    before = cli.json("ledger", "show", finished)["entries"]
    cli.ok("status", finished)
    out = cli.ok("ledger", "show", finished)
    lines = out.splitlines()
    assert lines[0].split()[2] == "opened"
    assert "reserved for 150 labels and 5 online answers" in out.words
    assert lines[-1].startswith("spent ε ")
    said = cli("ledger", "verify", finished)[1]
    assert said.startswith(f"verified: {len(lines) - 1} entries, head ")
    assert said.endswith("; 1 charge was priced again: it is not below what its event costs\n")
    assert cli.json("ledger", "verify", finished)["charges_priced"] == 1
    assert cli.json("ledger", "show", finished / "ledger.db")["entries"] == before, "to read adds nothing"


def test_a_charge_that_was_made_smaller_and_hashed_anew_is_found(finished_run, cli):
    """Whoever writes the whole chain again has every hash right; the price of the event is not theirs to choose."""
    root = finished_run(n=200, m=40)
    edited(root / "ledger.db", reserved({"amounts": {"delta_e18": 10**12, "epsilon_e9": 1, "rho_e9": 0}}))
    shutil.copy(root / "ledger.db.anchor", root / "private" / "ledger.head")
    assert cli("ledger", "show", root)[0] == 0
    code, out, said = cli("ledger", "verify", root)
    assert (code, out) == (5, "")
    assert "was charged less than its event costs" in said


@pytest.mark.quick
def test_a_link_to_a_ledger_is_refused_in_one_line(finished, cli, tmp_path):
    for target in (finished / "ledger.db", tmp_path / "nowhere"):
        link = tmp_path / f"{target.name}.link"
        link.symlink_to(target)
        code, out, said = cli("ledger", "verify", link)
        assert (code, out) == (4, "")
        assert "is a symbolic link" in said
        assert len(said.strip().splitlines()) <= 2


@pytest.mark.quick
def test_a_ledger_that_is_not_there_is_not_made(cli, tmp_path):
    assert "there is no ledger at" in cli.refused(4, "ledger", "show", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_internal_report_is_for_its_owner_alone(finished, cli):
    out = cli.ok("report", finished, "--edition", "internal")
    page = finished / "private" / "report-internal.html"
    assert str(page) in out
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "not for release" in page.read_text().lower()
    assert cli("report", finished)[1].strip().endswith("public/report.html")


NO_POOL = {"data.public": None, **AGE_AND_BMI, "schema.bmi": "number", **WARD}
NUMBER = {
    "data.label": None, "data.classes": None, "data.target": "bmi", "data.range": [10.0, 60.0], "data.drop": ["ill"],
    "data.evaluation": "evaluation.csv", "mechanism.queries": None, "run.allow_hopeless": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"teachers.model": "forest", "student.model": "forest"},
        {"student.model": "shares", "student.method": "values"},
        {"student.method": "noisy-labels", "student.decision_threshold": 0.3},
        {"data.calibration": "evaluation.csv", "data.unit": "patient_id", "mechanism.online_answers": 5},
        NO_POOL,
        DIRECT,
        {**DIRECT, "method.feature_map": "linear", "data.evaluation": "evaluation.csv"},
        {**DIRECT, **NO_POOL},
        {**NUMBER, "method.by": "votes"},
        {**DIRECT, **NUMBER},
        {**DIRECT, **NUMBER, **NO_POOL, "schema.bmi": None},
        {**DIRECT, **NUMBER, "n": 900, "data.n_records": 900, "data.calibration_share": 0.4},
    ],
    ids=lambda changes: "-".join(changes)[:60] or "votes",
)
def test_a_run_ends_with_the_export_that_a_reviewers_check_accepts(make_run, cli, monkeypatch, changes):
    root = make_run(**changes)
    monkeypatch.chdir(root.parent)
    out = cli.ok("run", root.name)
    line = re.search(r"^try next +quorate (export .*)$", out, re.M)
    assert line is not None, out
    assert cli("status", root.name)[1].splitlines()[-1].endswith(f", or: quorate {line[1]}")
    cli.ok(*shlex.split(line[1]))
    cli.ok("check-export", "outbox")


def test_a_run_whose_model_no_reviewers_check_accepts_proposes_no_export(make_run, cli):
    root = make_run(**{"student.model": "boosting"})
    assert f"try next    quorate status {root}" in cli.ok("run", root)
    assert "quorate export" not in cli("status", root)[1]
    assert "would not pass its own check" in cli("export", root, "--to", root / "box", "--format", "tre")[2]
    assert "cannot leave as ONNX" in cli("export", root, "--to", root / "onnx", "--format", "tre", "--model", "onnx")[2]


def test_a_report_in_another_language_is_published_beside_the_first_and_follows_it(cli, finished, tmp_path):
    for language in ("de", "fr"):
        assert cli("report", finished, "--language", language)[1].strip().endswith(f"public/report.{language}.html")
    german = (finished / "public" / "report.de.html").read_text(encoding="utf-8")
    assert 'lang="de"' in german
    assert cli("export", finished, "--format", "tre", "--to", tmp_path / "package.zip")[0] == 0
    assert cli("check-export", tmp_path / "package.zip")[0] == 0
    assert {"report.html", "report.de.html", "report.fr.html"} <= set(ZipFile(tmp_path / "package.zip").namelist())
    (finished / "public" / "report.de.html").write_text("what the owner did not see")
    assert cli("run", finished)[0] == 0  # which publishes again what there is
    again = (finished / "public" / "report.de.html").read_text(encoding="utf-8")
    assert again.partition("<details>")[0][:20_000] == german[:20_000]  # further on it says when it ran


@pytest.mark.quick
def test_a_report_of_a_run_that_has_not_finished_says_how_to_finish_it(make_run, cli):
    root = make_run()
    assert f"start or resume it with: quorate run {root}" in cli.refused(4, "report", root)


@pytest.mark.heavy
def test_control_c_anywhere_is_exit_code_6(monkeypatch, make_run, cli):
    monkeypatch.setattr("quorate.voting.method.VOTES.go", interrupted)
    root = make_run()
    said = cli.refused(6, "run", root)
    nothing = "nothing of its teachers or coordinates is stored yet"
    assert f"{nothing}; type the same command again: quorate run {root}\n" in said
    assert "(QUO-E010; nothing was charged)" in said
    monkeypatch.setattr("quorate.folder.prepared.charged_so_far", interrupted)  # again, while the ledger is looked into
    assert "nothing was charged" not in cli.refused(6, "run", root), "nobody has looked"


@pytest.mark.quick
def test_a_stop_of_what_stores_nothing_says_so(monkeypatch, make_run, cli):
    monkeypatch.setattr("quorate.folder.methods.check", interrupted)
    said = cli.refused(6, "check", make_run())
    assert "quorate: interrupted; nothing is left half written; type the same command again" in said


@pytest.mark.quick
@pytest.mark.parametrize(
    ("changes", "stages", "said"),
    [
        ({}, [], None),
        ({"teachers.count": 100}, ["teachers-00000"], "64 of 100 teachers are stored"),
        ({"teachers.count": 100}, ["teachers-00000", "teachers-00064"], "100 of 100 teachers are stored"),
        ({"teachers.count": None}, ["teachers-00000", "teachers-00064"], "up to 128 teachers are stored"),
        ({"teachers.count": 100}, ["counted-00000"], "the votes of 64 of 100 teachers are stored"),
        ({"teachers.count": 3}, ["called-00000"], "the votes of 1 of 3 teachers are stored"),
        ({"teachers.partition": "unit"}, ["prompted-00000"], "votes of teachers are stored"),
        (
            {"teachers.partition": "unit"},
            ["teachers-00000", "teachers-00064"],
            "some teachers, or their votes, are stored",
        ),
        ({}, ["teachers-00000", "votes"], "the votes of all teachers are stored"),
        ({}, ["drawn-pool-1"], "the rows that were drawn are stored"),
        (DIRECT, ["drawn-pool-1"], "the rows that were drawn are stored"),
        (DIRECT, [], None),
        (DIRECT, ["coordinates-1"], "the coordinates of its rounds are stored"),
    ],
)
def test_a_stop_says_what_is_stored(make_run, changes, stages, said):
    assert stored_so_far(with_stages(make_run(**changes), stages)) == said


def with_stages(root, stages):
    """A run that was broken off when it had stored these stages."""
    (root / "private").mkdir()
    for stage in stages:
        (root / "private" / f"{stage}.stage").write_bytes(b"")
    return root


@pytest.mark.parametrize(
    ("changes", "stored"),
    [({}, "the votes of all teachers are stored"), (DIRECT, "the coordinates of its rounds are stored")],
    ids=["teachers", "direct"],
)
def test_control_c_after_the_charge_says_what_the_ledger_holds(monkeypatch, make_run, cli, changes, stored):
    root = make_run(**changes)
    with monkeypatch.context() as patch:
        patch.setattr("quorate.folder.methods.with_calibration", interrupted)
        code, _, said = cli("run", root)
    assert code == 6
    assert "the ledger holds the charge of this run, ε = 4 and δ = 1e-5, which is never charged twice" in said
    assert re.search(rf"; (\d+) of \1 (answers|rounds) are stored: quorate run {root} goes on", said)
    assert f"interrupted; {stored}, and the same command goes on from there: quorate run {root}\n" in said
    assert cli("run", root)[0] == 0
    assert charges(root) == 1


EACH_UNIT = {"teachers.partition": "unit", "teachers.count": None, "data.n_records": 400}
OF_UNITS = ["called-00000", *(f"teachers-{part:05d}" for part in range(0, 448, 64))]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("changes", "stages", "said", "stored"),
    [
        ({"teachers.count": 100}, ["teachers-00000"], ["· teachers: 64 stored"], 64),
        ({"teachers.count": 100}, ["teachers-00000", "teachers-00064"], ["✓ teachers: 100 stored"], 100),
        (EACH_UNIT, OF_UNITS, ["· votes\n", "· teachers\n"], 0),
    ],
    ids=["some", "all", "where they would count units"],
)
def test_status_counts_the_teachers_that_are_stored(make_run, cli, changes, stages, said, stored):
    root = with_stages(make_run(**changes), stages)
    Ledger(root / "ledger.db", budget=Budget(4.0, 1e-5)).close()
    shown = cli.ok("status", root)
    assert [line for line in said if line not in shown] == []
    assert cli.json("status", root)["teachers_stored"] == stored


def test_status_opens_no_report_that_is_gone(finished_run, cli):
    root = finished_run()
    assert "next       open " in cli("status", root)[1]
    (root / "public" / "report.html").unlink()
    text = cli("status", root)[1]
    assert "open " not in text
    assert f"next       quorate report {root} writes the report again" in text
    assert cli("report", root)[0] == 0
    assert (root / "public" / "report.html").exists()


def test_small_numbers_are_written_one_way_and_a_rounding_is_not_left(make_run, cli):
    root = make_run(**{"data.n_records": 400})
    checked = cli("check", root)[1]
    cli("run", root)
    shown = [checked, cli("status", root)[1], cli("ledger", "show", root)[1]]
    assert all("1e-5" in each for each in shown)
    assert not any("e-0" in each for each in shown)
    assert "of 4 charged, 0 left" in shown[1]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (("demo", "adult"), "If that is where to write: quorate demo --out adult"),
        (("init", "my", "run"), "quorate init takes [FOLDER] alone; a name with spaces needs quotes."),
        (("export", "my-run"), "Write for example: quorate export … --to PATH"),
    ],
)
def test_a_wrong_use_says_what_to_type(cli, typed, hint):
    assert cli.refused(2, *typed).strip().splitlines()[-1] == hint


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "no space left on device; free some space on that disk, then type the same command again"),
        (errno.EACCES, "permission denied; get the permission, or let its owner"),
        (errno.ENOENT, "no such file or directory; name a file or folder that exists"),
        (errno.EROFS, "read-only file system; mount that disk for writing"),
        (errno.EXDEV, "invalid cross-device link; mend that, then type the same command again"),
    ],
)
def test_a_refusal_of_the_machine_says_what_to_do_about_it(cli, tmp_path, monkeypatch, number, remedy):
    def refused(*_, **__):
        raise OSError(number, os.strerror(number), str(tmp_path / "there"))

    monkeypatch.setattr("quorate.release.keys.write_atomically", refused)
    said = cli.refused(4, "init", tmp_path / "new")
    assert f"the machine refused at {tmp_path / 'there'}: {remedy}" in said
    assert "free" not in said or number == errno.ENOSPC
