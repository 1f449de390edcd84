"""Many clients at once: one block, one charge a query, the cap to the answer; what a quota lets a key have; keys."""

import asyncio
import errno
import json
import os
import shutil
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from tests.service.conftest import ensemble, rows, running

from quorate.errors import REMEDIES, InvalidParameter, LedgerBusy, LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.service import keys as module
from quorate.service.keys import FILE, KeyFile
from quorate.service.problems import Problem
from quorate.service.turns import Answered, AnsweringThreads, LabelRequest, Point, Standing

CLIENTS = 24


def at_once(run, bodies):
    start = threading.Barrier(len(bodies))

    def post(body):
        start.wait()
        return run.post(body)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(post, bodies))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("after_budget", "clients"),
    [
        *(("student", CLIENTS), ("refuse", CLIENTS)),
        *(pytest.param("student", 64 + n, marks=pytest.mark.faults) for n in range(20)),
    ],
)
def test_many_clients_are_given_exactly_the_cap(own_run, after_budget, clients):
    root = own_run()
    with running(root, after_budget=after_budget) as run:
        told = at_once(run, [{"row": row} for row in rows(clients, seed=clients)])
        assert run.left == 0
    by = [each.json()["answer"]["by"] if each.status_code == 200 else each.json()["code"] for each in told]
    assert by.count("ensemble") == 12
    assert set(by) == {"ensemble", "student" if after_budget == "student" else "budget-spent"}
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert reservation.remaining("online answer") == 0
        assert sum(len(block.answers["answers"]) for block in reservation.blocks("online answer")) == 12


@pytest.mark.heavy
def test_one_query_of_many_clients_at_once_is_one_charge(serve):
    run = serve()
    told = at_once(run, [{"row": rows(1)[0]}] * CLIENTS)
    assert len({str(each.json()["answer"]) for each in told}) == 1
    assert sum(each.json()["charged"] for each in told) == run.service.records.charged == 1
    assert run.left == 11


NOTHING = Standing(answers_left=9, answers_reserved=9, epsilon=(1.0, 1.0), delta=(0.0, 0.0), entries=1, head="")


class Slow:
    """Answers each block after a while, and keeps what the blocks were."""

    def __init__(self, fails=None):
        self.blocks = []
        self.standing, self.healthy, self.fails = NOTHING, True, fails

    def answer(self, block):
        self.blocks.append(len(block))
        time.sleep(0.05)
        if self.fails is not None:
            raise self.fails
        return [Answered((Point("no", "answered", "ensemble"),)) for _ in block]


REQUEST = LabelRequest("key:a", ((),))


def asked_together(threads, requests):
    async def ask():
        return await asyncio.gather(*map(threads.ask, requests))

    return asyncio.run(ask())


def ask_all(threads, n):
    return asked_together(threads, [REQUEST] * n)


def test_what_waits_together_is_one_block():
    slow = Slow()
    threads = AnsweringThreads(slow)
    assert all(isinstance(reply, Answered) for reply in ask_all(threads, 200))
    threads.stop()
    assert sum(slow.blocks) == 200
    assert len(slow.blocks) <= 8


def test_more_than_may_wait_are_refused():
    threads = AnsweringThreads(Slow(), max_waiting=10)
    codes = [reply.code for reply in ask_all(threads, 60) if isinstance(reply, Problem)]
    threads.stop()
    assert set(codes) == {"overloaded"}
    assert len(codes) >= 30


def test_what_was_not_written_may_be_tried_again_and_a_log_that_fails_ends_no_thread():
    slow = Slow(LedgerBusy("no memory is left; nothing was written"))

    def fails(_):
        raise BrokenPipeError

    threads = AnsweringThreads(slow, failed=fails)
    told = [reply for reply in ask_all(threads, 3) if isinstance(reply, Problem)]
    assert {(reply.code, reply.charged) for reply in told} == {("overloaded", False)}
    slow.fails = None
    assert all(isinstance(reply, Answered) for reply in ask_all(threads, 3))
    slow.fails = ZeroDivisionError()
    assert [reply.code for reply in ask_all(threads, 1) if isinstance(reply, Problem)] == ["internal-error"]
    slow.fails = None
    assert all(isinstance(reply, Answered) for reply in ask_all(threads, 3))
    assert threads.stop()


