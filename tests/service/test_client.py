"""The client in Python: what it keeps to itself, what it makes of rows, what it tells, and which way it takes."""

import copy
import datetime as dt
import json
import logging
import pickle
from decimal import Decimal

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.service.conftest import listening, rows, running
from tests.service.processes import free_port

from quorate.data.column_kinds import ColumnKinds
from quorate.data.table_reader import TableReader
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger import Ledger, Receipt
from quorate.service import Client, NoAnswer, Refused
from quorate.service.features import Features
from quorate.service.sent_rows import as_json

KEY = "quorate_0123456789ab_zqxmark"
POINT = {"label": "no", "status": "answered", "by": "ensemble"}
RECEIPT = {"sequence": 53, "head_hash": "ab" * 32}
TOLD = {"answers_left": 4, "answer": POINT, "answers": [POINT, POINT], "charged": 1, "receipt": RECEIPT, "epsilon": 1.0}
ASKS = {
    "label": lambda asking: asking.label({"age": 1}),
    "label_many": lambda asking: asking.label_many([{"age": 1}]),
    "budget": lambda asking: asking.budget(),
    "guarantee": lambda asking: asking.guarantee(),
}


def asking(answer=lambda _: httpx.Response(200, json=TOLD), key=KEY, **how):
    return Client("http://service", key, transport=httpx.MockTransport(answer), sleep=lambda _: None, **how)


def fails(error):
    def answer(_):
        raise error

    return answer


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}\t", f"{KEY}\r\n"])
def test_what_stands_around_a_key_in_its_file_is_no_part_of_it(key):
    seen = []
    with asking(lambda request: seen.append(request) or httpx.Response(200, json=TOLD), key) as client:
        client.label({}, idempotency_key=" again\n")
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert seen[0].headers["idempotency-key"] == "again"


WRONG = ["", " \n", f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}é", f"{KEY}\0", KEY.encode(), None, 7]


@pytest.mark.parametrize("key", WRONG, ids=repr)
def test_what_can_be_no_key_is_refused_and_not_shown(key):
    with pytest.raises(InvalidParameter, match=r"^key must be the one word") as refused:
        asking(key=key)
    with pytest.raises(InvalidParameter, match=r"^idempotency_key must be") as again, asking() as client:
        client.label({}, idempotency_key="" if key is None else key)
    for error in (refused.value, again.value):
        assert len(str(error).splitlines()) == 1
        assert not any(word in f"{error!r} {vars(error)}" for word in ("zqxmark", "\0", "é"))


@pytest.mark.parametrize(
    "place", [KEY, f"http://name:{KEY}@service", f"{KEY}://service", f"http://service:{KEY}", None]
)
def test_a_key_in_place_of_an_address_is_not_shown(place):
    with pytest.raises(InvalidParameter, match=r"^url must be where the service is") as refused:
        Client(place, KEY)
    assert "zqxmark" not in f"{refused.value!r} {vars(refused.value)}"
    for proxy in (KEY, f"ftp://name:{KEY}@proxy"):
        with pytest.raises(InvalidParameter, match=r"^proxy must be an HTTP proxy") as refused:
            Client("http://service", KEY, proxy=proxy)
        assert "zqxmark" not in f"{refused.value!r} {vars(refused.value)}"


HEADER = f"Illegal header value b'Bearer {KEY}\\n'"
ENDS = {
    "a header of its own": fails(httpx.LocalProtocolError(HEADER)),
    "what came": fails(httpx.RemoteProtocolError(HEADER)),
    "a content that is broken": fails(httpx.DecodingError(HEADER)),
    "a proxy that shows what it was sent": lambda _: httpx.Response(
        502, json={"title": HEADER, "detail": {"is": HEADER}}
    ),
    "a refusal": lambda _: httpx.Response(401, json={"code": KEY, "detail": KEY, "field": KEY}),
    "no service": lambda _: httpx.Response(200, text=KEY),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("end", ENDS)
def test_no_error_holds_the_key(end, ask):
    with asking(ENDS[end], retries=1) as client, pytest.raises((NoAnswer, Refused)) as told:
        ASKS[ask](client)
    assert "zqxmark" not in f"{told.value!r} {vars(told.value)}"


def test_a_client_shows_no_key_and_does_not_travel():
    with asking() as client:
        assert "zqxmark" not in f"{client!r} {client!s} {vars(client)}"
        for travels in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(PreconditionFailed, match="cannot be copied or pickled") as refused:
                travels(client)
            assert "zqxmark" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (httpx.LocalProtocolError("a header"), 1),
        (httpx.UnsupportedProtocol("ftp"), 1),
        (httpx.InvalidURL("no place"), 1),
        (UnicodeError("label empty or too long"), 1),
        (httpx.ConnectError("refused"), 3),
        (httpx.PoolTimeout("no connection is free"), 3),
        (httpx.ProxyError("407"), 3),
    ],
    ids=repr,
)
def test_what_never_left_is_not_said_to_be_charged_and_not_tried_again_where_that_is_no_use(error, tries):
    seen = []
    with (
        asking(lambda _: seen.append(1) or fails(error)(_), retries=2) as client,
        pytest.raises(NoAnswer, match=r"nothing was charged$") as told,
    ):
        client.label({})
    assert (told.value.charged, len(seen)) == (False, tries)


