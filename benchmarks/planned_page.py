"""The page of the planner: its table and its picture, from what benchmarks.planned has stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planned import EPSILONS, STORED, TABLES
from quorate.report.chart import Axis, Chart

PAGE, PICTURE = Path("docs/planner.md"), Path("docs/figures/planner.svg")
FIRST = 3  # rows of a plan that are compared
CHOICES = (
    "What noisy counts of three numbers of teachers lose against the best votes of each split, and the direct method "
    "beside the default number; at ε = 0.5, 1 and 2, means over the splits:"
)
GOALS = {"labels": 0.03, "curve": 0.06, "rules": 0.06}
BEGIN, END = "<!-- table: planned -->\n", "<!-- end: planned -->"


@dataclass(frozen=True)
class Cell:
    """One of a plan's first rows, beside its runs."""

    table: str
    seed: str
    epsilon: float
    place: int
    key: str
    expected: dict[str, Any]
    runs: tuple[float, ...]
    best: float
    outside: bool

    @property
    def error(self) -> float:
        return self.expected["accuracy"] - float(np.mean(self.runs))

    @property
    def held(self) -> float:
        """Share of the single runs that the range holds."""
        return float(np.mean([self.expected["low"] <= run <= self.expected["high"] for run in self.runs]))

    @property
    def width(self) -> float:
        return float(self.expected["high"] - self.expected["low"])

    @property
    def lost(self) -> float:
        """What the row loses against the best of the grid, by the mean of its runs."""
        return self.best - float(np.mean(self.runs))


def cells(kind: str) -> Iterator[Cell]:
    for table, splits in json.loads(STORED.read_text()).items():
        for seed, parts in splits.items():
            for epsilon in EPSILONS:
                told = parts.get(kind, {}).get(f"{epsilon:g}")
                measured = {
                    key.partition(" ")[2]: runs
                    for key, runs in parts.get("measured", {}).items()
                    if key.startswith(f"{epsilon:g} ")
                }
                if not told or not measured:
                    continue
                best = max(float(np.mean(runs)) for runs in measured.values())
                rows = [row for row in told["rows"] if row["key"] in measured][:FIRST]
                for place, row in enumerate(rows):
                    runs = tuple(measured[row["key"]])
                    outside = not TABLES[table].used_for_defaults
                    yield Cell(table, seed, epsilon, place, row["key"], row, runs, best, outside)


def over_splits(found: list[Cell]) -> list[float]:
    """Return the mean difference over the splits of a table, for each ε and place: what is no luck of one split."""
    together: dict[tuple[str, float, int], list[float]] = {}
    for each in found:
        together.setdefault((each.table, each.epsilon, each.place), []).append(each.error)
    return [float(np.mean(errors)) for errors in together.values()]


def near(differences: list[float], goal: float) -> str:
    sizes = np.abs(differences)
    within = f"{np.mean(sizes <= goal):.0%} of {len(sizes)} within {goal:g}"
    return f"{within} (mean {sizes.mean():.3f}, largest {sizes.max():.3f})"


def summary(found: list[Cell], goal: float) -> str:
    firsts = [each.lost for each in found if each.place == 0]
    return (
        f"{near(over_splits(found), goal)} | {near([each.error for each in found], goal)} | "
        f"{np.mean([each.held for each in found]):.0%} | {np.median([each.width for each in found]):.3f} | "
        f"{np.mean(firsts):.3f}, at most {max(firsts):.3f}"
    )


def lines(kind: str) -> Iterator[str]:
    found = list(cells(kind))
    yield (
        "| table | splits | difference of the first three rows, mean over the splits | in one split | "
        "range holds runs | median width | first row loses |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for table in dict.fromkeys(each.table for each in found):
        own = [each for each in found if each.table == table]
        yield f"| {table} | {len({each.seed for each in own})} | {summary(own, GOALS[kind])} |"
    if found:
        yield f"| **all** | | {summary(found, GOALS[kind])} |"


def measured(parts: dict[str, Any], epsilon: float) -> dict[str, float]:
    """Return what each row of the grid had in one split, by its key: the mean of its runs."""
    found = {key.partition(" "): runs for key, runs in parts.get("measured", {}).items()}
    return {key: float(np.mean(runs)) for (budget, _, key), runs in found.items() if budget == f"{epsilon:g}"}


def choice(table: str, epsilon: float) -> tuple[list[float], float]:
    """Return what three numbers of teachers lose against the best votes, and how far the direct method is ahead.

    Noisy counts of half the default number of teachers, of that number and, where there are as many units, of twice it
    are held against the best votes of each split; the direct method against the second. Means over the splits.
    """
    lost: list[list[float]] = []
    ahead = []
    for parts in json.loads(STORED.read_text())[table].values():
        found = measured(parts, epsilon)
        best = max(accuracy for key, accuracy in found.items() if key.startswith("votes/"))
        counts = {int(key.split("/")[2]): of for key, of in found.items() if key.startswith("votes/NoisyCounts/")}
        by_number = [counts[number] for number in sorted(counts)]
        lost.append([best - accuracy for accuracy in by_number])
        ahead.append(found["direct/gradient rounds"] - by_number[1])
    return [float(np.mean(each)) for each in zip(*lost, strict=True)], float(np.mean(ahead))


def choices() -> Iterator[str]:
    yield (
        "| table | half as many teachers | the default number | twice as many | direct method ahead of the default "
        "votes | direct method expected by a curve, less measured, in one split |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for table in json.loads(STORED.read_text()):
        found = [choice(table, epsilon) for epsilon in EPSILONS]
        rows = [[f"{lost[place]:.3f}" if place < len(lost) else "–" for lost, _ in found] for place in range(3)]
        off = [each.error for each in cells("curve") if each.table == table and each.key.startswith("direct/")]
        curve = f"{min(off):+.3f} to {max(off):+.3f}" if off else "–"
        told = [", ".join(row) for row in rows] + [", ".join(f"{ahead:+.3f}" for _, ahead in found), curve]
        yield f"| {table} | {' | '.join(told)} |"


def picture() -> str:
    chart = Chart(
        "Student accuracy: expected by the planner, and measured",
        Axis("expected", 0.3, 1.0),
        Axis("measured, mean of the draws of the noise", 0.3, 1.0),
        "Points near the diagonal: the first three rows of each plan, for each table, split and epsilon.",
        legend="top left",
        prefix="planner-",
    )
    chart.line([0.3, 1.0], [0.3, 1.0], "as expected", 4, marks=0)
    shown = (("labels", "labelled public rows"), ("rules", "rules on the pool"), ("curve", "rules as hard as a curve"))
    for style, (kind, name) in enumerate(shown):
        found = list(cells(kind))
        if found:
            chart.points([e.expected["accuracy"] for e in found], [np.mean(e.runs) for e in found], name, style)
    return chart.written()


def tables() -> str:
    """Return all tables of the page."""
    heads = {
        "labels": "With labelled public rows:",
        "curve": "By rules as hard as a known learning curve, without any label:",
        "rules": "By rules drawn on the pool, without any label or curve:",
    }
    told = "\n".join(line for kind, head in heads.items() for line in (head, "", *lines(kind), ""))
    return "\n".join((told, CHOICES, "", *choices(), ""))


def write() -> None:
    """Write the picture, and the tables into their place in the page."""
    PICTURE.write_text(picture())
    found, page = tables(), PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}")
    print(found)
