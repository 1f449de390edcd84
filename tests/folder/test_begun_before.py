"""A run begun when a word, or a weight, meant something else goes on so: nothing is charged or drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.folder.conftest import DIRECT

from quorate.direct import config
from quorate.errors import BudgetExhausted
from quorate.folder import batch
from quorate.folder.batch import load_run
from quorate.folder.direct_run import read_direct
from quorate.folder.methods import execute
from quorate.folder.online import ask
from quorate.ledger import Ledger
from quorate.run.schema import Schema
from quorate.voting import flow

MakeRun = Callable[..., Path]


def history(root: Path) -> list[dict[str, Any]]:
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


def respell(path: Path) -> None:
    """Write blanks around the word of every seventh row."""
    rows = pl.read_csv(path)
    padded = pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.format(" {}  ", "ward")).otherwise("ward")
    rows.with_columns(ward=padded).write_csv(path)


@pytest.mark.heavy
@pytest.mark.parametrize("table", ["public", "private"])
def test_a_run_of_votes_that_told_spellings_apart_goes_on_so(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    root = make_run(**{"mechanism.online_answers": 4})
    respell(root / f"{table}.csv")
    with monkeypatch.context() as then:
        settled = batch._config
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), words_as_written=True))
        then.setattr(flow, "teach", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root), command="quorate run")
    charged = history(root)
    with monkeypatch.context() as twin:  # that does not look for it would pay again
        twin.setattr(batch, "earlier_configs", lambda *_: [])
        with pytest.raises(BudgetExhausted):
            execute(load_run(root), command="quorate run")
    run = load_run(root)
    assert not run.task.inputs.kinds.words
    execute(run, command="quorate run")
    assert history(root) == charged
    assert ask(load_run(root), pl.DataFrame({"age": [40], "bmi": [25.0], "ward": ["north"]})).left == 3


def test_where_both_tables_are_written_alike_a_run_begun_before_is_the_same_run(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_run()
    now = load_run(root)
    with monkeypatch.context() as then:
        settled = batch._config
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), words_as_written=True))
        before = load_run(root)
    assert now.task.inputs.kinds.words
    assert not before.task.inputs.kinds.words
    assert now.charge_key == before.charge_key


@pytest.mark.heavy
@pytest.mark.parametrize("table", ["public", pytest.param("private", marks=pytest.mark.heavy)])
def test_a_direct_run_that_told_spellings_apart_goes_on_so(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    root = make_run(**DIRECT)
    respell(root / f"{table}.csv")
    with monkeypatch.context() as then:
        read = Schema.of
        then.setattr(config.Schema, "of", lambda *given, **how: read(*given, **how).with_words_as_written())
        execute(read_direct(root), command="quorate run")
    charged = history(root)
    run = read_direct(root)
    assert bool(run.task.schema.kinds.words) == (table == "private")  # of which cells were read so before
    execute(run, command="quorate run")
    assert history(root) == charged
    with monkeypatch.context() as twin:  # that takes the pool as it is read now would pay again
        twin.setattr(Schema, "with_words_as_written", lambda schema: schema)
        if table == "public":
            with pytest.raises(BudgetExhausted):
                execute(read_direct(root), command="quorate run")


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