ZONE = dt.timezone(dt.timedelta(hours=1))
CELLS = {
    "a date": (dt.date(2024, 3, 1), "2024-03-01"),
    "a moment": (dt.datetime(2024, 3, 1, 12, 30), "2024-03-01T12:30:00"),  # noqa: DTZ001 - as tables hold it
    "a moment in a zone": (dt.datetime(2024, 3, 1, 12, 30, tzinfo=ZONE), "2024-03-01T12:30:00+01:00"),
    "a time of day": (dt.time(12, 30), "12:30:00"),
    "a duration": (dt.timedelta(minutes=1.5), 90.0),
    "pandas' moment": (pd.Timestamp("2024-03-01T12:30"), "2024-03-01T12:30:00"),
    "pandas' duration": (pd.Timedelta(minutes=1.5), 90.0),
    "NumPy's date": (np.datetime64("2024-03-01"), "2024-03-01"),
    "NumPy's moment": (np.datetime64("2024-03-01T12:30", "ns"), "2024-03-01T12:30:00"),
    "NumPy's duration": (np.timedelta64(90, "s"), 90.0),
    "NumPy's whole number": (np.int64(7), 7),
    "NumPy's number": (np.float32(0.5), 0.5),
    "NumPy's truth value": (np.bool_(True), True),
    "NumPy's text": (np.str_("north"), "north"),
    "a decimal": (Decimal("38.8"), 38.8),
    "a whole number": (2**70, 2**70),
    "NaN": (float("nan"), None),
    "NumPy's NaN": (np.float64("nan"), None),
    "a decimal that is none": (Decimal("sNaN"), None),
    "NA": (pd.NA, None),
    "NaT": (pd.NaT, None),
    "NumPy's NaT": (np.datetime64("NaT"), None),
    "None": (None, None),
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_of_any_library_goes_as_the_service_reads_it(cell):
    value, sent = CELLS[cell]
    bodies = []
    with asking(lambda request: bodies.append(json.loads(request.content)) or httpx.Response(200, json=TOLD)) as client:
        client.label({"age": value})
        client.label_many([{"age": value}, [value]])
    assert bodies == [{"row": {"age": sent}}, {"rows": [{"age": sent}, [sent]]}]
    assert type(bodies[0]["row"]["age"]) is type(sent)


NO_CELLS = [[4711], b"4711", float("inf"), np.float64("-inf"), Decimal("1e4711"), 10**4711, {4711}, 4711j, "\ud8004711"]
NO_CELLS += [np.datetime64("14711-01-01"), pd.Period("4711"), pl.Series([4711]), np.array([4711])]


@pytest.mark.parametrize("value", NO_CELLS, ids=lambda value: type(value).__name__)
def test_any_other_cell_is_refused_by_its_column_and_its_type(value):
    kind = type(value).__name__
    for ask, place in (
        (lambda client: client.label({"bmi": 1, "age": value}), "row: column 'age'"),
        (lambda client: client.label_many([{}, {"age": value}]), r"rows\[1\]: column 'age'"),
        (lambda client: client.label([1.0, value]), "row: place 1"),
    ):
        with asking(fails(AssertionError)) as client, pytest.raises(InvalidParameter) as refused:
            ask(client)
        refused.match(f"^{place} holds a {kind}, expected a text, a finite number")
        assert "4711" not in f"{refused.value!r} {vars(refused.value)}"
        assert len(str(refused.value).splitlines()) == 1
        assert refused.value.charged == "nothing was charged"


def test_columns_and_places_have_a_name_each():
    assert as_json({17: 1.0, np.int64(3): 2}, "row") == {"17": 1.0, "3": 2}
    assert as_json(np.array([1.5, np.nan]), "row") == [1.5, None]
    for row in ({("a", "b"): 1}, {None: 1}, {1.5: 1}, {"\ud800": 1}, {17: 1, "17": 2}):
        with pytest.raises(InvalidParameter, match=r"^row(: column .* must have a text| has two columns of one name)"):
            as_json(row, "row")
    table = pl.DataFrame({"age": [1]})
    for row in ("age", b"age", 7, None, table, table["age"], table.to_pandas().iloc[0], np.zeros((1, 1))):
        with pytest.raises(InvalidParameter, match=r"^row must be a mapping.*to_dicts\(\)"):
            as_json(row, "row")


def test_rows_of_a_table_of_either_library_are_read_by_the_service_as_the_table_is():
    pool = pl.DataFrame(
        {
            "day": [dt.date(2024, 3, 1), None],
            "at": [dt.datetime(2024, 3, 1, 12, 30, 0, 5), None],  # noqa: DTZ001 - as tables hold it
            "opens": [dt.time(12, 30), None],
            "took": [dt.timedelta(seconds=90.5), None],
            "age": [41, None],
            "bmi": [24.5, float("nan")],
            "ward": ["north", None],
            "ill": [True, None],
        }
    )
    reader = TableReader.of(pool, ColumnKinds())
    features = Features.of(pool, reader=reader)
    for table in (pool.to_dicts(), pool.to_pandas().to_dict("records")):
        sent = json.loads(json.dumps([as_json(row, "row") for row in table], allow_nan=False))
        assert reader(features.table(features.parse(sent))).equals(
            reader(pool.with_columns(pl.col("bmi").fill_nan(None)))
        )


def test_an_answer_has_its_receipt_and_its_charge():
    with asking() as client:
        one, many = client.label({}), client.label_many([{}, {}])
    for answer in (one, *many):
        assert (answer.charged, answer.receipt) == (1, RECEIPT)
    with asking(lambda _: httpx.Response(200, json={**TOLD, "charged": 0, "receipt": None})) as client:
        stored = client.label({})
    assert (stored.charged, stored.receipt) == (0, None)
    assert stored == one
    assert len({stored, one, *many}) == 1


@pytest.mark.heavy
def test_a_receipt_of_the_service_is_one_of_its_ledger(own_run):
    root, asked = own_run(), rows(3)
    with running(root) as run, Client(str(run.http.base_url), run.token) as client:
        first, *rest = client.label_many(asked, idempotency_key="once")
        retried, again = client.label_many(asked, idempotency_key="once")[0], client.label(asked[0])
    assert {(answer.charged, answer.receipt["sequence"]) for answer in (first, *rest)} == {
        (3, first.receipt["sequence"])
    }
    assert {(answer.charged, answer.receipt) for answer in (retried, again)} == {(0, None)}
    with Ledger(root / "ledger.db") as ledger:
        ledger.check_receipt(Receipt.from_object(json.loads(json.dumps(first.receipt))))


class Proxy:
    """What notes whom it is asked for, and answers in place of the service."""

    def __init__(self, status=200):
        self.asked, self.status = [], status

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        self.asked.append((headers[b"host"].decode(), headers.get(b"proxy-authorization")))
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(TOLD if self.status == 200 else {}).encode()})


