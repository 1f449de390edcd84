"""All acts of owner and clients, crashes, restarts, old files and two processes, against a model of plain lists.

The model knows what was acknowledged: what a call returned. What a crash interrupted is in doubt: it may be on record
or not. Each broken twin is a ledger without one safeguard; the same machine must find a sequence that gives it away.
"""

import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.ledger.faults.trials import without_anchor

from quorate.accounting import PureDP
from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerBusy,
    LedgerIntegrityError,
    LedgerMismatch,
    PreconditionFailed,
    QuorateError,
    QuotaExhausted,
)
from quorate.ledger import Block, Budget, Ledger, Part, Receipt, SqliteStore, chain, reservation
from quorate.ledger.postgres import PostgresStore

BUDGET, PURPOSE = Budget(1.0, 1e-5), "online answer"
SHELF = next((place for place in (Path("/dev/shm"),) if place.is_dir()), Path(tempfile.gettempdir()))
POINTS = ["begun", "inserted", "committed", "anchored"]


class CrashError(OSError):
    """The process ends here."""


class Files:
    """A SQLite file: one process at a time. A crash leaves what lay on the disk at that moment."""

    processes = 1

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="quorate-", dir=SHELF))
        self.number, self.image, self.budget = 0, False, BUDGET
        (self.folder / "0").mkdir()
        self.point = None

    @property
    def path(self):
        return self.folder / str(self.number) / "ledger.db"

    def open(self):
        budget, self.budget = self.budget, None
        return Ledger(budget=budget, store=SqliteStore(self.path, create=True, at=self.at))

    def at(self, name):
        if name == self.point:
            self.point = None
            shutil.copytree(self.path.parent, self.folder / str(self.number + 1))
            self.image = True
            raise CrashError(name)

    def crashed(self):
        self.number += self.image
        self.image = False

    def save(self):
        return {file.name: file.read_bytes() for file in self.path.parent.iterdir()}

    def put(self, files):
        for file in self.path.parent.iterdir():
            file.unlink()
        for name, content in files.items():
            (self.path.parent / name).write_bytes(content)

    def older(self, old, now, *, anchor):
        return {**now, **{name: old[name] for name in old if anchor or not name.endswith(".anchor")}}

    def without_anchor(self, now):
        return {name: content for name, content in now.items() if not name.endswith(".anchor")}

    def check_second(self):
        with pytest.raises(LedgerBusy):
            self.open()

    def end(self):
        shutil.rmtree(self.folder)


class Tables:
    """Tables of PostgreSQL: two processes at once. A crash cuts the connection."""

    processes = 2

    def __init__(self):
        self.url = self.server.url()
        self.name, self.budget = self.url.partition("ledger=")[2], BUDGET
        self.point = None

    def open(self):
        budget, self.budget = self.budget, None
        return Ledger(budget=budget, store=PostgresStore(self.url, create=True, at=self.at))

    def at(self, name):
        if name == self.point:
            self.point = None
            raise CrashError(name)

    def crashed(self):
        pass

    def save(self):
        return {
            table: self.server.rows(f"SELECT * FROM {table} WHERE ledger = %s", self.name)
            for table in ("quorate_entry", "quorate_head")
        }

    def put(self, tables):
        for table, rows in tables.items():
            self.server.sql(f"DELETE FROM {table} WHERE ledger = '{self.name}'")
            self.server.insert(table, rows)

    def older(self, old, now, *, anchor):
        return old if anchor else {**now, "quorate_entry": old["quorate_entry"]}

    def without_anchor(self, now):
        return {**now, "quorate_head": []}

    def check_second(self):
        self.open().close()

    def end(self):
        pass


@dataclass
class Charge:
    """A reservation that was acknowledged, in tenths of ε."""

    tenths: int
    count: int
    drawn: int = 0


