"""The tables of the few-labels experiment, from its rows: as text, and as Markdown for the page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from quorate.experiments.few_labels.adult import ALL_LABELS, MAJORITY, PRIVATE, SAME_LABELS
from quorate.experiments.few_labels.agnostic import BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE, SUBSAMPLED, TRANSFORMED
from quorate.experiments.few_labels.domain import CLUSTERED, EVERY_CUT, GENERIC, SPREAD, WHOLE_CLASS
from quorate.experiments.few_labels.fits import FITS, PAYS
from quorate.experiments.few_labels.rectangle import DATA as RECTANGLE
from quorate.experiments.few_labels.rectangle import DIRECT as DIRECT_METHOD
from quorate.experiments.few_labels.rectangle import LISTED, RULED, RULED_CUTS
from quorate.experiments.few_labels.rectangle import MAJORITY as LARGER
from quorate.experiments.few_labels.rectangle import SANITIZED as SANITIZED_RECTANGLE
from quorate.experiments.few_labels.vc import SANITIZED

Row: TypeAlias = Mapping[str, Any]
TextTable: TypeAlias = list[list[str]]

BY_THEOREM = "thresholds over 2^16 points, any labels, by theorem"
BOOST, BOUNDS = "rows of LabelBoost's theorem", "error at the theorem's rows"


def domain(rows: Sequence[Row]) -> TextTable:
    """Labels against the size of the domain."""
    found = [["points", f"{GENERIC}: labels", "by theorem", "unlabelled rows", "least tried"]]
    found[0] += ["error", "error, spread rows"]
    found[0] += [f"{EVERY_CUT}: labels", "by theorem", "error"]
    for bits in _distinct(row["log2_domain"] for row in rows if CLUSTERED in row["data"]):
        here = {
            (row["method"], SPREAD in row["data"]): row
            for row in rows
            if row.get("log2_domain") == bits and row["data"].startswith("thresholds, ")
        }
        generic, spread, every = here[GENERIC, False], here[GENERIC, True], here[EVERY_CUT, False]
        found.append([f"2^{bits:.0f}", _whole(generic["labels_needed"]), _whole(generic["labels_of_theorem"])])
        found[-1] += [_whole(generic["unlabelled_rows"]), _whole(generic["unlabelled_needed"])]
        found[-1] += [_error(generic), _error(spread)]
        found[-1] += [_whole(every["labels_needed"]), _whole(every["labels_of_theorem"]), _error(every)]
    return found


def vc(rows: Sequence[Row]) -> TextTable:
    """Labels against the VC dimension."""
    found = [["class", "VC(C)", "learner", "labels", "by theorem", "unlabelled rows"]]
    for row in rows:
        if (
            "vc_dimension" in row
            and row.get("log2_domain") is None
            and row["method"] in {WHOLE_CLASS, SANITIZED, GENERIC}
        ):
            found.append([row["data"], f"{row['vc_dimension']:.0f}", row["method"], _whole(row["labels_needed"])])
            found[-1] += [_whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])]
    return found


def epsilon(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε."""
    found = [["ε", TRANSFORMED, SUBSAMPLED, "extra rows, ratio", BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE]]
    for budget, here in _measured(rows, easiest=True):
        found.append([f"{budget:g}", *(_whole(here[name]["rows_needed"]) for name in (TRANSFORMED, SUBSAMPLED))])
        found[-1].append(_ratio(here, SUBSAMPLED))
        found[-1] += [_whole(here[name]["rows_needed"]) for name in (BASE_ON_SUBSAMPLE, DIRECT, REALIZABLE)]
    return found


def weak(rows: Sequence[Row]) -> TextTable:
    """Measured rows against ε where labels say less."""
    found = [["ε", TRANSFORMED, BASE_ON_SUBSAMPLE, "extra rows, ratio", DIRECT, REALIZABLE]]
    for budget, here in _measured(rows, easiest=False):
        found.append([f"{budget:g}", *(_whole(here[name]["rows_needed"]) for name in (TRANSFORMED, BASE_ON_SUBSAMPLE))])
        found[-1].append(_ratio(here, BASE_ON_SUBSAMPLE))
        found[-1] += [_whole(here[name]["rows_needed"]) for name in (DIRECT, REALIZABLE)]
    return found


def theorems(rows: Sequence[Row]) -> TextTable:
    """Rows of both theorems, by α."""
    found = [["α"]]
    found[0] += [f"{name}: ε = {budget:g}" for name in (TRANSFORMED, "subsample") for budget in (1, 0.1)]
    found[0] += ["extra rows × at ε = 0.1", "× of the subsample", "extra rows, ratio at 0.1"]
    block = [row for row in rows if row["data"] == BY_THEOREM]
    for alpha in _distinct(row["alpha"] for row in block):
        here = {(row["method"], row["epsilon"]): row for row in block if row["alpha"] == alpha}
        cells = [here[name, budget] for name in (TRANSFORMED, SUBSAMPLED) for budget in (1.0, 0.1)]
        extra = [row["extra_rows_of_theorem"] for row in cells]
        found.append([f"{alpha:g}", *(_whole(row["rows_of_theorem"]) for row in cells)])
        found[-1] += [f"{extra[1] / extra[0]:.1f}", f"{extra[3] / extra[2]:.1f}", f"{extra[3] / extra[1]:.1f}"]
    return found


