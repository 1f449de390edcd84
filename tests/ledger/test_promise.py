"""The page of the ledger's promise: each clause names its tests, and they are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_clause_names_tests_that_are_there():
    page = (ROOT / "docs" / "ledger-promise.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|") and "`tests/" in line]
    assert len(rows) == 5, "a row for each clause"
    for row in rows:
        named = NAMED.findall(row)
        assert len(named) == row.count("`tests/") > 1
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}, name
