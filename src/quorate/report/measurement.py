"""The sections on what was measured: utility, also per class; how sensitive the choice of ε is; and the audit.

Figures per class are small multiples: a table while it can be read, a grid of cells beyond that. The section on the
audit sets claimed beside proved and answers beside their distribution, and says what would have been found.
A model of two classes also has its ROC and precision–recall curves, and what each threshold does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.accounting.figures import at_least, at_most
from quorate.report import html, of_numbers, sentences
from quorate.report.facts import Facts
from quorate.report.findings import Audit, Choice, FaultSize, FaultSizes
from quorate.report.html import Child, Markup, element, join, table
from quorate.report.method import words_of
from quorate.report.notation import percent, shortened, visible, wilson_interval
from quorate.report.sentences import about_the_model, balanced, commonest_class
from quorate.report.utility import OperatingPoint, Score, Utility
from quorate.report.words import Language, subheading

_NAME, _UNSCORED = 40, "There are no public labels to measure against."  # columns of a class name; without a score
TABLE_CLASSES = 12  #: up to so many classes are shown as the rows of a table
GRID_CLASSES = 120  #: up to so many as cells of a grid; the rest are in the JSON
RELEASED = "Released answers, noise included: not prevalence"
NAME_COLUMNS = 80  #: what is shown of a class name
PUBLIC_IS_STATED = "That the rows measured on are public, and about nobody in the private table, is the owner's word."


def ranking(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return two curves and a table of thresholds; nothing where the student was not scored, or has more classes."""
    student = facts.utility.student
    if student is None or student.ranking is None:
        return ()
    curves = student.ranking
    name = shortened(visible(facts.setup.classes[curves.positive]), _NAME)
    curve = curves.curve
    roc = (
        f"ROC curve: of the rows that are “{name}”, the share that is flagged (upwards), by the share of the other "
        f"rows that is flagged (to the right). Area {curves.roc_auc:.3f}; 0.5 by chance."
    )
    precision = (
        f"Precision–recall curve: of the flagged rows, the share that is “{name}” (upwards), by the share of those "
        f"rows that is flagged (to the right). Average precision {curves.average_precision:.3f}; "
        f"{curves.share:.3f} by chance."
    )
    chosen = "" if curves.positive else f", with the share of “{name}” declared in [data] class_shares"
    return (
        subheading(language, "found", name=name),
        element(
            "div",
            _figure(
                roc,
                html.unit_square(
                    roc, [(0.0, 0.0), *((p.false_alarms, p.recall) for p in curve), (1.0, 1.0)], chance=((0, 0), (1, 1))
                ),
            ),
            _figure(
                precision,
                html.unit_square(
                    precision, [(p.recall, p.precision) for p in curve], chance=((0, curves.share), (1, curves.share))
                ),
            ),
            class_="curves",
        ),
        table(
            f"What each threshold does: a row is flagged as “{name}” from that probability on. "
            f"{percent(curves.share)} of these rows are. [student] decision_threshold takes such a number{chosen}.",
            ("Threshold", "#Flagged", "#Precision", "#Recall", "#False alarms"),
            (
                *(_row(f"{point.threshold:.3g}", point) for point in curves.thresholds),
                _row(element("strong", f"{curves.in_use.threshold:.3g} — this model"), curves.in_use),
            ),
        ),
    )


