"""A run goes on as it was begun, whatever means what now, and a direct run that was killed: nothing is drawn anew."""

import random
import secrets
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, edit, history, interrupted
from tests.folder.conftest import run as go_on
from tests.folder.test_resume import Snapshot, entries_so_far, kill_when, perform_killed, said_by, start
from tests.folder.test_resume import breaches as breaches_of_ledger
from tests.golden.folders import command, write

from quorate.deferred import skops
from quorate.direct import config, descend
from quorate.direct.flow import model_of
from quorate.direct.rounds import Descent
from quorate.direct.task import DirectTask
from quorate.errors import BudgetExhausted
from quorate.folder import batch
from quorate.folder.batch import ask, load_run
from quorate.folder.methods import execute, read_run
from quorate.ledger import Ledger
from quorate.noise import OSNoise
from quorate.release import Charge
from quorate.run.schema import Schema
from quorate.voting import flow

pytestmark = pytest.mark.mostly_heavy


def settled_before(then, **before):
    """Let runs be what an earlier version made of their settings."""
    settled = batch._config
    then.setattr(batch, "_config", lambda *given: replace(settled(*given), **before))


def begun(root, monkeypatch, **before):
    """Begin a run as an earlier version read its settings, up to its student; return what its ledger holds."""
    with monkeypatch.context() as then:
        settled_before(then, **before)
        then.setattr(flow, "teach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            execute(load_run(root, try_models=before.get("try_models", True)), command="quorate run")
    return history(root)


def respell(path):
    """Write blanks around the word of every seventh row."""
    rows = pl.read_csv(path)
    padded = pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.format(" {}  ", "ward")).otherwise("ward")
    rows.with_columns(ward=padded).write_csv(path)


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


@pytest.mark.quick
def test_where_both_tables_are_written_alike_a_run_begun_before_is_the_same_run(make_run, monkeypatch):
    root = make_run()
    now = load_run(root)
    with monkeypatch.context() as then:
        settled_before(then, words_as_written=True)
        before = load_run(root)
    assert now.task.inputs.kinds.words
    assert not before.task.inputs.kinds.words
    assert now.charge_key == before.charge_key


@pytest.mark.parametrize("table", ["public", "private"])
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


def test_a_run_of_other_teachers_has_one_key_either_way(tmp_path):
    root = write(tmp_path / "run")
    edit(root, "[teachers]", '[teachers]\nmodel = "forest"')
    keys = {load_run(said_of(root, batched)).charge_key for batched in ("true", "false", None)}
    assert len(keys) == 1


PURPOSE = "gradient round"


@pytest.fixture
def make_direct(make_run):
    room = {"budget.composition": "zcdp", "run.epsilon": 0.5}  # a second charge would fit, so that it is seen
    return lambda name="run", *, m=60, **changes: make_run(name, m=m, **{**DIRECT, **room, **changes})


def snapshot(root):
    return Snapshot.of(root, PURPOSE)


def breaches(snapshots, root, n_rounds):
    """What a resumed run promises, and that its model is that of the stored rounds."""
    same = bool((coefficients(root) == replayed(root, snapshots[-1])).all())
    found = breaches_of_ledger(snapshots, n_rounds)
    return found if same else [*found, "the model is not that of the stored rounds"]


def coefficients(root):
    found = [side / "student.skops" for side in (root / "public", root / "private")]
    return skops.io.load(next(path for path in found if path.exists()))[-1].coef_


def replayed(root, last):
    """The coefficients that follow from stored rounds alone."""
    task = read_run(root, begin=False).task
    descent = Descent(task.plan.settings, task.plan.grid, task.plan.n_units, task.plan.start)
    rounds = [last.stored[first][0] for first in sorted(last.stored)]
    descent.replay(np.array(each, dtype=np.int64).reshape(task.plan.start.shape) for each in rounds)
    weights = task.plan.shrunk(descent.result(), task.public_rows, descent.n_rounds)
    return model_of(task, weights)[-1].coef_


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.faults)])
def test_a_run_killed_at_random_moments_keeps_its_promises(make_direct, kills):
    """Before the charge, while rounds are drawn, while the public side is written."""
    rounds, chance = 20 * kills, random.Random(20261122)
    root = make_direct(**{"method.rounds": rounds})
    snapshots = [snapshot(root)]
    for number in range(kills):
        if number == 0:
            moment = lambda: True  # noqa: E731 - imports, reading, coordinates
            delay = chance.uniform(0.0, 0.05)
        elif number == kills - 1:
            moment, delay = (lambda: any((root / "public").glob("*guarantee.json*"))), chance.uniform(0, 0.004)
        else:
            target = max(entries_so_far(root), 3) + chance.randint(1, 9)
            moment, delay = (lambda target=target: entries_so_far(root) >= target), chance.uniform(0, 0.004)
        kill_when(root, moment, delay)
        snapshots.append(snapshot(root))
    process = start(root)
    assert process.wait() == 0, said_by(root)
    snapshots.append(snapshot(root))
    assert breaches(snapshots, root, rounds) == []
    assert len({len(each.stored) for each in snapshots}) >= min(kills, 5), "kills must have struck amid the rounds"


def killed_and_resumed(root):
    snapshots = []
    for after, in_flight in ((2, False), (1, True)):
        perform_killed(root, after=after, in_flight=in_flight, read=read_run)
        snapshots.append(snapshot(root))
    go_on(root)
    return [*snapshots, snapshot(root)]


@pytest.fixture
def addresses(monkeypatch):
    """Every place that noise was drawn at."""
    seen = []
    real = OSNoise.at

    def at(self, purpose, index):
        seen.append((purpose, index))
        return real(self, purpose, index)

    monkeypatch.setattr(OSNoise, "at", at)
    return seen


def test_a_killed_run_goes_on_with_one_charge_and_every_round_once(make_direct, addresses):
    root = make_direct()
    snapshots = killed_and_resumed(root)
    assert breaches(snapshots, root, 4) == []
    assert [len(each.stored) for each in snapshots] == [2, 2, 3]
    assert sorted(addresses) == [(PURPOSE, number) for number in range(4)]


def test_the_check_catches_a_run_that_charges_under_a_fresh_key(make_direct, monkeypatch):
    real = DirectTask.charges

    def fresh(self):
        charge = next(iter(real(self)))
        how = {name: getattr(charge, name) for name in ("event", "delta", "purposes", "scope", "seeded")}
        while True:
            yield Charge(**how, key=secrets.token_hex(8))

    root = make_direct()
    monkeypatch.setattr(DirectTask, "charges", fresh)
    assert "charged twice" in breaches(killed_and_resumed(root), root, 4)


def test_the_check_catches_a_run_that_forgets_its_stored_rounds(make_direct, monkeypatch):
    root = make_direct()
    monkeypatch.setattr(Descent, "replay", lambda self, stored: None)
    snapshots = killed_and_resumed(root)
    monkeypatch.undo()
    assert breaches(snapshots, root, 4) == ["the model is not that of the stored rounds"]


def test_the_check_catches_a_round_that_is_drawn_twice(make_direct, addresses, monkeypatch):
    """The twin draws the noise of a block again, and stores the mean: less noise than was charged for."""
    real = descend.release

    def twice(reservation, purpose, count, compute, *, record):
        return real(reservation, purpose, count, lambda drawn: (compute(drawn) + compute(drawn)) // 2, record=record)

    monkeypatch.setattr(descend, "release", twice)
    killed_and_resumed(make_direct())
    assert len(addresses) == 2 * len(set(addresses))
