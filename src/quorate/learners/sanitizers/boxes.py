"""Boxes: synthetic points for rectangles in any few columns, from a noisy tree a column and counts between the cuts.

Steps, privacy, agreement (2dg rows), the error of the sanitizer and g: ``docs/theory/private-learners.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, log, log1p, prod
from typing import ClassVar

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.concepts.rectangles import Rectangles
from quorate.learners.sanitizers.protocol import AgreeingSanitizer, checked_rows, least_scale, share
from quorate.learners.sanitizers.tree import (
    PrefixCounts,
    TreePlan,
    interval_error,
    noisy_prefix_counts,
    rounded_weights,
)
from quorate.noise import NoiseSource, discrete_laplace
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

_COLUMNS = Fraction(3, 4)  # of ε, for the trees of all columns; what is left goes to the counts of the boxes


@stored_as("quorate.learners.sanitizers.box_plan.BoxPlan")
@dataclass(frozen=True, slots=True)
class BoxPlan:
    r"""How d columns are cut, and what noise the boxes between the cuts get: a function of public facts alone.

    `trees`: one for each column; None where all its values are kept.
    `most_values`: how many values :math:`s_j \ge 2` a column is cut down to, at most.
    `gaps`: :math:`w_j`: strictly between two of them lie at most so many rows, by the tree's estimates.
    `scale`: λ of the discrete Laplace noise on the count of each box, in rows: :math:`2/\lambda`-DP, beside the trees.

    Examples
    --------
    >>> plan = BoxPlan.for_budget(bits=(16, 16), n=20_000, epsilon=1.0)
    >>> plan.most_values, round(plan.gaps[0]), plan.scale, plan.epsilon
    ((44, 44), 465, 8.0, Fraction(1, 1))
    >>> BoxPlan.for_budget(bits=(2, 1), n=20_000, epsilon=1.0).scale  # no tree: all of ε for the boxes
    2.0
    """

    trees: tuple[TreePlan | None, ...]
    most_values: tuple[int, ...]
    gaps: tuple[float, ...]
    scale: float

    @classmethod
    def for_budget(cls, *, bits: tuple[int, ...], n: int, epsilon: float, candidates: int = 1_000_000) -> BoxPlan:
        """Return the plan of ε-DP for `n` public rows of a grid of :math:`2^{bits_j}` values in column j.

        At most `candidates` rectangles, the empty one included, are different on the released points. Raises
        InvalidParameter if an argument is out of range, or there are too many columns for so few rectangles.
        """
        n, epsilon = count("n", n, at_least=1), real("epsilon", epsilon, above=0)
        values = values_per_column(bits, candidates)
        cut = [b for b, size in zip(bits, values, strict=True) if size < 1 << b]
        part = share(epsilon, len(cut) / _COLUMNS) if cut else 0.0
        trees = tuple(
            TreePlan.for_budget(bits=b, n=n, epsilon=part) if size < 1 << b else None
            for b, size in zip(bits, values, strict=True)
        )
        # s values have s − 1 gaps before the last of the grid: none of them passes n/(s − 1).
        gaps = tuple(n / (size - 1) if tree else 0.0 for tree, size in zip(trees, values, strict=True))
        return cls(trees, values, gaps, least_scale(2, share(epsilon, 1 / (1 - _COLUMNS)) if cut else epsilon))

    @property
    def epsilon(self) -> Fraction:
        """ε of the whole, exactly."""
        return sum((tree.epsilon for tree in self.trees if tree), Fraction(0)) + 2 / Fraction(self.scale)

    @property
    def n_boxes(self) -> int:
        """How many boxes there are at most."""
        return prod(self.most_values)


def rectangles_of(values: tuple[int, ...]) -> int:
    """Return how many rectangles are different on a grid of so many values a column, the empty one included."""
    return 1 + prod(size * (size + 1) // 2 for size in values)


def values_per_column(bits: tuple[int, ...], candidates: int) -> tuple[int, ...]:
    """Share `candidates` rectangles out to the columns: as many values for each as can be, and no more than it has.

    Raises InvalidParameter if two values a column are too many already.
    """
    sizes = [2] * len(bits)
    if rectangles_of(tuple(sizes)) > candidates:
        raise InvalidParameter(
            f"candidates={candidates:,} is too few for {len(bits)} columns: {rectangles_of(tuple(sizes)):,} rectangles "
            "differ on two values a column; take fewer columns"
        )
    waiting = [j for j, width in enumerate(bits) if width > 1]
    while waiting:
        j = min(waiting, key=lambda column: sizes[column])
        more = [size + (place == j) for place, size in enumerate(sizes)]
        if rectangles_of(tuple(more)) > candidates:
            waiting.remove(j)
            continue
        sizes = more
        if sizes[j] >= 1 << bits[j]:
            waiting.remove(j)
    return tuple(sizes)


def column_bits_of(concept_class: ConceptClass) -> tuple[int, ...]:
    """Return the bits of each column of a class of rectangles; any other class is refused."""
    if isinstance(concept_class, Rectangles):
        return concept_class.column_bits
    raise InvalidParameter(
        f"concept_class must be Rectangles for Boxes, got {type(concept_class).__name__}",
        parameter="concept_class",
        advice="on a line take Tree, on a small or listed domain MWEM",
        instead="Tree",
    )


_COPIES = 200  # of a released point in the mean, beside the one that each has


@stored_as("quorate.learners.sanitizers.boxes.Boxes")
@dataclass(frozen=True, slots=True)
class Boxes(AgreeingSanitizer):
    r"""Sanitize rows for axis-aligned rectangles, on a grid of any size, in a few columns.

    `candidates`: at most so many rectangles differ on the released points: :math:`1 + \prod_j s_j (s_j + 1)/2`. It
    decides how finely the columns are cut; two columns get 44 values each, three 13.

    Only :class:`~quorate.learners.concepts.Rectangles` are taken, and at least one point. Privacy: ε-DP for one
    replaced record, n public. Errors: with :math:`g = w + \tau + x`, rectangles that agree on the released points
    differ on at most :math:`2dg` rows, and every difference of two keeps its fraction up to :math:`(4dg + Z)/n` and
    rounding. w is about n/s, so the bounds stop falling at :math:`2d/s` for so many `candidates`. Proofs:
    ``docs/theory/private-learners.md``.

    BNS15, Definition A.2, Algorithm 1 (Step 2) and Section 4 (RECTANGLE). Qardaji, Yang and Li (2013), "Differentially
    private grids for geospatial data", for a grid that follows the data in place of a hierarchy over all of it.

    Examples
    --------
    >>> from quorate.learners.concepts import Rectangles
    >>> from quorate.noise import SeededNoise
    >>> rows = np.random.default_rng(0).integers(0, 2**16, (20_000, 2))
    >>> synthetic = Boxes(candidates=1_000).sanitize(rows, Rectangles(16, 2), 1.0, SeededNoise(0))
    >>> len(np.unique(synthetic, axis=0)) <= 49, len(synthetic)
    (True, 7236)
    >>> round(Boxes().agreement_bound(1_000_000, Rectangles(16, 2), beta=0.1, epsilon=1.0), 3)
    0.097
    """

    candidates: int = 1_000_000

    remedy: ClassVar[str] = "raise candidates"

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", count("candidates", self.candidates, at_least=2))

    def most_dichotomies(self, concept_class: ConceptClass) -> int:
        """Return how many rectangles differ on the released points at most; public."""
        return rectangles_of(self._plan(1, concept_class, 1.0).most_values)

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(n_synthetic, n_features)`` synthetic grid points, each point of the released grid among them."""
        points = checked_rows(points, concept_class)
        plan = self._plan(len(points), concept_class, epsilon)
        values = []
        for j, (tree, gap, most) in enumerate(zip(plan.trees, plan.gaps, plan.most_values, strict=True)):
            if tree is None:
                values.append(np.arange(most))
                continue
            released = noisy_prefix_counts(points[:, j].astype(np.int64), tree, noise.at("column", j))
            values.append(cut_values(released, gap, most))
        noisy = noisy_boxes(points, values, plan.scale, noise.at("boxes", 0))
        # From here on only what was released, and n.
        copies = 1 + rounded_weights(_weights(noisy), _COPIES * noisy.size)
        grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
        return np.repeat(grid, copies, axis=0).astype(points.dtype)

    def agreement_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α: on any `n` rows, rectangles that agree on the released points differ by more but with prob. β."""
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        plan = self._plan(n, concept_class, epsilon)
        return min(1.0, 2 * len(plan.trees) * _gap_error(plan, n, beta) / n)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: no :math:`c \in C^\oplus` is off by more but for β, half of it for columns, half for boxes."""
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        plan = self._plan(n, concept_class, epsilon)
        moved = 4 * len(plan.trees) * _gap_error(plan, n, beta / 2)
        # Copies by weight err by 1/(4 · 200) of all, and one more of each point is 1 in 201.
        rounding = 1 / (4 * _COPIES) + 1 / (_COPIES + 1)
        return min(1.0, (moved + absolute_noise(plan.n_boxes, plan.scale, beta / 2)) / n + rounding)

    def _plan(self, n: int, concept_class: ConceptClass, epsilon: float) -> BoxPlan:
        bits = column_bits_of(concept_class)
        return BoxPlan.for_budget(bits=bits, n=n, epsilon=epsilon, candidates=self.candidates)


