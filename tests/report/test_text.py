"""The end of a run fits the terminal and says what it must; figures are rounded the safe way, and names show."""

import unicodedata
import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from json import dumps, loads

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from quorate.accounting.attacker import rounded_up
from quorate.accounting.figures import as_printed, at_least, at_most, plural, several
from quorate.errors import InvalidParameter
from quorate.findings import Finding, Outcome
from quorate.release.charge import GRADIENT_ROUND, LABEL, MARGINAL_LEVEL, ONLINE_ANSWER, PAIR_SUMS, TARGET_COUNT, TUNING
from quorate.report import (
    AnswerCounts,
    Axis,
    Chart,
    ExpectedScore,
    Facts,
    Fitted,
    Outputs,
    Part,
    Score,
    Utility,
    model_card,
    render_html,
    render_json,
    render_text,
)
from quorate.report.notation import columns, escaped, percent, power_of_ten, shortened, visible, wilson_interval
from quorate.report.sentences import answers_in_words, baseline, bound, delta_in_tens, judged, raised, verdict
from quorate.report.spending import BudgetRaise
from quorate.report.utility import ChosenScore

OUTPUTS = Outputs(report="run/public/report.html", student="run/public/student.skops", next_command="quorate ask run/")
NAMES = (
    "class",
    "βήτα-δ ≤ ε",
    "腎臓内科の患者さん",
    "a" * 300,
    "two words and then some more of them, quite a few",
    "é́",
)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("width", [40, 64, 80, 120])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [1, 2, 5, 6, 100])
def test_no_line_is_wider_than_the_terminal(width, name, n_classes, runs):
    for facts in (runs.many_classes(n_classes, name=name), runs.seeded(runs.many_classes(n_classes, name=name))):
        assert max(columns(line) for line in render_text(facts, width).splitlines()) <= width


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@pytest.mark.heavy
@given(unit=WORDS.filter(lambda text: text.strip() and "\n" not in text), run=WORDS)
def test_no_unit_or_title_breaks_the_table(unit, run, runs):
    facts = runs.made_up()
    facts = replace(
        facts,
        guarantee=replace(facts.guarantee, unit=unit),
        setup=replace(facts.setup, unit=unit),
        provenance=replace(facts.provenance, run=run),
    )

    text = render_text(facts)

    assert max(columns(line) for line in text.split("\n")) <= 80
    assert text.count("\n") == len(text.splitlines())


def test_every_figure_of_the_table_is_that_of_the_facts(facts):
    text = render_text(facts, outputs=OUTPUTS)

    assert "251 · one patient → exactly one teacher; checked" in text
    assert "1,037 asked · 1,037 answered · 0 declined · 0 never asked" in text
    assert "accuracy 84.0 % (82.3 to 85.5 %) · balanced 76.1 % · 2,003 rows" in text
    assert "guarantee   ε ≤ 0.9988, δ ≤ 1e-5 for any one patient\nspent " in text  # in one line
    assert "left        183 answers, already charged; ε 0.00129 of 1, δ 0 of 1e-5\n" in text
    assert "report      run/public/report.html\n" in text
    assert "run/public/student.skops\n" in text
    assert "try next    quorate ask run/\n" in text


def test_what_did_not_pass_is_named_and_an_unchecked_partition_is_not_called_checked(facts):
    failed = replace(facts, checks=(replace(facts.checks[0], outcome="failed"), *facts.checks[1:]))

    assert "one teacher; not checked" in render_text(failed)
    assert "failed      Does each patient belong to exactly one teacher?" in render_text(failed)
    for outcome in ("not run", "not covered", "by construction"):
        unchecked = replace(facts, checks=(replace(facts.checks[0], outcome=outcome, ran=None), *facts.checks[1:]))
        assert "one teacher; not checked" in render_text(unchecked)
    assert "one teacher; not checked" in render_text(replace(facts, checks=facts.checks[1:]))
    assert "stated by the owner" in render_text(replace(facts, setup=replace(facts.setup, partition="declared")))