def test_a_proxy_of_the_environment_is_not_used_and_one_that_is_named_is(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    proxy, service = Proxy(), Proxy()
    with listening(proxy, lifespan="off") as through, listening(service, lifespan="off") as url:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, through)
        monkeypatch.delenv("no_proxy", raising=False)
        with Client(url, KEY) as client:
            client.label({})
        assert (len(proxy.asked), len(service.asked)) == (0, 1)
        with Client(url, KEY, proxy=through.replace("//", "//name:secret@")) as client:
            client.label({})
        assert len(service.asked) == 1
    [(host, login)] = proxy.asked
    assert host == url.removeprefix("http://")
    assert login.startswith(b"Basic ")
    assert "HTTP Request" in caplog.text
    assert "zqxmark" not in caplog.text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_named_without_its_password(scheme):
    place = f"{scheme}://service"
    with listening(Proxy(407), lifespan="off") as refuses:
        for url in (refuses, f"http://127.0.0.1:{free_port()}"):
            through = url.replace("//", "//name:secret@")
            with Client(place, KEY, proxy=through, retries=0) as client, pytest.raises((NoAnswer, Refused)) as told:
                client.label({})
            assert f"through the proxy {url}" in str(told.value)
            assert "secret" not in f"{told.value!r} {vars(told.value)}"
            assert not told.value.charged
