"""The receipt of an export: what the ledger charged for what is in it, in a form that anybody can price again.

A receipt names the entry of the ledger that the published report names, and lists the charges up to there with their
events. It holds no entry of the ledger, nor the hash of any other one: an entry tells to the microsecond when it was
made, and a guess at the time can be tried against a hash. How long teachers took depends on private rows, and nobody
paid for it. Whoever may see the ledger holds the receipt against what ``quorate ledger export`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from quorate.accounting.neighbouring import Change
from quorate.errors import InvalidParameter, LedgerIntegrityError
from quorate.ledger.budget import BudgetUnits
from quorate.ledger.chain import Receipt, check_held
from quorate.ledger.fields import Json
from quorate.ledger.scope import GuaranteeScope, OtherCharge, amounts_for
from quorate.ledger.state import LedgerState
from quorate.release.charge import SEEDED_CLIENT

NAME: Final = "receipt.json"
FORMAT: Final = "quorate receipt 1"
_KEYS = {"format", "receipt", "composition", "charges", "published"}
_CHARGE = {"event", "amounts", "purposes", "seeded", "scope"}
_SCOPE = {"unit", "neighbours", "caveats"}
_ALSO = {"neighbours", "event", "amounts"}


@dataclass(frozen=True, slots=True)
class Charged:
    """One charge of the ledger: its event as canonical JSON, amounts, purposes and answers, and whether noise was
    `seeded`. `scope`: whose data against which change; `also`: for the other relation; None where the ledger does not
    say.
    """

    event: Json
    amounts: BudgetUnits
    purposes: Mapping[str, int]
    seeded: bool
    scope: GuaranteeScope | None
    also: OtherCharge | None = None

    def to_object(self) -> dict[str, Any]:
        """Return the charge as a JSON object."""
        scope, also = self.scope, self.also
        other = None
        if also is not None:
            other = {"neighbours": also.neighbours, "event": also.event.value, "amounts": asdict(also.amounts)}
        return {
            **({} if other is None else {"also": other}),
            "event": self.event.value,
            "amounts": asdict(self.amounts),
            "purposes": dict(self.purposes),
            "seeded": self.seeded,
            "scope": None
            if scope is None
            else {"unit": scope.unit, "neighbours": scope.neighbours, "caveats": list(scope.caveats)},
        }


@dataclass(frozen=True, slots=True)
class ExportReceipt:
    """What :data:`NAME` holds: the receipt that the report names, the rule, the charges up to it, oldest first, and the
    SHA-256 of each published file.
    """

    receipt: Receipt
    composition: str
    charges: tuple[Charged, ...]
    published: Mapping[str, str]

    @property
    def total(self) -> BudgetUnits:
        """What all charges come to."""
        total = BudgetUnits()
        for charge in self.charges:
            total += charge.amounts
        return total

    def total_for(self, change: Change) -> BudgetUnits | None:
        """What all charges come to for a change; None where one of them does not tell."""
        total = BudgetUnits()
        for charge in self.charges:
            amounts = amounts_for(change, charge.amounts, charge.scope, charge.also)
            if amounts is None:
                return None
            total += amounts
        return total

    def to_json(self) -> str:
        """Return it as indented JSON."""
        tree = {
            "format": FORMAT,
            "receipt": self.receipt.to_object(),
            "composition": self.composition,
            "charges": [charge.to_object() for charge in self.charges],
            "published": dict(sorted(self.published.items())),
        }
        return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ExportReceipt:
        """Read what :meth:`to_json` wrote; refuse anything else, or what a later version wrote."""
        try:
            tree = json.loads(text)
            if tree["format"] != FORMAT or tree.keys() != _KEYS or tree["composition"] not in ("sum", "zcdp"):
                raise InvalidParameter(f"{NAME} is not of the form {FORMAT!r}")
            charges = tuple(_charge(charge) for charge in tree["charges"])
            published = {str(name): str(total) for name, total in tree["published"].items()}
            return cls(Receipt.from_object(tree["receipt"]), tree["composition"], charges, published)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(f"{NAME} cannot be read as {FORMAT!r}") from None


def _charge(tree: Any) -> Charged:
    if tree.keys() - {"also"} != _CHARGE or not isinstance(tree["seeded"], bool):
        raise InvalidParameter(f"a charge in {NAME} must hold exactly {', '.join(sorted(_CHARGE))}")
    purposes = {str(name): int(n) for name, n in tree["purposes"].items()}
    amounts, scope = BudgetUnits(**tree["amounts"]), _scope(tree["scope"])
    also = _also(tree.get("also"))
    if also is not None:
        also.check_beside(scope)
    return Charged(Json.of(tree["event"], "event"), amounts, purposes, tree["seeded"], scope, also)


def _also(tree: Any) -> OtherCharge | None:
    if tree is None:
        return None
    if tree.keys() != _ALSO:
        raise InvalidParameter(f"also in {NAME} must hold exactly {', '.join(sorted(_ALSO))}")
    amounts = BudgetUnits(**tree["amounts"])
    return OtherCharge(neighbours=tree["neighbours"], event=Json.of(tree["event"], "event"), amounts=amounts)


def _scope(tree: Any) -> GuaranteeScope | None:
    if tree is None:
        return None
    if tree.keys() != _SCOPE or not isinstance(tree["caveats"], list):
        raise InvalidParameter(f"a scope in {NAME} must hold exactly {', '.join(sorted(_SCOPE))}")
    return GuaranteeScope(unit=tree["unit"], neighbours=tree["neighbours"], caveats=tuple(tree["caveats"]))


def receipt_for(state: LedgerState, receipt: Receipt, published: Mapping[str, str]) -> ExportReceipt:
    """Return the receipt of what a verified ledger had charged when an entry was written; `published`: sums of files.
    Raises LedgerIntegrityError if the ledger does not hold that entry: the report is of another ledger.
    """
    check_held(state, receipt)
    charges = tuple(
        Charged(held.event, held.amounts, held.purposes, held.client == SEEDED_CLIENT, held.claim, held.also)
        for sequence, held in ((sequence, kept.reserved) for sequence, kept in state.reservations.items())
        if sequence <= receipt.sequence
    )
    if state.budget is None or not charges:
        raise LedgerIntegrityError(
            "the ledger was charged nothing before the report was written; restore the newest one"
        )
    return ExportReceipt(receipt, state.budget.composition, charges, dict(published))


def sum_of(content: bytes) -> str:
    """Return the SHA-256 sum of a file, in hexadecimal."""
    return sha256(content).hexdigest()
