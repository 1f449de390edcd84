"""What a report calls passed was looked at, on this run; the rest says what it is."""

import importlib
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.folder.conftest import charges, run

from quorate import LabelPrivateClassifier, PrivacyWarning, PrivateClassifier, PublicPool
from quorate.ensemble import partition_rows
from quorate.errors import PreconditionFailed
from quorate.findings import Outcome
from quorate.ledger import Ledger
from quorate.report import model_card, render_html, render_text
from quorate.stored_names import place_of
from quorate.types import Secret
from quorate.voting import kept_votes, shard_rows
from quorate.voting.claims import shards_not_looked_at

pytestmark = pytest.mark.mostly_heavy

X, Y = make_classification(400, n_features=4, n_informative=3, n_redundant=1, random_state=0)
POOL = X[300:]
X, Y = X[:300], Y[:300]
SETTINGS = {
    "classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_teachers": 10, "queries": 60, "n_jobs": 1,
}  # fmt: skip


def fitted(**changes):
    return PrivateClassifier(**{**SETTINGS, **changes}).fit(X, Y, public=PublicPool(POOL))


@pytest.fixture(scope="module")
def ordinary():
    """A fit that tests only read."""
    return fitted()


def outcomes(facts):
    return {check.code: check.outcome for check in facts.checks}


def check_of(facts, code):
    return next(check for check in facts.checks if check.code == code)


def function_of(name):
    """The function that a check names, wherever its module ends and a class begins, and wherever it is now."""
    parts = place_of(name).split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[cut:], module)
    raise AssertionError(name)


def test_the_outcomes_of_an_ordinary_run_and_the_function_that_each_names(ordinary):
    assert outcomes(ordinary.facts()) == {
        "shards": Outcome.PASSED,
        "classes": Outcome.BY_CONSTRUCTION,
        "preprocessing": Outcome.PASSED,
        "outside": Outcome.NOT_COVERED,
        "noise": Outcome.BY_CONSTRUCTION,
        "seed": Outcome.PASSED,
        "chain": Outcome.PASSED,
        "audit": Outcome.NOT_RUN,
    }
    for check in ordinary.facts().checks:
        assert (check.ran is not None) == (check.outcome in (Outcome.PASSED, Outcome.FAILED))
        assert check.ran is None or callable(function_of(check.ran))


def dealt_out(unit_keys, n_teachers, key, *, partition):
    return Secret(np.arange(len(unit_keys)) % n_teachers)


def one_row_moved(unit_keys, n_teachers, key, *, partition):
    moved = partition_rows(unit_keys, n_teachers, key, partition=partition).reveal().copy()
    moved[-1] = (moved[-1] + 1) % n_teachers
    return Secret(moved)


@pytest.mark.parametrize("broken", [dealt_out, one_row_moved])
def test_a_broken_partition_is_found_before_anything_is_fitted_or_charged(make_run, cli, monkeypatch, broken):
    root = make_run(**{"data.unit": "patient_id"})
    monkeypatch.setattr(shard_rows, "partition_rows", broken)
    monkeypatch.setattr(kept_votes, "train_chunk", lambda *_, **__: pytest.fail("a teacher was trained"))
    assert "the rows of one unit are in two shards" in cli.refused(4, "run", root).words
    assert not list((root / "private").glob("*.stage"))
    assert charges(root) == 0


def test_the_shards_that_were_looked_at_are_those_that_teachers_get(monkeypatch):
    looked, given = [], []
    real_check, real_train = shard_rows.check_shards, kept_votes.train_chunk

    def look(task, assigned):
        looked.append(assigned)
        return real_check(task, assigned)

    def train(trainer, X, codes, shards, **how):
        given.append(shards)
        return real_train(trainer, X, codes, shards, **how)

    monkeypatch.setattr(shard_rows, "check_shards", look)
    monkeypatch.setattr(kept_votes, "train_chunk", train)
    fitted()
    assert len(looked) == 1
    assert given
    assert all(np.array_equal(each.reveal(), looked[0].reveal()) for each in given)


