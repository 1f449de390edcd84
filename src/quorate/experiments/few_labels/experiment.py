"""BNS15 and LWY25: how many labels and rows private learners need, by theorem and by measurement; tables and pictures.

The tables are made from the rows: as text, and as Markdown for the page that shows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from quorate.arguments import count, one_of
from quorate.experiments.few_labels import adult, fits, labels, theorems
from quorate.experiments.few_labels.draws import Size
from quorate.experiments.measurement import Experiment, Measured
from quorate.report import Axis, Chart
from quorate.types import Watch

Row: TypeAlias = Mapping[str, Any]
TextTable: TypeAlias = list[list[str]]


def domain_table(rows: Sequence[Row]) -> TextTable:
    """Labels against the size of the domain."""
    table = [["points", f"{labels.GENERIC}: labels", "by theorem", "unlabelled rows", "least tried"]]
    table[0] += ["error", "error, spread rows"]
    table[0] += [f"{labels.EVERY_CUT}: labels", "by theorem", "error"]
    for bits in _distinct(row["log2_domain"] for row in rows if labels.CLUSTERED in row["data"]):
        row_of = {
            (row["method"], labels.SPREAD in row["data"]): row
            for row in rows
            if row.get("log2_domain") == bits and row["data"].startswith("thresholds, ")
        }
        generic, spread = row_of[labels.GENERIC, False], row_of[labels.GENERIC, True]
        every = row_of[labels.EVERY_CUT, False]
        table.append([f"2^{bits:.0f}", _whole(generic["labels_needed"]), _whole(generic["labels_of_theorem"])])
        table[-1] += [_whole(generic["unlabelled_rows"]), _whole(generic["unlabelled_needed"])]
        table[-1] += [_error(generic), _error(spread)]
        table[-1] += [_whole(every["labels_needed"]), _whole(every["labels_of_theorem"]), _error(every)]
    return table


def vc_table(rows: Sequence[Row]) -> TextTable:
    """Labels against the VC dimension."""
    table = [["class", "VC(C)", "learner", "labels", "by theorem", "unlabelled rows"]]
    for row in rows:
        if (
            "vc_dimension" in row
            and row.get("log2_domain") is None
            and row["method"] in {labels.WHOLE_CLASS, labels.SANITIZED, labels.GENERIC}
        ):
            table.append([row["data"], f"{row['vc_dimension']:.0f}", row["method"], _whole(row["labels_needed"])])
            table[-1] += [_whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])]
    return table


def epsilon_table(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε."""
    return _against_epsilon(
        rows, theorems.SUBSAMPLED, (theorems.BASE_ON_SUBSAMPLE, theorems.DIRECT, theorems.REALIZABLE), easiest=True
    )


