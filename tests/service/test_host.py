"""A host that fails under a service: its log, its files, its descriptors, its keys, and who runs commands beside it."""

import errno
import fcntl
import json
import logging
import os
import resource
import socket
import threading
import time
import warnings
from contextlib import ExitStack, closing, suppress

import httpx
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tests.service.conftest import listening, rows, running

from quorate.accounting import PureDP
from quorate.cli import main
from quorate.data.column_kinds import column_kinds
from quorate.data.encoding import public_encoder
from quorate.errors import DataRefused, LedgerIntegrityError
from quorate.folder.batch import ask, load_run
from quorate.folder.folder import RunFolder
from quorate.ledger import Budget, Ledger
from quorate.ledger.ledger_files import AnchorFile
from quorate.release.keys import write_atomically
from quorate.service import Client, Refused, server
from quorate.service.keys import FILE, KeyFile
from quorate.service.records import Log, Records
from quorate.service.server import _logged, descriptors_for, impatient
from quorate.voting.inputs import View, refuse_asked


def pipe(size=4_096):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    return reader, writer


def test_a_log_that_nobody_reads_waits_for_nobody_and_what_was_dropped_is_counted():
    reader, writer = pipe()
    log = Log(writer, most=50)
    began = time.monotonic()
    for number in range(500):
        log.write(f"{number:0>200}")
    assert time.monotonic() - began < 1
    assert 300 < log.dropped < 500
    before = log.dropped
    began = time.monotonic()
    log.close(0.05)
    assert time.monotonic() - began < 1
    held = b""
    while len(held) < 201 * (500 - before):
        held += os.read(reader, 1 << 16)
    assert [int(line) for line in held.split()] == sorted(int(line) for line in held.split())
    os.close(reader)


def test_a_log_whose_reader_ended_and_one_that_is_nowhere_drop_every_line():
    reader, writer = pipe()
    os.close(reader)
    for log in (Log(writer), Log(None)):
        log.write("a")
        log.write("b")
        log.close()
        assert log.dropped == 2
    records = Records(write=log.write, dropped=lambda: log.dropped)
    records.request("/v1/label", 200, charged=1)  # counts, and does not fail
    assert records.requests["/v1/label", 200] == 1


def test_after_a_line_that_was_cut_off_the_next_one_begins_anew(monkeypatch):
    reader, writer = pipe()
    real, full = os.write, [True]

    def write(descriptor, content):
        if descriptor == writer and full and len(content) > 2:
            return real(descriptor, content[:2])
        if descriptor == writer and full:
            full.clear()
            raise OSError(errno.ENOSPC, "full")
        return real(descriptor, content)

    monkeypatch.setattr("quorate.service.records.os.write", write)
    log = Log(writer)
    log.write("one")
    log.write("two")
    log.close()
    assert (os.read(reader, 99), log.dropped) == (b"on\ntwo\n", 1)
    os.close(reader)


