"""The page of private classifiers side by side: cells → docs/figures/peers.json → docs/peers.md and its picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_tables import TABLES
from benchmarks.peers import CONTESTANTS, ENVIRONMENTS, Cell, Contestant, Data, table
from quorate.report import Axis, Chart

#: cells by table, contestant, setting and ε, then by split.
Figures = dict[str, Any]

BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"
SCORES = {"roc_auc": "ROC-AUC", "balanced_accuracy": "balanced accuracy", "accuracy": "accuracy"}
ALLOWED = {True: 0.005, False: 0.01}  # how far behind the first, by whether the pool is read

VOTES_BEHIND = {True: 0.02, False: 0.05}  # how far votes may be behind the direct method, by whether classes are two


#: What is published of a fit, in this order.
OF_A_FIT = ("score", "accuracy", "seconds", "megabytes", "code", "day", "failed")


def collect(names: Sequence[str], splits: int = 10, epsilons: Sequence[float] = (0.5, 1.0, 3.0)) -> Figures:
    """Read all cells that are kept: facts of each table, and of each fit score, accuracy, seconds, MB, code and day."""
    figures: Figures = {}
    for name in names:
        cells: dict[str, Any] = {}
        for contestant in CONTESTANTS:
            for setting in range(len(contestant.settings)):
                for epsilon in epsilons:
                    for split in range(splits):
                        cell = Cell(table=name, contestant=contestant, setting=setting, epsilon=epsilon, split=split)
                        if (held := cell.read()) is not None:
                            of_fit = [round(held[key], 4) for key in OF_A_FIT[:4]] + [held[key] for key in OF_A_FIT[4:]]
                            cells.setdefault(f"{contestant.name}, {setting}, {epsilon:g}", {})[str(split)] = of_fit
        if cells:
            figures[name] = {"facts": facts(table(name)), "cells": cells}
    return figures


def keep_published(docs: Path) -> None:
    """Keep the cells of docs/figures/peers.json beside those that were measured here, which stay as they are."""
    contestants = {contestant.name: contestant for contestant in CONTESTANTS}
    for name, held in json.loads((docs / "figures" / "peers.json").read_text()).items():
        for key, by_split in held["cells"].items():
            contestant, setting, epsilon = key.rsplit(", ", 2)
            for split, of_fit in by_split.items():
                cell = Cell(
                    table=name, contestant=contestants[contestant], setting=int(setting), epsilon=float(epsilon),
                    split=int(split),
                )  # fmt: skip
                if cell.read() is None:
                    cell.keep(dict(zip(OF_A_FIT, of_fit, strict=True)))


def facts(data: Data) -> dict[str, Any]:
    """What a page says of a table."""
    return {
        "rows": len(data.codes), "columns": len(data.columns), "classes": len(data.shares),
        "rarest": round(min(data.shares), 4), "score": data.scoring,
        "commonest": round(max(data.shares) if data.scoring == "accuracy" else 1 / len(data.shares), 4),
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Line:
    """Scores of one contestant in one setting on one table at one ε, by split."""

    contestant: Contestant
    setting: int
    scores: Mapping[str, float]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.scores.values())))

    @property
    def public(self) -> bool:
        """Whether it reads public rows."""
        return self.contestant.public or "standardised" in self.contestant.settings[self.setting]

    def written(self) -> str:
        return f"{number(self.mean)}{error(list(self.scores.values()))}"


def number(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1).replace("-", "−")


def error(values: Sequence[float]) -> str:
    """Return ± the standard error over splits; nothing for one split."""
    return f" ± {number(float(np.std(values, ddof=1)) / len(values) ** 0.5)}" if len(values) > 1 else ""


def signed(values: Sequence[float]) -> str:
    """Return the mean of differences with its sign, and its standard error."""
    mean = float(np.mean(values))
    return f"{'+' if mean >= 0 else ''}{number(mean)}{error(values)}"


def lines(held: Figures, epsilon: float) -> list[Line]:
    """Return what was measured on one table at one ε."""
    found = []
    for contestant in CONTESTANTS:
        for setting in range(len(contestant.settings)):
            if cells := held["cells"].get(f"{contestant.name}, {setting}, {epsilon:g}"):
                scores = {split: cell[0] for split, cell in cells.items()}
                found.append(Line(contestant=contestant, setting=setting, scores=scores))
    return found


def best(measured: Sequence[Line]) -> Line | None:
    """Return the line of the highest mean of those that have all splits, or one of fewer that beats it on these."""
    if not measured:
        return None
    top = max(measured, key=lambda line: (len(line.scores), line.mean))
    for line in measured:
        if (ahead := difference(line, top)) and np.mean(ahead) > 0:
            top = line
    return top


def peers(measured: Sequence[Line], *, public: bool) -> list[Line]:
    """Return lines of other libraries; without public rows only those that read none."""
    return [line for line in measured if not line.contestant.ours and (public or not line.public)]


def difference(ours: Line, first: Line) -> list[float]:
    """Return our scores less the other's, of the splits that both have."""
    return [score - first.scores[split] for split, score in ours.scores.items() if split in first.scores]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One of quorate's methods beside the first of its peers on one table."""

    ours: Line
    first: Line
    paired: list[float]

    @property
    def mean(self) -> float:
        return float(np.mean(self.paired))

    @property
    def holds(self) -> bool:
        """Whether it is first, or behind by no more than is allowed and two standard errors."""
        spread = float(np.std(self.paired, ddof=1)) / len(self.paired) ** 0.5 if len(self.paired) > 1 else 0.0
        return self.mean >= -(ALLOWED[self.ours.public] + 2 * spread)

    def written(self) -> str:
        return signed(self.paired)

    def both(self) -> tuple[str, str]:
        """The first's mean and ours, of the splits that both have."""
        common = [split for split in self.ours.scores if split in self.first.scores]
        first, ours = (float(np.mean([line.scores[at] for at in common])) for line in (self.first, self.ours))
        return number(first), number(ours)


