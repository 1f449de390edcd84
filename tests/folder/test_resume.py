"""A run killed at any moment goes on: nothing is charged twice, nothing is drawn twice, no stored label changes."""

import random
import re
import secrets
import signal
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from tests.folder.conftest import Killed, labels, run
from tests.preloaded import Forked

from quorate.data import canonical
from quorate.folder import status, table_source
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.folder.status import read_status
from quorate.ledger import Ledger, Reservation, Totals
from quorate.ledger.ledger_files import AnchorFile
from quorate.run import progress
from quorate.voting import kept_votes
from quorate.voting.task import Task

pytestmark = pytest.mark.mostly_heavy

CLI = "from quorate.cli import main; main()"


def start(root):
    (root / "said.txt").write_bytes(b"")
    return Forked(CLI, "run", root, said=root / "said.txt")


def said_by(root):
    return (root / "said.txt").read_text()


def entries_so_far(root):
    """Number of entries in the ledger, as its anchor says; it is read without asking for the ledger's lock."""
    head = AnchorFile(root / "ledger.db.anchor", at=lambda _: None).read()
    return 0 if head is None else head.sequence


def kill_when(root, condition, delay):
    """Start the run and send SIGKILL a moment after the condition holds; the process must have been alive."""
    process = start(root)
    until = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, said_by(root)
        assert time.monotonic() < until
        time.sleep(0.0005)
    time.sleep(delay)
    process.kill()
    assert process.wait() == -signal.SIGKILL


@dataclass(frozen=True)
class Snapshot:
    """What is durable at one moment: the chain, the spend, the reservations, and every stored block."""

    lines: list[dict[str, Any]]
    spent: Totals | None
    reservations: int
    stored: dict[int, list[Any]]
    drawn: list[int]

    @classmethod
    def of(cls, root, purpose="label"):
        if not (root / "ledger.db").exists() or not entries_so_far(root):
            return cls([], None, 0, {}, [])
        with Ledger(root / "ledger.db") as ledger:
            ledger.verify(prices=True)
            blocks = [block for each in ledger.reservations() for block in each.blocks(purpose)]
            return cls(
                lines=ledger.export(),
                spent=ledger.spent,
                reservations=len(ledger.reservations()),
                stored={block.first: block.answers for block in blocks if block.answers is not None},
                drawn=sorted(at for block in blocks for at in range(block.first, block.first + block.count)),
            )


def label_rows(root):
    return {row["row"]: (row["label"], row["status"], row["noisy_half_lead"]) for row in labels(root)}


def breaches(snapshots, n_queries):
    """What a resumed run promises, checked from one durable state to the next; a broken promise has a name here."""
    found = set()
    for before, after in pairwise(snapshots):
        if after.lines[: len(before.lines)] != before.lines:
            found.add("the chain was rewritten")
        if before.reservations and after.spent != before.spent:
            found.add("charged twice")
        if any(after.stored.get(first) != answers for first, answers in before.stored.items()):
            found.add("what was stored changed")
    last = snapshots[-1]
    if last.reservations != 1:
        found.add("charged twice")
    if last.drawn != list(range(n_queries)):
        found.add("drawn more or less often than charged")
    return sorted(found)


