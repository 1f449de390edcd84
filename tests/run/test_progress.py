"""Progress: bars where they can be drawn, else few lines; silence unless it is asked for; no private number."""

import io

import pytest
import rich.console

from quorate import LabelPrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.errors import InvalidParameter
from quorate.run import progress as shown
from quorate.run.progress import PlainLines, progress, wanted


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
    """What is written to, and whether it is a terminal."""

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