@pytest.mark.filterwarnings("always")
def test_what_other_packages_say_goes_into_the_log_without_what_it_is_about(capsys):
    lines = []
    with _logged(Records(write=lines.append)):
        error = OSError(errno.EMFILE, "4711")
        logging.getLogger("asyncio").error("socket.accept() of %s\nout of 4711", "4711", exc_info=error)
        logging.getLogger("another").warning("row 4711")
        warnings.warn("row 4711", stacklevel=1)  # perhaps a teacher's: to nobody, and not to a pipe that nobody reads
        thread = threading.Thread(target=lambda: 1 // 0)
        thread.start()
        thread.join()
    told = [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]
    assert told == [
        {"event": "server", "source": "asyncio", "kind": "OSError", "code": "EMFILE"},
        {"event": "server", "source": "another"},
        {"event": "server", "source": "thread", "kind": "ZeroDivisionError"},
    ]
    assert "4711" not in capsys.readouterr().err


@pytest.mark.heavy
def test_every_500_is_a_problem_that_says_whether_anything_may_have_been_charged(serve):
    run = serve()

    def fails(*_, **__):
        raise OSError(errno.ENOSPC, "4711")

    told = []

    def write(line):
        told.append(line)
        if '"status": 200' in line:  # what is said of an answer; then what is said of the failure
            fails()

    run.service.records.write = write
    answered, budget = run.post({"row": rows(1)[0]}), run.get("/v1/budget")
    run.service.records.write = fails
    elsewhere = httpx.get(f"{run.http.base_url}/nowhere", timeout=60)
    run.service.records.write = run.lines.append
    for response, charged in ((answered, True), (budget, False), (elsewhere, False)):
        assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json")
        assert (response.json()["code"], response.json()["charged"]) == ("internal-error", charged)
        assert "4711" not in response.text + "".join(told)
    assert {json.loads(line).get("why", "")[:6] for line in told if '"failed"' in line} == {"ENOSPC"}


def test_a_500_that_is_none_of_the_service_is_not_taken_for_one_that_cost_nothing():
    bare = httpx.MockTransport(lambda request: httpx.Response(500, text="Internal Server Error"))
    with Client("http://service", "quorate_key", transport=bare) as client, pytest.raises(Refused) as refused:
        client.label([1.0])
    assert refused.value.charged


@pytest.mark.heavy
@pytest.mark.parametrize("end", ["", "-wal", ".anchor"])
def test_a_ledger_that_is_removed_while_it_serves_ends_all_answers_and_the_log_says_why(own_run, end):
    root = own_run()
    stack = ExitStack()
    run = stack.enter_context(running(root))
    try:
        assert run.post({"row": rows(2)[0]}).json()["charged"] == 1
        (root / f"ledger.db{end}").unlink()
        assert run.http.get("/readyz").status_code == 503  # before anybody asks
        refused = run.post({"row": rows(2)[1]})
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (503, "unhealthy", True)
        assert run.http.get("/readyz").status_code == 503
        [why] = [line["why"] for line in map(json.loads, run.lines) if line["event"] == "failed"]
        assert f"ledger.db{end} was removed or replaced" in why
    finally:
        with pytest.raises(LedgerIntegrityError):  # it ends with the exit code of a broken ledger
            stack.close()
    assert not (root / f"ledger.db{end}").exists()  # nothing was made anew in its place


@pytest.mark.heavy
@pytest.mark.parametrize("of", ["the ledger", "the keys"])
def test_descriptors_and_memory_that_are_short_are_tried_again(serve, monkeypatch, of):
    run = serve()
    (run.root / "private" / FILE).touch()

    def short(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        files = run.service.served.answers._ledger._store._files
        patch.setattr(*((files, "refuse_replaced") if of == "the ledger" else ("quorate.service.keys.os.open",)), short)
        refused = run.post({"rows": rows(3)})
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (503, "overloaded", False)
        assert refused.headers["retry-after"] == "1"
        assert of == "the keys" or run.http.get("/readyz").status_code == 200
    assert run.post({"rows": rows(3)}).json()["charged"] == 3


@pytest.mark.heavy
def test_keys_that_cannot_be_read_cost_nothing_and_are_seen_by_readyz(serve):
    run = serve()
    keys = run.root / "private" / FILE
    for spoil, said in (
        (keys.mkdir, "is damaged"),  # what may not be read, also by root
        (lambda: None, "was removed"),
        (lambda: keys.write_text("{}"), "is damaged"),
    ):
        kept = keys.rename(keys.with_name("kept"))
        spoil()
        for response in (run.post({"row": rows(1)[0]}), run.get("/v1/budget"), run.http.get("/readyz")):
            told = response.json()
            assert (response.status_code, told["code"], told["charged"]) == (503, "keys-unreadable", False)
            assert "ledger" not in told["title"].lower()
        if keys.is_dir():
            keys.rmdir()
        kept.rename(keys)
        assert run.http.get("/readyz").status_code == run.post({"row": rows(1)[0]}).status_code == 200
        [why] = [line["why"] for line in map(json.loads, run.lines) if line["event"] == "failed"]  # once, not thrice
        assert said in why or "EISDIR" in why
        assert run.token not in "".join(run.lines)
        run.lines.clear()


def make_ledger(folder):
    with Ledger(folder / "ledger.db", budget=Budget(1.0, 1e-5)) as ledger:
        ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 1}, key="labels")


WRITERS = {
    "a file written whole": lambda folder: write_atomically(folder / "page.html", b"page"),
    "an anchor": lambda folder: AnchorFile(folder / "a.anchor", at=lambda _: None).replace(
        Ledger(budget=Budget(1.0, 1e-5)).head
    ),
    "keys": lambda folder: KeyFile(folder).create("ward 7", ["ask"]),
    "a ledger": make_ledger,
    "a run's sides": lambda folder: RunFolder(folder).make(),
}


