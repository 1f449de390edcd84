"""Fill in the tables of ``learners.md`` from a run, and draw its figures: ``python docs/learner_tables.py [FOLDER]``.

FOLDER is where ``quorate reproduce few-labels --out FOLDER`` wrote; its rows are kept in ``figures/few-labels.json``.
Without one the kept rows are used again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorate.experiments.few_labels.experiment import CHARTS, as_markdown

DOCS = Path(__file__).parent
PAGE, FIGURES = DOCS / "learners.md", DOCS / "figures"
KEPT = FIGURES / "few-labels.json"
MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def kept_rows() -> list[dict[str, Any]]:
    """The rows of the run that the page shows."""
    rows: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return rows


def refreshed(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page with its tables as these rows have them."""
    return MARK.sub(lambda found: found[1] + as_markdown(rows, found[2]) + found[3], page)


def drawn(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The figures by file name."""
    return {f"few-labels-{name}.svg": make(rows).written() for name, make in CHARTS.items()}


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    if sys.argv[1:]:
        KEPT.write_text((Path(sys.argv[1]) / "few-labels.json").read_text(encoding="utf-8"), encoding="utf-8")
    rows = kept_rows()
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    for name, figure in drawn(rows).items():
        (FIGURES / name).write_text(figure, encoding="utf-8")


if __name__ == "__main__":
    main()
