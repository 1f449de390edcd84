"""What is wrong with a request is named by its place, never quoted, and costs nothing."""

import json
import random
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.service.conftest import GOOD, MARK, rows

from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.dialect import Dialect
from quorate.data.table_reader import TableReader
from quorate.service.features import LARGEST, Column, Features
from quorate.service.keys import KeyFile
from quorate.service.openapi import row_schema
from quorate.service.problems import PROBLEMS, Problem
from quorate.service.requests import DEEPEST, read_json


def with_row(**changes):
    return json.dumps({"row": {**GOOD, **changes}}).encode()


HOSTILE = {
    "NaN": (b'{"row": {"age": NaN, "bmi": 1, "ward": "zqxmark"}}', "not-a-finite-number", None),
    "Infinity": (b'{"row": {"age": -Infinity, "bmi": 1, "ward": "zqxmark"}}', "not-a-finite-number", None),
    "1e999": (b'{"row": {"age": 1e999, "bmi": 1, "ward": "zqxmark"}}', "not-a-finite-number", None),
    "many digits": (b'{"row": {"age": ' + b"9" * 400 + b', "bmi": 1, "ward": "n"}}', "not-a-finite-number", None),
    "a number in another notation": (with_row(age="0,5"), "wrong-type", "/row/age"),
    "a text in a number": (with_row(ward=5), "wrong-type", "/row/ward"),
    "true for a number": (with_row(age=True), "wrong-type", "/row/age"),
    "a list for a number": (with_row(bmi=[1]), "wrong-type", "/row/bmi"),
    "too large a number": (with_row(age=1e300), "value-out-of-range", "/row/age"),
    "half a surrogate pair": (b'{"row": {"age": 1, "bmi": 1, "ward": "\\ud800"}}', "value-out-of-range", "/row/ward"),
    "a name twice": (b'{"row": {"age": 1, "bmi": 1, "ward": "n", "age": 2}}', "duplicate-name", None),
    "two questions": (b'{"row": {}, "row": {}}', "duplicate-name", None),
    "deep": (b"[" * 100_000, "too-deep", None),
    "deep objects": (b'{"a":' * 20_000, "too-deep", None),
    "a column that is missing": (b'{"row": {"age": 1, "ward": "zqxmark"}}', "missing-column", "/row/bmi"),
    "a column more": (with_row(zqxmark=1), "unknown-column", "/row"),
    "a list for a row": (b'{"rows": [[1, 2, "zqxmark"]]}', "wrong-type", "/rows/0"),
    "the second row": (json.dumps({"rows": [GOOD, {**GOOD, "age": MARK}]}).encode(), "wrong-type", "/rows/1/age"),
    "no rows": (b'{"rows": []}', "no-rows", "/rows"),
    "nothing": (b"{}", "no-rows", ""),
    "row and rows": (b'{"row": {}, "rows": []}', "unknown-field", ""),
    "another field": (b'{"zqxmark": 1}', "unknown-field", ""),
    "a list": (b'["zqxmark"]', "wrong-type", ""),
    "rows as an object": (b'{"rows": {"zqxmark": 1}}', "wrong-type", "/rows"),
    "no JSON": (b"zqxmark", "malformed-json", None),
    "an end that is missing": (b'{"row": {"age": 1', "malformed-json", None),
    "something behind it": (with_row() + b" zqxmark", "malformed-json", None),
    "a comment": (b'{"row": /* zqxmark */ {}}', "malformed-json", None),
    "a control character": (b'{"row": {"ward": "zqx\nmark"}}', "malformed-json", None),
    "nothing at all": (b"", "malformed-json", None),
    "Latin-1": ('{"row": {"ward": "zqxmark é"}}'.encode("latin-1"), "invalid-utf-8", None),
    "UTF-16": (with_row().decode().encode("utf-16"), "invalid-utf-8", None),
    "a byte order mark": (b"\xef\xbb\xbf" + with_row(), "malformed-json", None),
}


