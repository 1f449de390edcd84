"""A run whose teachers are a command: settings, resuming, later questions, and what is refused."""

import io
import shutil
import sys

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import edit
from tests.folder.test_resume import kill_when

from quorate.folder.batch import ask, load_run
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute
from quorate.folder.settings import read_settings
from quorate.folder.status import _votes_stored

pytestmark = pytest.mark.mostly_heavy

IN_TWO_STEPS = """
import csv, pathlib, sys
step, *paths = sys.argv[1:]
if step == "train":
    with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
        calls.write("train\\n")
    rows = list(csv.DictReader(open(paths[0])))
    ages = {label: [float(row["age"]) for row in rows if row["label"] == label] for label in ("no", "yes")}
    middle = sum(sum(each) / len(each) for each in ages.values()) / 2
    pathlib.Path(paths[1], "cut").write_text(str(middle))
else:
    cut = float(pathlib.Path(paths[0], "cut").read_text())
    with open(paths[2], "w") as votes:
        for row in csv.DictReader(open(paths[1])):
            votes.write("yes\\n" if float(row["age"]) > cut else "no\\n")
"""


COUNT = 6


def taught_by(program, make_run, **changes):
    """A run whose teachers are a command that runs this program."""
    command = [sys.executable, "-S", "-E", "teach.py"]
    root = make_run(**{"teachers.command": command, "teachers.count": COUNT, **changes})
    (root / "teach.py").write_text(program, encoding="utf-8")
    return root


def in_two_steps(make_run):
    return taught_by(IN_TWO_STEPS, make_run, **{"teachers.keeps_model": True, "mechanism.online_answers": 3})


def trained(root):
    return len((root / "calls").read_text().split()) if (root / "calls").exists() else 0


def test_a_run_asks_a_command_and_asks_it_again_later_without_training(make_run):
    root = in_two_steps(make_run)
    made = execute(load_run(root), command="test")

    assert any("a call of a command" in each for each in made.guarantee.caveats)
    first = trained(root)
    assert first >= 6 + 1  # and some on public rows
    assert not list((root / "private").glob(".call-*"))
    pl.DataFrame({"age": [91, 20], "bmi": [25.0, 26.0], "ward": ["west", "north"]}).write_csv(root / "new.csv")
    batch = load_run(root)
    before = trained(root)
    answers = ask(batch, root / "new.csv")
    assert len(answers.answers) == 2
    assert trained(root) == before


ANEW = """
import csv, os, pathlib, sys
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    calls.write(os.environ["QUORATE_SEED"] + "\\n")
rows = list(csv.DictReader(open(sys.argv[1])))
ages = {label: [float(row["age"]) for row in rows if row["label"] == label] for label in ("no", "yes")}
middle = sum(sum(each) / len(each) for each in ages.values()) / 2
with open(sys.argv[3], "w") as votes:
    for row in csv.DictReader(open(sys.argv[2])):
        votes.write("yes\\n" if float(row["age"]) > middle else "no\\n")
"""


def trained_anew(make_run, **changes):
    """A run whose teachers are calls that leave nothing but votes, and that is known by its key already."""
    root = taught_by(ANEW, make_run, **changes)
    load_run(root)
    (root / "calls").write_text("")  # without the rehearsal's
    return root


def seeds(root):
    """By which teachers' calls are told apart; those of the rehearsals are small."""
    return [seed for seed in (root / "calls").read_text().split() if int(seed) > 1000]


def broken_off(root, at):
    """Run it until so many teachers have voted, and no further."""

    def interrupt(stage, done, total):
        if stage == "calls" and done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(load_run(root), command="test", watch=interrupt)


@pytest.mark.parametrize("keeps_model", [False, True])
def test_training_is_told_where_it_is_done(make_run, cli, keeps_model):
    """A call that trains and votes at once has trained nothing while rows are dealt out."""
    root = in_two_steps(make_run) if keeps_model else trained_anew(make_run)
    _, _, said = cli("run", root)
    assert ("training teachers (6)" in said, "counting votes (6)" in said) == (keeps_model, keeps_model)
    assert ("dealing out rows (6)" in said, "training and voting (6)" in said) == (not keeps_model, not keeps_model)


