"""A run that can answer nothing is refused before its folder holds a charge, and goes on where its settings say so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.folder.conftest import charges, edit

HOPELESS = {
    "budget.epsilon": 0.02, "teachers.count": 12, "mechanism.name": "GaussianNoisyMax", "run.allow_hopeless": False
}  # fmt: skip


@pytest.mark.heavy
def test_check_and_run_refuse_it_and_settings_let_it_run(make_run: Any, cli: Any) -> None:
    root = make_run(**HOPELESS)
    for command in ("check", "run"):
        told = cli.refused(2, command, root)
        assert "nothing was spent: the noise of GaussianNoisyMax" in told
        assert "[run] allow_hopeless = true" in told
    assert not (root / "ledger.db").exists()
    edit(root, "allow_hopeless = false", "allow_hopeless = true")
    assert cli("run", root)[0] == 0


@pytest.mark.heavy
def test_a_run_that_was_charged_goes_on_whatever_the_settings_say_now(make_run: Any, cli: Any) -> None:
    """As a run of an earlier version may: what is paid for is not refused."""
    root = make_run(**HOPELESS | {"run.allow_hopeless": True})
    assert cli("run", root)[0] == 0
    edit(root, "allow_hopeless = true\n", "")
    assert cli("run", root)[0] == 0
    assert charges(root) == 1
