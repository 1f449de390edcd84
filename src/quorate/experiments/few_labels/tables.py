"""The tables of the few-labels experiment, from its rows: as text, and as Markdown for the page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from quorate.experiments.few_labels.adult import ALL_LABELS, LISTED, MAJORITY, PRIVATE, RULED, RULED_CUTS, SAME_LABELS
from quorate.experiments.few_labels.adult import DATA as RECTANGLE
from quorate.experiments.few_labels.adult import DIRECT as DIRECT_METHOD
from quorate.experiments.few_labels.adult import SANITIZED as SANITIZED_RECTANGLE
from quorate.experiments.few_labels.agnostic import BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE, SUBSAMPLED, TRANSFORMED
from quorate.experiments.few_labels.domain import CLUSTERED, EVERY_CUT, GENERIC, SPREAD, WHOLE_CLASS
from quorate.experiments.few_labels.fits import FITS, PAYS
from quorate.experiments.few_labels.vc import SANITIZED

Row: TypeAlias = Mapping[str, Any]
TextTable: TypeAlias = list[list[str]]

BY_THEOREM = "thresholds over 2^16 points, any labels, by theorem"
BOOST, BOUNDS = "rows of LabelBoost's theorem", "error at the theorem's rows"


def domain(rows: Sequence[Row]) -> TextTable:
    """Labels against the size of the domain."""
    table = [["points", f"{GENERIC}: labels", "by theorem", "unlabelled rows", "least tried"]]
    table[0] += ["error", "error, spread rows"]
    table[0] += [f"{EVERY_CUT}: labels", "by theorem", "error"]
    for bits in _distinct(row["log2_domain"] for row in rows if CLUSTERED in row["data"]):
        row_of = {
            (row["method"], SPREAD in row["data"]): row
            for row in rows
            if row.get("log2_domain") == bits and row["data"].startswith("thresholds, ")
        }
        generic, spread, every = row_of[GENERIC, False], row_of[GENERIC, True], row_of[EVERY_CUT, False]
        table.append([f"2^{bits:.0f}", _whole(generic["labels_needed"]), _whole(generic["labels_of_theorem"])])
        table[-1] += [_whole(generic["unlabelled_rows"]), _whole(generic["unlabelled_needed"])]
        table[-1] += [_error(generic), _error(spread)]
        table[-1] += [_whole(every["labels_needed"]), _whole(every["labels_of_theorem"]), _error(every)]
    return table


def vc(rows: Sequence[Row]) -> TextTable:
    """Labels against the VC dimension."""
    table = [["class", "VC(C)", "learner", "labels", "by theorem", "unlabelled rows"]]
    for row in rows:
        if (
            "vc_dimension" in row
            and row.get("log2_domain") is None
            and row["method"] in {WHOLE_CLASS, SANITIZED, GENERIC}
        ):
            table.append([row["data"], f"{row['vc_dimension']:.0f}", row["method"], _whole(row["labels_needed"])])
            table[-1] += [_whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])]
    return table


def epsilon(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε."""
    return _against_epsilon(rows, SUBSAMPLED, (BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE), easiest=True)


