"""The sections on what was measured: utility, audit, and how sensitive the choice of ε is."""

from __future__ import annotations

from quorate.report import drawing, sentences
from quorate.report.classes import per_class
from quorate.report.element import Child, element
from quorate.report.facts import Facts
from quorate.report.findings import Audit, Choice, Score
from quorate.report.layout import table
from quorate.report.method import words_of
from quorate.report.notation import at_least, at_most, percent, wilson_interval

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
            ("Labels by", "#Accuracy", "", "#95 % interval", "#Balanced accuracy", "#Rows"),
            (_score(name, score) for name, score in rows),
        )
    words = words_of(facts)
    why = words.closed(facts)
    return (
        element("p", words.model(facts)),
        scores,
        element("p", f"{words.counted(facts)}.", class_="count"),
        None if why is None else element("p", why, class_="note"),
        *per_class(facts),
    )


def _score(name: str, score: Score) -> tuple[Child, ...]:
    low, high = (percent(end) for end in wilson_interval(score.accuracy, score.n_rows))
    balanced = "—" if score.balanced_accuracy is None else percent(score.balanced_accuracy)
    interval = f"{low.removesuffix(' %')} to {high}"
    return (name, percent(score.accuracy), drawing.bar(score.accuracy), interval, balanced, f"{score.n_rows:,}")


def audit(facts: Facts) -> tuple[Child, ...] | None:
    """Return claimed ε beside what attacks prove, or how to measure it, or None where neither can be said."""
    if facts.audit is None:
        if facts.audit_command is None:
            return None
        return (element("p", "Not audited yet. Run ", element("code", facts.audit_command), "."),)
    lines = facts.audit.lines
    longest = max(max(line.claimed_epsilon, line.lower_bound) for line in lines)
    verdict = (
        "What was measured contradicts what was claimed: the guarantee does not hold."
        if facts.audit.violated and not any(line.violated for line in lines)
        else "An attack proves more than was claimed: the guarantee does not hold."
        if facts.audit.violated
        else "No attack proves more than was claimed. An audit can find a fault; it cannot show that there is none."
    )
    return (
        element("p", verdict, class_="verdict" if facts.audit.violated else None),
        table(
            "The bar is the ε that an attack proves, the mark the ε that was claimed.",
            ("Attack", "", "#Claimed ε", "#Proved ε", "#Confidence", "#Trials"),
            (
                (
                    line.attack,
                    drawing.against(
                        f"Measured at least {at_least(line.lower_bound)}, claimed {at_most(line.claimed_epsilon)}.",
                        measured=line.lower_bound,
                        claimed=line.claimed_epsilon,
                        longest=longest,
                    ),
                    at_most(line.claimed_epsilon),
                    at_least(line.lower_bound),
                    percent(line.confidence).replace(".0 %", " %"),
                    f"{line.trials:,}",
                )
                for line in lines
            ),
        ),
        *_comparisons(facts.audit),
    )


def _comparisons(found: Audit) -> tuple[Child, ...]:
    """Return a sparse vector's answers beside their exact distribution; nothing for other mechanisms."""
    if not found.comparisons:
        return ()
    stage = found.stage
    return (
        table(
            "How often the sparse vector gave certain answers to made-up votes, and how often it should give them.",
            ("Answers", "What was counted", "#Observed", "#Expected", "Agrees", "#Confidence", "#Runs"),
            (
                (
                    each.name,
                    each.event,
                    percent(each.observed),
                    percent(each.expected),
                    "no" if each.violated else "yes",
                    percent(each.confidence).replace(".0 %", " %"),
                    f"{each.trials:,}",
                )
                for each in found.comparisons
            ),
        ),
        *(
            ()
            if stage is None
            else (
                element(
                    "p",
                    f"One stage was charged ε = {at_most(stage.claimed_epsilon)}. An exact sum over its noise gives a "
                    f"privacy loss of {at_least(stage.exact_epsilon)}.",
                ),
            )
        ),
    )


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
            f"At δ {sentences.delta_in_tens(facts.guarantee.delta)}, worked out before any private row is seen.",
            ("ε", *words.CHOICE_HEADS, *(("#Expected accuracy", "") if expected else ())),
            rows,
        ),
        *why,
    )


def _expected(choice: Choice) -> tuple[Child, Child]:
    if choice.expected_accuracy is None:
        return "—", ""
    bar = drawing.bar(choice.expected_accuracy, fill="ink-1" if choice.chosen else "ink-3")
    return percent(choice.expected_accuracy), bar
