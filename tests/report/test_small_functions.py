"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from quorate.report.html import element, join
from quorate.report.sentences import (
    answers_in_words,
    bound,
    counted,
    delta_in_tens,
    expectation,
    judged,
    raised,
    scored,
)
from quorate.report.spending import AnswerCounts, BudgetRaise
from quorate.report.student_file import TableColumn
from quorate.report.utility import OperatingPoint, Ranking, Score, Utility


def test_html() -> None:
    assert join("a < b", element("b", 1)) == "a &lt; b<b>1</b>"


def test_sentences() -> None:
    assert (
        counted(AnswerCounts(asked=17, per_class=(4, 3), declined=10, never_asked=983))
        == "17 asked, 7 answered, 10 declined, 983 never asked"
    )
    assert bound(0.99981, 1e-5) == "ε ≤ 0.9999, δ ≤ 1e-5"
    assert (answers_in_words(0), answers_in_words(1), answers_in_words(1_200)) == (
        "no answers",
        "1 answer, already charged",
        "1,200 answers, already charged",
    )
    assert delta_in_tens(1e-5) == "10⁻⁵"
    assert (
        raised(BudgetRaise(time="2026-03-01T09:00:00Z", epsilon=2, delta=1e-5, reason="approved by the board"))
        == "on 2026-03-01T09:00:00Z to ε 2, δ 1e-5; reason: approved by the board"
    )
    assert (
        scored(Score(n_rows=2000, accuracy=0.84, balanced_accuracy=0.76))
        == "accuracy 84.0 % (82.3 to 85.5 %) · balanced 76.0 % · 2,000 rows"
    )
    from quorate.report.utility import ChosenScore

    chosen = ChosenScore(scoring="roc_auc", value=0.79, low=0.75, high=0.83, baseline=0.5)
    assert (
        judged(Score(n_rows=500, accuracy=0.96, chosen=chosen))
        == "ROC-AUC 0.790 (0.750 to 0.830), which is 0.500 for always saying the commonest class"
    )
    from quorate.report.utility import ExpectedScore

    told = ExpectedScore(accuracy=0.84, low=0.82, high=0.86, basis="rehearsed on public rows")
    assert (
        expectation(Utility(student=Score(n_rows=500, accuracy=0.81), expected=told))
        == "accuracy 84.0 % (82.0 to 86.0 %), rehearsed on public rows; the student is below that range"
    )


def test_student_file() -> None:
    assert (
        TableColumn(name="seen", holds="text", read_as="date", type="text").words
        == "dates, such as 2024-03-01 or 2024-03-01T12:30+01:00; without a zone they are in UTC"
    )


def test_utility() -> None:
    point = OperatingPoint(threshold=0.5, flagged=0.5, precision=0.5, recall=0.5, false_alarms=0.5)
    assert (
        Ranking(
            positive=1, roc_auc=0.5, average_precision=0.5, share=0.5, curve=[point], thresholds=[point], in_use=point
        ).positive
        == 1
    )
