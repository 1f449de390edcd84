"""Quotas: the most answers that one client is ever given, below the cap that all clients share. Pure.

A quota is no budget: what all clients are given together is bounded by the cap alone, so clients who collude learn no
more than the cap allows. It keeps one of them from using up what the others are to have.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorate.errors import QuotaExhausted
from quorate.ledger.state import LedgerState


@dataclass(frozen=True, slots=True)
class Quota:
    """What a client may be given, and what it was given.

    Parameters
    ----------
    answers : int or None
        The most answers it is ever given; None where the cap alone bounds it.
    drawn : int
        Answers that were drawn for it, those lost in a crash included.
    removed : bool
        Whether it had a quota that was taken away.

    Examples
    --------
    >>> Quota(answers=10, drawn=12).left, Quota(answers=None, drawn=12).left
    (0, None)
    """

    answers: int | None
    drawn: int
    removed: bool = field(default=False, repr=False)

    @property
    def left(self) -> int | None:
        """Answers left; None where the cap alone bounds it. A quota that was lowered below what was drawn has 0."""
        return None if self.answers is None else max(0, self.answers - self.drawn)


def quota_of(state: LedgerState, client: str) -> Quota:
    """Return the quota of a client.

    Examples
    --------
    >>> quota_of(LedgerState(), "alice")
    Quota(answers=None, drawn=0)
    """
    return Quota(state.quotas.get(client), state.drawn_by.get(client, 0), client in state.unbound)


def check_quota(state: LedgerState, client: str, count: int, at_most: int | None = None) -> None:
    """Refuse more answers than a client's quota has left, or than are left of `at_most`, where that is less.

    Raises QuotaExhausted fewer are left.

    Examples
    --------
    >>> check_quota(LedgerState(quotas={"alice": 10}, drawn_by={"alice": 8}), "alice", 2)
    """
    quota = quota_of(state, client)
    if at_most is not None and (quota.answers is None or at_most < quota.answers):
        quota = replace(quota, answers=at_most)
    if quota.answers is None or quota.left is None or count <= quota.left:
        return
    raise QuotaExhausted(
        f"{count:,} new rows for the client {client!r}, {quota.left:,} of its quota of {quota.answers:,} answers left; "
        "ask for fewer, have the owner raise the quota, or ask the student, which answers for free",
        client=client,
        spent=quota.drawn,
        requested=count,
        limit=quota.answers,
    )