def refused(run, response):
    """The problem, which is one, quotes nothing and cost nothing."""
    told = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert told["status"] == response.status_code == PROBLEMS[told["code"]].status < 500
    assert told["charged"] is False
    assert MARK not in response.text + "".join(run.lines)
    assert run.left == 12
    assert run.service.records.charged == 0
    return told


@pytest.mark.heavy
def test_hostile_bodies_are_refused_by_their_place_and_cost_nothing(serve):
    run, entries = serve(), None
    for name, (body, code, place) in HOSTILE.items():
        told = refused(run, run.post(body))
        assert (name, told["code"], told.get("field")) == (name, code, place)
        entries = entries or run.entries
        assert run.entries == entries
    assert run.post({"row": GOOD}).status_code == 200  # and the service goes on


HOSTILE_HEADERS = [
    ({"content-type": "text/plain"}, "unsupported-media-type"),
    ({"content-type": "application/x-www-form-urlencoded"}, "unsupported-media-type"),
    ({"content-type": "application/json; charset=utf-16"}, "unsupported-media-type"),
    ({"content-encoding": "gzip"}, "unsupported-media-type"),
    ({"idempotency-key": ""}, "bad-idempotency-key"),
    ({"idempotency-key": "a b"}, "bad-idempotency-key"),
    ({"idempotency-key": "x" * 201}, "bad-idempotency-key"),
    ({"authorization": ""}, "key-missing"),
    ({"authorization": "Digest zqxmark"}, "key-missing"),
    ({"authorization": "Bearer zqxmark"}, "key-refused"),
    ({"authorization": f"Bearer quorate_{'0' * 12}_{'A' * 43}"}, "key-refused"),
    ({"authorization": "Basic !zqxmark"}, "key-refused"),
]


@pytest.mark.heavy
def test_hostile_headers_are_refused(serve):
    run = serve()
    for headers, code in HOSTILE_HEADERS:
        sent = {**run.headers(), "content-type": "application/json", **headers}
        response = run.http.post("/v1/label", content=with_row(), headers=sent)
        assert (headers, refused(run, response)["code"]) == (headers, code)
        assert (response.status_code == 401) == ("www-authenticate" in response.headers)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve):
    run = serve(max_body=2_000, max_rows=3)
    assert refused(run, run.post(with_row(ward="x" * 3_000)))["code"] == "body-too-large"
    assert refused(run, run.post({"rows": rows(4)}))["code"] == "too-many-rows"

    def parts():
        for _ in range(100):
            yield b" " * 100

    chunked = run.http.post("/v1/label", content=parts(), headers=run.headers(**{"content-type": "application/json"}))
    assert refused(run, chunked)["code"] == "body-too-large"


@pytest.mark.heavy
def test_a_body_that_comes_too_slowly_is_refused(serve):
    run = serve(body_seconds=0.2)
    place = urlsplit(str(run.http.base_url))
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        connection.sendall(
            f"POST /v1/label HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {run.token}\r\n"
            "content-type: application/json\r\ncontent-length: 500\r\n\r\n".encode()
        )
        told = b""
        while b"}" not in told:  # a byte now and then keeps nothing open
            connection.sendall(b" ")
            time.sleep(0.05)
            connection.settimeout(0.01)
            try:
                told += connection.recv(4_096)
            except TimeoutError:
                continue
    assert b" 408 " in told.partition(b"\r\n")[0]
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "body-too-slow"


@pytest.mark.heavy
def test_a_missing_value_is_null_and_a_column_takes_what_its_kind_holds(serve):
    run = serve()
    assert run.post(with_row(age=None, ward=None)).status_code == 200
    assert run.post(with_row(age=None, ward=None)).json()["answers_left"] == 11
    assert run.post(with_row(ward="7")).status_code == 200  # digits of a text
    assert run.post(with_row(bmi=1e39)).status_code == 200  # which trees could not hold


@pytest.mark.parametrize("body", [b'"\\"[[[[[[[["', b'{"a": "' + b"[" * 50 + b'"}', b'["' + b'\\\\"]', b"[[[[1]]]]"])
def test_brackets_in_texts_are_no_depth(body):
    assert read_json(body) == json.loads(body)


