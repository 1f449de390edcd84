"""The public side of Medians: how often a line is split, and how its budget is shared out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.sanitizers.budget import share
from quorate.learners.sanitizers.quasi_concave import Search
from quorate.learners.sanitizers.tree_plan import TreePlan
from quorate.stored_names import stored_as

#: Of ε: what the counts between the splits cost. The splits have the rest.
COUNTS = Fraction(1, 5)
MOST_LEVELS = 20
MOST_EPSILON = 500  # beyond, e^ε times a δ says nothing, and is soon no float
#: A domain is chosen from at once where it has no more points than this; else by scales, in an (ε, δ) plan.
AT_ONCE = 64
_USUAL = 1 / 3  # of the noise that is proven: what is met, and what decides how often to split
_BETA = 0.1
_DOWN = 1 - Fraction(1, 2**40)


@stored_as("quorate.learners.sanitizers.median_plan.MedianPlan")
@dataclass(frozen=True, kw_only=True, slots=True)
class MedianPlan:
    r"""What a release of medians is made with.

    Parameters
    ----------
    searches : tuple of Search
        Of one node's median, level by level from the root.
    counts : TreePlan
        Of the counts between the splits.
    n : int
        Rows.

    Notes
    -----
    With K levels, and levels of budgets :math:`E_k`, a gap has at most
    :math:`n 2^{-K} + \sum_k 2^{-(K-k+1)} e_k` rows, :math:`e_k \propto 1/E_k`. Under :math:`2\sum_k E_k = \varepsilon`
    that is least at :math:`E_k \propto 2^{k/2}`. K is the number of splits at which it is least, the noise taken at a
    third of what is proven.

    Examples
    --------
    >>> plan = MedianPlan.for_budget(bits=32, n=300_000, epsilon=1.0, delta=0.0, levels=10, beta=0.1)
    >>> len(plan.searches), round(plan.gap), plan.epsilon <= 1
    (10, 1152, True)
    """

    searches: tuple[Search, ...]
    counts: TreePlan
    n: int

    @classmethod
    def for_budget(
        cls, *, bits: int, n: int, epsilon: float, delta: float, levels: int, beta: float, turns: int | None = None
    ) -> MedianPlan:
        """Return the plan of (ε, δ) for n rows on a line of 2^bits points, with at most so many levels.

        Parameters
        ----------
        bits, n, levels : int
            Public.
        epsilon, delta : float
            Of the whole. With δ = 0 each median is chosen at once.
        beta : float
            Probability of a wider gap than :attr:`gap`, for all splits together.
        turns : int, optional
            How often a median is reduced to the choice of a scale; None until a choice is from few.

        Raises
        ------
        InvalidParameter
            If an argument is out of range, or ε too small for tests of stability.
        """
        epsilon, beta = real("epsilon", epsilon, above=0), real("beta", beta, above=0, below=1)
        n, levels = count("n", n, at_least=1), min(count("levels", levels, at_least=1), bits, MOST_LEVELS)
        if delta > 0 and epsilon > MOST_EPSILON:
            raise InvalidParameter(
                f"epsilon must be at most {MOST_EPSILON} for Medians with delta > 0, got {epsilon!r}; or take delta=0"
            )
        if turns is None:
            turns = _turns(bits) if delta > 0 else 0
        try:
            tried = [cls._at(bits, n, epsilon, delta, k, _BETA, turns) for k in range(1, levels + 1)]
        except InvalidParameter:  # of a test of stability, which names a share of this ε
            raise InvalidParameter(
                f"epsilon must be larger for Medians with delta > 0, got {epsilon!r}; or take delta=0"
            ) from None
        best = min(tried, key=lambda plan: (plan.evenly + _USUAL * (plan.gap - plan.evenly), len(plan.searches)))
        return cls._at(bits, n, epsilon, delta, len(best.searches), beta, turns)

    @classmethod
    def _at(cls, bits: int, n: int, epsilon: float, delta: float, levels: int, beta: float, turns: int) -> MedianPlan:
        splits = share(epsilon, 1 / (1 - COUNTS))
        weights = [sqrt(2.0) ** k for k in range(levels)]
        budgets = [share(splits, Fraction(2 * sum(weights) / each) / _DOWN) for each in weights]
        each_beta = beta / ((1 << levels) - 1)
        searches = tuple(
            Search.for_budget(
                size=1 << bits,
                epsilon=budget,
                delta=delta / (levels * 2 * max(turns, 1) * (1 + exp(budget))) * float(_DOWN) if delta > 0 else 0.0,
                turns=turns,
                beta=each_beta,
            )
            for budget in budgets
        )
        return cls(
            searches=searches,
            counts=TreePlan.for_budget(bits=levels + 1, n=n, epsilon=share(epsilon, 1 / COUNTS)),
            n=n,
        )

    @property
    def evenly(self) -> float:
        """Rows in each gap if all medians were exact."""
        return self.n / float(1 << len(self.searches))

    @property
    def gap(self) -> float:
        """g: the largest number of rows strictly between neighbouring splits, but for probability β."""
        found = float(self.n)
        for each in self.searches:
            found = (found + each.error) / 2
        return found

    @property
    def epsilon(self) -> Fraction:
        """ε of the whole, exactly: a replaced record is one that leaves a node of each level, and one that comes."""
        return 2 * sum((each.epsilon for each in self.searches), Fraction(0)) + self.counts.epsilon

    @property
    def delta(self) -> float:
        r"""δ of the whole: :math:`(1 + e^{E_k})` times that of a node's median, on each level."""
        by_scales = [each for each in self.searches if each.stable_draws]
        return sum((1 + exp(each.epsilon)) * each.stable_draws * each.stable_delta for each in by_scales)


def _turns(bits: int) -> int:
    """How often the logarithm is taken until a choice is from no more than :data:`AT_ONCE`."""
    size, turns = 1 << bits, 0
    while size > AT_ONCE:
        size, turns = (size - 1).bit_length() + 1, turns + 1
    return turns
