"""How a run is told that went noisy gradient rounds on the private rows themselves: the direct method."""

from __future__ import annotations

from quorate.accounting.figures import at_least, at_most, several
from quorate.report import html, sentences
from quorate.report.facts import Facts, Rounds
from quorate.report.findings import Choice
from quorate.report.html import Child, element, join, table
from quorate.report.notation import percent

CHOICE_HEADS: tuple[str, ...] = ("#Noise on each number",)
COUNTS_ANSWERS = False


def first_figure(facts: Facts) -> tuple[str, str]:
    """Name and number of coordinates."""
    return "coordinates", f"{_of(facts).n_coordinates:,}"


def last_figure(facts: Facts) -> tuple[str, str]:
    """Name and number of rounds."""
    return "rounds", f"{_of(facts).stored:,}"


def big_figure(_: Facts) -> tuple[str, str, str]:
    """Every prediction is free."""
    return "predictions left", "∞", "the model is published; each is free"


def where_a_unit_goes(facts: Facts) -> tuple[str, str]:
    """How far one unit moves a sum."""
    unit, rounds = facts.setup.unit, _of(facts)
    words = (
        f"in each round one {unit} adds a vector of length {at_most(rounds.clip)} at most; adding or removing one "
        "moves the sum by at most that, replacing one by at most twice that"
    )
    return "Contribution", words


def spending(facts: Facts) -> tuple[Child, ...]:
    """Return what the rounds cost."""
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
                    at_least(rounds.noise if part.sigma is None else part.sigma),
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
    )


def model(facts: Facts) -> str:
    """Return what the model is, and what it rests on."""
    rounds = _of(facts)
    averaged = "later half" if rounds.averaged is None else f"last {100 * rounds.averaged:.0f} %"
    shrunk = " Its weights were then shrunk by the error that the noise is known to leave." if rounds.shrunk else ""
    return (
        f"The model is linear in {rounds.feature_map}; it is the mean over the {averaged} of "
        f"{several(rounds.stored - (rounds.counts or 0), 'noisy gradient round')}.{shrunk}"
    )


def counted(facts: Facts) -> str:
    """Return what became of the rounds."""
    rounds = _of(facts)
    lost = f", {rounds.interrupted:,} lost when a process ended" if rounds.interrupted else ""
    return f"{several(rounds.rounds, 'round')}: {rounds.stored:,} stored{lost}"


def closed(_: Facts) -> str | None:
    """Return nothing: rounds are all gone."""
    return None


def choice(choice: Choice) -> tuple[str, ...]:
    """Return the noise on each number of a round."""
    return ("—" if choice.sigma is None else at_least(choice.sigma),)


def models(facts: Facts) -> tuple[str, str]:
    """Return the steps of the model."""
    return "Model", facts.setup.student


def text_rows(facts: Facts, _: int) -> list[tuple[str, str]]:
    """Return the rounds, the coordinates and the noise."""
    rounds, kind = _of(facts), "public coordinate" if _of(facts).ridge else "coordinate"
    adds = f"one {facts.setup.unit} adds {at_most(rounds.clip)} at most"
    return [
        ("rounds", counted(facts)),
        ("linear in", f"{rounds.feature_map} · {several(rounds.n_coordinates, kind)}"),
        ("noise", f"{at_least(rounds.noise)} on each number of a round; {adds}"),
    ]


def card(facts: Facts) -> str:
    """Return what the model is, and how it was fitted."""
    setup, rounds = facts.setup, _of(facts)
    basis = (
        f"Coordinates and settings follow from {several(setup.n_public, 'public row')} and other public facts alone."
    )
    if sentences.draws_pool(facts):
        basis = (
            "There was no public pool: coordinates follow from rows that were drawn from noisy counts of each column, "
            "which are part of the charge; they are not people."
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
        f"{model(facts)} Each round released the sum of what each {setup.unit} adds, cut off at length "
        f"{at_most(rounds.clip)}, with noise of {at_least(rounds.noise)} on each of its numbers.{counts} {basis}"
    )


def _of(facts: Facts) -> Rounds:
    assert facts.rounds is not None  # noqa: S101 - whoever asks has looked
    return facts.rounds
