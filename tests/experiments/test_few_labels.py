"""Private learners with few labels: a small run of each part, and the page that shows the whole one."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from quorate.data import load_adult
from quorate.errors import InvalidParameter
from quorate.experiments import Measured
from quorate.experiments.few_labels import fits
from quorate.experiments.few_labels.adult import ALL_LABELS, DIRECT, LISTED, MAJORITY, PRIVATE, RULED, RULED_CUTS, ruled
from quorate.experiments.few_labels.adult import DATA as RECTANGLE
from quorate.experiments.few_labels.adult import SANITIZED as SANITIZED_RECTANGLE
from quorate.experiments.few_labels.draws import (
    LearningTask,
    Population,
    Size,
    fewest_rows,
    labels_needed,
    learning_curves,
)
from quorate.experiments.few_labels.experiment import TABLES, as_markdown, reproduce_few_labels
from quorate.experiments.few_labels.fits import ALPHAS, EPSILONS, cells, errors_of
from quorate.experiments.few_labels.labels import CLUSTERED, EVERY_CUT, GENERIC, classes, cluster
from quorate.experiments.few_labels.theorems import SUBSAMPLED, TRANSFORMED, excess_errors
from quorate.experiments.measurement import Experiment
from quorate.learners import ExponentialLearner, NoisyThreshold
from quorate.learners.concepts import Threshold, Thresholds

DOCS = Path(__file__).parents[2] / "docs"
SMALL = Size(
    bits=(8, 24),
    labels=(25, 40, 64, 100, 160, 256, 400, 600),
    samples=2,
    unlabelled=(1_000, 5_000),
    sanitized_rows=5_000,
    tasks=(
        LearningTask(label_noise=0.4, excess=0.05, epsilons=(1.0, 0.1), most_rows=60_000),
        LearningTask(label_noise=0.45, excess=0.03, epsilons=(1.0,), most_rows=60_000, hardest=True),
    ),
)


@pytest.fixture(scope="module")
def small():
    """Everything but Adult, in seconds."""
    return reproduce_few_labels(repeats=3, size=SMALL, parts=("domain", "vc", "epsilon", "constants"))


def of(experiment: Experiment, data: str, method: str) -> list[Measured]:
    return [row for row in experiment.rows if row.data.startswith(data) and row.method == method]


@pytest.mark.faults
def test_the_labels_follow_the_dimension_and_not_the_domain(small):
    generic = of(small, f"thresholds, {CLUSTERED}", GENERIC)
    every = of(small, f"thresholds, {CLUSTERED}", EVERY_CUT)
    assert [row.more["log2_domain"] for row in generic] == [8, 24]
    for row in generic:
        assert row.more["labels_of_theorem"] <= 600
        assert row.more["error_mean"] <= 0.05
        assert row.more["labels_needed"] <= 160
        assert row.more["unlabelled_needed"] <= 5_000 < row.more["unlabelled_rows"]
    assert every[1].more["labels_needed"] >= 256  # one mistake in a few against 2^24 wrong cuts
    assert every[1].more["labels_of_theorem"] > 2 * every[0].more["labels_of_theorem"]
    spread = of(small, "thresholds, all of", GENERIC)  # over the whole domain, which is no harder
    assert len(spread) == 2
    assert all(row.more["error_mean"] <= 0.05 for row in spread)


def test_the_points_of_the_second_part_are_shattered():
    """Every labelling of the light points, with 1 on the heavy one, is a concept's: so there is one with no mistake."""
    for shape in classes():
        assert len(shape.light) == shape.concepts.vc_dimension
        population = shape.population(np.random.default_rng(0))
        for bits in range(2 ** len(shape.light)):
            labels = np.array([1, *((bits >> j) & 1 for j in range(len(shape.light)))], dtype=np.uint8)
            best = shape.concepts.erm(shape.concepts.check(population.points), labels)
            assert (best.labels(population.points) == labels).all()


@pytest.mark.faults
def test_labels_grow_with_the_vc_dimension(small):
    rows = [row for row in small.rows if row.method == "ExponentialLearner" and "log2_domain" not in row.more]
    assert [row.more["vc_dimension"] for row in rows] == [1, 2, 4, 5, 6]
    proven = [row.more["labels_of_theorem"] for row in rows]
    assert proven == sorted(proven)
    assert all(row.more["labels_needed"] is not None for row in rows)