@pytest.mark.default_cases(4)
@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root gives no file away")
@pytest.mark.parametrize("writer", WRITERS)
def test_what_root_writes_in_a_run_stays_its_owners(tmp_path, writer):
    os.chown(tmp_path, 12_345, 12_346)
    for _ in range(2):  # new, and in place of what is there
        WRITERS[writer](tmp_path)
        made = list(tmp_path.iterdir())
        assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(12_345, 12_346)}
    other = made[0]
    os.chown(other, 23_456, 23_457)
    WRITERS[writer](tmp_path)
    assert other.stat().st_uid == 23_456


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root gives no file away")
def test_commands_of_root_leave_every_file_of_a_run_to_its_owner(own_run):
    root = own_run()
    for path in (root, *root.rglob("*")):
        os.chown(path, 12_345, 12_346)
    for arguments in (
        ["report", str(root)],
        ["keys", "create", str(root), "--name", "a", "--scope", "ask"],
        ["run", str(root)],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        assert {(path.stat().st_uid, path.stat().st_gid) for path in root.rglob("*")} == {(12_345, 12_346)}


@pytest.fixture
def limit():
    """Return ``limit(n)``: leaves so many descriptors beyond the lowest free one; returns that one."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def set_to(n):
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(free + n, before[0]), before[1]))
        return free

    yield set_to
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_on_open_files_is_raised_as_far_as_connections_need_it(limit):
    free = limit(40)
    most = descriptors_for(300)
    assert most >= free + 300
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= most + server.SPARE


def test_no_connection_has_a_descriptor_beyond_the_bound_and_what_is_closed_makes_room():
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(6)]
        [bound] = server.listening("127.0.0.1", 0, most=10**6)
        stack.enter_context(bound).listen(16)
        bound.settimeout(20)
        for client in clients:
            client.connect(bound.getsockname())
        lowest = [os.dup(0) for _ in range(3)]
        for descriptor in lowest:
            os.close(descriptor)
        bound.most = lowest[-1] + 1
        taken = [stack.enter_context(bound.accept()[0]) for _ in range(3)]
        assert [connection.fileno() for connection in taken] == lowest
        for _ in range(2):
            with pytest.raises(OSError, match="Too many open files") as refused:
                bound.accept()
            assert refused.value.errno == errno.EMFILE  # of which asyncio makes a pause
        beyond = os.dup(0)  # the service itself has what is beyond the bound
        os.close(beyond)
        assert beyond >= bound.most
        for place in range(3):  # and nobody who waited was turned away
            taken[place].close()
            taken.append(stack.enter_context(bound.accept()[0]))
        assert [connection.getpeername() for connection in taken[3:]] == [
            client.getsockname() for client in clients[3:]
        ]


def test_a_connection_that_says_nothing_is_ended_and_one_that_asked_is_not():
    async def hello(_):
        return PlainTextResponse("hello")

    with listening(Starlette(routes=[Route("/", hello)]), http=impatient(0.3)) as url:
        host, port = url.removeprefix("http://").split(":")
        with (
            closing(socket.create_connection((host, int(port)), timeout=20)) as slow,
            httpx.Client(base_url=url) as http,
        ):
            assert http.get("/").text == "hello"
            slow.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n")  # headers that never end
            began = time.monotonic()
            with suppress(ConnectionResetError):
                assert slow.recv(99) == b""
            assert time.monotonic() - began < 15
            assert http.get("/").text == "hello"  # on the connection that asked


TREES = {"teachers.model": "tree"}


@pytest.mark.heavy
def test_a_number_that_trees_cannot_hold_is_refused_to_its_sender_before_anything_is_drawn(own_run):
    root = own_run(**TREES)
    good, bad = rows(2)[0], {**rows(2)[1], "bmi": 1e39}
    with running(root) as run:
        refused = run.post({"rows": [good, bad]})
        assert (refused.status_code, refused.json()["code"]) == (422, "value-out-of-range")
        assert (refused.json()["field"], refused.json()["charged"]) == ("/rows/1/bmi", False)
        assert run.left == 12
        assert run.post({"row": good}).json()["charged"] == 1
        assert run.post({"row": {**good, "bmi": 1e30}}).status_code == 200
    table = pl.DataFrame([good, bad])
    run_again = load_run(root)
    with pytest.raises(DataRefused, match="column 'bmi' is larger than"):
        ask(run_again, table)
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert reservation.remaining("online answer") == 12 - 2


def test_a_number_that_is_written_as_a_text_is_too_large_for_a_question_too():
    pool = pl.DataFrame({"heat": [f"{35 + tenth / 10:.1f}".replace(".", ",") for tenth in range(60)]})
    kinds = column_kinds(pool)
    view = View(public_encoder(kinds(pool)), kinds=kinds)
    refuse_asked(DecisionTreeClassifier(), view, pl.DataFrame({"heat": ["38,8", None]}), name="X")
    with pytest.raises(DataRefused, match="column 'heat'"):
        refuse_asked(DecisionTreeClassifier(), view, pl.DataFrame({"heat": ["38,8", "1e39"]}), name="X")
