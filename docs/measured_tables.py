"""What ties a measured table to the code that it measured: ``python docs/measured_tables.py [PART ...]``.

``figures/measured.json`` keeps, for each part of a measured page, the hash of the package's source and the figures of
the part's first draws, one of each column. Where the source has changed, a test measures these again: as long as they
are the same, so is the table. Where they are not, run the part's command, put what it says into the page, and run this.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quorate
from quorate.experiments import table4
from quorate.experiments.few_labels.draws import LearningTask, Size
from quorate.experiments.few_labels.experiment import reproduce_few_labels
from quorate.experiments.measurement import Experiment

DOCS = Path(__file__).parent
KEPT = DOCS / "figures" / "measured.json"
#: How far a figure may lie from the one that was kept: one row of Mushroom's test part, for another linear algebra.
SLACK = 7e-4
#: Where more was seen on another processor, from the same source: a vote near a tie falls otherwise.
MORE_SLACK = {"a9a: default recipe": 5e-3}

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One measured part of a page: its page, the command that makes it, and what measures its first draws."""

    page: str
    command: str
    first: Callable[[], Figures]


def few_labels(part: str, **size: Any) -> Callable[[], Figures]:
    """The first draws of a part of :func:`reproduce_few_labels`."""
    return lambda: figures(reproduce_few_labels(parts=[part], repeats=1, size=Size(**size)))


def one_split(data: str, *methods: str) -> Callable[[], Figures]:
    """The first split of some lines of Table 4, at ε = 1."""
    return lambda: figures(table4.reproduce_table4((data,), repeats=1, epsilons=(1.0,), methods=methods))


def figures(experiment: Experiment) -> Figures:
    """Mean accuracy, or how many rows or labels were needed, of each column or line, by its name."""
    found = {}
    for row in experiment.rows:
        needed = row.more.get("labels_needed", row.more.get("rows_needed"))
        value = row.accuracy_mean if needed is None else needed
        if value is not None:
            found[f"{row.data}: {row.method}"] = value
    return found


def peers() -> Figures:
    """Quorate's methods on the first split of the table that it comes with, as the page of peers has them."""
    sys.path.append(str(DOCS.parent))
    from benchmarks.peers import first_figures

    return first_figures()


# Lines that are not here, the best recipe and two on a9a, take long, and are not measured again, as the page says.
QUICK = (
    table4.PSQ, table4.DEFAULT, table4.PUBLIC, table4.ADD_OR_REMOVE, table4.DIRECT, table4.PLAIN, table4.MAJORITY
)  # fmt: skip
FEW = "quorate reproduce few-labels"
FEWER: Mapping[str, Any] = {"bits": (8,), "samples": 2, "unlabelled": (1_000, 5_000), "sanitized_rows": 5_000}
PARTS: Mapping[str, Part] = {
    "rectangle": Part(
        page="learners.md",
        command=FEW,
        first=few_labels("rectangle", rectangle_labels=(300,), rectangle_draws=1, direct_draws=1),
    ),
    "bounds": Part(page="learners.md", command=FEW, first=few_labels("bounds")),
    "adult": Part(page="learners.md", command=FEW, first=few_labels("adult")),
    "domain": Part(page="learners.md", command=FEW, first=few_labels("domain", **FEWER)),
    "vc": Part(page="learners.md", command=FEW, first=few_labels("vc", **FEWER)),
    "epsilon": Part(
        page="learners.md",
        command=FEW,
        first=few_labels("epsilon", tasks=(LearningTask(label_noise=0.4, excess=0.05, epsilons=(1.0,)),)),
    ),
    "table4-mushroom": Part(
        page="experiments.md",
        command="quorate reproduce table4 --repeats 30 --data mushroom",
        first=one_split("mushroom", table4.ASQ, table4.RANDOM, *QUICK),
    ),
    "table4-a9a": Part(
        page="experiments.md",
        command="quorate reproduce table4 --repeats 30 --data a9a",
        first=one_split("a9a", *QUICK),
    ),
    "peers": Part(page="peers.md", command="python -m benchmarks peers --again", first=peers),
}


def code() -> str:
    """The hash of the package's source."""
    source, found = Path(quorate.__file__).parent, hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        found.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def kept() -> dict[str, dict[str, Any]]:
    """What the file holds, by part."""
    read: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return read


def moved(then: Figures, now: Figures) -> dict[str, tuple[float | None, float | None]]:
    """The figures that are no longer what was kept, each beside what it is now."""
    names = {*then, *now}
    both = then.keys() & now.keys()
    same = {name for name in both if abs(then[name] - now[name]) <= MORE_SLACK.get(name, SLACK)}
    return {name: (then.get(name), now.get(name)) for name in names - same}


def main(wanted: list[str]) -> None:
    """Measure the first draws of the parts that are named, or of all, and keep them with the hash of today's code."""
    held = kept()
    for name in wanted or PARTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # seeded fits of public data
            now = PARTS[name].first()
        for figure, (then, came) in sorted(moved(held.get(name, {}).get("first", {}), now).items()):
            print(f"{name}: {figure}: {then} → {came}")
        held[name] = {"page": PARTS[name].page, "command": PARTS[name].command, "code": code(), "first": now}
    KEPT.write_text(json.dumps(held, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
