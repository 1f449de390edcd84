"""How each method is told: the places where a report of votes and one of gradient rounds differ, in one class each."""

from __future__ import annotations

from typing import TypeAlias

from quorate.accounting.figures import at_least, at_most, several
from quorate.findings import Outcome
from quorate.plugins import METHODS, located
from quorate.release.charge import MARGINAL_LEVEL, PAIR_SUMS, TARGET_COUNT
from quorate.report import html, sentences
from quorate.report.facts import Facts, Rounds
from quorate.report.findings import Choice
from quorate.report.html import Child, element, join, table
from quorate.report.notation import columns, percent, shortened, visible
from quorate.report.spending import Part

_CLASSES = 5  # classes that get a line of their own
_BAR = 20  # columns of the longest bar


class ByVotes:
    """A run in which teachers voted; its methods are those of each method's class."""

    CHOICE_HEADS: tuple[str, ...] = ("#σ, votes", "#Answers")  # of the table of choices, for what `choice` returns
    COUNTS_ANSWERS = True  # whether classes of single rows were released, so that they can be counted

    def first_figure(self, facts: Facts) -> tuple[str, str]:
        """Name and value of what the run was made of, for the line under the title."""
        return "teachers", f"{facts.setup.n_teachers:,}"

    def last_figure(self, facts: Facts) -> tuple[str, str]:
        """Name and value of what was released, for the same line."""
        return "answers", f"{facts.answers.answered:,}"

    def big_figure(self, facts: Facts) -> tuple[str, str, str]:
        """Name, value and note of the first large figure on composition."""
        answers = facts.spending.answers_left
        return "answers left", "—" if answers is None else f"{answers:,}", "paid for, not yet asked"

    def where_a_unit_goes(self, facts: Facts) -> tuple[str, str]:
        """How one unit's influence is limited, as a term and its explanation."""
        return (
            "Partition",
            f"{several(facts.setup.n_teachers, 'teacher')}; {sentences.where_a_unit_goes(facts)}; "
            + sentences.partition(facts),
        )

    def spending(self, facts: Facts) -> tuple[Child, ...]:
        """Return the table of what was charged for what, and a note."""
        parts, spent = facts.spending.parts, facts.spending.of_run
        return (
            table(
                f"{sentences.charge_of_run(facts)}, divided by purpose. Shares divide one price; they are not "
                "guarantees of their own.",
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

    def model(self, facts: Facts) -> str:
        """Return what the model is, and what it was fitted on."""
        setup, fitted = facts.setup, facts.fitted
        on = f"fitted on {_rows(facts)} and {several(facts.answers.answered, 'released answer')}"
        if fitted is not None and fitted.constant:
            return (
                "The model gives every row the same class: the released answers name fewer than two classes, so "
                f"{setup.student} could not be fitted."
            )
        steps = "" if fitted is None or fitted.name == setup.student else f", as fitted: {fitted.name}"
        return f"The model is {setup.student}, {on}{steps}."

    def counted(self, facts: Facts) -> str:
        """Return what became of what was charged."""
        return sentences.counted(facts.answers)

    def closed(self, facts: Facts) -> str | None:
        """Return why some of it was never used, or None."""
        if not facts.answers.never_asked:
            return None
        return (
            f"{facts.setup.mechanism} was closed before {several(facts.answers.never_asked, 'query')} could be asked: "
            "it may decline only a fixed number of times. Nothing is known of those rows."
        )

    def choice(self, choice: Choice) -> tuple[str, ...]:
        """Return the cells of one row of the table of choices."""
        return (
            "—" if choice.sigma is None else at_least(choice.sigma),
            "—" if choice.n_answers is None else f"{choice.n_answers:,}",
        )

    def models(self, facts: Facts) -> tuple[str, str]:
        """Return the models by name, as a term and its explanation."""
        return "Teacher, student", f"{facts.setup.teacher}, {facts.setup.student}"

    def text_rows(self, facts: Facts, room: int) -> list[tuple[str, str]]:
        """Return the first rows of the table in the terminal."""
        setup, fitted = facts.setup, facts.fitted
        chosen = [] if setup.strategy is None else [("", f"chosen by {setup.strategy}, at most {setup.n_queries:,}")]
        constant = [("student", self.model(facts))] if fitted is not None and fitted.constant else []
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

    def stored(self, facts: Facts, kept: str, rows: str) -> str:
        """Return whether private rows are stored in the model, which lies in files `kept`; `rows`: of the pool."""
        return (
            f"No. The model ({kept}) was fitted on {rows} and released answers alone. {sentences.never_seen(facts)} "
            "Whatever it stores of its training data is public or released, support vectors and neighbours included."
        )

    def card(self, facts: Facts) -> str:
        """Return the first paragraph of the model card, before it is escaped."""
        setup, why = facts.setup, self.closed(facts)
        of_which = f", of which there are {setup.n_public:,},"
        if sentences.draws_pool(facts):
            of_which = (
                ", since there were no public ones: they were drawn from noisy counts of each column, which are part "
                "of the charge, and are not people;"
            )
        return (
            f"{self.model(facts)} {several(setup.n_teachers, 'teacher')} ({setup.teacher}) voted on {_rows(facts)}"
            f"{of_which} and {setup.mechanism} answered: {self.counted(facts)}. {f'{why} ' if why else ''}"
            f"{sentences.never_seen(facts)}"
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
    sigma = part.noise or "—"
    share = f"{percent(part.share)} · {at_most(part.share * spent, 3)}"
    never = f"{part.never_asked:,}"
    return (name, form, sigma, f"{part.reserved:,}", f"{part.asked:,}", f"{part.answered:,}", declined, never, share)


def _rows(facts: Facts) -> str:
    """What rows are called that teachers voted on."""
    return "drawn rows" if sentences.draws_pool(facts) else "public rows"


def _noise(part: Part, noised: str) -> str:
    form = "" if part.form is None else f", {part.form} form"
    counted = {
        MARGINAL_LEVEL: "units on each count of a column",
        PAIR_SUMS: "times a row's squared length on each sum over a pair of columns",
        TARGET_COUNT: "units on each count of targets",
    }
    units = counted.get(part.purpose, f"votes on each {noised}")
    return f"σ = {part.noise} {units}: {part.mechanism}{form}"


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


_STATEMENTS = (
    "The ledger lists statements of coordinates beside them. They release nothing and cost nothing: each is a digest, "
    "by which a run that goes on knows that its rounds are in the same coordinates."
)


class ByRounds:
    """A run that went noisy gradient rounds on the private rows themselves: the direct method."""

    CHOICE_HEADS = ("#Noise on each number",)
    COUNTS_ANSWERS = False

    def first_figure(self, facts: Facts) -> tuple[str, str]:
        return "coordinates", f"{_of(facts).n_coordinates:,}"

    def last_figure(self, facts: Facts) -> tuple[str, str]:
        return "rounds", f"{_of(facts).stored:,}"

    def big_figure(self, _: Facts) -> tuple[str, str, str]:
        return "predictions left", "∞", "the model is published; each is free"

    def where_a_unit_goes(self, facts: Facts) -> tuple[str, str]:
        unit, rounds = facts.setup.unit, _of(facts)
        words = (
            f"in each round one {unit} adds a vector of length {at_most(rounds.clip)} at most; adding or removing one "
            "moves the sum by at most that, replacing one by at most twice that"
        )
        return "Contribution", words

    def spending(self, facts: Facts) -> tuple[Child, ...]:
        rounds, spent = _of(facts), facts.spending.of_run
        from_ = "read" if facts.setup.n_records is None else facts.setup.n_records_from
        known = {"declared": "declared by the owner", "public": "public"}
        source = known.get(from_, "read off the data and treated as public")
        momentum = f"; the momentum of the rounds is {rounds.momentum:g}" if rounds.momentum else ""
        return (
            table(
                f"{sentences.charge_of_run(facts)}: all rounds at once, before the first was drawn.",
                ("Purpose", "Mechanism", "#Noise on each number", "#Paid for", "#Drawn", "#Stored", "#Share of ε"),
                (
                    (
                        join(html.swatch(place), part.purpose),
                        part.mechanism,
                        part.noise or at_least(rounds.noise),
                        f"{part.reserved:,}",
                        f"{part.asked:,}",
                        f"{part.answered:,}",
                        f"{percent(part.share)} · {at_most(part.share * spent, 3)}",
                    )
                    for place, part in enumerate(facts.spending.parts)
                ),
                class_="wide",
            ),
            element("p", f"{several(rounds.n_units, facts.setup.unit)}: {source}{momentum}.", class_="note"),
            element("p", _STATEMENTS, class_="note") if sentences.draws_pool(facts) else None,
        )

    def model(self, facts: Facts) -> str:
        rounds = _of(facts)
        averaged = "later half" if rounds.averaged is None else f"last {100 * rounds.averaged:.0f} %"
        shrunk = " Its weights were then shrunk by the error that the noise is known to leave." if rounds.shrunk else ""
        return (
            f"The model is linear in {rounds.feature_map}; it is the mean over the {averaged} of "
            f"{several(rounds.stored - (rounds.counts or 0), 'noisy gradient round')}.{shrunk}"
        )

    def counted(self, facts: Facts) -> str:
        rounds = _of(facts)
        lost = f", {rounds.interrupted:,} lost when a process ended" if rounds.interrupted else ""
        return f"{several(rounds.rounds, 'round')}: {rounds.stored:,} stored{lost}"

    def closed(self, _: Facts) -> str | None:
        return None

    def choice(self, choice: Choice) -> tuple[str, ...]:
        return ("—" if choice.sigma is None else at_least(choice.sigma),)

    def models(self, facts: Facts) -> tuple[str, str]:
        return "Model", facts.setup.student

    def text_rows(self, facts: Facts, _: int) -> list[tuple[str, str]]:
        rounds, kind = _of(facts), "public coordinate" if _of(facts).ridge else "coordinate"
        adds = f"one {facts.setup.unit} adds {at_most(rounds.clip)} at most"
        return [
            ("rounds", self.counted(facts)),
            ("linear in", f"{rounds.feature_map} · {several(rounds.n_coordinates, kind)}"),
            ("noise", f"{at_least(rounds.noise)} on each number of a round; {adds}"),
        ]

    def stored(self, _: Facts, kept: str, rows: str) -> str:
        return (
            "It learned from the private rows, through sums to which noise was added before they were used. The model "
            f"({kept}) holds weights that follow from those sums and from {rows}; what one unit can change in them is "
            "bounded by the guarantee."
        )

    def card(self, facts: Facts) -> str:
        setup, rounds = facts.setup, _of(facts)
        rows = several(setup.n_public, "public row")
        basis = f"Coordinates and settings follow from {rows} and other public facts alone."
        paired = any(part.purpose == PAIR_SUMS and part.answered for part in facts.spending.parts)
        if sentences.draws_pool(facts):
            basis = (
                "There was no public pool: coordinates follow from rows that were drawn from noisy counts of each "
                "column, which are part of the charge; they are not people."
                + (" They follow from noisy sums over pairs of columns, too, which were charged." if paired else "")
            )
        elif not setup.n_public:
            basis = "Settings follow from public facts alone; there was no public pool."
        counts = ""
        if rounds.counts is not None and rounds.counts_noise is not None:
            counts = (
                f" {several(rounds.counts, 'other round')} counted each {setup.unit} once, with noise of "
                f"{at_least(rounds.counts_noise)} on each count."
            )
        return (
            f"{self.model(facts)} Each round released the sum of what each {setup.unit} adds, cut off at length "
            f"{at_most(rounds.clip)}, with noise of {at_least(rounds.noise)} on each of its numbers.{counts} {basis}"
        )


def _of(facts: Facts) -> Rounds:
    assert facts.rounds is not None  # noqa: S101 - whoever asks has looked
    return facts.rounds


Words: TypeAlias = ByVotes | ByRounds


def words_of(facts: Facts) -> Words:
    """Return how the method of a run is told; a class of another method's inherits from the nearer one of these."""
    words: Words = located(METHODS[facts.by].told)()
    return words
