"""One round of relabelling: BNS15's LabelBoostProcedure (Algorithm 2), without the learner that it ends with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.learners.concepts.protocol import ConceptClass, Labels, Points
from quorate.learners.single_choice import chosen
from quorate.mechanisms import Exponential
from quorate.noise import NoiseSource

_NO_LIMIT = 2**62


def relabelled(
    S: Points, labels: Labels, T: Points, concepts: ConceptClass, epsilon_0: float, noise: NoiseSource
) -> NDArray[np.uint8]:
    r"""Relabel the rows of S and T by a concept that errs little on S: BNS15's LabelBoostProcedure (Algorithm 2).

    `S`: the labelled points.
    `labels`: their labels: what the concept's mistakes are counted on.
    `T`: the unlabelled points: they only bring dichotomies.
    `concepts`: the class that the concept is of.
    `epsilon_0`: parameter of the exponential mechanism; a mistake has sensitivity 1.
    `noise`: of the exponential mechanism.

    Returns: the new labels, those of S first. Privacy: the new labels are no release. What an (ε_A, δ_A)-DP learner
    makes of the relabelled rows costs what :func:`~quorate.learners.label_boost.price.relabelling` says.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.noise import SeededNoise
    >>> S, T = np.array([[1], [2], [6], [7]] * 10), np.array([[0], [4]])
    >>> relabelled(S, np.array([1, 1, 0, 0] * 10, np.uint8), T, Thresholds(bits=3), 5.0, SeededNoise(0))[:4].tolist()
    [1, 1, 0, 0]
    """
    both = np.concatenate([S, T])
    candidates = concepts.dichotomies(both, limit=_NO_LIMIT)
    mistakes = candidates.mistakes(S, labels)
    choice = Exponential(epsilon=epsilon_0, sensitivity=1.0)
    return candidates[chosen(choice, -mistakes, noise)].labels(both).astype(np.uint8)
