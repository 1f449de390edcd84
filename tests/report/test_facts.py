"""Facts are plain, checked when they are made, and the same after a trip through JSON."""

from __future__ import annotations

from dataclasses import replace
from json import dumps, loads

import numpy as np
import pytest

from quorate.errors import InvalidParameter, SecretRefused
from quorate.report import AnswerCounts, Audit, AuditLine, Choice, Facts, Part, Score, Utility, render_json
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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda tree: tree.update(format=3),
        lambda tree: tree.update(format=True),
        lambda tree: tree.pop("format"),
        lambda tree: tree.update(margins=[1]),
        lambda tree: tree.pop("setup"),
        lambda tree: tree["setup"].update(n_teachers="251"),
        lambda tree: tree["setup"].update(n_teachers=True),
        lambda tree: tree["setup"].update(n_teachers=250.0),
        lambda tree: tree["spending"].update(left_epsilon=float("nan")),
        lambda tree: tree["provenance"].update(seeded=0),
        lambda tree: tree["provenance"].update(versions=[["numpy"]]),
        lambda tree: tree["answers"].update(per_class=None),
    ],
)
def test_json_that_is_not_of_this_format_is_refused(facts, spoil):
    tree = loads(facts.to_json())
    spoil(tree)

    with pytest.raises(InvalidParameter):
        Facts.from_json(dumps(tree))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "null"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(InvalidParameter):
        Facts.from_json(text)


def test_numpy_scalars_and_lists_mean_the_same_as_plain_values():
    score = Score(n_rows=np.int64(10), accuracy=np.float32(0.5), recall=[np.float64(0.25), None])

    assert score == Score(n_rows=10, accuracy=0.5, recall=(0.25, None))
    assert type(score.n_rows) is int
    assert type(score.accuracy) is float


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [True, np.bool_(True), "0.5", None, float("nan"), float("inf"), np.nan, [0.5]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidParameter):
        Score(n_rows=10, accuracy=value)


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
    ],
)
def test_parts_that_do_not_fit_together_are_refused(facts, wrong):
    with pytest.raises(InvalidParameter):
        wrong(facts)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "make",
    [
        lambda: AnswerCounts(asked=3, per_class=(2, 2)),
        lambda: AnswerCounts(asked=3, per_class=(2, -1)),
        lambda: Part(purpose="label", mechanism="M", reserved=1, asked=2, share=0.5),
        lambda: Part(purpose="label", mechanism="M", reserved=3, asked=2, answered=2, declined=1, share=0.5),
        lambda: Part(purpose="label", mechanism="M", reserved=1, share=1.5),
        lambda: Part(purpose="label", mechanism="M", reserved=1, share=0.5, sigma=0),
        lambda: Score(n_rows=0, accuracy=0.5),
        lambda: Score(n_rows=5, accuracy=1.5),
        lambda: Score(n_rows=5, accuracy=0.5, recall=(2.0,)),
        lambda: Choice(epsilon=0, sigma=1.0, n_answers=1),
        lambda: AuditLine(attack="a", claimed_epsilon=1, lower_bound=0, confidence=1.0, trials=1),
    ],
)
def test_values_out_of_range_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


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


def test_a_refusal_names_the_field_and_not_the_value():
    with pytest.raises(InvalidParameter, match=r"^Score\.n_rows: expected int, got str$"):
        Score(n_rows="17 rows of ward 3", accuracy=0.5)


def test_seeded_is_what_the_provenance_says(facts, runs):
    assert not facts.seeded
    assert runs.seeded(facts).seeded
