"""How a report describes a run in which teachers voted."""

from __future__ import annotations

from quorate.accounting.figures import at_least, at_most, several
from quorate.findings import Outcome
from quorate.release.charge import MARGINAL_LEVEL, TARGET_COUNT
from quorate.report import html, sentences
from quorate.report.facts import Facts
from quorate.report.findings import Choice
from quorate.report.html import Child, element, join, table
from quorate.report.notation import columns, percent, shortened, visible
from quorate.report.spending import Part

CHOICE_HEADS: tuple[str, ...] = ("#σ, votes", "#Answers")
COUNTS_ANSWERS = True

_CLASSES = 5  # classes that get a line of their own
_BAR = 20  # columns of the longest bar


def first_figure(facts: Facts) -> tuple[str, str]:
    """Name and number of teachers."""
    return "teachers", f"{facts.setup.n_teachers:,}"


def last_figure(facts: Facts) -> tuple[str, str]:
    """Name and number of answers."""
    return "answers", f"{facts.answers.answered:,}"


def big_figure(facts: Facts) -> tuple[str, str, str]:
    """Answers that are left."""
    answers = facts.spending.answers_left
    return "answers left", "—" if answers is None else f"{answers:,}", "paid for, not yet asked"


def where_a_unit_goes(facts: Facts) -> tuple[str, str]:
    """How units were given to teachers."""
    return (
        "Partition",
        f"{several(facts.setup.n_teachers, 'teacher')}; {sentences.where_a_unit_goes(facts)}; "
        + sentences.partition(facts),
    )


def spending(facts: Facts) -> tuple[Child, ...]:
    """Return where the budget went, by purpose."""
    parts, spent = facts.spending.parts, facts.spending.of_run
    return (
        table(
            f"{sentences.charge_of_run(facts)}, divided by purpose. Shares divide one price; they are not guarantees "
            "of their own.",
            (
                "Purpose",
                "Mechanism",
                "#σ, votes",
                "#Paid for",
                "#Asked",
                "#Answered",
                "#Declined",
                "#Never asked",
                "#Share of ε",
            ),
            (_part(place, part, spent) for place, part in enumerate(parts)),
            class_="wide",
        ),
        element("p", _questions(facts), class_="note"),
    )


def _questions(facts: Facts) -> str:
    setup = facts.setup
    chosen = "" if setup.strategy is None else f", chosen by {setup.strategy}"
    at_most_ = "" if setup.strategy is None else "at most "
    return (
        f"{setup.mechanism}, for {at_most_}{setup.n_queries:,} of the {_rows(facts)}{chosen}, "
        f"with {several(setup.online_answers, 'answer')} kept back for later."
    )


def _part(place: int, part: Part, spent: float) -> tuple[Child, ...]:
    name = join(html.swatch(place), part.purpose)
    form = f"{part.mechanism} ({part.form})" if part.form else part.mechanism
    lost = element("small", f"{part.interrupted:,} interrupted") if part.interrupted else None
    declined = join(f"{part.declined:,}", lost)
    sigma = "—" if part.sigma is None else at_least(part.sigma)
    share = f"{percent(part.share)} · {at_most(part.share * spent, 3)}"
    never = f"{part.never_asked:,}"
    return (name, form, sigma, f"{part.reserved:,}", f"{part.asked:,}", f"{part.answered:,}", declined, never, share)


def _rows(facts: Facts) -> str:
    """What rows are called that teachers voted on."""
    return "drawn rows" if sentences.draws_pool(facts) else "public rows"


def model(facts: Facts) -> str:
    """Return what the student is, and what it was fitted on."""
    setup, fitted = facts.setup, facts.fitted
    on = f"fitted on {_rows(facts)} and {several(facts.answers.answered, 'released answer')}"
    if fitted is not None and fitted.constant:
        return (
            "The model gives every row the same class: the released answers name fewer than two classes, so "
            f"{setup.student} could not be fitted."
        )
    steps = "" if fitted is None or fitted.name == setup.student else f", as fitted: {fitted.name}"
    return f"The model is {setup.student}, {on}{steps}."


