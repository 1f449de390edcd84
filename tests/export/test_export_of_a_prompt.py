"""A run of prompts leaves in every format, and what its prompt may say is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ensemble.teachers.prompted.stand_in import endpoint
from tests.export.test_check_export import Files, edited, fails, fitted
from tests.folder.test_prompted import write

from quorate.export.check import check_export, check_files
from quorate.export.container import read_package
from quorate.export.contents import MEANING, NEEDED, OPTIONAL
from quorate.export.package import export_package
from quorate.findings import Outcome
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.folder.published import NAMES


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with endpoint() as there:
        root = write(tmp_path_factory.mktemp("prompted") / "run", there.url)
        execute(load_run(root), command="quorate run")
    return root


@pytest.fixture(scope="module")
def package(prompted: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = export_package(prompted, tmp_path_factory.mktemp("package") / "run.zip", kind="tre")
    assert check_export(made.path).passed is True
    return read_package(made.path)


def test_every_name_that_a_run_publishes_under_is_known() -> None:
    for needed in NEEDED.values():
        assert set(NAMES) <= needed | OPTIONAL | {"model_card.md"}
    assert set(NAMES) <= MEANING.keys()


@pytest.mark.heavy
def test_it_leaves_in_every_format(prompted: Path, package: Files, tmp_path: Path, cli: Any) -> None:
    assert "prompt.json" in package
    assert export_package(prompted, tmp_path / "registry", kind="registry").files.count("prompt.json") == 1
    assert cli("export", prompted, "--to", tmp_path / "plain")[0] == 0
    assert cli("check-export", tmp_path / "registry")[0] == 0
    assert fails(tmp_path / "plain") == set(), "its prices cannot be checked, as those of no plain export can"


@pytest.mark.heavy
def test_the_cover_sheet_says_what_it_is(package: Files) -> None:
    sheet = package["COVER-SHEET.md"].decode()
    assert "prompt.json holds a few public rows as text, with their released labels" in sheet
    assert "| `prompt.json` | the student as a prompt" in sheet


@pytest.mark.heavy
def test_a_prompt_that_says_something_else_is_seen(package: Files) -> None:
    """By the values, whatever the receipt says; another row or label is seen by the sum in the receipt."""
    changes = {
        "another promise": lambda tree: tree["guarantee"].update(epsilon=0.1),
        "other classes": lambda tree: tree["classes"].append("perhaps"),
        "more examples than labels": lambda tree: tree.update(examples=tree["examples"] * 100),
        "another form": lambda tree: tree.update(format="quorate prompt 2"),
    }
    for what, change in changes.items():
        files = dict(package)
        edited(files, "prompt.json", change)
        edited(files, "receipt.json", lambda tree: tree["published"].pop("prompt.json"))
        found = {each.code: each for each in check_files(fitted(files)).checks}
        assert found["values"].outcome is Outcome.FAILED, what
        assert found["values"].evidence.startswith("prompt.json "), what
        assert found["receipt"].outcome is Outcome.FAILED, "the run did not publish it"
    files = dict(package)
    edited(files, "prompt.json", lambda tree: tree["examples"][0].update(row=json.dumps("a private row")))
    assert "receipt" in {each.code for each in check_files(fitted(files)).checks if each.outcome is Outcome.FAILED}
