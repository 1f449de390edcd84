"""The table of the fault matrix: what a full run counted, a line a fault, in docs/ledger-faults.md.

``pytest -m faults`` runs the full form, which takes some minutes, and writes all lines once the last row has ended: the
table on the page is of one run.
"""

import platform
import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "ledger-faults.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
ALL = (BEGIN, END)
FAILOVER = ("<!-- figures of the drill -->\n", END)
HEADER = (
    "| fault | cases | what was counted | violations | its broken twin | caught |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)


@dataclass(frozen=True)
class Line:
    """What one row of the matrix found."""

    fault: str
    cases: int
    counted: str  # what happened meanwhile, in figures
    violations: int
    twin: str  # what its broken twin does
    caught: int  # how many violations the same check finds in the twin

    def __str__(self):
        return (
            f"| {self.fault} | {self.cases:,} | {self.counted} | {self.violations} | {self.twin} | {self.caught:,} |\n"
        )


def lines(marks=ALL):
    """The lines that stand on the page between marks, by fault."""
    figures = PAGE.read_text(encoding="utf-8").partition(marks[0])[2].partition(marks[1])[0].partition(HEADER)[2]
    return {line.split(" | ")[0].removeprefix("| "): line for line in figures.splitlines(keepends=True)}


def write(rows, page=PAGE, marks=ALL):
    """Put the lines of one run in the place of those that stand there."""
    text = page.read_text(encoding="utf-8")
    begin = text.index(marks[0]) + len(marks[0])
    end = text.index(marks[1], begin)
    on = f"{datetime.now(UTC):%Y-%m-%d}, Linux {platform.release()}, SQLite {sqlite3.sqlite_version}"
    figures = f"All rows are of one run: {on}.\n\n{HEADER}" + "".join(map(str, rows))
    page.write_text(text[:begin] + figures + text[end:], encoding="utf-8")


def figures_of(line):
    """Cases, violations and what was caught of the twin, as a line of the page tells them."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    whole = [int(re.sub(r"\D", "", cells[place])) for place in (1, 3, 5)]
    return whole[0], whole[1], whole[2]
