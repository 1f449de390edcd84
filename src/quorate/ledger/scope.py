"""What a reservation promises: whose data, against which change, and with what reservations of its own. Pure.

ε and δ add up over a ledger; the other half of a guarantee does not add, so it is written down with every charge, and
what is said about the whole is said of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.accounting.neighbouring import (
    IMPLIED,
    OTHER,
    READ_OFF,
    Change,
    Neighbouring,
    holds_where_read_off,
    weakest,
)
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger.budget import BudgetUnits
from quorate.ledger.fields import Json, text

DIFFERENT_NEIGHBOURS = (
    "part of what was charged to the ledger is guaranteed for replacing one unit alone, not for adding or removing "
    "one; and so is the whole"
)
_LINE = text(1000)


@dataclass(frozen=True, kw_only=True, slots=True)
class GuaranteeScope:
    """The half of a guarantee that is no number, in lines of text; InvalidParameter for anything else.

    `unit`: whose data is protected: "record", "person", "patient". `neighbours`: the change that the guarantee is
    about, in a phrase: "add, remove or replace one person". `caveats`: what it rests on beside the noise.
    """

    unit: str
    neighbours: str
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.caveats, tuple):
            raise InvalidParameter("caveats must be a tuple of texts; pass ('…',) or ()")
        lines = [("unit", self.unit), ("neighbours", self.neighbours), *(("caveats", c) for c in self.caveats)]
        for name, said in lines:
            _LINE(name, _LINE(name, said).strip())
        # entries of version 0.1 speak of all three changes there, and are read as replacement: relation_that_holds
        if self.neighbouring.change == "add-or-remove" and not holds_where_read_off(self.neighbouring, self.caveats):
            raise InvalidParameter(
                "neighbours must be a replacement where a number was read off the data, as a caveat says; nothing "
                "holds for adding or removing one unit then"
            )

    @classmethod
    def about(cls, neighbouring: Neighbouring, *, caveats: tuple[str, ...] = ()) -> GuaranteeScope:
        """Return the scope of a guarantee about a neighbouring relation."""
        return cls(unit=neighbouring.unit, neighbours=neighbouring.stated, caveats=caveats)

    @property
    def neighbouring(self) -> Neighbouring:
        """`neighbours` as a value."""
        return Neighbouring.read(self.neighbours, self.unit)

    def covers(self, later: GuaranteeScope | None) -> bool:
        """Whether this scope says all that a retry of its request says: no weaker promise, and no caveat less."""
        return (
            later is not None
            and self.unit == later.unit
            and (
                self.neighbours == later.neighbours
                or weakest([self.neighbouring, later.neighbouring]) == later.neighbouring
            )
            and set(later.caveats) <= set(self.caveats)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherCharge:
    """What a reservation comes to for the other of the two relations "add or remove" and "replace"."""

    neighbours: str
    event: Json
    amounts: BudgetUnits

    def __post_init__(self) -> None:
        if not isinstance(self.event, Json) or not isinstance(self.amounts, BudgetUnits):
            raise InvalidParameter("also must have a change, an event and its price")

    def check_beside(self, scope: GuaranteeScope | None) -> None:
        """Refuse what is not the other relation of a scope, or what a scope's caveats rule out."""
        if scope is not None and READ_OFF.isdisjoint(scope.caveats):
            other = Neighbouring.read(self.neighbours, scope.unit)
            if OTHER.get(scope.neighbouring.change) == other.change:
                return
        raise InvalidParameter(
            'also must be about the other of the two relations "add or remove" and "replace" of the scope; leave it '
            "out where nothing else is known"
        )


def amounts_for(
    change: Change, amounts: BudgetUnits, scope: GuaranteeScope | None, also: OtherCharge | None
) -> BudgetUnits | None:
    """Return what a charge comes to for a change, by its own scope or the other relation; None where neither tells."""
    if scope is None:
        return None
    if change in IMPLIED[relation_that_holds(scope).change]:
        return amounts
    return (
        also.amounts if also is not None and Neighbouring.read(also.neighbours, scope.unit).change == change else None
    )


def relation_that_holds(scope: GuaranteeScope) -> Neighbouring:
    """Return the relation of a scope, or replacement alone where its caveats rule out adding and removing.

    Version 0.1 wrote of adding and removing where a number was read off the data; its entries stay as they are.
    """
    relation = scope.neighbouring
    if not holds_where_read_off(relation, scope.caveats):
        return Neighbouring.of("replace", relation.unit, owner_states=relation.owner_states)
    return relation


def combined_scope(scopes: Iterable[GuaranteeScope]) -> GuaranteeScope:
    """Return what guarantees of these scopes, oldest first, cover together, with every caveat of any of them.

    Where some hold for replacements alone, the whole does too, and says so. Raises PreconditionFailed if they are about
    different units, or about changes that no phrase here covers.
    """
    every = list(scopes)
    if not every:
        raise InvalidParameter("scopes must be one at least; nothing was promised")
    unit = every[0].unit
    other = next((scope.unit for scope in every if scope.unit != unit), None)
    if other is not None:
        raise PreconditionFailed(
            f"this ledger's earlier releases protect one {unit}, and this one one {other}; one guarantee cannot be for "
            "two units. Open another ledger, or use the same unit"
        )
    caveats = tuple(dict.fromkeys(caveat for scope in every for caveat in scope.caveats))
    relations = [scope.neighbouring for scope in every]
    neighbouring = weakest(relations)
    holding = [relation_that_holds(scope) for scope in every]
    if neighbouring is None or weakest(holding) is None:
        raise PreconditionFailed(
            f"this ledger's earlier releases hold for another kind of change ({holding[0].changing}) than this one "
            f"({holding[-1].changing}), and no one guarantee is known for both. Open another ledger; or, for the "
            "direct method, declare n_records and leave neighbours at auto, which takes the ledger's"
        )
    if neighbouring.change.startswith("replace") and len({scope.change for scope in relations}) > 1:
        caveats = tuple(dict.fromkeys((*caveats, DIFFERENT_NEIGHBOURS)))
    return GuaranteeScope.about(neighbouring, caveats=caveats)
