"""PostgreSQL: several servers on one ledger, and what somebody with a database tool can do to it."""

import os
import shlex
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.labelling.conftest import ask
from tests.ledger.conftest import reserved
from tests.ledger.postgres_server import running, why_not
from tests.shell import shell

from quorate.accounting import Repeated
from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerBusy,
    LedgerIntegrityError,
    LedgerMismatch,
    PreconditionFailed,
    QuotaExhausted,
)
from quorate.labelling import ClientRequest, Memo, OnlineAnswers
from quorate.ledger import Budget, Ledger, postgres, register_store
from quorate.ledger.postgres import PostgresStore
from quorate.ledger.postgres_url import LedgerUrl
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import OSNoise
from quorate.release.keys import fingerprint_key
from quorate.types import Secret

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

BUDGET, PURPOSE = Budget(1.0, 1e-5), "label"
HEAD = "SELECT sequence, hash FROM quorate_head WHERE ledger = %s"


def name_of(url):
    return url.partition("ledger=")[2].partition("&")[0]


def refused(url):
    for budget in (None, BUDGET):
        with pytest.raises(LedgerIntegrityError):
            Ledger(url, budget=budget)


def test_a_ledger_that_is_not_there_is_not_made_without_a_budget(server):
    server.sql("CREATE DATABASE empty")
    elsewhere = server.url().replace("/postgres?", "/empty?")
    for nowhere in (server.url(), elsewhere):
        with pytest.raises(PreconditionFailed, match="give a budget"):
            Ledger(nowhere)
    with Ledger(elsewhere, budget=BUDGET) as ledger:
        assert ledger.durable
        assert ledger.own_store is None
        assert ledger.place == f"PostgreSQL, ledger '{name_of(elsewhere)}'"


def test_one_database_holds_several_ledgers(server):
    one, two = server.url(), server.url()
    with Ledger(one, budget=BUDGET) as first, Ledger(two, budget=BUDGET) as second:
        reserved(first)
        assert (first.spent.epsilon, second.spent.epsilon) == (0.25, 0.0)


NOWHERE = ["/db?ledger=", "/db?key_file=/nowhere/at/all.key", "/db?key_file=/tmp/key", "/db?such=1", "/db?standby=yes"]
UNREADABLE = [
    "user:hunter2%zz@host/db",
    "user:hun?hunter2@host/db",
    "user:hun@hunter2@host/db",
    "user:hunter2/hunter2@host/db",
    "user:hunter2",
    "user@host/db?hunter2",
]


@pytest.mark.default_cases(8)
@pytest.mark.parametrize(
    ("place", "error", "told"),
    [
        *((place, InvalidParameter, None) for place in NOWHERE),
        ("user:hunter2@/db?host=/nowhere", LedgerIntegrityError, None),
        *((place, InvalidParameter, "%40") for place in UNREADABLE),
    ],
)
def test_a_url_that_leads_nowhere_or_cannot_be_read_is_refused_and_no_password_told(place, error, told):
    with pytest.raises(error, match=told) as refusal:
        Ledger(f"postgresql://{place}", budget=BUDGET)
    assert "hunter2" not in str(refusal.value)


def test_parameters_with_spaces_and_signs_reach_libpq_as_they_are():
    place = LedgerUrl.read("postgresql:///db?options=-c%20a%3Db+c&ledger=one&password=p%26q+r%2B")
    given = psycopg.conninfo.conninfo_to_dict(place.conninfo)
    assert (given["options"], given["password"], place.name) == ("-c a=b+c", "p&q+r+", "one")


def test_the_scheme_is_not_given_to_another_store():
    with pytest.raises(InvalidParameter, match="taken"):
        register_store("postgresql", lambda url, create: None)


def test_without_psycopg_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PreconditionFailed, match=r"quorate\[postgres\]"):
        Ledger("postgresql:///db", budget=BUDGET)


@pytest.mark.heavy
def test_a_server_that_does_not_wait_for_its_disk_is_refused(monkeypatch):
    with running() as server:
        server.stop()
        server.start(fsync=False)
        with pytest.raises(PreconditionFailed, match="fsync"):
            Ledger(server.url(), budget=BUDGET)