def weak_table(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε where labels say less."""
    return _against_epsilon(rows, theorems.BASE_ON_SUBSAMPLE, (theorems.DIRECT, theorems.REALIZABLE), easiest=False)


def _against_epsilon(rows: Sequence[Row], beside: str, others: tuple[str, ...], *, easiest: bool) -> TextTable:
    table = [["ε", theorems.TRANSFORMED, beside, "extra rows, ratio", *others]]
    for budget, row_of in _measured(rows, easiest=easiest):
        needed = {name: _whole(row_of[name]["rows_needed"]) for name in (theorems.TRANSFORMED, beside, *others)}
        mine, other = (row_of[name]["extra_rows"] for name in (theorems.TRANSFORMED, beside))
        table.append([f"{budget:g}", needed[theorems.TRANSFORMED], needed[beside]])
        table[-1] += [f"{other / mine:.1f}" if mine and other else "–", *(needed[name] for name in others)]
    return table


def theorems_table(rows: Sequence[Row]) -> TextTable:
    """Rows of both theorems, by α."""
    table = [["α"]]
    table[0] += [f"{name}: ε = {budget:g}" for name in (theorems.TRANSFORMED, "subsample") for budget in (1, 0.1)]
    table[0] += ["extra rows × at ε = 0.1", "× of the subsample", "extra rows, ratio at 0.1"]
    block = [row for row in rows if row["data"] == theorems.BY_THEOREM]
    for alpha in _distinct(row["alpha"] for row in block):
        row_of = {(row["method"], row["epsilon"]): row for row in block if row["alpha"] == alpha}
        cells = [row_of[name, budget] for name in (theorems.TRANSFORMED, theorems.SUBSAMPLED) for budget in (1.0, 0.1)]
        extra = [row["extra_rows_of_theorem"] for row in cells]
        table.append([f"{alpha:g}", *(_whole(row["rows_of_theorem"]) for row in cells)])
        table[-1] += [f"{extra[1] / extra[0]:.1f}", f"{extra[3] / extra[2]:.1f}", f"{extra[3] / extra[1]:.1f}"]
    return table


def constants_table(rows: Sequence[Row]) -> TextTable:
    """LabelBoost's rows with the printed constants and with the tight ones."""
    table = [["base learner's rows", "printed: labelled", "unlabelled", "tight: labelled", "unlabelled"]]
    table[0] += ["tight ÷ printed: labelled", "unlabelled"]
    block = [row for row in rows if row["data"] == theorems.BOOST]
    for base in _distinct(row["base_rows"] for row in block):
        printed, tight = (row for row in block if row["base_rows"] == base)
        names = ("labels_of_theorem", "unlabelled_rows")
        table.append([_whole(base), *(_whole(row[name]) for row in (printed, tight) for name in names)])
        table[-1] += [_share(tight[name] / printed[name]) for name in names]
    return table


def bounds_table(rows: Sequence[Row]) -> TextTable:
    """Measured errors beside α."""
    table = [["learner", "labelled", "unlabelled", "α", "mean error", "largest", "draws above α"]]
    for row in rows:
        if row["data"] == theorems.BOUNDS:
            table.append([row["method"], _whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])])
            table[-1] += [f"{row['alpha']:g}", f"{row['error_mean']:.4f}", f"{row['error_max']:.4f}"]
            table[-1] += [f"{round(row['share_above_alpha'] * row['repeats'])} of {row['repeats']}"]
    return table


