"""Facts are plain, checked when they are made, and the same after a trip through JSON."""

import json
from dataclasses import replace
from json import dumps, loads
from typing import Any

import numpy as np
import pytest

from quorate.errors import InvalidParameter, SecretRefused
from quorate.report import (
    AnswerCounts,
    Audit,
    AuditLine,
    Choice,
    Facts,
    FaultSize,
    FaultSizes,
    Fitted,
    Part,
    Score,
    StudentFile,
    Utility,
    model_card,
    render_json,
)
from quorate.report.findings import PrivateSets
from quorate.report.student_file import TableColumn
from quorate.types import Secret


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "build",
    [
        lambda runs: runs.made_up(),
        lambda runs: runs.many_classes(100),
        lambda runs: runs.with_odometer(runs.made_up()),
        lambda runs: runs.with_raises(runs.made_up()),
        lambda runs: runs.seeded(runs.made_up(audit=None)),
        lambda runs: runs.many_classes(3, name=chr(0x202E) + "腎臓" + chr(0xE0001)),
    ],
)
def test_facts_survive_a_trip_through_either_json(build, runs):
    facts = build(runs)

    assert Facts.from_json(facts.to_json()) == facts
    assert Facts.from_json(render_json(facts)) == facts
    assert Facts.from_json(facts.to_json()).to_json() == facts.to_json()


def test_the_json_is_canonical_and_versioned(facts):
    text = facts.to_json()

    assert loads(text)["format"] == 2
    assert text == dumps(loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.default_cases(5)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda tree: tree["spending"].update(left_epsilon=float("nan")),
        lambda tree: tree.update(format=3),
        lambda tree: tree.update(format=True),
        lambda tree: tree.pop("format"),
        lambda tree: tree.update(margins=[1]),
        lambda tree: tree.pop("setup"),
        lambda tree: tree["setup"].update(n_teachers="251"),
        lambda tree: tree["setup"].update(n_teachers=True),
        lambda tree: tree["setup"].update(n_teachers=250.0),
        lambda tree: tree["provenance"].update(seeded=0),
        lambda tree: tree["provenance"].update(versions=[["numpy"]]),
        lambda tree: tree["answers"].update(per_class=None),
    ],
)
def test_json_that_is_not_of_this_format_is_refused(facts, spoil):
    tree = loads(facts.to_json())
    spoil(tree)

    for text in (dumps(tree), "", "[]", "{", '{"format": 1}', "null"):
        with pytest.raises(InvalidParameter):
            Facts.from_json(text)


def test_numpy_scalars_and_lists_mean_the_same_as_plain_values():
    score = Score(n_rows=np.int64(10), accuracy=np.float32(0.5), recall=[np.float64(0.25), None])

    assert score == Score(n_rows=10, accuracy=0.5, recall=(0.25, None))
    assert type(score.n_rows) is int
    assert type(score.accuracy) is float