LOST = AnswerCounts(asked=100, per_class=(60, 20), declined=13, interrupted=7)
CLOSED = AnswerCounts(asked=17, per_class=(4, 3), declined=10, never_asked=983)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answers": LOST}, "100 asked · 80 answered · 13 declined · 7 interrupted · 0 never"),
        ({"answers": CLOSED}, "17 asked · 7 answered · 10 declined · 983 never asked"),
        (
            {"fitted": Fitted(name="DummyClassifier", constant=True)},
            "student     The model gives every row the same class",
        ),
    ],
    ids=["lost answers", "never asked", "a constant student"],
)
def test_lost_answers_queries_that_were_never_asked_and_a_constant_student_are_told(facts, change, said):
    assert said in render_text(replace(facts, **change))


def part(purpose, answered=0, lost=1):
    asked = answered + lost
    return Part(
        purpose=purpose, mechanism="-", reserved=20, share=0.1, asked=asked, answered=answered, interrupted=lost
    )


IN_BETWEEN = "charged and never released: a process ended in between"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part(MARGINAL_LEVEL)], f"1 level of marginals, {IN_BETWEEN}. Nothing is known of any column, so that rows"),
        (
            [part(MARGINAL_LEVEL, 3)],
            f"1 level of marginals, {IN_BETWEEN}. Rows are drawn from the levels that are stored; lists",
        ),
        (
            [part(PAIR_SUMS), part(TUNING)],
            f"1 sum over pairs of columns and 1 limit of the units held out, {IN_BETWEEN}",
        ),
        ([part(TARGET_COUNT, lost=2)], f"2 counts of targets, {IN_BETWEEN}"),
        ([part(LABEL), part(GRADIENT_ROUND, 9), part(ONLINE_ANSWER)], None),  # which their counts tell
        ([part(MARGINAL_LEVEL, 4, lost=0)], None),
    ],
)
def test_what_was_lost_is_told_where_no_count_tells_it(facts, parts, said):
    text = " ".join(render_text(replace(facts, spending=replace(facts.spending, parts=parts))).split())
    assert ("lost 1" in text or "lost 2" in text) == (said is not None)
    assert said is None or said in text


def test_a_seeded_run_says_first_and_last_that_it_is_not_private(facts, runs):
    lines = render_text(runs.seeded(facts)).splitlines()

    assert "reproducible, therefore not private" in lines[0]
    assert "reproducible, therefore not private" in lines[-1]
    assert "ε ≤" not in render_text(runs.seeded(facts))


def test_escape_codes_in_names_do_not_reach_the_terminal(facts):
    hostile = replace(facts, setup=replace(facts.setup, classes=("\x1b[2J\x1b[31mno", "yes\u202e\r\n")))

    text = render_text(hostile)

    assert not set(text) & set("\x1b\r\u202e")
    assert "\\x1b[2J" in text


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("width", [39, 80.0, True, "80", None])
def test_a_width_that_is_none_is_refused(facts, width):
    with pytest.raises(InvalidParameter):
        render_text(facts, width)


def test_a_class_that_the_student_hardly_finds_is_named(facts):
    score = facts.utility.student
    assert score is not None
    n = len(facts.setup.classes)
    counts = (40,) + (5,) * (n - 1)
    weak = replace(score, recall=(0.25,) + (0.9,) * (n - 1), class_rows=counts, commonest=None)
    found_weak = replace(facts, utility=replace(facts.utility, student=weak))
    shown = render_text(found_weak)
    assert f"weak        the model finds 10 of 40 rows of class {facts.setup.classes[0]}\n" in shown
    assert shown.count("weak ") == 1
    assert ('\nremedy      set_params(decision_threshold="balanced")' in shown) == (n == 2)
    in_folder = render_text(found_weak, outputs=Outputs(again="quorate run r"))
    assert ('\nremedy      write decision_threshold = "balanced" under [student]' in in_folder) == (n == 2)
    assert "remedy " not in render_text(found_weak, outputs=Outputs())  # of an exported run
    strong = replace(score, recall=(0.5,) * n)
    assert "weak " not in render_text(replace(facts, utility=replace(facts.utility, student=strong)))


def test_a_mechanism_of_the_owners_own_is_named_with_what_nobody_can_see(facts):
    seen = Finding(
        code="noise",
        words="Is the noise drawn exactly?",
        outcome=Outcome.NOT_COVERED,
        evidence="Mine is a mechanism of the owner's own.",
        remedy="Attack it: quorate audit.",
    )
    shown = render_text(replace(facts, checks=(seen,)))
    assert "own code    Mine is a mechanism of the owner's own. Attack it: quorate audit." in shown
    assert "own code" not in render_text(facts)