@pytest.mark.parametrize("often", [1, pytest.param(2, marks=pytest.mark.faults)])
def test_a_run_killed_at_random_moments_of_every_stage_resumes_and_keeps_its_promises(make_run, often):
    size = {"n": 1200, "m": 2400, "teachers.count": 70, "run.unsafe_noise_seed": 11}
    unbroken, broken = make_run("unbroken", **size), make_run("broken", **size)
    process = start(unbroken)
    began = time.monotonic()  # not before: the first process that is forked waits for what it is forked from
    while not entries_so_far(unbroken):
        time.sleep(0.001)
    until_first_entry = time.monotonic() - began
    assert process.wait() == 0, said_by(unbroken)

    chance = random.Random(20261120)
    snapshots = [Snapshot.of(broken)]
    moments = [lambda: True] * often  # before anything is charged: imports, reading, checking
    delays = [chance.uniform(0.2, 0.9) * until_first_entry for _ in moments]
    moments += [lambda: entries_so_far(broken) > 0] * often  # while teachers are trained
    delays += [chance.uniform(0, 0.3) for _ in range(often)]
    released = 1 + 2 * often
    moments += [lambda: False] * released  # while labels are released; set below, from where the one before stopped
    delays += [chance.uniform(0, 0.004) for _ in range(released)]
    moments += [lambda: any((broken / "public").glob("*labels.csv*"))]  # while the public side is written
    delays += [chance.uniform(0, 0.004)]
    for number, (moment, delay) in enumerate(zip(moments, delays, strict=True)):
        if 2 * often <= number < 2 * often + released:
            first_draw = max(entries_so_far(broken), 3)
            target = first_draw + chance.randint(1, 9)
            moment = lambda target=target: entries_so_far(broken) >= target  # noqa: E731
        kill_when(broken, moment, delay)
        snapshots.append(Snapshot.of(broken))
    process = start(broken)
    assert process.wait() == 0, said_by(broken)
    snapshots.append(Snapshot.of(broken))

    expected, found = label_rows(unbroken), label_rows(broken)
    assert breaches(snapshots, n_queries=len(expected)) == []
    growing = [len(each.stored) for each in snapshots]
    assert len({*growing}) >= released, "the kills must have struck while labels were released"
    in_flight = {row for row, (_, status, _) in found.items() if status == "interrupted"}
    assert len(in_flight) <= 64 * released
    assert len(in_flight) == sum(block["count"] for block in _unstored(broken))
    assert {row: each for row, each in found.items() if row not in in_flight} == {
        row: each for row, each in expected.items() if row not in in_flight
    }
    assert found.keys() == expected.keys()


def _unstored(root):
    with Ledger(root / "ledger.db") as ledger:
        return [{"count": block.count} for block in ledger.reservations()[0].blocks("label") if block.answers is None]


# Under zCDP a second charge would fit, so that a run which makes one is seen to.
ROOM_FOR_TWO = {"mechanism.sigma": 400.0, "budget.composition": "zcdp"}


def perform_killed(root, *, after, in_flight, read=load_run):
    """Run until `after` blocks were drawn, and die there: between charge and storage, or just after storage."""
    real, done = Reservation.store, []

    def store(self, block, answers):
        if in_flight and len(done) + 1 == after:
            raise Killed
        receipt = real(self, block, answers)
        done.append(block)
        if len(done) == after:
            raise Killed
        return receipt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reservation, "store", store)
        with pytest.raises(Killed):
            execute(read(root), command="quorate run")


def killed_and_resumed(root):
    snapshots = []
    for after, in_flight in ((2, False), (2, True), (1, True)):
        perform_killed(root, after=after, in_flight=in_flight)
        snapshots.append(Snapshot.of(root))
    run(root)
    return [*snapshots, Snapshot.of(root)]


def test_a_run_without_a_seed_keeps_the_same_promises(make_run):
    root = make_run(m=600, **ROOM_FOR_TWO)
    snapshots = killed_and_resumed(root)
    assert breaches(snapshots, n_queries=len(label_rows(root))) == []
    assert [len(each.stored) for each in snapshots] == [2, 3, 3, 8]
    statuses = [status for _, status, _ in label_rows(root).values()]
    assert statuses.count("interrupted") == 2 * 64


def test_the_check_catches_a_run_that_charges_under_a_fresh_key(make_run, monkeypatch):
    root = make_run(m=600, **ROOM_FOR_TWO)
    monkeypatch.setattr(Task, "content_key", property(lambda self: secrets.token_hex(8)))
    assert "charged twice" in breaches(killed_and_resumed(root), n_queries=len(label_rows(root)))


def test_the_check_catches_a_run_that_draws_its_labels_again(make_run, monkeypatch):
    """The twin forgets what was stored and draws every query anew, under a reservation it pays for."""
    root = make_run(m=600, **ROOM_FOR_TWO)
    perform_killed(root, after=3, in_flight=False)
    first = label_rows_in_ledger(root)
    with monkeypatch.context() as patch:
        patch.setattr(Task, "content_key", property(lambda self: secrets.token_hex(8)))
        run(root)
    assert label_rows_in_ledger(root) != first
    assert breaches([Snapshot.of(root)], n_queries=len(label_rows(root))) == [
        "charged twice",
        "drawn more or less often than charged",
    ]


def label_rows_in_ledger(root):
    with Ledger(root / "ledger.db") as ledger:
        return [block.answers for block in ledger.reservations()[-1].blocks("label")][:3]