def weak(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε where labels say less."""
    return _against_epsilon(rows, BASE_ON_SUBSAMPLE, (DIRECT, REALIZABLE), easiest=False)


def _against_epsilon(rows: Sequence[Row], beside: str, others: tuple[str, ...], *, easiest: bool) -> TextTable:
    table = [["ε", TRANSFORMED, beside, "extra rows, ratio", *others]]
    for budget, row_of in _measured(rows, easiest=easiest):
        needed = {name: _whole(row_of[name]["rows_needed"]) for name in (TRANSFORMED, beside, *others)}
        mine, other = (row_of[name]["extra_rows"] for name in (TRANSFORMED, beside))
        table.append([f"{budget:g}", needed[TRANSFORMED], needed[beside]])
        table[-1] += [f"{other / mine:.1f}" if mine and other else "–", *(needed[name] for name in others)]
    return table


def theorems(rows: Sequence[Row]) -> TextTable:
    """Rows of both theorems, by α."""
    table = [["α"]]
    table[0] += [f"{name}: ε = {budget:g}" for name in (TRANSFORMED, "subsample") for budget in (1, 0.1)]
    table[0] += ["extra rows × at ε = 0.1", "× of the subsample", "extra rows, ratio at 0.1"]
    block = [row for row in rows if row["data"] == BY_THEOREM]
    for alpha in _distinct(row["alpha"] for row in block):
        row_of = {(row["method"], row["epsilon"]): row for row in block if row["alpha"] == alpha}
        cells = [row_of[name, budget] for name in (TRANSFORMED, SUBSAMPLED) for budget in (1.0, 0.1)]
        extra = [row["extra_rows_of_theorem"] for row in cells]
        table.append([f"{alpha:g}", *(_whole(row["rows_of_theorem"]) for row in cells)])
        table[-1] += [f"{extra[1] / extra[0]:.1f}", f"{extra[3] / extra[2]:.1f}", f"{extra[3] / extra[1]:.1f}"]
    return table


def constants(rows: Sequence[Row]) -> TextTable:
    """LabelBoost's rows with the printed constants and with the tight ones."""
    table = [["base learner's rows", "printed: labelled", "unlabelled", "tight: labelled", "unlabelled"]]
    table[0] += ["tight ÷ printed: labelled", "unlabelled"]
    block = [row for row in rows if row["data"] == BOOST]
    for base in _distinct(row["base_rows"] for row in block):
        printed, tight = (row for row in block if row["base_rows"] == base)
        names = ("labels_of_theorem", "unlabelled_rows")
        table.append([_whole(base), *(_whole(row[name]) for row in (printed, tight) for name in names)])
        table[-1] += [_share(tight[name] / printed[name]) for name in names]
    return table


def bounds(rows: Sequence[Row]) -> TextTable:
    """Measured errors beside α."""
    table = [["learner", "labelled", "unlabelled", "α", "mean error", "largest", "draws above α"]]
    for row in rows:
        if row["data"] == BOUNDS:
            table.append([row["method"], _whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])])
            table[-1] += [f"{row['alpha']:g}", f"{row['error_mean']:.4f}", f"{row['error_max']:.4f}"]
            table[-1] += [f"{round(row['share_above_alpha'] * row['repeats'])} of {row['repeats']}"]
    return table


def adult(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows."""
    table = [["question", f"{PRIVATE}, ε = 1", "same labels, no privacy", "all labels, no privacy", "larger class"]]
    block = [row for row in rows if row["data"].startswith("Adult: ")]
    for data in dict.fromkeys(row["data"] for row in block):
        row_of = {row["method"]: row for row in block if row["data"] == data}
        names = (PRIVATE, SAME_LABELS, ALL_LABELS, MAJORITY)
        table.append([data.removeprefix("Adult: "), *(_with_spread(row_of[name]) for name in names)])
    return table


def pays(rows: Sequence[Row]) -> TextTable:
    """Labels of each construction and of its base learner alone, in every cell."""
    table = [["construction", "ε", "α", "labels it asks for", "rows in all", "base alone: labels", "asks for fewer"]]
    table[0] += ["error", "base's, as many labels", "where it pays"]
    block = [row for row in rows if row["data"] == PAYS]
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


def rectangle(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows, by the number of labels."""
    table = [["labels", *(names := (RULED, RULED_CUTS, SANITIZED_RECTANGLE, LISTED, DIRECT_METHOD, MAJORITY))]]
    block = [row for row in rows if row["data"] == RECTANGLE]
    for n_labels in _distinct(row["labels"] for row in block):
        row_of = {row["method"]: row for row in block if row["labels"] == n_labels}
        table.append([f"{n_labels:,.0f}", *(_with_spread(row_of[name]) for name in names)])
    return table


def fits(rows: Sequence[Row]) -> TextTable:
    """CPU seconds of a fit of every class by every learner, or what the refusal names."""
    block = [row for row in rows if row["data"].startswith(FITS)]
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
    "domain": ("Labels for an error of .05, against the number of points (ε = 1)", domain),
    "vc": ("Labels for an error of .05, against the VC dimension (ε = 1)", vc),
    "epsilon": ("Rows for an excess error of .002, where .49 of the labels are wrong", epsilon),
    "weak": ("The same where labels say less: .4975 of them wrong, excess error .0005", weak),
    "theorems": ("Rows that the theorems ask for, where labels are wrong", theorems),
    "constants": ("LabelBoost: printed constants and tight ones (α = β = .1, ε = 1)", constants),
    "bounds": ("Errors at the number of rows that each theorem asks for", bounds),
    "adult": ("Adult: errors on test rows", adult),
    "rectangle": ("Adult: a rectangle on two columns, errors on test rows (ε = 1)", rectangle),
    "pays": ("Labels by theorem, thresholds over 2^32 points, and errors where a construction asks for fewer", pays),
    "fits": ("Every class with every learner at n = 20,000, 2,000 of them labelled where few are (ε = 1)", fits),
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
