"""The reliability diagram: shares beside probabilities as scikit-learn counts them, in every edition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from quorate.report import Facts, model_card, render_html, render_json
from quorate.run.scores import score


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
def test_groups_and_error_are_those_of_scikit_learn(power: float) -> None:
    rows, labels = of_two(2_000, power=power)
    measured = score(Said(["no", "yes"]), rows, labels, ["no", "yes"], shares=(0.6, 0.4)).reliability
    share, probability = calibration_curve(labels == "yes", rows[:, 1], n_bins=10, strategy="quantile")
    assert measured is not None
    assert measured.positive == 1
    assert [group.n_rows for group in measured.groups] == [200] * 10
    np.testing.assert_allclose([group.share for group in measured.groups], share, atol=0.006)  # ends of its bins
    np.testing.assert_allclose([group.probability for group in measured.groups], probability, atol=0.006)
    assert measured.error == pytest.approx(np.abs(share - probability).mean(), abs=2e-3)
    assert (measured.error > 0.2) == (power == 3.0)


@pytest.mark.heavy
def test_chance_is_the_error_that_right_probabilities_have() -> None:
    drawn = [score(Said(["no", "yes"]), *of_two(2_000, seed=seed), ["no", "yes"]).reliability for seed in range(40)]
    errors = [measured.error for measured in drawn if measured is not None]
    assert len(errors) == 40
    assert drawn[0] is not None
    assert np.mean(errors) == pytest.approx(drawn[0].by_chance, rel=0.15)


def test_of_more_classes_it_is_the_predicted_one_and_few_rows_or_one_probability_are_no_error() -> None:
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(3), 500)
    labels = np.array([rng.choice(list("abc"), p=row) for row in rows])
    measured = score(Said(list("abc")), rows, labels, list("abc")).reliability
    assert measured is not None
    assert (measured.positive, len(measured.groups)) == (None, 10)
    said = sum(group.probability * group.n_rows for group in measured.groups) / 500
    assert said == pytest.approx(rows.max(axis=1).mean())
    assert measured.error < 0.1
    assert score(Said(list("abc")), rows[:19], labels[:19], list("abc")).reliability is None
    same = score(Said(["no", "yes"]), np.full((90, 2), 0.5), ["yes"] * 30 + ["no"] * 60, ["no", "yes"]).reliability
    assert same is not None
    assert [(group.n_rows, group.share) for group in same.groups] == [(90, 1 / 3)]


def test_every_edition_says_it_and_no_figure_changes_without_the_page(facts: Facts) -> None:
    rows, labels = of_two(400, power=2.0)
    student = score(Said(["no", "yes"]), rows, labels, ["no", "yes"])

    def edition(**changes: Any) -> Facts:
        assert student.reliability is not None
        shown = replace(student, reliability=replace(student.reliability, **changes))
        return replace(facts, utility=replace(facts.utility, student=shown))

    assert student.reliability is not None
    page, card = render_html(edition()), model_card(edition())
    said = f"robabilities are off by {student.reliability.error:.3f} on average (expected calibration error)"
    assert said in page
    assert said in card.replace("\\", "")
    for group in student.reliability.groups:  # what the picture shows can be read
        assert f"{group.probability:.3f}" in page
        assert f"{group.share:.3f}" in page
    assert "On the dashed line probabilities mean what they say" in page
    assert Facts.from_json(render_json(edition())) == edition()
    assert "How far probabilities" not in render_html(facts)
    assert '"reliability"' not in render_json(facts)

    first, *rest = student.reliability.groups
    for change in ({"probability": 0.4321}, {"share": 0.4321}, {"n_rows": 77}):
        other = render_html(edition(groups=(replace(first, **change), *rest))).partition("application/json")[0]
        assert other != page.partition("application/json")[0]
