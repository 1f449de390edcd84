"""The page: its sections, its figures, what may never be on it, and that a browser can read it."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from json import dumps, loads
from math import ceil, exp
from pathlib import Path
from typing import Any

import pytest
from tests.report.accessibility import Page, faults_of

import quorate.report
from quorate.accounting.guarantee import OtherRelation
from quorate.errors import InvalidParameter, SecretRefused
from quorate.release.charge import MARGINAL_LEVEL
from quorate.report import (
    Audit,
    AuditLine,
    Facts,
    FaultSize,
    FaultSizes,
    InternalFacts,
    Part,
    Utility,
    model_card,
    render_html,
    worlds_told_apart,
)
from quorate.report.words import LANGUAGES, WORDS
from quorate.types import Secret

SECTIONS = [
    "In one page",
    "Privacy guarantee",
    "Unit of privacy, composition",
    "Mechanisms",
    "Implementation",
    "Utility",
    "Audit",
    "Sensitivity of the choice",
    "Data collection",
    "Trust model, provenance",
]


EDITIONS: dict[str, Any] = {
    "plain": lambda runs: render_html(runs.made_up()),
    "seeded": lambda runs: render_html(runs.seeded(runs.made_up())),
    "odometer": lambda runs: render_html(runs.with_odometer(runs.made_up())),
    "hundred": lambda runs: render_html(runs.many_classes(100, name="δ-Klasse & <b>")),
    "internal": lambda runs: render_html(runs.made_up(), "internal", Secret(runs.internal())),
    "bare": lambda runs: render_html(
        runs.made_up(audit=None, choices=(), checks=(), utility=Utility(), spending=runs.made_up().spending)
    ),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_is_well_formed_small_and_alone(edition, runs):
    text = EDITIONS[edition](runs)
    page = Page(text)
    tags = {tag for tag, _ in page.seen}

    assert len(text.encode()) < 400_000
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"}
    assert not re.search(r"https?:|//|@import|javascript:|\bon\w+=", re.sub(r"<!doctype html>", "", text))
    assert {link[1:] for link in re.findall(r"url\((#[^)]*)\)", text)} <= {attrs.get("id") for _, attrs in page.seen}
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert page.of("title")
    assert faults_of(text) == []  # so that it can be read aloud


def test_the_sections_stand_in_order_without_an_audit_unless_there_is_one_or_a_command_for_it(facts):
    assert Page(render_html(facts)).of("h2") == SECTIONS
    without = render_html(replace(facts, audit=None))
    named = render_html(replace(facts, audit=None, audit_command="quorate audit run/"))

    assert "Audit" not in Page(without).of("h2")
    assert Page(named).of("h2") == SECTIONS
    assert "Not audited yet. Run <code>quorate audit run/</code>." in named


def test_the_json_inside_the_page_is_the_facts(facts):
    block = re.search(r"<pre><code>(.*?)</code></pre>", render_html(facts), re.DOTALL)

    assert Facts.from_json(unescape(block[1])) == facts


def test_the_guarantee_is_told_once_for_whoever_signs_and_once_for_a_reviewer(facts):
    """Also its limits, of which the sentence for a reviewer has none: they are the list below it."""
    text = Page(seen_by_a_reader(facts)).text()
    right = worlds_told_apart(facts.guarantee.epsilon, facts.guarantee.delta)

    assert text.count(replace(facts.guarantee, caveats=()).for_reviewer()) == 1
    assert len(re.findall(rf"at most {right} (?:times in|of) 1,000", text)) == 2  # in words, and of the picture
    for told in (facts.guarantee.mechanism, facts.guarantee.accounting, *facts.guarantee.caveats):
        assert text.lower().count(told.lower()) == 1, told
    assert "By the exact price of what this run released, the best observer names at most 557 of 1,000" in text


@pytest.mark.parametrize(("epsilon", "delta"), [(0.99871, 1e-5), (0.1, 0.0), (3.0, 0.01)])
def test_the_first_page_has_one_pair_of_odds_and_its_dots_are_as_many(facts, epsilon, delta):
    facts = replace(facts, guarantee=replace(facts.guarantee, epsilon=epsilon, delta=delta))
    page = render_html(facts)
    first = page.split('id="guarantee"')[0]
    right = ceil(1000 * (1 - (1 - delta) / (1 + exp(epsilon))))  # by the line where both errors of a test are equal
    drawn = {}
    for path, layer in re.findall(r'<path d="([^"]*)" class="row (\w+)"', first.split("<figcaption")[0]):
        drawn[layer] = sum((int(width) + 9) // 10 for width in re.findall(r"h(\d+)", path))

    assert drawn == {"chance": 500, "gain": right - 500, "rest": 1000 - right, "hollow": 1000 - right}
    assert f"is right at most {right} times in 1,000. Tossing a coin is right 500 times." in first
    assert (f"{right - 500} more" in first, f"{1000 - right} still wrong" in first) == (True, True)
    assert first.count('class="yes"') == 4
    assert "557" not in first  # the exact price stands behind
    assert "293 of 480 rows that are “readmitted” are found, 187 are missed" in first
    assert "68.6 % of the rows that the model calls “readmitted” are so" in first  # 293 of 293 + 0.088 × 1,523
    assert "8.8 % of the other rows" in first


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("add, remove or replace one patient", "Every patient, with all rows of that patient together."),
        ("add or remove one patient", "must say whether one given patient is in the private data"),
        ("replace one patient", "which of two tables is the private one; they are equally likely"),
        ("add or remove one patient, as the owner states", "exactly one teacher, as the owner states"),
        ("as in our protocol", "Whom the owner of the data states: “as in our protocol”."),
    ],
)
def test_the_first_page_says_what_is_compared(facts, change, sentence):
    facts = replace(facts, guarantee=replace(facts.guarantee, neighbours=change))
    assert sentence in render_html(facts)


def test_the_first_page_says_what_is_wrong_and_what_else_is_compared(facts, runs):
    first = render_html(facts).split('id="guarantee"')[0]
    assert "Limits of the guarantee: 1;" in first
    assert "Checks that failed" not in first
    failed = replace(facts, checks=(replace(facts.checks[0], outcome="failed"), *facts.checks[1:]))
    assert "Checks that failed: 1. The guarantee may not hold" in render_html(failed)
    other = OtherRelation(neighbours="replace one patient", epsilon=2.0, delta=1e-5)
    guarantee = replace(facts.guarantee, neighbours="add or remove one patient", also=(other,))
    assert "is the true one: at most 881 times in 1,000." in unescape(render_html(replace(facts, guarantee=guarantee)))
    seeded = render_html(runs.seeded(facts)).split('id="guarantee"')[0]
    assert "Nothing is promised" in seeded
    assert "times in 1,000" not in seeded
    steps = replace(facts, setup=replace(facts.setup, student="ColumnTransformer → LogisticRegression"))
    assert "<li>a model: LogisticRegression</li>" in render_html(steps)  # without the steps before it
    setup = replace(facts.setup, unit="record")
    record = replace(facts.guarantee, unit="record", neighbours="add, remove or replace one record")
    assert "one row of the table" in render_html(replace(facts, setup=setup, guarantee=record))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_says_that_counts_were_lost(facts, language):
    def page(answered, lost):
        asked = answered + lost
        counts = {"reserved": 9, "asked": asked, "answered": answered, "interrupted": lost}
        part = Part(purpose=MARGINAL_LEVEL, mechanism="-", share=0.0, **counts)
        spending = replace(facts.spending, parts=(*facts.spending.parts, part))
        first, _, rest = render_html(replace(facts, spending=spending), language=language).partition('id="guarantee"')
        return unescape(first), unescape(rest)

    heading = WORDS[language]["mechanisms"]
    said = {key: WORDS[language][key].format(heading=heading) for key in ("lost", "lost counts")}
    for key, (first, rest) in {"lost counts": page(0, 1), "lost": page(2, 1)}.items():
        assert [other for other, words in said.items() if words in first] == [key]
        assert "1 level of marginals, charged and never released" in rest
    assert not any(words in page(3, 0)[0] for words in said.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_words_and_fills_in_the_same_values(facts, language):
    """Of a page without its JSON no sentence of the first page is English in another language."""

    def values(text: str) -> list[str]:
        return sorted(set(re.findall(r"{(\w+)}", text)))

    english, words = WORDS["en"], WORDS[language]
    assert list(words) == list(english)
    assert [key for key in words if values(words[key]) != values(english[key])] == []
    text = render_html(facts, language=language)
    page = Page(text)
    assert dict(page.seen)["html"]["lang"] == language
    assert page.of("h2") == [words[key] for key in words if words[key] in page.of("h2")]
    assert len(page.of("h2")) == len(SECTIONS)
    first = text.split('id="guarantee"')[0]
    if language != "en":
        same = [key for key in words if words[key] == english[key] and key not in ("mechanisms", "audit", "auc")]
        assert same == []
        assert set(page.of("h3")).isdisjoint(Page(render_html(facts)).of("h3"))
        assert "2,003" not in first
        assert ("61,1\N{NO-BREAK SPACE}%" in first, 'lang="en"' in text) == (True, True)
    with pytest.raises(InvalidParameter, match='language must be one of "en", "de", "fr"'):
        render_html(facts, language="it")  # type: ignore[call-overload]


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(tree, dict | list):
        for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(branch, (*path, key))
    else:
        yield path, tree


def changed(facts: Facts, path: tuple[Any, ...]) -> Facts | None:
    """The same facts with one value changed a little, or None where they would no longer fit together."""
    tree = loads(facts.to_json())
    branch = tree
    for key in path[:-1]:
        branch = branch[key]
    value = branch[path[-1]]
    for other in (
        [not value] if isinstance(value, bool)
        else [value + 1, value - 1] if isinstance(value, int)
        else [value * 0.97, value * 1.03, 1e-6] if isinstance(value, float)
        else ["zcdp", "balanced", "failed", "not run", "public", value + "x"] if isinstance(value, str)
        else []
    ):  # fmt: skip
        if other == value:
            continue
        branch[path[-1]] = other
        try:
            return Facts.from_json(dumps(tree))
        except InvalidParameter:
            continue
    return None


def seen_by_a_reader(facts: Facts) -> str:
    return re.sub(r"<details>.*?</details>", "", render_html(facts), flags=re.DOTALL)


@pytest.mark.heavy
def test_no_fact_can_change_without_the_page_changing(facts, runs):
    full = runs.with_raises(runs.with_odometer(facts))
    before = seen_by_a_reader(full)
    paths = [path for path, _ in leaves(loads(full.to_json())) if path not in {("format",), ("audit_command",)}]
    silent = []
    for path in paths:
        other = changed(full, path)
        if other is not None and seen_by_a_reader(other) == before:
            silent.append(path)

    # A code names a check to programs; what a reader sees of it is its question and evidence.
    assert [path for path in silent if path[-1] != "code"] == []


def test_figures_are_written_where_they_belong(facts, runs):
    text = Page(render_html(facts)).text()
    for shown in (text, render_html(runs.many_classes(20))):
        assert "Released answers, noise included: not prevalence" in shown

    for words in ("183", "20,011", "of 1; 0.9988 charged", "45.7182", "83.8 % · 0.838", "16.2 % · 0.162", "84.0 %",
                  "82.3 to 85.5 %", "811", "226", "0.7312", "20,000", "91.3", "81.1 %", "1 — this run"):  # fmt: skip
        assert words in text, words


def test_names_are_text_and_never_markup(facts):
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;</style></title>'
    registry = ((hostile, hostile),)
    page = render_html(
        replace(
            facts,
            guarantee=replace(facts.guarantee, unit=hostile, caveats=(hostile,), mechanism=hostile),
            setup=replace(
                facts.setup, classes=(hostile, "\x1b[1m\u202ey"), unit=hostile, teacher=hostile, recipe=(hostile,)
            ),
            provenance=replace(facts.provenance, run=hostile, command=hostile, registry=registry, versions=registry),
            checks=tuple(replace(check, words=hostile, evidence=hostile) for check in facts.checks),
            audit=Audit(lines=(replace(facts.audit.lines[0], attack=hostile),)),
        )
    )

    plain = Page(render_html(facts))
    assert {tag for tag, _ in Page(page).seen} == {tag for tag, _ in plain.seen}
    assert "<script" not in page
    assert "<img" not in page
    assert not set(page) & set("\x1b\u202e")
    assert Page(page).of("h1") == [hostile]


@pytest.mark.heavy
def test_a_page_of_ten_thousand_long_names_is_still_small(runs):
    text = render_html(runs.many_classes(10_000, name="a rather long name of a class, " * 20))

    assert len(text.encode()) < 400_000
    assert "and 9,880 more classes" in text
    assert "longer than a page can take" in text
    Page(text)


def test_a_seeded_run_is_stamped_all_over_and_promises_nothing(facts, runs):
    text = render_html(runs.seeded(facts))
    page = Page(text)
    stamp = "reproducible, therefore not private"

    assert sum(attrs.get("class") == "stamp" for _, attrs in page.seen) == len(SECTIONS)
    assert stamp in page.of("title")[0]
    assert f'content: "{stamp}"' in text
    assert "as likely to come out the same" not in page.text()
    assert "can tell at most" not in page.text()
    assert stamp not in render_html(facts)


def test_an_attack_that_beats_the_claim_is_said_in_words(facts):
    beaten = AuditLine(attack="a", claimed_epsilon=1.0, lower_bound=1.2, confidence=0.95, trials=99)

    assert "the guarantee does not hold" in render_html(replace(facts, audit=Audit(lines=(beaten,))))
    assert "the guarantee does not hold" not in render_html(facts)


def said_of(facts, sizes):
    return Page(render_html(replace(facts, audit=replace(facts.audit, sizes=sizes)))).text()


@pytest.mark.heavy
def test_how_small_a_fault_would_have_been_found_is_said_as_it_was_measured(facts):
    fault = FaultSize(fault="noise smaller by 12 %", attack="all 50 answers", probability=0.9)
    here = said_of(facts, FaultSizes(faults=(fault,), certainty=0.95))
    there = said_of(facts, FaultSizes(faults=(fault,), certainty=0.95, elsewhere="50 answers"))
    nowhere = said_of(facts, FaultSizes())

    found = "noise smaller by 12 % would have been found with probability 0.9 or more"
    assert f"At these runs, {found} (all 50 answers)." in here
    assert "with confidence 95 %" in here
    assert found not in there + nowhere
    assert "No size was measured at the setting of this audit" in there
    assert "Sizes were measured at another setting: 50 answers." in there
    assert "There, noise smaller by 12 % is found with probability 0.9 or more (all 50 answers)." in there
    assert "No size was measured for this mechanism" in nowhere
    gross = said_of(facts, FaultSizes(faults=(replace(fault, found=False),), certainty=0.95))
    assert found not in gross
    assert "not even noise smaller by 12 % is known to be found with probability 0.9 or more" in gross
    assert "No size was measured" not in said_of(facts, None)


def test_every_check_says_its_outcome_and_what_looked(facts):
    page = render_html(facts)

    shown = re.findall(r'<span class="(\w+)">([^<]+)</span><div><strong>', page)
    assert [outcome for _, outcome in shown] == [str(check.outcome) for check in facts.checks]
    assert [mark for mark, _ in shown] == ["yes", "built", "yes", "open", "built", "yes", "yes", "open"]
    assert all(f"<code>{check.ran}</code>" in page for check in facts.checks if check.ran)
    assert "Put such steps into teacher= (a Pipeline)" in page
    failed = replace(facts, checks=(replace(facts.checks[0], outcome="failed"), *facts.checks[1:]))
    assert '<span class="no">failed</span>' in render_html(failed)
    assert '<span class="no">' not in page


def test_no_figure_is_coloured_as_a_warning(facts, runs):
    curve = replace(facts.attacker, told_apart=502, allowed=503)  # which both of them allow
    pages = (
        render_html(runs.made_up(guarantee=replace(facts.guarantee, epsilon=epsilon), attacker=curve))
        for epsilon in (80.0, 0.01)
    )
    large, small = (re.sub(r"[\d.,]+", "0", re.sub(r"(?s)<details>.*?</details>", "", page)) for page in pages)
    classes = [re.findall(r'class="([^"]*)"', re.sub(r"(?s)<figure>.*?</figure>", "", text)) for text in (large, small)]

    assert classes[0] == classes[1]


def test_the_public_edition_takes_no_internal_facts(facts, runs):
    with pytest.raises(SecretRefused):
        render_html(facts, "public", Secret(runs.internal()))  # type: ignore[call-overload]
    with pytest.raises(SecretRefused):
        render_html(facts, internal=Secret(runs.internal()))


@pytest.mark.parametrize(
    "wrong",
    [
        *(("internal", internal) for internal in (None, InternalFacts(), Secret(None), Secret({"margins": ()}))),
        *((edition,) for edition in ("report", None, "PUBLIC")),
    ],
)
def test_the_internal_edition_takes_internal_facts_in_a_secret_alone_and_there_is_no_third_one(facts, wrong):
    with pytest.raises(InvalidParameter):
        render_html(facts, *wrong)


def test_what_is_planted_shows_in_the_internal_edition_alone(facts, runs):
    public = render_html(facts)
    internal = render_html(facts, "internal", Secret(runs.internal()))

    for planted in ("planted-state", "planted-note", "30,303", "51.5 %", "98.8 %", "0.432", "0.0616", "all but 7%"):
        assert planted in internal
        assert planted not in public
    assert Page(internal).of("h2") == [*SECTIONS, "For the owner alone"]
    assert sum(attrs.get("class") == "stamp" for _, attrs in Page(internal).seen) == len(SECTIONS) + 1
    assert "not for release" in Page(internal).of("title")[0]
    assert 'content: "not for release"' in internal
    assert "not for release" not in public
    ids = re.findall(r' id="([^"]+)"', internal)
    assert len(ids) == len(set(ids))
    assert {"curve-inside", "sums-inside", "quality-inside"} <= set(ids)
    assert repr(runs.internal()) == f"{runs.internal()}" == "InternalFacts(…)"


@pytest.mark.heavy
def test_a_secret_is_opened_in_one_place_only():
    room = Path(quorate.report.__file__).parent
    opened = [
        path.name
        for path in sorted(room.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "reveal"
    ]

    assert opened == ["page.py"]


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium here")
@pytest.mark.heavy_cases(2)
@pytest.mark.parametrize("edition", ["plain", "seeded", "hundred", "odometer"])
def test_the_page_prints_on_a_sheet_to_sign_and_three_behind_it_at_most(edition, tmp_path, runs):
    page, sheets = tmp_path / "report.html", tmp_path / "report.pdf"
    page.write_text(EDITIONS[edition](runs), encoding="utf-8")
    quiet = ("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update")
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync", *quiet, "--no-pdf-header-footer",
         f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={sheets}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip

    assert 2 <= len(re.findall(rb"/Type /Page\b", sheets.read_bytes())) <= 4


def test_the_best_attack_is_drawn_in_words_that_fit_what_may_change(facts, runs):
    page = Page(render_html(facts))
    assert "The best attack on this run" in page.text()
    assert "it recognises at most 9.3 of 100 that are. Guessing gives 5." in page.text()
    priced = "names at most 557 of 1,000 pairs of worlds rightly on average; its ε and δ alone would allow 732."
    assert priced in page.text()
    assert priced in model_card(facts)
    written = loads(facts.to_json())["attacker"]
    assert (written["told_apart"], written["allowed"]) == (557, 732)
    earlier = replace(facts, attacker=replace(facts.attacker, told_apart=None, allowed=None))
    assert set(loads(earlier.to_json())["attacker"]) == {"false_alarms", "misses"}  # as it was written then
    assert Facts.from_json(earlier.to_json()) == earlier
    for unknown in (None, 732):  # an earlier version did not write it; a price of one ε allows no less
        other = render_html(replace(facts, attacker=replace(facts.attacker, told_apart=unknown)))
        assert "alone would allow" not in other
        assert "which may allow less than" in other
    (path,) = [attrs["d"] for tag, attrs in page.seen if tag == "path" and attrs.get("class") == "best"]
    assert path.startswith("M24.0000 6.0000L")  # from no false alarm and every miss
    assert path.endswith("L174.0000 156.0000")
    guarantee = replace(facts.guarantee, neighbours="replace one patient")
    assert "which of two tables, which differ in one patient, is the private one" in render_html(
        replace(facts, guarantee=guarantee)
    )
    assert "best attack" not in render_html(runs.seeded(facts))
    assert "best attack" not in render_html(replace(facts, attacker=None))  # an earlier version wrote the facts
