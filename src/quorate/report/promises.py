"""The sections on what was promised: the guarantee, the budget, where it went, and the checks of how it was kept.

Their headings are the terms of NIST SP 800-226, *Guidelines for Evaluating Differential Privacy Guarantees* (2025).
"""

from __future__ import annotations

from dataclasses import replace

from quorate.accounting.figures import at_least, at_most
from quorate.findings import Finding, Outcome
from quorate.report import html, sentences
from quorate.report.facts import Facts
from quorate.report.html import Child, Markup, big, element, pairs
from quorate.report.method import words_of
from quorate.report.notation import percent, power_of_ten
from quorate.report.of_numbers import target
from quorate.report.words import Language, subheading
from quorate.stored_names import place_of

OUTCOMES = (
    "Passed and failed: a function looked. By construction: the code has no other way. Not covered: quorate cannot see "
    "it."
)


def at_a_glance(facts: Facts) -> Markup:
    """Return the line of figures over the mechanisms."""
    setup, words, predicted = facts.setup, words_of(facts), target(facts)
    declared = () if setup.n_records is None else ((f"units, {setup.n_records_from}", f"{setup.n_records:,}"),)
    return pairs(
        (
            words.first_figure(facts),
            *declared,
            ("public rows", f"{setup.n_public:,}"),
            ("classes", f"{len(setup.classes):,}") if predicted is None else ("target", predicted),
            words.last_figure(facts),
        ),
        class_="glance",
    )


def guarantee(facts: Facts, language: Language = "en") -> tuple[Child, ...]:
    """Return the sentence, the best attack, and what it does not cover; for a seeded run, that nothing is promised.

    What the first page and the list of limits say is not said again.
    """
    if facts.seeded:
        return (
            element("p", facts.guarantee.promise, class_="promise"),
            element("p", sentences.SEEDED_WHY, class_="odds"),
        )
    missing = element("ul", *(element("li", line) for line in sentences.not_protected(facts)), class_="plain halves")
    return (
        element("p", replace(facts.guarantee, caveats=()).for_reviewer(), class_="reviewer"),
        *_attacker(facts, language),
        subheading(language, "not protected"),
        missing,
    )


def _attacker(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return the trade-off curve with its words; nothing where an earlier version wrote the facts."""
    words = sentences.attacker(facts)
    if words is None or facts.attacker is None:
        return ()
    said, shows = words
    picture = html.trade_off(f"{said} {shows}", facts.attacker)
    caption = element("div", element("p", said), element("p", shows, class_="note"))
    return (subheading(language, "best attack"), element("figure", picture, caption, class_="attacker"))


def unit_and_composition(facts: Facts) -> tuple[Child, ...]:
    """Return the gauge: budget, charged, left; then what the unit is and how charges add up."""
    spending = facts.spending
    left, spent, budget = (
        sentences.epsilon_left(facts),
        at_most(spending.spent_epsilon),
        at_most(spending.budget_epsilon),
    )
    words = words_of(facts)
    added = {"sum": "the ε and δ of all charges add up", "zcdp": "zCDP: the ρ of all charges add up"}
    ex_post = spending.ex_post
    return (
        element(
            "div",
            big(*words.big_figure(facts)),
            big("ε left", left, f"of {budget}; {spent} charged"),
            big(
                "δ left",
                power_of_ten(at_least(spending.left_delta)),
                f"of {sentences.delta_in_tens(spending.budget_delta)}; "
                f"{sentences.delta_in_tens(spending.spent_delta)} charged",
            ),
            class_="bigs",
        ),
        html.gauge(
            f"Charged: ε {spent} of a budget of {budget}; {left} left.",
            spent=spending.spent_epsilon,
            budget=spending.budget_epsilon,
        ),
        element(
            "p",
            element("span", "0"),
            element("span", f"budget ε {budget}{sentences.raised_so_often(facts)}"),
            class_="scale",
        ),
        pairs(
            (
                ("Unit of privacy", facts.setup.unit),
                words.where_a_unit_goes(facts),
                ("Composition", f"{added[spending.composition]}; fixed when the ledger was opened"),
                *(("Budget raised", line) for line in sentences.raises(facts)),
                ("Record", "in a ledger on disk" if spending.durable else "in memory: nothing durable was recorded"),
            )
        ),
        None
        if ex_post is None
        else element(
            "p",
            element("strong", "Read after the fact, not the guarantee: "),
            f"{sentences.bound(ex_post.epsilon, ex_post.delta)}. {ex_post.meaning}",
            class_="apart",
        ),
    )


def mechanisms(facts: Facts) -> tuple[Child, ...]:
    """Return where the budget went, by purpose."""
    parts = facts.spending.parts
    if not parts:
        return (element("p", "Nothing was charged."),)
    said = "; ".join(f"{part.purpose} {percent(part.share)}" for part in parts)
    return (
        at_a_glance(facts),
        html.stacked(f"Share of the ε that this run was charged: {said}.", [part.share for part in parts]),
        *words_of(facts).spending(facts),
    )


_MARKS = {
    Outcome.PASSED: "yes",
    Outcome.FAILED: "no",
    Outcome.BY_CONSTRUCTION: "built",
    Outcome.NOT_COVERED: "open",
    Outcome.NOT_RUN: "open",
}


def implementation(facts: Facts) -> tuple[Child, ...]:
    """Return the checks: each question, how it was answered, what was seen and which function looked."""
    if not facts.checks:
        return (element("p", "No checks were recorded."),)
    items = (
        element(
            "li",
            element("span", str(check.outcome), class_=_MARKS[check.outcome]),
            element("div", element("strong", check.words), " ", element("span", *_evidence(check), class_="meaning")),
            id=f"check-{place}",
        )
        for place, check in enumerate(facts.checks, 1)
    )
    return (
        element("p", OUTCOMES, class_="note"),
        element("ul", *items, class_="checks"),
    )


def _evidence(check: Finding) -> tuple[Child, ...]:
    ran = () if check.ran is None else (" Looked at by ", element("code", place_of(check.ran)), ".")
    return (check.evidence, *ran, *(() if check.remedy is None else (f" {check.remedy}",)))