def cut_values(tree: PrefixCounts, gap: float, most: int) -> IntArray:
    """Return at most `most` increasing grid values, the last of the grid among them, with few estimated rows between.

    Up the cells of the tree, the last value of a cell is taken that would bring the rows since the value before it
    above `gap`, or above a larger number where that would make more than `most` values: n/(s − 1) never does.
    """
    rows, last = np.diff(tree.below).tolist(), (tree.borders[1:] - 1).tolist()
    cuts: list[int] = []
    since = 0.0
    for cell, value in zip(rows[:-1], last[:-1], strict=True):
        since += cell
        if since > gap and len(cuts) < most - 1:
            cuts.append(value)
            since = 0.0
    return np.array([*cuts, last[-1]], dtype=np.int64)


def noisy_boxes(points: Points, values: list[IntArray], scale: float, noise: NoiseSource) -> IntArray:
    """Release the noisy numbers of rows at all points of the grid of `values`, 2/λ-DP: the one place that reads rows.

    `values`: of each column, increasing, from earlier releases; the last is that of its grid. `scale`: λ, in rows.
    """
    shape = tuple(len(column) for column in values)
    places = tuple(np.searchsorted(column, points[:, j], side="left") for j, column in enumerate(values))
    counts = np.bincount(np.ravel_multi_index(places, shape), minlength=prod(shape)).astype(np.int64)
    released: IntArray = counts.reshape(shape) + discrete_laplace(scale, shape, noise)
    return released


