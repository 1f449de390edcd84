"""What an experiment writes: rows that a program reads, and a table that a person reads, with the same figures."""

from __future__ import annotations

import csv
import json
import math

import pytest

from quorate.experiments import margins, reproduce_margins
from quorate.experiments.margins import MEASURES
from quorate.experiments.measurement import Experiment, Measured, Scored, scored, summed, table

KEYS = {
    "data", "method", "epsilon", "delta", "n_queries", "repeats", "accuracy_mean", "accuracy_se",
    "balanced_accuracy_mean", "paper_accuracy",
}  # fmt: skip


def rows() -> tuple[Measured, ...]:
    repeats = [Scored(accuracy=a, balanced_accuracy=b, n_queries=49, more={"n_teachers": 65.0})
               for a, b in ((0.8, 0.7), (0.9, 0.8), (0.85, 0.6))]  # fmt: skip
    return (
        summed(repeats, data="mushroom", method="default", epsilon=1.0, delta=1e-4, paper_accuracy=0.7534),
        summed(repeats[:1], data="mushroom", method="plain", epsilon=None, delta=None),
    )


def experiment() -> Experiment:
    return Experiment(
        name="table4", title="A table", rows=rows(), notes=("a note",), command="quorate reproduce table4", seed=7,
        seconds=12.0, figures={"table4-mushroom": "<svg/>"},
    )  # fmt: skip


def test_means_and_standard_errors_are_those_of_the_repeats():
    row, single = rows()
    assert row.accuracy_mean == pytest.approx(0.85)
    assert row.accuracy_se == pytest.approx(math.sqrt((0.05**2 + 0.05**2) / 2 / 3))
    assert row.balanced_accuracy_mean == pytest.approx(0.7)
    assert (row.repeats, row.n_queries, row.more) == (3, 49.0, {"n_teachers": 65.0})
    assert single.accuracy_se is None


def test_accuracy_and_balanced_accuracy_are_counted():
    found = scored([0, 0, 1, 1, 1], [0, 0, 0, 0, 1], n_queries=3)
    assert (found.accuracy, found.balanced_accuracy) == (0.6, 0.75)


def test_a_class_that_no_test_row_has_does_not_count():
    assert scored([1, 2, 0], [1, 2, 1]).balanced_accuracy == 0.75


def test_the_files_hold_the_rows_with_the_promised_keys(tmp_path):
    paths = experiment().write(tmp_path)
    assert {path.name for path in paths} == {"table4.json", "table4.csv", "table4.txt", "table4-mushroom.svg"}
    written = json.loads((tmp_path / "table4.json").read_text())
    assert isinstance(written, list)
    assert all(set(row) >= KEYS for row in written)
    assert written[0]["n_teachers"] == 65.0
    with (tmp_path / "table4.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(row["accuracy_mean"]) for row in read] == [row["accuracy_mean"] for row in written]


def test_the_text_holds_the_papers_figure_beside_ours_and_how_to_make_it_again():
    text = experiment().text()
    assert ".850±.029 (.700) | .7534" in text
    assert "quorate reproduce table4; seed 7; quorate " in text
    assert "* a note" in text
    assert "ε = 1" in text
    assert "no privacy" in text


def test_a_table_without_budgets_says_value():
    assert "value" in table([rows()[1]])


def test_no_line_of_a_table_ends_in_spaces():
    assert all(line == line.rstrip() for line in table(rows()).splitlines())


# --- LZCW21 Appendix E in small: the figures are near those of earlier trials, and the pictures show them


TRIALS = {  # of ours, on the published split
    "share of queries with a margin of .4 or more": 0.67,
    "share of queries on which all teachers agree": 0.35,
    "share of queries with the plurality of h*": 0.954,
}


def test_teachers_of_adult_agree_as_far_as_they_did(monkeypatch):
    monkeypatch.setattr(margins, "N_QUERIES", 1_000)
    found = reproduce_margins(repeats=1, seed=3)
    told = {row.method: row.accuracy_mean for row in found.rows}
    assert list(told) == list(MEASURES)
    for name, trial in TRIALS.items():
        assert told[name] == pytest.approx(trial, abs=0.06)
    assert told["correlation of the margins for the plurality and for h*"] > 0.9
    assert set(found.figures) == {"margins-histogram", "margins-curve", "margins-sums"}
    assert "value" in found.text()
    assert {row.paper_accuracy for row in found.rows} == {
        None
    }  # the paper prints no figure, and ours are not the paper's
    assert "|" not in found.text()
