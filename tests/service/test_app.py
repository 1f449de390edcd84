"""The routes: what is asked, what comes back, what it costs, and who may; and the client, whose retry costs nothing."""

import httpx
import polars as pl
import pytest
from tests.service.conftest import NOW, rows, running
from tests.service.processes import free_port

from quorate.errors import InvalidParameter
from quorate.ledger import Ledger, Receipt
from quorate.service import Client, NoAnswer, Refused
from quorate.service.keys import KeyFile

pytestmark = pytest.mark.mostly_heavy


def charged_of(run):
    return run.service.records.charged


def test_one_point_gets_a_class_and_what_is_left_is_told_first(serve):
    run = serve()
    told = run.post({"row": rows(1)[0]})
    assert told.status_code == 200
    assert list(told.json()) == ["answers_left", "epsilon_spent", "answer", "charged", "receipt"]
    assert told.json()["answers_left"] == 11
    answer = told.json()["answer"]
    assert answer["by"] == "ensemble"
    assert (answer["label"] in ("no", "yes")) == (answer["status"] == "answered")


def test_a_batch_is_answered_in_its_order_and_charged_once_a_distinct_point(serve):
    run = serve()
    one, two, three = rows(3)
    first = run.post({"rows": [one, two, one]}).json()
    again = run.post({"rows": [three, two, one]}).json()
    assert first["answers_left"] == 10
    assert first["answers"][0] == first["answers"][2]
    assert again["answers_left"] == 9
    assert again["answers"][1:] == [first["answers"][1], first["answers"][0]]
    assert charged_of(run) == 3


def test_a_query_that_is_asked_a_thousand_times_gets_one_answer_and_one_charge(serve):
    run = serve()
    row = rows(1)[0]
    before = run.entries
    answers = {str(run.post({"row": row}).json()["answer"]) for _ in range(300)}
    batch = run.post({"rows": [row] * 700}).json()["answers"]
    assert len(answers) == 1
    assert len({str(each) for each in batch}) == 1
    assert charged_of(run) == 1
    assert run.entries - before <= 3  # the session, the block, its answers
    in_other_words = b'{"row": {"ward": "n\\u006frth", "bmi": 2.5e1, "age": 40.0}}'
    for body in ({"row": {"age": 40, "bmi": 25.0, "ward": "north"}}, in_other_words):
        assert run.post(body).json()["answers_left"] == 10


@pytest.mark.parametrize(("threshold", "label"), [(0.001, "yes"), (0.999, "no")])
def test_the_model_answers_from_the_threshold_that_the_run_chose(serve, own_run, threshold, label):
    run = serve(own_run(**{"method.by": "direct", "student.decision_threshold": threshold}))
    told = run.post({"rows": rows(6)}).json()
    assert {(point["by"], point["label"]) for point in told["answers"]} == {("model", label)}


def test_when_nothing_is_left_the_student_answers_marked_as_such(serve):
    run = serve()
    run.post({"rows": rows(10)})
    told = run.post({"rows": rows(6, seed=8)}).json()
    assert [point["by"] for point in told["answers"]] == ["ensemble"] * 2 + ["student"] * 4
    assert {point["label"] for point in told["answers"][2:]} <= {"no", "yes"}
    assert told["answers_left"] == 0
    assert charged_of(run) == 12
    assert run.post({"rows": rows(10)}).json()["answers"][0]["by"] == "ensemble"  # still the stored answer


def test_or_the_request_is_refused_and_nothing_of_it_is_charged(serve):
    run = serve(after_budget="refuse")
    run.post({"rows": rows(10)})
    refused = run.post({"rows": rows(6, seed=8)})
    assert (refused.status_code, refused.json()["code"]) == (409, "budget-spent")
    assert refused.json()["answers_left"] == 2
    assert refused.json()["charged"] is False
    assert charged_of(run) == 10
    assert run.post({"rows": rows(2, seed=8)}).status_code == 200


def test_budget_and_guarantee_are_those_of_the_run_and_health_needs_no_key(serve):
    run = serve()
    assert run.http.get("/livez").json() == {"status": "live"}
    assert run.http.get("/readyz").json() == {"status": "ready"}
    promised = run.get("/v1/guarantee").json()
    assert promised["unit"] == "record"
    assert 3.99 < promised["epsilon"] <= 4.0
    run.post({"rows": rows(5)})
    told = run.get("/v1/budget").json()
    assert list(told)[:3] == ["answers_left", "answers_reserved", "epsilon"]
    assert (told["answers_left"], told["answers_reserved"]) == (7, 12)
    assert told["epsilon"]["spent"] <= told["epsilon"]["limit"] == 4.0
    assert told["ledger"]["verified_at"] == NOW.isoformat()


