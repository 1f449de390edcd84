"""The pictures of the few-labels experiment: labels against |X| and VC(C), rows against 1/ε."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.experiments.few_labels.agnostic import SUBSAMPLED, TRANSFORMED
from quorate.experiments.few_labels.domain import CLUSTERED, EVERY_CUT, GENERIC, WHOLE_CLASS
from quorate.experiments.few_labels.tables import Row, easier
from quorate.experiments.few_labels.vc import SANITIZED
from quorate.report import Axis, Chart


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
