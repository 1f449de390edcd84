"""Which method learns where its owner leaves that open: one rule, of public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quorate.accounting.figures import plural

LABELLED = 100  # public rows with labels, from which a rehearsal on them decides
MANY_ROWS = 40  # rows a unit, above which votes were ahead
FEW_UNITS = 2_000  # declared units, below which votes are taken where nothing tells how many rows each has
WAYS = ("auto", "votes", "direct")


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """What learns from the private rows, and why; it equals its name.

    `by`: "votes" of teachers, or "direct", noisy gradient rounds. `why`: the reason, as a part of a sentence.

    Examples
    --------
    >>> ChosenMethod("direct", "it was asked for")
    direct: it was asked for
    >>> ChosenMethod("direct", "it was asked for") == "direct"
    True
    """

    by: Literal["votes", "direct"]
    why: str

    @property
    def in_words(self) -> str:
        """What a person reads of it."""
        return f"{'votes of teachers' if self.by == 'votes' else 'direct'}, since {self.why}"

    def __eq__(self, other: object) -> bool:
        return self.by == (other.by if isinstance(other, ChosenMethod) else other)

    def __hash__(self) -> int:
        return hash(self.by)

    def __repr__(self) -> str:
        return f"{self.by}: {self.why}"


def asked_for(by: Literal["votes", "direct"]) -> ChosenMethod:
    """Return a method that its owner named."""
    return ChosenMethod(by, "it was asked for")


def choose_method(
    *,
    of_votes: Sequence[str] = (),
    of_direct: Sequence[str] = (),
    n_labelled: int | None = 0,
    grouped: bool = False,
    n_records: int | None = None,
    n_rows: int | None = None,
    unit: str = "record",
) -> ChosenMethod | None:
    """Choose by the first rule that applies.

    `of_votes`, `of_direct`: what was given that one method alone has, by its names. `n_labelled`: labelled public rows
    beside a real pool, on which the planner can rehearse both methods; None where they were not counted yet.
    `grouped`: whether units have ids, so that one may have several rows. `n_records`, `n_rows`: declared numbers of
    units and rows; numbers that are read off private rows are never given. `unit`: the word for one unit. Returns: None
    where such a rehearsal decides.

    Examples
    --------
    >>> choose_method(of_votes=["online_answers"], grouped=True)
    votes: online_answers is for votes of teachers
    >>> choose_method()
    direct: where a record is one row it was ahead of votes on most tables measured
    >>> choose_method(grouped=True, unit="person", n_records=700, n_rows=42_000)
    votes: a person has 60 rows on average, and above 40 votes were ahead where it was measured
    """
    if of_votes:
        return ChosenMethod("votes", f"{_listed(of_votes)} for votes of teachers")
    if of_direct:
        return ChosenMethod("direct", f"{_listed(of_direct)} for the direct method")
    if n_labelled is None or n_labelled >= LABELLED:
        return None
    if not grouped:
        return ChosenMethod("direct", f"where a {unit} is one row it was ahead of votes on most tables measured")
    if n_records is not None and n_rows is None and n_records < FEW_UNITS:
        few = f"fewer than {FEW_UNITS:,} {plural(unit)} are declared, and how many rows each has is not"
        return ChosenMethod("votes", few)
    if n_records is None or n_rows is None:
        return ChosenMethod("direct", f"nothing declared says that a {unit} has more than {MANY_ROWS} rows")
    if n_rows > MANY_ROWS * n_records:
        mean = f"a {unit} has {n_rows / n_records:,.0f} rows on average"
        return ChosenMethod("votes", f"{mean}, and above {MANY_ROWS} votes were ahead where it was measured")
    return ChosenMethod("direct", f"with up to {MANY_ROWS} rows a {unit} it was not behind votes where it was measured")


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last} are" if most else f"{last} is"