@dataclass
class Given:
    """A block that was acknowledged; `process` can store it, and nobody can once that has ended.

    `part`: how many answers of it are the client's where it shares the block.
    """

    key: str
    first: int
    count: int
    client: str
    request: str | None
    block: Block
    process: Ledger
    part: int | None = None
    answers: list[int] | None = None


@dataclass
class Model:
    """What was acknowledged."""

    charges: dict[str, Charge] = field(default_factory=dict)
    blocks: list[Given] = field(default_factory=list)
    quotas: dict[str, int] = field(default_factory=dict)
    drawn_by: dict[str, int] = field(default_factory=dict)
    receipt: Receipt | None = None
    cap: int = 10
    closed: bool = False
    fingerprints: list[str] = field(default_factory=list)

    @property
    def spent(self):
        return sum(charge.tenths for charge in self.charges.values())


keys, clients, counts = st.sampled_from(["k1", "k2", "k3"]), st.sampled_from(["ann", "bob"]), st.integers(1, 4)
requests, who = st.none() | st.sampled_from(["r1", "r2"]), st.integers(0, 1)


class LedgerMachine(RuleBasedStateMachine):
    """Does things to a ledger, and to the model of it."""

    home_of = Files
    broken = None

    def __init__(self):
        super().__init__()
        self.patches = ExitStack()
        if self.broken is not None:
            self.patches.enter_context(type(self).broken())
        self.home, self.model, self.saved = type(self).home_of(), Model(), []
        self.reopen()

    def teardown(self):
        self.close()
        self.patches.close()
        self.home.end()

    def ledger(self, number):
        return self.ledgers[number % len(self.ledgers)]

    def held(self, number, key):
        self.ledger(number).refresh()
        return self.ledger(number).reservation(key)

    def close(self):
        for ledger in self.ledgers:
            ledger.close()

    def reopen(self):
        self.ledgers = [self.home.open() for _ in range(self.home.processes)]

    def attempt(self, expected, act):
        if expected is None:
            return act()
        before = self.written()
        with pytest.raises(expected):
            act()
        assert self.written() == before, "a refusal changed something"
        return None

    def written(self):
        return sum(entry.kind != "started" for entry in self.ledger(0).entries())

    @rule(number=who, key=keys, tenths=st.integers(1, 5), count=st.integers(1, 9))
    def charge(self, number, key, tenths, count):
        known, expected = self.model.charges.get(key), None
        if known is not None:
            expected = None if (known.tenths, known.count) == (tenths, count) else PreconditionFailed
        elif self.model.closed:
            expected = PreconditionFailed
        elif self.model.spent + tenths > self.model.cap:
            expected = BudgetExhausted
        self.attempt(expected, lambda: self.reserve(number, key, tenths, count))
        if expected is None:
            self.model.charges.setdefault(key, Charge(tenths, count))

    def reserve(self, number, key, tenths, count):
        return self.ledger(number).reserve(PureDP(tenths / 10), delta=0, purposes={PURPOSE: count}, key=key)

    @rule(number=who, key=keys, count=counts, client=clients, request=requests)
    def draw(self, number, key, count, client, request):
        self.ask(number, key, count, client, request)

    @precondition(lambda self: any(one.request for one in self.model.blocks))
    @rule(number=who, data=st.data())
    def retry(self, number, data):
        one = data.draw(st.sampled_from([one for one in self.model.blocks if one.request]))
        self.ask(number, one.key, one.count, one.client, one.request)

    def ask(self, number, key, count, client, request):
        held, charge = self.held(number, key), self.model.charges.get(key)
        assert (held is None) == (charge is None)
        if held is None or charge is None:
            return
        under = self.under(client, request)
        answered = next((one for one in under if one.answers is not None), None)
        expected = None
        if under and (under[0].key, under[0].count, under[0].part) != (key, count, None):
            expected = PreconditionFailed
        elif answered is None and charge.drawn + count > charge.count:
            expected = BudgetExhausted
        elif answered is None and self.over_quota(client, count):
            expected = QuotaExhausted
        block = self.attempt(expected, lambda: held.draw(PURPOSE, count, client=client, key=request))
        if block is None:
            return
        if answered is not None:
            assert block.answers == answered.answers, "a retry gets the stored answer"
            return
        self.take(number, key, block, client, request)

    @rule(number=who, key=keys, ann=st.integers(1, 3), bob=st.integers(1, 3), request=requests)
    def draw_together(self, number, key, ann, bob, request):
        """Ann and Bob share a block."""
        held, charge, under = self.held(number, key), self.model.charges.get(key), self.under("ann", request)
        if held is None or charge is None:
            return
        expected = None
        if charge.drawn + ann + bob > charge.count:
            expected = BudgetExhausted
        elif under and ((under[0].key, under[0].part) != (key, ann) or any(one.answers is not None for one in under)):
            expected = PreconditionFailed
        elif self.over_quota("ann", ann) or self.over_quota("bob", bob):
            expected = QuotaExhausted
        parts = [Part(client="ann", count=ann, key=request), Part(client="bob", count=bob)]
        block = self.attempt(expected, lambda: held.draw(PURPOSE, ann + bob, parts=parts))
        if block is not None:
            self.take(number, key, block, "ann", request, ann=ann, bob=bob)

    def under(self, client, request):
        """The blocks that were drawn for a request."""
        same = (client, request)
        return [one for one in self.model.blocks if request is not None and (one.client, one.request) == same]

    def over_quota(self, client, count):
        quota = self.model.quotas.get(client)
        return quota is not None and self.model.drawn_by.get(client, 0) + count > quota

    def take(self, number, key, block, client, request, **shared):
        charge = self.model.charges[key]
        assert block.first == charge.drawn, "noise is drawn once under each charge"
        charge.drawn += block.count
        for each, count in (shared or {client: block.count}).items():
            self.model.drawn_by[each] = self.model.drawn_by.get(each, 0) + count
        process, part = self.ledger(number), shared.get(client)
        given = Given(key, block.first, block.count, client, request, block, process, part)
        self.model.blocks.append(given)
        self.model.receipt = block.receipt

    @precondition(lambda self: self.model.blocks)
    @rule(data=st.data(), letter=st.integers(0, 1), extra=st.sampled_from([0, 0, 0, 1]))
    def store(self, data, letter, extra):
        given = data.draw(st.sampled_from(self.model.blocks))
        number = next((place for place, ledger in enumerate(self.ledgers) if ledger is given.process), 0)
        answers = [letter] * (given.count + extra)
        held = self.held(number, given.key)
        assert held is not None
        expected = InvalidParameter if extra else None
        if given.answers not in (None, answers) or (given.answers is None and given.process not in self.ledgers):
            expected = PreconditionFailed
        receipt = self.attempt(expected, lambda: held.store(given.block, answers))
        if expected is None:
            given.answers, self.model.receipt = answers, receipt

    @rule(number=who, client=clients, quota=st.none() | st.integers(0, 4))
    def set_quota(self, number, client, quota):
        ledger, same = self.ledger(number), self.model.quotas.pop(client, None)
        how = partial(ledger.remove_quota, client) if quota is None else partial(ledger.set_quota, client, quota)
        self.attempt(PreconditionFailed if same == quota else None, lambda: how("r"))
        if quota is not None:
            self.model.quotas[client] = quota

    @rule(number=who, fingerprint=st.sampled_from("abc"), same=st.booleans())
    def bind(self, number, fingerprint, same):
        known, ledger, expected = self.model.fingerprints, self.ledger(number), None
        if same:
            refused = self.model.closed or not known or fingerprint in known
            expected = PreconditionFailed if refused else None
            self.attempt(expected, lambda: ledger.same_release(fingerprint, "r"))
        else:
            expected = LedgerMismatch if known and fingerprint not in known else None
            self.attempt(expected, lambda: ledger.bind(fingerprint))
        if expected is None and fingerprint not in known:
            known.append(fingerprint)

    @rule(number=who, tenths=st.integers(5, 20))
    def raise_budget(self, number, tenths):
        lower = InvalidParameter if tenths <= self.model.cap else None
        expected = PreconditionFailed if self.model.closed else lower
        self.attempt(expected, lambda: self.ledger(number).raise_budget(Budget(tenths / 10, 1e-5), "r"))
        self.model.cap = self.model.cap if expected else tenths

    @rule(number=who, sure=st.sampled_from([False] * 9 + [True]))
    def close_release(self, number, sure):
        if sure:
            expected = PreconditionFailed if self.model.closed else None
            self.attempt(expected, lambda: self.ledger(number).close_release("r"))
            self.model.closed = True

    @rule(number=who, key=keys, tenths=st.integers(1, 5), count=counts, point=st.sampled_from(POINTS))
    def crash_in_a_charge(self, number, key, tenths, count, point):
        if key in self.model.charges or self.model.closed or self.model.spent + tenths > self.model.cap:
            return
        self.crash(point, lambda: self.reserve(number, key, tenths, count))
        recorded = self.ledger(0).reservation(key) is not None
        assert recorded or point in ("begun", "inserted", "anchored"), "committed, and gone"
        if recorded:
            self.model.charges[key] = Charge(tenths, count)

    @rule(number=who, key=keys, count=counts, client=clients, request=requests, point=st.sampled_from(POINTS))
    def crash_in_a_draw(self, number, key, count, client, request, point):
        charge, held = self.model.charges.get(key), self.held(number, key)
        if charge is None or held is None or self.under(client, request):
            return
        if charge.drawn + count > charge.count or self.over_quota(client, count):
            return
        process = self.ledger(number)
        self.crash(point, lambda: held.draw(PURPOSE, count, client=client, key=request))
        blocks = self.ledger(0).reservation(key).blocks(PURPOSE)
        if sum(block.count for block in blocks) > charge.drawn:  # it counts as given, and was never answered
            self.ledgers, live = [process], self.ledgers
            self.take(0, key, blocks[-1], client, request)
            self.ledgers = live

    def crash(self, point, act):
        """Crash, and open what that left: all that was acknowledged is there, and what is in doubt may be."""
        self.home.point = point
        try:
            with pytest.raises(LedgerIntegrityError):
                act()
        finally:
            self.home.point = None
        self.close()
        self.home.crashed()
        self.reopen()

    @rule()
    def restart(self):
        self.close()
        self.saved.append((self.home.save(), self.model.receipt))
        self.reopen()

    @precondition(lambda self: self.saved)
    @rule(data=st.data(), anchor=st.sampled_from([False, False, True]))
    def restore_an_old_file(self, data, anchor):
        old, _ = data.draw(st.sampled_from(self.saved[-4:]))
        newest = self.ledger(0).receipt()
        self.close()
        now = self.home.save()
        self.home.put(self.home.older(old, now, anchor=anchor))
        try:
            ledger = self.home.open()
        except LedgerIntegrityError:
            assert not anchor, "ledger and anchor were restored together: nothing in them can tell"
        else:
            with ledger:
                if ledger.head.sequence >= newest.sequence:
                    ledger.check_receipt(newest)  # it was not older
                else:
                    assert anchor, "an older ledger was taken"
                    with pytest.raises(LedgerIntegrityError):
                        ledger.check_receipt(newest)
        self.home.put(now)
        self.reopen()

    @rule()
    def delete_the_anchor(self):
        self.close()
        now = self.home.save()
        self.home.put(self.home.without_anchor(now))
        with pytest.raises(LedgerIntegrityError):
            self.home.open()
        self.home.put(now)
        self.reopen()

    @rule()
    def another_process(self):
        self.home.check_second()

    @invariant()
    def what_was_acknowledged_is_on_record_and_the_cap_holds(self):
        for ledger in self.ledgers:
            ledger.refresh()
            assert round(ledger.spent.epsilon * 10) == self.model.spent <= self.model.cap
            assert (list(ledger.fingerprints), ledger.closed) == (self.model.fingerprints, self.model.closed)
            assert {client: quota.answers for client, quota in ledger.quotas.items()} == self.model.quotas
            for key, charge in self.model.charges.items():
                held = ledger.reservation(key)
                assert held is not None
                assert held.remaining(PURPOSE) == charge.count - charge.drawn >= 0
                told = {block.first: block.answers for block in held.blocks(PURPOSE)}
                mine = {one.first: one.answers for one in self.model.blocks if one.key == key}
                assert told == mine
            for client, drawn in self.model.drawn_by.items():
                assert ledger.quota(client).drawn == drawn
            if self.model.receipt is not None:
                ledger.check_receipt(self.model.receipt)

    @invariant()
    def the_chain_is_sound(self):
        lines = [entry.to_json() for entry in self.ledger(0).entries()]
        assert chain.verify(lines) == self.ledger(0).state