def absolute_noise(n_boxes: int, scale: float, beta: float) -> float:
    r"""Return z: the sum of so many absolute discrete Laplace noises is above z with probability at most β (Chernoff).

    With :math:`r = e^{-1/\lambda}`, :math:`E e^{\theta|Z|} = \frac{1 - r}{1 + r} \cdot \frac{1 + r e^\theta}{1 - r
    e^\theta}`.
    """
    rates = np.linspace(0.002, 0.9, 450) / scale
    least = 1 / scale
    log_mgf: FloatArray = (
        log(-expm1(-least)) - log1p(exp(-least)) + np.log1p(np.exp(rates - least)) - np.log(-np.expm1(rates - least))
    )
    return float(np.min((n_boxes * log_mgf - log(beta)) / rates)) * (1 + 1e-9)


def _gap_error(plan: BoxPlan, n: int, beta: float) -> float:
    """Return g: rows strictly between neighbouring values of any column, but for probability β."""
    beta_of_one = beta / len(plan.trees)
    gaps = zip(plan.trees, plan.gaps, strict=True)
    return max(
        gap + (tree.threshold or 0.0) + interval_error(tree, n, beta_of_one) if tree else 0.0 for tree, gap in gaps
    )


def _weights(noisy: IntArray) -> FloatArray:
    weights: FloatArray = np.maximum(noisy, 0).astype(np.float64).ravel()
    return weights if weights.any() else np.ones_like(weights)
