"""The model card says what the report says."""

from __future__ import annotations

from dataclasses import replace

from quorate.report import AnswerCounts, Fitted, Utility, model_card

HEADINGS = [
    "# Readmission within 30 days",
    "## The model",
    "## Privacy guarantee",
    "## What the guarantee does not cover",
    "## Utility",
    "## Intended use and limits",
    "## Provenance",
]


def headings(card: str) -> list[str]:
    return [line for line in card.splitlines() if line.startswith("#")]


def test_the_card_has_its_headings_in_order(facts):
    assert headings(model_card(facts)) == HEADINGS


def test_its_figures_are_those_of_the_facts(facts):
    card = model_card(facts)

    for words in ("251 teachers", "4,013", "1,037 asked, 1,037 answered, 0 declined, 0 never asked",
                  "at most 0\\.9988", "at most 1e\\-5", "731 of 1,000", "84.0 %",
                  "76.1 %", "82.3 % to 85.5 %", "2,003", "20,011", facts.provenance.ledger_head):  # fmt: skip
        assert words.replace("\\.", ".") in card.replace("\\.", "."), words


def test_it_names_the_student_that_was_fitted(facts):
    other = replace(facts, setup=replace(facts.setup, student="AdaBoostClassifier"))
    card = model_card(replace(other, fitted=Fitted(name="StandardScaler → AdaBoostClassifier")))

    assert "The model is AdaBoostClassifier, fitted on public rows and 1,037 released answers, as fitted: " in card
    assert "StandardScaler → AdaBoostClassifier" in card
    assert "LogisticRegression" not in card


def test_a_student_that_could_not_be_fitted_is_not_called_by_its_name_alone(facts):
    closed = AnswerCounts(asked=10, per_class=(0, 0), declined=10, never_asked=1027)
    card = model_card(replace(facts, answers=closed, fitted=Fitted(name="DummyClassifier", constant=True)))

    assert "The model gives every row the same class" in card
    assert "10 asked, 0 answered, 10 declined, 1,027 never asked" in card
    assert "was closed before 1,027 queries could be asked" in card


def test_names_cannot_write_markdown_or_html(facts):
    hostile = "<script>x</script> | [a](javascript:b) `c` **d** \n# e"
    setup = replace(facts.setup, classes=(hostile, "b"), student=hostile)
    card = model_card(replace(facts, setup=setup, provenance=replace(facts.provenance, registry=((hostile, hostile),))))

    assert "<script" not in card.replace("\\<script", "")
    assert "](javascript" not in card
    assert headings(card) == HEADINGS
    rows = [line for line in card.splitlines() if line.startswith("|")]
    assert all(row.replace("\\|", "").count("|") in {3, 6} for row in rows)


def test_a_hundred_classes_stay_a_card(runs):
    assert "and 70 more" in model_card(runs.many_classes(100))


def test_a_seeded_run_is_stamped_and_promises_nothing(facts, runs):
    card = model_card(runs.seeded(facts))

    assert card.count("eproducible, therefore not private") >= 3
    assert "1,000 pairs of equally likely" not in card


def test_without_public_labels_the_card_says_so(facts):
    assert "no public labels" in model_card(replace(facts, utility=Utility()))