def verdict(measured: Sequence[Line], name: str) -> Verdict | None:
    ours = next((line for line in measured if line.contestant.name == name), None)
    first = None if ours is None else best(peers(measured, public=ours.public))
    if ours is None or first is None or not (paired := difference(ours, first)):
        return None
    return Verdict(ours=ours, first=first, paired=paired)


def cell_of(measured: Sequence[Line], contestant: Contestant) -> str:
    """Return a contestant's own default, and the best of its grid behind it where that is another setting."""
    own = [line for line in measured if line.contestant is contestant]
    if not own:
        return "–"
    default, tuned = own[0], best(own)
    assert tuned is not None
    written, top = default.written(), best(measured)
    bold = f"**{written}**" if top is default else written
    fewer = f", of {len(default.scores)}" if len(default.scores) < max(len(line.scores) for line in measured) else ""
    if tuned is default or default.setting != 0:
        return bold + fewer
    grid = f"**{number(tuned.mean)}**" if top is tuned else number(tuned.mean)
    return f"{bold} ({grid}){fewer}"


def table_of(figures: Figures, epsilon: float) -> list[str]:
    """Every contestant on every table at one ε."""
    heads = ["table", "score", "splits", *(contestant.name for contestant in CONTESTANTS)]
    rows = [f"| {' | '.join(heads)} |", f"| --- | --- | {' | '.join(['---:'] * (len(heads) - 2))} |"]
    for name, held in figures.items():
        if measured := lines(held, epsilon):
            cells = [cell_of(measured, contestant) for contestant in CONTESTANTS]
            splits = max(len(line.scores) for line in measured)
            rows.append(f"| {name} | {SCORES[held['facts']['score']]} | {splits} | {' | '.join(cells)} |")
    return rows


def differences_of(figures: Figures, epsilon: float) -> list[str]:
    """Each of quorate's methods less the first of its peers, paired by split; and the mean over tables."""
    ours = [contestant for contestant in CONTESTANTS if contestant.ours]
    rows = [f"| table | {' | '.join(contestant.name for contestant in ours)} |", f"| --- |{' ---: |' * len(ours)}"]
    means: dict[str, list[float]] = {}
    for name, held in figures.items():
        measured = lines(held, epsilon)
        cells = []
        for contestant in ours:
            judged = verdict(measured, contestant.name)
            if judged is not None:
                means.setdefault(contestant.name, []).append(judged.mean)
            cells.append("–" if judged is None else judged.written())
        if any(cell != "–" for cell in cells):
            rows.append(f"| {name} | {' | '.join(cells)} |")
    totals = [means.get(contestant.name) for contestant in ours]
    written = [signed(total) if total else "–" for total in totals]
    return [*rows, f"| **mean over tables** | {' | '.join(written)} |"]


def sentences(figures: Figures, epsilon: float, name: str, reasons: Mapping[str, str]) -> list[str]:
    """One sentence for each table where a peer is before one of quorate's methods."""
    said = []
    for table_name, held in figures.items():
        judged = verdict(lines(held, epsilon), name)
        if judged is None or judged.mean >= 0:
            continue
        first, ours = judged.both()
        how = "by default" if judged.first.setting == 0 else "in the best setting of its grid"
        limit = "within the limit" if judged.holds else "**beyond the limit**"
        if len(judged.paired) == 1:
            limit += ", of one split, whose error is not known"
        reason = " " + reasons.get(table_name, "" if judged.holds else "Why is not known yet.")
        said.append(
            f"- {table_name}: {judged.first.contestant.name} {how} is first, {first} for {ours} "
            f"({judged.written()}, {limit}).{reason}".rstrip()
        )
    return said


