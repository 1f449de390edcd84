"""The model card says what the report says."""

from __future__ import annotations

from dataclasses import replace

from quorate.report import Utility, model_card

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

    for words in ("251 teachers", "1,037 of 4,013", "at most 0\\.9988", "at most 1e\\-5", "at most 731 apart", "84.0 %",
                  "76.1 %", "82.3 % to 85.5 %", "2,003", "20,011", facts.provenance.ledger_head):  # fmt: skip
        assert words.replace("\\.", ".") in card.replace("\\.", "."), words


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
    assert "1,000 equally likely" not in card


def test_without_public_labels_the_card_says_so(facts):
    assert "no public labels" in model_card(replace(facts, utility=Utility()))
