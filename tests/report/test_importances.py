"""Which columns a published model looks at: told of public rows, in short, and never at the cost of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from quorate.report import Facts, Fitted, render_html
from quorate.run.scores import COLUMNS, SHOWN_COLUMNS, most_important, with_importances

RNG = np.random.default_rng(4)


def fitted(width: int) -> tuple[LogisticRegression, Any]:
    rows = RNG.normal(size=(300, width))
    return LogisticRegression().fit(rows, rows[:, 2] > 0), rows


def test_the_column_that_decides_comes_first_and_few_are_listed() -> None:
    listed = most_important(*fitted(COLUMNS))
    assert listed is not None
    assert (listed[0].column, len(listed)) == ("2", SHOWN_COLUMNS)
    assert listed[0].moved > 5 * listed[1].moved


@pytest.mark.parametrize("width", [1, COLUMNS + 1])
def test_one_column_or_a_great_many_are_not_listed(width: int) -> None:
    rows = RNG.normal(size=(50, width))
    assert most_important(LogisticRegression().fit(rows, rows[:, 0] > 0), rows) is None


def test_a_model_that_fails_here_costs_nothing_that_was_paid_for() -> None:
    class Fails(LogisticRegression):
        def predict_proba(self, X: Any) -> Any:
            raise MemoryError

    _, rows = fitted(3)
    assert most_important(Fails(), rows) is None
    assert most_important(object(), rows) is None


def test_a_report_lists_columns_where_they_were_worked_out(facts: Facts) -> None:
    model, rows = fitted(4)
    made = with_importances(facts, most_important(model, rows))
    page = render_html(made)
    assert "Which columns the model looks at" in page
    listed = page[page.index("Which columns the model looks at") :]
    assert listed.index(">2</") < listed.index(">0</")
    assert Facts.from_json(made.to_json()) == made
    assert "Which columns" not in render_html(facts)
    constant = replace(facts, fitted=Fitted(name="DummyClassifier", constant=True))
    assert with_importances(constant, most_important(model, rows)) == constant
