"""Ways to learn in a whole run: by its name in quorate.toml, and as ``PrivateClassifier(student=...)``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.folder.conftest import run

from quorate import PrivateClassifier, PublicPool
from quorate.deferred import skops
from quorate.errors import InvalidParameter
from quorate.students import (
    AutoStudent,
    LabelStudent,
    NoiseAwareStudent,
    SelfTraining,
    SpreadLabels,
    VoteShareStudent,
    VotingClass,
)
from quorate.voting.models import METHODS, student_of

CLASSES = ["no", "maybe", "yes"]
WAYS = {
    "answers": (AutoStudent(GaussianNB()), "auto"),
    "noisy labels, kernel": (NoiseAwareStudent(GaussianNB(), shares="kernel"), "GaussianNoisyMax"),
    "values": (VoteShareStudent(), "auto"),
    "values, process": (VoteShareStudent(LogisticRegression(), shares="gaussian-process"), "NoisyCounts"),
    "self-training": (SelfTraining(), "GaussianNoisyMax"),
    "voting": (VotingClass(n_estimators=5), "auto"),
}


def rows(n, seed):
    """A table with a number in large units and a word, and three classes."""
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(1_000, 300, size=n), rng.choice(["red", "green", "blue"], size=n)
    score = (size - 1_000) / 300 + (colour == "red") - (colour == "blue")
    return pl.DataFrame({"size": size, "colour": colour}), np.array(CLASSES)[np.digitize(score, [-0.7, 0.7])]


@pytest.mark.heavy
@pytest.mark.parametrize(("student", "mechanism"), WAYS.values(), ids=WAYS)
def test_every_way_learns_words_and_numbers_in_a_whole_fit(student, mechanism):
    settings = {"classes": CLASSES, "epsilon": 60.0, "delta": 1e-5, "n_teachers": 20, "n_jobs": 1}
    clf = PrivateClassifier(None, student, mechanism=mechanism, unsafe_noise_seed=7, **settings)
    clf.fit(*rows(600, 1), public=PublicPool(rows(200, 2)[0]))
    X, y = rows(300, 3)
    probabilities = clf.predict_proba(X)
    assert probabilities.shape == (300, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(clf.predict(X) == y) > 0.6
    written = skops.io.dumps(clf.student_)
    assert skops.io.get_untrusted_types(data=written) == []
    assert (skops.io.loads(written).predict(X) == clf.predict(X)).all()


MADE = {
    "auto": AutoStudent,
    "labels": LabelStudent,
    "noisy-labels": NoiseAwareStudent,
    "values": VoteShareStudent,
    "self-training": SelfTraining,
    "label-spreading": SpreadLabels,
    "label-propagation": SpreadLabels,
    "voting-class": VotingClass,
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_names_its_student(method):
    student = student_of("logistic", method=method, shares="linear", folder=Path())
    assert type(student) is MADE[method]
    assert method.startswith("label-pro") == (getattr(student, "method", "") == "propagation")


@pytest.mark.parametrize(
    ("model", "method", "shares", "said"),
    [
        ("logistic", "labels", "kernel", 'shares = "kernel" does not go with method = "labels"'),
        ("logistic", "noisy-labels", "auto", 'shares = "auto" does not go with method = "noisy-labels"'),
        ("shares", "auto", "linear", 'model = "shares" is what method = "values" or "noisy-labels" fits'),
        ("models:of_my_own", "values", "linear", "returns a student, which has a method of its own"),
    ],
)
def test_names_that_do_not_go_together_are_refused(model, method, shares, said, tmp_path, monkeypatch):
    (tmp_path / "models_of_a_student.py").write_text(
        "from quorate.students import LabelStudent\n\ndef of_my_own():\n    return LabelStudent()\n"
    )
    model = model.replace("models:", "models_of_a_student:")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InvalidParameter, match=said) as told:
        student_of(model, method=method, shares=shares, folder=tmp_path)
    assert "\n" not in str(told.value)
    if ":" in model:
        assert student_of(model, method="auto", shares="linear", folder=tmp_path) == LabelStudent()


STRANGER = """
import sys
sys.modules.update(dict.fromkeys(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy")))
import polars, skops.io  # which would load those libraries where they are, and take twice as long
for student, table in zip(sys.argv[1::2], sys.argv[2::2]):
    print(skops.io.load(student).predict(polars.read_csv(table)).tolist())
"""


LEARNED = {
    "LogisticRegression (VoteShareStudent)": {
        "student.method": "values", "student.shares": "auto", "student.model": "shares",
    },
    "LogisticRegression (NoiseAwareStudent)": {
        "student.method": "noisy-labels", "mechanism.name": "GaussianNoisyMax", "student.model": "shares",
    },
    "LogisticRegression (SelfTraining)": {"student.method": "self-training", "mechanism.name": "GaussianNoisyMax"},
}  # fmt: skip


@pytest.mark.heavy
def test_a_run_writes_a_student_that_opens_without_quorate_and_says_how_it_learned(make_run, finished_runs):
    """One stranger opens them all, that of a run by defaults too: what takes long is to start one."""
    by_defaults = finished_runs()
    files = [by_defaults / "public" / "student.skops", by_defaults / "public.csv"]
    expected = [str(skops.io.load(files[0]).predict(pl.read_csv(files[1])).tolist())]
    for number, (named, changes) in enumerate(LEARNED.items()):
        more = {"data.evaluation": "evaluation.csv", "mechanism.queries": 100, "budget.epsilon": 40.0}
        root = make_run(f"run{number}", **changes, **more)
        facts = run(root)
        assert facts.setup.student == named
        assert named in (root / "public" / "model_card.md").read_text().replace("\\", "")
        assert facts.utility.student.accuracy > 0.7
        student, table = root / "public" / "student.skops", root / "public.csv"
        files += [student, table]
        expected.append(str(skops.io.load(student).predict(pl.read_csv(table)).tolist()))
    told = subprocess.run([sys.executable, "-I", "-c", STRANGER, *files], capture_output=True, check=True)
    assert told.stdout.decode().splitlines() == expected
