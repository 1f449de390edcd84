r"""Tree: synthetic points on a line from a noisy tree of prefix counts; a grid of 2^32 points in moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import count, real
from quorate.errors import DataRefused
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.budget import least_rows
from quorate.learners.sanitizers.noisy_tree import TreePlan, noisy_prefix_counts, quantile_points
from quorate.learners.sanitizers.queries import bits_and_intervals
from quorate.learners.sanitizers.tree_bound import interval_error
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as


@stored_as("quorate.learners.sanitizers.tree.Tree")
@dataclass(frozen=True, slots=True)
class Tree:
    r"""Sanitize points on a line: thresholds, intervals and points of a grid of :math:`2^{bits}`.

    A tree over the grid, most of it never opened, gets discrete Laplace noise on the counts of all children of each
    open node; the estimates of all prefix counts are made consistent, and the synthetic points are their quantiles.

    Parameters
    ----------
    n_synthetic : int, optional
        m, synthetic points, at least 1. An interval is off by at most 1/m on their account, and there are no more
        dichotomies on them than on m points. None makes as many as there are rows.

    Raises
    ------
    InvalidParameter
        If the class is not one on a line (:class:`Thresholds`, :class:`Intervals`, :class:`PointFunctions`), or
        an argument is out of range.
    DataRefused
        If there are no points.

    Notes
    -----
    Privacy: ε-DP for one replaced record, n public. Each of the L levels moves by at most 2 in L1 and has noise of
    scale :math:`\lambda = 2L/\varepsilon`; which nodes are opened is read from noisy counts alone
    (:mod:`quorate.learners.sanitizers.noisy_tree`). It holds for every n, threshold and grid.

    Error: with x from :func:`interval_error`, no interval's fraction is off by more than :math:`x/n + 1/m`. Two
    thresholds differ on one interval, two intervals or two points on at most two: so :math:`C^\oplus` costs thresholds
    what intervals cost, nearly twice what prefixes do, and intervals and points twice that again. x grows as
    :math:`(bits)^{3/2}/\varepsilon` up to logarithms, and all its constants are there.

    References
    ----------
    BNS15, Algorithm 1, Step 2 (what it is for) and Definition A.2 (what is measured). Dwork, Naor, Pitassi and Rothblum
    (2010) for trees of counts; Hay, Rastogi, Miklau and Suciu (2010) for consistency; Qardaji, Yang and Li (2013) for
    fanouts of about 16.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.noise import SeededNoise
    >>> rows = np.arange(20_000)[:, np.newaxis] * 1000  # far down on the left of the grid
    >>> synthetic = Tree(n_synthetic=5).sanitize(rows, Thresholds(32), 1.0, SeededNoise(0))
    >>> synthetic.ravel().tolist()
    [1966080, 6094847, 10027008, 14024704, 17956864]
    >>> Tree().rows_needed(Thresholds(32), alpha=0.05, beta=0.1, epsilon=1.0)
    29321
    """

    n_synthetic: int | None = None

    def __post_init__(self) -> None:
        if self.n_synthetic is not None:
            object.__setattr__(self, "n_synthetic", count("n_synthetic", self.n_synthetic, at_least=1))

    def event(self, epsilon: float) -> PureDP:
        """Price of one call of :meth:`sanitize`."""
        return PureDP(epsilon)

    def check(self, points: Points, concept_class: ConceptClass) -> None:
        """Refuse nothing more: every point of the class's grid may be a row."""

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(n_synthetic, 1)`` synthetic grid points, in increasing order."""
        bits, _ = bits_and_intervals(concept_class)
        points = concept_class.check(points)
        if not len(points):
            raise DataRefused("points must hold at least 1 row; there is nothing to sanitize")
        plan = TreePlan.for_budget(bits=bits, n=len(points), epsilon=epsilon)
        tree = noisy_prefix_counts(points[:, 0].astype(np.int64), plan, noise)
        return quantile_points(tree, self.n_synthetic or len(points))[:, np.newaxis].astype(points.dtype)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: on any `n` rows, no :math:`c \in C^\oplus` is off by more but with probability `beta`.

        Parameters
        ----------
        n : int
            Rows, at least 1.
        concept_class : ConceptClass
            On a line.
        beta : float
            β in (0, 1).
        epsilon : float
            ε > 0.

        Examples
        --------
        >>> from quorate.learners.concepts import Thresholds
        >>> round(Tree().error_bound(60_000, Thresholds(32), beta=0.1, epsilon=1.0), 4)
        0.0252
        """
        bits, intervals = bits_and_intervals(concept_class)
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        plan = TreePlan.for_budget(bits=bits, n=n, epsilon=epsilon)
        return min(1.0, intervals * (interval_error(plan, n, beta) / n + self._rounding(n)))

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`error_bound` is at most `alpha`.

        Raises
        ------
        InvalidParameter
            If `alpha` is not above what the number of synthetic points leaves.
        """
        alpha = real("alpha", alpha, above=0, below=1)
        _, intervals = bits_and_intervals(concept_class)
        return least_rows(
            lambda n: self.error_bound(n, concept_class, beta, epsilon),
            alpha,
            floor=0.0 if self.n_synthetic is None else intervals * self._rounding(1),
            remedy="raise n_synthetic",
        )

    def _rounding(self, n: int) -> float:
        return 1 / (self.n_synthetic or n)