class SharedLedgerMachine(LedgerMachine):
    """The same on PostgreSQL, with two processes at work."""

    home_of = Tables


@contextmanager
def redrawing():
    """A retry whose answer was lost is drawn anew under the old charge."""
    honest = reservation.admit_draw

    def admit(state, content, *, after=None):
        use = state.keys.get((content.client, content.key))
        again = use is not None and (use.kind, use.body_hash) == (content.kind, content.body_hash)
        return use.entries[-1] if again else honest(state, content, after=after)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservation, "admit_draw", admit)
        yield


@contextmanager
def writing_behind():
    """What was appended is written with the next append, or at the end."""
    honest, close = SqliteStore.append, SqliteStore.close
    waiting = {}

    def append(self, lines, head):
        before = waiting.pop(id(self), None)
        if before is not None:
            honest(self, *before)
        waiting[id(self)] = (list(lines), head)

    def flush(self):
        before = waiting.pop(id(self), None)
        if before is not None and self._connection is not None:
            honest(self, *before)
        close(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "append", append)
        patch.setattr(SqliteStore, "close", flush)
        yield


@contextmanager
def forgetting_others():
    """A server decides by what it remembers, and takes no lock."""

    def begin(self, after):
        with self._guarded("locked"):
            self._start()
            self._at("begun")
            return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresStore, "begin", begin)
        yield