def test_the_check_catches_noise_that_depends_on_where_a_run_was_killed(make_run, monkeypatch):
    from quorate.noise import SeededNoise

    def numbered(self, purpose, index):
        return self  # one stream from start to end: a resumed run begins it again

    def both():
        suffix = secrets.token_hex(4)
        roots = [make_run(f"{name}-{suffix}", m=600, **{"run.unsafe_noise_seed": 5}) for name in ("whole", "killed")]
        run(roots[0])
        killed_and_resumed(roots[1])
        whole, killed = map(label_rows, roots)
        answered = [row for row in whole if killed[row][1] == "answered"]
        return [{row: each[row] for row in answered} for each in (whole, killed)]

    whole, killed = both()
    assert whole == killed
    monkeypatch.setattr(SeededNoise, "at", numbered)
    whole, killed = both()
    assert whole != killed


@pytest.mark.parametrize("model", ["logistic", "lightgbm"])
def test_votes_of_teachers_that_no_file_holds_are_kept_by_the_chunk(model, make_run, monkeypatch):
    if model == "lightgbm":
        pytest.importorskip("lightgbm")
    else:
        monkeypatch.setattr(kept_votes, "dump_voters", lambda *_, **__: None)
    for room in (status, kept_votes):
        monkeypatch.setattr(room, "CHUNK", 8)  # three chunks of few teachers
    size = {"n": 600, "teachers.count": 20, "teachers.model": model, "run.unsafe_noise_seed": 3}
    whole, broken = make_run("whole", **size), make_run("broken", **size)
    run(whole)
    real, chunks, last = kept_votes.train_chunk, list[int](), 16

    def train(*rows, numbers, **how):
        chunks.append(numbers.start)
        if chunks == [0, 8, last]:
            raise Killed
        return real(*rows, numbers=numbers, **how)

    monkeypatch.setattr(kept_votes, "train_chunk", train)
    with pytest.raises(Killed):
        run(broken)
    assert read_status(broken).teachers_stored == 16
    kept = sorted((broken / "private").glob("counted-*.stage"))
    assert [(path.name, path.stat().st_mode & 0o777) for path in kept] == [
        ("counted-00000.stage", 0o600),
        ("counted-00008.stage", 0o600),
    ]
    kept[1].write_bytes(kept[1].read_bytes()[:-1])  # cut short: as if it were not there
    run(broken)
    assert chunks == [0, 8, last, 8, last]
    assert label_rows(broken) == label_rows(whole)


def test_trees_of_lightgbm_that_answer_later_are_read_and_not_trained_again(make_run, cli, monkeypatch):
    pytest.importorskip("lightgbm")
    root = make_run(**{"n": 600, "teachers.model": "lightgbm", "mechanism.online_answers": 5})
    run(root)
    assert not list((root / "private").glob("counted-*.stage"))
    monkeypatch.setattr(kept_votes, "train_chunk", lambda *_, **__: pytest.fail("teachers are trained again"))
    asked = root / "asked.csv"
    asked.write_text("".join((root / "public.csv").read_text(encoding="utf-8").splitlines(keepends=True)[:3]))
    assert cli("ask", root, asked)[0] == 0


def test_a_large_table_is_told_to_be_read_before_it_is(make_run, cli, monkeypatch):
    """And how far that is, in parts of which nobody can tell a number of rows."""
    monkeypatch.setattr(table_source, "LARGE_FILE", 100)
    monkeypatch.setattr(canonical, "_BLOCK_CELLS", 100)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    said = cli("run", make_run())[2].splitlines()
    assert said[0] == "reading private rows"
    assert re.fullmatch(r"reading private rows: \d+ %, about \d+ s left", said[1])
    assert "training teachers (12)" in said


def shuffled(root):
    lines = (root / "private.csv").read_text().splitlines()
    rows = lines[1:]
    random.Random(7).shuffle(rows)
    (root / "private.csv").write_text("\n".join([lines[0], *rows]) + "\n")


@pytest.mark.quick
def test_after_a_shuffle_no_old_teacher_is_kept_where_a_slot_is_a_position(make_run):
    """A row known by its position would stand in two teachers, were old ones kept: and it is another charge."""
    root = make_run()
    before = load_run(root)
    shuffled(root)
    after = load_run(root)

    assert after.task.fingerprint == before.task.fingerprint  # so nothing else would notice
    assert after.task.cache_inputs != before.task.cache_inputs
    assert after.charge_key != before.charge_key


def test_a_shuffle_changes_nothing_where_units_have_ids(make_run):
    root = make_run(**{"data.unit": "patient_id"})
    before = load_run(root)
    shuffled(root)

    assert load_run(root).charge_key == before.charge_key