def test_an_answer_that_never_comes_does_not_keep_the_service_from_ending():
    ends = threading.Event()

    class Hanging(Slow):
        def answer(self, block):
            ends.wait()
            return super().answer(block)

    threads = AnsweringThreads(Hanging())

    async def ask():
        under_way = asyncio.create_task(threads.ask(REQUEST))
        await asyncio.sleep(0.01)
        assert not await asyncio.to_thread(threads.stop, 0.05)
        ends.set()
        assert isinstance(await under_way, Answered)

    asyncio.run(ask())
    assert threads.stop()


def test_what_was_charged_and_not_answered_is_charged_once_and_its_neighbours_are_told():
    """Nobody is asked anew on his own where the draw was made: that would be a second charge."""

    def fails(_):
        raise PreconditionFailed("no votes")

    answers = ensemble(9, votes=fails)
    said = []
    told = replies_of(answers, [((1.0,), (2.0,)), ((3.0,),)], said.append)
    assert {(reply.code, reply.charged) for reply in told if isinstance(reply, Problem)} == {("internal-error", True)}
    assert len(told) == 2
    assert answers.standing.answers_left == 9 - 3
    assert {type(each) for each in said} == {PreconditionFailed}


def test_what_waits_at_the_end_is_answered_and_what_comes_after_is_not():
    threads = AnsweringThreads(Slow())

    async def stopping():
        under_way = [asyncio.create_task(threads.ask(REQUEST)) for _ in range(9)]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(threads.stop)
        return [await each for each in under_way], await threads.ask(REQUEST)

    answered, late = asyncio.run(stopping())
    assert all(isinstance(reply, Answered) for reply in answered)
    assert late.code == "stopping"


def test_after_an_error_of_the_ledger_nothing_is_answered_any_more():
    slow = Slow(LedgerIntegrityError("the disk is full"))
    threads = AnsweringThreads(slow)
    told = [*ask_all(threads, 3), *ask_all(threads, 3)]
    threads.stop()
    assert {reply.code for reply in told if isinstance(reply, Problem)} == {"unhealthy"}
    assert len(told) == 6
    assert len(slow.blocks) <= 2


def test_a_request_that_fails_does_not_fail_its_neighbours():
    class Picky(Slow):
        def answer(self, block):
            if any(asked.client == "key:bad" for asked in block):
                raise ZeroDivisionError
            return super().answer(block)

    said = []
    threads = AnsweringThreads(Picky(), failed=said.append)
    told = asked_together(threads, [LabelRequest(f"key:{client}", ((),)) for client in ("a", "bad", "b", "c")])
    threads.stop()
    assert [isinstance(reply, Answered) for reply in told] == [True, False, True, True]
    assert {type(each) for each in said} == {ZeroDivisionError}


def replies_of(answers, requests, failed=lambda _: None):
    threads = AnsweringThreads(answers, threads=1, failed=failed)
    try:
        return asked_together(threads, [LabelRequest("ann", each) for each in requests])
    finally:
        threads.stop()


def test_a_row_that_teachers_cannot_see_costs_nobody_anything():
    def view(table):
        if (table["place"] < 0).any():
            raise ValueError("no such place")
        return table

    answers = ensemble(9, view=view)
    one, two, three = replies_of(answers, [((1.0,), (2.0,)), ((3.0,), (-1.0,)), ((2.0,), (4.0,), (1.0,))])
    assert (two.code, two.charged) == ("internal-error", False)
    assert [point.label for point in (*one.points, *three.points)] == ["yes"] * 5
    assert answers.standing.answers_left == 9 - 3


