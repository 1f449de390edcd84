"""The durable record of what a release has spent: budget, hash chain, stores.

No answer leaves before its charge is on stable storage. The recorded spend never falls below what was released. The
cap is never passed, whatever the number of clients. An altered or older ledger is refused, or, where ledger and
anchor were both restored, exposed by any client's receipt.

Here belongs what may be charged, and what a crash leaves: pure rules (``rules``, ``chain``, ``budget``), a thin shell
around them (``ledger``, ``readings``, ``journal``), and stores (``store``, ``sqlite``, ``postgres``). It knows events
and their prices, and nothing of votes, tables or mechanisms. Begin with :mod:`~quorate.ledger.rules`, then
:mod:`~quorate.ledger.ledger`.
"""

from __future__ import annotations

from quorate.ledger.budget import Budget, Totals
from quorate.ledger.chain import Receipt, verify
from quorate.ledger.entries import Part
from quorate.ledger.journal import Verified
from quorate.ledger.ledger import Ledger, register_store
from quorate.ledger.reservation import Block, Reservation, SharedDraw
from quorate.ledger.rules import Quota
from quorate.ledger.scope import GuaranteeScope
from quorate.ledger.sqlite import SqliteStore
from quorate.ledger.state import Head
from quorate.ledger.store import LedgerStore, MemoryStore

__all__ = [
    "Block",
    "Budget",
    "GuaranteeScope",
    "Head",
    "Ledger",
    "LedgerStore",
    "register_store",
    "MemoryStore",
    "Part",
    "Quota",
    "Receipt",
    "Reservation",
    "SharedDraw",
    "SqliteStore",
    "Totals",
    "Verified",
    "verify",
]
