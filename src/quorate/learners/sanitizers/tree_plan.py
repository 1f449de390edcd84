r"""The public side of a noisy tree: how it branches, how much noise each level gets, which nodes are opened."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, prod

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.sanitizers.budget import least_scale
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as

#: Largest number of bits of a grid: one past its last point is still an int64.
MAX_BITS = 62

#: Up to so many bits every node is opened: the noise is drawn in a moment, and no cell is left closed.
OPEN_ALL_BITS = 20

_LEAST_THRESHOLD = 9.0  # scales, before the logarithm of how many nodes there may be


@stored_as("quorate.learners.sanitizers.tree_plan.TreePlan")
@dataclass(frozen=True, slots=True)
class TreePlan:
    r"""How a grid of :math:`2^{bits}` points is halved into nodes, what noise their counts get, which are opened.

    Parameters
    ----------
    fanouts : tuple of int
        Children of a node, level by level from the root; each a power of two, at least 2. Their product is the size of
        the grid.
    scale : float
        λ of the discrete Laplace noise on each count of a child, in rows.
    threshold : float, optional
        A child is opened in its turn where its estimate is above so many rows. None opens every node.

    Raises
    ------
    InvalidParameter
        If a field is out of range.

    Notes
    -----
    Privacy: one replaced record moves at most two counts of a level by 1 each, so a level is :math:`2/\lambda`-DP and
    the tree :attr:`epsilon`-DP (proof in :mod:`quorate.learners.sanitizers.noisy_tree`).

    Examples
    --------
    >>> plan = TreePlan.for_budget(bits=32, n=35_000, epsilon=1.0)
    >>> plan.fanouts, plan.scale, plan.threshold
    ((16, 16, 16, 16, 16, 16, 16, 16), 16.0, 345.0)
    >>> TreePlan.for_budget(bits=8, n=35_000, epsilon=1.0)
    TreePlan(fanouts=(16, 16), scale=4.0, threshold=None)
    """

    fanouts: tuple[int, ...]
    scale: float
    threshold: float | None = None

    def __post_init__(self) -> None:
        fanouts = tuple(count("fanouts", fanout, at_least=2) for fanout in self.fanouts)
        if not fanouts or any(fanout & (fanout - 1) for fanout in fanouts) or prod(fanouts) > 2**MAX_BITS:
            raise InvalidParameter(
                f"fanouts must be powers of two, at least one, of product at most 2^{MAX_BITS}, got {self.fanouts!r}"
            )
        object.__setattr__(self, "fanouts", fanouts)
        object.__setattr__(self, "scale", checked_scale("scale", self.scale))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", real("threshold", self.threshold, above=0))

    @classmethod
    def for_budget(cls, *, bits: int, n: int, epsilon: float) -> TreePlan:
        r"""Return the plan of ε-DP for `n` rows on :math:`2^{bits}` points: a function of public facts alone.

        Notes
        -----
        *Branching.* With L levels of one ε/L each, :math:`\lambda = 2L/\varepsilon`. Each end of an interval lies, on
        each level, inside one node of k children; the noise that it picks up there, once the children are made to sum
        to their parent, has variance at most :math:`2\lambda^2 k/4`, and the root is one node for both ends
        (:mod:`quorate.learners.sanitizers.tree_bound`). So :math:`L^2 (2 \sum_l k_l - k_1)` is made least over L, bits
        shared out as evenly as can be: for 32 bits, 8 levels of 16.

        *Equal budgets.* For equal k, :math:`\sum_l k/\varepsilon_l^2` under :math:`\sum_l \varepsilon_l = \varepsilon`
        is least at equal :math:`\varepsilon_l`: rows may part at any depth, so no level is less needed than another.

        *Threshold.* Small grids need none (:data:`OPEN_ALL_BITS`). On large ones half of it is error by itself, but
        it has to stand clear of the noise on a node: among :math:`n \sum_l k_l/\lambda` nodes the largest noise is
        about λ times the logarithm of their number, and what is left, nine scales, keeps the opened nodes few. Utility
        rests on this choice, privacy does not.
        """
        bits, n = count("bits", bits, at_least=1), count("n", n, at_least=1)
        epsilon = real("epsilon", epsilon, above=0)
        if bits > MAX_BITS:
            raise InvalidParameter(f"bits must be at most {MAX_BITS}, got {bits}; use a coarser grid")
        shapes = [_even(bits, levels) for levels in range(1, bits + 1)]
        fanouts = min(shapes, key=lambda ks: len(ks) ** 2 * (2 * sum(ks) - ks[0]))
        scale = least_scale(2 * len(fanouts), epsilon)
        if bits <= OPEN_ALL_BITS:
            return cls(fanouts, scale)
        threshold = float(ceil(scale * (_LEAST_THRESHOLD + log(1 + n * sum(fanouts) / scale))))
        return cls(fanouts, scale, threshold)

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return prod(self.fanouts)

    @property
    def epsilon(self) -> Fraction:
        r"""ε of the whole tree, exactly: :math:`2L/\lambda`."""
        return 2 * len(self.fanouts) / Fraction(self.scale)


def _even(bits: int, levels: int) -> tuple[int, ...]:
    """Share `bits` out to so many levels, the larger fanouts first."""
    less, more = divmod(bits, levels)
    return (2 ** (less + 1),) * more + (2**less,) * (levels - more)