def test_no_rows_are_thrown_away_at_a_small_epsilon():
    small = reproduce_few_labels(repeats=3, size=SMALL, parts=("epsilon",))
    measured = {(row.method, row.epsilon): row.more for row in small.rows if row.more.get("excess_wanted") == 0.05}
    assert measured[TRANSFORMED, 0.1]["rows_needed"] is not None
    proven = {(row.method, row.epsilon, row.more["alpha"]): row.more for row in small.rows if row.repeats == 0}
    for alpha, saved in ((0.1, 1.05), (0.05, 1.4), (0.02, 2.3), (0.01, 4)):
        ours, theirs = (proven[name, 0.1, alpha]["extra_rows_of_theorem"] for name in (TRANSFORMED, SUBSAMPLED))
        assert saved * ours < theirs
    growth = [
        proven[name, 0.1, 0.01]["extra_rows_of_theorem"] / proven[name, 1.0, 0.01]["extra_rows_of_theorem"]
        for name in (TRANSFORMED, SUBSAMPLED)
    ]
    assert growth[0] < 5
    assert growth[1] > 15


def test_errors_at_the_rows_of_each_theorem_are_below_alpha(page):
    rows = [row for row in page.kept_rows() if row["data"] == "error at the theorem's rows"]
    assert len(rows) == 7
    assert all(row["error_mean"] <= row["alpha"] for row in rows)


@pytest.mark.faults
def test_adult_with_few_labels_is_nearly_as_good_as_without_privacy():
    rows = reproduce_few_labels(repeats=1, size=SMALL, parts=["adult"]).rows
    by_question: dict[str, dict[str, float]] = {}
    for row in rows:
        by_question.setdefault(row.data, {})[row.method] = row.accuracy_mean or 0
    assert len(by_question) == 4
    for each in by_question.values():
        assert each[PRIVATE] > each[MAJORITY]
        assert each[PRIVATE] > each[ALL_LABELS] - 0.03


def test_the_errors_are_exact():
    population = cluster(16, np.random.default_rng(1))
    start = int(population.points[0, 0])
    for cut in (0, start, start + 20, start + 26, start + 30, 2**16):
        wrong = abs(min(max(cut - start, 0), 256) - 26) / 256
        assert population.error(Threshold(cut)) == pytest.approx(wrong)
    even = Population(np.array([[0], [1]]), np.array([1, 0], dtype=np.uint8), np.array([0.75, 0.25]))
    assert even.error(Threshold(2)) == 0.25
    assert even.sample(1_000, np.random.default_rng(0))[1].mean() == pytest.approx(0.75, abs=0.07)  # 5 sd


def test_the_excess_error_of_a_useless_learner_is_that_of_a_random_cut():
    """At next to no ε a cut is uniform: its distance from a quarter has mean 5/16."""
    useless = NoisyThreshold(concepts=Thresholds(bits=16), epsilon=1e-6)
    found = excess_errors(useless, 100, 0.4, repeats=400, seed=0)
    assert found.mean() == pytest.approx(0.2 * 5 / 16, abs=0.2 * 5 * 0.21 / 20)


def test_searches_find_what_they_say():
    errors = np.array([[0.3, 0.01, 0.2, 0.02, 0.01]])
    assert labels_needed((1, 2, 3, 4, 5), errors, 0.05) == 4
    assert labels_needed((1, 2, 3, 4, 5), errors, 0.5) == 1
    assert labels_needed((1, 2, 3, 4, 5), errors, 0.001) is None
    tried = []
    assert fewest_rows(lambda n: tried.append(n) or 1.0, 0.1, start=100, limit=200) is None
    assert tried == [100, 126, 159, 200]
    lucky = {100: 0.0, 126: 1.0, 159: 0.1, 200: 0.0}
    assert fewest_rows(lucky.__getitem__, 0.1, start=100, limit=200) == 159


def test_the_tables_and_figures_are_written(small, tmp_path):
    names = {path.name for path in small.write(tmp_path)}
    assert {"few-labels.json", "few-labels.txt", "few-labels-domain.svg", "few-labels-epsilon.svg"} <= names
    text = small.text()
    assert "2^24" in text
    assert small.origin in text
    assert TABLES["adult"][0] not in text  # no empty table


def test_a_part_that_is_not_there_is_refused():
    with pytest.raises(InvalidParameter, match="part"):
        reproduce_few_labels(parts=["domains"])


