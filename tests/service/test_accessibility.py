"""The service's page, a plan's page and the report as Chromium lays them out: read by two checks, kept as pictures.

Pictures are kept in the folder that ``QUORATE_SCREENSHOTS`` names.
"""

import os
from pathlib import Path

import pytest
from tests.report import conftest
from tests.report.accessibility import CHROMIUM, SCHEMES, axe, faults_in_browser, picture
from tests.service.test_dashboard import STATES

import quorate
from quorate.planning.page import plan_page
from quorate.report import render_html
from quorate.types import Secret

runs = conftest.runs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture
def pages(runs):
    plan = quorate.plan(n_records=6_000, n_public=1_000, width=111, n_classes=2, epsilon=1.0, delta=1e-5)
    return {
        **{f"service {state.name.lower()}": shown.html() for state, shown in STATES.items()},
        "plan": plan_page(plan),
        "report": render_html(runs.made_up()),
        "report internal": render_html(runs.made_up(), "internal", Secret(runs.internal())),
    }


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
