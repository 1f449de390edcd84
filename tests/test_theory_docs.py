"""The theory pages agree with the code: their tables and figures are computed again, every mechanism has its page."""

import importlib
import re
from functools import lru_cache
from itertools import permutations
from math import ceil, comb, exp, log
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.released import may_lack

import quorate.mechanisms
from quorate.accounting import calibrate_sigma, delta
from quorate.mechanisms import StableSparseVector
from quorate.report.chart import STYLES

THEORY = Path(__file__).parent.parent / "docs" / "theory"
PAGES = sorted(THEORY.glob("*.md"))
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tables():
    return script("marked_tables")


@pytest.fixture(scope="module")
def figures():
    module = script("figures")
    module.FIGURES = {name: lru_cache(make) for name, make in module.FIGURES.items()}
    return module


def script(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(THEORY))
        return importlib.import_module(name)


def differences(said, computed):
    """The lines that differ, in words, or in a number by more than one unit of its last digit."""
    lines = list(zip(said.splitlines(), computed.splitlines(), strict=True))
    return [(a, b) for a, b in lines if a != b and not (words(a) == words(b) and near(a, b))]


def words(line):
    return NUMBER.sub("#", line)


def near(line, other):
    pairs = zip(NUMBER.findall(line), NUMBER.findall(other), strict=True)
    return all(abs(value(a) - value(b)) <= 1.01 * 10.0 ** -len(a.partition(".")[2]) for a, b in pairs)


def value(number):
    return float(number.replace(",", "").replace("−", "-"))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_number_in_a_marked_table_is_what_the_code_computes(page, tables):
    said = page.read_text(encoding="utf-8")
    assert differences(said, tables.refreshed(said)) == []


@pytest.mark.heavy
def test_a_wrong_number_in_a_table_is_caught(tables):
    said = (THEORY / "sparse-vector.md").read_text(encoding="utf-8")
    for wrong in (said.replace("| 1,018 |", "| 1,016 |"), said.replace("| 3.3 · 10⁻⁶ |", "| 3.3 · 10⁻⁷ |")):
        assert wrong != said
        assert differences(wrong, tables.refreshed(wrong)) != []


def test_each_table_stands_on_one_page(tables):
    marks = [name for page in PAGES for _, name, _ in tables.MARK.findall(page.read_text(encoding="utf-8"))]
    assert sorted(marks) == sorted(tables.TABLES)
    assert sum(page.read_text(encoding="utf-8").count("<!-- table:") for page in PAGES) == len(marks)


def index():
    """The rows of the index: a page, and the mechanisms that it is about."""
    text = (THEORY / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.md)\) \|([^|]*)\|", text, flags=re.MULTILINE)
    return [(page, re.findall(r"`(\w+)`", names)) for page, names in rows]


def test_the_index_lists_every_page_once():
    assert sorted(page for page, _ in index()) == sorted(page.name for page in PAGES if page.name != "README.md")


def test_every_registered_mechanism_has_a_page_that_names_it_and_shows_a_figure():
    registered = set(quorate.mechanisms.REGISTERED)
    assert len(registered) >= 12
    told = {}
    for page, names in index():
        text = (THEORY / page).read_text(encoding="utf-8")
        for name in names:
            told[name] = f"`{name}" in text and "](figures/" in text and bool(re.search(r"integers\s+change", text))
    assert told == dict.fromkeys(registered & set(told), True)
    may_lack(registered - set(told))


