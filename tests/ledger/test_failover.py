"""A standby that takes over: what was told is on it, and a primary that was replaced is told from the new one."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.ledger.faults import table
from tests.ledger.faults.failover import FAULT, drill
from tests.ledger.postgres_server import waiting, why_not

from quorate.errors import LedgerIntegrityError, PreconditionFailed
from quorate.folder.folder import RunFolder
from quorate.ledger import Ledger, postgres
from quorate.ledger.postgres import PostgresStore
from quorate.ledger.state import Epoch

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

PURPOSE = "label"
WAITS = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def cancelled(server, ledger):
    """Draw, and have the commit's wait for the standby cancelled."""
    with ThreadPoolExecutor(1) as pool:
        drawn = pool.submit(ledger.reservations()[0].draw, PURPOSE)
        server.until(f"SELECT count(*) = 1 {WAITS}")
        server.rows(f"SELECT pg_cancel_backend(pid) {WAITS}")
    return drawn


def test_a_commit_that_the_standby_may_lack_answers_nothing_and_is_settled_by_waiting(server, url, monkeypatch):
    with Ledger(url) as ledger, Ledger(url) as other, waiting(server):
        with pytest.raises(LedgerIntegrityError, match="whether it would outlive the database is unknown"):
            cancelled(server, ledger).result()
        assert not ledger.healthy
        # It is visible by now, and the standby does not have it: nobody may be told of it.
        monkeypatch.setattr(postgres, "_READS_WITHIN", 0.5)
        monkeypatch.setattr(postgres, "_ANSWERS_WITHIN", 0.5)
        for look in (lambda: Ledger(url), other.refresh):
            with pytest.raises(LedgerIntegrityError, match="did not answer in time"):
                look()
    monkeypatch.undo()
    server.until(f"SELECT count(*) = 0 {WAITS}")
    with Ledger(url) as ledger:
        assert ledger.reservations()[0].remaining(PURPOSE) == 5  # in doubt, and so charged


def test_that_test_catches_a_store_that_takes_a_warning_for_a_success(server, url, monkeypatch):
    monkeypatch.setattr(PostgresStore, "_note", lambda self, notice: None)
    with Ledger(url) as ledger, waiting(server):
        assert cancelled(server, ledger).result().first == 4
        monkeypatch.setattr(PostgresStore, "_end", lambda self: self._open_connection().execute("ROLLBACK"))
        with Ledger(url) as other:
            assert other.reservations()[0].remaining(PURPOSE) == 5  # told, though no standby has it


def waited_for_nobody(server, url):
    """Draw, and empty the setting that the commit waits by: PostgreSQL tells of a success, without a warning."""
    with Ledger(url) as ledger, waiting(server), ThreadPoolExecutor(1) as pool:
        drawn = pool.submit(ledger.reservations()[0].draw, PURPOSE)
        server.until(f"SELECT count(*) = 1 {WAITS}")
        server.setting("synchronous_standby_names", "")
        return drawn.result()


def test_a_commit_whose_standby_is_taken_out_of_the_settings_meanwhile_answers_nothing(server, url):
    with pytest.raises(LedgerIntegrityError, match="may not have waited until the commit was kept"):
        waited_for_nobody(server, url)


def test_that_test_catches_a_store_that_does_not_look_again(server, url, monkeypatch):
    monkeypatch.setattr(PostgresStore, "_settings_now", lambda self: ("nobody", None))
    monkeypatch.setattr(postgres, "_WAITS_FOR", "current_setting('synchronous_standby_names'), NULL")
    assert waited_for_nobody(server, url).first == 4


def test_where_a_standby_is_required_a_server_that_waits_for_none_is_refused(server, url):
    with pytest.raises(PreconditionFailed, match="standby=required"):
        Ledger(f"{url}&standby=required")


@pytest.mark.parametrize("epoch", [None, Epoch(cluster="", timeline=0)])
def test_a_primary_that_was_replaced_is_refused_by_the_note_of_a_run(server, url, tmp_path, monkeypatch, epoch):
    folder = RunFolder(tmp_path)
    folder.make()
    (tmp_path / "ledger.url").write_text(url)
    with folder.open_ledger() as ledger:  # reads, and writes nothing: the newest entry stays what it was
        now = ledger.epoch
    assert now.timeline == 1
    here = None if epoch is None else replace(now, timeline=epoch.timeline)
    with monkeypatch.context() as former:
        former.setattr(PostgresStore, "_find_epoch", lambda self: here)
        with pytest.raises(LedgerIntegrityError, match="standby took its place"), folder.open_ledger():
            pass
        with Ledger(url):  # whose only note was the run's
            pass
    for later in (now, replace(now, timeline=2), Epoch(cluster="restored", timeline=1)):
        monkeypatch.setattr(PostgresStore, "_find_epoch", lambda self, later=later: later)
        with folder.open_ledger() as ledger:
            assert ledger.epoch == later


@pytest.mark.heavy
def test_a_promoted_standby_has_all_that_was_told_and_the_old_primary_is_refused(tmp_path):
    line = drill(tmp_path, 1)  # the harder way, its standby cut off; more of both by hand
    assert line.violations == 0, line
    assert line.caught > 0, "the check would not have noticed"


@pytest.mark.faults
def test_the_full_form(tmp_path):
    line = drill(tmp_path, 20)
    assert (line.cases, line.violations) == (20, 0), line
    assert line.caught > 0, "the check would not have noticed"
    table.write([line], marks=table.FAILOVER)


def test_the_page_has_the_figures_of_a_full_run():
    assert [table.figures_of(line)[:2] for line in table.lines(table.FAILOVER).values()] == [(20, 0)]
    assert list(table.lines(table.FAILOVER)) == [FAULT]
