"""Many clients at once: what waits together is one block, one query is one charge, and the cap holds to the answer."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.conftest import ensemble, rows, running

from quorate.errors import LedgerBusy, LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Ledger
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


def ask_all(threads, n):
    async def all_of_them():
        return list(await asyncio.gather(*(threads.ask(LabelRequest("key:a", ((),))) for _ in range(n))))

    return asyncio.run(all_of_them())


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
        under_way = asyncio.create_task(threads.ask(LabelRequest("key:a", ((),))))
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
        under_way = [asyncio.create_task(threads.ask(LabelRequest("key:a", ((),)))) for _ in range(9)]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(threads.stop)
        return [await each for each in under_way], await threads.ask(LabelRequest("key:a", ((),)))

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

    async def all_of_them():
        clients = ["key:a", "key:bad", "key:b", "key:c"]
        return list(await asyncio.gather(*(threads.ask(LabelRequest(client, ((),))) for client in clients)))

    told = asyncio.run(all_of_them())
    threads.stop()
    assert [isinstance(reply, Answered) for reply in told] == [True, False, True, True]
    assert {type(each) for each in said} == {ZeroDivisionError}


def replies_of(answers, requests, failed=lambda _: None):
    threads = AnsweringThreads(answers, threads=1, failed=failed)

    async def ask():
        return await asyncio.gather(*(threads.ask(LabelRequest("ann", each)) for each in requests))

    try:
        return asyncio.run(ask())
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
