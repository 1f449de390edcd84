"""What a learner may ask of a concept class: its dichotomies, its empirical errors, its size."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.types import IntArray

Points = NDArray[Any]  # (n_points, n_features), as `ConceptClass.check` returns them
Labels = NDArray[np.uint8]  # (n_points,), 0 or 1


class Concept(Protocol):
    """One labelling rule: a frozen value whose fields may be published."""

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""


class Concepts(Protocol):
    """Finitely many concepts of one class, in a fixed order."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Concept: ...

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``; as large as that, so for few points."""

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return ``(n_concepts,)``: the weight of the points that each concept labels otherwise; exact integers.

        `weights` are whole numbers >= 0, ``(n_points,)``; 1 each by default. It uses the structure of the class, never
        the ``(n_concepts, n_points)`` table where that is large.
        """


class ConceptClass(Protocol):
    """A class of functions from points to {0, 1}."""

    @property
    def n_features(self) -> int:
        """Number of columns of a point."""

    @property
    def vc_dimension(self) -> int:
        """VC(C), or the least bound on it that is known."""

    @property
    def domain_size(self) -> int | None:
        """Number of points of the domain; None where it is not finite."""

    def check(self, X: Any) -> Points:
        """Return the points in the form that the class works on.

        Raises
        ------
        DataRefused
            If a point lies outside the domain; the message says which domain, and never a value.
        """

    def n_dichotomies(self, points: Points) -> int:
        """Return an upper bound on the number of dichotomies on `points`, cheaply: what a limit is held against.

        A function of how many points there are, which is public, so that a refusal tells nothing of private ones. A
        class may offer the same as ``growth(n_points)``.
        """

    def dichotomies(self, points: Points, *, limit: int = ...) -> Concepts:
        """Return one concept for every dichotomy that the class realises on `points`.

        A function of the *set* of points: neither their order nor how often each occurs matters.

        Raises
        ------
        InvalidParameter
            If there would be more than `limit`; the message holds the number.
        """

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Concept:
        """Return a concept of least weighted empirical error; ties go to the first in a fixed order of the class."""

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[Concepts, IntArray]:
        r"""Return the dichotomies h on T, and :math:`|T||W| \min_f \{dis_T(h, f) + err_W(f)\}` of each (LWY25 Alg. 1).

        Exact integers: rows of T weigh :math:`|W|`, rows of W weigh :math:`|T|`. A class without structure may return
        what :func:`~quorate.learners.concepts.relabelling.relabelling_scores_by_erm` does. Where more is refused than
        by the number of dichotomies, ``refuse_relabelling(n_T, n_W)`` tells it from the numbers of rows alone.
        """
