"""Progress: bars where they can be drawn, else few lines, no private number; and how many processes are at work."""

import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
import rich.console

from quorate import LabelPrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.errors import InvalidParameter
from quorate.run import progress as shown
from quorate.run.progress import PlainLines, progress, wanted
from quorate.run.resources import Threads, processes


def lines_of(steps, *, seconds_a_step):
    written = []
    now = [0.0]

    def clock():
        now[0] += seconds_a_step
        return now[0]

    watch = PlainLines(written.append, clock=clock)
    for step in steps:
        watch(*step)
    return written


STEPS = [("teachers", done, 640) for done in range(0, 641, 64)]


def test_in_a_log_there_is_a_line_a_stage_and_at_most_one_every_few_seconds():
    assert lines_of(STEPS, seconds_a_step=0.1) == ["training teachers (640)"]
    assert lines_of(STEPS, seconds_a_step=2.0) == [
        "training teachers (640)",
        "training teachers: 192 of 640, about 14 s left",
        "training teachers: 384 of 640, about 8 s left",
        "training teachers: 576 of 640, about 2 s left",
    ]
    assert lines_of([("labels", 9, 9), ("student", 0, 1), ("student", 1, 1)], seconds_a_step=9.0) == [
        "fitting the student (1)"  # what an earlier process stored is not shown
    ]


class Screen(io.StringIO):
    def __init__(self, *, tty):
        super().__init__()
        self._tty = tty

    def isatty(self):
        return self._tty


@pytest.mark.parametrize("tty", [True, False], ids=["terminal", "log"])
def test_a_terminal_has_bars_with_counts_and_a_log_has_lines(tty, monkeypatch):
    screen = Screen(tty=tty)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as watch:
        assert watch is not None
        for step in STEPS:
            watch(*step)
    written = screen.getvalue()
    assert ("\x1b[" in written) == tty
    assert ("640/640" in written) == tty
    assert ("training teachers (640)" in written) == (not tty)


@pytest.mark.parametrize("tty", [True, False], ids=["said to be a terminal", "not said to be one"])
def test_a_notebook_without_widgets_has_lines(tty, monkeypatch):
    screen = Screen(tty=tty)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(shown, "find_spec", lambda name: None)
    with progress() as watch:
        assert isinstance(watch, PlainLines)
        watch("teachers", 0, 640)
    assert screen.getvalue() == "training teachers (640)\n"


def test_silence_unless_it_is_asked_for():
    with progress(quiet=True) as watch:
        assert watch is None
    assert [wanted(each) for each in (False, 0, True, 1, 10)] == [False, False, True, True, True]
    for wrong in ("yes", -1, None, 0.5):
        with pytest.raises(InvalidParameter, match="verbose must be a whole number >= 0"):
            wanted(wrong)


def fits():
    from tests.estimators.small_task import POOL, SETTINGS, classifier

    settings = {name: value for name, value in SETTINGS.items() if name not in ("n_teachers", "n_jobs")}
    public = {"public": PublicPool(POOL)}
    of_labels = {"n_teachers": 6, "queries": 20, "n_jobs": 1, "allow_hopeless": True, **settings}
    return {
        "teachers": (lambda **how: classifier(queries=20, **how), public),
        "labels": (lambda **how: LabelPrivateClassifier(**of_labels, **how), {}),
        "direct": (lambda **how: PrivateLogisticRegression(**settings, **how), public),
    }


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["teachers", "labels", "direct"])
@pytest.mark.several_fits
def test_an_estimator_is_silent_by_default_and_tells_its_stages_where_asked(name, capsys):
    from tests.estimators.small_task import X, Y

    make, public = fits()[name]
    make().fit(X, Y, **public)
    assert capsys.readouterr() == ("", "")
    make(verbose=True).fit(X, Y, **public)
    out, err = capsys.readouterr()
    assert out == ""
    told = {"direct": ["reading coordinates\n", "gradient rounds ("]}
    for line in told.get(name, ["training teachers (", "releasing labels (20)", "fitting the student (1)"]):
        assert line in err
    assert str(len(X)) not in err
    with pytest.raises(InvalidParameter, match="verbose must be"):
        make(verbose="loud").fit(X, Y, **public)


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
