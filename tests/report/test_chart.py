"""A line chart: what is on the edge of its frame is seen whole, what is beyond it not at all."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from quorate.report import Axis, Chart

SVG = "{http://www.w3.org/2000/svg}"


def circles(chart: Chart, *, clipped: bool) -> list[tuple[str | None, str | None]]:
    """The markers that the frame cuts, or those that it does not; without those of the legend."""
    tree = ET.fromstring(chart.written())  # noqa: S314
    parts = [part for group in tree.iter(f"{SVG}g") if "clip-path" in group.attrib for part in group]
    return [(part.get("cx"), part.get("cy")) for part in (parts if clipped else tree) if part.tag == f"{SVG}circle"][
        : None if clipped else -1
    ]


@pytest.mark.parametrize("scattered", [False, True])
def test_a_marker_on_the_edge_is_not_cut_by_the_frame(scattered: bool) -> None:
    chart = Chart("Accuracy", Axis("ε", 0.5, 8, log=True), Axis("accuracy", 0, 1), "A curve.")
    at, accuracy = [0.25, 0.5, 2, 8, 16], [0.5, 0.9, 1.0, 1.0, 1.0]
    if scattered:
        chart.points(at, accuracy, "expected", 0)
    else:
        chart.line(at, accuracy, "expected", 0, marks=None)

    assert circles(chart, clipped=True) == []
    assert circles(chart, clipped=False) == [("76", "77.4"), ("381", "44"), ("686", "44")]
