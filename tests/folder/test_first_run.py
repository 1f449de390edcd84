"""What a first-time user meets: a check that writes nothing, its notes, keys that are gone, settings that changed."""

import errno
import os
import shutil
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from tests.folder.conftest import charges, edit

from quorate.report import Facts

pytestmark = pytest.mark.mostly_heavy


def denied(*_, **__):
    raise PermissionError(13, "Permission denied")


def files(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_check_before_the_first_run_writes_nothing(make_run, cli):
    root = make_run(**{"data.unit": "patient_id"})
    before = files(root)
    code, out, _ = cli("check", root)
    assert (code, files(root)) == (0, before)
    assert "12 teachers; " in out
    assert cli("run", root)[0] == 0
    after = files(root)
    assert cli("check", root)[0] == 0
    assert files(root) == after


@pytest.mark.quick
def test_one_teacher_is_not_several(make_run, cli):
    _, out, _ = cli("check", make_run(**{"teachers.count": 1}))
    assert "  train      1 teacher; " in out


def test_the_check_notes_what_may_not_have_been_meant(make_run, cli):
    root = make_run(**{"data.unit": "patient_id", "data.n_records": 300})
    pool = pl.read_csv(root / "public.csv")
    pool.with_columns(ill=pl.lit("no"), patient_id=pl.lit("P1"), ward=pl.lit("north"), bmi=pl.lit(None)).write_csv(
        root / "public.csv"
    )
    out = cli.ok("check", root)
    for expected in (
        "note       [data] n_records = 300 is more than 10 % off the number of patients in the private table",
        "note       public.csv has the label column 'ill': it is left out",
        "note       public.csv has the id column 'patient_id': it is left out",
        "note       nothing can be learned from column 'bmi' of public.csv: all entries are empty",
        "note       nothing can be learned from column 'ward' of public.csv: all entries have one value",
    ):
        assert " ".join(expected.split()) in out.words, out
    assert "200" not in out  # the true number of patients
    notes = cli.json("check", root)["notes"]  # of the public table alone
    assert {note["code"] for note in notes} >= {"public-has-the-label-column", "public-columns-without-information"}
    assert "10 % off" not in str(notes)


def test_a_model_that_would_be_scored_on_its_own_pool_is_noted(make_run, cli):
    noted = "is [data] public and [data] evaluation: the model is scored on rows that it learns from"
    said = cli("check", make_run(**{"data.public": "evaluation.csv", "data.evaluation": "evaluation.csv"}))[1].words
    assert noted in said
    assert "The words are explained in docs/glossary.md." in said


@pytest.mark.quick
def test_the_check_is_silent_where_all_is_well(make_run, cli):
    root = make_run(**{"data.unit": "patient_id", "data.n_records": 210})
    assert "note " not in cli("check", root)[1]


def test_a_word_for_a_unit_that_no_report_can_print_is_said(make_run, cli):
    root, column = make_run(**{"data.unit": "Patienten_ID", "data.n_records": 210}), "Patienten_ID"
    for name in ("private.csv", "public.csv"):
        table = pl.read_csv(root / name)
        if "patient_id" in table.columns:
            table.rename({"patient_id": column}).write_csv(root / name)
    said = f"note reports call one unit 'patienten', after the column {column!r}; write the word that you want"
    assert said in cli("check", root)[1].words
    edit(root, "[data]", '[data]\nunit_name = "patient"')
    assert "reports call one unit" not in cli("check", root)[1]


@pytest.mark.parametrize("changes", [{}, {"method.by": "direct", "data.n_records": 200}])
def test_the_same_finished_run_publishes_the_same(make_run, cli, changes, monkeypatch):
    root = make_run(**changes)
    cli.ok("run", root)
    public = [root / "public" / name for name in ("facts.json", "report.html", "model_card.md")]
    before = [each.read_bytes() for each in public]
    later = type("Later", (datetime,), {"now": classmethod(lambda cls, zone=None: datetime(2050, 1, 1, tzinfo=zone))})
    monkeypatch.setattr("quorate.folder.methods.datetime", later)
    cli.ok("run", root)
    assert [each.read_bytes() for each in public] == before


def test_votes_in_the_place_of_finished_rounds_are_no_lost_key(make_run, cli):
    root = make_run(**{"method.by": "direct", "data.n_records": 200})
    cli.ok("run", root)
    edit(root, 'by = "direct"', 'by = "votes"')
    for verb in ("check", "run"):
        err = cli(verb, root)[2]
        assert "run.key" not in err
        assert "the settings or files differ from the finished run's" in err.words


@pytest.mark.parametrize("verb", ["run", "ask"])
def test_a_lost_key_of_a_finished_run_is_named(finished_run, cli, verb):
    root = finished_run(**{"mechanism.online_answers": 5})
    (root / "private" / "run.key").unlink()
    more = [root / "public.csv"] if verb == "ask" else []
    assert "private/run.key is missing; restore it from a backup" in cli.refused(4, verb, root, *more)
    assert not (root / "private" / "run.key").exists()
    (root / "public" / "facts.json").unlink()  # charged, and not finished
    assert "private/run.key is missing" in cli(verb, root, *more)[2]
    shutil.rmtree(root / "private")
    for each in [*root.glob("ledger.db*"), *(root / "public").iterdir()]:
        each.unlink()
    assert cli("run", root)[0] == 0  # a folder without a run gets a key of its own


def test_a_seeded_run_never_had_a_key(make_run, cli):
    root = make_run(**{"run.unsafe_noise_seed": 1, "budget.epsilon": 9.0, "mechanism.sigma": 200.0})
    assert cli("run", root)[0] == 0
    edit(root, "unsafe_noise_seed = 1\n", "")
    assert "run.key" not in cli("check", root)[2]


def test_settings_that_changed_after_a_finished_run_are_named(finished_run, cli):
    root = finished_run(**{"mechanism.online_answers": 5})
    edit(root, "count = 12", "count = 13")
    for verb in ("check", "run"):
        said = cli.refused(3, verb, root)
        assert "the settings or files differ from the finished run's, which was charged; put them back" in said
        assert "raise" not in said
    said = cli.refused(4, "ask", root, root / "public.csv")
    assert "differ from the finished run's, so its teachers cannot be asked; put them back" in said
    edit(root, "count = 13", "count = 12")
    assert cli("run", root)[0] == 0
    assert charges(root) == 1


@pytest.mark.quick
def test_settings_say_what_to_write(make_run, cli, monkeypatch):
    root = make_run(**{"data.private": None})
    assert '[data] private is required. The rows to protect. Example: private = "visits.csv"' in cli("check", root)[2]
    (root / "quorate.toml").write_text("[data]\nprivate = visits.csv\n")
    assert "; texts need quotes" in cli("check", root)[2]
    assert "write one: quorate init" in cli.refused(4, "run", root / "nowhere")
    (root / "quorate.toml").write_bytes(b"\xff\xfe")
    assert "cannot be read as UTF-8" in cli.refused(4, "run", root)
    (root / "quorate.toml").write_text("[data\n")
    said = cli("check", root)[2]
    assert f"{root / 'quorate.toml'} is not valid TOML: " in said
    assert "quotes" not in said
    for written, told in (("1,0", "decimals are written with a point: 1.0"), ("one", "; a number is expected")):
        (root / "quorate.toml").write_text(f"[budget]\nepsilon = {written}\n")
        assert told in cli("check", root)[2]

    for line, told in (
        ("a = [01.01.2023, 31.12.2024]", "; dates are written as 2023-01-31"),
        (
            "Größe (cm) = [0, 1]",
            '; a name with blanks, umlauts or other signs stands in quotation marks: "Größe (cm)" =',
        ),
        ('private = "C:\\Daten\\p.csv"', "; a path is written with forward slashes, or in single quotes"),
        ('private = "p.csv', "(at line 2, column 17); a quotation mark of this line is not closed"),
        ("n_records = 1\nn_records = 2", "; n_records stands there twice: keep one of the lines"),
        ("n_records = 3.000.000", "; whole numbers are written without marks: 3000"),
        ("class_shares = {ja = 0,05}", "; decimals are written with a point: 1.0"),
    ):
        (root / "quorate.toml").write_text(f"[data]\n{line}\n", encoding="utf-8")
        assert told in cli("check", root)[2], line

    monkeypatch.setattr(Path, "read_text", denied)
    assert f"no permission to read {root / 'quorate.toml'}" in cli("check", root)[2]


def read_only(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize("refuses", [denied, read_only])
def test_a_ledger_that_may_not_be_written_charges_nothing(finished_run, cli, monkeypatch, refuses):
    root = finished_run()

    monkeypatch.setattr("quorate.ledger.ledger_files.LedgerFiles._take_lock", refuses)
    for arguments in (("status", root), ("ledger", "show", root), ("ledger", "verify", root)):
        said = cli.refused(4, *arguments)
        assert ("no permission" in said) == ("ask their owner" in said) == (refuses is denied)
        assert ("the file system of the ledger" in said) == ("mount it for writing" in said) == (refuses is read_only)
        assert said.strip().endswith(("nothing was charged)", "nothing more was charged)"))


SCALED = "private.csv looks scaled by what was fitted on all of its rows, and public.csv does not: columns 'age', 'bmi'"


def test_a_scaler_in_front_of_the_private_table_is_told_to_the_owner_and_to_nobody_else(make_run, cli, caplog, recwarn):
    root = make_run()
    assert "scaled" not in cli("check", root)[1]
    numbers = [(pl.col(name) - pl.col(name).mean()) / pl.col(name).std(ddof=0) for name in ("age", "bmi")]
    pl.read_csv(root / "private.csv").with_columns(numbers).write_csv(root / "private.csv")
    out = cli.ok("check", root)
    assert SCALED in out.words
    assert "put the step into the teacher (a Pipeline)" in out.words

    elsewhere = [cli("check", root, "--json")[1]]
    code, out, said = cli("run", root)
    assert code == 0
    assert SCALED in said  # before the charge, on the owner's terminal alone
    elsewhere += [cli("run", root, "--json")[2], out, caplog.text, *(str(warned.message) for warned in recwarn)]
    elsewhere += [cli("status", root, "--json")[1], cli("report", root, "--json")[1]]
    elsewhere += [path.read_bytes().decode("utf-8", "replace") for path in (root / "public").iterdir()]
    assert len([text for text in elsewhere if text]) > 8
    for text in elsewhere:
        assert "looks scaled" not in text
        assert "differently scaled" not in text
        assert "private-columns-were-scaled" not in text

    assert cli("report", root, "--edition", "internal")[0] == 0
    page = (root / "private" / "report-internal.html").read_text(encoding="utf-8")
    assert "Private.csv looks scaled" in page


@pytest.mark.parametrize("table", ["public.csv", "evaluation.csv"])
def test_ids_of_private_rows_in_a_public_table_are_said_before_the_charge(make_run, cli, table):
    root = make_run(**{"data.unit": "patient_id", "data.n_records": 200, "data.evaluation": "evaluation.csv"})
    said = f"rows of {table} carry ids of private.csv"
    shown = pl.read_csv(root / table)
    for ids, noted in ((["X1"] * len(shown), False), (["P0007", None] * (len(shown) // 2), True)):
        shown.with_columns(patient_id=pl.Series(ids)).write_csv(root / table)
        checked = cli("check", root)[1].words
        assert (f"caution {said}" in checked, checked.startswith("Everything fits, with caution")) == (noted, noted)
    assert "carry ids" not in cli("check", root, "--json")[1]
    code, out, told = cli("run", root)
    assert (code, said in told, "carry ids" in out) == (0, True, False)
    for path in (root / "public").iterdir():
        assert b"carry ids" not in path.read_bytes()


def test_a_direct_run_compares_no_ids(make_run, cli):
    direct = {"method.by": "direct", "method.rounds": 2, "data.unit": "patient_id", "data.n_records": 200}
    root = make_run(**direct)
    pl.read_csv(root / "public.csv").with_columns(patient_id=pl.lit("P0007")).write_csv(root / "public.csv")
    said = "ids in column 'patient_id' of public.csv are NOT compared with those of private.csv"
    assert said in cli("check", root)[1].words
    for command in ("check", "run"):
        assert "carry ids" not in "".join(map(str, cli(command, root)))


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_dates_as_text_are_pointed_out_by_the_public_table_alone(make_run, cli, by):
    def dated(name, there):
        root = make_run(name, **({"method.by": by} if by == "direct" else {}))
        for table, entry in (("private.csv", "01.03.2024"), ("public.csv", there)):
            rows = pl.read_csv(root / table)
            two = [entry, "30.11.2023" if "." in entry else "later"]
            rows.with_columns(seen=pl.Series(two * (len(rows) // 2))).write_csv(root / table)
        return cli.ok("check", root)

    out = dated("dates", "01.03.2024")
    assert "Everything fits, with caution" in out
    assert "caution    column 'seen' of public.csv holds dates or times as text" in out
    assert "holds dates" not in dated("words", "not yet")  # dates in the private table alone


def test_a_delta_that_nobody_compared_is_said_not_to_be(make_run, cli):
    out = cli("check", make_run())[1]
    said = "note delta = 1e-5 was not compared with 1 / n, since n, the number of records, is not known"
    assert said in out.words
    assert "not compared" not in cli("check", make_run("declared", **{"data.n_records": 400}))[1]


def test_too_many_teachers_are_refused_with_what_would_do(make_run, cli):
    said = cli.refused(4, "check", make_run(**{"data.unit": "patient_id", "teachers.count": 300}))
    assert "[teachers] count = 300 is more than there are patients in the private table" in said
    assert 'Take [teachers] count = "auto"' in said
    assert "200" not in said  # how many there are


def test_after_another_epsilon_what_is_refused_says_how_to_go_on_and_that_goes_on(finished_run, cli):
    root = finished_run(**{"mechanism.online_answers": 5})
    settings, first = root / "quorate.toml", (root / "quorate.toml").read_text()
    onward = f"quorate ledger open {root} --raise-budget REASON; then: quorate run {root}"

    settings.write_text(first.replace("epsilon = 4.0", "epsilon = 5.0"))
    said = cli.refused(4, "run", root)
    assert "[budget] epsilon is 5, and the ledger was opened with 4; put epsilon = 4 back, or" in said
    assert "[run] epsilon and [run] delta" in said
    assert onward in said
    settings.write_text(first.replace("n_jobs = 1", "n_jobs = 1\nepsilon = 1.0"))
    said = cli.refused(3, "run", root)
    assert "let [run] epsilon and [run] delta be what is left at most" in said
    assert onward in said
    settings.write_text(first.replace("epsilon = 4.0", "epsilon = 3.0"))
    assert "A smaller part of it for one run is [run] epsilon" in cli("run", root)[2]

    larger = first.replace("epsilon = 4.0\ndelta = 1e-05", "epsilon = 5.0\ndelta = 2e-05")
    assert larger != first
    settings.write_text(larger.replace("n_jobs = 1", "n_jobs = 1\nepsilon = 1.0\ndelta = 1e-05"))
    assert cli("ledger", "open", root, "--raise-budget", "a second release")[0] == 0
    assert cli("run", root)[0] == 0

    spending = Facts.from_json((root / "public" / "facts.json").read_text()).spending
    assert spending.run_epsilon == pytest.approx(1.0, rel=1e-6)
    assert spending.run_delta == 1e-5
    assert spending.spent_epsilon == pytest.approx(5.0, rel=1e-6)
    page = (root / "public" / "report.html").read_text()
    assert "The charge of this run, ε 1 of the ε 5 that all runs on this ledger were charged together" in page
    assert "At δ 10⁻⁵, worked out before any private row is seen." in page


def test_what_was_stored_is_not_shown_as_work(make_run, cli):
    root = make_run(**{"mechanism.online_answers": 3})
    said = cli("run", root)[2]
    for stage in ("training teachers (12)", "counting votes", "releasing labels", "fitting the student"):
        assert stage in said
    said = cli("run", root)[2]
    for stage in ("training teachers", "counting votes", "releasing labels"):
        assert stage not in said
    assert "fitting the student" in said


@pytest.mark.heavy
def test_a_check_of_a_finished_run_speaks_of_it_and_not_of_a_new_one(make_run, finished_run, cli):
    assert "is finished" not in cli.ok("check", make_run("begun"))
    root = finished_run()
    out = cli.ok("check", root).words
    assert f"The run in {root} is finished, with these settings and files" in out
    assert "would charge nothing, and write its model and report again" in out
    assert f"Nothing was charged. Next: quorate status {root}" in out
    assert cli.json("check", root)["finished"] is True