def test_more_noise_needs_more_labels():
    """A cheating search that ignored ε would not."""
    population = cluster(8, np.random.default_rng(0))
    errors = {}
    for epsilon in (1.0, 0.05):
        learner = ExponentialLearner(concepts=Thresholds(bits=8), epsilon=epsilon)
        errors[epsilon] = learning_curves(learner, 10 * [population], SMALL, 0, np.random.default_rng(0), 0).mean()
    assert errors[0.05] > 2 * errors[1.0]


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return importlib.import_module("learner_tables")


def test_the_page_shows_the_rows_that_were_kept(page):
    rows, said = page.kept_rows(), page.PAGE.read_text(encoding="utf-8")
    assert {found[1] for found in page.MARK.findall(said)} == set(TABLES)
    assert page.refreshed(said, rows) == said
    for name, figure in page.drawn(rows).items():
        assert (page.FIGURES / name).read_text(encoding="utf-8") == figure
        assert f"figures/{name}" in said


def test_a_wrong_number_on_the_page_is_caught(page):
    said = page.PAGE.read_text(encoding="utf-8")
    wrong = said.replace("| 692,349 |", "| 592,349 |")
    assert wrong != said
    assert page.refreshed(wrong, page.kept_rows()) != wrong


def test_the_kept_rows_are_what_the_constants_say_now(page):
    """The figures that no sample enters are computed again."""
    now = [row.tree() for row in reproduce_few_labels(parts=["constants"]).rows]
    kept = [row for row in page.kept_rows() if row["data"] == now[0]["data"]]
    assert as_markdown(kept, "constants") == as_markdown(now, "constants")


EVERY_CELL = [
    pytest.param(epsilon, alpha, marks=() if (epsilon, alpha) == (1.0, 0.1) else pytest.mark.faults)
    for epsilon in EPSILONS
    for alpha in ALPHAS
]


@pytest.mark.parametrize(("epsilon", "alpha"), EVERY_CELL)
def test_only_two_constructions_ask_for_fewer_labels_than_their_base_alone(epsilon, alpha):
    for cell in cells(epsilon, alpha):
        alone = cell.alone.agnostic_rows_needed() if cell.any_labels else cell.alone.rows_needed()
        try:
            own = cell.learner.rows_needed().labelled
        except InvalidParameter:
            own = None
        pays = own is not None and own < alone.labelled
        assert pays == cell.name.startswith(("GenericLearner", "SubSampling")), cell.name
        assert cell.case  # where it pays, or that no such case is known


def test_a_construction_that_pays_is_shown_by_a_run():
    generic, asked = cells(1.0, 0.01)[:2]
    for cell in (generic, asked):
        own, alone = errors_of(cell, cell.learner.rows_needed().labelled, 1.0, repeats=4, seed=0)
        assert own <= 0.01
        assert own <= alone


def test_the_columns_of_the_rule_hang_on_no_label_and_are_those_that_the_page_names():
    train = load_adult().train
    for seed in range(3):
        pool = train[np.random.default_rng([seed]).permutation(train.height)[:1_000]]
        binning, (values,) = ruled((train,), pool)
        assert list(binning.cuts) == ["education-num", "relationship"]
        assert np.array_equal(values[:, 1], binning.transform(train[:, :])[:, 1])


def test_the_page_shows_at_most_a_fifth_of_errors_with_300_labels_over_30_draws(page):
    found = [row for row in page.kept_rows() if row["data"] == RECTANGLE and row["labels"] == 300]
    assert {row["method"]: row["repeats"] >= 30 for row in found if row["method"] != MAJORITY} == dict.fromkeys(
        (RULED, RULED_CUTS, SANITIZED_RECTANGLE, LISTED, DIRECT), True
    )
    private = [row for row in found if row["method"] in {RULED, SANITIZED_RECTANGLE, LISTED}]
    assert all(row["error_mean"] <= 0.2 for row in private)


#: What a refusal may send a user to.
REMEDIES = ("ExponentialLearner", "GenericLearner", "NoisyThreshold", "Boxes", "Tree", "MWEM", "domain")
CASES = [(case, name) for case in fits.cases() for name in fits.learners(case)]


@pytest.mark.heavy_cases(21)
@pytest.mark.parametrize(("case", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_every_class_fits_with_every_learner_or_is_told_what_does(case, name):
    _, instead = fits.fitted(case, name, fits.learners(case)[name], seed=0)
    assert instead is None or instead in REMEDIES
    if name in {"ExponentialLearner", "GenericLearner", "SubSampling"}:  # what the page says to use
        assert instead is None