@pytest.fixture
def scored(facts):
    """The facts of a run with a score of two thousand rows, of which so many are of the first class."""

    def make(accuracy: float, first: int = 1_500) -> Facts:
        n = len(facts.setup.classes)
        counts = (first, 2_000 - first) + (0,) * (n - 2)
        score = Score(n_rows=2_000, accuracy=accuracy, recall=(0.9, 0.6) + (None,) * (n - 2), class_rows=counts)
        return replace(facts, utility=replace(facts.utility, student=score))

    return make


def test_the_commonest_class_is_named_with_its_share_in_every_edition(scored):
    facts = scored(0.9)
    name = facts.setup.classes[0]
    assert f"baseline    accuracy 75.0 % by always saying {name}, the commonest class\n" in render_text(facts)
    assert "75.0 %" in render_html(facts)
    assert f"Always “{name}”" in render_html(facts)
    assert "the commonest class | 75" in model_card(facts).replace("\\", "")
    assert '"commonest": 0.75' in render_json(facts)
    second = scored(0.9, first=400)
    assert baseline(second, second.utility.student) == (
        f"accuracy 80.0 % by always saying {facts.setup.classes[1]}, the commonest class"
    )


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.80, None), (0.765, "the student is not clearly better"), (0.75, "the student is no better"),
     (0.4, "the student is no better")],
)  # fmt: skip
def test_a_student_at_or_below_the_commonest_class_is_said_to_be(scored, accuracy, said):
    facts = scored(accuracy)
    assert verdict(facts.utility.student) == said
    for edition in (render_text(facts).replace("\n            ", " "), render_html(facts), model_card(facts)):
        assert (said in edition) if said else ("the student is no" not in edition)


def test_without_labels_of_public_rows_nothing_is_made_up(facts):
    score = Score(n_rows=10, accuracy=0.5)
    assert (score.commonest, verdict(score), baseline(facts, score), baseline(facts, None)) == (None, None, None, None)
    assert "accuracy" not in render_text(replace(facts, utility=Utility()))
    assert "baseline" not in render_text(replace(facts, utility=replace(facts.utility, student=score)))


def test_facts_of_an_earlier_version_get_it_from_their_counts_and_a_wrong_one_is_refused():
    tree = {"n_rows": 10, "accuracy": 0.5, "recall": [0.5, 0.5], "class_rows": [4, 6]}
    assert Score(**tree).commonest == 0.6
    with pytest.raises(InvalidParameter, match="commonest is the largest share"):
        Score(**tree, commonest=0.7)


def test_what_was_expected_stands_beside_what_came(scored):
    facts = scored(0.9)
    told = ExpectedScore(accuracy=0.95, low=0.93, high=0.97, basis="rehearsed on public rows")
    facts = replace(facts, utility=replace(facts.utility, expected=told))
    words = "accuracy 95.0 % (93.0 to 97.0 %), rehearsed on public rows; the student is below that range"
    assert f"expected {words}" in " ".join(render_text(facts).split())
    for edition in (render_html(facts), model_card(facts).replace("\\", "")):
        assert f"Expected before anything was spent: {words}." in edition
    assert '"basis": "rehearsed on public rows"' in render_json(facts)
    with pytest.raises(InvalidParameter, match="lies in its range"):
        ExpectedScore(accuracy=0.9, low=0.93, high=0.97, basis="rehearsed")


def test_numbers_stand_in_their_sentences():
    assert bound(0.99981, 1e-5) == "ε ≤ 0.9999, δ ≤ 1e-5"
    answers = "1,200 answers, already charged"
    assert [answers_in_words(n) for n in (0, 1, 1_200)] == ["no answers", "1 answer, already charged", answers]
    assert delta_in_tens(1e-5) == "10⁻⁵"
    raise_ = BudgetRaise(time="2026-03-01T09:00:00Z", epsilon=2, delta=1e-5, reason="approved by the board")
    assert raised(raise_) == "on 2026-03-01T09:00:00Z to ε 2, δ 1e-5; reason: approved by the board"


def test_a_run_is_judged_by_the_score_that_was_chosen():
    chosen = ChosenScore(scoring="roc_auc", value=0.79, low=0.75, high=0.83, baseline=0.5)
    words = "ROC-AUC 0.790 (0.750 to 0.830), which is 0.500 for always saying the commonest class"
    assert judged(Score(n_rows=500, accuracy=0.96, chosen=chosen)) == words


