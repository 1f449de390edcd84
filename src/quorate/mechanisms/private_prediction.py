"""One private prediction: base hypotheses vote, one label leaves (LWY25 Lemma 4.1; Dwork and Feldman 2018)."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.accounting import PureDP
from quorate.mechanisms.answerable import Answerable
from quorate.mechanisms.fields import PRICE
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.permute_and_flip import PermuteAndFlip
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import many_queries
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.theory.lwy25 import lwy25_lemma_4_1_hypotheses
from quorate.types import FloatArray, IntArray


@stored_as("quorate.mechanisms.private_prediction.PrivatePrediction")
@register
@dataclass(frozen=True, slots=True)
class PrivatePrediction(QueryMechanism):
    r"""Release one label, chosen by permute-and-flip with the number of votes as the score.

    Parameters
    ----------
    epsilon : float
        ε of one prediction; must be > 0.

    Raises
    ------
    InvalidParameter
        If ε is out of range; on release, if the counts are not int64 votes.

    Notes
    -----
    The votes are those of r hypotheses learned on disjoint parts of the data, so one changed record moves each
    count by at most 1: ε-DP for **one** prediction. Each further one costs as much again.

    Where each hypothesis errs with probability at most α/4, :meth:`n_hypotheses` of them make the released label err
    with probability at most α (LWY25, Lemma 4.1, with the exponential mechanism; permute-and-flip is never worse).

    References
    ----------
    LWY25 (Li, Wang, Ye), Lemma 4.1; Dwork and Feldman (2018), arXiv:1803.10266.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = PrivatePrediction(epsilon=1.0)
    >>> mechanism.n_hypotheses(alpha=0.1)
    23
    >>> mechanism.release(np.array([2, 21]), SeededNoise(0))
    1
    """

    epsilon: float = field(metadata=PRICE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PermuteAndFlip(self.epsilon).epsilon)

    @property
    def event(self) -> PureDP:
        """Price of one prediction."""
        return PureDP(self.epsilon)

    def n_hypotheses(self, alpha: float) -> int:
        r"""Return :math:`r = \lceil 6 \log(4/\alpha)/\varepsilon \rceil` for an error of at most `alpha`, in (0, 1)."""
        return lwy25_lemma_4_1_hypotheses(alpha, self.epsilon)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what so many hypotheses can get answered: that of permute-and-flip."""
        return PermuteAndFlip(self.epsilon).answerable(n_teachers, n_classes)

    def answer_law(self, counts: IntArray, only: int | None = None) -> FloatArray:
        """Return the law of a prediction: that of permute-and-flip."""
        return PermuteAndFlip(self.epsilon).answer_law(counts, only)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Predict for each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        return PermuteAndFlip(self.epsilon).release_many(many_queries(counts), noise)
