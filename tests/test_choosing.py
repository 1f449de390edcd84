"""The tables of the pages on choosing are what their command measures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
POINTS = 6.0  # how far a mean of five fits may be from one measured again, in per cent; near a coin noise moves it more
COIN = 80.0  # below that it is not compared


@pytest.fixture(scope="module")
def choosing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("choosing", DOCS / "choosing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(choosing: ModuleType) -> dict[str, list[str]]:
    """Every measured table of the pages, by its name."""
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in choosing.PAGES)
    return {name: table.strip().splitlines() for _, name, table, _ in choosing.MARK.findall(pages)}


def test_each_table_is_there_and_what_follows_from_sizes_alone_is_computed_again(choosing: ModuleType) -> None:
    tables = said(choosing)
    assert tables.keys() == choosing.TABLES.keys()
    for epsilon, line in zip(choosing.EPSILONS, tables["epsilons"][2:], strict=True):
        assert line.startswith(f"| {epsilon:g} | {choosing.promised(epsilon)} | ")
    assert [line.split(" | ")[0] for line in tables["teachers"][2:]] == [f"| {n:,}" for n in choosing.TEACHERS]
    assert [line.split(" | ")[0] for line in tables["records"][2:]] == [f"| {n:,}" for n in choosing.RECORDS]


def test_one_figure_measured_again_is_near_the_one_that_is_told(choosing: ModuleType) -> None:
    (line,) = (each for each in said(choosing)["methods"] if each.startswith("| 1 |"))
    votes, direct, _ = map(float, re.findall(r"([\d.]+) %", line))
    assert abs(100 * choosing.accuracy(choosing.votes(), repeats=2) - votes) < POINTS
    assert abs(100 * choosing.accuracy(choosing.direct(), repeats=1) - direct) < POINTS


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["methods", "mechanisms", "teachers", "epsilons", "records"])
def test_every_table_measured_again_is_near_the_one_that_is_told(choosing: ModuleType, name: str) -> None:
    table, measured = said(choosing)[name], list(choosing.TABLES[name]())
    assert re.sub(r"[\d.]+ %", "%", "\n".join(table)) == re.sub(r"[\d.]+ %", "%", "\n".join(measured))
    for line, other in zip(table, measured, strict=True):
        for told, came in zip(re.findall(r"([\d.]+) %", line), re.findall(r"([\d.]+) %", other), strict=True):
            assert float(told) < COIN or abs(float(told) - float(came)) < POINTS
