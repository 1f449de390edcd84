"""A run goes on as it was begun, whatever a word, a weight or a default means now: nothing is charged or drawn anew."""

from dataclasses import replace

import polars as pl
import pytest
from tests.folder.conftest import DIRECT, edit, interrupted
from tests.golden.folders import command, write

from quorate.direct import config
from quorate.errors import BudgetExhausted
from quorate.folder import batch
from quorate.folder.batch import ask, load_run
from quorate.folder.methods import execute, read_run
from quorate.ledger import Ledger
from quorate.run.schema import Schema
from quorate.voting import flow


def history(root):
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


def begun(root, monkeypatch, **before):
    """Begin a run as an earlier version read its settings, up to its student; return what its ledger holds."""
    with monkeypatch.context() as then:
        settled = batch._config
        then.setattr(batch, "_config", lambda *given: replace(settled(*given), **before))
        then.setattr(flow, "teach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root, try_models=before.get("try_models", True)), command="quorate run")
    return history(root)


def respell(path):
    """Write blanks around the word of every seventh row."""
    rows = pl.read_csv(path)
    padded = pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.format(" {}  ", "ward")).otherwise("ward")
    rows.with_columns(ward=padded).write_csv(path)


@pytest.mark.heavy
@pytest.mark.parametrize("table", ["public", "private"])
def test_a_run_of_votes_that_told_spellings_apart_goes_on_so(make_run, monkeypatch, table):
    root = make_run(**{"mechanism.online_answers": 4})
    respell(root / f"{table}.csv")
    charged = begun(root, monkeypatch, words_as_written=True)
    with monkeypatch.context() as twin:  # that does not look for it would pay again
        twin.setattr(batch, "earlier_configs", lambda *_: [])
        with pytest.raises(BudgetExhausted):
            execute(load_run(root), command="quorate run")
    run = load_run(root)
    assert not run.task.inputs.kinds.words
    execute(run, command="quorate run")
    assert history(root) == charged
    assert ask(load_run(root), pl.DataFrame({"age": [40], "bmi": [25.0], "ward": ["north"]})).left == 3


def test_where_both_tables_are_written_alike_a_run_begun_before_is_the_same_run(make_run, monkeypatch):
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
def test_a_direct_run_that_told_spellings_apart_goes_on_so(make_run, monkeypatch, table):
    root = make_run(**DIRECT)
    respell(root / f"{table}.csv")
    with monkeypatch.context() as then:
        read = Schema.of
        then.setattr(config.Schema, "of", lambda *given, **how: read(*given, **how).with_words_as_written())
        execute(read_run(root), command="quorate run")
    charged = history(root)
    run = read_run(root)
    assert bool(run.task.schema.kinds.words) == (table == "private")  # of which cells were read so before
    execute(run, command="quorate run")
    assert history(root) == charged
    with monkeypatch.context() as twin:  # that takes the pool as it is read now would pay again
        twin.setattr(Schema, "with_words_as_written", lambda schema: schema)
        if table == "public":
            with pytest.raises(BudgetExhausted):
                execute(read_run(root), command="quorate run")


@pytest.mark.heavy
@pytest.mark.parametrize("weights", [{"no": 1, "yes": 20}, {0: 1, 1: 20}], ids=["named", "numbered"])
def test_a_run_whose_weights_were_for_numbers_in_a_shard_goes_on_with_these(make_run, monkeypatch, weights):
    root = make_run(**{"teachers.model": "weighted:teacher", "teachers.count": 9})
    (root / "weighted.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        f"def teacher():\n    return LogisticRegression(class_weight={weights})\n"
    )
    charged = begun(root, monkeypatch, classes_by_shard=True, try_models=False)  # which refused names
    for try_models in (True, False):
        run = load_run(root, try_models=try_models)
        assert run.task.config.classes_by_shard
    execute(run, command="quorate run")
    assert history(root) == charged


def said_of(root, batched):
    text = (root / "quorate.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("batched")]
    if batched is not None:
        lines.insert(lines.index("count = 12"), f"batched = {batched}")
    (root / "quorate.toml").write_text("\n".join(lines), encoding="utf-8")
    return root


def charges(root):
    with Ledger(root / "ledger.db") as ledger:
        return [entry["key"] for entry in ledger.export() if entry["kind"] == "reserved"]


def run(root):
    return command("run", root, "--json")


@pytest.mark.heavy
def test_a_new_run_solves_its_teachers_and_the_other_way_is_another_release(tmp_path):
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
def test_a_run_of_other_teachers_has_one_key_either_way(tmp_path):
    root = write(tmp_path / "run")
    edit(root, "[teachers]", '[teachers]\nmodel = "forest"')
    keys = {load_run(said_of(root, batched)).charge_key for batched in ("true", "false", None)}
    assert len(keys) == 1
