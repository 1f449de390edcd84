"""A run that version 0.1 began has as many teachers as that version chose: nothing is charged or drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.errors import BudgetExhausted
from quorate.ledger import Ledger
from quorate.pipeline import flow
from quorate.run import batch
from quorate.run.batch import execute, load_run

MakeRun = Callable[..., Path]

OF_PATIENTS = {
    "data.unit": "patient_id",
    "data.n_records": 200,
    "teachers.count": "auto",
    "mechanism.online_answers": 2,
}


def history(root: Path) -> list[dict[str, Any]]:
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


def begun_by_version_0_1(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Path, int]:
    """Make a run with that version's rule, and stop it where the answers are stored and the student is not."""
    root = make_run(**OF_PATIENTS, **changes)
    with monkeypatch.context() as then:
        settled = batch._config
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), recipe="0.1", batched=False))
        then.setattr(flow, "teach", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        chosen = load_run(root).task.recipe.n_teachers
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root), command="quorate run")
    return root, chosen


@pytest.mark.heavy
def test_a_run_goes_on_with_as_many_teachers_as_it_was_begun_with(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, chosen = begun_by_version_0_1(make_run, monkeypatch, **{"data.n_rows": 400})
    ours = load_run(make_run("fresh", **OF_PATIENTS, **{"data.n_rows": 400})).task.recipe.n_teachers
    assert ours != chosen
    before = history(root)
    done = execute(load_run(root), command="quorate run")
    assert done.setup.n_teachers == chosen
    assert history(root) == before  # no second charge, no second draw
    assert load_run(root).task.recipe.n_teachers == chosen


@pytest.mark.heavy
def test_a_run_that_does_not_look_for_its_own_teachers_is_seen(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = begun_by_version_0_1(make_run, monkeypatch, **{"data.n_rows": 400})
    monkeypatch.setattr(batch, "has_begun", lambda run: False)
    with pytest.raises(BudgetExhausted, match="differ from those of the run begun here"):
        execute(load_run(root), command="quorate run")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("weights", [{"no": 1, "yes": 20}, {0: 1, 1: 20}], ids=["named", "numbered"])
def test_a_run_whose_weights_were_for_numbers_in_a_shard_goes_on_with_these(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, weights: dict[Any, Any]
) -> None:
    root = make_run(**{"teachers.model": "weighted:teacher", "teachers.count": 9})
    (root / "weighted.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        f"def teacher():\n    return LogisticRegression(class_weight={weights})\n"
    )
    with monkeypatch.context() as then:
        settled = batch._config
        before = {"classes_by_shard": True, "rehearse": False}  # which refused names
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), **before))
        then.setattr(flow, "teach", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root, rehearse=False), command="quorate run")
    charged = history(root)
    for rehearse in (True, False):
        run = load_run(root, rehearse=rehearse)
        assert run.task.classes_by_shard
    execute(run, command="quorate run")
    assert history(root) == charged
