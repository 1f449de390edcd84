"""Appendix E in small: the figures are near those of earlier trials, and the pictures show them."""

from __future__ import annotations

import pytest

from quorate.experiments import margins, reproduce_margins
from quorate.experiments.margins import MEASURES

TRIALS = {  # of ours, on the published split
    "share of queries with a margin of .4 or more": 0.67,
    "share of queries on which all teachers agree": 0.35,
    "share of queries with the plurality of h*": 0.954,
}


def test_teachers_of_adult_agree_as_far_as_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins, "N_QUERIES", 1_000)
    found = reproduce_margins(repeats=1, seed=3)
    told = {row.method: row.accuracy_mean for row in found.rows}
    assert list(told) == list(MEASURES)
    for name, trial in TRIALS.items():
        assert told[name] == pytest.approx(trial, abs=0.06)
    assert told["correlation of the margins for the plurality and for h*"] > 0.9
    assert set(found.figures) == {"margins-histogram", "margins-curve", "margins-sums"}
    assert "value" in found.text()
    assert {row.paper_accuracy for row in found.rows} == {
        None
    }  # the paper prints no figure, and ours are not the paper's
    assert "|" not in found.text()
