"""A finished run, and packages of it, made once for all tests."""

import shutil

import pytest
from tests.folder.conftest import cli, write_run

from quorate.export.package import export_package
from quorate.folder.batch import load_run
from quorate.folder.methods import execute

__all__ = ["cli"]


@pytest.fixture(scope="session")
def votes_run(tmp_path_factory):
    """A run of votes on a table with words, numbers and missing values, scored on public labels."""
    root = write_run(tmp_path_factory.mktemp("votes") / "ward-7", n=300, m=80, **{"data.evaluation": "evaluation.csv"})
    lines = (root / "public.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    cells[3][1] = cells[9][1] = cells[5][2] = cells[6][2] = ""  # missing numbers and words
    (root / "public.csv").write_text("\n".join(",".join(each) for each in cells) + "\n")
    execute(load_run(root), command="quorate run")
    return root


@pytest.fixture
def run(votes_run, tmp_path):
    return shutil.copytree(votes_run, tmp_path / "ward-7")


@pytest.fixture(scope="session")
def made(votes_run, tmp_path_factory):
    return export_package(votes_run, tmp_path_factory.mktemp("package") / "ward-7.zip", kind="tre", model="both")
