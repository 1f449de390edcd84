"""Digits by writer, in small: votes and direct methods on the same rows, where the unit is a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.group import main
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.experiments import mnist, reproduce_writers
from quorate.experiments import writers as module
from quorate.experiments.noisy_gradient_descent import PLAIN
from quorate.experiments.writers import BEST, DEFAULT, FIXED, METHODS


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_PUBLIC", 300)
    monkeypatch.setattr(mnist, "N_PUBLIC", 300)


@pytest.mark.faults
def test_every_method_runs_on_made_up_writers(folder: Path) -> None:
    found = reproduce_writers(epsilons=(16.0,), files=folder)
    told = {row.method: row for row in found.rows}
    assert tuple(told) == METHODS
    assert told[DEFAULT].n_queries is not None
    assert told[FIXED].accuracy_mean <= told[BEST].accuracy_mean
    assert told[BEST].accuracy_mean > 0.5
    assert told[PLAIN].epsilon == 16.0
    assert "100 writers" in found.title


def test_chosen_lines_alone_are_made_and_the_command_names_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "writers", "--epsilon", "4", "--method", PLAIN, "--files", str(folder), "--out", str(out)])
    assert stop.value.code == 0
    assert "ε = 4" in capsys.readouterr().out
    assert f"--epsilon=4 '--method={PLAIN}'" in (out / "writers.txt").read_text()


def test_what_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PreconditionFailed, match=r"writers\.npz"):
        reproduce_writers(files=tmp_path)
    with pytest.raises(InvalidParameter, match="method"):
        reproduce_writers(methods=("guess",), files=tmp_path)
