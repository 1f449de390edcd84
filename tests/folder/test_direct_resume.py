"""A direct run killed at any moment goes on: one charge, no round drawn twice, the model that of stored rounds."""

import random
import secrets

import numpy as np
import pytest
from tests.folder.conftest import DIRECT, run
from tests.folder.test_resume import Snapshot, entries_so_far, kill_when, perform_killed, said_by, start
from tests.folder.test_resume import breaches as breaches_of_ledger

from quorate.deferred import skops
from quorate.direct import descend
from quorate.direct.flow import model_of
from quorate.direct.rounds import Descent
from quorate.direct.task import DirectTask
from quorate.folder.methods import read_run
from quorate.noise import OSNoise
from quorate.release import Charge

pytestmark = pytest.mark.heavy

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


def killed_at_random(make_direct, kills):
    """Kill a run `kills` times: before the charge, while rounds are drawn, while the public side is written."""
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


def test_a_run_killed_at_a_few_random_moments_keeps_its_promises(make_direct):
    killed_at_random(make_direct, 3)


@pytest.mark.faults
def test_a_run_killed_at_ten_random_moments_keeps_its_promises(make_direct):
    killed_at_random(make_direct, 10)


def killed_and_resumed(root):
    snapshots = []
    for after, in_flight in ((2, False), (1, True)):
        perform_killed(root, after=after, in_flight=in_flight, read=read_run)
        snapshots.append(snapshot(root))
    run(root)
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