def test_every_figure_is_shown_once_with_words_for_who_cannot_see_it(figures):
    shown = [
        (name, told)
        for page in PAGES
        for told, name in re.findall(r"!\[([^\]]*)\]\(figures/([\w-]+)\.svg\)", page.read_text(encoding="utf-8"))
    ]
    assert sorted(name for name, _ in shown) == sorted(figures.FIGURES)
    assert sorted(path.stem for path in figures.FOLDER.iterdir()) == sorted(figures.FIGURES)
    assert [name for name, told in shown if len(told) < 20] == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name", [path.stem for path in sorted((THEORY / "figures").glob("*.svg"))], ids=lambda name: name
)
def test_a_figure_is_the_one_that_the_script_draws(name, figures):
    said = (figures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    drawn = figures.FIGURES[name]().written()
    assert words(said) == words(drawn)
    pairs = zip(NUMBER.findall(said), NUMBER.findall(drawn), strict=True)
    assert max(abs(value(a) - value(b)) for a, b in pairs) <= 0.3  # tenths of a pixel, wherever it is drawn
    assert len(said.encode()) < 60_000


@pytest.mark.heavy
def test_a_figure_says_what_it_shows_and_labels_its_axes(figures):
    for name in figures.FIGURES:
        tree = ET.fromstring((figures.FOLDER / f"{name}.svg").read_text(encoding="utf-8"))  # noqa: S314
        assert [len(tree.find(f"{SVG}{part}").text or "") > 20 for part in ("title", "desc")] == [True, True], name
        chart = figures.FIGURES[name]()
        assert chart.x.label
        assert chart.y.label


@pytest.mark.heavy
def test_lines_of_a_figure_differ_in_dash_and_marker_and_not_in_colour_alone(figures):
    styles = STYLES
    assert len({dash for _, dash, _ in styles}) == len({marker for *_, marker in styles}) == len(styles)
    for make in figures.FIGURES.values():
        used = [style for style, _, _ in make()._keys]
        assert len(set(used)) == len(used)


def test_gaussian_answers_need_less_distance_than_sparse_vector_up_to_about_27_500_queries(figures):
    needed = StableSparseVector(1.0, 1e-5, 50, 1_000).passing_dist()
    assert needed == 1_018
    below, above = (figures._gaussian_distance(calibrate_sigma(1.0, 1e-5, m, 1.0)) for m in (27_000, 28_000))
    assert below < needed < above


@pytest.mark.heavy
def test_the_closed_forms_of_the_sparse_vector_page_are_its_sums():
    for cutoff in (1, 10, 50):
        mechanism = StableSparseVector(1.0, 1e-5, cutoff, 1_000)
        noise = mechanism.stage_noise
        t, q, w = 1 / noise.threshold_scale, 1 / noise.query_scale, int(noise.threshold)
        rho = np.arange(int(60 * noise.threshold_scale))
        law = -np.expm1(-t) * np.exp(-t * rho)
        passes_at_0 = np.where(rho > w, -np.expm1(-q * np.maximum(rho - w, 0)), 0.0)  # P(ν < ρ − w)
        assert noise.tail(cutoff) == pytest.approx(cutoff * float(law @ passes_at_0), rel=1e-6)
        beta = 0.05
        excess = log(-np.expm1(-t) / (-np.expm1(-t - q) * beta)) / q
        assert mechanism.passing_dist(1 - beta) == w + max(0, ceil(excess))


@pytest.mark.parametrize("calibration", ["tight", "lzcw21", "btt18"])
def test_a_run_is_charged_no_less_than_its_stages_compose_to(calibration):
    """T stages that are each (ε₀, p)-DP: 1 − (1 − p)^T (1 − δ₁), by KOV15, Theorem 3.3."""
    cutoff, eps = 10, 0.3
    mechanism = StableSparseVector(1.0, 1e-3, cutoff, 100, calibration)
    stage, tail = mechanism.stage_epsilon, mechanism.stage_noise.tail(cutoff) / cutoff
    p = 1 / (1 + exp(-stage))
    first = sum(
        comb(cutoff, i) * p**i * (1 - p) ** (cutoff - i) * max(0.0, 1 - exp(eps - (2 * i - cutoff) * stage))
        for i in range(cutoff + 1)
    )
    composed = 1 - (1 - tail) ** cutoff * (1 - first)
    charged = delta(mechanism.event, eps)
    assert composed * (1 - 1e-9) <= charged <= first + cutoff * tail + 1e-12


def test_both_papers_tails_stay_below_half_of_delta():
    for cutoff in (1, 7, 60):
        for m in (cutoff, 10 * cutoff, 10**6):
            for delta_ in (0.1, 1e-3, 1e-9):
                for name in ("lzcw21", "btt18"):
                    mechanism = StableSparseVector(1.0, delta_, cutoff, m, name)
                    assert mechanism.stage_noise.tail(cutoff) <= delta_ / 2


def test_permute_and_flip_has_the_law_of_the_page_and_is_never_worse(figures):
    scores, eps = np.array([5.0, 9.0, 8.0, 2.0]), 0.7
    coins = np.exp(eps * (scores - scores.max()) / 2)
    slow = np.zeros(4)
    for order in permutations(range(4)):
        refused = 1.0
        for h in order:
            slow[h] += refused * coins[h] / 24
            refused *= 1 - coins[h]
    law, other = figures.flip_law(scores, eps), figures.exponential_law(scores, eps)
    assert law == pytest.approx(slow, rel=1e-12)
    upwards = np.argsort(scores)
    assert np.all(np.cumsum(law[upwards]) <= np.cumsum(other[upwards]) + 1e-12)


def test_one_prediction_errs_at_most_a_quarter_of_alpha_where_two_thirds_are_right(figures):
    """The worst split of the wrong votes, at the largest number of classes that the page allows."""
    eps, alpha = 1.0, 0.5
    r = quorate.mechanisms.PrivatePrediction(eps).n_hypotheses(alpha)
    n_classes = int(2 + 4 / alpha)
    right = ceil(2 * r / 3)
    for parts in range(1, n_classes):
        wrong = np.zeros(n_classes - 1)
        wrong[:parts] = (r - right) // parts
        law = figures.flip_law(np.array([right, *wrong], dtype=float), eps)
        assert 1 - law[0] <= alpha / 4


def test_the_printed_formula_is_too_small_for_a_histogram_from_about_epsilon_0_4_on():
    for eps, too_small in ((0.3, False), (0.45, True)):
        exact = calibrate_sigma(eps, 1e-5, 1_000, 2**0.5)
        printed = calibrate_sigma(eps, 1e-5, 1_000, 1.0, calibration="paper")
        assert (printed < exact) == too_small