def reliability(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return a diagram of shares beside probabilities, whose figures are not printed; nothing where there is none."""
    student = facts.utility.student
    if student is None or student.reliability is None:
        return ()
    measured, place = student.reliability, student.reliability.positive
    what = "the predicted class" if place is None else f"“{shortened(visible(facts.setup.classes[place]), _NAME)}”"
    words = (
        f"Reliability diagram: of rows with about the same probability of {what} (to the right), the share that is of "
        "it (upwards). On the dashed line probabilities mean what they say; below it they are too high."
    )
    points = [(group.probability, group.share) for group in measured.groups]
    picture = html.unit_square(words, points, chance=((0, 0), (1, 1)), dots=True)
    return (
        subheading(language, "probabilities"),
        element("p", about_the_model(facts)["reliable"], class_="count"),
        element("div", _figure(words, picture), class_="curves"),
        element(
            "details",
            element("summary", "The figures of this diagram"),
            table(
                f"Rows in the order of their probability of {what}, in groups of about as many.",
                ("Mean probability", "#Share that is", "#Rows"),
                ((f"{group.probability:.3f}", f"{group.share:.3f}", f"{group.n_rows:,}") for group in measured.groups),
            ),
            class_="figures",
        ),
    )


def _figure(words: str, picture: Child) -> Child:
    return element("figure", picture, element("figcaption", words, class_="note"))


def _row(threshold: Child, point: OperatingPoint) -> tuple[Child, ...]:
    precision = percent(point.precision) if point.flagged else "—"
    return threshold, percent(point.flagged), precision, percent(point.recall), percent(point.false_alarms)


def per_class(facts: Facts) -> Iterable[Child]:
    """Return released answers and recalls for each class; nothing where there is neither."""
    n_classes = len(facts.setup.classes)
    if not n_classes or (facts.utility == Utility() and not words_of(facts).COUNTS_ANSWERS):
        return ()
    if n_classes <= TABLE_CLASSES:
        return (_rows(facts),)
    more, counts = n_classes - GRID_CLASSES, words_of(facts).COUNTS_ANSWERS
    return (
        element("p", f"Per class: recall of the student.{f' {RELEASED}.' if counts else ''}", class_="note"),
        element("ul", *(_cell(facts, c) for c in range(min(n_classes, GRID_CLASSES))), class_="grid"),
        element("p", f"and {more:,} more classes, in the JSON edition.", class_="note") if more > 0 else None,
    )


def _rows(facts: Facts) -> Markup:
    columns = [
        (head, score.recall)
        for head, score in (
            ("Recall of the student", facts.utility.student),
            ("of released answers", facts.utility.ensemble),
            ("without privacy", facts.utility.non_private),
        )
        if score is not None and score.recall
    ]
    counts = facts.answers.per_class
    total = max(1, facts.answers.answered)
    with_counts = words_of(facts).COUNTS_ANSWERS
    return table(
        "Per class. A recall is the share of a class that is labelled right.",
        ("Class", *((RELEASED,) if with_counts else ()), *(head for head, _ in columns)),
        (
            (
                shortened(name, NAME_COLUMNS),
                *((_measured(counts[c] / total, f"{counts[c]:,}", "ink-3"),) if with_counts else ()),
                *(_recall(recall[c]) for _, recall in columns),
            )
            for c, name in enumerate(facts.setup.classes)
        ),
        class_="multiples",
    )


def _measured(share: float, figure: str, fill: str) -> Markup:
    return join(html.bar(share, fill=fill), element("span", figure, class_="at"))


def _recall(recall: float | None) -> Child:
    return "no rows" if recall is None else _measured(recall, percent(recall), "ink-1")


def _cell(facts: Facts, c: int) -> Markup:
    student = facts.utility.student
    measured = student is not None and bool(student.recall)
    recall = student.recall[c] if student is not None and measured else None
    figures = (percent(recall) if recall is not None else "no rows",) if measured else ()
    released = (f"{facts.answers.per_class[c]:,}",) if words_of(facts).COUNTS_ANSWERS else ()
    return element(
        "li",
        element("span", shortened(facts.setup.classes[c], 24), class_="name"),
        html.bar(recall or 0.0) if measured else None,
        element("span", " · ".join((*figures, *released)), class_="at"),
    )


def utility(facts: Facts, language: Language = "en") -> tuple[Child, ...]:
    """Return how good labels and student are, overall and per class."""
    measured = facts.utility
    rows = [
        (name, score)
        for name, score in (
            ("Student", measured.student),
            ("Released answers", measured.ensemble),
            ("Without privacy", measured.non_private),
        )
        if score is not None
    ]
    scores: Child = of_numbers.section(facts, PUBLIC_IS_STATED) or element("p", _UNSCORED)
    if rows:
        scores = table(
            f"Against public labels, with a 95 % interval. {PUBLIC_IS_STATED}"
            + (" The line without privacy is revealed by the owner and not covered." if measured.non_private else ""),
            ("Labels by", "#Accuracy", "As a bar", "#95 % interval", "#Balanced accuracy", "#Rows"),
            (*(_score(name, score) for name, score in rows), *_always(facts)),
        )
    words, said = words_of(facts), about_the_model(facts)
    why = words.closed(facts)
    return (
        element("p", words.model(facts)),
        scores,
        *(
            element("p", sentence, class_="verdict count" if key == "verdict" else "count")
            for key, sentence in said.items()
            if key != "reliable"  # stands by its picture
        ),
        element("p", f"{words.counted(facts)}.", class_="count"),
        None if why is None else element("p", why, class_="note"),
        *per_class(facts),
        *ranking(facts, language),
        *reliability(facts, language),
        *importances(facts, language),
    )


def importances(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return which columns the model looks at most, with bars; nothing where that was not worked out."""
    listed = None if facts.fitted is None else facts.fitted.importances
    if not listed:
        return ()
    return (
        subheading(language, "importances"),
        table(
            "How much probability moves to other classes, on average over public rows, where the entries of one column "
            "change places among them. Columns that say the same share what they are worth.",
            ("Column", "#Probability that moves", "As a bar"),
            (
                (shortened(visible(item.column), NAME_COLUMNS), percent(item.moved), html.bar(item.moved))
                for item in listed
            ),
        ),
    )


def _score(name: str, score: Score) -> tuple[Child, ...]:
    low, high = (percent(end) for end in wilson_interval(score.accuracy, score.n_rows))
    balanced = "—" if score.balanced_accuracy is None else percent(score.balanced_accuracy)
    interval = f"{low.removesuffix(' %')} to {high}"
    return (name, percent(score.accuracy), html.bar(score.accuracy), interval, balanced, f"{score.n_rows:,}")


def _always(facts: Facts) -> tuple[tuple[Child, ...], ...]:
    """Return the line of always saying the commonest class of the rows that the student was scored on."""
    score = facts.utility.student
    name = commonest_class(facts, score)
    if name is None or score is None or score.commonest is None:
        return ()
    line = f"Always “{name}”", percent(score.commonest), html.bar(score.commonest, fill="ink-3")
    return ((*line, "—", percent(balanced(score)), f"{score.n_rows:,}"),)


def sensitivity(facts: Facts, language: Language = "en") -> tuple[Child, ...]:
    """Return what other values of ε would have bought, and why the settings are what they are."""
    recipe, words = facts.setup.recipe, words_of(facts)
    why = (
        (subheading(language, "settings"), element("ul", *(element("li", r) for r in recipe), class_="plain"))
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
    bar = html.bar(choice.expected_accuracy, fill="ink-1" if choice.chosen else "ink-3")
    return percent(choice.expected_accuracy), bar


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
            ("Attack", "As a bar", "#Claimed ε", "#Proved ε", "#Confidence", "#Trials"),
            (
                (
                    line.attack,
                    html.against(
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
        *(element("p", sentence) for sentence in sight_sentences(facts.audit.sees, facts.audit.does_not_see)),
        *_sizes(facts.audit),
    )


def _comparisons(audit: Audit) -> tuple[Child, ...]:
    """Return how often answers came beside how often they should, if that was compared."""
    if not audit.comparisons:
        return ()
    stage = audit.stage
    return (
        table(
            "How often certain answers or noise came on made-up data, and how often they should.",
            ("Answers", "What was counted", "#Observed", "#Expected", "Agrees", "#Confidence", "#Runs"),
            (
                (
                    comparison.name,
                    comparison.event,
                    percent(comparison.observed),
                    percent(comparison.expected),
                    "no" if comparison.violated else "yes",
                    percent(comparison.confidence).replace(".0 %", " %"),
                    f"{comparison.trials:,}",
                )
                for comparison in audit.comparisons
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


def _sizes(audit: Audit) -> tuple[Child, ...]:
    """Return how small a fault would have been found; nothing where an earlier version wrote the facts."""
    if audit.sizes is None:
        return ()
    return (element("p", " ".join(size_sentences(audit.sizes))),)


def sight_sentences(sees: Sequence[str], does_not_see: Sequence[str]) -> tuple[str, ...]:
    """Say which kinds of fault an audit looked for, and which it did not.

    Examples
    --------
    >>> sight_sentences(["noise that is missing"], ["votes that are counted wrongly"])
    ('It would see: noise that is missing.', 'It cannot see: votes that are counted wrongly.')
    """
    said = (("It would see", sees), ("It cannot see", does_not_see))
    return tuple(f"{begin}: {'; '.join(kinds)}." for begin, kinds in said if kinds)


def size_sentences(sizes: FaultSizes) -> tuple[str, ...]:
    """Return sentences on how small a fault an audit would have found."""
    if not sizes.faults or sizes.certainty is None:
        return ("No size was measured for this mechanism, so it is not known how small a fault this audit would find.",)
    measured = (
        "Such sizes are measured beforehand, on copies of the mechanism that have the fault, with confidence "
        f"{percent(sizes.certainty).replace('.0 %', ' %')}."
    )
    if sizes.elsewhere is None:
        return (*(_said(size, "At these runs", "would have been") for size in sizes.faults), measured)
    unknown = "No size was measured at the setting of this audit, so it is not known how small a fault it would find."
    return (
        f"{unknown} Sizes were measured at another setting: {sizes.elsewhere}.",
        *(_said(size, "There", "is") for size in sizes.faults),
        measured,
    )


def _said(size: FaultSize, where: str, verb: str) -> str:
    often = f"with probability {at_least(size.probability)} or more ({size.attack})"
    if size.found:
        return f"{where}, {size.fault} {verb} found {often}."
    return f"{where}, not even {size.fault} is known to be found {often}."