def votes_below(figures: Figures, epsilon: float) -> list[str]:
    """One sentence for each table where votes are further behind the direct method than they should be."""
    said = []
    for name, held in figures.items():
        measured = {line.contestant.name: line for line in lines(held, epsilon) if line.setting == 0}
        if "votes" in measured and "direct" in measured:
            paired = difference(measured["votes"], measured["direct"])
            aim = VOTES_BEHIND[held["facts"]["classes"] == 2]
            if paired and np.mean(paired) < -aim:
                said.append(
                    f"- {name}: votes {measured['votes'].written()}, the direct method {measured['direct'].written()} "
                    f"({signed(paired)}; the aim is {number(aim)})."
                )
    return said


def costs_of(figures: Figures, epsilon: float) -> list[str]:
    """Median CPU seconds and the most memory of each contestant's fits by default."""
    rows = ["| | CPU of a fit, median | at most | memory of its process, median |", "| --- | ---: | ---: | ---: |"]
    for contestant in CONTESTANTS:
        key = f"{contestant.name}, 0, {epsilon:g}"
        cells = [cell for held in figures.values() for cell in held["cells"].get(key, {}).values()]
        if cells:
            seconds, memory = ([cell[at] for cell in cells] for at in (2, 3))
            rows.append(
                f"| {contestant.name} | {np.median(seconds):.1f} s | {max(seconds):.1f} s "
                f"| {np.median(memory):.0f} MB |"
            )
    return rows


def picture(figures: Figures, epsilon: float) -> str:
    """Score of each of quorate's methods less that of the first peer, table by table."""
    ours = [contestant.name for contestant in CONTESTANTS if contestant.ours]
    judged = {name: [verdict(lines(held, epsilon), who) for who in ours] for name, held in figures.items()}
    values = [one.mean for row in judged.values() for one in row if one is not None]
    low, high = min(-0.1, *values) - 0.02, max(0.1, *values) + 0.02
    chart = Chart(
        f"Score less that of the best other library, ε = {epsilon:g}",
        Axis("table, numbered as on the page", 0.5, len(judged) + 0.5, ticks=tuple(range(1, len(judged) + 1))),
        Axis("difference in score", low, (high - 0.34 * low) / 0.66),  # the legend is above all
        f"Of {len(judged)} tables, how far each of quorate's methods is before (above 0) or behind the first peer.",
        legend="top left",
    )
    chart.rule(y=0.0)
    for style, who in enumerate(ours):
        points = [(at, row[style].mean) for at, row in enumerate(judged.values(), 1) if row[style] is not None]
        chart.points([x for x, _ in points], [y for _, y in points], who, style)
    return chart.written()


def tables_of(figures: Figures) -> list[str]:
    """What each table is."""
    rows = [
        "| | table | rows | columns | classes | the rarest has | score | of always the commonest class |",
        "| ---: | --- | ---: | ---: | ---: | ---: | --- | ---: |",
    ]
    for at, (name, held) in enumerate(figures.items(), 1):
        about = held["facts"]
        rows.append(
            f"| {at} | {name} | {about['rows']:,} | {about['columns']} | {about['classes']} "
            f"| {100 * about['rarest']:.1f} % | {SCORES[about['score']]} | {number(about['commonest'])} |"
        )
    return rows


def codes_of(figures: Figures) -> dict[str, int]:
    """The hashes of quorate's source that cells were measured by, and how many cells each has."""
    codes: dict[str, int] = {}
    for held in figures.values():
        for cells in held["cells"].values():
            for cell in cells.values():
                if cell[4] is not None:
                    codes[cell[4]] = codes.get(cell[4], 0) + 1
    return codes


def whole(figures: Figures, splits: int = 10, epsilons: int = 3) -> str:
    """Return how many fits of these tables there are yet, of how many, and what all would take, in one sentence."""
    have = planned = 0
    hours = 0.0
    for contestant in CONTESTANTS:
        seconds = []
        tables = 0
        for held in figures.values():
            tables += contestant.takes(held["facts"]["columns"], held["facts"]["classes"])
            for key, cells in held["cells"].items():
                if key.rsplit(", ", 2)[0] == contestant.name:
                    seconds += [cell[2] for cell in cells.values()]
        fits = tables * len(contestant.settings) * splits * epsilons
        have, planned = have + len(seconds), planned + fits
        hours += fits * float(np.mean(seconds or [0])) / 3_600
    return (
        f"{have:,} of {planned:,} fits ({splits} splits, {epsilons} values of ε, all grids) are measured; at their "
        f"pace all would take about {hours:.0f} hours of one core, beside the start of processes."
    )


