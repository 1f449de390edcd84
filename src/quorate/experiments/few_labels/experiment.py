"""BNS15 and LWY25: how many labels and rows private learners need, by theorem and by measurement; in pictures too."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quorate.arguments import count, one_of
from quorate.experiments.few_labels.adult import adult_with_few_labels, rectangle_beside_direct
from quorate.experiments.few_labels.agnostic import SUBSAMPLED, TRANSFORMED, rows_against_epsilon, rows_of_theorems
from quorate.experiments.few_labels.constants import errors_against_bounds, printed_against_tight
from quorate.experiments.few_labels.domain import CLUSTERED, EVERY_CUT, GENERIC, WHOLE_CLASS, labels_against_domain
from quorate.experiments.few_labels.draws import Size
from quorate.experiments.few_labels.fits import every_class_with_every_learner, which_pays
from quorate.experiments.few_labels.tables import Row, as_text, easier
from quorate.experiments.few_labels.vc import SANITIZED, labels_against_vc
from quorate.experiments.measurement import Experiment, Measured
from quorate.report import Axis, Chart
from quorate.types import Watch


def labels_against_domain_chart(rows: Sequence[Row]) -> Chart:
    """Two flat lines and two rising ones."""
    block = [row for row in rows if CLUSTERED in row["data"]]
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
    for style, (method, name, field) in enumerate(
        (
            (GENERIC, "GenericLearner, measured", "labels_needed"),
            (EVERY_CUT, "NoisyThreshold, measured", "labels_needed"),
            (GENERIC, "GenericLearner, theorem", "labels_of_theorem"),
            (EVERY_CUT, "NoisyThreshold, theorem", "labels_of_theorem"),
        )
    ):
        _draw(chart, [row for row in block if row["method"] == method], "log2_domain", field, name, style)
    return chart


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
    for style, (method, name, field) in zip(
        (0, 1, 2, 3, 6),
        (
            (WHOLE_CLASS, "ExponentialLearner, measured", "labels_needed"),
            (SANITIZED, "GenericLearner with MWEM, measured", "labels_needed"),
            (GENERIC, "GenericLearner with Tree, 2¹⁶ points, measured", "labels_needed"),
            (WHOLE_CLASS, "ExponentialLearner, theorem", "labels_of_theorem"),
            (GENERIC, "GenericLearner with Tree, theorem", "labels_of_theorem"),
        ),
        strict=True,
    ):
        _draw(chart, [row for row in block if row["method"] == method], "vc_dimension", field, name, style)
    return chart


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
    for style, (method, name, field) in enumerate(
        (
            (TRANSFORMED, "AgnosticLearner, measured", "extra_rows"),
            (SUBSAMPLED, "relabelled subsample, measured", "extra_rows"),
            (TRANSFORMED, "AgnosticLearner, theorem at α = 0.01", "extra_rows_of_theorem"),
            (SUBSAMPLED, "relabelled subsample, theorem at α = 0.01", "extra_rows_of_theorem"),
        )
    ):
        _draw(chart, [row for row in block if row["method"] == method], "inverse", field, name, style)
    return chart


def _draw(chart: Chart, rows: Sequence[Row], x: str, y: str, name: str, style: int) -> None:
    points = sorted((row[x], row[y]) for row in rows if row[y] is not None and row[y] > 0)
    if points:
        chart.line([a for a, _ in points], [b for _, b in points], name, style, marks=None)


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
    """Measure labels and rows needed.

    `repeats`: samples, each with noise of its own. `seed`: of samples and noise. `parts`: among :data:`PARTS`; all by
    default. `size`: how much of each part is run; all of it by default. `command`: for the record. `watch`:
    ``watch(stage, done, total)``. Raises InvalidParameter if a name is not known.

    Examples
    --------
    >>> print(reproduce_few_labels(parts=["constants"]).text().splitlines()[2])
    LabelBoost: printed constants and tight ones (α = β = .1, ε = 1)
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = {one_of("part", part, PARTS) for part in parts}
    size = size or Size()
    rows: list[Measured] = []
    if "pays" in chosen:
        rows += which_pays(repeats=repeats, seed=seed, watch=watch)
    if "rectangle" in chosen:
        rows += rectangle_beside_direct(size, repeats=repeats, seed=seed, watch=watch)
    if "fits" in chosen:
        rows += every_class_with_every_learner(seed=seed, watch=watch)
    if "domain" in chosen:
        rows += labels_against_domain(size, repeats=repeats, seed=seed, watch=watch)
    if "vc" in chosen:
        rows += labels_against_vc(size, repeats=repeats, seed=seed, watch=watch)
    if "epsilon" in chosen:
        rows += rows_against_epsilon(size, repeats=repeats, seed=seed, watch=watch)
        rows += rows_of_theorems()
    if "constants" in chosen:
        rows += printed_against_tight()
    if "bounds" in chosen:
        rows += errors_against_bounds(repeats=repeats, seed=seed, watch=watch)
    if "adult" in chosen:
        rows += adult_with_few_labels(size, repeats=repeats, seed=seed, watch=watch)
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