def test_a_student_that_fails_on_a_row_fails_its_request_alone_and_the_charge_is_told():
    def student(table):
        if (table["place"] < 0).any():
            raise ZeroDivisionError("no such place")
        return ["no"] * len(table)

    said = []
    answers = ensemble(2, student=student)
    requests = [((1.0,),), ((2.0,), (-1.0,)), ((3.0,),), ((-2.0,),), ((1.0,), (4.0,))]
    one, two, three, four, five = replies_of(answers, requests, said.append)
    assert [type(each) for each in (one, two, three, four, five)] == [Answered, Problem, Answered, Problem, Answered]
    assert ([point.by for point in one.points], one.charged) == (["ensemble"], 1)  # told as it was charged, no retry
    assert ([point.by for point in three.points], three.charged) == (["student"], 0)
    assert ([point.by for point in five.points], five.charged) == (["ensemble", "student"], 0)
    assert (two.code, two.charged) == ("internal-error", True)
    assert (four.code, four.charged) == ("internal-error", False)
    assert "no such place" not in str(two.tree())
    assert {type(each) for each in said} == {ZeroDivisionError}
    assert answers.standing.answers_left == 0


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
    for number in ({"quota": 2**63}, {"quota": -1}, {"days": 0}, {"days": 99_999_999_999}):
        [(name, value)] = number.items()
        with pytest.raises(InvalidParameter, match=rf"^{name} must be .* from \d to \d+, got {value}$"):
            keys.create("a", ["ask"], **number)
    assert keys.keys() == ()
    keys.create("a", ["ask"], quota=2**63 - 1, days=module.MOST_DAYS)
    with pytest.raises(PreconditionFailed):
        keys.revoke("nobody")
    nowhere = KeyFile(tmp_path / "run" / "private")
    for verb in (nowhere.keys, lambda: nowhere.create("a", ["ask"])):
        with pytest.raises(PreconditionFailed, match=rf"there is no folder {tmp_path}/run/private; first: quorate run"):
            verb()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EIO])
def test_what_keeps_a_key_from_being_made_is_said_as_it_is(tmp_path, monkeypatch, number):
    def refuses(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.os, "open", refuses)
    with pytest.raises(PreconditionFailed, match=errno.errorcode[number]) as refused:
        KeyFile(tmp_path).create("a", ["ask"])
    of_an_owner = number in (errno.EACCES, errno.EPERM)
    assert ("it belongs to" in str(refused.value)) == of_an_owner
    assert (REMEDIES[number] in str(refused.value)) == (not of_an_owner)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", sorted(module._FIELDS))
def test_whatever_stands_in_a_field_of_a_key_it_is_a_key_or_damage_for_all_who_read_it(tmp_path, name):
    token, key = KeyFile(tmp_path).create("a", ["ask"])
    file = tmp_path / FILE
    tree = json.loads(file.read_text())
    later, odd = "2999-01-01T00:00:00Z", "2999-01-01T00:00:00+23:59"
    whole = (0, 1, -1, 5.0, 2**63 - 1, 2**63, 10**400, float("nan"), True)
    texts = ("", "ask", "2027-01-01", "2027-01-01T00:00", later, odd, "a\nb", "\ud800", "x" * 99, "ü" * 64, key.hash)
    for value in (None, *whole, *texts, [], ["ask"], ["ask", 1], [["ask"]], {}, {"ask": 1}):
        file.write_text(json.dumps({**tree, "keys": [{**tree["keys"][0], name: value}]}))
        damaged = []
        for read in (lambda keys: keys.keys(), lambda keys: keys.find(token)):
            try:
                read(KeyFile(tmp_path))
                damaged.append(None)
            except PreconditionFailed as refused:
                damaged.append(str(refused))
        assert damaged[0] == damaged[1], value
        assert damaged[0] is None or (f"is damaged ({name} must be " in damaged[0] and key.hash not in damaged[0])


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