def refusals_of(figures: Figures) -> list[str]:
    """Fits that ended in an error, by contestant and what it said."""
    said: dict[str, int] = {}
    for held in figures.values():
        for key, cells in held["cells"].items():
            for cell in cells.values():
                if cell[6] is not None:
                    line = f"{key.partition(', 0')[0]}: {str(cell[6]).splitlines()[0][:150]}"
                    said[line] = said.get(line, 0) + 1
    return [f"- {line} ({count} fits)" for line, count in sorted(said.items())]


def measured_part(figures: Figures, epsilons: Sequence[float], reasons: Mapping[str, str]) -> str:
    """Everything between the marks of the page."""
    days = sorted({cell[5] for held in figures.values() for cells in held["cells"].values() for cell in cells.values()})
    codes = ", ".join(f"`{name}` ({count} cells)" for name, count in codes_of(figures).items())
    versions = ", ".join(f"{package}" for name in ENVIRONMENTS for package in ENVIRONMENTS[name] if name != "tables")
    parts = [
        f"Looked at on {', '.join(days)}. Source of quorate: {codes}. Versions: {versions}. {whole(figures)}",
        "", *tables_of(figures),
    ]  # fmt: skip
    for epsilon in epsilons:
        if not any(lines(held, epsilon) for held in figures.values()):
            continue
        parts += ["", f"## ε = {epsilon:g}", "", *table_of(figures, epsilon)]
        parts += ["", f"Less the first of all other libraries' settings, paired by split, at ε = {epsilon:g}:", ""]
        parts += differences_of(figures, epsilon)
        for name, title in (
            ("direct", "with the pool"), ("direct, no public rows", "without public rows, among those that read none"),
        ):  # fmt: skip
            if said := sentences(figures, epsilon, name, reasons):
                parts += ["", f"Where somebody else is before the direct method, {title}:", "", *said]
        if said := votes_below(figures, epsilon):
            parts += [
                "",
                "Where votes are further behind the direct method than they should be, with the pool:",
                "",
                *said,
            ]
    if figures:
        parts += ["", "## Cost", "", *costs_of(figures, 1.0), "", "![Differences](figures/peers.svg)"]
    if refused := refusals_of(figures):
        parts += ["", "Fits that ended in an error, which count as always saying the commonest class:", "", *refused]
    return "\n".join(parts)


#: Why quorate is not first, where that is known.
REASONS: Mapping[str, str] = {
    "head injury": "Ten indicators act one by one on a rare class; what kernels add to linear features is noise here.",
    "default": "One number of three tells nearly all, and linearly; what kernels add to it is noise here.",
    "splice": (
        "Its 60 columns of letters are 240 indicators beside a pool of 319 rows, and coordinates have at most half as "
        "many dimensions as the pool has rows; a drawn pool has more rows, and loses nothing."
    ),
    "optdigits": (
        "Without public rows, four tenths of μ² have to count 62 columns, and to tell which of them go together."
    ),
    "smokers": "Always saying the commonest class has .758: models that are first say little else.",
}


def write_page(folder: Path, names: Sequence[str], epsilons: Sequence[float]) -> None:
    """Gather cells beside those that the folder has already; write figures, picture, and the page between its marks."""
    file = folder / "figures" / "peers.json"
    figures: Figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, held in collect(names).items():
        before = figures.get(name, {"cells": {}})["cells"]
        cells = {key: before.get(key, {}) | held["cells"].get(key, {}) for key in {**before, **held["cells"]}}
        figures[name] = {"facts": held["facts"], "cells": cells}
    theirs = tuple(contestant.name for contestant in CONTESTANTS if not contestant.ours)
    figures = {
        name: figures[name]
        for name in TABLES
        if name in figures and any(key.startswith(theirs) for key in figures[name]["cells"])
    }
    file.write_text(json.dumps(figures, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    (folder / "figures" / "peers.svg").write_text(picture(figures, 1.0), encoding="utf-8")
    page = folder / "peers.md"
    before, after = page.read_text(encoding="utf-8").split(BEGIN)[0], page.read_text(encoding="utf-8").split(END)[1]
    part = measured_part(figures, sorted(epsilons), REASONS)
    page.write_text(f"{before}{BEGIN}\n\n{part}\n\n{END}{after}", encoding="utf-8")