POSITIVE = st.floats(1e-30, 1e30)


def parsed(written: str) -> Decimal:
    return Decimal(written.replace(",", ""))


@pytest.mark.heavy
@given(value=POSITIVE, digits=st.integers(1, 8))
def test_a_bound_from_above_never_falls_below_its_value_and_is_close(value, digits):
    written = parsed(at_most(value, digits))

    assert Decimal(repr(value)) <= written <= Decimal(repr(value)) * (1 + Decimal(10) ** (1 - digits))


@given(value=POSITIVE, digits=st.integers(1, 8))
def test_a_bound_from_below_never_passes_its_value_and_is_close(value, digits):
    written = parsed(at_least(value, digits))

    assert Decimal(repr(value)) * (1 - Decimal(10) ** (1 - digits)) <= written <= Decimal(repr(value))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 1e-5, 2e-7, 250.0])
def test_short_figures_are_written_as_they_are(value):
    assert float(parsed(at_most(value))) == float(parsed(at_least(value))) == as_printed(value) == value


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, int])
def test_a_number_of_numpy_is_written_as_it_is(number):
    assert at_most(number(4)) == at_least(number(4)) == rounded_up(number(4)) == "4"
    assert percent(number(1)) == "100.0 %"


def test_a_figure_in_json_is_the_printed_one():
    assert as_printed(0.999999998) == 1.0
    assert as_printed(1234.56789) == 1234.57


def test_a_power_of_ten_is_the_same_number():
    assert power_of_ten("1e-12") == "10⁻¹²"
    assert power_of_ten("3.5e12") == "3.5 × 10¹²"
    assert power_of_ten("0.25") == "0.25"


@given(text=st.text())
def test_what_is_written_has_no_character_that_a_terminal_would_obey(text):
    kept = visible(text).replace("\u200c", "").replace("\u200d", "")

    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for char in kept)
    assert visible(visible(text)) == visible(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_escaping_json_leaves_its_value(text):
    assert loads(escaped(dumps(text, ensure_ascii=False))) == text


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"])), limit=st.integers(1, 40))
def test_a_shortened_name_fits_and_starts_like_the_name(text, limit):
    short = shortened(text, limit)

    assert columns(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@pytest.mark.heavy
@given(right=st.integers(0, 60), extra=st.integers(0, 60))
def test_the_interval_is_wilsons(right, extra):
    n_rows = max(1, right + extra)
    theirs = binomtest(right, n_rows).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(right / n_rows, n_rows)

    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_percentages_and_counts_read_as_people_write_them():
    assert [percent(x) for x in (0.0, 0.12345, 0.9996, 1.0)] == ["0.0 %", "12.3 %", "100.0 %", "100.0 %"]
    assert [several(n, "class") for n in (0, 1, 1000)] == ["0 classes", "1 class", "1,000 classes"]
    assert [plural(noun) for noun in ("record", "entry", "day")] == ["records", "entries", "days"]


SVG = "{http://www.w3.org/2000/svg}"


def circles(chart: Chart, *, clipped: bool) -> list[tuple[str | None, str | None]]:
    """The markers that the frame cuts, or those that it does not; without those of the legend."""
    tree = ET.fromstring(chart.written())  # noqa: S314
    parts = [part for group in tree.iter(f"{SVG}g") if "clip-path" in group.attrib for part in group]
    return [(part.get("cx"), part.get("cy")) for part in (parts if clipped else tree) if part.tag == f"{SVG}circle"][
        : None if clipped else -1
    ]


@pytest.mark.parametrize("scattered", [False, True])
def test_a_marker_on_the_edge_is_not_cut_by_the_frame(scattered):
    chart = Chart("Accuracy", Axis("ε", 0.5, 8, log=True), Axis("accuracy", 0, 1), "A curve.")
    at, accuracy = [0.25, 0.5, 2, 8, 16], [0.5, 0.9, 1.0, 1.0, 1.0]
    if scattered:
        chart.points(at, accuracy, "expected", 0)
    else:
        chart.line(at, accuracy, "expected", 0, marks=None)

    assert circles(chart, clipped=True) == []
    assert circles(chart, clipped=False) == [("76", "77.4"), ("381", "44"), ("686", "44")]
