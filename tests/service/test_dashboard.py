"""The page of what is left: every state, read by a strict parser (test_accessibility has a browser read them too)."""

from collections import deque
from datetime import UTC, datetime

import pytest
from tests.report.accessibility import Page as Parsed
from tests.report.accessibility import faults_of
from tests.service.conftest import rows, running

from quorate.service.dashboard import MOMENTS, Drawing, History, Line, Page, State
from quorate.service.records import Records
from quorate.service.turns import Point, Standing

NOW = "2026-03-04T12:00:00+00:00"
HOSTILE = 'a "run" <script>alert(1)</script> & more'


def standing(left, reserved=1_200):
    return Standing(
        answers_left=left,
        answers_reserved=None if left is None else reserved,
        epsilon=(0.99999999, 1.0),
        delta=(1e-5, 1e-5),
        entries=1_234,
        head="ab" * 32,
    )


def page(left, *, healthy=True, title="hospital"):
    records = Records(write=lambda _: None, clock=lambda: datetime(2026, 3, 4, 12, tzinfo=UTC))
    used = 0 if left is None else 1_200 - left
    if used:
        declined = used // 9
        told = [Point("yes", "answered", "ensemble")] * (used - declined)
        told += [Point(None, "declined", "ensemble")] * declined
        records.request("/v1/label", 200, points=told, charged=used)
        records.request("/v1/label", 422, code="wrong-type")
    if left == 0:
        records.request("/v1/label", 200, points=[Point("no", "answered", "student")] * 37)
    history = History(
        "2026-03-01T08:00:00+00:00",
        spent=[("2026-02-01T08:00:00+00:00", 0.25), ("2026-02-11T09:00:00+00:00", 1.0)],
        left=[]
        if left is None
        else [("2026-02-11T09:00:00+00:00", 1_200)]
        + [(f"2026-02-{day:02d}T09:00:00+00:00", 1_200 - used * (day - 11) // 17) for day in range(12, 29)],
        tail=deque(Line(1_230 + k, NOW, "drew 3 × online answer", f"{k:064x}") for k in range(5)),
        drawings=(Drawing("label", 1_000, 1_000), Drawing("online answer", used, 1_200)),
    )
    return Page(title, standing(left), history, records, healthy, "student", NOW)


STATES = {
    State.EMPTY: page(1_200),
    State.RUNNING: page(754),
    State.NEARLY_SPENT: page(41),
    State.SPENT: page(0),
    State.FREE: page(None),
    State.BROKEN: page(754, healthy=False),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("state", State)
def test_each_state_is_said_first_in_words_on_an_accessible_page_without_script_or_button(state):
    shown = STATES[state]
    read = Parsed(shown.html())
    tags = {tag for tag, _ in read.seen}
    assert not tags & {"script", "button", "form", "input", "a", "link", "img", "iframe"}
    assert "refill" not in shown.html().replace("it is never refilled", "")
    assert faults_of(shown.html()) == []
    assert shown.state is state
    assert str(state) in read.text()
    assert [tag for tag, _ in read.seen].count("section") == 5
    words = read.text()
    left = shown.standing.answers_left
    if left is not None:
        assert words.index("Answers left") < words.index(f"{left:,}") < words.index("ε spent")
    assert "verified at" in words.lower()


def test_words_of_a_run_are_escaped():
    text = page(5, title=HOSTILE).html()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("<h1>", "<h3>", "landmarks"),
        (' role="img"', "", "a picture without words"),
        ("--muted: #56606a", "--muted: #c0c0c0", "contrast"),
        (' scope="row"', "", "a head without a scope"),
        (' lang="en"', "", "language or viewport"),
    ],
)
def test_that_check_sees_what_is_missing(before, after, fault):
    text = STATES[State.RUNNING].html().replace(before, after).replace("</h1>", "</h3>" if after == "<h3>" else "</h1>")
    assert fault in faults_of(text)


def test_a_long_past_is_thinned_and_keeps_its_ends():
    history = History(NOW)
    for left in range(5_000, -1, -1):
        history.note(standing(left, 5_000), NOW)
    assert len(history.left) <= MOMENTS
    assert (history.left[0][1], history.left[-1][1]) == (5_000, 0)
    assert len(history.tail) == 8


@pytest.mark.heavy
def test_the_service_shows_it_to_a_browser_with_the_key_as_its_password(serve):
    run = serve()
    run.post({"rows": rows(3)})
    shown = run.http.get("/", auth=("anybody", run.token))
    assert shown.status_code == 200
    assert State.RUNNING in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert run.http.get("/").status_code == 401
    assert "Basic" in run.http.get("/").headers["www-authenticate"]
    assert faults_of(shown.text) == []


@pytest.mark.heavy
def test_a_past_is_read_off_the_ledger(own_run):
    root = own_run()
    with running(root) as run:
        run.post({"rows": rows(3)})
        run.post({"rows": rows(2, seed=8)})
        live = run.service.served.history
    with running(root) as run:
        again = run.service.served.history
    assert [left for _, left in again.left] == [left for _, left in live.left] == [12, 9, 7]
    assert {each.purpose: (each.drawn, each.reserved) for each in again.drawings}["online answer"] == (5, 12)
    assert again.tail[-1].hash == live.tail[-1].hash
