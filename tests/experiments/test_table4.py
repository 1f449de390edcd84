"""The papers' table in small: every method runs, on the same rows, and the command writes what it promises.

What an experiment writes: rows that a program reads, and a table that a person reads, with the same figures.
"""

import csv
import json
import math
import warnings

import numpy as np
import pytest

from quorate.cli.group import main
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.experiments import margins, reproduce_margins, reproduce_table4, table4
from quorate.experiments.margins import MEASURES
from quorate.experiments.measurement import Experiment, Measured, Scored, scored, summed, table
from quorate.experiments.sources import mushroom, split
from quorate.experiments.table4 import (
    ASQ,
    BEST,
    DEFAULT,
    DIRECT,
    METHODS,
    NO_NOISE,
    PAPER,
    PLAIN,
    PSQ,
    PUBLIC,
    RANDOM,
    REFERENCES,
    LinearEnsemble,
    best_recipe,
)
from quorate.labelling.active import OracularCAL, Random

KEYS = {
    "data", "method", "epsilon", "delta", "n_queries", "repeats", "accuracy_mean", "accuracy_se",
    "balanced_accuracy_mean", "paper_accuracy",
}  # fmt: skip


@pytest.fixture(scope="module")
def ensemble():
    return LinearEnsemble(split(mushroom(), 0), 0, n_jobs=1)


def test_teachers_have_about_a_hundred_rows_and_vote_once_for_every_budget(ensemble):
    assert ensemble.n_teachers == 65
    assert ensemble.counts is ensemble.counts
    assert ensemble.counts.reveal().sum(axis=1).tolist() == [65] * 162


def test_a_larger_budget_gives_a_better_student(ensemble):
    low, high = ensemble.passive(0.05), ensemble.passive(8.0)
    assert low.n_queries == high.n_queries == 162
    assert low.accuracy + 0.1 < high.accuracy


def test_active_queries_stay_under_their_cap_and_cost_no_more_than_it(ensemble):
    found = ensemble.active(1.0, OracularCAL(49))
    assert found.n_queries <= 49
    assert found.more["ex_post_epsilon"] <= 1.0
    assert ensemble.active(1.0, Random(49)).n_queries == 49


def test_every_method_of_the_table_runs_on_one_split():
    found = reproduce_table4(("mushroom",), repeats=1, epsilons=(2.0,), seed=1)
    assert [row.method for row in found.rows] == [*METHODS, *REFERENCES]
    by_method = {row.method: row for row in found.rows}
    assert by_method[PSQ].paper_accuracy == 0.8974
    assert by_method[DEFAULT].accuracy_mean > 0.93
    assert by_method[BEST].accuracy_mean > 0.93
    assert by_method[PLAIN].accuracy_mean > 0.99
    assert by_method[PLAIN].epsilon is None
    assert {row.epsilon for row in found.rows if row.method in METHODS} == {2.0}
    assert by_method[DIRECT].paper_accuracy is by_method[RANDOM].paper_accuracy is None
    assert list(found.figures) == ["table4-mushroom"]
    assert found.figures["table4-mushroom"].startswith("<svg")


def test_the_column_without_noise_has_no_cell_of_the_direct_method_whose_grid_has_no_price_there():
    found = reproduce_table4(("mushroom",), repeats=1, epsilons=(2.0, NO_NOISE), methods=(PUBLIC, DIRECT))
    assert [(row.method, row.epsilon) for row in found.rows] == [(PUBLIC, 2.0), (DIRECT, 2.0), (DIRECT, NO_NOISE)]
    assert "public coordinates, direct: not at ε = 64" in found.text()
    with pytest.raises(InvalidParameter, match="has no price at epsilon = 64"):
        reproduce_table4(("mushroom",), repeats=1, epsilons=(NO_NOISE,), methods=(PUBLIC,))


def test_the_command_passes_no_caution_of_a_large_budget_on(capsys, tmp_path):
    asked = ["reproduce", "table4", "--data", "mushroom", "--repeats", "1", "--epsilon", "64", "--out"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SystemExit) as ended:
            main([*asked, str(tmp_path), "--method", DEFAULT])
    assert ended.value.code == 0
    assert "QuorateWarning" not in capsys.readouterr().err
    assert not list(tmp_path.glob("*.svg"))  # the picture has no place for this budget


def test_the_papers_figures_are_those_that_it_prints():
    """LZCW21 Table 4, typed a second time."""
    printed = """
    mushroom PSQ .6416 .7534 .8974 .9773
    mushroom ASQ .6418 .7727 .8858 .9146
    a9a PSQ .5040 .5171 .5176 .5555
    a9a ASQ .5212 .5369 .5543 .5461
    real-sim PSQ .6355 .7550 .8025 .8234
    real-sim ASQ .7389 .8040 .8231 .8289
    """
    typed = {}
    for line in printed.strip().splitlines():
        data, method, *figures = line.split()
        typed[data, {"PSQ": PSQ, "ASQ": ASQ}[method]] = tuple(map(float, figures))
    assert typed == PAPER


def test_a_recipe_is_a_function_of_public_facts_alone():
    parts = split(mushroom(), 0)
    made = best_recipe("mushroom", parts, 1.0)
    parts.y_private[:] = np.random.default_rng(0).permutation(parts.y_private)
    assert best_recipe("mushroom", parts, 1.0)["n_teachers"] == made["n_teachers"] == 241
    assert best_recipe("a9a", parts, 1.0)["prior_matching"]


def test_unknown_names_and_missing_files_are_refused_at_once(tmp_path):
    with pytest.raises(InvalidParameter, match="mushroom"):
        reproduce_table4(("mushrooms",), repeats=1)
    with pytest.raises(InvalidParameter, match="--real-sim"):
        reproduce_table4(("real-sim",), repeats=1)
    with pytest.raises(InvalidParameter, match="method"):
        reproduce_table4(("mushroom",), repeats=1, methods=("guess",))
    with pytest.raises(InvalidParameter, match="repeats"):
        reproduce_table4(("mushroom",), repeats=0)
    with pytest.raises(PreconditionFailed, match="imdb"):
        reproduce_table4(("imdb",), repeats=1, files=tmp_path)


def test_the_command_writes_rows_with_the_promised_keys(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table4, "METHODS", {PSQ: METHODS[PSQ], ASQ: METHODS[ASQ]})
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "table4", "--repeats", "1", "--data", "mushroom", "--out", str(tmp_path / "out"), "--json"])
    assert stop.value.code == 0
    printed, written = json.loads(capsys.readouterr().out), json.loads((tmp_path / "out" / "table4.json").read_text())
    assert printed == written
    assert set(written[0]) >= KEYS
    assert "--repeats=1 --data=mushroom" in (tmp_path / "out" / "table4.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["reproduce", "table5"], 2, "table4"),
        (["reproduce", "margins", "--data", "a9a"], 2, "--data"),
        (["reproduce", "table4", "--data", "a9b"], 2, "a9a"),
        (["reproduce", "table4", "--repeats", "0"], 2, "repeats"),
        (["reproduce", "table4", "--data", "real-sim"], 2, "--real-sim"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_wrong_arguments_of_the_command_are_one_line(arguments, code, told, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == code
    assert told in capsys.readouterr().err


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
    assert scored([1, 2, 0], [1, 2, 1]).balanced_accuracy == 0.75  # a class that no test row has does not count


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
    assert "value" in table([rows()[1]])  # where there are no budgets
    assert all(line == line.rstrip() for line in table(rows()).splitlines())


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
    assert {row.paper_accuracy for row in found.rows} == {None}  # the paper prints no figure
    assert "|" not in found.text()
