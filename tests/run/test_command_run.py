"""A run whose teachers are a command: settings, resuming, later questions, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.pipeline.models import teacher_of
from quorate.run.batch import execute, load_run
from quorate.run.online import ask
from quorate.run.settings import read_settings

IN_TWO_STEPS = """
import csv, pathlib, sys
step, *paths = sys.argv[1:]
if step == "train":
    with open({calls!r}, "a") as calls:
        calls.write("train\\n")
    rows = list(csv.DictReader(open(paths[0])))
    ages = {{label: [float(row["age"]) for row in rows if row["label"] == label] for label in ("no", "yes")}}
    middle = sum(sum(each) / len(each) for each in ages.values()) / 2
    pathlib.Path(paths[1], "cut").write_text(str(middle))
else:
    cut = float(pathlib.Path(paths[0], "cut").read_text())
    with open(paths[2], "w") as votes:
        for row in csv.DictReader(open(paths[1])):
            votes.write("yes\\n" if float(row["age"]) > cut else "no\\n")
"""


def command_run(make_run: Any, **changes: Any) -> Path:
    root: Path = make_run(**{
        "teachers.command": [sys.executable, "-S", "-E", "teach.py"], "teachers.keeps_model": True, "teachers.count": 6,
        "mechanism.online_answers": 3, **changes,
    })  # fmt: skip
    (root / "teach.py").write_text(IN_TWO_STEPS.format(calls=str(root / "calls")), encoding="utf-8")
    return root


def trained(root: Path) -> int:
    return len((root / "calls").read_text().split()) if (root / "calls").exists() else 0


def test_a_run_asks_a_command_and_asks_it_again_later_without_training(make_run: Any) -> None:
    root = command_run(make_run)
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


def test_a_changed_script_is_another_teacher(make_run: Any) -> None:
    root = command_run(make_run)
    before = load_run(root).charge_key
    assert load_run(root).charge_key == before
    with (root / "teach.py").open("a", encoding="utf-8") as file:
        file.write("# another\n")
    assert load_run(root).charge_key != before


def test_a_script_that_fails_on_public_rows_is_refused_with_its_words(make_run: Any, cli: Any) -> None:
    root = command_run(make_run)
    (root / "teach.py").write_text("raise SystemExit('no such column: blood')\n", encoding="utf-8")
    code, _, err = cli("check", root)

    assert code == 2
    assert "exit code 1; it printed: no such column: blood" in err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"teachers.command": 3}, "[teachers] command must be a program and its arguments"),
        ({"teachers.command": []}, "[teachers] command must be a program and its arguments"),
        ({"teachers.model": "forest"}, "[teachers] model does not go with command"),
        ({"teachers.shots": 3}, "[teachers] shots does not go with command"),
        ({"teachers.timeout": 0}, "[teachers] timeout must be a number > 0"),
        ({"teachers.files": "xls"}, '[teachers] files'),
        ({"teachers.keeps_model": "yes"}, "[teachers] keeps_model must be true or false"),
        ({"teachers.environment": 3}, "[teachers] environment must name"),
        ({"teachers.command": None}, "[teachers] keeps_model is for teachers that are a command"),
        (
            {"method.by": "auto", "teachers.count": None, "mechanism.queries": None},
            "a command is not tried out so often",
        ),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(make_run: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_settings(command_run(make_run, **changes) / "quorate.toml")
    assert said in str(refused.value)


def test_a_prompt_without_a_model_says_what_to_write(make_run: Any) -> None:
    root = make_run(**{"teachers.endpoint": "http://127.0.0.1:8000/v1"})
    with pytest.raises(InvalidParameter, match=r"\[teachers\] model is required. .* Example: model = "):
        read_settings(root / "quorate.toml")


@pytest.mark.parametrize("verb", ["check", "status", "run", "plan", "ask", "report", "export"])
def test_a_folder_of_sites_is_sent_to_its_command(tmp_path: Path, cli: Any, verb: str) -> None:
    (tmp_path / "quorate.toml").write_text("[[sites]]\nname = 'north'\n")
    (tmp_path / "rows.csv").write_text("age\n3\n")
    more = {"ask": [tmp_path / "rows.csv"], "export": ["--to", tmp_path / "outbox"]}.get(verb, [])
    code, _, err = cli(verb, tmp_path, *more)
    assert code in (2, 4)
    assert f"quorate votes combine {tmp_path}" in err
    assert len(err.splitlines()) == 2


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreconditionFailed, match="no program 'Rscript-that-nobody-has'"):
        teacher_of("logistic", {"command": "Rscript-that-nobody-has teach.R"}, folder=tmp_path)
