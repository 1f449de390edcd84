r"""Private sanitizers for BNS15's GenericLearner: private points in, synthetic points out, ε-DP or (ε, δ)-DP.

What must be kept is how often two concepts of a class differ: the queries are :math:`C^\oplus = \{h \oplus f\}`.

================ ============================================== ========================================================
:class:`Boxes`   rectangles in a few columns, grids up to 2^62  noisy trees of the columns, counts between their cuts
:class:`Tree`    classes on a line, grids up to 2^62            noisy tree of prefix counts, opened where it is worth it
:class:`Medians` classes on a line, grids up to 2^62            private medians of medians; (ε, δ) by scales
:class:`MWEM`    finite grids of up to a few thousand points    multiplicative weights and the exponential mechanism
:class:`BLR`     tiny domains                                   exponential mechanism over all multisets; the reference
================ ============================================== ========================================================

Each states its error with every constant, and the rows that an error asks for; privacy rests on neither.
"""

from quorate.learners.sanitizers.boxes import Boxes, BoxPlan
from quorate.learners.sanitizers.medians import MedianPlan, Medians
from quorate.learners.sanitizers.protocol import Sanitizer, XorQueries
from quorate.learners.sanitizers.small_domains import BLR, MWEM, theorem_size
from quorate.learners.sanitizers.tree import (
    PrefixCounts,
    Tree,
    TreePlan,
    interval_error,
    noisy_prefix_counts,
    prefix_error,
)

__all__ = [
    "Sanitizer",
    "Tree",
    "TreePlan",
    "PrefixCounts",
    "noisy_prefix_counts",
    "prefix_error",
    "interval_error",
    "Medians",
    "MedianPlan",
    "Boxes",
    "BoxPlan",
    "MWEM",
    "BLR",
    "theorem_size",
    "XorQueries",
]