def constants(rows: Sequence[Row]) -> TextTable:
    """LabelBoost's rows with the printed constants and with the tight ones."""
    found = [["base learner's rows", "printed: labelled", "unlabelled", "tight: labelled", "unlabelled"]]
    found[0] += ["tight ÷ printed: labelled", "unlabelled"]
    block = [row for row in rows if row["data"] == BOOST]
    for base in _distinct(row["base_rows"] for row in block):
        printed, tight = (row for row in block if row["base_rows"] == base)
        names = ("labels_of_theorem", "unlabelled_rows")
        found.append([_whole(base), *(_whole(row[name]) for row in (printed, tight) for name in names)])
        found[-1] += [_share(tight[name] / printed[name]) for name in names]
    return found


def bounds(rows: Sequence[Row]) -> TextTable:
    """Measured errors beside α."""
    found = [["learner", "labelled", "unlabelled", "α", "mean error", "largest", "draws above α"]]
    for row in rows:
        if row["data"] == BOUNDS:
            found.append([row["method"], _whole(row["labels_of_theorem"]), _whole(row["unlabelled_rows"])])
            found[-1] += [f"{row['alpha']:g}", f"{row['error_mean']:.4f}", f"{row['error_max']:.4f}"]
            found[-1] += [f"{round(row['share_above_alpha'] * row['repeats'])} of {row['repeats']}"]
    return found


def adult(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows."""
    found = [["question", f"{PRIVATE}, ε = 1", "same labels, no privacy", "all labels, no privacy", "larger class"]]
    block = [row for row in rows if row["data"].startswith("Adult: ")]
    for data in dict.fromkeys(row["data"] for row in block):
        here = {row["method"]: row for row in block if row["data"] == data}
        found.append([data.removeprefix("Adult: ")])
        for name in (PRIVATE, SAME_LABELS, ALL_LABELS, MAJORITY):
            spread = here[name]["accuracy_se"]
            found[-1].append(f"{here[name]['error_mean']:.4f}" + (f" ± {spread:.4f}" if spread is not None else ""))
    return found


def pays(rows: Sequence[Row]) -> TextTable:
    """Labels of each construction and of its base learner alone, in every cell."""
    found = [["construction", "ε", "α", "labels it asks for", "rows in all", "base alone: labels", "asks for fewer"]]
    found[0] += ["error", "base's, as many labels", "where it pays"]
    block = [row for row in rows if row["data"] == PAYS]
    for name in dict.fromkeys(row["method"].partition(", base ε")[0] for row in block):
        for row in block:
            if row["method"].partition(", base ε")[0] != name:
                continue
            found.append([row["method"], f"{row['epsilon']:g}", f"{row['alpha']:g}", _whole(row["labels_of_theorem"])])
            found[-1] += [_whole(row["rows_of_theorem"]), _whole(row["labels_of_base_alone"])]
            found[-1].append("yes" if row["pays"] else "no")
            means = (row["error_mean"], row["error_of_base_mean"])
            found[-1] += ["–" if mean is None else f"{mean:.4f}" for mean in means]
            found[-1].append(row["case"])
    return found


def rectangle(rows: Sequence[Row]) -> TextTable:
    """Errors on Adult's test rows, by the number of labels."""
    found = [["labels", *(names := (RULED, RULED_CUTS, SANITIZED_RECTANGLE, LISTED, DIRECT_METHOD, LARGER))]]
    block = [row for row in rows if row["data"] == RECTANGLE]
    for n_labels in _distinct(row["labels"] for row in block):
        here = {row["method"]: row for row in block if row["labels"] == n_labels}
        found.append([f"{n_labels:,.0f}"])
        for name in names:
            spread = here[name]["accuracy_se"]
            found[-1].append(_error(here[name]) + (f" ± {spread:.4f}" if spread is not None else ""))
    return found


def fits(rows: Sequence[Row]) -> TextTable:
    """CPU seconds of a fit of every class by every learner, or what the refusal names."""
    block = [row for row in rows if row["data"].startswith(FITS)]
    names = _distinct(row["method"] for row in block)
    found = [["class", *names]]
    for data in _distinct(row["data"] for row in block):
        here = {row["method"]: row for row in block if row["data"] == data}
        found.append([data.partition(": ")[2]])
        found[-1] += [
            f"{here[n]['cpu_seconds']:.1f} s" if here[n]["instead"] is None else here[n]["instead"] for n in names
        ]
    return found


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


def _ratio(here: Mapping[str, Row], name: str) -> str:
    mine, other = here[TRANSFORMED]["extra_rows"], here[name]["extra_rows"]
    return f"{other / mine:.1f}" if mine and other else "–"


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _error(row: Row) -> str:
    return f"{row['error_mean']:.4f}"


def _share(value: float) -> str:
    return "0" if not value else f"1/{1 / value:,.0f}"
