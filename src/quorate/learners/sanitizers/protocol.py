"""What a sanitizer is: private points in, synthetic points out, for one event."""

from __future__ import annotations

from typing import Protocol

from quorate.accounting import ApproxDP, PureDP
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.noise import NoiseSource


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

        Raises
        ------
        DataRefused
            If some row lies outside the sanitizer's domain. The message holds no value.
        """

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return synthetic points ``(n_synthetic, n_features)``, with repetitions, in the form of `points`."""

    def event(self, epsilon: float) -> PureDP | ApproxDP:
        """Price of one call of :meth:`sanitize`."""

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α in [0, 1]: on any `n` rows the error is above α with probability at most `beta`."""

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return a number of rows at which :meth:`error_bound` is at most `alpha`."""
