"""A finished run, in its folder or exported, is a fitted estimator: it predicts, asks, tells its guarantee."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.folder.conftest import entries, visits, write_run

import quorate
from quorate.deferred import skops
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, PreconditionFailed
from quorate.estimators.finished_run import FinishedRun, _declared_classes
from quorate.export.package import export_files
from quorate.folder.batch import ask, load_run
from quorate.folder.methods import execute, read_run
from quorate.folder.published import read_facts

NEW, TRUTH = visits(60, seed=9)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run of teachers that kept answers back, what was exported from it, and a direct run."""
    folder = tmp_path_factory.mktemp("runs")
    teachers = write_run(folder / "teachers", **{"mechanism.online_answers": 6, "budget.epsilon": 40.0})
    execute(load_run(teachers), command="quorate run")
    export_files(teachers, folder / "outbox")
    direct = write_run(
        folder / "direct",
        **{"method.by": "direct", "teachers.count": None, "mechanism.queries": None, "run.n_jobs": None},
    )
    execute(read_run(direct), command="quorate run")
    return {"teachers": teachers, "outbox": folder / "outbox", "direct": direct}


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["teachers", "outbox", "direct"])
def test_it_predicts_and_tells_what_the_run_promised(name, runs, tmp_path):
    run, epsilon = quorate.load(runs[name]), 4 if name == "direct" else 40
    assert run.score(NEW, TRUTH) > 0.7
    assert run.classes_.tolist() == ["no", "yes"]
    assert run.predict_proba(NEW).shape == (60, 2)
    assert run.guarantee_.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert '<html lang="fr"' in run.report(tmp_path / "rapport.html", language="fr").read_text(encoding="utf-8")
    page = run.report(tmp_path / "report.html").read_text()
    assert page == (runs["teachers" if name == "outbox" else name] / "public" / "report.html").read_text()
    assert f"guarantee   ε ≤ {epsilon}" in run.summary()
    assert f"guarantee: ε ≤ {epsilon}" in repr(run)
    assert "script" not in run._repr_html_()


@pytest.mark.heavy
def test_it_asks_the_teachers_as_the_command_does_and_the_next_one_remembers(runs, tmp_path):
    root = Path(shutil.copytree(runs["teachers"], tmp_path / "run"))
    run, before = quorate.load(root), entries(root)
    assert "left: 6 answers" in repr(run)
    told = run.ask(NEW[:4])
    assert set(told) <= {"no", "yes", None}
    assert "left: 2 answers" in repr(run)
    after = entries(root)
    assert after > before
    again = quorate.load(str(root))
    assert again.ask(NEW[:4]) == told
    assert entries(root) == after
    NEW[:4].write_csv(tmp_path / "new.csv")
    assert ask(load_run(root), tmp_path / "new.csv").answers == told  # the command's own way
    with pytest.raises(BudgetExhausted, match="ask about 2 new rows at most"):
        again.ask(NEW[10:20])
    with pytest.raises(DataRefused, match="lacks the column"):
        again.ask(NEW.drop("ward"))
    assert read_facts(root).spending.answers_left == 2


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "said"), [("outbox", "it was exported"), ("direct", "the direct method has no teachers")]
)
def test_where_there_are_no_teachers_asking_says_so(name, said, runs):
    with pytest.raises(PreconditionFailed, match=said) as refused:
        quorate.load(runs[name]).ask(NEW[:1])
    assert refused.value.charged == "nothing was charged"


@pytest.mark.heavy
def test_a_copy_opens_the_run_again_and_holds_no_private_row(runs, tmp_path):
    root = Path(shutil.copytree(runs["teachers"], tmp_path / "run"))
    run = quorate.load(root)
    run.ask(NEW[:1])
    copied = pickle.loads(pickle.dumps(run))  # noqa: S301
    assert copied._opened is None
    assert (copied.predict(NEW) == run.predict(NEW)).all()
    assert copied.ask(NEW[:1]) == run.ask(NEW[:1])
    assert (clone(run).predict(NEW) == run.predict(NEW)).all()
    unopened = pickle.loads(pickle.dumps(clone(run)))  # noqa: S301
    assert "not fitted" in unopened._repr_mimebundle_()["text/html"]
    with pytest.raises(PreconditionFailed, match="is fitted already"):
        run.fit(NEW, TRUTH)


def test_a_file_that_was_changed_is_refused(runs, tmp_path):
    root = Path(shutil.copytree(runs["teachers"], tmp_path / "run"))
    outbox = Path(shutil.copytree(runs["outbox"], tmp_path / "outbox"))
    for folder in (root / "public", outbox):
        with (folder / "student.skops").open("ab") as file:
            file.write(b" ")
    with pytest.raises(PreconditionFailed, match="is not what this run wrote there"):
        quorate.load(root)
    with pytest.raises(PreconditionFailed, match="is not what was exported"):
        quorate.load(outbox)
    manifest = json.loads((outbox / "manifest.json").read_text())
    del manifest["sha256"]["facts.json"]
    (outbox / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(PreconditionFailed, match=r"holds no facts\.json with its sum"):
        quorate.load(outbox)


def test_what_is_no_run_is_said_in_a_line(runs, tmp_path):
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "student.skops").write_text("")
    (tmp_path / "empty").mkdir()
    unfinished = write_run(tmp_path / "unfinished")
    for path, error, said in (
        (tmp_path / "none", PreconditionFailed, "there is no folder"),
        (tmp_path / "none.skops", PreconditionFailed, r"there is no folder .*none\.skops; give the folder"),
        (tmp_path / "file.txt", PreconditionFailed, "is a file; give the folder of a run"),
        (tmp_path / "student.skops", PreconditionFailed, r"is a file, which skops.io.load\(path\) opens; give"),
        (tmp_path / "empty", PreconditionFailed, "is neither the folder of a run"),
        (runs["teachers"] / "public", PreconditionFailed, "is the public side of a run; give the run's folder"),
        (unfinished, PreconditionFailed, "has no finished run yet"),
        (5, InvalidParameter, "path must be the folder of a run, got int"),
    ):
        with pytest.raises(error, match=said) as refused:
            quorate.load(path)
        assert "\n" not in str(refused.value)


def test_a_student_of_unknown_parts_is_opened_where_they_are_named(runs, monkeypatch):
    monkeypatch.setattr(skops.io, "get_untrusted_types", lambda data: ["my.Student"])
    with pytest.raises(PreconditionFailed, match=r"holds the types my\.Student.* name them in trusted="):
        quorate.load(runs["teachers"])
    run = quorate.load(runs["teachers"], trusted=["my.Student"])
    assert isinstance(run, FinishedRun)
    assert not isinstance(run.student_, LogisticRegression) or run.student_.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("names", "known", "classes"),
    [
        (("a", "b", "c"), ["a", "c"], ["a", "b", "c"]),
        (("10", "3", "-1"), [3, 10], [10, 3, -1]),
        (("0.5", "2.0"), [2.0], [0.5, 2.0]),
        (("no", "yes"), ["no", "yes"], ["no", "yes"]),
        (("False", "True"), [True], [False, True]),
        (("1", "many"), [1], [1]),  # of two types: those that the model knows
    ],
)
def test_a_class_that_votes_never_released_is_declared_all_the_same(names, known, classes):
    assert _declared_classes(names, np.asarray(known)).tolist() == classes
