"""What an experiment measured: one row for each data set, method and budget, over repeated splits."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from quorate.data.cell_text import csv_text
from quorate.types import FloatArray, Watch

Item = TypeVar("Item")
Rows = TypeVar("Rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One row of a table.

    `data`, `method`: what was learned from, and how.
    `epsilon`, `delta`: the guarantee; None where there is none.
    `n_queries`: answers that were released, the mean over repeats.
    `repeats`: splits, each with noise of its own.
    `accuracy_mean`, `accuracy_se`: mean, and standard error of the mean over repeats (None for a single one).
    `balanced_accuracy_mean`: mean of the recall of each class.
    `paper_accuracy`: what the paper prints for it.
    `more`: other figures of the row, by name.
    """

    data: str
    method: str
    epsilon: float | None
    delta: float | None
    n_queries: float | None = None
    repeats: int = 0
    accuracy_mean: float | None = None
    accuracy_se: float | None = None
    balanced_accuracy_mean: float | None = None
    paper_accuracy: float | None = None
    more: Mapping[str, float | str | None] = field(default_factory=dict)

    def tree(self) -> dict[str, Any]:
        """Plain values: the fields, and those of `more` beside them."""
        values = asdict(self)
        return {**values, **values.pop("more")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One repeat."""

    accuracy: float
    balanced_accuracy: float
    n_queries: int | None = None
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A finished experiment.

    `name`, `title`: what the command calls it, and what it is. `rows`: the table. `notes`: what a reader must know to
    compare. `command`: what makes it again. `seed`: of splits and noise. `seconds`: Wall-clock time. `figures`: SVG by
    name.
    """

    name: str
    title: str
    rows: tuple[Measured, ...]
    notes: tuple[str, ...]
    command: str
    seed: int
    seconds: float
    figures: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> list[Path]:
        """Write ``NAME.json`` (the rows), ``NAME.csv``, ``NAME.txt`` and the figures; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = [row.tree() for row in self.rows]
        contents = {
            f"{self.name}.json": json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
            f"{self.name}.csv": self._csv(rows),
            f"{self.name}.txt": self.text(),
            **{f"{name}.svg": figure for name, figure in self.figures.items()},
        }
        paths = []
        for name, content in contents.items():
            paths.append(folder / name)
            paths[-1].write_text(content, encoding="utf-8")
        return paths

    def text(self) -> str:
        """Return the table as text, with the notes and the provenance under it."""
        return (
            f"{self.title}\n\n{table(self.rows)}\n{''.join(f'* {note}{_NL}' for note in self.notes)}\n{self.origin}\n"
        )

    @property
    def origin(self) -> str:
        """How the figures came about, in one line."""
        versions = ", ".join(f"{name} {version(name)}" for name in ("quorate", "numpy", "scipy", "scikit-learn"))
        return f"{self.command}; seed {self.seed}; {versions}, Python {platform.python_version()}; {self.seconds:.0f} s"

    @staticmethod
    def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
        names = list(dict.fromkeys(name for row in rows for name in row))
        return csv_text(names, ([row.get(name, "") for name in names] for row in rows))


_NL = "\n"


#: The scores of each line of a table: by method and budget, which is None for a reference without privacy.
Cell: TypeAlias = tuple[str, float | None]
Scores: TypeAlias = dict[Cell, list["Scored"]]


def watched(watch: Watch | None, stage: str, items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items; ``watch(stage, done, total)`` is called before each, and at the end."""
    all_items = list(items)
    for done, item in enumerate(all_items):
        if watch:
            watch(stage, done, len(all_items))
        yield item
    if watch:
        watch(stage, len(all_items), len(all_items))


def repeated(
    stage: str,
    repeats: int,
    cells: Sequence[Cell],
    prepare: Callable[[int], Rows],
    score: Callable[[Rows, str, float | None], Scored],
    *,
    watch: Watch | None,
) -> Scores:
    """Score every cell once a repeat: `prepare` makes what all cells of one repeat share."""
    scores: Scores = {cell: [] for cell in cells}
    for repeat in watched(watch, stage, range(repeats)):
        rows = prepare(repeat)
        for method, epsilon in cells:
            scores[method, epsilon].append(score(rows, method, epsilon))
    return scores


def scored(predicted: ArrayLike, truth: ArrayLike, *, n_queries: int | None = None, **more: float) -> Scored:
    """Score predictions: the share that is right, and the mean of that share over classes that occur."""
    guess, labels = np.asarray(predicted), np.asarray(truth)
    recall = [float(np.mean(guess[labels == label] == label)) for label in np.unique(labels)]
    return Scored(
        accuracy=float(np.mean(guess == labels)),
        balanced_accuracy=math.fsum(recall) / len(recall),
        n_queries=n_queries,
        more=more,
    )


def summed(
    repeats: Sequence[Scored],
    *,
    data: str,
    method: str,
    epsilon: float | None,
    delta: float | None,
    paper_accuracy: float | None = None,
) -> Measured:
    """Bring the repeats of one row together."""
    accuracy = np.array([score.accuracy for score in repeats])
    n_queries = [score.n_queries for score in repeats if score.n_queries is not None]
    names = list(dict.fromkeys(name for score in repeats for name in score.more))
    return Measured(
        data=data,
        method=method,
        epsilon=epsilon,
        delta=delta,
        n_queries=float(np.mean(n_queries)) if n_queries else None,
        repeats=len(repeats),
        accuracy_mean=float(accuracy.mean()),
        accuracy_se=standard_error(accuracy),
        balanced_accuracy_mean=float(np.mean([score.balanced_accuracy for score in repeats])),
        paper_accuracy=paper_accuracy,
        more={name: float(np.mean([score.more[name] for score in repeats if name in score.more])) for name in names},
    )


def standard_error(values: FloatArray) -> float | None:
    """Return the standard error of the mean; None for fewer than two values."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def table(rows: Sequence[Measured]) -> str:
    """Lay rows out: a block a data set, a line a method, a column a budget.

    A cell is accuracy ± standard error, balanced accuracy in brackets, and what the paper prints after a bar.
    """
    lines = []
    for data in dict.fromkeys(row.data for row in rows):
        block = [row for row in rows if row.data == data]
        budgets = sorted({row.epsilon for row in block if row.epsilon is not None})
        deltas = {row.delta for row in block if row.delta is not None}
        budget_of = f"{data} (δ = {next(iter(deltas)):.3g}, " if len(deltas) == 1 else f"{data} ("
        repeats = max(row.repeats for row in block)
        head = f"{budget_of}{repeats} repeat{'s' if repeats > 1 else ''})"
        columns = [f"ε = {budget:g}" for budget in budgets]
        if any(row.epsilon is None for row in block):
            columns.append("no privacy" if budgets else "value")
        wide = max(38, *(len(row.method) + 1 for row in block))
        lines.append(f"{head:<{wide + 2}} " + "".join(f"{column:<28}" for column in columns).rstrip())
        for method in dict.fromkeys(row.method for row in block):
            by_budget = {row.epsilon: row for row in block if row.method == method}
            cells = [_cell(by_budget.get(budget)) for budget in [*budgets, None][: len(columns)]]
            n_queries = sorted({round(row.n_queries) for row in by_budget.values() if row.n_queries is not None})
            answers = " to ".join(f"{number:,}" for number in dict.fromkeys(n_queries[:1] + n_queries[-1:]))
            line = f"  {method:<{wide}} " + "".join(f"{cell:<28}" for cell in cells)
            if answers:
                line = f"{line.rstrip()}   {answers} answers" if len(columns) == 1 else f"{line}{answers} answers"
            lines.append(line.rstrip())
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _cell(row: Measured | None) -> str:
    if row is None or row.accuracy_mean is None:
        return "–"
    text = _short(row.accuracy_mean)
    if row.accuracy_se is not None:
        text += f"±{_short(row.accuracy_se)}"
    if row.balanced_accuracy_mean is not None:
        text += f" ({_short(row.balanced_accuracy_mean)})"
    if row.paper_accuracy is not None:
        text += f" | {_short(row.paper_accuracy, 4)}"
    return text


def _short(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".removeprefix("0")
