"""What a sanitizer is: private points in, synthetic points out; its shares of an ε, and rows for an error.

Shares and the noise that they pay for are rounded so that their sum is never above ε.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, nextafter
from typing import Protocol

from quorate.accounting import ApproxDP, PureDP
from quorate.errors import InvalidParameter
from quorate.learners.amplification import smallest_count
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.noise import NoiseSource
from quorate.noise.source import checked_scale


class Sanitizer(Protocol):
    r"""A private release of points on which every pair of concepts differs about as often as on the private ones.

    With :math:`C^\oplus = \{h \oplus f : h, f \in C\}` and :math:`Q_c(D)` the fraction of the points of D that c
    labels 1, a sanitizer errs by :math:`\max_{c \in C^\oplus} |Q_c(D) - Q_c(\tilde D)|` (BNS15 Definition A.2, for
    the class that GenericLearner asks about). Privacy: ε-DP, or (ε, δ)-DP, for replace-one neighbours, the number of
    rows public, up to the :data:`~quorate.noise.TOTAL_VARIATION` of each draw. It never rests on the bounds on the
    error.

    A sanitizer is a frozen value: its fields are public. Whoever calls :meth:`sanitize` has put :meth:`event` into the
    ledger before.
    """

    def check(self, points: Points, concept_class: ConceptClass) -> None:
        """Refuse private rows that :meth:`sanitize` could not take; asked before anything is charged.

        Where one row is refused, so is the whole table. A refusal that came later, on some of the rows, would be an
        output that nobody accounted for.

        Raises DataRefused if some row lies outside the sanitizer's domain. The message holds no value.
        """

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return synthetic points ``(n_synthetic, n_features)``, with repetitions, in the form of `points`."""

    def event(self, epsilon: float) -> PureDP | ApproxDP:
        """Price of one call of :meth:`sanitize`."""

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α in [0, 1]: on any `n` rows the error is above α with probability at most `beta`."""

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return a number of rows at which :meth:`error_bound` is at most `alpha`."""


def share(epsilon: float, parts: int | Fraction) -> float:
    r"""Return ε divided by `parts`, rounded so that the parts together are never above it, in exact arithmetic."""
    part = float(Fraction(epsilon) / parts)
    while Fraction(part) * parts > Fraction(epsilon):
        part = nextafter(part, 0.0)
    return part


def least_scale(sensitivity: int, epsilon: float) -> float:
    r"""Return the least float λ with :math:`\Delta/\lambda \le \varepsilon`, in exact arithmetic."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = nextafter(scale, inf)
    return checked_scale("scale of the noise, sensitivity / epsilon,", scale)


_MOST_ROWS = 2**40


def least_rows(bound: Callable[[int], float], alpha: float, *, floor: float, remedy: str) -> int:
    """Return a number of rows n with ``bound(n) <= alpha``: the least, where the bound falls with n.

    `bound`: the error at n rows. `alpha`: the error asked for. `floor`: what the bound tends to with more rows.
    `remedy`: what to do where alpha is not above it. Raises InvalidParameter if no number of rows up to 2^40 is enough.
    """
    if not alpha > floor:
        raise InvalidParameter(
            f"alpha must be > {floor:.4g}, which stays with any number of rows, got {alpha!r}; {remedy}"
        )
    if bound(_MOST_ROWS) > alpha:
        raise InvalidParameter(f"alpha must be larger: {alpha!r} asks for more than 2^40 rows; {remedy}")
    return smallest_count(lambda n: bound(n) <= alpha, 1)
