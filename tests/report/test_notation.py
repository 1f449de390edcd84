"""Figures are rounded the safe way, and nothing invisible is left in a name."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET
from decimal import Decimal
from json import dumps, loads

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from quorate.accounting.attacker import rounded_up
from quorate.accounting.figures import as_printed, at_least, at_most, plural, several
from quorate.report import Axis, Chart
from quorate.report.notation import columns, escaped, percent, power_of_ten, shortened, visible, wilson_interval

POSITIVE = st.floats(1e-30, 1e30)


def parsed(written: str) -> Decimal:
    return Decimal(written.replace(",", ""))


@pytest.mark.heavy
@given(value=POSITIVE, digits=st.integers(1, 8))
def test_a_bound_from_above_never_falls_below_its_value_and_is_close(value, digits):
    written = parsed(at_most(value, digits))

    assert Decimal(repr(value)) <= written <= Decimal(repr(value)) * (1 + Decimal(10) ** (1 - digits))


@given(value=POSITIVE, digits=st.integers(1, 8))
def test_a_bound_from_below_never_passes_its_value_and_is_close(value, digits):
    written = parsed(at_least(value, digits))

    assert Decimal(repr(value)) * (1 - Decimal(10) ** (1 - digits)) <= written <= Decimal(repr(value))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 1e-5, 2e-7, 250.0])
def test_short_figures_are_written_as_they_are(value):
    assert float(parsed(at_most(value))) == float(parsed(at_least(value))) == as_printed(value) == value


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, int])
def test_a_number_of_numpy_is_written_as_it_is(number):
    assert at_most(number(4)) == at_least(number(4)) == rounded_up(number(4)) == "4"
    assert percent(number(1)) == "100.0 %"


def test_a_figure_in_json_is_the_printed_one():
    assert as_printed(0.999999998) == 1.0
    assert as_printed(1234.56789) == 1234.57


def test_a_power_of_ten_is_the_same_number():
    assert power_of_ten("1e-12") == "10⁻¹²"
    assert power_of_ten("3.5e12") == "3.5 × 10¹²"
    assert power_of_ten("0.25") == "0.25"


@given(text=st.text())
def test_what_is_written_has_no_character_that_a_terminal_would_obey(text):
    kept = visible(text).replace("\u200c", "").replace("\u200d", "")

    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for char in kept)
    assert visible(visible(text)) == visible(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_escaping_json_leaves_its_value(text):
    assert loads(escaped(dumps(text, ensure_ascii=False))) == text


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"])), limit=st.integers(1, 40))
def test_a_shortened_name_fits_and_starts_like_the_name(text, limit):
    short = shortened(text, limit)

    assert columns(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@pytest.mark.heavy
@given(right=st.integers(0, 60), extra=st.integers(0, 60))
def test_the_interval_is_wilsons(right, extra):
    n_rows = max(1, right + extra)
    theirs = binomtest(right, n_rows).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(right / n_rows, n_rows)

    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_percentages_and_counts_read_as_people_write_them():
    assert [percent(x) for x in (0.0, 0.12345, 0.9996, 1.0)] == ["0.0 %", "12.3 %", "100.0 %", "100.0 %"]
    assert [several(n, "class") for n in (0, 1, 1000)] == ["0 classes", "1 class", "1,000 classes"]
    assert [plural(noun) for noun in ("record", "entry", "day")] == ["records", "entries", "days"]


# --- a line chart: what is on the edge of its frame is seen whole, what is beyond it not at all ----------------------


SVG = "{http://www.w3.org/2000/svg}"


def circles(chart: Chart, *, clipped: bool) -> list[tuple[str | None, str | None]]:
    """The markers that the frame cuts, or those that it does not; without those of the legend."""
    tree = ET.fromstring(chart.written())  # noqa: S314
    parts = [part for group in tree.iter(f"{SVG}g") if "clip-path" in group.attrib for part in group]
    return [(part.get("cx"), part.get("cy")) for part in (parts if clipped else tree) if part.tag == f"{SVG}circle"][
        : None if clipped else -1
    ]


@pytest.mark.parametrize("scattered", [False, True])
def test_a_marker_on_the_edge_is_not_cut_by_the_frame(scattered):
    chart = Chart("Accuracy", Axis("ε", 0.5, 8, log=True), Axis("accuracy", 0, 1), "A curve.")
    at, accuracy = [0.25, 0.5, 2, 8, 16], [0.5, 0.9, 1.0, 1.0, 1.0]
    if scattered:
        chart.points(at, accuracy, "expected", 0)
    else:
        chart.line(at, accuracy, "expected", 0, marks=None)

    assert circles(chart, clipped=True) == []
    assert circles(chart, clipped=False) == [("76", "77.4"), ("381", "44"), ("686", "44")]