def test_a_commit_is_waited_for_whatever_the_database_says(server, url):
    server.sql(
        "ALTER ROLE quorate SET synchronous_commit = off", "ALTER ROLE quorate SET client_encoding = 'SQL_ASCII'"
    )
    try:
        store = PostgresStore(url, create=False)
        assert store._value("SHOW synchronous_commit") == "on"
        assert store._value("SHOW client_encoding") == "UTF8"
        store.close()
    finally:
        server.sql("ALTER ROLE quorate RESET synchronous_commit", "ALTER ROLE quorate RESET client_encoding")


def test_a_role_that_may_only_add_serves_and_cannot_rewrite(server, url):
    """The rights that the page on sharing gives."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "share-a-ledger.md").read_text(encoding="utf-8")
    grants = page.partition("```sql\n")[2].partition("```")[0].strip().splitlines()
    server.sql("CREATE ROLE teller LOGIN", *grants)
    theirs = url.replace("user=quorate", "user=teller")
    with Ledger(theirs) as ledger:
        ledger.reservations()[0].draw(PURPOSE)
        ledger.verify()
    with Ledger(theirs.replace(name_of(url), "another"), budget=BUDGET) as new:
        reserved(new)
    with psycopg.connect(host=str(server.folder), user="teller", dbname="postgres", autocommit=True) as connection:
        for statement in (
            "UPDATE quorate_entry SET line = '{}'",
            "DELETE FROM quorate_entry",
            "DELETE FROM quorate_head",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_two_servers_share_one_cap_one_key_space_and_one_quota(url):
    with Ledger(url) as one, Ledger(url) as two:
        first, second = one.reservations()[0], two.reservations()[0]
        block = first.draw(PURPOSE, 3, client="ann", key="k")
        first.store(block, [1, 1, 1])
        assert second.draw(PURPOSE, 3, client="ann", key="k").answers == [1, 1, 1]  # a retry elsewhere is free
        one.set_quota("ann", 4, "a trial")
        with pytest.raises(QuotaExhausted):
            second.draw(PURPOSE, 2, client="ann")
        with pytest.raises(BudgetExhausted):
            second.draw(PURPOSE, 4, client="bob")
        second.draw(PURPOSE, 3, client="bob")
        with pytest.raises(BudgetExhausted):
            first.draw(PURPOSE, client="bob")
        assert one.refresh() == two.refresh()
        assert one.verify() == two.verify()
        assert one.entries() == two.entries()


def test_a_server_verifies_and_reads_while_others_write(url):
    with Ledger(url) as one, Ledger(url) as two:
        one.reservations()[0].draw(PURPOSE)
        two.verify()
        one.reservations()[0].draw(PURPOSE)
        assert len(two.entries()) == one.head.sequence


def desk(ledger, asked):
    """Online answers as a server gives them: a coin toss, whenever it is tossed."""
    mechanism = GaussianNoisyMax(sigma=200.0, form="binary")
    event = Repeated(mechanism.event, 40)
    reservation = ledger.reserve(event, delta=1e-6, purposes={"online answer": 40}, key="kept back")

    def votes(rows):
        asked.append(len(rows))
        return Secret(np.full((len(rows), 2), 50))

    return OnlineAnswers(votes, mechanism, reservation, OSNoise(), Memo(), 2)


def test_what_one_server_answered_another_does_not_ask_again(server):
    url, asked = server.url(), []
    with Ledger(url, budget=BUDGET) as first, Ledger(url) as second:
        one, two = desk(first, asked), desk(second, asked)
        rows, digests = np.arange(12), [b"%d" % number for number in range(12)]
        [answer] = one.ask_together(rows, [ClientRequest(client="ann", digests=digests, key="k")])
        [again] = two.ask_together(rows, [ClientRequest(client="ann", digests=digests, key="k")])
        assert (answer.charged, again.charged, asked) == (12, 0, [12])
        assert again.codes.tolist() == answer.codes.tolist() == ask(two, digests).tolist()
        more = ask(two, [b"new", *digests])
        assert ask(one, [b"new"]).tolist() == more[:1].tolist()
        assert asked == [12, 1]
        assert one.reservation.remaining("online answer") == 27


def test_what_one_server_drew_is_not_stored_by_another(url):
    with Ledger(url) as one, Ledger(url) as two:
        block = one.reservations()[0].draw(PURPOSE)
        with pytest.raises(PreconditionFailed, match="process that ended"):
            two.reservations()[0].store(block, [1])
        one.reservations()[0].store(block, [1])


def test_servers_that_open_a_new_ledger_at_once_open_one(server):
    url = server.url()
    first = PostgresStore(url, create=True)
    second = PostgresStore(url, create=True)
    with Ledger(budget=BUDGET, store=first) as one:
        journal_of_two = Ledger.__new__(Ledger)  # both have seen an empty ledger
        empty = second.load
        second.load = lambda after=0: empty(after) if after else postgres.StoredEntry(lines=(), anchor=postgres.GENESIS)
        journal_of_two.__init__(budget=BUDGET, store=second)
        assert journal_of_two.head == one.head
        journal_of_two.close()
    third = PostgresStore(url, create=True)
    third.load = lambda after=0: postgres.StoredEntry(lines=(), anchor=postgres.GENESIS)
    with pytest.raises(LedgerMismatch):
        Ledger(budget=Budget(2.0, 1e-5), store=third)


def test_servers_that_decide_by_what_they_remember_are_caught(url, monkeypatch):
    """The twin takes no lock, reads nothing new, and appends behind whatever is there: the chain gives it away."""

    def blind(self, after):
        self._start()
        return ()

    def behind(self, lines, head):
        newest = self._value("SELECT max(sequence) FROM quorate_entry WHERE ledger = %s", self.name)
        for number, line in enumerate(lines, newest + 1):
            self._connection.execute("INSERT INTO quorate_entry VALUES (%s, %s, %s)", (self.name, number, line))
        move = "UPDATE quorate_head SET sequence = %s, hash = %s WHERE ledger = %s"
        self._connection.execute(move, (newest + len(lines), head.hash, self.name))
        self._connection.execute("COMMIT")
        self._began = False

    with monkeypatch.context() as broken, Ledger(url) as one, Ledger(url) as two:
        broken.setattr(PostgresStore, "begin", blind)
        broken.setattr(PostgresStore, "append", behind)
        given = [ledger.reservations()[0].draw(PURPOSE, 6).first for ledger in (one, two)]
    assert given == [4, 4]  # the same answers twice, and more than are left
    refused(url)


def test_whoever_waits_too_long_for_the_head_may_try_again_with_nothing_charged(server, url, monkeypatch):
    monkeypatch.setattr(postgres, "_SESSION", (*postgres._SESSION, "SET lock_timeout = '50ms'"))
    with Ledger(url) as ledger:
        [reservation] = ledger.reservations()
        left = reservation.remaining(PURPOSE)
        with psycopg.connect(host=str(server.folder), user="quorate", dbname="postgres") as other:
            other.execute(f"{HEAD} FOR UPDATE", (name_of(url),))
            with pytest.raises(LedgerBusy, match="SQLSTATE 55P03: another server"):
                reservation.draw(PURPOSE)
        assert ledger.healthy
        reservation.draw(PURPOSE)
        assert reservation.remaining(PURPOSE) == left - 1


@pytest.mark.parametrize("act", [lambda ledger: ledger.reservations()[0].draw(PURPOSE), Ledger.refresh])
def test_a_server_that_says_nothing_is_given_up(server, url, monkeypatch, act):
    monkeypatch.setattr(postgres, "_ANSWERS_WITHIN", 0.3)
    with Ledger(url) as ledger:
        backend = ledger._store._connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            with pytest.raises(LedgerIntegrityError, match="did not answer in time"):
                act(ledger)
            assert not ledger.healthy
        finally:
            os.kill(backend, signal.SIGCONT)


def test_a_session_that_waits_for_questions_is_not_ended_by_the_databases_own_limit(server, url):
    server.sql("ALTER ROLE quorate SET idle_session_timeout = '300ms'")
    try:
        with Ledger(url) as ledger:
            time.sleep(0.8)
            ledger.reservations()[0].draw(PURPOSE)
    finally:
        server.sql("ALTER ROLE quorate RESET idle_session_timeout")


def test_why_it_failed_is_told_by_its_code_and_never_by_what_the_database_says(server, url):
    with Ledger(url) as ledger:
        [reservation] = ledger.reservations()
        server.sql("ALTER TABLE quorate_entry ADD CONSTRAINT no_more CHECK (line NOT LIKE '%drawn%') NOT VALID")
        try:
            with pytest.raises(LedgerIntegrityError) as refused:
                reservation.draw(PURPOSE)
        finally:
            server.sql("ALTER TABLE quorate_entry DROP CONSTRAINT no_more")
    assert "SQLSTATE 23514: somebody else wrote to the ledger's tables" in str(refused.value)
    assert not {"no_more", "DETAIL", "Failing", "INSERT"} & set(str(refused.value).replace('"', " ").split())


def test_a_holder_of_the_lock_that_hangs_is_cut_off(server, url, monkeypatch):
    monkeypatch.setattr(postgres, "_SESSION", (*postgres._SESSION, "SET idle_in_transaction_session_timeout = '50ms'"))
    hanging = PostgresStore(url, create=False)
    hanging.begin(0)
    with Ledger(url) as ledger:
        ledger.reservations()[0].draw(PURPOSE)
    with pytest.raises(LedgerIntegrityError):
        hanging.append(["{}"], postgres.Head(sequence=99, hash="0" * 64))
    hanging.close()


def test_whatever_stops_a_ledger_leaves_nobody_waiting(server, url, monkeypatch):
    """A check that fails, or an interrupt, while the head is locked: the lock is let go of at once."""

    def fail(_):
        raise LedgerIntegrityError("found wrong")

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres, "_SESSION", (*postgres._SESSION, "SET lock_timeout = '2s'"))
    stopped = [Ledger(url) for _ in range(2)]
    with pytest.raises(LedgerIntegrityError, match="found wrong"):
        stopped[0]._journal.verify(fail)
    with pytest.raises(KeyboardInterrupt):
        stopped[1]._journal.submit(interrupt, lambda state, sequence: None)
    with Ledger(url) as ledger:
        ledger.reservations()[0].draw(PURPOSE)
    for each in stopped:
        assert not each.healthy
        each.close()


def test_the_key_lies_where_the_url_says_and_gets_its_name_with_the_first_entry(server, tmp_path):
    url = server.url(key_file=str(tmp_path / "study.key"))
    with Ledger(url, budget=BUDGET) as ledger:
        key = fingerprint_key(ledger).reveal()
        ledger.bind("a")
    with Ledger(url) as again:
        assert fingerprint_key(again).reveal() == key
    assert [file.name for file in tmp_path.iterdir()] == ["study.key"]


def test_without_a_place_for_the_key_no_data_are_bound(url):
    with Ledger(url) as ledger, pytest.raises(PreconditionFailed, match="key_file"):
        fingerprint_key(ledger)


@pytest.mark.heavy
def test_every_verb_of_the_command_line_takes_a_url(url, tmp_path):
    def said(*arguments):
        code, out, err = shell(shlex.join(["quorate", "ledger", *map(str, arguments)]), tmp_path)
        return code, out + err

    assert "spent ε 0.25 of 1" in said("show", url)[1]
    code, out = said("receipt", url)
    assert code == 0
    assert "1 receipt checked" in said("verify", url, "--receipt", out.strip())[1]
    assert "of 3 answers, 3 left" in said("quota", url, "--client", "ann", "--answers", 3, "--reason", "a trial")[1]
    assert said("export", url, "--to", tmp_path / "export.json")[0] == 0
    assert "1 receipt checked" in said("verify", tmp_path / "export.json", "--receipt", out.strip())[1]
    assert said("close", url, "--reason", "published")[0] == 0
    assert said("show", url.replace(name_of(url), "nowhere"))[0] == 4


AT = "WHERE ledger = '{name}'"
NEWEST = "(SELECT max(sequence) FROM quorate_entry WHERE ledger = '{name}')"


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "statements",
    [
        [f"UPDATE quorate_entry SET line = replace(line, '250000000', '150000000') {AT}"],
        [f"UPDATE quorate_entry SET line = line || ' ' {AT} AND sequence = 3"],
        [f"DELETE FROM quorate_entry {AT} AND sequence = 4"],
        [f"DELETE FROM quorate_entry {AT} AND sequence = {NEWEST}"],
        [f"DELETE FROM quorate_entry {AT}"],
        [f"UPDATE quorate_entry SET sequence = sequence + 10 {AT}"],
        [f"UPDATE quorate_entry SET ledger = 'moved' {AT} AND sequence = {NEWEST}"],
        [f"INSERT INTO quorate_entry SELECT ledger, 99, line FROM quorate_entry {AT} AND sequence = {NEWEST}"],
        [f"DELETE FROM quorate_head {AT}"],
        [f"UPDATE quorate_head SET sequence = sequence - 1 {AT}"],
        [f"UPDATE quorate_head SET hash = repeat('0', 64) {AT}"],
        [f"DELETE FROM quorate_head {AT}", f"DELETE FROM quorate_entry {AT}"],
        [f"UPDATE quorate_head SET sequence = 0, hash = repeat('0', 64) {AT}", f"DELETE FROM quorate_entry {AT}"],
    ],
)
def test_an_edited_table_is_refused(server, url, statements):
    server.sql(*(statement.format(name=name_of(url)) for statement in statements))
    refused(url)


def test_an_older_state_put_back_whole_is_exposed_by_a_receipt(server, url):
    name = name_of(url)
    server.sql(
        f"CREATE TABLE old_entry AS SELECT * FROM quorate_entry WHERE ledger = '{name}'",
        f"CREATE TABLE old_head AS SELECT * FROM quorate_head WHERE ledger = '{name}'",
    )
    with Ledger(url) as ledger:
        receipt = ledger.reservations()[0].draw(PURPOSE).receipt
    server.sql(
        f"DELETE FROM quorate_entry WHERE ledger = '{name}'",
        f"DELETE FROM quorate_head WHERE ledger = '{name}'",
        "INSERT INTO quorate_entry SELECT * FROM old_entry",
        "INSERT INTO quorate_head SELECT * FROM old_head",
        "DROP TABLE old_entry, old_head",
    )
    with Ledger(url) as ledger, pytest.raises(LedgerIntegrityError):
        ledger.check_receipt(receipt)


def test_what_is_edited_under_an_open_ledger_stops_it(server, url):
    name = name_of(url)
    with Ledger(url) as ledger:
        server.sql(f"UPDATE quorate_head SET sequence = sequence - 1 WHERE ledger = '{name}'")
        with pytest.raises(LedgerIntegrityError):
            ledger.reservations()[0].draw(PURPOSE)
        assert not ledger.healthy


@contextmanager
def crashing(server):
    yield
    server.stop("immediate")  # as after a power cut: what was not on the disk is gone
    server.start()


@pytest.mark.heavy
def test_a_crash_of_the_server_loses_no_answer_that_was_given():
    with running() as server:
        url = server.url()
        with crashing(server):
            ledger = Ledger(url, budget=BUDGET)
            reservation = reserved(ledger, 1000)
            given = []
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                block = reservation.draw(PURPOSE)
                reservation.store(block, [1])
                given.append(block.first)
        with pytest.raises(LedgerIntegrityError):
            reservation.draw(PURPOSE)
        ledger.close()
        with Ledger(url) as again:
            again.verify()
            blocks = again.reservations()[0].blocks(PURPOSE)
            assert [block.first for block in blocks if block.status == "stored"] == given
