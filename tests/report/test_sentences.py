"""Every score stands beside always saying the commonest class, and says where it is no better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.errors import InvalidParameter
from quorate.report import ExpectedScore, Facts, Score, model_card, render_html, render_json, render_text
from quorate.report.sentences import answers_in_words, baseline, bound, delta_in_tens, judged, raised, verdict
from quorate.report.spending import BudgetRaise
from quorate.report.utility import ChosenScore


@pytest.fixture
def scored(facts: Facts) -> Any:
    """The facts of a run with a score of two thousand rows, of which so many are of the first class."""

    def make(accuracy: float, first: int = 1_500) -> Facts:
        n = len(facts.setup.classes)
        counts = (first, 2_000 - first) + (0,) * (n - 2)
        score = Score(n_rows=2_000, accuracy=accuracy, recall=(0.9, 0.6) + (None,) * (n - 2), class_rows=counts)
        return replace(facts, utility=replace(facts.utility, student=score))

    return make


def test_the_commonest_class_is_named_with_its_share_in_every_edition(scored: Any) -> None:
    facts = scored(0.9)
    name = facts.setup.classes[0]
    assert f"baseline    accuracy 75.0 % by always saying {name}, the commonest class\n" in render_text(facts)
    assert "75.0 %" in render_html(facts)
    assert f"Always “{name}”" in render_html(facts)
    assert "the commonest class | 75" in model_card(facts).replace("\\", "")
    assert '"commonest": 0.75' in render_json(facts)
    second = scored(0.9, first=400)
    assert baseline(second, second.utility.student) == (
        f"accuracy 80.0 % by always saying {facts.setup.classes[1]}, the commonest class"
    )


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.80, None), (0.765, "the student is not clearly better"), (0.75, "the student is no better"),
     (0.4, "the student is no better")],
)  # fmt: skip
def test_a_student_at_or_below_the_commonest_class_is_said_to_be(
    scored: Any, accuracy: float, said: str | None
) -> None:
    facts = scored(accuracy)
    assert verdict(facts.utility.student) == said
    for edition in (render_text(facts).replace("\n            ", " "), render_html(facts), model_card(facts)):
        assert (said in edition) if said else ("the student is no" not in edition)


def test_without_labels_of_public_rows_nothing_is_made_up(facts: Facts) -> None:
    score = Score(n_rows=10, accuracy=0.5)
    assert (score.commonest, verdict(score), baseline(facts, score), baseline(facts, None)) == (None, None, None, None)
    assert "baseline" not in render_text(replace(facts, utility=replace(facts.utility, student=score)))


def test_facts_of_an_earlier_version_get_it_from_their_counts_and_a_wrong_one_is_refused() -> None:
    tree = {"n_rows": 10, "accuracy": 0.5, "recall": [0.5, 0.5], "class_rows": [4, 6]}
    assert Score(**tree).commonest == 0.6
    with pytest.raises(InvalidParameter, match="commonest is the largest share"):
        Score(**tree, commonest=0.7)


def test_what_was_expected_stands_beside_what_came(scored: Any) -> None:
    facts = scored(0.9)
    told = ExpectedScore(accuracy=0.95, low=0.93, high=0.97, basis="rehearsed on public rows")
    facts = replace(facts, utility=replace(facts.utility, expected=told))
    words = "accuracy 95.0 % (93.0 to 97.0 %), rehearsed on public rows; the student is below that range"
    assert f"expected {words}" in " ".join(render_text(facts).split())
    for edition in (render_html(facts), model_card(facts).replace("\\", "")):
        assert f"Expected before anything was spent: {words}." in edition
    assert '"basis": "rehearsed on public rows"' in render_json(facts)
    with pytest.raises(InvalidParameter, match="lies in its range"):
        ExpectedScore(accuracy=0.9, low=0.93, high=0.97, basis="rehearsed")


def test_numbers_stand_in_their_sentences() -> None:
    assert bound(0.99981, 1e-5) == "ε ≤ 0.9999, δ ≤ 1e-5"
    answers = "1,200 answers, already charged"
    assert [answers_in_words(n) for n in (0, 1, 1_200)] == ["no answers", "1 answer, already charged", answers]
    assert delta_in_tens(1e-5) == "10⁻⁵"
    raise_ = BudgetRaise(time="2026-03-01T09:00:00Z", epsilon=2, delta=1e-5, reason="approved by the board")
    assert raised(raise_) == "on 2026-03-01T09:00:00Z to ε 2, δ 1e-5; reason: approved by the board"


def test_a_run_is_judged_by_the_score_that_was_chosen() -> None:
    chosen = ChosenScore(scoring="roc_auc", value=0.79, low=0.75, high=0.83, baseline=0.5)
    words = "ROC-AUC 0.790 (0.750 to 0.830), which is 0.500 for always saying the commonest class"
    assert judged(Score(n_rows=500, accuracy=0.96, chosen=chosen)) == words
