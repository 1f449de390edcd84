"""Which model teachers should be: a plan compares some on labelled public rows, and a run by it takes the best."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.folder.conftest import toml

import quorate
from quorate import PrivateClassifier, PublicPool
from quorate.errors import InvalidParameter
from quorate.folder.batch import load_run
from quorate.folder.planned import choice_of, plan_folder
from quorate.folder.settings import settings_from
from quorate.planning.public_side import Models, labelled_material, public_side
from quorate.planning.rehearsal.rehearsal import Effort
from quorate.voting.models import built_in

N, M, LABELLED, TEST = 4_000, 200, 1_200, 3_000
TASK: dict[str, Any] = {"classes": ["no", "yes"], "n_records": N, "epsilon": 2.0, "delta": 1e-5}
VOTES: dict[str, Any] = {"mechanisms": ["NoisyCounts"], "n_teachers": [120]}


BRIEF = Effort(folds=2, repeats=1, teachers=24, n_asked=M, every_row=True)


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Play little: what is told apart here is far apart."""
    monkeypatch.setattr(Effort, "of", lambda *_, **__: BRIEF)


def drawn(n: int, seed: int) -> tuple[pl.DataFrame, np.ndarray]:
    """A number whose middle is one class and whose ends are the other, and a word that turns this round."""
    rng = np.random.default_rng(seed)
    level, ward = rng.normal(size=n), rng.choice(["north", "south", "west"], n)
    far = (np.abs(level) > 0.67) ^ (ward == "west")
    return pl.DataFrame({"level": level, "ward": ward}), np.where(far ^ (rng.random(n) < 0.05), "yes", "no")


def votes(made: Any) -> dict[str, float]:
    """The expected accuracy of each model's votes that were rehearsed in full."""
    rows = [row for row in made.rows if row.way == "votes" and row.expected is not None]
    return {row.model: row.expected.accuracy for row in reversed(rows)}


@pytest.mark.heavy
def test_trees_are_first_where_a_linear_model_fails_and_a_run_then_has_what_was_expected():
    pool, labelled = drawn(M, 1)[0], drawn(LABELLED, 2)
    made = quorate.plan(pool, evaluation=labelled, teacher="logistic", **TASK, **VOTES)
    expected = votes(made)
    assert expected["tree"] > expected[""] + 0.15
    first = next(row for row in made.rows if row.way == "votes")
    assert (first.model, first.key) == ("tree", f"votes/NoisyCounts/120/{M}/tree")
    assert "NoisyCounts, tree" in str(made)
    assert made.tree()["rows"][made.rows.index(first)]["model"] == "tree"
    (X, y), (unseen, truth) = drawn(N, 3), drawn(TEST, 4)
    for model in ("", "tree"):
        teacher = built_in(model or "logistic", "teacher")
        clf = PrivateClassifier(teacher=teacher, n_teachers=120, n_jobs=1, unsafe_noise_seed=1, **TASK)
        measured = float((clf.fit(X, y, public=PublicPool(pool)).predict(unseen) == truth).mean())
        assert abs(measured - expected[model]) < (0.06 if model else 0.12)  # a coin is hard to tell from a worse one


@pytest.mark.heavy
def test_a_run_by_the_plan_trains_the_model_that_was_first_and_keeps_it(tmp_path):
    for name, (X, y) in {"private": drawn(N, 3), "public": drawn(M, 1), "evaluation": drawn(LABELLED, 2)}.items():
        table = X if name == "public" else X.with_columns(pl.Series("ill", y))
        table.write_csv(tmp_path / f"{name}.csv")
    settings: dict[str, dict[str, Any]] = {
        "data": {
            "private": "private.csv", "public": "public.csv", "evaluation": "evaluation.csv", "label": "ill",
            "classes": TASK["classes"], "n_records": N,
        },
        "budget": {"epsilon": 2.0, "delta": 1e-5},
        "run": {"unsafe_noise_seed": 1, "n_jobs": 1},
    }  # fmt: skip
    (tmp_path / "quorate.toml").write_text(toml(settings))
    made = plan_folder(tmp_path)
    votes = choice_of(replace(made, rows=tuple(row for row in made.rows if row.model == "tree")))
    assert 'teachers (model = "tree") by NoisyCounts' in votes.in_words
    planned = settings_from(settings, folder=tmp_path, choice=votes)
    assert isinstance(load_run(tmp_path, settings=planned).task.trainer.estimator, DecisionTreeClassifier)


