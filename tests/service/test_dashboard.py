"""The page of what is left: every state, read by a strict parser and, with the other pages, by a browser."""

import os
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.report import conftest
from tests.report.accessibility import CHROMIUM, SCHEMES, axe, faults_in_browser, faults_of, picture
from tests.report.accessibility import Page as Parsed
from tests.service.conftest import rows, running

import quorate
from quorate.planning.page import plan_page
from quorate.report import render_html
from quorate.service.dashboard import MOMENTS, Drawing, History, Line, Page, State
from quorate.service.records import Records
from quorate.service.turns import Point, Standing
from quorate.types import Secret

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


runs = conftest.runs
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture
def pages(runs):
    plan = quorate.plan(n_records=6_000, n_public=1_000, width=111, n_classes=2, epsilon=1.0, delta=1e-5)
    return {
        **{f"service {state.name.lower()}": shown.html() for state, shown in STATES.items()},
        "plan": plan_page(plan),
        "report": render_html(runs.made_up()),
        "report internal": render_html(runs.made_up(), "internal", Secret(runs.internal())),
    }


@in_browser
@pytest.mark.heavy
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_are_accessible_at_400_pixels(pages, scheme, tmp_path):
    found = faults_in_browser(pages, scheme, tmp_path, axe())
    assert found == {name: [] for name in pages}


BROKEN = {
    "contrast": (
        '<p class="meaning"',
        '<p style="color: #808080; background: #707070" class="meaning"',
        "color-contrast",
    ),
    "name": ("<main>", '<main><button style="width: 40px; height: 40px"></button>', "button-name"),
    "picture": ("<main>", '<main><svg role="img" width="9" height="9"></svg>', "svg-img-alt"),
    "order of headings": ("<h3>", "<h5>", "heading-order"),
    "language": ('<html lang="en"', "<html", "html-has-lang"),
    "landmark main": ("<main>", '<div class="main">', "landmark-one-main"),
    "heads of a table": ("<main>", "<main><table><tr><td>1</td></tr></table>", ""),
    "no way there by keyboard": (' tabindex="0"', "", "scrollable-region-focusable"),
    "head without words": ('<th scope="col">entry</th>', '<th scope="col"></th>', "empty-table-header"),
    "wider": ("<main>", '<main><p style="width: 900px">wide</p>', ""),
}


@in_browser
@pytest.mark.heavy
def test_both_checks_see_what_is_broken(tmp_path):
    sound = next(iter(STATES.values())).html()
    broken = {name: sound.replace(old, new) for name, (old, new, _) in BROKEN.items()}
    assert all(page != sound for page in broken.values())
    found = faults_in_browser({"sound": sound, **broken}, "light", tmp_path, axe())
    assert found["sound"] == []
    for name, (_, _, rule) in BROKEN.items():
        own = "name" if name == "picture" else name
        assert any(each.startswith(f"own: {own}") for each in found[name]), (name, found[name])
        assert axe() is None or not rule or any(each.startswith(f"axe: {rule}") for each in found[name]), found[name]


@in_browser
@pytest.mark.faults
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pictures_of_every_page_are_kept(pages, scheme, tmp_path):
    folder = Path(os.environ.get("QUORATE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        for view, width in (("wide", 1_100), ("phone", 400)):
            kept = folder / f"{name.replace(' ', '-')}-{scheme}-{view}.png"
            picture(page, scheme, tmp_path, kept, width=width)
            assert kept.stat().st_size > 10_000
