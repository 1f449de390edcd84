"""How many worker processes there are: as many as was said, else one for each processor that may be used."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from quorate.run.resources import Threads, processes

TELL = "from quorate.run.resources import processes; print(processes(None), processes(-1), processes(2))"


@pytest.mark.parametrize("usable", [1, 3, 64])
def test_without_a_wish_each_processor_that_may_be_used_has_one(usable, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: usable)
    assert [processes(wish) for wish in (None, -1, 2)] == [usable, usable, 2]


def test_the_tests_that_do_not_say_it_have_one_worker():
    """And the processes that they start, which find it in their environment."""
    said = subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "1", "2"]
    assert [processes(wish) for wish in (None, -1, 2)] == [1, 1, 2]


@pytest.mark.parametrize("n", [1, 3])
def test_threads_keep_the_order_hold_few_parts_and_hear_what_their_caller_hears(n):
    """What NumPy warns of may tell of a private row, so that a worker must be as deaf as who asked it."""
    taken = []

    def parts():
        for part in range(50):
            taken.append(part)
            yield part

    def infinite(part):
        return float(np.float64(1.0 + part) / np.float64(0.0))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert list(Threads(n).map(infinite, range(20))) == [np.inf] * 20
    squares = Threads(n).map(lambda part: part * part, parts())
    assert next(squares) == 0
    assert len(taken) <= n + 3
    assert list(squares) == [part * part for part in range(1, 50)]
    with pytest.raises(ZeroDivisionError):
        list(Threads(n).map(lambda part: 1 // part, [1, 0, 1]))