NO_NUMBERS = (True, np.bool_(True), "0.5", None, float("nan"), float("inf"), np.nan, [0.5])


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "plant",
    [
        lambda f: replace(f, answers=AnswerCounts(asked=10, per_class=Secret((1, 2)))),
        lambda f: replace(f, answers=AnswerCounts(asked=10, per_class=(Secret(1), 2))),
        lambda f: replace(f, setup=Secret(f.setup)),
        lambda f: replace(f, setup=replace(f.setup, recipe=(Secret("a margin of 3"),))),
        lambda f: replace(f, utility=Utility(student=Secret(0.5))),
        lambda f: replace(f, audit=Secret(None)),
    ],
)
def test_a_secret_cannot_be_put_into_the_facts(facts, plant):
    with pytest.raises(SecretRefused):
        plant(facts)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda f: replace(f, answers=AnswerCounts(asked=9, per_class=(1, 2, 3))),
        lambda f: replace(f, utility=Utility(student=Score(n_rows=1, accuracy=1.0, recall=(1.0,)))),
        lambda f: replace(f, checks=(*f.checks, f.checks[0])),
        lambda f: replace(f, setup=replace(f.setup, unit="household")),
        lambda f: replace(f, setup=replace(f.setup, partition="random")),
        lambda f: replace(f, setup=replace(f.setup, classes=())),
        lambda f: replace(f, setup=replace(f.setup, n_teachers=0)),
        lambda f: replace(f, spending=replace(f.spending, spent_epsilon=1.01)),
        lambda f: replace(f, spending=replace(f.spending, left_delta=-1e-9)),
        lambda f: replace(f, spending=replace(f.spending, composition="rdp")),
        lambda f: replace(f, spending=replace(f.spending, parts=f.spending.parts * 2)),
        lambda f: replace(f, provenance=replace(f.provenance, seeded=True)),
        lambda f: replace(f, provenance=replace(f.provenance, run="\ud800")),
        lambda f: replace(f, audit=Audit(lines=())),
        lambda _: AnswerCounts(asked=3, per_class=(2, 2)),
        lambda _: AnswerCounts(asked=3, per_class=(2, -1)),
        lambda _: Part(purpose="label", mechanism="M", reserved=1, asked=2, share=0.5),
        lambda _: Part(purpose="label", mechanism="M", reserved=3, asked=2, answered=2, declined=1, share=0.5),
        lambda _: Part(purpose="label", mechanism="M", reserved=1, share=1.5),
        lambda _: Part(purpose="label", mechanism="M", reserved=1, share=0.5, sigma=0),
        lambda _: Score(n_rows=0, accuracy=0.5),
        lambda _: Score(n_rows=5, accuracy=1.5),
        lambda _: Score(n_rows=5, accuracy=0.5, recall=(2.0,)),
        lambda _: Choice(epsilon=0, sigma=1.0, n_answers=1),
        lambda _: AuditLine(attack="a", claimed_epsilon=1, lower_bound=0, confidence=1.0, trials=1),
        lambda _: FaultSize(fault="less noise", attack="a", probability=1.0),
        *(
            lambda f, certainty=certainty: FaultSizes(faults=f.audit.sizes.faults, certainty=certainty)
            for certainty in (None, 0.0, 1.0)
        ),
        *(lambda _, value=value: Score(n_rows=10, accuracy=value) for value in NO_NUMBERS),
    ],
)
def test_values_out_of_range_and_parts_that_do_not_fit_together_are_refused(facts, wrong):
    with pytest.raises(InvalidParameter):
        wrong(facts)


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "yes"},
        {"ran": None},
        {"outcome": "failed", "ran": None},
        *({"outcome": outcome} for outcome in ("by construction", "not covered", "not run")),
        {"evidence": None},
        {"evidence": Secret("a vote")},
        {"evidence": "\ud800"},
        {"severity": "note"},
    ],
)
def test_an_answer_is_read_only_where_a_function_looked_or_it_says_that_none_did(facts, change):
    answer = {"code": "seed", "question": "No seed?", "outcome": "passed", "evidence": "…", "ran": "f"}
    assert replace(facts, checks=(answer,)).checks[0].holds
    with pytest.raises((InvalidParameter, SecretRefused)):
        replace(facts, checks=({**answer, **change},))


def test_a_refusal_names_the_field_and_not_the_value(facts, runs):
    assert (facts.seeded, runs.seeded(facts).seeded) == (False, True)
    with pytest.raises(InvalidParameter, match=r"^Score\.n_rows: expected int, got str$"):
        Score(n_rows="17 rows of ward 3", accuracy=0.5)


HEADINGS = [
    "# Readmission within 30 days",
    "## The model",
    "## How to use it",
    "## Privacy guarantee",
    "## What the guarantee does not cover",
    "## Utility",
    "## Intended use and limits",
    "## Provenance",
]