def adult_table(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows."""
    table = [
        ["question", f"{adult.PRIVATE}, ε = 1", "same labels, no privacy", "all labels, no privacy", "larger class"]
    ]
    block = [row for row in rows if row["data"].startswith("Adult: ")]
    for data in dict.fromkeys(row["data"] for row in block):
        row_of = {row["method"]: row for row in block if row["data"] == data}
        names = (adult.PRIVATE, adult.SAME_LABELS, adult.ALL_LABELS, adult.MAJORITY)
        table.append([data.removeprefix("Adult: "), *(_with_spread(row_of[name]) for name in names)])
    return table


def pays_table(rows: Sequence[Row]) -> TextTable:
    """Labels of each construction and of its base learner alone, in every cell."""
    table = [["construction", "ε", "α", "labels it asks for", "rows in all", "base alone: labels", "asks for fewer"]]
    table[0] += ["error", "base's, as many labels", "where it pays"]
    block = [row for row in rows if row["data"] == fits.PAYS]
    for name in dict.fromkeys(row["method"].partition(", base ε")[0] for row in block):
        for row in block:
            if row["method"].partition(", base ε")[0] != name:
                continue
            table.append([row["method"], f"{row['epsilon']:g}", f"{row['alpha']:g}", _whole(row["labels_of_theorem"])])
            table[-1] += [_whole(row["rows_of_theorem"]), _whole(row["labels_of_base_alone"])]
            table[-1].append("yes" if row["pays"] else "no")
            means = (row["error_mean"], row["error_of_base_mean"])
            table[-1] += ["–" if mean is None else f"{mean:.4f}" for mean in means]
            table[-1].append(row["case"])
    return table


def rectangle_table(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows, by the number of labels."""
    table = [
        [
            "labels",
            *(names := (adult.RULED, adult.RULED_CUTS, adult.SANITIZED, adult.LISTED, adult.DIRECT, adult.MAJORITY)),
        ]
    ]
    block = [row for row in rows if row["data"] == adult.DATA]
    for n_labels in _distinct(row["labels"] for row in block):
        row_of = {row["method"]: row for row in block if row["labels"] == n_labels}
        table.append([f"{n_labels:,.0f}", *(_with_spread(row_of[name]) for name in names)])
    return table


def fits_table(rows: Sequence[Row]) -> TextTable:
    """CPU seconds of a fit of every class by every learner, or what the refusal names."""
    block = [row for row in rows if row["data"].startswith(fits.FITS)]
    names = _distinct(row["method"] for row in block)
    table = [["class", *names]]
    for data in _distinct(row["data"] for row in block):
        row_of = {row["method"]: row for row in block if row["data"] == data}
        table.append([data.partition(": ")[2]])
        table[-1] += [
            f"{row_of[n]['cpu_seconds']:.1f} s" if row_of[n]["instead"] is None else row_of[n]["instead"] for n in names
        ]
    return table


TABLES: Mapping[str, tuple[str, Callable[[Sequence[Row]], TextTable]]] = {
    "domain": ("Labels for an error of .05, against the number of points (ε = 1)", domain_table),
    "vc": ("Labels for an error of .05, against the VC dimension (ε = 1)", vc_table),
    "epsilon": ("Rows for an excess error of .002, where .49 of the labels are wrong", epsilon_table),
    "weak": ("The same where labels say less: .4975 of them wrong, excess error .0005", weak_table),
    "theorems": ("Rows that the theorems ask for, where labels are wrong", theorems_table),
    "constants": ("LabelBoost: printed constants and tight ones (α = β = .1, ε = 1)", constants_table),
    "bounds": ("Errors at the number of rows that each theorem asks for", bounds_table),
    "adult": ("Adult: errors on test rows", adult_table),
    "rectangle": ("Adult: a rectangle on two columns, errors on test rows (ε = 1)", rectangle_table),
    "pays": (
        "Labels by theorem, thresholds over 2^32 points, and errors where a construction asks for fewer",
        pays_table,
    ),
    "fits": ("Every class with every learner at n = 20,000, 2,000 of them labelled where few are (ε = 1)", fits_table),
}


def as_text(rows: Sequence[Row]) -> str:
    """Lay every table out for a terminal."""
    parts = []
    for title, make in TABLES.values():
        table = make(rows)
        if len(table) == 1:
            continue
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        lines = ["  ".join(map(_aligned, line, widths, range(len(line)))) for line in table]
        parts.append("\n".join([title, *(f"  {line}".rstrip() for line in lines)]) + "\n")
    return "\n".join(parts)


def as_markdown(rows: Sequence[Row], name: str) -> str:
    """Return one table for a page."""
    table = TABLES[name][1](rows)
    lines = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _aligned(cell: str, width: int, column: int) -> str:
    return f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"


def easier(rows: Sequence[Row]) -> list[Row]:
    """Return the measured rows against ε of the task with the larger excess error."""
    block = [row for row in rows if row.get("excess_wanted") is not None]
    largest = max((row["excess_wanted"] for row in block), default=0.0)
    return [row for row in block if row["excess_wanted"] == largest]


def _measured(rows: Sequence[Row], *, easiest: bool) -> list[tuple[float, dict[str, Row]]]:
    first = easier(rows)
    block = first if easiest else [row for row in rows if row.get("excess_wanted") is not None and row not in first]
    budgets = _distinct(row["epsilon"] for row in block)
    return [(budget, {row["method"]: row for row in block if row["epsilon"] == budget}) for budget in budgets]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _error(row: Row) -> str:
    return f"{row['error_mean']:.4f}"


def _with_spread(row: Row) -> str:
    return _error(row) + (f" ± {row['accuracy_se']:.4f}" if row["accuracy_se"] is not None else "")


def _share(value: float) -> str:
    return "0" if not value else f"1/{1 / value:,.0f}"


def labels_against_domain_chart(rows: Sequence[Row]) -> Chart:
    """Two flat lines and two rising ones."""
    block = [row for row in rows if labels.CLUSTERED in row["data"]]
    bits = sorted({row["log2_domain"] for row in block})
    top = max(row["labels_of_theorem"] for row in block)
    chart = Chart(
        "Labels for an error of 0.05 at ε = 1, thresholds",
        Axis("log₂ of the number of points |X|", bits[0] - 2, bits[-1] + 2, ticks=tuple(bits)),
        Axis("labels", 0, 200 * (top // 200 + 1)),
        "The lines of GenericLearner stay flat from 2^8 to 2^32 points, those of NoisyThreshold rise in proportion to "
        "the logarithm of the number of points; the theorems' lines lie above the measured ones.",
        "top left",
    )
    lines = (
        (labels.GENERIC, "GenericLearner, measured", "labels_needed"),
        (labels.EVERY_CUT, "NoisyThreshold, measured", "labels_needed"),
        (labels.GENERIC, "GenericLearner, theorem", "labels_of_theorem"),
        (labels.EVERY_CUT, "NoisyThreshold, theorem", "labels_of_theorem"),
    )
    return _drawn(chart, block, "log2_domain", lines)


def labels_against_vc_chart(rows: Sequence[Row]) -> Chart:
    """Measured and proven labels by VC dimension."""
    block = [row for row in rows if row.get("log2_domain") is None and row.get("vc_dimension") is not None]
    largest = max(row["vc_dimension"] for row in block)
    values = [row[name] for row in block for name in ("labels_needed", "labels_of_theorem") if row[name]]
    chart = Chart(
        "Labels for an error of 0.05 at ε = 1, by VC dimension",
        Axis("VC dimension", 0.5, largest + 0.5, ticks=tuple(float(k) for k in range(1, int(largest) + 1))),
        Axis("labels (log scale)", 5, 10 ** (len(f"{max(values):.0f}") + 1), log=True),
        "All lines rise with the VC dimension; the theorems' lie several times above the measured ones.",
        "top left",
    )
    lines = (
        (labels.WHOLE_CLASS, "ExponentialLearner, measured", "labels_needed"),
        (labels.SANITIZED, "GenericLearner with MWEM, measured", "labels_needed"),
        (labels.GENERIC, "GenericLearner with Tree, 2¹⁶ points, measured", "labels_needed"),
        (labels.WHOLE_CLASS, "ExponentialLearner, theorem", "labels_of_theorem"),
        (labels.GENERIC, "GenericLearner with Tree, theorem", "labels_of_theorem"),
    )
    return _drawn(chart, block, "vc_dimension", lines, styles=(0, 1, 2, 3, 6))


def rows_against_epsilon_chart(rows: Sequence[Row]) -> Chart:
    """Extra rows of both transformations, measured and proven."""
    block = [{**row, "inverse": 1 / row["epsilon"]} for row in easier(rows)]
    values = [row[name] for row in block for name in ("extra_rows", "extra_rows_of_theorem") if (row[name] or 0) > 0]
    inverse = sorted({row["inverse"] for row in block})
    chart = Chart(
        "Extra rows for labels that may be wrong, thresholds over 2¹⁶ points",
        Axis("1/ε (log scale)", 0.9 * inverse[0], 1.1 * inverse[-1], log=True, ticks=tuple(inverse)),
        Axis(
            "extra rows (log scale)", 10 ** (len(f"{min(values):.0f}") - 1), 10 ** len(f"{max(values):.0f}"), log=True
        ),
        "Lines rising with 1/ε. Those of the relabelled subsample rise more steeply, and lie above those of "
        "AgnosticLearner for every small ε.",
        "bottom right",
    )
    lines = (
        (theorems.TRANSFORMED, "AgnosticLearner, measured", "extra_rows"),
        (theorems.SUBSAMPLED, "relabelled subsample, measured", "extra_rows"),
        (theorems.TRANSFORMED, "AgnosticLearner, theorem at α = 0.01", "extra_rows_of_theorem"),
        (theorems.SUBSAMPLED, "relabelled subsample, theorem at α = 0.01", "extra_rows_of_theorem"),
    )
    return _drawn(chart, block, "inverse", lines)


def _drawn(
    chart: Chart,
    rows: Sequence[Row],
    x: str,
    lines: Sequence[tuple[str, str, str]],
    *,
    styles: Sequence[int] = range(9),
) -> Chart:
    """Draw lines, each by its method, its name and the field that it shows."""
    for (method, name, y), style in zip(lines, styles, strict=False):
        points = sorted((row[x], row[y]) for row in rows if row["method"] == method and (row[y] or 0) > 0)
        if points:
            chart.line([a for a, _ in points], [b for _, b in points], name, style, marks=None)
    return chart


TITLE = "BNS15, LWY25: private learners with few labels"
NOTES = (
    "every learner is pure ε-DP for one replaced record, with public: how many rows, and which have labels",
    "labels: the least number tried from which on the mean error over the repeats stays at most .05",
    "unlabelled rows, least tried: with 600 labels, from which number on the mean error stays at most .05",
    "a cluster is 256 neighbouring points at a random place, a tenth of them below the cut: the same whatever |X| is",
    "spread: rows anywhere in the domain, a cut anywhere",
    "by VC dimension: four fifths of the rows on one point, the others on VC(C) points with labels of their own",
    "GenericLearner: with Tree as many unlabelled rows as its theorem asks for; with MWEM 20,000: none is proven",
    "extra rows: beyond what the base learner needs at the same ε and error with true labels",
    "where labels are wrong: the first step (each 1.26 times the last) where it and the next reach the wanted excess",
    "which pays: thresholds over 2^32 points in a cluster; the base learner alone has as many labels",
    "which pays: GenericLearner has 60,000, 300,000 and 3,000,000 unlabelled rows at ε = 1, .1, .01: not its theorem's",
    "a rectangle on Adult: the rule sees 1,000 rows without labels; the other two columns were fixed by people",
    "a rectangle on Adult: 30 draws at least; the direct method has 1,000 more rows as its public pool, δ = 1/labels",
    "the rows are made up or public, and the noise is seeded: nothing here carries a guarantee",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FewLabels(Experiment):
    """The experiment, with tables of its own."""

    def text(self) -> str:
        """Return the tables, the notes and the provenance."""
        notes = "".join(f"* {note}\n" for note in self.notes)
        return f"{self.title}\n\n{as_text([row.tree() for row in self.rows])}\n{notes}\n{self.origin}\n"


#: The pictures, by the part that they are of; each is made from rows as plain values.
CHARTS: Mapping[str, Callable[[Sequence[Row]], Chart]] = {
    "domain": labels_against_domain_chart,
    "vc": labels_against_vc_chart,
    "epsilon": rows_against_epsilon_chart,
}
PARTS = ("pays", "rectangle", "fits", "domain", "vc", "epsilon", "constants", "bounds", "adult")


def reproduce_few_labels(
    *,
    repeats: int = 20,
    seed: int = 0,
    parts: Sequence[str] = PARTS,
    size: Size | None = None,
    command: str = "quorate reproduce few-labels",
    watch: Watch | None = None,
) -> FewLabels:
    """Measure labels and rows needed, in `parts` among :data:`PARTS`, each as much as `size` says; all by default.

    Examples
    --------
    >>> print(reproduce_few_labels(parts=["constants"]).text().splitlines()[2])
    LabelBoost: printed constants and tight ones (α = β = .1, ε = 1)
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = {one_of("part", part, PARTS) for part in parts}
    size = size or Size()
    much: dict[str, Any] = {"repeats": repeats, "seed": seed, "watch": watch}
    measures: Mapping[str, Callable[[], list[Measured]]] = {
        "pays": lambda: fits.which_pays(**much),
        "rectangle": lambda: adult.rectangle_beside_direct(size, **much),
        "fits": lambda: fits.every_class_with_every_learner(seed=seed, watch=watch),
        "domain": lambda: labels.labels_against_domain(size, **much),
        "vc": lambda: labels.labels_against_vc(size, **much),
        "epsilon": lambda: theorems.rows_against_epsilon(size, **much) + theorems.rows_of_theorems(),
        "constants": theorems.printed_against_tight,
        "bounds": lambda: theorems.errors_against_bounds(**much),
        "adult": lambda: adult.adult_with_few_labels(size, **much),
    }
    rows = [row for part, measure in measures.items() if part in chosen for row in measure()]
    trees = [row.tree() for row in rows]
    return FewLabels(
        name="few-labels",
        title=TITLE,
        rows=tuple(rows),
        notes=NOTES,
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
        figures={f"few-labels-{name}": make(trees).written() for name, make in CHARTS.items() if name in chosen},
    )