def test_answers_outlive_the_service_and_so_does_what_they_cost(own_run):
    root = own_run()
    with running(root) as run:
        first = run.post({"rows": rows(5)}).json()
    with running(root) as run:
        again = run.post({"rows": rows(5)}).json()
        assert run.left == 7
    assert again["answers"] == first["answers"]
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        ledger.check_receipt(Receipt.from_object(first["receipt"]))


def test_a_direct_run_answers_for_free(finished, own_run):
    root = own_run(**{"method.by": "direct"})
    with running(root) as run:
        told = run.post({"rows": rows(30)}).json()
        budget = run.get("/v1/budget").json()
    assert {point["by"] for point in told["answers"]} == {"model"}
    assert {point["label"] for point in told["answers"]} <= {"no", "yes"}
    assert told["answers_left"] is budget["answers_left"] is None


SCOPES = {"/v1/label": "ask", "/v1/budget": "read", "/v1/guarantee": "read", "/metrics": "admin", "/": "read"}


@pytest.mark.parametrize("scope", ["ask", "read", "admin"])
def test_a_key_may_do_what_its_scope_says(serve, scope):
    run = serve(scopes=(scope,))

    def status(path):
        return int((run.post({"row": rows(1)[0]}) if path == "/v1/label" else run.get(path)).status_code)

    allowed = {path for path, needed in SCOPES.items() if needed == scope or (scope, needed) == ("admin", "read")}
    assert {path: status(path) for path in SCOPES} == {path: 200 if path in allowed else 403 for path in SCOPES}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/label", 405), ("GET", "/v2", 404), ("PUT", "/v2", 404)]
)
def test_elsewhere_there_is_a_problem_too(serve, method, path, status):
    told = serve().http.request(method, path)
    assert told.status_code == status
    assert told.headers["content-type"] == "application/problem+json"
    assert status != 405 or told.headers["allow"] == "POST"


def test_an_idempotency_key_belongs_to_one_body_and_one_client_after_a_restart_too(own_run):
    root = own_run()
    (one, two), key = rows(2), {"idempotency-key": "a"}
    token, _ = KeyFile(root / "private").create("a ward", ["ask"])
    with running(root) as run:
        run.token = token
        first, again, other = (run.post({"row": row}, **key) for row in (one, one, two))
        assert first.json()["answer"] == again.json()["answer"]
        assert (first.json()["charged"], again.json()["charged"], again.json()["receipt"]) == (1, 0, None)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")
        assert run.left == 11
        run.token, _ = run.service.keys.create("another", ["ask"])
        assert run.post({"row": two}, **key).status_code == 200
    with running(root) as run:
        run.token = token
        assert run.post({"row": two}, **key).json()["code"] == "idempotency-key-reused"
        assert run.post({"row": one}, **key).json()["answer"] == first.json()["answer"]
        assert run.left == 10