FEW = settings(max_examples=8, stateful_step_count=25, deadline=None)
UNTIL_FOUND = settings(max_examples=300, stateful_step_count=50, deadline=None, phases=[Phase.generate], database=None)

TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = FEW


@pytest.mark.heavy
def test_many_acts_of_one_server_keep_every_promise():
    run_state_machine_as_test(LedgerMachine, settings=settings(FEW, max_examples=30))


@pytest.fixture
def tables(server):
    Tables.server = server


@pytest.mark.heavy
def test_two_servers_on_one_ledger(tables):
    run_state_machine_as_test(SharedLedgerMachine, settings=settings(FEW, max_examples=4))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (redrawing, "noise is drawn once|DID NOT RAISE"),  # twice under one charge, or where nothing is left
        (without_anchor, "an older ledger was taken"),
        (writing_behind, "was changed by somebody else|could not be written"),
    ],
)
def test_the_machine_catches_a_broken_ledger(broken, found):
    twin = type("Twin", (LedgerMachine,), {"broken": staticmethod(broken)})
    with pytest.raises((AssertionError, QuorateError, pytest.fail.Exception), match=found):
        run_state_machine_as_test(twin, settings=UNTIL_FOUND)


@pytest.mark.heavy
def test_the_machine_catches_servers_that_forget_each_other(tables):
    twin = type("Twin", (SharedLedgerMachine,), {"broken": staticmethod(forgetting_others)})
    with pytest.raises((AssertionError, QuorateError, KeyError)):
        run_state_machine_as_test(twin, settings=UNTIL_FOUND)
