"""The tables of the pages on choosing are what their command measures."""

import importlib.util
import re
from pathlib import Path
from statistics import fmean

import pytest

DOCS = Path(__file__).parent.parent / "docs"
# How far a mean of eight fits may be from one measured again, in per cent; near a coin noise moves it more.
POINTS = 6.0
COIN = 80.0  # below that it is not compared

MEAN = re.compile(r"([\d.]+)(?: ± [\d.]+)? %")


def means(line):
    return [float(figure) for figure in MEAN.findall(line)]


def columns(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture(scope="module")
def choosing():
    spec = importlib.util.spec_from_file_location("choosing", DOCS / "choosing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(choosing):
    """Every measured table of the pages, by its name."""
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in choosing.PAGES)
    return {name: table.strip().splitlines() for _, name, table, _ in choosing.MARK.findall(pages)}


def test_each_table_is_there_and_what_follows_from_sizes_alone_is_computed_again(choosing):
    tables = said(choosing)
    assert tables.keys() == choosing.TABLES.keys()
    for epsilon, line in zip(choosing.EPSILONS, tables["epsilons"][2:], strict=True):
        assert line.startswith(f"| {epsilon:g} | {choosing.promised(epsilon)} | ")
    assert [line.split(" | ")[0] for line in tables["teachers"][2:]] == [f"| {n:,}" for n in choosing.TEACHERS]
    assert [line.split(" | ")[0] for line in tables["records"][2:]] == [f"| {n:,}" for n in choosing.RECORDS]


@pytest.mark.heavy
def test_one_figure_measured_again_is_near_the_one_that_is_told(choosing):
    (line,) = (each for each in said(choosing)["methods"] if each.startswith("| 1 |"))
    votes, direct, _ = means(line)
    assert abs(100 * fmean(choosing.accuracies("votes", repeats=1, seeded=False)) - votes) < POINTS
    assert abs(100 * fmean(choosing.accuracies("direct", repeats=1, seeded=False)) - direct) < POINTS


def test_the_same_set_up_has_the_same_figure_on_every_page(choosing):
    """Defaults at ε = 1 stand in three tables, and both methods at four ε in two."""
    tables = said(choosing)
    both = {cells[0]: cells[1:3] for cells in map(columns, tables["methods"][2:])}
    alone = {cells[0]: cells[4:6] for cells in map(columns, tables["epsilons"][2:])}
    assert both == {epsilon: alone[epsilon] for epsilon in both}
    assert columns(tables["records"][-1])[1] == both["1"][0]


@pytest.mark.faults
@pytest.mark.parametrize("name", ["methods", "mechanisms", "teachers", "epsilons", "records"])
def test_every_table_measured_again_is_near_the_one_that_is_told(choosing, name):
    table, measured = said(choosing)[name], list(choosing.TABLES[name]())
    assert MEAN.sub("%", "\n".join(table)) == MEAN.sub("%", "\n".join(measured))
    for line, other in zip(table, measured, strict=True):
        for figure, came in zip(means(line), means(other), strict=True):
            assert figure < COIN or abs(figure - came) < POINTS
