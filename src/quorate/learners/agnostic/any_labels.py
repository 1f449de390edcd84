"""What the transformations to any labels share: against which theorem of the base learner they are held."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Protocol

from quorate.errors import QuorateError
from quorate.learners.agnostic.base import agnostic_rows
from quorate.learners.plan import RowsNeeded
from quorate.learners.private_learner import PrivateLearner
from quorate.learners.transformed_learner import TransformedLearner


class ProvenSplit(Protocol):
    """How a budget is split, and the error that is proven of it."""

    @property
    def excess(self) -> float:
        """The error beyond the best concept's, but for a probability β; no bound above 1."""


class AnyLabels(TransformedLearner, metaclass=ABCMeta):
    """A learner made from one for true concepts, whose theorem takes any labels.

    So the base learner alone is asked for what it needs with any labels, where it can do with those. And whether the
    whole needs more is told by the error that is proven at so many labels, without a search for the least number.
    """

    alpha: float

    @abstractmethod
    def _split(self, n_rows: int, epsilon: float, delta: float) -> ProvenSplit:
        """Return the best split for so many rows; raise DataRefused where there is none."""

    def _asked_alone(self, alone: PrivateLearner) -> RowsNeeded:
        return agnostic_rows(alone)

    def _asks_for_more_than(self, n_labels: int, epsilon: float, delta: float) -> bool:
        try:
            return self._split(max(n_labels, 2), epsilon, delta).excess > self.alpha
        except QuorateError:  # so few rows cannot be relabelled
            return True
