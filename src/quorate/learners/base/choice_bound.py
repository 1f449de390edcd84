"""How many labelled rows one private choice needs: the rows that a mechanism needs to choose a good concept.

The candidates H do not depend on the m labelled rows; mistakes are the scores of the exponential mechanism, or of
permute-and-flip. The proofs, for true labels and for any labels, are in ``docs/theory/private-learners.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atanh, ceil, expm1, inf, log, log1p, sinh

import numpy as np

from quorate.learners.amplification import smallest_count
from quorate.learners.concepts.protocol import ConceptClass
from quorate.mechanisms import CandidateChoice
from quorate.noise import NoiseSource
from quorate.theory.bns15 import sauer
from quorate.types import IntArray


def choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float, share: float = 0.0) -> int:
    r"""Return m: with as many labelled rows, a concept of error above α is chosen with probability at most β.

    `log_size`: :math:`\log |H|`. `alpha`, `beta`: in (0, 1). `epsilon`: ε of the choice. `share`: κ in [0, 1): the best
    concept's error is at most κα.
    """
    best = -log(share) / 2 if share else inf
    s = min(epsilon / 2, best)
    rate = -expm1(-s) - (share * expm1(s) if share else 0.0)
    return max(1, ceil((log_size - log(beta)) / -log1p(-alpha * rate)))


def agnostic_choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float) -> int:
    r"""Return m: with as many labelled rows, an error of more than α beyond the best has a probability of at most β.

    `log_size`: :math:`\log |H|`. `alpha`, `beta`: in (0, 1). `epsilon`: ε of the choice.

    KLNRS11, Theorem 3.4, for labels that no concept explains.
    """
    s = min(epsilon / 2, atanh(alpha))
    lost = alpha * sinh(s) - 2 * sinh(s / 2) ** 2  # 1 − cosh s + α sinh s, without cancellation
    return max(1, ceil((log_size - log(beta)) / -log1p(-lost)))


def growth_of(concepts: ConceptClass) -> Callable[[int], int]:
    """Return the class's own bound on its dichotomies on so many points; Sauer's lemma where it has none.

    Sauer (1972); BNS15, Theorem B.2.
    """
    own: Callable[[int], int] | None = getattr(concepts, "growth", None)
    return own or (lambda n_points: sauer(n_points, concepts.vc_dimension))


def deviation_rows(growth: Callable[[int], int], *, observed: float, true: float, beta: float) -> int:
    r"""Return n: on as many independent rows, all pairs of concepts that differ on a share `observed` differ by `true`.

    For one target c, with probability 1 − β, every concept h with :math:`dis_D(h, c) \le` `observed` has a true
    disagreement of at most `true` (Vapnik's relative deviation): :math:`L \le L_n + 2\sqrt{L_n A} + 4A` with
    :math:`A = (\log S(2n) + \log(4/\beta))/n`, S = `growth`. Its solution is
    :math:`A \le ((\sqrt{4\,true - 3\,observed} - \sqrt{observed})/4)^2`.

    Boucheron, Bousquet, Lugosi (2005), "Theory of classification", Corollary 5.2; Anthony and Shawe-Taylor (1993).
    """
    slack = ((4 * true - 3 * observed) ** 0.5 - observed**0.5) / 4
    allowed = slack * slack

    return smallest_count(lambda n: bool(log(growth(2 * n)) + log(4 / beta) <= allowed * n), 1)


def chosen(mechanism: CandidateChoice, scores: IntArray, noise: NoiseSource) -> int:
    """Choose one of some candidates by their ``(n_candidates,)`` int64 scores: its index.

    On some private points a whole class collapses to one dichotomy. A refusal to choose would tell that; taking the one
    there is tells no more than a choice that could not have come out otherwise.
    """
    return int(mechanism.release_many(scores[np.newaxis], noise)[0]) if len(scores) > 1 else 0
