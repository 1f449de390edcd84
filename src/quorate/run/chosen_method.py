"""What a run chooses by public facts where its owner leaves it open: the method, and for which change of one unit it
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from quorate.accounting.figures import plural
from quorate.accounting.neighbouring import Change, Neighbouring, Relation
from quorate.arguments import one_of
from quorate.errors import InvalidParameter, PreconditionFailed, named

LABELLED = 100  # public rows with labels, from which a rehearsal on them decides
MANY_ROWS = 40  # rows a unit, above which votes were ahead
FEW_UNITS = 2_000  # declared units, below which votes are taken where nothing tells how many rows each has
WAYS = ("auto", "votes", "direct")


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """What learns from the private rows, and `why`, as a part of a sentence; it equals its name."""

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
    """Choose by the first rule that applies; None where a rehearsal on labelled public rows beside a real pool decides.
    `of_votes`, `of_direct`: what was given that one method alone has. `n_records`, `n_rows`: declared ones alone.
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


#: What ``neighbours`` may be.
NEIGHBOURS: Final = ("auto", "add-or-remove", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenRelation:
    """Which of the two relations a run has: for which its `noise` is least, and for which its ledger is `charged`; both
    None where it was begun before one could be chosen. `both`: whether the price is known for both.
    """

    noise: Relation | None
    charged: Relation | None
    both: bool
    why: str

    def neighbouring(self, unit: str, *, n_was_read: bool) -> Neighbouring:
        """Return what the guarantee compares."""
        before: Change = "replace" if n_was_read else "add-remove-replace"
        return Neighbouring.of(self.charged or before, unit)

    @property
    def other(self) -> Relation | None:
        """The other relation, where its price is known too."""
        if not self.both or self.charged is None:
            return None
        return "replace" if self.charged == "add-or-remove" else "add-or-remove"


#: Of a run that was begun before a relation could be chosen: it goes on as it was charged.
BEGUN_BEFORE = ChosenRelation(
    noise=None, charged=None, both=False, why="the run was begun so, before the relation could be chosen"
)


def choose_relation(wish: object, *, n_was_read: bool, held: Change | None, unit: str) -> ChosenRelation:
    """Return the relation of a run that begins, or refuse it; `held`: that all on the ledger is guaranteed for."""
    chosen = one_of("neighbours", wish, NEIGHBOURS)
    held_words = "" if held is None or held == "stated" else Neighbouring.of(held, unit).changing
    if n_was_read:
        number = f"the number of {plural(unit)} is read off the data"
        if chosen == "add-or-remove":
            raise InvalidParameter(
                f'{named("neighbours")} must be "auto" or "replace" where {number}, got {chosen!r}: with one {unit} '
                f"more or less it would be another. Declare it with {named('n_records')}, or leave "
                f"{named('neighbours')} out",
                parameter="neighbours",
                got=chosen,
            )
        if held == "add-or-remove":
            raise PreconditionFailed(
                f"the ledger's earlier charges hold for {held_words}, and where {number} a run holds for replacing one "
                f"alone; no one guarantee is known for both. Declare {named('n_records')}, or open another ledger"
            )
        return ChosenRelation(noise="replace", charged="replace", both=False, why=number)
    fixed: Relation | None = "add-or-remove" if held == "add-or-remove" else "replace" if held == "replace" else None
    if chosen == "auto":
        if fixed is None:
            why = f"the number of {plural(unit)} is declared"
            return ChosenRelation(noise="add-or-remove", charged="add-or-remove", both=True, why=why)
        why = f"the ledger's earlier charges hold for {held_words}"
        return ChosenRelation(noise=fixed, charged=fixed, both=True, why=why)
    noise: Relation = "add-or-remove" if chosen == "add-or-remove" else "replace"
    why = "it was asked for"
    if fixed not in (None, noise):
        wished = Neighbouring.of(noise, unit).changing
        why = f"the ledger's earlier charges do; the noise is that for {wished}, which was asked for"
    return ChosenRelation(noise=noise, charged=fixed or noise, both=True, why=why)
