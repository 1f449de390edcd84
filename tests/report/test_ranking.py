"""What a report says of a rare class: the score that suits it, both curves, and what each threshold does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from quorate.report import ExpectedScore, Facts, model_card, render_html, render_json, render_text
from quorate.report.summary import rarer
from quorate.report.utility import ChosenScore, OperatingPoint
from quorate.run.scores import score


@pytest.fixture(scope="module")
def scored() -> tuple[Any, Any, Any]:
    X, y = make_classification(2_000, n_features=8, weights=[0.94], random_state=1)
    labels = np.array(["no", "readmitted"])[y]
    model = LogisticRegression().fit(X[:1_000], labels[:1_000])
    return (
        score(model, X[1_000:], labels[1_000:], ["no", "readmitted"]),
        model.predict_proba(X[1_000:])[:, 1],
        y[1_000:],
    )


@pytest.mark.heavy
def test_the_first_page_says_of_predictions_what_scikit_learn_does_with_and_without_a_ranking(scored: Any) -> None:
    student, told, truth = scored
    called = told >= student.ranking.in_use.threshold
    for known in (student, replace(student, ranking=None)):  # by recalls and numbers of rows alone
        point, place = rarer(known)
        assert point is not None
        assert place == 1
        assert point.recall == pytest.approx(recall_score(truth, called))
        assert point.precision == pytest.approx(precision_score(truth, called))
        assert point.false_alarms == pytest.approx(called[truth == 0].mean())
    assert rarer(replace(student, ranking=None, recall=(0.9, None)))[0] is None


@pytest.mark.heavy
def test_each_threshold_does_what_the_table_says(scored: Any) -> None:
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
def test_every_edition_says_it(facts: Facts, scored: Any) -> None:
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
def test_no_figure_of_a_threshold_can_change_without_the_page_changing(facts: Facts, scored: Any) -> None:
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


def test_facts_of_an_earlier_version_are_written_as_they_were(facts: Facts) -> None:
    for name in ('"chosen": {', '"ranking"', '"threshold"', '"threshold_class"', '"chosen": null'):
        assert name not in render_json(facts)
    assert "How “" not in render_html(facts)


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [(0.8, 0.7, 0.9, None), (0.55, 0.45, 0.65, "not clearly better"), (0.49, 0.4, 0.6, "the student is no better")],
)
def test_the_verdict_is_by_the_chosen_score(
    facts: Facts, scored: Any, value: float, low: float, high: float, said: Any
) -> None:
    student, *_ = scored
    chosen = ChosenScore(scoring="roc_auc", value=value, low=low, high=high, baseline=0.5)
    told = render_text(replace(facts, utility=replace(facts.utility, student=replace(student, chosen=chosen))))
    assert ("student is" in told) == (said is not None)
    if said is not None:
        assert said in " ".join(told.split())


def test_what_was_expected_is_said_by_the_chosen_score(facts: Facts, scored: Any) -> None:
    student, *_ = scored
    chosen = ChosenScore(scoring="roc_auc", value=0.99, low=0.985, high=0.995, baseline=0.5)
    expected = ExpectedScore(accuracy=0.9, low=0.8, high=0.95, basis="rehearsed on public rows", chosen=chosen)
    told = render_text(replace(facts, utility=replace(facts.utility, student=student, expected=expected)))
    assert "ROC-AUC 0.990 (0.985 to 0.995), rehearsed on public rows; the student is below that range" in " ".join(
        told.split()
    )
