"""A secret sample with new labels, those of a concept that fits the other rows: LWY25, Algorithm 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.learners.agnostic.price import AgnosticPrice
from quorate.learners.amplification.random_subsets import random_arrangement
from quorate.learners.base.exponential import MECHANISMS, Selection
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.single_choice import chosen
from quorate.mechanisms import Exponential, PermuteAndFlip
from quorate.noise import NoiseSource

#: Candidates at most.
MOST_CANDIDATES = 1 << 20


def choice_at(price: AgnosticPrice, selection: Selection) -> Exponential | PermuteAndFlip:
    """Return what chooses a labelling at a price; a plan makes it too, so that a refusal comes before the charge.

    Raises InvalidParameter if ε_e is so small that permute-and-flip cannot flip its coins exactly.
    """
    return MECHANISMS[selection](price.choice_epsilon, float(price.n_sampled))


def relabelled_sample(
    points: Points,
    labels: NDArray[np.uint8],
    concepts: ConceptClass,
    price: AgnosticPrice,
    selection: Selection,
    noise: NoiseSource,
) -> tuple[Points, NDArray[np.uint8]]:
    r"""Sample T in secret, and relabel it by a concept that fits the other rows: LWY25, Algorithm 1.

    `points`, `labels`: the labelled rows. `concepts`: the class. `price`: n, s and :math:`\varepsilon_e`. `selection`:
    what chooses, by :math:`s(n-s)\,\min_f \{dis_T(h, f) + err_W(f)\}`: whole numbers, which one row of W moves by at
    most s. `noise`: of the sample and of the choice. Returns: t in random order, and its new labels; its own are never
    looked at. Privacy: they are no release. What is learned from them costs what :class:`AgnosticPrice` says. The order
    is random so that a row exchanged for another leaves all others in their places, as the proof has it, whatever the
    learner makes of the order.
    """
    sampled = random_arrangement(price.n, price.n_sampled, noise.at("relabelled rows", 0))
    rest = np.ones(price.n, dtype=np.bool_)
    rest[sampled] = False
    T = points[sampled]
    candidates, scores = concepts.relabelling_scores(T, points[rest], labels[rest])
    new = candidates[chosen(choice_at(price, selection), -scores, noise.at("chosen labelling", 0))]
    return T, new.labels(T).astype(np.uint8)
