"""Quotas of keys: the ledger's is its owner's to change, the key's own holds beside it, and the lower one decides."""

import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from tests.service.conftest import ensemble, rows, running

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.service import keys as module
from quorate.service.keys import FILE, KeyFile
from quorate.service.problems import Problem
from quorate.service.turns import Answered, LabelRequest


def served(**how):
    ledger = Ledger(budget=Budget(40.0, 1e-5))
    return ledger, ensemble(12, ledger, **how)


def asked(*places, client="ann", quota=3):
    return LabelRequest(client, tuple((float(place),) for place in places), quota)


def code_of(reply):
    return reply.code if isinstance(reply, Problem) else [point.by for point in reply.points]


@pytest.mark.heavy
@pytest.mark.parametrize("after_budget", ["student", "refuse"])
def test_a_quota_that_the_owner_lowered_stays_lowered(own_run, after_budget):
    root = own_run()
    token, key = KeyFile(root / "private").create("a trial", ["ask"], quota=20)
    with running(root, after_budget=after_budget) as run:
        run.token = token
        assert run.post({"rows": rows(1)}).json()["charged"] == 1
    with Ledger(root / "ledger.db") as ledger:
        assert ledger.quota(key.client).answers == 20
        ledger.set_quota(key.client, 0, "the trial is over")
    with running(root, after_budget=after_budget) as run:
        run.token = token
        assert run.post({"rows": rows(1)}).json()["answers"][0]["by"] == "ensemble"
        told = run.post({"rows": rows(1, seed=8)}).json()
        assert told["code"] == "quota-spent" if after_budget == "refuse" else told["answers"][0]["by"] == "student"
    with Ledger(root / "ledger.db") as ledger:
        assert (ledger.quota(key.client).answers, ledger.quota(key.client).drawn) == (0, 1)


@pytest.mark.parametrize("refuse", [False, True])
def test_a_quota_that_was_taken_away_stays_away_and_the_key_keeps_its_own(refuse):
    ledger, answers = served(refuse=refuse)
    answers.answer([asked(1)])
    ledger.remove_quota("ann", "she has a key of her own")
    answers.answer([asked(2)])
    told = answers.answer([asked(3, 4), asked(5, 6), asked(3, client="bob", quota=None)])
    assert ledger.quota("ann").answers is None
    assert ledger.quota("ann").drawn <= 3
    assert code_of(told[0]) == ("quota-spent" if refuse else ["ensemble", "student"])
    assert code_of(told[2]) == ["ensemble"]
    assert [entry.kind for entry in ledger.entries()].count("quota set") == 2


def test_a_point_that_another_client_was_refused_does_not_pass_a_key_s_quota():
    ledger, answers = served(refuse=True)
    answers.answer([asked(1, 2, 3)])
    ledger.set_quota("ann", 10, "more")
    told = answers.answer([asked(*range(10, 30), client="bob", quota=None), asked(10)])
    assert [code_of(each) for each in told] == ["budget-spent", "quota-spent"]
    assert ledger.quota("ann").drawn == 3


def test_a_free_request_writes_nothing():
    ledger, answers = served()
    answers.answer([asked(1, client="bob", quota=None)])
    before = ledger.head
    answers.answer([asked(1)])
    assert ledger.head == before


@pytest.mark.parametrize("removed", [False, True])
def test_threads_at_once_neither_fail_nor_pass_the_quota(removed):
    ledger, answers = served()
    if removed:
        ledger.set_quota("ann", 9, "a trial")
        ledger.remove_quota("ann", "no trial")
    start = Barrier(8)

    def ask(place):
        start.wait()
        return answers.answer([asked(place)])[0]

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(ask, range(8)))
    assert all(isinstance(each, Answered) for each in told)
    assert ledger.quota("ann").drawn == 3
    assert ledger.quota("ann").answers == (None if removed else 3)


