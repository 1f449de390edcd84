"""The room's table leads from every item of the papers to the code that says it is that item."""

import ast
import re
from pathlib import Path

import pytest

from quorate import learners

ROOM = Path(learners.__file__).parent
ROW = re.compile(
    r"^(?P<paper>[A-Z]+\d\d), (?P<kind>\w+) (?P<number>[\w.]+)\b.*?  +(?P<file>[\w/]+\.py): (?P<name>\w+)$", re.M
)
ROWS = list(ROW.finditer(learners.__doc__ or ""))
# In the prose of the code: "Algorithm 2", "Algorithms 1 and 2", "Lemmas 4.1, 4.6 and 4.12".
ITEM = re.compile(r"(Algorithm|Corollary|Theorem|Lemma|Claim|Definition)s? ((?:[A-B\d][\d.]*\d?(?:, | and )?)+)")


def items(text: str) -> set[tuple[str, str]]:
    """What a text names of a paper, as (kind, number)."""
    return {
        (found[1], number.rstrip("."))
        for found in ITEM.finditer(" ".join(text.split()))
        for number in re.findall(r"[AB\d][\d.]*", found[2])
    }


def definition(tree: ast.Module, name: str) -> ast.AST | None:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return next((node for node in tree.body if isinstance(node, kinds) and node.name == name), None)


def test_the_table_has_a_row_for_each_line():
    lines = [line for line in (learners.__doc__ or "").splitlines() if re.match(r"[A-Z]+\d\d, ", line)]
    assert len(ROWS) == len(lines) >= 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['paper']} {row['kind']} {row['number']}")
def test_an_item_is_found_where_the_table_says(row):
    text = (ROOM / row["file"]).read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = definition(tree, row["name"])
    assert found is not None
    said = f"{ast.get_docstring(tree)} {ast.get_source_segment(text, found)}"
    assert (row["kind"], row["number"]) in items(said)
    assert row["paper"] in said


def test_every_item_that_a_learner_names_first_is_in_the_table():
    """The first line of a docstring says what a function is of a paper; the table must know it."""
    known = {(row["kind"], row["number"]) for row in ROWS}
    for path in ROOM.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in [tree, *(each for each in tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef)))]:
            first = (ast.get_docstring(node) or "").split("\n\n")[0]
            if path.name != "__init__.py":
                assert items(first) <= known, (path, first)


def test_these_checks_can_fail():
    assert items("by Lemmas 4.1, 4.6 and 4.12, and Theorem B.5.") == {
        ("Lemma", "4.1"), ("Lemma", "4.6"), ("Lemma", "4.12"), ("Theorem", "B.5"),
    }  # fmt: skip
    assert definition(ast.parse("def one(): ..."), "two") is None
