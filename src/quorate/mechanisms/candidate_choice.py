"""A choice among finitely many candidates by integer scores: what the exponential mechanism and its rival share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.mechanisms.fields import FROM_TASK, PRICE
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.scores import many_choices
from quorate.noise import NoiseSource
from quorate.types import IntArray


@dataclass(frozen=True, slots=True)
class CandidateChoice(QueryMechanism):
    r"""Choose one of finitely many candidates, the better ones more often, at ε whatever their number.

    Votes are scores too: of the classes. A subclass gives each candidate x below the best one at most
    :math:`e^{-\varepsilon x/(2\Delta)}` times the best one's probability, or does stochastically better.

    Parameters
    ----------
    epsilon : float
        ε of one choice; must be > 0.
    sensitivity : float, default 1.0
        Δ > 0: how far one changed teacher or record moves any one score. Votes have 1.
    """

    epsilon: float = field(metadata=PRICE)
    sensitivity: float = field(default=1.0, metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "sensitivity", real("sensitivity", self.sensitivity, above=0))

    @property
    def event(self) -> PureDP:
        """Price of one choice."""
        return PureDP(self.epsilon)

    def shortfall(self, n_candidates: int, failure: float) -> float:
        r"""Return how far below the best score the chosen one is, at most, but with probability `failure`.

        There are at most n − 1 worse candidates: :math:`(2\Delta/\varepsilon) \log((n-1)/failure)`, rounded up.

        Examples
        --------
        >>> from quorate.mechanisms import PermuteAndFlip
        >>> round(PermuteAndFlip(epsilon=1.0).shortfall(11, 0.1), 2)
        9.21
        """
        spread = 2 * self.sensitivity / self.epsilon
        return max(spread * math.log((n_candidates - 1) / failure), 0.0) * (1 + 2.0**-40)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Choose for each row of ``(n_queries, n_candidates)`` int64 scores: indices ``(n_queries,)``."""
        return self._choices(many_choices(counts), noise)

    @abstractmethod
    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        """Choose for each row of checked scores."""