def test_a_key_that_asks_too_often_waits(serve):
    run = serve(requests_per_minute=2)
    told = [run.post({"row": rows(1)[0]}) for _ in range(3)]
    assert [each.status_code for each in told] == [200, 200, 429]
    assert int(told[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize("after_budget", ["student", "refuse"])
def test_a_quota_bounds_one_key_and_outlives_the_service(own_run, after_budget):
    root = own_run()
    token, key = KeyFile(root / "private").create("a trial", ["ask"], quota=3)
    for attempt in range(2):
        with running(root, after_budget=after_budget) as run:
            free, run.token = run.token, token
            if attempt == 0:
                run.post({"rows": rows(2)})
                told = run.post({"rows": rows(2, seed=8)})
                if after_budget == "student":
                    assert [point["by"] for point in told.json()["answers"]] == ["ensemble", "student"]
                else:
                    assert (told.status_code, told.json()["code"]) == (409, "quota-spent")
                    assert told.json()["answers_left"] == 1
                    run.post({"rows": rows(1, seed=8)})
            else:
                told = run.post({"rows": rows(1, seed=9)})
                assert told.status_code == 409 or told.json()["answers"][0]["by"] == "student"
            assert (run.left, run.service.served.answers.standing.answers_left) == (9, 9)
            run.token = free
    with Ledger(root / "ledger.db") as ledger:
        assert (ledger.quota(key.client).answers, ledger.quota(key.client).drawn) == (3, 3)
        ledger.verify(prices=True)


def test_where_nothing_was_kept_back_labels_are_told_and_the_student_has_the_rest(own_run):
    root = own_run(**{"mechanism.online_answers": 0})
    pool = pl.read_csv(root / "public.csv").to_dicts()[:3]
    with running(root) as run:
        told = run.post({"rows": [*pool, *rows(2)]}, **{"idempotency-key": "a"}).json()
        assert [point["by"] for point in told["answers"]] == ["ensemble"] * 3 + ["student"] * 2
        assert (told["answers_left"], told["charged"]) == (0, 0)


class Unreliable(httpx.BaseTransport):
    """Carries requests to a service, and loses every answer of the first `lost`."""

    def __init__(self, lost):
        self.inner, self.lost, self.seen = httpx.HTTPTransport(), lost, []

    def handle_request(self, request):
        response = self.inner.handle_request(request)
        self.seen.append((request.headers.get("idempotency-key"), bytes(request.read())))
        if len(self.seen) <= self.lost:
            response.read()
            raise httpx.ReadError("the answer is lost")
        return response

    def close(self):
        self.inner.close()


def client(run, **how):
    return Client(str(run.http.base_url), run.token, sleep=lambda _: None, **how)


def test_it_asks_under_a_key_each_and_reads_what_is_left(serve):
    run, transport = serve(), Unreliable(lost=0)
    with client(run, transport=transport) as asking:
        one, two = rows(2)
        first = asking.label(one)
        assert asking.label_many([one, two])[0] == first
        assert asking.answers_left == asking.budget()["answers_left"] == 10
        assert asking.guarantee()["unit"] == "record"
    assert len({key for key, _ in transport.seen if key}) == 2


def test_a_lost_answer_is_asked_for_again_under_the_same_key_and_charged_once(serve):
    run, transport = serve(), Unreliable(lost=3)
    with client(run, transport=transport) as asking:
        asking.label(rows(1)[0])
    assert len(transport.seen) == 4
    assert len(set(transport.seen)) == 1
    assert (run.left, run.service.records.charged) == (11, 1)


def test_it_gives_up_after_its_retries(serve):
    run, transport = serve(), Unreliable(lost=99)
    with client(run, transport=transport, retries=2) as asking:
        with pytest.raises(NoAnswer, match=r"ReadError: the answer is lost.*may have been charged") as lost:
            asking.label(rows(1)[0])
        assert (len(transport.seen), run.service.records.charged) == (3, 1)
        transport.lost = 0
        assert lost.value.charged
        assert asking.label(rows(1)[0], idempotency_key=lost.value.idempotency_key).by == "ensemble"
        with pytest.raises(Refused, match="idempotency-key-reused"):
            asking.label(rows(2)[1], idempotency_key=lost.value.idempotency_key)
    assert run.service.records.charged == 1


def test_where_nobody_listens_nothing_was_charged_and_it_says_so():
    url = f"http://127.0.0.1:{free_port()}"
    for place in (url, "nowhere", "http://[", "ftp://nowhere"):
        with pytest.raises((NoAnswer, InvalidParameter)) as none, Client(place, "k", sleep=lambda _: None) as asking:
            asking.label({})
        assert len(str(none.value).splitlines()) == 1
        assert isinstance(none.value, InvalidParameter) or not none.value.charged
    with pytest.raises(NoAnswer, match="nothing is charged by reading"), Client(url, "k", retries=0) as asking:
        asking.budget()


@pytest.mark.quick
@pytest.mark.parametrize("text", ["<html>", "[]", "7", "{}"])
def test_what_is_no_service_is_said_to_be_none(text):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    with Client("http://service", "k", transport=transport) as asking:
        for ask in (lambda: asking.label({}), lambda: asking.label_many([{}]), asking.budget):
            with pytest.raises(NoAnswer, match="no service of quorate"):
                ask()


@pytest.mark.quick
def test_a_refusal_that_passes_is_tried_again_and_no_other():
    told = {"answers_left": 1, "epsilon_spent": 1.0, "answer": {"label": "no", "status": "answered", "by": "ensemble"}}
    waits = []
    answers = iter(
        [
            httpx.Response(429, json={"code": "rate-limited"}, headers={"retry-after": "7"}),
            httpx.Response(503, json={"code": "stopping"}),
            httpx.Response(502, text="a proxy"),
            httpx.Response(200, json=told),
            httpx.Response(503, json={"code": "unhealthy", "title": "The ledger failed."}),
            httpx.Response(409, json={"code": "budget-spent"}),
        ]
    )
    transport = httpx.MockTransport(lambda _: next(answers))
    with Client("http://service", "key", transport=transport, sleep=waits.append) as asking:
        assert asking.label({}).label == "no"
        for code in ("unhealthy", "budget-spent"):
            with pytest.raises(Refused, match=code):
                asking.label({})
    assert len(waits) == 3
    assert waits[0] == 7