@pytest.mark.heavy
@pytest.mark.usefixtures("brief_rehearsals")
def test_what_is_compared_is_asked_for_where_columns_are_of_one_kind():
    rng = np.random.default_rng(0)
    pool, X = rng.normal(size=(100, 3)), rng.normal(size=(400, 3))
    how: dict[str, Any] = {"evaluation": (X, np.where(X[:, 0] > 0, "yes", "no")), **TASK, **VOTES}
    assert {row.model for row in quorate.plan(pool, **how).rows} == {""}
    asked = quorate.plan(pool, models=["tree", "boosting", "tree"], **how)
    assert {row.model for row in asked.rows} == {"", "tree", "boosting"}


@pytest.mark.heavy
def test_a_model_that_the_owner_names_is_compared_with_none():
    pool, labelled = drawn(100, 2)[0], drawn(400, 1)
    for teacher, compared, wanted in (
        (None, None, {"tree"}), ("logistic", None, {"tree"}), ("forest", None, set()), (None, (), set()),
        (DecisionTreeClassifier(), ("logistic",), {"logistic"}),
    ):  # fmt: skip
        side = public_side(pool, TASK["classes"], Models(teacher=teacher, compared=compared))
        assert set(labelled_material(side, evaluation=labelled).others) == wanted


@pytest.mark.heavy
def test_a_plan_says_who_votes_where_it_is_not_the_default():
    how: dict[str, Any] = {"n_public": 200, "width": 9, **TASK}
    said = "where no model stands beside a way, teachers are DecisionTreeClassifier"
    assert said in quorate.plan(teacher="tree", **how).notes
    assert not any(
        "teachers are" in note for teacher in (None, "auto") for note in quorate.plan(teacher=teacher, **how).notes
    )


@pytest.mark.heavy
def test_rows_that_no_label_tells_apart_are_left_out():
    pool = drawn(M, 1)[0]
    assert {row.model for row in quorate.plan(pool, **TASK, **VOTES).rows} == {""}
    few = quorate.plan(pool, evaluation=drawn(60, 2), **{**TASK, **VOTES, "n_teachers": [20, 400]})
    assert {row.key for row in few.rows if row.model} == {f"votes/NoisyCounts/400/{M}/tree"}  # 200 are no half of 60


def test_trees_see_columns_where_linear_teachers_see_directions():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(150, 300))
    side = public_side(wide, (0, 1), Models(compared=("tree", "logistic")))
    material = labelled_material(side, y_public=np.arange(150) % 2)
    assert set(material.others) == {"tree", "logistic"}
    assert material.pool[0].shape == (150, 64)
    assert material.others["tree"].pool[0].shape == material.others["tree"].rows[0].shape == (150, 300)
    assert isinstance(material.others["tree"].teacher.estimator, DecisionTreeClassifier)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", ["tree", ["trees"], [5], 5])
def test_a_model_that_is_none_is_refused(wrong):
    with pytest.raises(InvalidParameter, match=r"^models must be names of logistic, tree, .*, got"):
        quorate.plan(n_public=200, width=9, models=wrong, **TASK)


def test_models_without_labelled_rows_are_refused_before_a_rehearsal_is_left_out():
    with pytest.raises(
        InvalidParameter,
        match=r'models names models to compare on labelled public rows, and none.*take rehearse="labels"$',
    ):
        quorate.plan(n_public=200, width=9, models=["tree"], **TASK)
