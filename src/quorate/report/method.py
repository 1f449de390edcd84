"""How each method is told: the places where a report of votes and one of gradient rounds differ, in one table each."""

from __future__ import annotations

from typing import Protocol

from quorate.report import by_rounds, by_votes
from quorate.report.facts import Facts
from quorate.report.findings import Choice
from quorate.report.html import Child


class Words(Protocol):
    """What a report says about a method; a module of functions from facts."""

    #: Heads of the table of choices, for what :meth:`choice` returns.
    CHOICE_HEADS: tuple[str, ...]

    #: Whether classes of single rows were released, so that they can be counted.
    COUNTS_ANSWERS: bool

    def first_figure(self, facts: Facts, /) -> tuple[str, str]:
        """Name and value of what the run was made of, for the line under the title."""

    def last_figure(self, facts: Facts, /) -> tuple[str, str]:
        """Name and value of what was released, for the same line."""

    def big_figure(self, facts: Facts, /) -> tuple[str, str, str]:
        """Name, value and note of the first large figure on composition."""

    def where_a_unit_goes(self, facts: Facts, /) -> tuple[str, str]:
        """How one unit's influence is limited, as a term and its explanation."""

    def spending(self, facts: Facts, /) -> tuple[Child, ...]:
        """Return the table of what was charged for what, and a note."""

    def model(self, facts: Facts, /) -> str:
        """Return what the model is, and what it was fitted on."""

    def counted(self, facts: Facts, /) -> str:
        """Return what became of what was charged."""

    def closed(self, facts: Facts, /) -> str | None:
        """Return why some of it was never used, or None."""

    def choice(self, choice: Choice, /) -> tuple[str, ...]:
        """Return the cells of one row of the table of choices."""

    def models(self, facts: Facts, /) -> tuple[str, str]:
        """Return the models by name, as a term and its explanation."""

    def text_rows(self, facts: Facts, room: int, /) -> list[tuple[str, str]]:
        """Return the first rows of the table in the terminal."""

    def card(self, facts: Facts, /) -> str:
        """Return the first paragraph of the model card, before it is escaped."""


def words_of(facts: Facts) -> Words:
    """Return how the method of a run is told."""
    return by_votes if facts.rounds is None else by_rounds
