"""Rounds added up by workers: the integers of one machine, each part once, and no worker that computes other bits."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.direct.test_spool import CONFIG, KEYED, N, one_by_one, sparse_task, summed, task_of
from tests.direct.test_spool import people as people  # a fixture
from tests.ensemble.conftest import OneWorker, in_this_process

from quorate import Budget, Ledger, Schema
from quorate.data.declared_schema import NumberColumn
from quorate.data.dialect import PLAIN
from quorate.data.feature_maps import exact
from quorate.direct import contributions, elsewhere
from quorate.direct.flow import run_rounds
from quorate.direct.prepare import prepare_direct
from quorate.ensemble.workers.cluster.remote import RemoteResult
from quorate.errors import Interrupted, PreconditionFailed
from quorate.run import usable_rows
from quorate.run.drawn_pool import count_cells


@pytest.fixture(autouse=True)
def forgetful():
    """What a worker's process keeps is another test's."""
    elsewhere._sides.clear()
    elsewhere._coordinates.clear()


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def with_worker(task, folder, do=in_this_process):
    worker = OneWorker(folder, do)
    return replace(task, scheduler=worker), worker


@pytest.mark.heavy
@pytest.mark.heavy_cases(2)
@pytest.mark.parametrize(("grouped", "form"), [(False, "dense"), (True, "dense"), (True, "sparse"), (False, "sparse")])
def test_workers_add_up_the_integers_of_one_machine(form, grouped, people, folder, monkeypatch):
    table = people.drop("ill", "person")
    task = task_of(people, table, grouped=grouped) if form == "dense" else sparse_task(grouped=grouped)
    expected = one_by_one(task)
    assert (summed(task) == expected).all()
    for n_parts, buffered, kept in ((1, 1 << 26, 1 << 30), (7, 0, 1 << 30), (64, 20_000, 0)):
        monkeypatch.setattr(elsewhere, "_n_parts", lambda *public, n_parts=n_parts: n_parts)
        monkeypatch.setattr(elsewhere, "_BUFFERED", buffered)
        monkeypatch.setattr(elsewhere, "_KEPT", kept)
        there, worker = with_worker(task, folder)
        units = there.units().reveal()
        weights = np.random.default_rng(3).normal(size=task.plan.start.shape)
        for _ in range(2):  # the second from what was kept, where it was
            assert (units.summing(task.plan.grid)(weights) == expected).all(), (n_parts, buffered)
        assert sum(units_.spool.size for units_ in elsewhere._coordinates.values()) <= kept
        assert bool(kept) is (len(elsewhere._coordinates) == n_parts)
        assert worker.sizes == [1] * (2 * n_parts)  # a part a task, an empty one too
        elsewhere._coordinates.clear()


def test_the_number_of_tasks_follows_from_public_facts_alone(people, folder):
    few, many = people[: N // 3], people
    sizes = []
    for rows in (few, many):
        task, worker = with_worker(task_of(rows, rows.drop("ill", "person"), grouped=True), folder)
        summed(task)
        sizes.append(worker.sizes)
    assert sizes[0] == sizes[1] == [1] * 8


def test_a_part_whose_worker_is_lost_is_done_again_and_counts_once(people, folder):
    plain = task_of(people, people.drop("ill", "person"), grouped=True)
    lost = {2: 1, 5: 1}  # tasks, and how often each ends with its worker's process

    def sometimes(task):
        number = len(begun)
        begun.append(task)
        if lost.pop(number, 0):
            in_this_process(task)  # it may have been done, and its answer lost
            return RemoteResult(None, 0)
        return in_this_process(task)

    begun = []
    task, _ = with_worker(plain, folder, sometimes)
    assert (summed(task) == summed(plain)).all()
    assert len(begun) == 8 + 2
    task, _ = with_worker(plain, folder, lambda task: RemoteResult(None, 0))
    with pytest.raises(Interrupted, match="lost at one part of the rows again and again"):
        summed(task)


@pytest.mark.heavy
def test_dask_is_told_of_no_row_and_no_sum(people, folder):
    told = []

    def noted(task):
        told.append(pickle.dumps(task._replace(environment={}, imports_from=())))  # which others may have made long
        result = in_this_process(task)
        told.append(pickle.dumps(result))
        return result

    task, _ = with_worker(task_of(people, people.drop("ill", "person"), grouped=False), folder, noted)
    total = summed(task)
    said = b"".join(told)
    assert len(said) < 16 * 2_000
    assert not any(int(number).to_bytes(8, "little", signed=True) in said for number in total.ravel() if number > 2**16)
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())


def other_exp(x, moved):
    """As the product's, but for every third number: what another library or processor may do."""
    result = exact.exp(x)
    others = np.arange(result.size).reshape(result.shape) % 3 == 0
    return np.where(others, np.nextafter(result, 2 * result) * (1 + moved), result)


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_that_computes_other_bits_is_refused_before_it_reads_a_row(late, people, folder, monkeypatch):
    plain = task_of(people, people.drop("ill", "person"), grouped=False)
    task, worker = with_worker(plain, folder)
    if late:
        units = task.units().reveal()  # nobody was different then
    monkeypatch.setattr(elsewhere, "answer_of", lambda *side: bytes(32))
    if not late:
        honest = elsewhere.public_side
        monkeypatch.setattr(elsewhere, "public_side", lambda plan, pool: replace(honest(plan, pool), answer=b"home"))
    with pytest.raises(PreconditionFailed, match=r"^(the|a) worker .* computes other coordinates or contributions"):
        units.summing(task.plan.grid)(task.plan.start) if late else task.units()
    assert worker.sizes == ([1] if late else [])
    assert not elsewhere._coordinates