def counted(facts: Facts) -> str:
    """Return what became of the queries."""
    return sentences.counted(facts.answers)


def closed(facts: Facts) -> str | None:
    """Return why queries were never asked, or None where all of them were."""
    if not facts.answers.never_asked:
        return None
    return (
        f"{facts.setup.mechanism} was closed before {several(facts.answers.never_asked, 'query')} could be asked: "
        "it may decline only a fixed number of times. Nothing is known of those rows."
    )


def choice(choice: Choice) -> tuple[str, ...]:
    """Return σ in votes, and the number of answers."""
    return (
        "—" if choice.sigma is None else at_least(choice.sigma),
        "—" if choice.n_answers is None else f"{choice.n_answers:,}",
    )


def models(facts: Facts) -> tuple[str, str]:
    """Return teacher and student."""
    return "Teacher, student", f"{facts.setup.teacher}, {facts.setup.student}"


def text_rows(facts: Facts, room: int) -> list[tuple[str, str]]:
    """Return teachers, queries, released classes, noise, and a student that is a constant."""
    setup, fitted = facts.setup, facts.fitted
    chosen = [] if setup.strategy is None else [("", f"chosen by {setup.strategy}, at most {setup.n_queries:,}")]
    constant = [("student", model(facts))] if fitted is not None and fitted.constant else []
    return [
        ("teachers", f"{setup.n_teachers:,} · {sentences.where_a_unit_goes(facts)}"),
        ("queries", sentences.counted(facts.answers, " · ")),
        *chosen,
        *_classes(facts, room),
        *(
            ("noise", _noise(part, "sum" if setup.target_range else part.purpose))
            for part in facts.spending.parts
            if part.sigma is not None
        ),
        *(
            ("own code", " ".join(filter(None, (check.evidence, check.remedy))))
            for check in facts.checks
            if check.code == "noise" and check.outcome is Outcome.NOT_COVERED  # of a mechanism of the owner's own
        ),
        *constant,
    ]


def _noise(part: Part, noised: str) -> str:
    form = "" if part.form is None else f", {part.form} form"
    counted = {MARGINAL_LEVEL: "units on each count of a column", TARGET_COUNT: "units on each count of targets"}
    units = counted.get(part.purpose, f"votes on each {noised}")
    return f"σ = {at_least(part.sigma or 0.0)} {units}: {part.mechanism}{form}"


def _classes(facts: Facts, room: int) -> list[tuple[str, str]]:
    counts = sorted(zip(facts.answers.per_class, facts.setup.classes, strict=True), key=lambda pair: -pair[0])
    if not counts:  # of a number
        return []
    largest, rest = counts[:_CLASSES], counts[_CLASSES:]
    tallest = max(1, largest[0][0])
    digits = max(len(f"{times:,}") for times, _ in largest)
    longest = room - _BAR - digits - 2
    names = [shortened(visible(name), longest) for _, name in largest]
    wide = max(columns(name) for name in names)
    lines = [
        ("", f"{name}{' ' * (wide - columns(name))} {times:>{digits},} {'▪' * -(-_BAR * times // tallest)}".rstrip())
        for name, (times, _) in zip(names, largest, strict=True)
    ]
    if rest:
        lines.append(("", f"and {len(rest):,} more classes: {sum(times for times, _ in rest):,}"))
    return lines


def card(facts: Facts) -> str:
    """Return what the model is, who voted, and what was answered."""
    setup, why = facts.setup, closed(facts)
    of_which = f", of which there are {setup.n_public:,},"
    if sentences.draws_pool(facts):
        of_which = (
            ", since there were no public ones: they were drawn from noisy counts of each column, which are part of "
            "the charge, and are not people;"
        )
    return (
        f"{model(facts)} {several(setup.n_teachers, 'teacher')} ({setup.teacher}) voted on {_rows(facts)}{of_which} "
        f"and {setup.mechanism} answered: {counted(facts)}. {f'{why} ' if why else ''}"
        f"{sentences.never_seen(facts)}"
    )
