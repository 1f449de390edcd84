"""How many worker processes there are: as many as was said, else one for each processor that may be used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quorate.run.resources import processes

TELL = "from quorate.run.resources import processes; print(processes(None), processes(-1), processes(2))"


@pytest.mark.parametrize("usable", [1, 3, 64])
def test_without_a_wish_each_processor_that_may_be_used_has_one(usable: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda: usable)
    assert [processes(wish) for wish in (None, -1, 2)] == [usable, usable, 2]


def test_the_tests_that_do_not_say_it_have_one_worker() -> None:
    """And the processes that they start, which find it in their environment."""
    said = subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "1", "2"]
    assert [processes(wish) for wish in (None, -1, 2)] == [1, 1, 2]
