"""Doubles that several files of this room use: a reservation whose process dies, a small sparse vector, a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.labelling import OnlineAnswers, stages_of
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import StableSparseVector
from quorate.types import IntArray


class Killed(BaseException):
    """The process ends here."""


class Mortal:
    """A reservation whose process dies at one of its acts: before or after a draw, before or after a store.

    ``drawn`` holds the first number and the length of every block that was drawn.
    """

    def __init__(self, reservation, dies_at):
        self.reservation, self.left, self.drawn = reservation, dies_at, []

    def __getattr__(self, name):
        return getattr(self.reservation, name)

    def _live(self):
        self.left -= 1
        if self.left < 0:
            raise Killed

    def draw(self, purpose, count=1):
        self._live()
        block = self.reservation.draw(purpose, count)
        self.drawn.append((block.first, block.count))
        self._live()
        return block

    def store(self, block, answers):
        self._live()
        receipt = self.reservation.store(block, answers)
        self._live()
        return receipt


def vector(cutoff=4, n_queries=1_000):
    return StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=cutoff, n_queries=n_queries)


def reserved(mechanism, n_labels):
    """The reservation of a run of so many labels by a stream."""
    purposes = {"label": n_labels, **stages_of(mechanism)}
    return Ledger(budget=Budget(9.0, 1e-4)).reserve(mechanism.event, delta=1e-5, purposes=purposes, key="run")


def paid(mechanism, purpose, *, delta=0):
    """A reservation of one release at whatever it costs."""
    return Ledger(budget=Budget(1e6, 1e-5)).reserve(mechanism.event, delta=delta, purposes={purpose: 1}, key="paid")


def ask(online: OnlineAnswers, digests: Sequence[bytes]) -> IntArray:
    """Ask a batch; its rows are their own numbers."""
    return online.ask(np.arange(len(digests)), digests)
