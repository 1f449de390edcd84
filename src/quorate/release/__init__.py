"""What every private release does, once.

The way of one answer::

    charge        Charge.reserve       the whole schedule, at its exact price
    cover         check_covered        that it was this mechanism which was paid for
    draw          draw, release        a block counts as given, durably
    noise         DrawnBlock.noise     from that block alone; the thresholds of a sparse vector: Stages
    store         DrawnBlock.store     durably
    answer        what release returns
    guarantee     guarantee_of         what everything on the ledger promises together

Here belongs what must not be done twice or otherwise: that order, the session on a ledger around it, the keys that bind
data to a ledger, where noise comes from and who is said to charge it, and what everything on one ledger promises
together. What is computed between noise and store (votes, sums, a concept) belongs to the rooms that stand on this one.
Begin with :mod:`quorate.release.block`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand
from quorate.release.session import GivenLedger, RollbackGuard, ledger_location, session

if TYPE_CHECKING:
    from quorate.release.block import DrawnBlock, check_covered, draw, release, release_once, uninterrupted
    from quorate.release.charge import Account, Charge
    from quorate.release.guarantee import guarantee_of
    from quorate.release.stages import NEVER_ASKED, Stages

__all__ = [
    "NEVER_ASKED",
    "Account",
    "Charge",
    "DrawnBlock",
    "GivenLedger",
    "RollbackGuard",
    "Stages",
    "check_covered",
    "draw",
    "guarantee_of",
    "ledger_location",
    "release",
    "release_once",
    "session",
    "uninterrupted",
]

__getattr__ = on_demand(__name__)
