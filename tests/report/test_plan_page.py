"""The page of a plan: complete, self-contained, and nothing from outside is taken for markup."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from scipy.stats import norm
from tests.report.accessibility import CHROMIUM, scrolled_in_browser

import quorate
from quorate.accounting import delta, trade_off
from quorate.accounting import epsilon as price
from quorate.accounting.attacker import worlds_told_apart_by
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.planning.page import plan_page
from quorate.planning.rehearsal import rehearsal
from quorate.planning.text import render_plan
from quorate.voting.models import built_in


@pytest.fixture(scope="module")
def priced():
    """A plan that says what things cost, and expects nothing of them."""
    return quorate.plan(
        n_records=6_000, n_public=200, width=50, n_classes=2, epsilon=1.0, delta=1e-5, rehearse="no",
        mechanisms=[NoisyCounts, GaussianNoisyMax],
    )  # fmt: skip


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        brief = rehearsal.Effort(folds=2, repeats=1, teachers=16, n_asked=60, every_row=False)
        patch.setattr(rehearsal.Effort, "of", lambda *_, **__: brief)
        patch.setattr(rehearsal, "FOLDS", 2)  # of the direct method, each played once
        patch.setattr(rehearsal, "REPEATS", 1)
        return quorate.plan(
            n_records=6_000, n_public=100, width=20, n_classes=2, epsilon=1.0, delta=1e-5, commonest=0.52,
            mechanisms=[NoisyCounts, GaussianNoisyMax], learning_curve=[(20, 0.75), (100, 0.9)],
            student=built_in("logistic", "student"),  # the default one compares models of the votes, and takes longer
        )  # fmt: skip


@pytest.mark.heavy
def test_a_page_needs_nothing_beside_itself_and_has_its_pictures_and_every_row(made):
    page = plan_page(made)
    assert page.count("<svg") >= 3
    for outside in ("<script", "http://", "https://", "<link", "url(http"):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "")
    for row in made.answering:
        assert row.noise in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "52.0 %" in page
    for row in made.rows:
        if row.cannot:
            assert ("direct method" if row.way == "direct" else row.name) in page
    assert str(made.first.expected) in page


@pytest.mark.heavy
def test_a_paid_estimate_is_not_said_to_be_free(made):
    assert "Nothing was spent" in plan_page(made)
    nothing_expected = replace(made, rows=tuple(replace(row, expected=None) for row in made.rows))
    page = plan_page(nothing_expected, paid="ε 1 was charged for this.")
    assert "Nothing was spent" not in page
    assert "a private estimate, which was charged. ε 1 was charged for this." in page


@pytest.mark.heavy
def test_a_name_from_outside_is_no_markup(priced):
    hostile = replace(priced, rows=(replace(priced.first, name="<img src=x>"), *priced.rows[1:]))
    assert "<img" not in plan_page(hostile)


@pytest.mark.heavy
def test_the_attacker_is_that_of_what_would_be_released(priced):
    """ε = 1 at δ = 1e-5 is a Gaussian of μ = 0.268; the curve of the release is that Gaussian's."""
    released, mu = priced.first.released(), 0.26805
    assert released is not None
    curve = trade_off(released)
    truth = norm.cdf(norm.ppf(1 - np.asarray(curve.false_alarms)) - mu)
    np.testing.assert_allclose(curve.misses, truth, atol=0.01)
    apart = ceil(1000 * norm.cdf(mu / 2))
    assert priced.worlds_of_first == priced.tree()["worlds_told_apart_of_1000_by_first"] == apart
    text = " ".join(render_plan(priced).split())
    assert f"names the real one in at most {apart} on average, by the exact price of the first row; ε and δ" in text
    assert "what the first row's release leaves" in plan_page(priced)


def test_of_a_row_whose_release_is_not_told_the_guarantee_stands_alone(priced):
    bare = replace(priced, rows=(replace(priced.first, mechanism=None), *priced.rows[1:]))
    assert bare.worlds_of_first is None
    assert "exact price of the first row" not in render_plan(bare)
    page = plan_page(bare)
    assert "what the guarantee alone leaves" in page
    assert "what the first row's release leaves" not in page


@pytest.mark.heavy
def test_the_direct_method_is_priced_by_its_rounds():
    """It was drawn as if it released all that (ε, δ) allows."""
    pool = np.random.default_rng(0).normal(size=(300, 4))
    direct = next(
        row for row in quorate.plan(pool, n_records=9_000, n_classes=2, epsilon=1.0, delta=1e-5, rehearse="no").rows
        if row.way == "direct"
    )  # fmt: skip
    released = direct.released()
    assert released is not None
    assert 0.99 < price(released, 1e-5) <= 1.0
    assert worlds_told_apart_by(delta(released, 0.0)) in range(550, 556)


@pytest.mark.heavy
def test_the_text_has_the_range_and_what_changes_nothing(made):
    told = render_plan(made)
    assert "0.520" in told
    assert str(made.by_epsilon[2].expected) in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_plan_prints_as_the_terminal_has_it_and_names_on_its_page_are_not_broken(priced):
    assert str(priced) == render_plan(priced)
    assert "nothing changes" not in str(priced)
    page = plan_page(priced)
    assert '<table class="wide names ways">' in page
    assert "table:is(.wide, .names) tbody th { white-space: nowrap; }" in page
    assert "NoisyCounts by ε; the number of teachers is chosen for each ε" in page
    assert 'class="attacker"' not in page  # of a figure of the report, which would put a heading beside its middle
    assert '<section class="best-attack"' in page


@pytest.mark.heavy
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("width", "wide"), [(1_000, []), (600, ["Ways to spend the budget, best first."])])
def test_the_table_of_ways_is_seen_whole_in_a_window_of_1000_pixels(made, tmp_path, width, wide):
    """With the longest name and figures as large as they come; a narrow window is moved over it."""
    long = replace(
        made.first, way="votes", name="SeveralVotesNoisyMax", model="tree", n_teachers=12_968, n_queries=118_139,
        noise="none in an answer; the test stands at 1,909 votes", answered=1.0,
    )  # fmt: skip
    assert long.expected is not None
    page = plan_page(replace(made, rows=(made.first, long, *made.rows[1:])))
    assert scrolled_in_browser(page, tmp_path, width=width) == wide
