"""Scores of LWY25 Algorithm 1 for any concept class that minimises weighted errors."""

from __future__ import annotations

import numpy as np

from quorate.learners.concepts.protocol import ConceptClass, Concepts, Labels, Points
from quorate.learners.concepts.weighing import signed_weights, unit_scores
from quorate.types import IntArray


def relabelling_scores_by_erm(
    concept_class: ConceptClass, T: Points, W: Points, labels_of_W: Labels
) -> tuple[Concepts, IntArray]:
    r"""Return the dichotomies h on T, and :math:`|T||W| \min_f \{dis_T(h, f) + err_W(f)\}` of each, exactly.

    One weighted error is minimised for every dichotomy, with rows of T weighing \|W\| and labelled by h, and rows of W
    weighing \|T\|. The classes of this package with more structure than that are faster; a class of your own may call
    this as its ``relabelling_scores``.

    Returns
    -------
    tuple
        The concepts, and ``(n_concepts,)`` int64 scores from 0 to 2 \|T\|\|W\|.

    References
    ----------
    LWY25 (Li, Wang, Ye), Algorithm 1, step 3.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> concepts = Thresholds(bits=4)
    >>> T, W = concepts.check([3, 9]), concepts.check([5, 6, 12])
    >>> relabelling_scores_by_erm(concepts, T, W, np.array([1, 1, 0]))[1].tolist()
    [3, 0, 0]
    """
    unit_scores(len(T), len(W))
    signed_weights(len(W), labels_of_W)  # refuses what is no label
    concepts = concept_class.dichotomies(T)
    points = np.concatenate([T, W])
    weights = np.repeat(np.array([len(W), len(T)], dtype=np.int64), [len(T), len(W)])
    scores = np.empty(len(concepts), dtype=np.int64)
    for i in range(len(concepts)):
        labels = np.concatenate([concepts[i].labels(T), np.asarray(labels_of_W).astype(np.uint8)])
        best = concept_class.erm(points, labels, weights)
        scores[i] = weights[best.labels(points) != labels].sum()
    return concepts, scores
