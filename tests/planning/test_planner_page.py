"""What the page of the planner tells was computed from what is stored: its tables, and the sentences about them."""

import json
from pathlib import Path

import pytest
from benchmarks.planned import EPSILONS, STORED
from benchmarks.planned_page import BEGIN, CHOICES, END, PAGE, cells, choice, tables

ROOT = Path(__file__).parents[2]


@pytest.mark.heavy
def test_the_tables_of_the_page_are_those_that_the_command_writes():
    shown = (ROOT / PAGE).read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == tables().strip()
    assert CHOICES in shown


@pytest.mark.heavy
def test_the_sentences_about_numbers_of_teachers_follow_from_the_table():
    exceptions = {("fair", 0.5): 0.013, ("fair", 1.0): 0.009, ("imdb", 0.5): 0.010}
    half_is_better = {("fair", 0.5), ("fair", 1.0)}
    for table in json.loads(STORED.read_text(encoding="utf-8")):
        for epsilon in EPSILONS:
            (half, default, *_), _ = choice(table, epsilon)
            assert round(default, 3) <= exceptions.get((table, epsilon), 0.006)
            assert (half < default) or (table, epsilon) not in half_is_better
    assert {round(choice("imdb", epsilon)[0][0], 2) for epsilon in EPSILONS} == {0.06, 0.03, 0.02}
    assert round(choice("digits by writer", 0.5)[0][0], 2) == 0.05
    twice = [choice(table, each)[0][2] for table in ("diamonds", "fair", "mnist", "mushroom") for each in EPSILONS]
    assert (round(min(twice), 2), round(max(twice), 2)) == (0.01, 0.03)
    assert {round(choice("diamonds", epsilon)[1], 2) for epsilon in EPSILONS} == {0.12}


def test_the_sentence_about_diamonds_by_a_curve_follows_from_its_rows():
    off = [each.error for each in cells("curve") if each.table == "diamonds" and each.key.startswith("direct/")]
    assert (round(min(off), 2), round(max(off), 2)) == (-0.11, -0.05)