def headings(card: str) -> list[str]:
    return [line for line in card.splitlines() if line.startswith("#")]


def test_the_card_has_its_headings_in_order_and_the_figures_of_the_facts(facts):
    card = model_card(facts)

    assert headings(card) == HEADINGS
    for words in ("251 teachers", "4,013", "1,037 asked, 1,037 answered, 0 declined, 0 never asked",
                  "at most 0\\.9988", "at most 1e\\-5", "731 of 1,000", "84.0 %",
                  "76.1 %", "82.3 % to 85.5 %", "2,003", "20,011", facts.provenance.ledger_head):  # fmt: skip
        assert words.replace("\\.", ".") in card.replace("\\.", "."), words


def test_it_names_the_student_that_was_fitted(facts):
    other = replace(facts, setup=replace(facts.setup, student="AdaBoostClassifier"))
    card = model_card(replace(other, fitted=Fitted(name="StandardScaler → AdaBoostClassifier")))

    assert "The model is AdaBoostClassifier, fitted on public rows and 1,037 released answers, as fitted: " in card
    assert "StandardScaler → AdaBoostClassifier" in card
    assert "LogisticRegression" not in card


def test_a_student_that_could_not_be_fitted_is_not_called_by_its_name_alone(facts):
    closed = AnswerCounts(asked=10, per_class=(0, 0), declined=10, never_asked=1027)
    card = model_card(replace(facts, answers=closed, fitted=Fitted(name="DummyClassifier", constant=True)))

    assert "The model gives every row the same class" in card
    assert "10 asked, 0 answered, 10 declined, 1,027 never asked" in card
    assert "was closed before 1,027 queries could be asked" in card


def test_names_cannot_write_markdown_or_html(facts):
    hostile = "<script>x</script> | [a](javascript:b) `c` **d** \n# e"
    setup = replace(facts.setup, classes=(hostile, "b"), student=hostile)
    card = model_card(replace(facts, setup=setup, provenance=replace(facts.provenance, registry=((hostile, hostile),))))

    assert "<script" not in card.replace("\\<script", "")
    assert "](javascript" not in card
    assert headings(card) == HEADINGS
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert all(row.replace("\\|", "").count("|") in {3, 6} for row in rows)


def test_a_unit_cannot_write_html_in_what_is_said_of_the_sets(facts):
    hostile = "<script>x</script>"
    sets = PrivateSets(limit=0.4, coverage=0.9, slack=0.02, failure=0.05, share=0.2, epsilon=0.1)
    guarantee, setup = replace(facts.guarantee, unit=hostile), replace(facts.setup, unit=hostile)
    card = model_card(replace(facts, guarantee=guarantee, setup=setup, fitted=Fitted(name="m", private_sets=sets)))
    said = card.split("---\n", 2)[2]  # behind the front matter, which is JSON
    assert "drawn as the private ones" in said
    assert "<script" not in said.replace("\\<script", "")


def test_a_seeded_run_promises_nothing_and_many_classes_or_no_labels_stay_a_card(facts, runs):
    card = model_card(runs.seeded(facts))

    assert card.count("eproducible, therefore not private") >= 3
    assert "1,000 pairs of equally likely" not in card
    tree = front_matter(card)
    assert tree["privacy"]["epsilon"] is None
    assert "seeded-noise-no-guarantee" in tree["tags"]
    assert "and 70 more" in model_card(runs.many_classes(100))
    assert "no public labels" in model_card(replace(facts, utility=Utility()))


def front_matter(card: str) -> dict[str, Any]:
    """Each line is a name and JSON, which is YAML too."""
    start, inside, _ = card.split("---\n", 2)
    assert start == ""
    return {line.partition(": ")[0]: json.loads(line.partition(": ")[2]) for line in inside.splitlines()}