def test_teachers_that_are_trained_again_to_be_asked_get_shards_that_were_looked_at(finished_run, cli, monkeypatch):
    root = finished_run(**{"mechanism.online_answers": 5})
    for stage in (root / "private").glob("teachers-*.stage"):
        stage.unlink()
    (root / "new.csv").write_text("age,bmi,ward\n40,21.5,north\n")
    monkeypatch.setattr(shard_rows, "partition_rows", dealt_out)
    assert "not those of a hash partition" in cli.refused(4, "ask", root, root / "new.csv").words


def test_a_run_whose_shards_nobody_looked_at_does_not_say_checked(ordinary):
    facts = ordinary.facts()
    assert "exactly one teacher; checked" in render_text(facts)
    unseen = replace(facts, checks=(shards_not_looked_at(ordinary._kept.task), *facts.checks[1:]))
    assert "exactly one teacher; not checked" in render_text(unseen)


def test_a_resumed_run_looks_at_its_shards_again(finished_run):
    root = finished_run()
    (root / "public" / "facts.json").unlink()
    assert outcomes(run(root))["shards"] is Outcome.PASSED


@pytest.mark.several_fits
def test_a_class_list_that_was_read_is_not_called_declared():
    made = LabelPrivateClassifier(**{**SETTINGS, "classes": "public"}).fit(X, Y)
    facts = made._facts
    assert not facts.setup.classes_declared
    check = check_of(facts, "classes")
    assert check.outcome is Outcome.NOT_COVERED
    assert "read off the labels" in check.evidence
    assert "read off private labels" in model_card(facts)
    declared = LabelPrivateClassifier(**SETTINGS).fit(X, Y)
    assert check_of(declared._facts, "classes").outcome is Outcome.BY_CONSTRUCTION


@pytest.mark.several_fits
def test_a_number_of_records_that_nobody_declared_is_not_called_declared():
    made = LabelPrivateClassifier(**{**SETTINGS, "n_teachers": "auto"}).fit(X, Y)
    assert (made._facts.setup.n_records, made._facts.setup.n_records_from) == (300, "public")
    assert "300" in model_card(made._facts)
    assert "declared: 300" not in model_card(made._facts)
    assert "<dt>units, public</dt>" in render_html(made._facts)
    declared = fitted(n_teachers="auto", n_records=290).facts()
    assert (declared.setup.n_records, declared.setup.n_records_from) == (290, "declared")
    assert fitted(n_teachers="auto").facts().setup.n_records is None


def test_a_scaler_around_the_classifier_is_said_not_to_be_covered():
    """What stands in front of it is fitted on all private rows, and quorate never sees it."""
    clf = PrivateClassifier(**SETTINGS)
    with pytest.warns(PrivacyWarning, match="private-columns-were-scaled"):
        outer = make_pipeline(StandardScaler(), clf).fit(X, Y, privateclassifier__public=PublicPool(POOL))
    facts = outer[-1].facts()
    check = check_of(facts, "outside")
    assert check.outcome is Outcome.NOT_COVERED
    assert check.remedy == "Put such steps into teacher= (a Pipeline), or fit them on public rows."
    for words in (render_html(facts), model_card(facts), facts.to_json()):
        assert "Nothing was fitted on the pooled private rows" not in words
        assert "Quorate sees the rows as they arrive" in words


def test_a_step_inside_the_teacher_is_looked_at():
    inside = fitted(teacher=make_pipeline(StandardScaler(), LogisticRegression()))
    assert check_of(inside.facts(), "preprocessing").outcome is Outcome.PASSED


def test_a_seeded_run_fails_the_question_about_its_seed_and_no_other():
    found = outcomes(fitted(unsafe_noise_seed=3).facts())
    assert [code for code, outcome in found.items() if outcome is Outcome.FAILED] == ["seed"]


@pytest.mark.quick
def test_a_ledger_that_does_not_verify_has_no_report(ordinary, monkeypatch):
    monkeypatch.setattr(Ledger, "verify", lambda self: (_ for _ in ()).throw(PreconditionFailed("broken")))
    with pytest.raises(PreconditionFailed):
        ordinary.facts()
