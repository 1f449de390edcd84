"""For which change of one unit the noise of a run is, and for which it is charged: from public facts and its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.accounting.figures import plural
from quorate.accounting.neighbouring import Change, Neighbouring, Relation
from quorate.arguments import one_of
from quorate.errors import InvalidParameter, PreconditionFailed, named

#: What ``neighbours`` may be.
NEIGHBOURS: Final = ("auto", "add-or-remove", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenRelation:
    """Which of the two relations a run has.

    `noise`: the change of one unit for which the noise is the least that ε and δ allow. None where the run was begun
    before one could be chosen: its noise is that for replacing a unit. `charged`: the change that its ledger is charged
    for; None as above. `both`: whether the price is known for both: nothing that chose the noise was read off the data.
    `why`: the reason, as part of a sentence.
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
    """Return the relation of a run that begins.

    `wish`: what was asked for. `n_was_read`: whether the number of units was read off the data. `held`: the change that
    everything on the ledger is guaranteed for; None where each would do. `unit`: the word for whose data it is. Raises
    InvalidParameter, PreconditionFailed if it cannot be had; nothing was drawn or charged.

    Examples
    --------
    >>> chosen = choose_relation("auto", n_was_read=False, held=None, unit="person")
    >>> chosen.noise, chosen.charged, chosen.why
    ('add-or-remove', 'add-or-remove', 'the number of persons is declared')
    >>> choose_relation("auto", n_was_read=False, held="replace", unit="person").why
    "the ledger's earlier charges hold for replacing one person by another"
    """
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
