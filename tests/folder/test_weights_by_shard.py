"""A run begun when weights were for numbers in a shard goes on with these: nothing is charged or drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.folder import batch
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.ledger import Ledger
from quorate.voting import flow

MakeRun = Callable[..., Path]


def history(root: Path) -> list[dict[str, Any]]:
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


@pytest.mark.heavy
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
        before = {"classes_by_shard": True, "try_models": False}  # which refused names
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), **before))
        then.setattr(flow, "teach", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root, try_models=False), command="quorate run")
    charged = history(root)
    for try_models in (True, False):
        run = load_run(root, try_models=try_models)
        assert run.task.classes_by_shard
    execute(run, command="quorate run")
    assert history(root) == charged
