"""The page from the papers to quorate: every name in its second column is there, and every statement is on it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from quorate import theory
from quorate.cli.group import COMMANDS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "papers.md"
ROW = re.compile(r"^\| ([^|]+?) \| (`[^|]*`)? ?\| ((?:[^|]|(?<=\\)\|)*)\|$", re.M)
# Numbers and tables, and what is no statement: of the room's names these are not on the page.
NOT_A_STATEMENT = {"relative_entropy", "MisclassificationShape", "Table1Rate"}


def names(text: str) -> list[str]:
    return [name for _, code, _ in ROW.findall(text) for name in re.findall(r"`([^`]+)`", code)]


def found(name: str) -> object:
    """What a dotted name is: the longest part of it that is a module, and attributes of that."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


NAMES = sorted(set(names(PAGE.read_text(encoding="utf-8"))))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_code_column_imports_or_is_a_command(name: str) -> None:
    if name.startswith("quorate "):
        assert name.removeprefix("quorate ") in COMMANDS
    else:
        assert name.startswith("quorate.")
        assert callable(found(name))


def test_every_line_of_the_tables_is_read() -> None:
    text = PAGE.read_text(encoding="utf-8")
    body = text[text.index("## BTT18") :]
    lines = [line for line in body.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if re.match(r"\| (---|in the paper)", line)]
    assert len(ROW.findall(body)) == len(lines) - len(heads) > 60
    assert len(NAMES) > 100


def test_every_statement_is_on_the_page() -> None:
    assert {f"quorate.theory.{name}" for name in set(theory.__all__) - NOT_A_STATEMENT} <= set(NAMES)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "own",
    ["PATE-PSQ", "PATE-ASQ", "A_{OQR}", "A_{subSamp}", "A_{binClas}", "A_{priv}", "A_{stab}", "A_{Relabel}",
     "A_{Agnostic}", "GenericLearner", "LabelBoost", "LabelBoostProcedure", "SubSampling", "Table 1", "Tables 3 and 4"],
)  # fmt: skip
def test_the_papers_own_names_are_on_the_page(own: str) -> None:
    assert own in "".join(row for row, _, _ in ROW.findall(PAGE.read_text(encoding="utf-8")))


def test_a_name_that_is_not_there_is_caught() -> None:
    assert names("| Theorem 9 | `quorate.theory.btt18_theorem_9`, `quorate fly` | |\n") == [
        "quorate.theory.btt18_theorem_9", "quorate fly",
    ]  # fmt: skip
    with pytest.raises(AttributeError):
        found("quorate.theory.btt18_theorem_9")


def test_the_page_is_linked_from_the_readme() -> None:
    assert "(docs/papers.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
