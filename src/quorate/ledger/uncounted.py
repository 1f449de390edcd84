"""Fits without a ledger, which no other fit counts: what they may have spent together in this process.

The second one warns. Nothing is kept of their data: whether two fits saw the same people is for their owner to know.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from quorate.accounting.figures import at_most
from quorate.errors import PrivacyWarning
from quorate.findings import frames_of_ours
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, Budget, float_up
from quorate.ledger.ledger import Ledger

ADVICE = (
    "Give every fit on the same people one ledger=; compare models on public rows with labels, or for a price "
    "(docs/how-to/evaluate-privately.md)"
)


class UncountedFits:
    """What the fits of one process spent without a ledger, one added to the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fits = self._epsilon_e9 = self._delta_e18 = 0

    def begin(self, budget: Budget) -> None:
        """Count a fit at the budget that it may spend; warn where there are others, before anything is charged.

        Raises PrivacyWarning where warnings are turned into errors; the fit is not counted then.
        """
        with self._lock:
            self._add(1, budget.limit.epsilon_e9, budget.limit.delta_e18)
            message = self._message(budget)
        if message is None:
            return
        try:
            warnings.warn(message, PrivacyWarning, stacklevel=frames_of_ours())
        except PrivacyWarning:
            self.end(budget, None)
            raise

    def end(self, budget: Budget, ledger: Ledger | None) -> None:
        """Count what a fit did spend in place of its budget; a fit that charged nothing is none."""
        spent = None if ledger is None else ledger.state.spent
        with self._lock:
            self._add(-1, -budget.limit.epsilon_e9, -budget.limit.delta_e18)
            if spent is not None and (spent.epsilon_e9 or spent.delta_e18):
                self._add(1, spent.epsilon_e9, spent.delta_e18)

    def _add(self, fits: int, epsilon_e9: int, delta_e18: int) -> None:
        self._fits += fits
        self._epsilon_e9 += epsilon_e9
        self._delta_e18 += delta_e18

    def _message(self, budget: Budget) -> str | None:
        if self._fits > 1:
            epsilon, delta = float_up(self._epsilon_e9, EPSILON_DIGITS), float_up(self._delta_e18, DELTA_DIGITS)
            together, alone = (
                f"ε = {at_most(e, 6)} and δ = {at_most(d, 6)}"
                for e, d in ((epsilon, delta), (budget.epsilon, budget.delta))
            )
            return (
                f"fit {self._fits} without a ledger in this process: the guarantee of each counts that fit alone. If "
                f"they saw data of the same people, together they spend {together}, "
                f"not {alone}. Fits of other processes, such as the "
                f"workers of n_jobs, are not seen here and come on top. {ADVICE}"
            )
        if multiprocessing.parent_process() is not None:
            return (
                "a fit without a ledger in a worker process: its guarantee counts this fit alone. What other "
                "processes fit, such as the other workers of n_jobs, is not seen here; if they saw data of the same "
                f"people, ε and δ of all fits add up. {ADVICE}"
            )
        return None


IN_THIS_PROCESS = UncountedFits()


@contextmanager
def uncounted(budget: Budget, *, seeded: bool) -> Iterator[Ledger]:
    """Open a ledger in memory for one fit, and count what it spends; a seeded fit promises nothing that adds up."""
    ledger, fits = Ledger(budget=budget), IN_THIS_PROCESS
    if seeded:
        yield ledger
        return
    fits.begin(budget)
    try:
        yield ledger
    finally:
        fits.end(budget, ledger)