@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("n_jobs", [2, 1])
def test_a_run_that_was_broken_off_calls_only_for_votes_that_it_has_not(make_run, tmp_path, n_jobs, monkeypatch):
    monkeypatch.setattr("quorate.voting.kept_votes.ROUNDS", 2)
    monkeypatch.setattr("quorate.voting.kept_votes.BLOCK", 100)  # of 150 queries: two calls a teacher
    monkeypatch.setattr("quorate.ensemble.votes.BLOCK", 100)
    root = trained_anew(make_run, **{"run.n_jobs": n_jobs})
    whole = shutil.copytree(root, tmp_path / "whole")
    execute(load_run(whole), command="test")
    broken_off(root, 3)
    before = seeds(root)
    assert len(before) == (6 if n_jobs == 1 else 8)
    kept = list((root / "private").glob("called-*.stage"))
    assert len(kept) == len(before) / 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    execute(load_run(root), command="test")
    assert sorted(seeds(root)) == sorted(seeds(whole))
    assert len(seeds(root)) == 2 * COUNT
    votes = (root / "private" / "votes.stage").read_bytes()
    assert votes == (whole / "private" / "votes.stage").read_bytes()
    monkeypatch.setattr("quorate.voting.kept_votes.are_calls", lambda task: False)  # without a copy
    (whole / "private" / "votes.stage").unlink()
    shutil.rmtree(whole / "public")
    execute(load_run(whole), command="test")
    assert votes == (whole / "private" / "votes.stage").read_bytes()


def test_a_killed_run_goes_on_with_the_calls_that_were_done(make_run, cli):
    root = trained_anew(make_run)
    (root / "teach.py").write_text(f"import time\ntime.sleep(0.3)\n{ANEW}", encoding="utf-8")
    kill_when(root, (root / "private" / "called-00002.stage").exists, 0.0)
    stored = len(list((root / "private").glob("called-*.stage")))
    assert stored >= 3
    assert f"· votes: {stored} of {COUNT} teachers" in cli("status", root)[1]
    assert cli.json("status", root)["votes_stored"] == stored
    (root / "calls").write_text("")
    execute(load_run(root), command="test")
    assert len(seeds(root)) == COUNT - stored
    assert "✓ votes\n" in cli("status", root)[1]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"data.n_records": 400}, 3),
        ({"data.n_records": 400, "teachers.partition": "unit"}, 0),
        ({"data.n_records": COUNT}, 0),  # each unit may have a teacher of its own: the stages would count them
        ({}, 0),
    ],
)
def test_votes_that_are_kept_are_counted_where_that_counts_no_units(make_run, settings, told):
    root = make_run(**{"data.unit": "who", "teachers.command": ["teach"], "teachers.count": COUNT, **settings})
    (root / "private").mkdir(exist_ok=True)
    for number in range(3):
        (root / "private" / f"called-{number:05d}.stage").write_bytes(b"votes")
    assert _votes_stored(RunFolder(root), read_settings(root / "quorate.toml")) == told


@pytest.mark.heavy_cases(3)  # a file, a setting, rows
@pytest.mark.parametrize("change", ["script", "timeout", "count", "shards", "questions"])
def test_what_was_called_for_something_else_is_called_anew(make_run, change):
    root = trained_anew(make_run)
    broken_off(root, 3)
    (root / "calls").write_text("")
    edits = {
        "timeout": ("[teachers]", "[teachers]\ntimeout = 77.0"),
        "count": (f"count = {COUNT}", f"count = {COUNT - 1}"),
        "questions": ('queries = "all"', "queries = 20"),
    }
    if change in edits:
        edit(root, *edits[change])
    elif change == "script":
        (root / "teach.py").write_text(ANEW + "# another\n", encoding="utf-8")
    else:
        (root / "private" / "run.key").write_bytes(bytes(32))
    execute(load_run(root), command="test")
    assert len(seeds(root)) == COUNT - (change == "count")


def test_a_call_that_fails_is_kept_as_an_abstention_and_not_made_a_third_time(make_run):
    root = trained_anew(make_run)
    fails = "if int(os.environ['QUORATE_SEED']) > 1000: raise SystemExit(3)\n"  # on private rows alone
    (root / "teach.py").write_text(ANEW.replace("rows =", fails + "rows ="), encoding="utf-8")
    broken_off(root, 3)
    assert len(seeds(root)) == 2 * 3
    execute(load_run(root), command="test")
    assert len(seeds(root)) == 2 * COUNT
    _, _, content = (root / "private" / "votes.stage").read_bytes().partition(b"\n")
    assert np.load(io.BytesIO(content)).sum() == 0


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("verb", ["check", "status", "run", "plan", "ask", "report", "export"])
def test_a_folder_of_sites_is_sent_to_its_command(tmp_path, cli, verb):
    (tmp_path / "quorate.toml").write_text("[[sites]]\nname = 'north'\n")
    (tmp_path / "rows.csv").write_text("age\n3\n")
    more = {"ask": [tmp_path / "rows.csv"], "export": ["--to", tmp_path / "outbox"]}.get(verb, [])
    code, _, err = cli(verb, tmp_path, *more)
    assert code in (2, 4)
    assert f"quorate votes combine {tmp_path}" in err
    assert len(err.splitlines()) == 2