def test_a_thread_that_was_slower_goes_on(monkeypatch):
    ledger, answers = served()
    set_quota = ledger.set_quota

    def later(client, count, reason, *, first=False):
        set_quota(client, count, "another server was quicker")
        return set_quota(client, count, reason, first=first)

    monkeypatch.setattr(ledger, "set_quota", later)
    assert code_of(answers.answer([asked(1)])[0]) == ["ensemble"]


# --- keys: the secret is shown once, its hash is kept, and a key that ended is a key no more -------------------------


def test_a_secret_has_256_bits_and_is_kept_nowhere(tmp_path):
    token, key = KeyFile(tmp_path).create("ward 7", ["ask"])
    secret = token.split("_", 2)[2]
    kept = (tmp_path / FILE).read_text()
    assert len(secret) == 43  # 32 bytes in base64
    assert secret not in kept
    assert key.hash in kept
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_secrets_are_compared_in_constant_time_known_or_not(tmp_path, monkeypatch):
    keys = KeyFile(tmp_path)
    token, _ = keys.create("ward 7", ["ask"])
    seen = []

    def compare(one, other):
        seen.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    for each in (token, token[:-1] + "?", f"quorate_{'0' * 12}_{'A' * 43}", "no key", ""):
        keys.find(each)
    assert seen == [(64, 64)] * 5


def test_a_key_that_expired_or_was_revoked_is_refused(tmp_path):
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = KeyFile(tmp_path, clock=lambda: now[0])
    (brief, _), (long, key) = (keys.create("a", ["ask"], days=days) for days in (1, None))
    assert keys.find(brief)
    now[0] += timedelta(days=1)
    assert keys.find(brief) is None
    assert keys.find(long)
    KeyFile(tmp_path).revoke(key.id)  # by another process
    assert keys.find(long) is None


@pytest.mark.parametrize("what", ["nothing", "pipe", "device", "deep", "endless", "no keys"])
def test_keys_that_a_service_read_and_that_are_gone_or_no_file_are_an_error_and_wait_for_nobody(
    tmp_path, what, monkeypatch
):
    keys, file = KeyFile(tmp_path), tmp_path / FILE
    assert keys.find("quorate_none") is None  # there may be no key at first
    token, _ = keys.create("a", ["ask"])
    assert keys.find(token)
    kept = file.rename(tmp_path / "kept")
    if what == "pipe":
        os.mkfifo(file)
    elif what == "device":
        file.symlink_to("/dev/zero")
    elif what == "deep":
        file.write_text("[" * 100_000)
    elif what == "no keys":
        file.write_text('{"format": "quorate service keys 1"}')
    elif what == "endless":
        monkeypatch.setattr("quorate.service.keys._LONGEST", 100)
        shutil.copy(kept, file)
    with pytest.raises(PreconditionFailed, match="removed" if what == "nothing" else "damaged"):
        keys.find(token)
    monkeypatch.undo()
    kept.rename(file)
    assert keys.find(token)


def test_what_makes_no_key(tmp_path):
    keys = KeyFile(tmp_path)
    for name, scopes in (("a", ["write"]), ("a", []), ("", ["ask"]), ("a\nb", ["ask"])):
        with pytest.raises(InvalidParameter):
            keys.create(name, scopes)
    with pytest.raises(PreconditionFailed):
        keys.revoke("nobody")
    with pytest.raises(PreconditionFailed):
        KeyFile(tmp_path / "nowhere").create("a", ["ask"])


def test_the_command_line_makes_lists_and_ends_keys(own_run, cli):
    root = own_run()
    code, token, told = cli("keys", "create", root, "--name", "ward 7", "--scope", "ask", "--days", 30, "--quota", 5)
    assert (code, token.startswith("quorate_"), "at most 5 answers" in told) == (0, True, True)
    assert KeyFile(root / "private").find(token.strip())
    code, listed, _ = cli("keys", "list", root)
    assert (code, token.strip() in listed, "ward 7" in listed) == (0, False, True)
    assert cli("keys", "revoke", root, token.split("_")[1])[0] == 0
    assert KeyFile(root / "private").find(token.strip()) is None
    assert "revoked" in cli("keys", "list", root)[1]
