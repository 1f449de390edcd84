"""What a report says of a rare class: the score that suits it, both curves, and what each threshold does."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from quorate.report import ExpectedScore, Facts, Fitted, model_card, render_html, render_json, render_text
from quorate.report.summary import rarer
from quorate.report.utility import ChosenScore, OperatingPoint
from quorate.run.scores import COLUMNS, SHOWN_COLUMNS, most_important, score, with_importances


@pytest.fixture(scope="module")
def scored():
    X, y = make_classification(2_000, n_features=8, weights=[0.94], random_state=1)
    labels = np.array(["no", "readmitted"])[y]
    model = LogisticRegression().fit(X[:1_000], labels[:1_000])
    return (
        score(model, X[1_000:], labels[1_000:], ["no", "readmitted"]),
        model.predict_proba(X[1_000:])[:, 1],
        y[1_000:],
    )


@pytest.mark.heavy
def test_the_first_page_says_of_predictions_what_scikit_learn_does_with_and_without_a_ranking(scored):
    student, told, truth = scored
    called = told >= student.ranking.in_use.threshold
    for known in (student, replace(student, ranking=None)):  # by recalls and numbers of rows alone
        point, place = rarer(known)
        assert place == 1
        assert point.recall == pytest.approx(recall_score(truth, called))
        assert point.precision == pytest.approx(precision_score(truth, called))
        assert point.false_alarms == pytest.approx(called[truth == 0].mean())
    assert rarer(replace(student, ranking=None, recall=(0.9, None)))[0] is None


@pytest.mark.heavy
def test_each_threshold_does_what_the_table_says(scored):
    student, told, truth = scored
    ranking = student.ranking
    assert len(ranking.curve) <= 60
    for point in (*ranking.curve, *ranking.thresholds, ranking.in_use):
        flagged = told >= point.threshold
        assert point.flagged == pytest.approx(flagged.mean())
        assert point.recall == pytest.approx(recall_score(truth, flagged))
        assert point.precision == pytest.approx(precision_score(truth, flagged, zero_division=0.0))
        assert point.false_alarms == pytest.approx(flagged[truth == 0].mean())
    recalls = [point.recall for point in ranking.curve]
    assert recalls == sorted(recalls)
    assert max(np.diff(recalls)) < 0.1  # no step of the curve is left out


@pytest.mark.heavy
def test_every_edition_says_it(facts, scored):
    student, *_ = scored
    shown = replace(
        facts,
        utility=replace(facts.utility, student=student),
        fitted=replace(facts.fitted, threshold=0.0625, threshold_class="readmitted"),  # type: ignore[arg-type, type-var]
    )
    value = f"ROC-AUC {student.chosen.value:.3f}"
    page, text, card = render_html(shown), render_text(shown), model_card(shown)
    for words in (value, "“readmitted” is predicted from a probability of 0.0625 on", "0.5 by chance", "False alarms"):
        assert words in page
    assert value in text
    assert "baseline    ROC-AUC 0.500, accuracy 9" in text
    assert "decides     “readmitted” is predicted from a probability of 0.0625 on" in text
    assert value in card.replace("\\", "")
    assert '"type": "roc_auc"' in card
    assert Facts.from_json(render_json(shown)) == shown
    assert len(page) - len(render_html(facts)) < 36_000


@pytest.mark.heavy
def test_no_figure_of_a_threshold_can_change_without_the_page_changing(facts, scored):
    student, *_ = scored

    def page(ranking: Any) -> str:
        changed = replace(facts, utility=replace(facts.utility, student=replace(student, ranking=ranking)))
        return render_html(changed).partition("application/json")[0]  # the JSON inside has everything

    before = page(student.ranking)
    for part in fields(OperatingPoint):
        point = replace(student.ranking.in_use, **{part.name: 0.4321})
        assert page(replace(student.ranking, in_use=point)) != before
    assert page(replace(student.ranking, curve=student.ranking.curve[:9])) != before
    assert page(replace(student.ranking, average_precision=0.4321)) != before


def test_facts_of_an_earlier_version_are_written_as_they_were(facts):
    for name in ('"chosen": {', '"ranking"', '"threshold"', '"threshold_class"', '"chosen": null', '"reliability"'):
        assert name not in render_json(facts)
    for heading in ("How “", "How far probabilities", "Which columns"):
        assert heading not in render_html(facts)


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [(0.8, 0.7, 0.9, None), (0.55, 0.45, 0.65, "not clearly better"), (0.49, 0.4, 0.6, "the student is no better")],
)
def test_the_verdict_is_by_the_chosen_score(facts, scored, value, low, high, said):
    student, *_ = scored
    chosen = ChosenScore(scoring="roc_auc", value=value, low=low, high=high, baseline=0.5)
    told = render_text(replace(facts, utility=replace(facts.utility, student=replace(student, chosen=chosen))))
    assert ("student is" in told) == (said is not None)
    if said is not None:
        assert said in " ".join(told.split())


def test_what_was_expected_is_said_by_the_chosen_score(facts, scored):
    student, *_ = scored
    chosen = ChosenScore(scoring="roc_auc", value=0.99, low=0.985, high=0.995, baseline=0.5)
    expected = ExpectedScore(accuracy=0.9, low=0.8, high=0.95, basis="rehearsed on public rows", chosen=chosen)
    told = render_text(replace(facts, utility=replace(facts.utility, student=student, expected=expected)))
    assert "ROC-AUC 0.990 (0.985 to 0.995), rehearsed on public rows; the student is below that range" in " ".join(
        told.split()
    )


class Said:
    """A model that says the probabilities in its rows."""

    def __init__(self, classes: list[str]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return self.classes_[X.argmax(axis=1)]


def of_two(n: int, *, seed: int = 0, power: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    right = rng.random(n)
    said = right**power
    return np.column_stack([1 - said, said]), np.where(rng.random(n) < right, "yes", "no")


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_groups_and_error_are_those_of_scikit_learn(power):
    rows, labels = of_two(2_000, power=power)
    measured = score(Said(["no", "yes"]), rows, labels, ["no", "yes"], shares=(0.6, 0.4)).reliability
    share, probability = calibration_curve(labels == "yes", rows[:, 1], n_bins=10, strategy="quantile")
    assert measured.positive == 1
    assert [group.n_rows for group in measured.groups] == [200] * 10
    np.testing.assert_allclose([group.share for group in measured.groups], share, atol=0.006)  # ends of its bins
    np.testing.assert_allclose([group.probability for group in measured.groups], probability, atol=0.006)
    assert measured.error == pytest.approx(np.abs(share - probability).mean(), abs=2e-3)
    assert (measured.error > 0.2) == (power == 3.0)


@pytest.mark.heavy
def test_chance_is_the_error_that_right_probabilities_have():
    drawn = [score(Said(["no", "yes"]), *of_two(2_000, seed=seed), ["no", "yes"]).reliability for seed in range(40)]
    errors = [measured.error for measured in drawn if measured is not None]
    assert len(errors) == 40
    assert np.mean(errors) == pytest.approx(drawn[0].by_chance, rel=0.15)


def test_of_more_classes_it_is_the_predicted_one_and_few_rows_or_one_probability_are_no_error():
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(3), 500)
    labels = np.array([rng.choice(list("abc"), p=row) for row in rows])
    measured = score(Said(list("abc")), rows, labels, list("abc")).reliability
    assert (measured.positive, len(measured.groups)) == (None, 10)
    said = sum(group.probability * group.n_rows for group in measured.groups) / 500
    assert said == pytest.approx(rows.max(axis=1).mean())
    assert measured.error < 0.1
    assert score(Said(list("abc")), rows[:19], labels[:19], list("abc")).reliability is None
    same = score(Said(["no", "yes"]), np.full((90, 2), 0.5), ["yes"] * 30 + ["no"] * 60, ["no", "yes"]).reliability
    assert [(group.n_rows, group.share) for group in same.groups] == [(90, 1 / 3)]


def test_every_edition_says_it_and_no_figure_changes_without_the_page(facts):
    rows, labels = of_two(400, power=2.0)
    student = score(Said(["no", "yes"]), rows, labels, ["no", "yes"])

    def edition(**changes: Any) -> Facts:
        assert student.reliability is not None
        shown = replace(student, reliability=replace(student.reliability, **changes))
        return replace(facts, utility=replace(facts.utility, student=shown))

    page, card = render_html(edition()), model_card(edition())
    said = f"robabilities are off by {student.reliability.error:.3f} on average (expected calibration error)"
    assert said in page
    assert said in card.replace("\\", "")
    for group in student.reliability.groups:  # what the picture shows can be read
        assert f"{group.probability:.3f}" in page
        assert f"{group.share:.3f}" in page
    assert "On the dashed line probabilities mean what they say" in page
    assert Facts.from_json(render_json(edition())) == edition()

    first, *rest = student.reliability.groups
    for change in ({"probability": 0.4321}, {"share": 0.4321}, {"n_rows": 77}):
        other = render_html(edition(groups=(replace(first, **change), *rest))).partition("application/json")[0]
        assert other != page.partition("application/json")[0]


RNG = np.random.default_rng(4)


def fitted(width: int) -> tuple[LogisticRegression, Any]:
    rows = RNG.normal(size=(300, width))
    return LogisticRegression().fit(rows, rows[:, 2] > 0), rows


def test_the_column_that_decides_comes_first_and_few_are_listed():
    listed = most_important(*fitted(COLUMNS))
    assert (listed[0].column, len(listed)) == ("2", SHOWN_COLUMNS)
    assert listed[0].moved > 5 * listed[1].moved


def test_one_column_or_a_great_many_are_not_listed_and_a_model_that_fails_here_costs_nothing():
    class Fails(LogisticRegression):
        def predict_proba(self, X: Any) -> Any:
            raise MemoryError

    for width in (1, COLUMNS + 1):
        rows = RNG.normal(size=(50, width))
        assert most_important(LogisticRegression().fit(rows, rows[:, 0] > 0), rows) is None
    _, rows = fitted(3)
    assert most_important(Fails(), rows) is None
    assert most_important(object(), rows) is None


def test_a_report_lists_columns_where_they_were_worked_out(facts):
    model, rows = fitted(4)
    made = with_importances(facts, most_important(model, rows))
    page = render_html(made)
    assert "Which columns the model looks at" in page
    listed = page[page.index("Which columns the model looks at") :]
    assert listed.index(">2</") < listed.index(">0</")
    assert Facts.from_json(made.to_json()) == made
    constant = replace(facts, fitted=Fitted(name="DummyClassifier", constant=True))
    assert with_importances(constant, most_important(model, rows)) == constant