def test_depth_is_counted_before_anything_is_built():
    for text in (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), b'"' + b"x" * 9 + b"[[[[[[", b"[" * 900_000):
        with pytest.raises(Problem, match=r"too-deep|malformed-json"):
            read_json(text)


def test_rows_without_names_are_lists_or_places():
    features = Features(tuple(Column(str(at), "number", nullable=False) for at in range(3)), named=False, sparse=True)
    assert features.parse([[0.5, 0, 2], {"2": 2, "0": 0.5}]) == [((0, 0.5), (2, 2.0))] * 2
    assert features.table([((0, 0.5), (2, 2.0)), ()]).toarray().tolist() == [[0.5, 0, 2], [0, 0, 0]]
    for bad in ([1, 2], {"3": 1}, {"01": 1}, {"-1": 1}, [1, 2, None], [1, 2, LARGEST * 2], {"٣": 1}):
        with pytest.raises(Problem):
            features.parse([bad])


def test_a_row_is_read_as_the_tables_of_its_run_are_written():
    dialect = Dialect(decimal=",", thousands=".", date_format="dd.mm.yyyy", missing=("k.A.", "-999"))
    pool = pl.DataFrame({"dose": [1.5, 2000.5], "seen": ["23.08.2023", "01.09.2023"], "n": ["1,5", "?"]})
    reader = TableReader.of(pool, column_kinds(pool, GivenKinds(dialect=dialect)))
    features = Features.of(pool, reader=reader)

    def read(**changes):
        [row] = features.parse([{"dose": "1.234,5", "seen": "02.09.2023", "n": 2.5, **changes}])
        return reader(features.table([row])).rows()[0]

    assert read() == (1234.5, 19602.0, 2.5)
    assert read(dose=1234.5) == read()
    assert repr(read(dose="k.A.", n=-999)) == repr((None, 19602.0, float("nan")))
    for wrong in ("1.5", "12.34,5", "soon"):
        with pytest.raises(Problem):
            read(dose=wrong)
    assert row_schema(features)["properties"]["dose"]["type"] == ["number", "string", "null"]
    assert "pattern" not in row_schema(features)["properties"]["dose"]  # whose notation is the owner's


@pytest.mark.parametrize(
    ("cell", "texts", "others"),
    [(24.5, ("24.5", "-3", "+1e3"), ("24,5", "true", "x")), (True, ("true", "False", "0"), ("yes", "2", ""))],
)
def test_the_document_says_which_texts_a_number_and_a_truth_value_come_as(cell, texts, others):
    features = Features.of(pl.DataFrame({"a": [cell, None]}))
    [column], described = features.columns, row_schema(features)["properties"]["a"]
    assert "string" in described["type"]
    for text in texts:
        assert re.search(described["pattern"], text)
        assert column.cell(text, "/row/a") is not None
    for text in others:
        assert not re.search(described["pattern"], text)
        with pytest.raises(Problem):
            column.cell(text, "/row/a")


