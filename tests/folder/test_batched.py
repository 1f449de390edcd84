"""How teachers are trained is a fact of a run: it goes on as it was begun, and another way is another release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.folder.conftest import edit
from tests.golden.folders import command, write

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.ensemble import ClassifierTeacher, count_votes, hash_shards, train_teachers
from quorate.errors import InvalidParameter
from quorate.folder.batch import load_run
from quorate.ledger import Ledger
from quorate.types import Secret


def said_of(root: Path, batched: str | None) -> Path:
    text = (root / "quorate.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("batched")]
    if batched is not None:
        lines.insert(lines.index("count = 12"), f"batched = {batched}")
    (root / "quorate.toml").write_text("\n".join(lines), encoding="utf-8")
    return root


def charges(root: Path) -> list[str]:
    with Ledger(root / "ledger.db") as ledger:
        return [entry["key"] for entry in ledger.export() if entry["kind"] == "reserved"]


def run(root: Path) -> tuple[int, str]:
    return command("run", root, "--json")


@pytest.mark.heavy
def test_a_new_run_solves_its_teachers_and_the_other_way_is_another_release(tmp_path: Path) -> None:
    root = write(tmp_path / "run")
    edit(root, "[teachers]", '[teachers]\nmodel = "logistic"')
    assert run(root)[0] == 0
    assert load_run(root).task.solves
    before = charges(root)

    code, told = run(said_of(root, "false"))
    assert code == 3
    assert "put them back" in told
    assert charges(root) == before
    assert run(said_of(root, "true"))[0] == 0
    assert charges(root) == before


@pytest.mark.heavy
def test_a_run_of_other_teachers_has_one_key_either_way(tmp_path: Path) -> None:
    root = write(tmp_path / "run")
    edit(root, "[teachers]", '[teachers]\nmodel = "forest"')
    keys = {load_run(said_of(root, batched)).charge_key for batched in ("true", "false", None)}
    assert len(keys) == 1


def test_a_setting_that_is_no_truth_value_is_refused(tmp_path: Path) -> None:
    code, told = command("check", said_of(write(tmp_path / "run"), '"no"'), "--json")
    assert code == 2
    assert "[teachers] batched must be true or false" in json.dumps(told)


@pytest.mark.parametrize("kind", [PrivateClassifier, LabelPrivateClassifier])
def test_an_estimator_takes_true_or_false(kind: type) -> None:
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    public = {} if kind is LabelPrivateClassifier else {"public": PublicPool(X + 0.5)}
    with pytest.raises(InvalidParameter, match="batched must be True or False"):
        kind(classes=[0, 1], epsilon=1.0, delta=1e-5, n_teachers=4, batched="no").fit(X, y, **public)


class OneAtATime:
    """The same solver, in a fresh process for each shard."""

    keeps_no_global_state = False

    def __init__(self) -> None:
        self.teacher = ClassifierTeacher(LogisticRegression(C=100.0))

    def train(self, X, y, seed):
        return self.teacher.train(X, y, seed)


@pytest.mark.heavy
def test_votes_are_those_of_the_same_solver_one_shard_at_a_time() -> None:
    rng = np.random.default_rng(0)
    X, key = rng.normal(size=(360, 4)), Secret(bytes(32))
    y = (X[:, 0] + rng.normal(size=360) > 0).astype(np.int64)
    shards = hash_shards([row.to_bytes(4, "big") for row in range(360)], 12, key)
    points = rng.normal(size=(2_000, 4))
    counts = [
        count_votes(train_teachers(teacher, X, y, shards, n_teachers=12, n_classes=2, key=key), points).reveal()
        for teacher in (ClassifierTeacher(LogisticRegression(C=100.0)), OneAtATime())
    ]
    assert np.array_equal(*counts)
