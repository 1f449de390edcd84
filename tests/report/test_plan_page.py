"""The page of a plan: complete, self-contained, and nothing from outside is taken for markup."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import quorate
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.pipeline.models import built_in
from quorate.planning.plan import Plan
from quorate.report.plan_page import attacker, plan_page
from quorate.report.plan_text import render_plan


@pytest.fixture(scope="module")
def made() -> Plan:
    return quorate.plan(
        n_records=6_000, n_public=200, width=50, n_classes=2, epsilon=1.0, delta=1e-5, commonest=0.52,
        mechanisms=[NoisyCounts, GaussianNoisyMax], learning_curve=[(20, 0.75), (100, 0.9)],
        student=built_in("logistic", "student"),  # the default one compares models of the votes, which takes longer
    )  # fmt: skip


def test_a_page_needs_nothing_beside_itself_and_has_its_pictures(made: Plan) -> None:
    page = plan_page(made)
    assert page.count("<svg") >= 3
    for outside in ("<script", "http://", "https://", "<link", "url(http"):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "")


def test_every_row_the_commonest_class_and_what_cannot_answer_are_on_it(made: Plan) -> None:
    page = plan_page(made)
    for row in made.answering:
        assert row.noise in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "52.0 %" in page
    for row in made.rows:
        if row.cannot:
            assert ("direct method" if row.way == "direct" else row.name) in page
    assert str(made.first.expected) in page


def test_a_paid_estimate_is_not_said_to_be_free(made: Plan) -> None:
    assert "Nothing was spent" in plan_page(made)
    nothing_expected = replace(made, rows=tuple(replace(row, expected=None) for row in made.rows))
    page = plan_page(nothing_expected, paid="ε 1 was charged for this.")
    assert "Nothing was spent" not in page
    assert "a private estimate, which was charged. ε 1 was charged for this." in page


def test_a_name_from_outside_is_no_markup(made: Plan) -> None:
    hostile = replace(made, rows=(replace(made.first, name="<img src=x>"), *made.rows[1:]))
    assert "<img" not in plan_page(hostile)


def test_the_attacker_is_that_of_what_would_be_released(made: Plan) -> None:
    """ε = 1 at δ = 1e-5 is a Gaussian of μ = 0.268; the curve of the release is that Gaussian's."""
    curve, mu = attacker(made), 0.26805
    truth = norm.cdf(norm.ppf(1 - np.asarray(curve.false_alarms)) - mu)
    np.testing.assert_allclose(curve.misses, truth, atol=0.01)


def test_the_text_has_the_range_and_what_changes_nothing(made: Plan) -> None:
    told = render_plan(made)
    assert "0.520" in told
    assert str(made.by_epsilon[2].expected) in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_plan_prints_as_the_terminal_has_it(made: Plan) -> None:
    assert str(made) == render_plan(made)
    assert "nothing changes" not in str(made)


def test_names_on_the_page_are_not_broken(made: Plan) -> None:
    page = plan_page(made)
    assert '<table class="names">' in page
    assert "table:is(.wide, .names) tbody th { white-space: nowrap; }" in page
    assert "NoisyCounts by ε; the number of teachers is chosen for each ε" in page


def test_no_section_takes_the_layout_of_a_picture_of_the_report(made: Plan) -> None:
    """A figure of the report has the class ``attacker``, which would put a heading beside its middle."""
    page = plan_page(made)
    assert 'class="attacker"' not in page
    assert '<section class="best-attack"' in page
