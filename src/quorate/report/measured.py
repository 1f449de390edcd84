"""The sections on what was measured: utility, and how sensitive the choice of ε is."""

from __future__ import annotations

from quorate.accounting.figures import at_most
from quorate.report import drawing, sentences
from quorate.report.baseline import balanced, commonest_class, decides, expectation, judged, verdict
from quorate.report.classes import per_class
from quorate.report.element import Child, element
from quorate.report.facts import Facts
from quorate.report.findings import Choice
from quorate.report.layout import table
from quorate.report.method import words_of
from quorate.report.notation import percent, wilson_interval
from quorate.report.ranking import ranking
from quorate.report.utility import Score

PUBLIC_IS_STATED = "That the rows measured on are public, and about nobody in the private table, is the owner's word."


def utility(facts: Facts) -> tuple[Child, ...]:
    """Return how good labels and student are, overall and per class."""
    found = facts.utility
    rows = [
        (name, score)
        for name, score in (
            ("Student", found.student),
            ("Released answers", found.ensemble),
            ("Without privacy", found.non_private),
        )
        if score is not None
    ]
    scores: Child = element("p", "There are no public labels to measure against.")
    if rows:
        scores = table(
            f"Against public labels, with a 95 % interval. {PUBLIC_IS_STATED}"
            + (" The line without privacy is revealed by the owner and not covered." if found.non_private else ""),
            ("Labels by", "#Accuracy", "As a bar", "#95 % interval", "#Balanced accuracy", "#Rows"),
            (*(_score(name, score) for name, score in rows), *_always(facts)),
        )
    words, found_no_better, foreseen = words_of(facts), verdict(found.student), expectation(found)
    judged_by, decided = judged(found.student), decides(facts)
    why = words.closed(facts)
    return (
        element("p", words.model(facts)),
        scores,
        None if judged_by is None else element("p", f"Judged by {judged_by}.", class_="count"),
        None if decided is None else element("p", f"{decided}.", class_="count"),
        None
        if found_no_better is None
        else element("p", f"Beside always saying the commonest class, {found_no_better}.", class_="verdict count"),
        None if foreseen is None else element("p", f"Expected before anything was spent: {foreseen}.", class_="count"),
        element("p", f"{words.counted(facts)}.", class_="count"),
        None if why is None else element("p", why, class_="note"),
        *per_class(facts),
        *ranking(facts),
    )


def _score(name: str, score: Score) -> tuple[Child, ...]:
    low, high = (percent(end) for end in wilson_interval(score.accuracy, score.n_rows))
    balanced = "—" if score.balanced_accuracy is None else percent(score.balanced_accuracy)
    interval = f"{low.removesuffix(' %')} to {high}"
    return (name, percent(score.accuracy), drawing.bar(score.accuracy), interval, balanced, f"{score.n_rows:,}")


def _always(facts: Facts) -> tuple[tuple[Child, ...], ...]:
    """Return the line of always saying the commonest class of the rows that the student was scored on."""
    score = facts.utility.student
    name = commonest_class(facts, score)
    if name is None or score is None or score.commonest is None:
        return ()
    line = f"Always “{name}”", percent(score.commonest), drawing.bar(score.commonest, fill="ink-3")
    return ((*line, "—", percent(balanced(score)), f"{score.n_rows:,}"),)


def sensitivity(facts: Facts) -> tuple[Child, ...]:
    """Return what other values of ε would have bought, and why the settings are what they are."""
    recipe, words = facts.setup.recipe, words_of(facts)
    why = (
        (element("h3", "Why these settings"), element("ul", *(element("li", r) for r in recipe), class_="plain"))
        if recipe
        else ()
    )
    if not facts.choices:
        return (element("p", "No other values of ε were worked out."), *why)
    delta = facts.guarantee.delta if facts.spending.run_delta is None else facts.spending.run_delta
    expected = any(choice.expected_accuracy is not None for choice in facts.choices)
    rows = (
        (
            element("strong", f"{at_most(c.epsilon)} — this run") if c.chosen else at_most(c.epsilon),
            *words.choice(c),
            *(_expected(c) if expected else ()),
        )
        for c in facts.choices
    )
    return (
        table(
            f"At δ {sentences.delta_in_tens(delta)}, worked out before any private row is seen.",
            ("ε", *words.CHOICE_HEADS, *(("#Expected accuracy", "As a bar") if expected else ())),
            rows,
        ),
        *why,
    )


def _expected(choice: Choice) -> tuple[Child, Child]:
    if choice.expected_accuracy is None:
        return "—", ""
    bar = drawing.bar(choice.expected_accuracy, fill="ink-1" if choice.chosen else "ink-3")
    return percent(choice.expected_accuracy), bar