def test_the_front_matter_has_the_figures_of_the_facts(facts):
    tree = front_matter(model_card(facts))
    assert tree["privacy"]["epsilon"] == facts.guarantee.epsilon
    assert tree["model-index"][0]["name"] == facts.provenance.run
    metrics = {each["type"]: each["value"] for each in tree["model-index"][0]["results"][0]["metrics"]}
    score = facts.utility.student
    assert metrics == {"accuracy": score.accuracy, "balanced_accuracy": score.balanced_accuracy}
    assert "model-index" not in front_matter(model_card(replace(facts, utility=Utility())))


def test_names_cannot_write_front_matter_of_their_own(facts):
    hostile = "ward 7\n---\nprivacy: {epsilon: 0.01}\n---"
    tree = front_matter(model_card(replace(facts, provenance=replace(facts.provenance, run=hostile))))
    assert tree["privacy"]["epsilon"] == facts.guarantee.epsilon


def use_of(card: str) -> str:
    return card.partition("## How to use it")[2].partition("## Privacy guarantee")[0]


AGE = TableColumn(name="age", holds="number", type="number")


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("file", "task", "said", "not_said"),
    [
        (StudentFile(rows="table"), "tabular", ["a data frame", "no type has to be"], ["since 1970", "missing"]),
        (StudentFile(rows="table", read_as=["date", "text"]), "tabular", ["since 1970, no text missing"], []),
        (StudentFile(rows="texts", read_as=["text"]), "text", ["running text; no text missing"], ["1970"]),
        (StudentFile(rows="table", columns=[replace(AGE, holds="text", read_as="date", type="text")]), "tabular",
         ["from read_table import read_table", 'rows = read_table("new.csv")'], []),
        (StudentFile(rows="table", columns=[AGE]), "tabular",
         ["a data frame"], ["read_table"]),
        (StudentFile(rows="numbers"), "tabular", ["an array with the columns"], ["data frame"]),
        (StudentFile(rows="sparse"), "tabular", ["a sparse matrix"], ["data frame"]),
        (StudentFile(rows="images"), "image", ["an array with one image a row"], ["data frame"]),
        (StudentFile(rows="numbers", trusted=["sklearn.neighbors._kd_tree.KDTree"]), "tabular",
         ['trusted = ["sklearn.neighbors._kd_tree.KDTree"]', "trusted=trusted)"], ["no type has to be trusted"]),
        (None, "tabular", ["rows with the columns of the public ones"], ["no type has to be trusted", "data frame"]),
    ],
)  # fmt: skip
def test_how_the_student_is_opened_and_asked_follows_from_the_facts(facts, file, task, said, not_said):
    card = model_card(replace(facts, student_file=file))
    assert all(words in use_of(card) for words in said)
    assert not any(words in use_of(card) for words in not_said)
    tree = front_matter(card)
    assert tree["pipeline_tag"] == f"{task}-classification"
    assert tree["pipeline_tag"] in tree["tags"]
    assert tree["model-index"][0]["results"][0]["task"] == {"type": f"{task}-classification"}


def test_nobody_is_told_to_open_a_file_that_is_not_published(facts, runs):
    assert "skops.io" in use_of(model_card(facts))
    told = use_of(model_card(runs.seeded(replace(facts, student_file=StudentFile(rows="table")))))
    assert "skops.io" not in told
    assert "is not published" in told


def test_names_of_types_cannot_leave_the_code(facts):
    hostile = StudentFile(rows="table", trusted=['a"]\n```\n<script>x</script>\n# e'])
    card = model_card(replace(facts, student_file=hostile))
    assert headings(card.replace("# types that", "")) == HEADINGS
    assert card.count("```") == 3
    assert not any(line.startswith("```") for line in use_of(card).splitlines()[3:-2])


def test_a_column_of_dates_says_how_they_are_written():
    words = "dates, such as 2024-03-01 or 2024-03-01T12:30+01:00; without a zone they are in UTC"
    assert TableColumn(name="seen", holds="text", read_as="date", type="text").words == words