@dataclass(frozen=True)
class Request:
    """One request as bytes of its body, and its headers."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/v1/label"


def requests(seed, n, tokens):
    """Make up `n` requests none of which may be answered; the token "read" is of a key that may not ask."""
    rng = random.Random(seed)
    return [_one(rng, tokens) for _ in range(n)]


def _one(rng, tokens):
    headers = {"authorization": f"Bearer {tokens['good']}", "content-type": "application/json"}
    good = json.dumps({"row": {**GOOD, "bmi": rng.random()}}).encode()
    kind = rng.choice(["body", "body", "bytes", "bytes", "deep", "shape", "headers", "key", "size", "elsewhere"])
    if kind == "body":
        return Request(rng.choice(list(HOSTILE.values()))[0], headers)
    if kind == "bytes":
        whole = json.dumps({"row": {**GOOD, "ward": MARK}}).encode()
        broken = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(1, 4)):
            broken.insert(rng.randrange(len(broken) + 1), rng.randrange(128, 256))
        return Request(bytes(broken), headers)
    if kind == "deep":
        return Request(rng.choice([b"[", b'{"a":', b'[{"row":', b'{"row":[']) * rng.randrange(5, 20_000), headers)
    if kind == "shape":
        tree = rng.choice([{"row": MARK}, {"rows": [GOOD] * 1_001}, {"rows": [GOOD, None]}, MARK, 5, None])
        return Request(json.dumps(tree).encode(), headers)
    if kind == "headers":
        return Request(good, {**headers, **rng.choice(HOSTILE_HEADERS)[0]})
    if kind == "key":
        ended = [tokens["expired"], tokens["revoked"], tokens["read"], tokens["good"][:-1], tokens["good"] + "x"]
        return Request(good, {**headers, "authorization": f"Bearer {rng.choice(ended)}"})
    if kind == "size":
        return Request(b'{"row": "' + b"x" * ((1 << 20) + rng.randrange(9)) + b'"}', headers)
    method, path = rng.choice(
        [("GET", "/v1/label"), ("DELETE", "/v1/label"), ("POST", "/v1/budget"), ("GET", f"/{MARK}"),
         ("GET", "/../keys"),
         ("POST", "/v1/label/"), ("GET", "/private/run.key"), ("PUT", "/"), ("GET", "/%00"), ("OPTIONS", "/v1/label")]
    )  # fmt: skip
    return Request(b"", headers, method, path)


def tokens_of(run):
    private = run.root / "private"
    past = KeyFile(private, clock=lambda: datetime.now(UTC) - timedelta(days=9))
    keys = KeyFile(private)
    revoked, key = keys.create("revoked", ["ask"])
    keys.revoke(key.id)
    return {
        "good": run.token,
        "expired": past.create("expired", ["ask"], days=1)[0],
        "revoked": revoked,
        "read": keys.create("read", ["read"])[0],
    }


def refused_all(run, n, seed):
    """Send hostile requests; return how often each status came back."""
    tokens = tokens_of(run)
    run.post({"row": rows(1)[0]})
    before, statuses = (run.left, run.entries), Counter[int]()
    for request in requests(seed, n, tokens):
        told = run.http.request(request.method, request.path, content=request.body, headers=request.headers)
        statuses[told.status_code] += 1
        assert 400 <= told.status_code < 500, (request, told.text)
        assert told.headers["content-type"] == "application/problem+json"
        assert told.json()["charged"] is False
        assert MARK not in told.text
        assert not any(token in told.text for token in tokens.values())
        assert (run.left, run.entries) == before, request
    log = "\n".join(run.lines)
    assert MARK not in log
    assert not any(token in log for token in tokens.values())
    assert run.post({"row": rows(1)[0]}).json()["charged"] == 0  # it goes on
    return statuses


@pytest.mark.parametrize(
    ("n", "seed"), [pytest.param(400, 1, marks=pytest.mark.heavy), pytest.param(10_000, 2, marks=pytest.mark.faults)]
)
def test_hostile_requests_are_refused_and_cost_nothing(serve, n, seed):
    assert set(refused_all(serve(), n, seed)) == {400, 401, 403, 404, 405, 413, 415, 422}


@pytest.mark.heavy
def test_the_application_is_what_its_document_says(serve):
    import schemathesis  # it takes seconds, which every run would pay
    from schemathesis.specs.openapi.checks import ignored_auth

    run = serve(scopes=("ask", "read", "admin"))
    schema = schemathesis.openapi.from_url(f"{run.http.base_url}/openapi.json")
    document = run.http.get("/openapi.json").json()
    assert set(document["paths"]) == {"/", "/v1/label", "/v1/budget", "/v1/guarantee", "/metrics", "/livez", "/readyz"}
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=8,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case):
            case.call_and_validate(headers=run.headers(), excluded_checks=[ignored_auth])  # it would send them too

        holds()


@pytest.mark.heavy
def test_every_status_of_the_document_has_an_example(serve):
    document = serve().http.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                for media in response["content"].values():
                    assert "example" in media or media["examples"], (path, status)
