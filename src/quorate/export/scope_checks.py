"""Whether a guarantee speaks of the data, and of the change, that its charges were made for."""

from __future__ import annotations

from quorate.accounting import Guarantee
from quorate.errors import QuorateError
from quorate.export.receipt import ExportReceipt
from quorate.ledger.scope import combined_scope
from quorate.release.guarantee import EARLIER, NOT_CLAIMED, weakest_that_holds


def scope_differs(receipt: ExportReceipt, guarantee: Guarantee) -> str | None:
    """Say how a guarantee differs from what the scopes of its charges promise together.

    `receipt`: with one charge at least. `guarantee`: that is said to follow from it. Returns: a sentence; None where
    unit and change are those of the charges, and no caveat of theirs is left out.
    """
    stated = [charge.scope for charge in receipt.charges if charge.scope is not None]
    if not stated:
        return "No charge says whose data it protects, so that no guarantee follows."
    try:
        scope = weakest_that_holds(combined_scope(stated))
    except QuorateError as error:
        return f"The charges promise nothing together: {error}."
    if (guarantee.unit, guarantee.neighbours) != (scope.unit, scope.neighbours):
        return (
            f"The charges protect one {scope.unit} ({scope.neighbours}), and the guarantee speaks of one "
            f"{guarantee.unit} ({guarantee.neighbours})."
        )
    needed = list(scope.caveats)
    needed += [NOT_CLAIMED] * (len(stated) < len(receipt.charges)) + [EARLIER] * (len(receipt.charges) > 1)
    missing = next((caveat for caveat in needed if caveat not in guarantee.caveats), None)
    return None if missing is None else f"The guarantee leaves out a caveat of its charges: {missing}."
