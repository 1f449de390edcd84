r"""The public side of Boxes: how its budget is shared out, and how finely each column is cut."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.concepts.rectangles import Rectangles
from quorate.learners.sanitizers.budget import least_scale, share
from quorate.learners.sanitizers.tree_plan import TreePlan
from quorate.stored_names import stored_as

_COLUMNS = Fraction(3, 4)  # of ε, for the trees of all columns; what is left goes to the counts of the boxes


@stored_as("quorate.learners.sanitizers.box_plan.BoxPlan")
@dataclass(frozen=True, slots=True)
class BoxPlan:
    r"""How d columns are cut, and what noise the boxes between the cuts get: a function of public facts alone.

    Parameters
    ----------
    trees : tuple of TreePlan or None
        One for each column; None where all values of the column are kept.
    most_values : tuple of int
        How many values :math:`s_j \ge 2` a column is cut down to, at most.
    gaps : tuple of float
        :math:`w_j`: strictly between two of them lie at most so many rows, by the tree's estimates.
    scale : float
        λ of the discrete Laplace noise on the count of each box, in rows.

    Notes
    -----
    Privacy: the trees cost :attr:`TreePlan.epsilon` each, and the counts :math:`2/\lambda`, since one replaced record
    moves two of them by 1: :attr:`epsilon` together (proof in :mod:`quorate.learners.sanitizers.boxes`).

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
        """Return the plan of ε-DP for `n` rows of a grid, with at most so many rectangles on what is released.

        Parameters
        ----------
        bits : tuple of int
            Column j has :math:`2^{bits_j}` values.
        n : int
            Rows, at least 1; public.
        epsilon : float
            ε > 0.
        candidates : int
            At most so many rectangles, the empty one included, are different on the released points.

        Raises
        ------
        InvalidParameter
            If an argument is out of range, or there are too many columns for so few rectangles.
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
    """Return how many rectangles are different on a grid of so many values a column, the empty one included.

    Examples
    --------
    >>> rectangles_of((2, 3))
    19
    """
    return 1 + prod(size * (size + 1) // 2 for size in values)


def values_per_column(bits: tuple[int, ...], candidates: int) -> tuple[int, ...]:
    """Share `candidates` rectangles out to the columns: as many values for each as can be, and no more than it has.

    Raises InvalidParameter if two values a column are too many already.

    Examples
    --------
    >>> values_per_column((16, 16), 1_000_000), values_per_column((16, 1), 1_000_000)
    ((44, 44), (815, 2))
    """
    sizes = [2] * len(bits)
    if rectangles_of(tuple(sizes)) > candidates:
        raise InvalidParameter(
            f"candidates={candidates:,} is too few for {len(bits)} columns: {rectangles_of(tuple(sizes)):,} rectangles "
            "differ on two values a column; take fewer columns"
        )
    waiting = [j for j, width in enumerate(bits) if width > 1]
    while waiting:
        j = min(waiting, key=lambda each: sizes[each])
        more = [size + (place == j) for place, size in enumerate(sizes)]
        if rectangles_of(tuple(more)) > candidates:
            waiting.remove(j)
            continue
        sizes = more
        if sizes[j] >= 1 << bits[j]:
            waiting.remove(j)
    return tuple(sizes)


def column_bits_of(concept_class: ConceptClass) -> tuple[int, ...]:
    """Return the bits of each column of a class of rectangles.

    Raises InvalidParameter if it is another class.

    Examples
    --------
    >>> column_bits_of(Rectangles(16, 2))
    (16, 16)
    """
    if isinstance(concept_class, Rectangles):
        return concept_class.column_bits
    raise InvalidParameter(
        f"concept_class must be Rectangles for Boxes, got {type(concept_class).__name__}; on a line take Tree, on a "
        "small or listed domain MWEM"
    )