def test_the_answer_tells_a_last_bit_and_a_twin_that_does_not_ask_adds_up_others(people, folder, monkeypatch):
    plain = task_of(people, people.drop("ill", "person"), grouped=False)
    side, grid = elsewhere.public_side(plain.plan, plain.public_rows), replace(plain.plan.grid, clip=8.0)
    right = plain.units().reveal().summing(grid)(plain.plan.start)
    monkeypatch.setattr(elsewhere, "public_side", lambda plan, pool: side)  # this machine's, as it was
    assert elsewhere.answer_of(side.plan, side.pool) == side.answer
    for moved in (0.0, 0.25):
        monkeypatch.setattr(contributions, "exp", partial(other_exp, moved=moved))
        task, worker = with_worker(plain, folder)
        with pytest.raises(PreconditionFailed, match=r"the worker tcp://127\.0\.0\.1:1 computes other"):
            task.units()
        assert worker.sizes == []
    monkeypatch.setattr(elsewhere, "answer_of", lambda *asked: side.answer)  # the twin
    assert (task.units().reveal().summing(grid)(task.plan.start) != right).any()


DECLARED = {"age": (18, 95), "bmi": "number", "ward": ["n", "s"]}  # a third ward is in no list


def drawn_task(people, table):
    config = replace(CONFIG, schema=DECLARED)
    return prepare_direct(config, table, people["ill"], public=None, groups=people["person"], **KEYED)


def cells_counted(task):
    """How many units are in each cell of each column, counted where the task has it counted."""
    drawn = task.drawn
    table, counted, dialect = task.private.reveal().table, drawn.counted.reveal(), task.schema.kinds.dialect
    if task.scheduler is None:
        counts = count_cells(drawn.before.declared, table.parts(), counted, dialect)
    else:
        counts = elsewhere.counts_elsewhere(
            task.scheduler, drawn.before.declared, table, counted, dialect, task.n_units
        )
    return [(cells.tolist(), times.tolist()) for cells, times in (count.joined() for count in counts.reveal())]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("n_rows", "at_once"), [(N, 7), (N, 1 << 16), (5, 2)])
def test_workers_count_the_cells_of_one_machine_and_units_lie_in_several_parts(
    n_rows, at_once, people, folder, monkeypatch
):
    people = people[:n_rows]
    plain = drawn_task(people, people.drop("ill", "person"))
    expected = cells_counted(plain)
    assert [sum(times) > 0 for _, times in expected] == [True] * 3
    monkeypatch.setattr(usable_rows, "AT_ONCE", at_once)
    monkeypatch.setattr(usable_rows, "TEXTS_AT_ONCE", at_once)
    task, worker = with_worker(plain, folder)
    assert cells_counted(task) == expected
    assert worker.sizes == [1] * 8  # whatever rows there are


@pytest.mark.heavy
def test_a_part_that_is_not_counted_ends_the_run_before_its_charge(people, folder):
    plain = drawn_task(people, people.drop("ill", "person"))
    task, _ = with_worker(plain, folder, lambda task: RemoteResult(None, 0))
    with Ledger(folder / "ledger.db", budget=Budget(1.0, 1e-5)) as ledger:
        with pytest.raises(Interrupted, match="its rows were not counted"):
            run_rounds(task, ledger)
        assert not ledger.reservations()


@pytest.mark.heavy
def test_a_worker_that_gives_public_cells_other_codes_counts_none(people, folder, monkeypatch):
    plain = drawn_task(people, people.drop("ill", "person"))
    expected, honest = cells_counted(plain), elsewhere.declared_side(Schema(DECLARED), PLAIN)
    leaves = NumberColumn._leaves
    monkeypatch.setattr(NumberColumn, "_leaves", lambda column, numbers: leaves(column, np.nextafter(numbers, -np.inf)))
    task, worker = with_worker(plain, folder)
    monkeypatch.setattr(elsewhere, "declared_side", lambda *public: honest)  # this machine's, as it was
    with pytest.raises(PreconditionFailed, match=r"the worker tcp://127\.0\.0\.1:1 computes other"):
        cells_counted(task)
    assert worker.sizes == []
    monkeypatch.setattr(elsewhere, "answer_of_cells", lambda *asked: honest.answer)  # the twin
    assert cells_counted(task) != expected
